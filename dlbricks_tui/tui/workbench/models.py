"""The panel of models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from textual.message import Message

from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.lines import Line, Span, column, cut, highlighted, line
from dlbricks_tui.tui.open_model import ModelId, id_of
from dlbricks_tui.tui.widgets.panel import ItemPanel, marks_text
from dlbricks_tui.tui.widgets.rows import DrawnRows
from dlbricks_tui.tui.workbench import actions
from dlbricks_tui.wording.numbers import PREDICTED, milliseconds, part_of, percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dlbricks_tui.estimate.system_estimate import SystemEstimate
    from dlbricks_tui.models.library import ModelSource

MARK = "●"
UNKNOWN = "·"
_LEAST_NAME = 16
_GAP = 1


@dataclass(frozen=True, slots=True)
class KnownLatency:
    """The known latency of a model, for one cell."""

    sequential_ms: float | None
    # The number of measured layers.
    measured: int
    layers: int
    # True if an estimate is possible at all.
    possible: bool = True
    # True if layers that were not measured have a predicted latency, so that the sum is of all layers.
    predicted: bool = False


class _Column(NamedTuple):
    title: str
    width: int


# The most important last: the first ones are dropped when the panel is narrow.
_TASK, _LAYERS, _UNIQUE, _ESTIMATE = (
    _Column("task", 4),
    _Column("layers", 6),
    _Column("unique", 6),
    _Column("est. ms", 8),
)
_COLUMNS = (_TASK, _LAYERS, _UNIQUE, _ESTIMATE)


def known_latency(system_estimate: SystemEstimate) -> KnownLatency:
    """Return an estimate as the list shows it."""
    found = system_estimate.estimate
    return KnownLatency(
        system_estimate.sequential_ms,
        found.coverage.measured,
        found.coverage.layers,
        not found.obstacle,
        found.coverage.predicted > 0 and not found.is_partial,
    )


def model_row(
    source: ModelSource,
    width: int,
    *,
    marked: bool = False,
    latency: KnownLatency | None = None,
    words: Iterable[str] = (),
) -> Line:
    columns, name_width = _columns(width)
    # Names of Table 1 differ only after these words.
    name = cut(source.name.replace(" Trained on ", " · "), name_width)
    cells = [span for each in columns for span in (Span(" " * _GAP), _cell(source, latency, each))]
    mark = Span(f"{MARK} " if marked else "  ", "mark")
    return (mark, *highlighted(name, words), Span(" " * (name_width - len(name))), *cells)


def model_heading(width: int) -> Line:
    columns, name_width = _columns(width)
    titles = [
        span
        for each in columns
        for span in (Span(" " * _GAP), column(each.title, each.width, "heading", right=each is not _TASK))
    ]
    return (Span("  " + cut("model", name_width).ljust(name_width), "heading"), *titles)


def _columns(width: int) -> tuple[Sequence[_Column], int]:
    """Return the columns that fit beside the names, and the width of the names."""
    first, room = len(_COLUMNS), width - 2
    while first and room - _COLUMNS[first - 1].width - _GAP >= _LEAST_NAME:
        first -= 1
        room -= _COLUMNS[first].width + _GAP
    return _COLUMNS[first:], room


def _cell(source: ModelSource, latency: KnownLatency | None, which: _Column) -> Span:
    if which is _TASK:
        return column(source.task or "", which.width, "muted")
    if which is _LAYERS:
        return column(UNKNOWN if source.layers is None else f"{source.layers:,}", which.width, "muted", right=True)
    if which is _UNIQUE:
        known = source.layers and source.unique_layers is not None
        share = percent((source.unique_layers or 0) / (source.layers or 1)) if known else UNKNOWN
        return column(share, which.width, right=True)
    return _latency_cell(latency, which.width)


def _latency_cell(latency: KnownLatency | None, width: int) -> Span:
    if latency is not None and not latency.possible:
        return column("none", width, "warn", right=True)
    if latency is None or latency.sequential_ms is None:
        return column(UNKNOWN, width, "muted", right=True)
    if latency.predicted:
        return column(f"{PREDICTED}{milliseconds(latency.sequential_ms)}", width, "warn", right=True)
    if latency.measured < latency.layers:
        # A sum over part of a model would invite wrong comparisons.
        return column(f"{part_of(latency.measured, latency.layers)} run", width, "warn", right=True)
    return column(milliseconds(latency.sequential_ms), width, "strong", right=True)


def searched_text(source: ModelSource) -> str:
    """Return the name, task, number and path of a model."""
    number = f"table1:{source.table1_id}" if source.table1_id else ""
    # The folders above would match for all models in them.
    path = "/".join(source.path.parts[-2:])
    return f"{source.name} {source.task or ''} {number} {path}"


class ModelsPanel(ItemPanel["ModelSource"]):
    """The models of the library."""

    scope = actions.MODELS
    TITLE = "Models"
    REACHED_BY = "workbench.go_to_models"
    SEARCH_HINT = "name, task, table1:14 or path"
    HEADED = True
    ABOUT = (
        "The models in the library: the samples, and the files and folders that you add with {workbench.open_path}; "
        "{models.remove} removes an added one. 'unique' is the share of layers that differ from all others of the "
        "model: only these need to be run. ~ before an estimate: some of it is predicted. '60 % run' in place of an "
        "estimate is the share of the model that was measured so far."
    )

    @dataclass
    class Opened(Message):
        """The user wants to open a model."""

        source: ModelSource

    @dataclass
    class ShapesAsked(Message):
        """The user wants to set the shapes of a model's inputs."""

        source: ModelSource

    @dataclass
    class RemovalAsked(Message):
        """The user wants to remove a model from the list."""

        source: ModelSource

    def __init__(self) -> None:
        super().__init__(DrawnRows(self._row), id="models")
        self._marked: set[ModelId] = set()
        self._latencies: dict[ModelId, KnownLatency] = {}
        self.show_placeholder(line(Span("Reading the library.", "muted")))

    def heading(self, width: int) -> Line:
        return (Span(" "), *model_heading(width - 1))

    def show(self, sources: tuple[ModelSource, ...]) -> None:
        self._marked &= {id_of(source) for source in sources}
        if sources:
            self.show_placeholder(
                line(Span("No model matches the search.", "text")),
                Hint("{find.clear} shows all models again.", "muted"),
            )
        else:
            self.show_placeholder(line("No models."), Hint("{workbench.open_path} adds a file or a folder.", "muted"))
        self.show_items(sources)

    def searched(self, item: ModelSource) -> str:
        return searched_text(item)

    def show_counts(self) -> None:
        super().show_counts()
        self.border_subtitle = marks_text(len(self.marked), len(self.marked_in_view))

    def show_latency(self, source: ModelSource, latency: KnownLatency) -> None:
        self._latencies[id_of(source)] = latency
        self.rows.refresh()

    def forget_latencies(self) -> None:
        """Drop all latencies after a change of the settings."""
        self._latencies.clear()
        self.rows.refresh()

    def put_cursor_on(self, source: ModelSource) -> None:
        """Select a model; end a search that hides it."""
        if source in self.items and source not in self.found:
            self.search_line.end()
            self.search_changed()
        if source in self.found:
            self.select(source)

    @property
    def marked(self) -> tuple[ModelSource, ...]:
        """The marked models in the order of the library."""
        return tuple(source for source in self.items if id_of(source) in self._marked)

    @property
    def marked_in_view(self) -> tuple[ModelSource, ...]:
        """The marked models that match the search."""
        return tuple(source for source in self.found if id_of(source) in self._marked)

    def action_open(self) -> None:
        if self.selected is not None:
            self.post_message(self.Opened(self.selected))

    def action_give_shapes(self) -> None:
        if self.selected is not None:
            self.post_message(self.ShapesAsked(self.selected))

    def action_remove(self) -> None:
        if self.selected is not None:
            self.post_message(self.RemovalAsked(self.selected))

    def action_mark(self) -> None:
        if self.selected is not None:
            self._mark(self._marked ^ {id_of(self.selected)})
            self.rows.action_down()

    def action_mark_all(self) -> None:
        found = {id_of(source) for source in self.found}
        self._mark(self._marked - found if found <= self._marked else self._marked | found)

    def _mark(self, marked: set[ModelId]) -> None:
        self._marked = marked
        self.rows.refresh()
        self.show_counts()

    def _row(self, index: int, width: int) -> Line:
        source = self.found[index]
        key = id_of(source)
        return model_row(source, width, marked=key in self._marked, latency=self._latencies.get(key), words=self.words)
