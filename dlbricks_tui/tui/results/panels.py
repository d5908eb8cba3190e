"""The panels beside the table of results: one result, and its history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

from dlbricks_tui.answers.comparisons.named import PairKind
from dlbricks_tui.documents.layout import laid_out
from dlbricks_tui.documents.lines import Line, Span, line
from dlbricks_tui.documents.parts import Column
from dlbricks_tui.documents.results import KEY_DIGITS, cell, history_columns, result_parts, title_of
from dlbricks_tui.tui.marks.marks import ComparableRow
from dlbricks_tui.tui.results import actions
from dlbricks_tui.tui.results.columns import NO_RESULT
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import LineRows
from dlbricks_tui.tui.widgets.table import TablePanel
from dlbricks_tui.wording.numbers import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dlbricks_tui.store.columns import Summary
    from dlbricks_tui.tui.results.work import ResultRead


class RecordPanel(Panel):
    """The selected result."""

    scope = actions.RESULT
    TITLE = "Result"
    REACHED_BY = "results.go_to_result"
    ABOUT = (
        "One result: its brick or model, how it was measured, the distribution of its samples, and the conditions on "
        "the host."
    )

    def __init__(self) -> None:
        self._list = LineRows(self._lines)
        super().__init__(self._list, id="result")
        self._shown: ResultRead | None = None
        self._list.show_placeholder(line(Span("Select a result to read about it.", "muted")))

    @property
    def summary(self) -> Summary | None:
        """The summary of the result in view."""
        return self._shown.summary if self._shown else None

    def show(self, read: ResultRead | None) -> None:
        before, self._shown = self.summary, read
        if before is None or self.summary is None or before.id != self.summary.id:
            self._list.move_to(0)
        self._list.remake()

    def action_copy(self) -> None:
        self.copy(self.summary.key if self.summary else None, NO_RESULT)

    def _lines(self, width: int) -> Iterator[Line]:
        if (read := self._shown) is not None:
            yield from laid_out(result_parts(read.summary, read.result, read.provenance, read.layers), width)


def result_row(summary: Summary) -> ComparableRow:
    """Return a result as a row to compare."""
    name = summary.name or title_of(summary)[:KEY_DIGITS]
    return ComparableRow(PairKind.RESULT, summary.id, f"{name}, {cell('when', summary.when)}", summary.id)


class HistoryPanel(TablePanel["Summary"]):
    """The results of all runs for one brick or model in one way, the newest first."""

    scope = actions.HISTORY
    TITLE = "History"
    REACHED_BY = "results.go_to_history"
    ABOUT = (
        "The results of all runs for the brick in its context, or for the model, on the same system by the same "
        "runtime, the newest first: time, milliseconds, and the change since the previous run. A change in brackets "
        "may be due to sampling, because the intervals overlap."
    )

    @dataclass
    class Opened(Message):
        """The user wants to read about another measurement."""

        summary: Summary

    def __init__(self) -> None:
        super().__init__(id="history")
        self.rows.stands_for = lambda index: result_row(self.items[index]) if index < len(self.items) else None
        self.show_placeholder(line(Span("Select a result to see its history.", "muted")))

    def columns(self) -> tuple[Column[Summary], ...]:
        return history_columns(self.items)

    def show(self, history: tuple[Summary, ...]) -> None:
        """Show measurements that are given oldest first."""
        before = [it.id for it in self.items]
        self.show_items(history[::-1])
        if [it.id for it in self.items] != before:
            self.rows.cursor = 0

    def show_counts(self) -> None:
        self.show_title(f" {counted(len(self.items), 'run')}" if self.items else "")

    def action_open(self) -> None:
        if self.selected is not None:
            self.post_message(self.Opened(self.selected))

    def action_copy(self) -> None:
        self.copy(self.selected.id if self.selected else None, NO_RESULT)
