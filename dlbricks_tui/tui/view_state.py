"""The look of the workbench that the user chose last, and the models opened lately; kept in a file of the data folder.

A file that cannot be read or written is no reason to stop: the usual look applies.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dlbricks_tui.atomic_write import write_atomically
from dlbricks_tui.regular_files import read_json
from dlbricks_tui.tui.open_model import ModelId

if TYPE_CHECKING:
    from collections.abc import Mapping

# The number of models opened lately that are kept.
MOST_RECENT = 5


@dataclass(frozen=True, slots=True)
class PanelSizes:
    """The sizes of the panels in one layout: the columns of those at the left and at the right, and the height of the
    upper one there in percent.
    """

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
    # True: expert settings are shown too.
    expert: bool = False
    # False: the user has hidden the suggested next steps.
    next_steps: bool = True

    def opened(self, model: ModelId) -> ViewState:
        """Return the state after a model was opened."""
        others = [it for it in self.recent if it != model]
        return replace(self, recent=(model, *others)[:MOST_RECENT])


def read_view(file: Path) -> ViewState:
    """Return the state in a file; what is missing or invalid is as usual."""
    try:
        document = read_json(file)
    except (OSError, ValueError):
        return ViewState()
    found = document if isinstance(document, dict) else {}
    columns, order = found.get("columns"), found.get("order")
    return ViewState(
        tuple(map(str, columns)) if isinstance(columns, list) else None,
        order if isinstance(order, str) else "",
        _sizes_in(found.get("sizes")),
        _models_in(found.get("recent")),
        expert=found.get("expert") is True,
        next_steps=found.get("next_steps") is not False,
    )


def write_view(file: Path, state: ViewState) -> None:
    """Write the state, unless the file cannot be written."""
    recent = [[str(it.path), it.name] for it in state.recent]
    sizes = {layout: asdict(it) for layout, it in state.sizes.items()}
    columns = None if state.columns is None else list(state.columns)
    document = {
        "columns": columns,
        "order": state.order,
        "sizes": sizes,
        "recent": recent,
        "expert": state.expert,
        "next_steps": state.next_steps,
    }
    text = json.dumps(document, indent=2)
    with suppress(OSError):
        write_atomically(file, f"{text}\n")


def _sizes_in(found: Any) -> Mapping[str, PanelSizes]:
    sizes: dict[str, PanelSizes] = {}
    for layout, given in found.items() if isinstance(found, dict) else ():
        with suppress(TypeError, ValueError, KeyError):
            sizes[layout] = PanelSizes(*(int(given[name]) for name in ("left", "right", "upper")))
    return sizes


def _models_in(found: Any) -> tuple[ModelId, ...]:
    models = []
    for given in found if isinstance(found, list) else ():
        match given:
            case [str(path), str(name)]:
                models.append(ModelId(Path(path), name))
    return tuple(models[:MOST_RECENT])
