"""The panel of models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.lines import Line, Span, column, cut, highlighted, line
from dlbricks_tui.tui.open_model import ModelId, id_of
from dlbricks_tui.tui.widgets.panel import Panel, marks_text
from dlbricks_tui.tui.widgets.rows import ItemRows, place_of
from dlbricks_tui.tui.widgets.search_line import SearchLine
from dlbricks_tui.tui.workbench import actions
from dlbricks_tui.wording.numbers import milliseconds, part_of, percent

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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


@dataclass(frozen=True, slots=True)
class Entry:
    """A model in the list."""

    source: ModelSource
    marked: bool = False
    latency: KnownLatency | None = None


@dataclass(frozen=True, slots=True)
class _Column:
    title: str
    width: int


# The most important first: the last ones are dropped when the panel is narrow.
_ESTIMATE = _Column("est. ms", 8)
_UNIQUE = _Column("unique", 6)
_LAYERS = _Column("layers", 6)
_TASK = _Column("task", 4)
_BY_WORTH = (_ESTIMATE, _UNIQUE, _LAYERS, _TASK)
_IN_ORDER = (_TASK, _LAYERS, _UNIQUE, _ESTIMATE)


def known_latency(system_estimate: SystemEstimate) -> KnownLatency:
    """Return an estimate as the list shows it."""
    coverage = system_estimate.estimate.coverage
    return KnownLatency(
        system_estimate.sequential_ms, coverage.measured, coverage.layers, not system_estimate.estimate.obstacle
    )


def matching(sources: Iterable[ModelSource], search_text: str) -> tuple[ModelSource, ...]:
    """Return the models whose name, task, number or path contain every word."""
    words = search_text.casefold().split()
    return tuple(source for source in sources if all(word in _searched(source) for word in words))


def model_row(entry: Entry, width: int, search_text: str = "") -> Line:
    """Return a model as a row."""
    columns = _columns(width)
    name_width = width - 2 - sum(each.width + _GAP for each in columns)
    name = cut(_short(entry.source.name), name_width)
    cells: list[Span] = []
    for each in columns:
        cells += [Span(" " * _GAP), _cell(entry, each)]
    mark = Span(f"{MARK} " if entry.marked else "  ", "mark")
    return (mark, *highlighted(name, search_text.split()), Span(" " * (name_width - len(name))), *cells)


def model_heading(width: int) -> Line:
    """Return the titles of the columns."""
    columns = _columns(width)
    name_width = width - 2 - sum(each.width + _GAP for each in columns)
    titles = [Span("  " + cut("model", name_width).ljust(name_width), "heading")]
    for each in columns:
        titles += [Span(" " * _GAP), column(each.title, each.width, "heading", right=each is not _TASK)]
    return tuple(titles)


def _short(name: str) -> str:
    # Names of Table 1 differ only after these words.
    return name.replace(" Trained on ", " · ")


def _columns(width: int) -> tuple[_Column, ...]:
    room = width - 2 - _LEAST_NAME
    kept = set[str]()
    for each in _BY_WORTH:
        if each.width + _GAP > room:
            break
        kept.add(each.title)
        room -= each.width + _GAP
    return tuple(each for each in _IN_ORDER if each.title in kept)


def _cell(entry: Entry, which: _Column) -> Span:
    source = entry.source
    if which is _TASK:
        return column(source.task or "", which.width, "muted")
    if which is _LAYERS:
        return column(UNKNOWN if source.layers is None else f"{source.layers:,}", which.width, "muted", right=True)
    if which is _UNIQUE:
        known = source.layers and source.unique_layers is not None
        share = percent((source.unique_layers or 0) / (source.layers or 1)) if known else UNKNOWN
        return column(share, which.width, right=True)
    return _latency_cell(entry.latency, which.width)


def _latency_cell(latency: KnownLatency | None, width: int) -> Span:
    if latency is not None and not latency.possible:
        return column("none", width, "warn", right=True)
    if latency is None or latency.sequential_ms is None:
        return column(UNKNOWN, width, "muted", right=True)
    if latency.measured < latency.layers:
        # A sum over part of a model would invite wrong comparisons.
        return column(f"{part_of(latency.measured, latency.layers)} run", width, "warn", right=True)
    return column(milliseconds(latency.sequential_ms), width, "strong", right=True)


def _searched(source: ModelSource) -> str:
    number = f"table1:{source.table1_id}" if source.table1_id else ""
    # The folders above would match for all models in them.
    path = "/".join(source.path.parts[-2:])
    return f"{source.name} {source.task or ''} {number} {path}".casefold()


class ModelRows(ItemRows["ModelSource"]):
    """The models that match the search."""

    def __init__(self) -> None:
        super().__init__()
        self.marked: frozenset[ModelId] = frozenset()
        self.latencies: Mapping[ModelId, KnownLatency] = {}
        self.search_text = ""

    def row(self, index: int, width: int) -> Line:
        source = self.items[index]
        key = id_of(source)
        return model_row(Entry(source, key in self.marked, self.latencies.get(key)), width, self.search_text)


class ModelsPanel(Panel):
    """The models of the library."""

    scope = actions.MODELS
    TITLE = "Models"
    REACHED_BY = "workbench.go_to_models"
    SEARCH_HINT = "name, task, table1:14 or path"
    HEADED = True
    ABOUT = (
        "The models in the library: the samples, and the files and folders that you add with {workbench.open_path}; "
        "{models.remove} removes an added one. 'unique' is the share of layers that differ from all others of the "
        "model: only these need to be run. '60 % run' in place of an estimate is the share of the model that was "
        "measured so far."
    )

    class Opened(Message):
        """The user wants to open a model."""

        def __init__(self, source: ModelSource) -> None:
            super().__init__()
            self.source = source

    class ShapesAsked(Message):
        """The user wants to set the shapes of a model's inputs."""

        def __init__(self, source: ModelSource) -> None:
            super().__init__()
            self.source = source

    class RemovalAsked(Message):
        """The user wants to remove a model from the list."""

        def __init__(self, source: ModelSource) -> None:
            super().__init__()
            self.source = source

    class Marked(Message):
        """The marks have changed."""

        def __init__(self, sources: tuple[ModelSource, ...]) -> None:
            super().__init__()
            self.sources = sources

    def __init__(self) -> None:
        self._list = ModelRows()
        super().__init__(self._list, id="models")
        self._sources: tuple[ModelSource, ...] = ()
        self._latencies: dict[ModelId, KnownLatency] = {}
        self._list.show_placeholder(line(Span("Reading the library.", "muted")))

    def heading(self, width: int) -> Line:
        return (Span(" "), *model_heading(width - 1))

    def show(self, sources: tuple[ModelSource, ...]) -> None:
        self._sources = sources
        self._list.marked &= {id_of(source) for source in sources}
        self._find(self._list.search_text)

    def show_latency(self, source: ModelSource, latency: KnownLatency) -> None:
        self._latencies[id_of(source)] = latency
        self._list.latencies = self._latencies
        self._list.refresh()

    def forget_latencies(self) -> None:
        """Drop all latencies after a change of the settings."""
        self._latencies.clear()
        self._list.refresh()

    def put_cursor_on(self, source: ModelSource) -> None:
        """Select a model; end a search that hides it."""
        if source in self._sources and source not in self._list.items:
            self._find("")
            self.search_line.end()
        if source in self._list.items:
            self._list.move_to(self._list.items.index(source))

    @property
    def marked(self) -> tuple[ModelSource, ...]:
        """The marked models in the order of the library."""
        return tuple(source for source in self._sources if id_of(source) in self._list.marked)

    @property
    def marked_in_view(self) -> tuple[ModelSource, ...]:
        """The marked models that match the search."""
        return tuple(source for source in self._list.items if id_of(source) in self._list.marked)

    @property
    def under_cursor(self) -> ModelSource | None:
        """The selected model."""
        return self._list.items[self._list.cursor] if self._list.items else None

    def on_search_line_text_changed(self, event: SearchLine.TextChanged) -> None:
        self._find(event.text)

    def action_open(self) -> None:
        if self.under_cursor is not None:
            self.post_message(self.Opened(self.under_cursor))

    def action_give_shapes(self) -> None:
        if self.under_cursor is not None:
            self.post_message(self.ShapesAsked(self.under_cursor))

    def action_remove(self) -> None:
        if self.under_cursor is not None:
            self.post_message(self.RemovalAsked(self.under_cursor))

    def action_mark(self) -> None:
        if self.under_cursor is not None:
            self._mark(self._list.marked ^ {id_of(self.under_cursor)})
            self._list.action_down()

    def action_mark_all(self) -> None:
        shown = {id_of(source) for source in self._list.items}
        self._mark(self._list.marked - shown if shown <= self._list.marked else self._list.marked | shown)

    def _mark(self, marked: frozenset[ModelId]) -> None:
        self._list.marked = marked
        self._list.refresh()
        self._show_counts()
        self.post_message(self.Marked(self.marked))

    def _find(self, search_text: str) -> None:
        here = self.under_cursor
        self._list.search_text = search_text
        self._list.items = matching(self._sources, search_text)
        if self._sources:
            self._list.show_placeholder(
                line(Span("No model matches the search.", "text")),
                Hint("{find.clear} shows all models again.", "muted"),
            )
        else:
            self._list.show_placeholder(
                line("No models."),
                Hint("{workbench.open_path} adds a file or a folder.", "muted"),
            )
        self._list.rows_changed()
        self._list.move_to(place_of(here, self._list.items))
        self._show_counts()

    def _show_counts(self) -> None:
        shown, there = len(self._list.items), len(self._sources)
        self.show_title(f" {there}" if shown == there else f" {shown} of {there}")
        self.border_subtitle = marks_text(len(self.marked), len(self.marked_in_view))
