"""The columns of the list of models, the order of its rows, and the box that chooses columns."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.documents.lines import Line, Span, column, cut, line
from dlbricks_tui.tui.dialogs.dialog import Dialog
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.model_names import family_rows, told_apart
from dlbricks_tui.tui.open_model import id_of
from dlbricks_tui.tui.widgets.rows import DrawnRows
from dlbricks_tui.wording.answers import combination_words, figure_number
from dlbricks_tui.wording.numbers import PREDICTED, UNKNOWN, age, milliseconds, part_of, percent

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from dlbricks_tui.estimate.system_estimate import SystemEstimate
    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.tui.open_model import ModelId

# Narrower names would tell little: the first columns are dropped before. The last one leaves less room for names.
LEAST_NAME, _GOOD_NAME = 16, 24
_GAP = 1


@dataclass(frozen=True, slots=True)
class KnownLatency:
    """The answer of a model, for the cells of its row."""

    # In milliseconds: `16.70`, `~8.1-15`; empty if there is none.
    figure: str
    # The latency that the list is sorted by; None without a figure.
    whole_ms: float | None
    # The number of measured layers.
    measured: int
    layers: int
    # True if an estimate is possible at all.
    possible: bool = True
    # True if the figure is a prediction.
    predicted: bool = False
    end_to_end_ms: float | None = None
    per_second: float | None = None
    # The runtime and its variant: `mxnet, 2 threads, batch 1`.
    combination: str = ""
    # The time of the oldest measurement in it, in seconds since 1970; None if nothing was measured.
    since: float | None = None


def known_latency(one: SystemEstimate) -> KnownLatency:
    """Return an answer as the list shows it."""
    found, timed, figure = one.estimate, one.end_to_end, one.figure
    whole_ms = None if figure is None else figure.latency.value_ms
    return KnownLatency(
        figure_number(one),
        whole_ms,
        found.coverage.measured if one.is_measured else 0,
        found.coverage.layers,
        not found.obstacle or figure is not None,
        figure is not None and not figure.is_measured,
        None if timed is None else timed.value_ms,
        one.variant.batch / whole_ms * 1000 if whole_ms else None,
        combination_words(one),
        figure.between[0] if figure is not None and figure.between is not None else None,
    )


class ModelColumn(NamedTuple):
    """A column with its title, and its meaning for the box that selects columns."""

    name: str
    title: str
    width: int
    about: str
    cell: Callable[[ModelSource, KnownLatency | None, float], tuple[str, str]]
    right: bool = True


def _task(source: ModelSource, _: KnownLatency | None, __: float) -> tuple[str, str]:
    return source.task or "", "muted"


def _layers(source: ModelSource, _: KnownLatency | None, __: float) -> tuple[str, str]:
    return UNKNOWN if source.layers is None else f"{source.layers:,}", "muted"


def _unique(source: ModelSource, _: KnownLatency | None, __: float) -> tuple[str, str]:
    known = source.layers and source.unique_layers is not None
    return percent((source.unique_layers or 0) / (source.layers or 1)) if known else UNKNOWN, "text"


def _format(source: ModelSource, _: KnownLatency | None, __: float) -> tuple[str, str]:
    return ", ".join(form.value for form in source.formats), "muted"


def _runtime(_: ModelSource, latency: KnownLatency | None, __: float) -> tuple[str, str]:
    return latency.combination if latency is not None and latency.figure else UNKNOWN, "muted"


def _per_second(_: ModelSource, latency: KnownLatency | None, __: float) -> tuple[str, str]:
    if latency is None or latency.per_second is None:
        return UNKNOWN, "muted"
    sign = PREDICTED if latency.predicted else ""
    return sign + milliseconds(latency.per_second), "warn" if latency.predicted else "text"


def _measured(_: ModelSource, latency: KnownLatency | None, __: float) -> tuple[str, str]:
    known_ms = None if latency is None else latency.end_to_end_ms
    return UNKNOWN if known_ms is None else milliseconds(known_ms), "muted" if known_ms is None else "text"


def _age(_: ModelSource, latency: KnownLatency | None, now: float) -> tuple[str, str]:
    return UNKNOWN if latency is None or latency.since is None else age(now - latency.since), "muted"


def _estimate(_: ModelSource, latency: KnownLatency | None, __: float) -> tuple[str, str]:
    if latency is not None and not latency.possible:
        return "none", "warn"
    if latency is None or (not latency.figure and not latency.measured):
        return UNKNOWN, "muted"
    if not latency.figure:
        return f"{part_of(latency.measured, latency.layers)} run", "warn"
    return latency.figure, "warn" if latency.predicted else "strong"


# The most important last: the first ones are dropped when the panel is narrow.
COLUMNS = (
    ModelColumn("task", "task", 4, "the task: image classification (IC), object detection (OD), ...", _task, False),
    ModelColumn("format", "format", 11, "the formats of its files", _format, False),
    ModelColumn("runtime", "runtime", 29, "the runtime, threads and batch size of the answer", _runtime, False),
    ModelColumn("layers", "layers", 6, "the number of layers", _layers),
    ModelColumn("unique", "unique", 6, "the share of layers that differ from all others", _unique),
    ModelColumn("per_second", "per s", 8, "images, sentences or rows in a second, by the answer", _per_second),
    ModelColumn("measured", "measured", 8, "the end-to-end latency in ms", _measured),
    ModelColumn("age", "age", 6, "the age of the oldest measurement in the answer", _age),
    ModelColumn("estimate", "ms", 10, "the answer in ms: the fastest one measured, or a predicted range", _estimate),
)
FIRST_COLUMNS = ("task", "layers", "unique", "age", "estimate")


def columns_in(names: Collection[str]) -> tuple[ModelColumn, ...]:
    """Return the columns of these names, in their order in the list."""
    return tuple(it for it in COLUMNS if it.name in names)


def fitting(columns: Sequence[ModelColumn], width: int) -> tuple[Sequence[ModelColumn], int]:
    """Return the columns that fit beside the names, and the width of the names."""
    first, room = len(columns), width
    while first and room - columns[first - 1].width - _GAP >= (LEAST_NAME if first == len(columns) else _GOOD_NAME):
        first -= 1
        room -= columns[first].width + _GAP
    return columns[first:], room


def cells(columns: Sequence[ModelColumn], source: ModelSource, latency: KnownLatency | None, now: float) -> Line:
    """Return the cells of a model, each after a gap."""
    spans: list[Span] = []
    for each in columns:
        text, style = each.cell(source, latency, now)
        spans += [Span(" " * _GAP), column(text, each.width, style, right=each.right)]
    return tuple(spans)


def titles(columns: Sequence[ModelColumn], sorted_by: str, sign: str) -> Line:
    """Return the titles of the columns; the sign marks the column that the list is sorted by."""
    spans: list[Span] = []
    for each in columns:
        title = sign + each.title if each.name == sorted_by else each.title
        spans += [Span(" " * _GAP), column(cut(title, each.width), each.width, "heading", right=each.right)]
    return tuple(spans)


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


class ListedModel(NamedTuple):
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
) -> list[ListedModel]:
    """Return the rows of models that are in this order already, with names of at most `width` cells."""
    names = labels(sources)
    if order is not ModelOrder.LIBRARY:
        told = told_apart([names[id_of(it)] for it in sources], width)
        return [ListedModel(text, source) for text, source in zip(told, sources, strict=True)]
    groups = grouped(sources, recent) if in_groups else [("", list(sources))]
    rows: list[ListedModel] = []
    for group, members in groups:
        if len(groups) > 1:
            rows.append(ListedModel(group, None, models=len(members)))
        rows += [
            ListedModel(text, None if index is None else members[index], in_family)
            for text, index, in_family in family_rows([names[id_of(it)] for it in members], width)
        ]
    return rows


_NAME = 12


class ModelColumnsScreen(Dialog[tuple[str, ...]]):
    """Returns the names of the selected columns."""

    scope = scopes.MODEL_COLUMNS
    HEADING = "Columns of the list of models"
    ABOUT = (
        "Marked columns are shown. A narrow list leaves out the first of them; {app.zoom} and {workbench.wider} help."
    )

    def __init__(self, shown: Iterable[str]) -> None:
        self._chosen = set(shown)
        self._list: DrawnRows[ModelColumn] = DrawnRows(self._row)
        self._list.items = COLUMNS
        super().__init__(self._list)

    def on_mount(self) -> None:
        self._list.rows_changed()

    def action_show_or_hide(self) -> None:
        if self._list.selected is not None:
            self._chosen ^= {self._list.selected.name}
            self._list.action_down()
            self._list.refresh()

    def action_use(self) -> None:
        self.dismiss(tuple(each.name for each in COLUMNS if each.name in self._chosen))

    def _row(self, index: int, width: int) -> Line:
        each = self._list.items[index]
        mark = Span("[x] ", "mark") if each.name in self._chosen else Span("[ ] ", "muted")
        return line(mark, column(each.title, _NAME, "strong"), Span(each.about, "muted"))
