"""The panel of models: the library, searched as one types, with marks for the next run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on
from textual.message import Message

from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.key_words import Hint
from dlbricks_tui.tui.lines import Line, Span, line
from dlbricks_tui.tui.opened import ModelId, id_of
from dlbricks_tui.tui.widgets.models.entries import Entry, Standing, found, heading, row
from dlbricks_tui.tui.widgets.panel import Panel, marks_told
from dlbricks_tui.tui.widgets.rows import RowsView, place_of
from dlbricks_tui.tui.widgets.search_line import SearchLine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dlbricks_tui.models.library import ModelSource


class ModelRows(RowsView):
    """The models that the search leaves."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: tuple[ModelSource, ...] = ()
        self.marked: frozenset[ModelId] = frozenset()
        self.standings: Mapping[ModelId, Standing] = {}
        self.sought = ""

    @property
    def row_count(self) -> int:
        return len(self.shown)

    def row(self, index: int, width: int) -> Line:
        source = self.shown[index]
        key = id_of(source)
        return row(Entry(source, key in self.marked, self.standings.get(key)), width, self.sought)


class ModelsPanel(Panel):
    """The library."""

    scope = Scope.MODELS
    BINDINGS = bindings(Scope.MODELS)
    TITLE = "Models"
    REACHED_BY = "workbench.go_to_models"
    SEARCH_HINT = "name, task, table1:14 or path"
    HEADED = True
    ABOUT = (
        "The models at hand: the samples, and the files and folders that you add with {workbench.open_path}; "
        "{models.remove} takes one of yours out of the list. "
        "'unique' is the share of layers that differ from all others of the model: the rest need not be run. "
        "Where an estimate would stand, '60 % run' says how much of a model was measured so far."
    )

    class Opened(Message):
        """The person wants to see a model."""

        def __init__(self, source: ModelSource) -> None:
            super().__init__()
            self.source = source

    class ShapesAsked(Message):
        """The person wants to say the shapes of a model's inputs."""

        def __init__(self, source: ModelSource) -> None:
            super().__init__()
            self.source = source

    class RemovalAsked(Message):
        """The person wants a model out of the list."""

        def __init__(self, source: ModelSource) -> None:
            super().__init__()
            self.source = source

    class Marked(Message):
        """Other models than before are marked."""

        def __init__(self, sources: tuple[ModelSource, ...]) -> None:
            super().__init__()
            self.sources = sources

    def __init__(self) -> None:
        self._list = ModelRows()
        super().__init__(self._list, id="models")
        self._sources: tuple[ModelSource, ...] = ()
        self._standings: dict[ModelId, Standing] = {}
        self._list.say(line(Span("Reading the library.", "muted")))

    def heading(self, width: int) -> Line:
        return (Span(" "), *heading(width - 1))

    def show(self, sources: tuple[ModelSource, ...]) -> None:
        """Lists the models of the library."""
        self._sources = sources
        self._list.marked &= {id_of(source) for source in sources}
        self._find(self._list.sought)

    def show_standing(self, source: ModelSource, standing: Standing) -> None:
        """Says what is known of a model's latency."""
        self._standings[id_of(source)] = standing
        self._list.standings = self._standings
        self._list.refresh()

    def forget_standings(self) -> None:
        """Says nothing more of latencies: the settings have changed."""
        self._standings.clear()
        self._list.refresh()

    def put_cursor_on(self, source: ModelSource) -> None:
        """Show where in the list a model is; end a search that hides it."""
        if source in self._sources and source not in self._list.shown:
            self._find("")
            self.search_line.end()
        if source in self._list.shown:
            self._list.move_to(self._list.shown.index(source))

    @property
    def marked(self) -> tuple[ModelSource, ...]:
        """The marked models, in the order of the library."""
        return tuple(source for source in self._sources if id_of(source) in self._list.marked)

    @property
    def marked_in_view(self) -> tuple[ModelSource, ...]:
        """The marked models that the search leaves."""
        return tuple(source for source in self._list.shown if id_of(source) in self._list.marked)

    @property
    def under_cursor(self) -> ModelSource | None:
        """The model that the cursor is on."""
        return self._list.shown[self._list.cursor] if self._list.shown else None

    def on_search_line_sought(self, event: SearchLine.Sought) -> None:
        self._find(event.text)

    def on_click(self) -> None:
        self.take_focus()

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
        shown = {id_of(source) for source in self._list.shown}
        self._mark(self._list.marked - shown if shown <= self._list.marked else self._list.marked | shown)

    @on(RowsView.Rested)
    def _rested(self, event: RowsView.Rested) -> None:
        event.stop()

    def _mark(self, marked: frozenset[ModelId]) -> None:
        self._list.marked = marked
        self._list.refresh()
        self._entitle()
        self.post_message(self.Marked(self.marked))

    def _find(self, sought: str) -> None:
        here = self.under_cursor
        self._list.sought = sought
        self._list.shown = found(self._sources, sought)
        if self._sources:
            self._list.say(
                line(Span("No model is called so.", "text")),
                Hint("{find.clear} shows all models again.", "muted"),
            )
        else:
            self._list.say(
                line("No models."),
                Hint("{workbench.open_path} adds a file or a folder.", "muted"),
            )
        self._list.rows_changed()
        self._list.move_to(place_of(here, self._list.shown))
        self._entitle()

    def _entitle(self) -> None:
        shown, there = len(self._list.shown), len(self._sources)
        self.show_title(f" {there}" if shown == there else f" {shown} of {there}")
        self.border_subtitle = marks_told(len(self.marked), len(self.marked_in_view))
