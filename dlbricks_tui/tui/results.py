"""The screen of all results: find, read, compare, exchange and delete them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

from textual import on

from dlbricks_tui.api import stored_results
from dlbricks_tui.api.open_models import ComparableRow, PairKind
from dlbricks_tui.api.session import WorkbenchSession
from dlbricks_tui.documents.lines import Line, Span, line
from dlbricks_tui.documents.results import QUESTION, results_answer
from dlbricks_tui.errors import UserError
from dlbricks_tui.tui import messages
from dlbricks_tui.tui.dialogs.notices import ask_which_marked
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import Hint, key, with_keys
from dlbricks_tui.tui.result_table import (
    DeleteScreen,
    ExportScreen,
    HistoryPanel,
    ImportScreen,
    RecordPanel,
    ResultsPanel,
    result_row,
)
from dlbricks_tui.tui.saving import show_message
from dlbricks_tui.tui.widgets.rows import TWO
from dlbricks_tui.tui.widgets.screens import AnswerScreen
from dlbricks_tui.wording.numbers import counted, names_of

if TYPE_CHECKING:
    from pathlib import Path

    from dlbricks_tui.api.sides import NamedSelection
    from dlbricks_tui.store.columns import Summary
    from dlbricks_tui.store.selections import Selection

_EVERYTHING = "all results"
_NOTHING = Hint(
    " Nothing was measured or imported yet: {results.leave} {workbench.start_run} measures a model.", "warn"
)


class ResultsScreen(AnswerScreen[None]):
    """Connects the panels with the worker threads."""

    scope = scopes.RESULTS
    CSS = """
    ResultsPanel { row-span: 2; }
    ResultsScreen.-medium .panels { grid-columns: 1fr 40; grid-rows: 3fr 2fr; }
    ResultsScreen.-wide .panels { grid-columns: 1fr 60; grid-rows: 3fr 2fr; }
    """
    WANTS_NEW_RESULTS = True
    ABOUT = (
        "Find results, read one with all its samples, and see its history. To compare two selections, find the first "
        "and {app.compare_marked}, then find the second and {app.compare_marked} again."
    )

    def __init__(self, session: WorkbenchSession) -> None:
        self._table = ResultsPanel()
        self._record = RecordPanel()
        self._history = HistoryPanel()
        super().__init__(self._table, self._record, self._history)
        self._session = session
        self._store = session.store
        self._data = session.data
        self._kept: NamedSelection | None = None
        # The id of the selected result, and an older one of its history that is read in its place.
        self._selected = ""
        self._older: Summary | None = None
        # The deleted selections, the latest last.
        self._undo: list[Selection] = []
        # What there is; None before the store was read, or without results.
        self._overview: stored_results.Overview | None = None
        self._has_looked = False
        # Why the store cannot be read.
        self._refusal = ""

    def question(self) -> str:
        return QUESTION

    def answer(self) -> Iterable[Line]:
        if self._refusal:
            yield line(Span(f" {self._refusal}", "warn"))
        elif self._overview is not None:
            yield line(Span(f" {results_answer(*self._overview)}", "strong"))
        elif self._has_looked:
            yield _NOTHING.line
        else:
            yield line(Span(" Reading the store.", "muted"))

    def state(self) -> Line:
        if self._kept is None:
            return ()
        count = f" ({counted(len(self._kept.selection), 'result')})"
        then = Hint("; find or mark others and press {app.compare_marked} to compare them with these", "muted").line
        return line(Span(" kept: ", "muted"), Span(self._kept.name, "mark"), Span(count, "muted"), *then)

    def on_screen_resume(self) -> None:
        # The screen looks by itself when it is opened first.
        if not self.is_working("find"):
            self.look()

    def look(self) -> None:
        self._find()
        self.run_in_thread(
            partial(stored_results.overview, self._store), "overview", self._overview_found, self._refused
        )

    def _overview_found(self, found: stored_results.Overview | None) -> None:
        if found != self._overview or not self._has_looked or self._refusal:
            self._overview, self._has_looked, self._refusal = found, True, ""
            self.head_changed()

    def _refused(self, reason: str) -> None:
        """Say why the store cannot be read: a box would be there again whenever it is closed."""
        self._refusal = reason
        self.head_changed()

    # Messages of panels, and results of work in threads

    @on(ResultsPanel.Asked)
    def _find(self) -> None:
        self.run_in_thread(
            partial(stored_results.find, self._store, self._table.result_query), "find", self._found, self._refused
        )

    def _found(self, found: stored_results.QueriedResults) -> None:
        self._table.show(found)
        if not found.selection:
            self._record.show_groups(())
            self._history.show(())

    @on(ResultsPanel.Selected)
    def _result_selected(self, event: ResultsPanel.Selected) -> None:
        (summary,) = event.result.summaries()
        if summary.id != self._selected:
            self._selected, self._older = summary.id, None
        # The older one stays where results are listed anew.
        if self._older is None:
            self.run_in_thread(
                partial(stored_results.read_result, self._store, event.result), "read", self._result_read
            )
        else:
            self.run_in_thread(partial(stored_results.read_again, self._store, self._older), "read", self._result_read)

    def _result_read(self, read: stored_results.ResultRead | None) -> None:
        if read is not None:
            self._record.show(read)
            self._history.show(read.history)

    def action_read_selected(self) -> None:
        if self._older is not None:
            self._older = None
            self._table.cursor_settled()
        if self._table.under_cursor is not None:
            self.go_to(self._record)

    def action_read_older(self) -> None:
        if self._history.selected is not None:
            self._older = self._history.selected
            read = partial(stored_results.read_again, self._store, self._older)
            self.run_in_thread(read, "read", self._result_read)
            self.go_to(self._record)

    def _changed(self, told: str, warning: bool = False) -> None:
        """Report a change of the store, and update everything that depends on it."""
        show_message(self.app, told, warning=warning)
        self.look()
        self.app.post_message(messages.ResultsStored())

    # Actions

    def action_delete(self) -> None:
        self._choose("delete", self._table.under_cursor, self._ask_to_delete)

    def action_undo_delete(self) -> None:
        if self._undo:
            self.run_in_thread(partial(self._restore, self._undo.pop()), then=self._restored)
        else:
            self.notify("Nothing was deleted in this session.")

    def _restore(self, deleted: Selection) -> frozenset[str]:
        try:
            return stored_results.restore(self._store, deleted)
        except UserError:
            # Such as on a full disk: it can be tried again.
            self._undo.append(deleted)
            raise

    def _restored(self, ids: frozenset[str]) -> None:
        self._table.mark_restored(ids)
        self._changed(f"{counted(len(ids), 'result')} restored.")

    def action_export(self) -> None:
        self._choose("export", self._table.shown, self._ask_where_to_export)

    def action_import_file(self) -> None:
        self.ask(ImportScreen(), self._import)

    def compare_marked(self) -> bool:
        marked = self._table.marked
        if self.focused is self._history.rows:
            return False
        if marked is not None and len(marked) == TWO:
            self.post_message(messages.ComparisonWanted(tuple(map(result_row, marked.summaries()))))
        else:
            then = self._keep if self._kept is None else partial(self._compare, self._kept)
            self._choose("compare", self._table.shown, then)
        return True

    def _choose(self, what: str, unmarked: Selection | None, then: Callable[[Selection], object]) -> None:
        """Call `then` with the marked results, or with the others if nothing is marked; say it if there are none."""
        marked, in_view = self._table.marked, self._table.marked_in_view
        if marked is not None and in_view is not None:
            ask_which_marked(self.app, "result", in_view, marked, then)
        elif unmarked:
            then(unmarked)
        else:
            self.notify(f"There is no result to {what}.")

    def _keep(self, chosen: Selection | None) -> None:
        """Keep one side of a comparison, until the other one is chosen."""
        self._kept = None if chosen is None else self._named(chosen)
        self.head_changed()

    def _compare(self, first: NamedSelection, second: Selection) -> None:
        both = first, self._named(second)
        rows = (ComparableRow(PairKind.SELECTION, it.name, it.name, it) for it in both)
        self._keep(None)
        self.post_message(messages.ComparisonWanted(tuple(rows)))

    def _named(self, chosen: Selection) -> NamedSelection:
        """Name a selection by its search or its marks."""
        from dlbricks_tui.api.sides import NamedSelection

        marked = f"{counted(len(chosen), 'marked result')}" if self._table.marked else ""
        return NamedSelection(marked or self._table.result_query.text or _EVERYTHING, chosen)

    def _ask_to_delete(self, chosen: Selection) -> None:
        def delete(_: bool) -> None:
            self.run_in_thread(partial(stored_results.delete, self._store, chosen), then=partial(self._deleted, chosen))

        self.ask(DeleteScreen(chosen, self._table.total), delete)

    def _ask_where_to_export(self, chosen: Selection) -> None:
        def export(path: Path) -> None:
            self.run_in_thread(
                partial(stored_results.export, self._store, chosen, path), then=partial(self._exported, path)
            )

        self.ask(ExportScreen(f"Export {counted(len(chosen), 'result')} to a file"), export)

    def _deleted(self, chosen: Selection, deleted: Selection) -> None:
        self._undo.append(deleted)
        self._table.unmark(chosen)
        self._table.mark_restored(frozenset())
        self._changed(f"{counted(len(deleted), 'result')} deleted; {key('results.undo_delete')} restores the results.")

    def _exported(self, path: Path, count: int) -> None:
        self.notify(f"{counted(count, 'result')} written to {path}")

    def _import(self, path: Path) -> None:
        self.notify(f"Reading {path.name}.")
        self.run_in_thread(partial(stored_results.import_file, self._store, path, self._data), then=self._imported)

    def _imported(self, told: stored_results.ImportTold) -> None:
        text = told.text
        if told.models:
            lists = with_keys("{results.leave} {workbench.show_systems} lists the systems")
            text += f" {lists}: select {told.system} to estimate {names_of(told.models)}."
        self._changed(text, told.is_warning)
