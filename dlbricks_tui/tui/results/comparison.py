"""The screen that compares two selections of results."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from dlbricks_tui.documents.lines import Line, Span, column, line, number_column, titles, wrapped_lines
from dlbricks_tui.store.contrast import Contrast, Paired, Verdict
from dlbricks_tui.tui.results import actions, work
from dlbricks_tui.tui.widgets.panel import ItemPanel, Orders, counts_text
from dlbricks_tui.tui.widgets.rows import DrawnRows
from dlbricks_tui.tui.widgets.screens import KeyBar, PanelledScreen
from dlbricks_tui.tui.widgets.text import TextLines
from dlbricks_tui.wording.contrasts import (
    NOTHING_IN_COMMON,
    SIGNS,
    left_out_in_words,
    p_words,
    ratio_words,
    verdicts_in_words,
)
from dlbricks_tui.wording.numbers import counted, milliseconds, signed_percent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual.app import ComposeResult

    from dlbricks_tui.tui.results.work import NamedSelection
    from dlbricks_tui.tui.session import SharedStore

_MS, _CHANGE, _P, _VERDICT = 10, 10, 8, 17
_STYLES = {Verdict.SLOWER: "bad", Verdict.FASTER: "good", Verdict.ALIKE: "muted", Verdict.TOO_FEW: "warn"}


class PairsPanel(ItemPanel[Paired]):
    """The bricks and models in both selections."""

    scope = actions.PAIRS
    TITLE = "In both"
    SEARCH_HINT = "operator, shape, model, or: slower"
    HEADED = True
    ABOUT = (
        "The newest good result of each brick in its context, and of each model, that both selections contain. p is "
        "the probability of samples this different if nothing has changed (Mann-Whitney test, corrected for the number"
        " of comparisons). 'slower' and 'faster' need p below 0.05 and a change of at least 1 %. Samples of one run "
        "share its conditions: compare several runs before you trust a change of a few percent."
    )
    ORDERS: ClassVar[Orders] = {
        "greatest difference": lambda it: (-abs(it.second.trimmed_mean_ms - it.first.trimmed_mean_ms), it.name),
        "greatest change": lambda it: (-abs(it.ratio - 1.0), it.name),
        "name": lambda it: (it.name, it.second.context),
    }

    def __init__(self) -> None:
        super().__init__(DrawnRows(self._row), id="pairs")
        self.show_placeholder(line(Span("Comparing.", "muted")))

    def heading(self, width: int) -> Line:
        right = titles(("A ms", _MS), ("B ms", _MS), ("change", _CHANGE), ("p", _P))
        return (Span(" "), column("brick or model", _name_width(width - 1), "muted"), *right, Span("  B is", "muted"))

    def show(self, pairs: tuple[Paired, ...]) -> None:
        self.show_placeholder(line("No pairs."))
        self.show_items(pairs)

    def searched(self, item: Paired) -> str:
        return f"{item.name} {item.second.context} {item.second.brick} {item.verdict.value}"

    def show_counts(self) -> None:
        self.show_title(f" {counts_text(len(self.found), len(self.items))}, by {self.order}")

    def _row(self, index: int, width: int) -> Line:
        pair = self.found[index]
        style = _STYLES[pair.verdict]
        return (
            column(pair.name, _name_width(width)),
            number_column(milliseconds(pair.first.trimmed_mean_ms), _MS),
            number_column(milliseconds(pair.second.trimmed_mean_ms), _MS),
            number_column(signed_percent(pair.ratio - 1.0), _CHANGE, style),
            number_column(p_words(pair.p_value), _P, "muted"),
            Span(f"  {SIGNS[pair.verdict]} {pair.verdict.value}", style),
        )


def _name_width(width: int) -> int:
    return max(8, width - 2 * _MS - _CHANGE - _P - _VERDICT - 2)


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
        self._found: Contrast | None = None
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
        compare = partial(work.compare, self._store, self._first.selection, self._second.selection)
        self.run_in_thread(compare, "compare", self._compared)

    def _compared(self, found: Contrast) -> None:
        self._found = found
        self._head.refresh(layout=True)
        self._pairs.show(found.pairs)

    def _head_lines(self, width: int) -> tuple[Line, ...]:
        return wrapped_lines(self._told(), width)

    def _told(self) -> Iterator[Line]:
        for letter, given in (("A", self._first), ("B", self._second)):
            count = counted(len(given.selection), "result")
            yield line(Span(f" {letter} ", "accent"), given.name, Span(f"  {count}", "muted"))
        found = self._found
        if found is None:
            yield line(Span("   Comparing.", "muted"))
            return
        if found.ratio is None:
            yield line(Span(f"   {NOTHING_IN_COMMON}", "warn"))
            return
        styles = ("muted", "strong", "muted", "strong", "muted")
        yield line(Span("   ", "muted"), *map(Span, ratio_words(found), styles))
        told = [Span(words, _STYLES[verdict]) for verdict, words in verdicts_in_words(found)]
        spans = [part for each in told for part in (each, Span(", ", "muted"))][:-1]
        yield line(Span("   "), *spans, Span(f"; {left_out_in_words(found)}", "muted"))
