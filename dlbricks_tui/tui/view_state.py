"""The look of the workbench that the user chose last, and the models opened lately, in a file of the data folder.

A file that cannot be read or written is no reason to stop: the usual look applies.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from dlbricks_tui.api.open_models import ModelId
from dlbricks_tui.files import read_json, write_atomically

# The number of models opened lately that are kept.
MOST_RECENT = 5


@dataclass(frozen=True, slots=True)
class PanelSizes:
    """The sizes of panels in a layout: columns of those at the left and at the right, and percent of the upper one."""

    left: int
    right: int
    upper: int


@dataclass(frozen=True, slots=True)
class ViewState:
    """The look of the list of models, the sizes of panels by layout, recent models, and the parts that are shown."""

    # None: the usual ones.
    columns: tuple[str, ...] | None = None
    order: str = ""
    sizes: Mapping[str, PanelSizes] = field(default_factory=dict)
    # The newest first.
    recent: tuple[ModelId, ...] = ()
    # True: expert settings, and what an estimate rests on, are shown too.
    expert: bool = False
    # The groups of models that are unfolded; None: the usual ones.
    unfolded: tuple[str, ...] | None = None

    def opened(self, model: ModelId) -> ViewState:
        others = [it for it in self.recent if it != model]
        return replace(self, recent=(model, *others)[:MOST_RECENT])


def read_view(file: Path) -> ViewState:
    """Return the state in a file; what is missing or invalid is as usual."""
    try:
        document = read_json(file)
    except (OSError, ValueError):
        return ViewState()
    found = document if isinstance(document, dict) else {}
    order, sizes, recent = found.get("order"), found.get("sizes"), found.get("recent")
    kept: dict[str, PanelSizes] = {}
    for layout, given in sizes.items() if isinstance(sizes, dict) else ():
        with suppress(TypeError, ValueError, KeyError):
            kept[layout] = PanelSizes(*(int(given[each.name]) for each in fields(PanelSizes)))
    models = []
    for given in recent if isinstance(recent, list) else ():
        match given:
            case [str(path), str(name)]:
                models.append(ModelId(Path(path), name))
    return ViewState(
        _names_in(found.get("columns")),
        order if isinstance(order, str) else "",
        kept,
        tuple(models[:MOST_RECENT]),
        expert=found.get("expert") is True,
        unfolded=_names_in(found.get("unfolded")),
    )


def write_view(file: Path, state: ViewState) -> None:
    """Write the state, unless the file cannot be written."""
    text = json.dumps(asdict(state), indent=2, default=str)
    with suppress(OSError):
        write_atomically(file, f"{text}\n")


def _names_in(found: Any) -> tuple[str, ...] | None:
    return tuple(map(str, found)) if isinstance(found, list) else None


# Layouts without sizes show one panel at a time.
USUAL = {"-medium": PanelSizes(32, 42, 40), "-wide": PanelSizes(52, 58, 40)}
# The list of models takes what the layers do not need, as far as it needs that; the panels at the right take the rest.
_ENOUGH_MIDDLE = 48
_LEAST_LEFT, _LEAST_MIDDLE, _LEAST_RIGHT = 22, 24, 28
_LEAST_UPPER, _MOST_UPPER = 15, 85
STEP, STEP_UPPER = 4, 5


def usual_sizes(layout: str, width: int, needed: int) -> PanelSizes:
    """Return the sizes in a screen of this width before the user changes them; the list of models needs so much."""
    sizes = USUAL[layout]
    left = max(sizes.left, min(width - sizes.right - _ENOUGH_MIDDLE, needed))
    return replace(sizes, left=left, right=max(sizes.right, width - left - _ENOUGH_MIDDLE))


def fitted(sizes: PanelSizes, width: int) -> PanelSizes:
    """Return the sizes as far as a screen of this width has room for them."""
    right = min(max(sizes.right, _LEAST_RIGHT), width - _LEAST_LEFT - _LEAST_MIDDLE)
    left = min(max(sizes.left, _LEAST_LEFT), width - right - _LEAST_MIDDLE)
    return PanelSizes(left, right, min(max(sizes.upper, _LEAST_UPPER), _MOST_UPPER))


def wider(sizes: PanelSizes, panel: str, step: int) -> PanelSizes:
    """Return the sizes after a panel became wider by so many columns, or narrower."""
    if panel == "models":
        return replace(sizes, left=sizes.left + step)
    if panel == "tree":
        # It takes them from both sides.
        return replace(sizes, left=sizes.left - step // 2, right=sizes.right - step // 2)
    return replace(sizes, right=sizes.right + step)


def taller(sizes: PanelSizes, panel: str, step: int) -> PanelSizes:
    """Return the sizes after a panel at the right became taller, or shorter; the others have the whole height."""
    if panel not in ("details", "estimate"):
        return sizes
    return replace(sizes, upper=sizes.upper + (step if panel == "details" else -step))
