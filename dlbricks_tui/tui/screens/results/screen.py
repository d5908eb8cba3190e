"""Everything that was measured: to find, read, compare, hand on and delete."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.containers import Container

from dlbricks_tui.tui import messages
from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.keymap import key
from dlbricks_tui.tui.lines import Line, Span, line
from dlbricks_tui.tui.screens.panelled import PanelledScreen
from dlbricks_tui.tui.screens.questions import ask_which_marked
from dlbricks_tui.tui.screens.results import errands
from dlbricks_tui.tui.screens.results.contrast import ContrastScreen
from dlbricks_tui.tui.screens.results.errands import ResultsErrands
from dlbricks_tui.tui.screens.results.history import HistoryPanel
from dlbricks_tui.tui.screens.results.kept import Kept
from dlbricks_tui.tui.screens.results.record import RecordPanel
from dlbricks_tui.tui.screens.results.table import ResultsPanel
from dlbricks_tui.tui.widgets.key_bar import KeyBar
from dlbricks_tui.tui.widgets.said import Said
from dlbricks_tui.wording.numbers import counted

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from textual.app import ComposeResult

    from dlbricks_tui.store.queries import Selection
    from dlbricks_tui.tui.session import Session

_EVERYTHING = "all results"


class ResultsScreen(PanelledScreen[None]):
    """Puts together what the panels say and what threads answer."""

    scope: ClassVar[Scope] = Scope.RESULTS
    BINDINGS = bindings(Scope.RESULTS)
    AUTO_FOCUS = "#result-table RowsView"
    HEARS_OF_RESULTS = True
    ABOUT = (
        "Find results, read one with all its samples, see how it was before. To compare two selections, find the "
        "first and keep it, then find the second and compare."
    )

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session = session
        self._errands = ResultsErrands(session.store, self.post_message)
        self._kept: Kept | None = None
        # What was deleted here, the latest last.
        self._undo: list[Selection] = []
        self._table = ResultsPanel()
        self._record = RecordPanel()
        self._history = HistoryPanel()
        self._foot = Said(self._foot_lines, classes="results-kept")

    def compose(self) -> ComposeResult:
        with Container(id="result-panels"):
            yield self._table
            yield self._record
            yield self._history
        yield self._foot
        yield KeyBar()

    def on_mount(self) -> None:
        self.make_current(self._table)
        self._foot.display = False

    def on_screen_resume(self) -> None:
        self._find()

    # What panels say, and threads answer

    @on(ResultsPanel.Asked)
    @on(messages.ResultsGrew)
    def _find(self) -> None:
        self.ask(partial(self._errands.find, self._table.question), "find")

    @on(errands.Found)
    def _found(self, event: errands.Found) -> None:
        self._table.show(event)
        if not event.selection:
            self._record.show(None)
            self._history.show(())

    @on(ResultsPanel.Rested)
    def _rested(self, event: ResultsPanel.Rested) -> None:
        self.ask(partial(self._errands.study, event.result), "study")

    @on(errands.Studied)
    def _studied(self, event: errands.Studied) -> None:
        self._record.show(event)
        self._history.show(event.history)

    @on(ResultsPanel.Opened)
    def _opened(self) -> None:
        self.go_to(self._record)

    @on(HistoryPanel.Opened)
    def _older_opened(self, event: HistoryPanel.Opened) -> None:
        self.ask(partial(self._errands.study_again, event.summary), "study")
        self.go_to(self._record)

    @on(ResultsPanel.ColumnsAsked)
    def _columns_asked(self, event: ResultsPanel.ColumnsAsked) -> None:
        from dlbricks_tui.tui.screens.results.columns import ColumnsScreen

        self.app.push_screen(ColumnsScreen(event.shown), self._columns_chosen)

    def _columns_chosen(self, columns: tuple[str, ...] | None) -> None:
        if columns is not None:
            self._table.show_columns(columns)

    @on(errands.Deleted)
    def _deleted(self, event: errands.Deleted) -> None:
        self._undo.append(event.selection)
        self._table.unmark(event.selection)
        self.notify(
            f"{counted(event.count, 'result')} deleted; {key('results.undo_delete')} brings back what you deleted."
        )
        self._changed()

    @on(errands.Restored)
    def _restored(self, event: errands.Restored) -> None:
        self.notify(f"{counted(event.count, 'result')} brought back.")
        self._changed()

    @on(errands.Exported)
    def _exported(self, event: errands.Exported) -> None:
        self.notify(f"{counted(event.count, 'result')} written to {event.path}", markup=False)

    @on(errands.Imported)
    def _imported(self, event: errands.Imported) -> None:
        report = event.report
        told = f"{report.new:,} records of {event.path.name} are new, {report.known:,} were known."
        if report.conflicts:
            told += f" {len(report.conflicts):,} say something else than those here; both are kept."
        if report.refused:
            told += f" {len(report.refused):,} cannot be read: {report.refused[0]}"
        self.notify(told, severity="warning" if report.refused else "information", markup=False)
        self._changed()

    def _changed(self) -> None:
        """Lets everybody know that the store holds something else than before."""
        self._find()
        self.app.post_message(messages.ResultsStored())

    # What the person does

    def action_delete(self) -> None:
        self._choose(self._table.under_cursor, self._ask_to_delete)

    def action_undo_delete(self) -> None:
        if self._undo:
            self.ask(partial(self._errands.restore, self._undo.pop()), "change")
        else:
            self.notify("You have deleted nothing since dlbricks was opened.")

    def action_export(self) -> None:
        self._choose(self._table.shown, self._ask_where_to_export)

    def action_import_file(self) -> None:
        from dlbricks_tui.tui.screens.results.files import ImportScreen

        self.app.push_screen(ImportScreen(), self._import)

    def action_keep(self) -> None:
        self._choose(self._table.shown, self._keep)

    def action_compare(self) -> None:
        if self._kept is None or not self._table.shown:
            kept_by = key("results.keep")
            self.notify(f"Find the results to compare with and keep them with {kept_by}; then find others and compare.")
        else:
            self._choose(self._table.shown, partial(self._compare, self._kept))

    def action_go_to_results(self) -> None:
        self.go_to(self._table)

    def action_go_to_result(self) -> None:
        self.go_to(self._record)

    def action_go_to_history(self) -> None:
        self.go_to(self._history)

    def action_leave(self) -> None:
        self.app.pop_screen()

    def _choose(self, unmarked: Selection | None, then: Callable[[Selection], object]) -> None:
        """Hands on the marked results; where nothing is marked, the others, if there are any."""
        marked, in_view = self._table.marked, self._table.marked_in_view
        if marked is not None and in_view is not None:
            ask_which_marked(self.app, "result", in_view, marked, then)
        elif unmarked:
            then(unmarked)

    def _keep(self, chosen: Selection) -> None:
        self._kept = self._called(chosen)
        self._foot.display = True
        self._foot.refresh()

    def _compare(self, first: Kept, second: Selection) -> None:
        self.app.push_screen(ContrastScreen(self._session.store, first, self._called(second)))

    def _called(self, chosen: Selection) -> Kept:
        """Results with the name that a comparison shows."""
        marked = f"{counted(len(chosen), 'marked result')}" if self._table.marked else ""
        return Kept(chosen, marked or self._table.question.text or _EVERYTHING)

    def _ask_to_delete(self, chosen: Selection) -> None:
        from dlbricks_tui.tui.screens.results.deleting import DeleteScreen

        self.app.push_screen(DeleteScreen(chosen, self._table.total), partial(self._delete, chosen))

    def _ask_where_to_export(self, chosen: Selection) -> None:
        from dlbricks_tui.tui.screens.results.files import ExportScreen

        self.app.push_screen(ExportScreen(len(chosen)), partial(self._export, chosen))

    def _delete(self, chosen: Selection, sure: bool | None) -> None:
        if sure:
            self.ask(partial(self._errands.delete, chosen), "change")

    def _export(self, chosen: Selection, path: Path | None) -> None:
        if path is not None:
            self.ask(partial(self._errands.export, chosen, path), "change")

    def _import(self, path: Path | None) -> None:
        if path is not None:
            self.notify(f"Reading {path.name}.", markup=False)
            self.ask(partial(self._errands.import_from, path), "change")

    def _foot_lines(self, width: int) -> tuple[Line, ...]:
        if self._kept is None:
            return ()
        count = f" ({counted(len(self._kept.selection), 'result')})"
        return (line(Span(" to compare with: ", "muted"), Span(self._kept.called, "mark"), Span(count, "muted")),)
