"""The panel that shows how one thing was measured over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on
from textual.message import Message

from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.lines import Line, Span, bar, column, figure, line
from dlbricks_tui.tui.screens.results.cells import NO_RESULT, cell
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import RowsView
from dlbricks_tui.wording.numbers import milliseconds, signed_percent

if TYPE_CHECKING:
    from dlbricks_tui.store.columns import Summary

_WHEN, _MS, _CHANGE = 16, 10, 11
_NARROWEST_BAR = 4


class HistoryRows(RowsView):
    """The measurements, newest first."""

    def __init__(self) -> None:
        super().__init__()
        self.history: tuple[Summary, ...] = ()
        self._longest_ms = 0.0

    @property
    def row_count(self) -> int:
        return len(self.history)

    @property
    def under_cursor(self) -> Summary | None:
        """The measurement that the cursor is on."""
        return self.history[self.cursor] if self.cursor < len(self.history) else None

    def show(self, history: tuple[Summary, ...]) -> None:
        """Lists measurements, of which the oldest comes first."""
        self.history = history[::-1]
        self._longest_ms = max((it.trimmed_mean_ms for it in history), default=0.0)
        self.cursor = 0
        self.rows_changed()

    def row(self, index: int, width: int) -> Line:
        summary = self.history[index]
        older = self.history[index + 1] if index + 1 < len(self.history) else None
        room = width - _WHEN - _MS - _CHANGE - 1
        roomy = room >= _NARROWEST_BAR and self._longest_ms > 0
        drawn = bar(summary.trimmed_mean_ms / self._longest_ms, room) if roomy else ()
        return (
            column(cell("when", summary.when), _WHEN, "muted" if summary.good else "warn"),
            figure(milliseconds(summary.trimmed_mean_ms), _MS, "strong"),
            _change(summary, older),
            Span(" "),
            *drawn,
        )


class HistoryPanel(Panel):
    """All that was measured of one thing in one way."""

    scope = Scope.HISTORY
    BINDINGS = bindings(Scope.HISTORY)
    TITLE = "History"
    REACHED_BY = "results.go_to_history"
    ABOUT = (
        "Everything that was measured of the brick in its context, or of the model, on the same system by the same "
        "runtime, the newest first: when, milliseconds, and the change since the time before. A change stands in "
        "brackets where the intervals overlap: sampling may explain it."
    )

    class Opened(Message):
        """The person wants to read about another measurement of the same."""

        def __init__(self, summary: Summary) -> None:
            super().__init__()
            self.summary = summary

    def __init__(self) -> None:
        self._list = HistoryRows()
        super().__init__(self._list, id="history")
        self._list.say(line(Span("Go to a result to see how it was before.", "muted")))

    def show(self, history: tuple[Summary, ...]) -> None:
        """Lists measurements; the same ones leave everything as it is."""
        if [it.id for it in history] != [it.id for it in reversed(self._list.history)]:
            self._list.show(history)
        self.show_title(f" {len(history):,}" if history else "")

    def on_click(self) -> None:
        self.take_focus()

    def action_open(self) -> None:
        if self._list.under_cursor is not None:
            self.post_message(self.Opened(self._list.under_cursor))

    def action_copy(self) -> None:
        self.copy(self._list.under_cursor.id if self._list.under_cursor else None, NO_RESULT)

    @on(RowsView.Rested)
    def _rested(self, event: RowsView.Rested) -> None:
        event.stop()


def _change(summary: Summary, older: Summary | None) -> Span:
    if older is None or not older.trimmed_mean_ms:
        return Span(" " * _CHANGE)
    change = summary.trimmed_mean_ms / older.trimmed_mean_ms - 1.0
    if summary.low_ms <= older.high_ms and older.low_ms <= summary.high_ms:
        return figure(f"({signed_percent(change)})", _CHANGE, "muted")
    return figure(signed_percent(change), _CHANGE, "bad" if change > 0 else "good")
