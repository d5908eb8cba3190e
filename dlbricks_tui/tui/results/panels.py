"""The panels beside the table of results: one result, and two groups of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.message import Message

from dlbricks_tui.answers.comparisons.contrasts import ComparedPair
from dlbricks_tui.answers.pairs.compared import PairKind
from dlbricks_tui.documents.comparison import NOTHING_IN_COMMON, pair_columns, ratio_parts, selection_parts
from dlbricks_tui.documents.layout import laid_out
from dlbricks_tui.documents.lines import Line, Span, line
from dlbricks_tui.documents.parts import Column, Part, Sentence
from dlbricks_tui.documents.results import KEY_DIGITS, cell, history_columns, result_parts, title_of
from dlbricks_tui.tui.marks.marks import ComparableRow
from dlbricks_tui.tui.results import actions, work
from dlbricks_tui.tui.results.columns import NO_RESULT
from dlbricks_tui.tui.widgets.panel import Orders, Panel, counts_text
from dlbricks_tui.tui.widgets.rows import LineRows
from dlbricks_tui.tui.widgets.screens import KeyBar, PanelledScreen
from dlbricks_tui.tui.widgets.table import TablePanel
from dlbricks_tui.tui.widgets.text import TextLines
from dlbricks_tui.wording.numbers import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual.app import ComposeResult

    from dlbricks_tui.answers.comparisons.contrasts import ComparedResults, NamedSelection
    from dlbricks_tui.store.columns import Summary
    from dlbricks_tui.tui.results.work import ResultRead
    from dlbricks_tui.tui.session import SharedStore


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


class PairsPanel(TablePanel[ComparedPair]):
    """The bricks and models in both selections."""

    scope = actions.PAIRS
    TITLE = "In both"
    SEARCH_HINT = "operator, shape, model, or: slower"
    ABOUT = (
        "The newest good result of each brick in its context, and of each model, that both selections contain. p is "
        "the probability of samples this different if nothing has changed (Mann-Whitney test, corrected for the number"
        " of comparisons). 'slower' and 'faster' need p below 0.05 and a change of at least 1 %. Samples of one run "
        "share its conditions: compare several runs before you trust a change of a few percent."
    )
    ORDERS: ClassVar[Orders] = {
        "greatest difference": lambda it: (-abs(it.b_ms - it.a_ms), it.name),
        "greatest change": lambda it: (-abs(it.change), it.name),
        "name": lambda it: (it.name, it.context),
    }

    def __init__(self) -> None:
        super().__init__(id="pairs")
        self.show_placeholder(line(Span("Comparing.", "muted")))

    def columns(self) -> tuple[Column[ComparedPair], ...]:
        return pair_columns()

    def show(self, pairs: tuple[ComparedPair, ...]) -> None:
        self.show_placeholder(line("No pairs."))
        self.show_items(pairs)

    def searched(self, item: ComparedPair) -> str:
        return f"{item.name} {item.context} {item.brick} {item.verdict.value}"

    def show_counts(self) -> None:
        self.show_title(f" {counts_text(len(self.found), len(self.items))}, by {self.order}")


class ContrastScreen(PanelledScreen[None]):
    """Compares two selections in a thread."""

    scope = actions.CONTRAST
    CSS_PATH = "results.tcss"
    ABOUT = "A is the selection that was kept, B the one that was shown when you compared."

    def __init__(self, store: SharedStore, first: NamedSelection, second: NamedSelection) -> None:
        super().__init__()
        self._store = store
        self._first = first
        self._second = second
        self._found: ComparedResults | None = None
        self._head = TextLines(self._head_lines, classes="contrast-head")
        self._pairs = PairsPanel()

    def compose(self) -> ComposeResult:
        yield self._head
        yield self._pairs
        yield KeyBar()

    def on_mount(self) -> None:
        self._compare()

    def action_exchange(self) -> None:
        self._first, self._second = self._second, self._first
        self._compare()

    def _compare(self) -> None:
        self._found = None
        self._head.refresh(layout=True)
        compare = partial(work.compare, self._store, self._first, self._second)
        self.run_in_thread(compare, "compare", self._compared)

    def _compared(self, found: ComparedResults) -> None:
        self._found = found
        self._head.refresh(layout=True)
        self._pairs.show(found.pairs)

    def _head_lines(self, width: int) -> tuple[Line, ...]:
        return tuple((Span(" "), *each) for each in laid_out(self._told(), width - 1))

    def _told(self) -> Iterator[Part]:
        yield from selection_parts((self._first, self._second))
        if self._found is None:
            yield Sentence("Comparing.", "muted")
        elif self._found.ratio is None:
            yield Sentence(NOTHING_IN_COMMON, "warn")
        else:
            yield from ratio_parts(self._found)
