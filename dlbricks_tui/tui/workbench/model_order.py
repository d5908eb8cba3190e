"""The order of the list of models, its groups, and its rows."""

from __future__ import annotations

from collections import Counter
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.tui.model_names import family_rows, told_apart
from dlbricks_tui.tui.open_model import id_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.tui.open_model import ModelId
    from dlbricks_tui.tui.workbench.model_columns import KnownLatency

RECENT = "Opened lately"
_TABLE_1 = "Table 1 of the paper"
# Samples by the name of their folder.
_SAMPLES = {"gluon": "Gluon model zoo"}
_OTHER_SAMPLES = "Other samples"
_YOURS = "Your models"


class ModelOrder(Enum):
    """An order of the list, as its title says it."""

    LIBRARY = ""
    NAME = "by name"
    TIME = "by time"
    LAYERS = "by layers"
    AGE = "by age"

    @property
    def column(self) -> str:
        """The name of the column that decides the order; empty for the names."""
        return {ModelOrder.TIME: "estimate", ModelOrder.LAYERS: "layers", ModelOrder.AGE: "age"}.get(self, "")


class ModelRow(NamedTuple):
    """A row of the list: a model as it is named there, or a heading."""

    text: str
    # None: a heading, of a group or of a family.
    source: ModelSource | None
    in_family: bool = False
    # The number of models in a group; 0 for other rows.
    models: int = 0


def in_order(
    sources: Sequence[ModelSource], order: ModelOrder, latencies: Mapping[ModelId, KnownLatency]
) -> list[ModelSource]:
    """Return the models in an order: the slowest, the largest and the newest first, and last those without a value."""
    if order is ModelOrder.LIBRARY:
        return list(sources)
    if order is ModelOrder.NAME:
        return sorted(sources, key=lambda it: it.name.casefold())

    def value(source: ModelSource) -> float | None:
        latency = latencies.get(id_of(source))
        if order is ModelOrder.LAYERS:
            return source.layers
        if latency is None:
            return None
        return latency.whole_ms if order is ModelOrder.TIME else latency.since

    values = {id_of(it): value(it) for it in sources}
    known = [it for it in sources if values[id_of(it)] is not None]
    unknown = [it for it in sources if values[id_of(it)] is None]
    return [*sorted(known, key=lambda it: -(values[id_of(it)] or 0.0)), *unknown]


def grouped(sources: Sequence[ModelSource], recent: Sequence[ModelId]) -> list[tuple[str, list[ModelSource]]]:
    """Return the groups of the library: the models opened lately, the samples, and the user's own by their folders."""
    known = {id_of(it): it for it in sources}
    lately = [known[it] for it in recent if it in known]
    rest = [it for it in sources if id_of(it) not in recent]
    own = Counter(it.path.parent for it in rest if not _is_sample(it))
    # A folder for each model would be a heading for each model.
    scattered = len(own) > max(1, sum(own.values()) // 2)
    groups: dict[str, list[ModelSource]] = {RECENT: lately} if lately else {}
    for source in rest:
        groups.setdefault(_group_of(source, scattered), []).append(source)
    return list(groups.items())


def _is_sample(source: ModelSource) -> bool:
    # Only the manifest of the samples tells the task.
    return source.task is not None


def _group_of(source: ModelSource, scattered: bool) -> str:
    if source.table1_id is not None:
        return _TABLE_1
    if _is_sample(source):
        return _SAMPLES.get(source.path.parent.name, _OTHER_SAMPLES)
    return _YOURS if scattered else _short_path(source.path.parent)


def _short_path(folder: Path) -> str:
    try:
        return f"~/{folder.relative_to(Path.home())}"
    except (ValueError, RuntimeError):
        return str(folder)


def labels(sources: Collection[ModelSource]) -> dict[ModelId, str]:
    """Return the names of the models; those of several models with one name are followed by their folders."""
    times = Counter(it.name for it in sources)
    in_folder = {id_of(it): f"{it.name} in {it.path.parent.name}" for it in sources if times[it.name] > 1}
    again = Counter(in_folder.values())
    found = {id_of(it): it.name for it in sources} | in_folder
    return found | {
        id_of(it): f"{it.name} in {it.path.parent}" for it in sources if again[in_folder.get(id_of(it), "")] > 1
    }


def list_rows(
    sources: Sequence[ModelSource], order: ModelOrder, recent: Sequence[ModelId], width: int, *, in_groups: bool
) -> list[ModelRow]:
    """Return the rows of models that are in this order already, with names of at most `width` cells."""
    names = labels(sources)
    if order is not ModelOrder.LIBRARY:
        told = told_apart([names[id_of(it)] for it in sources], width)
        return [ModelRow(text, source) for text, source in zip(told, sources, strict=True)]
    groups = grouped(sources, recent) if in_groups else [("", list(sources))]
    rows: list[ModelRow] = []
    for group, members in groups:
        if len(groups) > 1:
            rows.append(ModelRow(group, None, models=len(members)))
        rows += [
            ModelRow(text, None if index is None else members[index], in_family)
            for text, index, in_family in family_rows([names[id_of(it)] for it in members], width)
        ]
    return rows
