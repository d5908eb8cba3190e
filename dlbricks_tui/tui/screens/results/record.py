"""The panel that tells all about one result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on

from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.lines import Line, Span, line
from dlbricks_tui.tui.screens.results.cells import NO_RESULT
from dlbricks_tui.tui.screens.results.record_lines import record_lines
from dlbricks_tui.tui.widgets.line_rows import LineRows
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import RowsView

if TYPE_CHECKING:
    from dlbricks_tui.store.columns import Summary
    from dlbricks_tui.tui.screens.results.errands import Studied


class RecordPanel(Panel):
    """The result that the cursor is on in the table, or in the history."""

    scope = Scope.RESULT
    BINDINGS = bindings(Scope.RESULT)
    TITLE = "Result"
    REACHED_BY = "results.go_to_result"
    ABOUT = (
        "One result: what it is of, how it was measured, how its samples are distributed, and under which conditions."
    )

    def __init__(self) -> None:
        self._list = LineRows(self._lines)
        super().__init__(self._list, id="result")
        self._shown: Studied | None = None
        self._list.say(line(Span("Go to a result to read about it.", "muted")))

    @property
    def summary(self) -> Summary | None:
        """Which result is shown."""
        return self._shown.summary if self._shown else None

    def show(self, studied: Studied | None) -> None:
        """Tells of a result, or of none."""
        before, self._shown = self.summary, studied
        if before is None or self.summary is None or before.id != self.summary.id:
            self._list.move_to(0)
        self._list.remake()

    def on_click(self) -> None:
        self.take_focus()

    def action_copy(self) -> None:
        self.copy(self.summary.key if self.summary else None, NO_RESULT)

    @on(RowsView.Rested)
    def _rested(self, event: RowsView.Rested) -> None:
        event.stop()

    def _lines(self, width: int) -> tuple[Line, ...]:
        return record_lines(self._shown.summary, self._shown.result, width) if self._shown else ()
