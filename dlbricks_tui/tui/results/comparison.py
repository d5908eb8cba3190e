"""The screen that compares two selections of results."""

from __future__ import annotations

from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

from dlbricks_tui.store.contrast import Contrast, Paired, Verdict
from dlbricks_tui.tui.lines import Line, Span, column, contains_all, line, number_column, wrapped
from dlbricks_tui.tui.results import actions, work
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import ItemRows
from dlbricks_tui.tui.widgets.screens import KeyBar, PanelledScreen
from dlbricks_tui.tui.widgets.text import TextLines
from dlbricks_tui.wording.numbers import counted, milliseconds, signed_percent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from textual.app import ComposeResult

    from dlbricks_tui.tui.results.work import NamedSelection
    from dlbricks_tui.tui.session import SharedStore
    from dlbricks_tui.tui.widgets.search_line import SearchLine

_MS, _CHANGE, _P, _VERDICT = 10, 10, 8, 17
_SIGNS = {Verdict.SLOWER: "+", Verdict.FASTER: "-", Verdict.ALIKE: "=", Verdict.TOO_FEW: "?"}
_STYLES = {Verdict.SLOWER: "bad", Verdict.FASTER: "good", Verdict.ALIKE: "muted", Verdict.TOO_FEW: "warn"}
_LEAST_P = 0.001


def pair_heading(width: int) -> Line:
    name = _name_width(width)
    texts = (("A ms", _MS), ("B ms", _MS), ("change", _CHANGE), ("p", _P))
    right = [column(text, wide, "muted", right=True) for text, wide in texts]
    return (column("brick or model", name, "muted"), *right, Span("  B is", "muted"))


def pair_row(pair: Paired, width: int) -> Line:
    """Return a pair of results as a row."""
    verdict = pair.verdict
    style = _STYLES[verdict]
    return (
        column(pair.name, _name_width(width)),
        number_column(milliseconds(pair.first.trimmed_mean_ms), _MS),
        number_column(milliseconds(pair.second.trimmed_mean_ms), _MS),
        number_column(signed_percent(pair.ratio - 1.0), _CHANGE, style),
        number_column(_p_text(pair.p_value), _P, "muted"),
        Span(f"  {_SIGNS[verdict]} {verdict.value}", style),
    )


def head_lines(found: Contrast | None, first: str, second: str, count_first: int, count_second: int) -> Iterator[Line]:
    """Yield the two selections and the summary of the comparison."""
    for letter, text, count in (("A", first, count_first), ("B", second, count_second)):
        yield line(Span(f" {letter} ", "accent"), text, Span(f"  {counted(count, 'result')}", "muted"))
    if found is None:
        yield line(Span("   Comparing.", "muted"))
        return
    if found.ratio is None:
        yield line(Span("   They have no brick in the same context and no model in common.", "warn"))
        return
    first_ms, second_ms = found.total_ms
    yield line(
        Span("   B takes ", "muted"),
        Span(f"{found.ratio:.3f}", "strong"),
        Span(f" times as long (95 % {found.low:.3f} to {found.high:.3f}, geometric mean of ", "muted"),
        Span(f"{len(found.pairs):,}", "strong"),
        Span(f"); together {milliseconds(first_ms)} and {milliseconds(second_ms)} ms", "muted"),
    )
    told = [
        Span(f"{found.count(verdict):,} {verdict.value}", _STYLES[verdict])
        for verdict in Verdict
        if found.count(verdict)
    ]
    alone = f"; only in A {found.only_first:,}, only in B {found.only_second:,}"
    spans = [part for each in told for part in (each, Span(", ", "muted"))][:-1]
    yield line(Span("   "), *spans, Span(alone, "muted"))


def _name_width(width: int) -> int:
    return max(8, width - 2 * _MS - _CHANGE - _P - _VERDICT - 2)


def _p_text(p_value: float | None) -> str:
    if p_value is None:
        return "-"
    return f"<{_LEAST_P:g}" if p_value < _LEAST_P else f"{p_value:.3f}"


class PairOrder(Enum):
    """The orders of the pairs."""

    DIFFERENCE = "greatest difference"
    CHANGE = "greatest change"
    NAME = "name"


_SORTS: dict[PairOrder, Callable[[Paired], tuple[object, ...]]] = {
    PairOrder.DIFFERENCE: lambda it: (-abs(it.second.trimmed_mean_ms - it.first.trimmed_mean_ms), it.name),
    PairOrder.CHANGE: lambda it: (-abs(it.ratio - 1.0), it.name),
    PairOrder.NAME: lambda it: (it.name, it.second.context),
}


class PairRows(ItemRows[Paired]):
    """The pairs that match the search."""

    def row(self, index: int, width: int) -> Line:
        return pair_row(self.items[index], width)


class PairsPanel(Panel):
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

    def __init__(self) -> None:
        self._list = PairRows()
        super().__init__(self._list, id="pairs")
        self._pairs: tuple[Paired, ...] = ()
        self._order = PairOrder.DIFFERENCE
        self._search_text: tuple[str, ...] = ()
        self._list.show_placeholder(line(Span("Comparing.", "muted")))

    def heading(self, width: int) -> Line:
        return (Span(" "), *pair_heading(width - 1))

    def show(self, pairs: tuple[Paired, ...]) -> None:
        self._pairs = pairs
        self._list.show_placeholder(line("No pairs."))
        self._find()

    def on_search_line_text_changed(self, event: SearchLine.TextChanged) -> None:
        self._search_text = tuple(event.text.casefold().split())
        self._find()

    def action_sort(self) -> None:
        orders = list(PairOrder)
        self._order = orders[(orders.index(self._order) + 1) % len(orders)]
        self._find()

    def _find(self) -> None:
        fitting = [pair for pair in self._pairs if _matches(pair, self._search_text)]
        self._list.items = tuple(sorted(fitting, key=_SORTS[self._order]))
        self._list.cursor = 0
        self._list.rows_changed()
        of = "" if len(fitting) == len(self._pairs) else f" of {len(self._pairs):,}"
        self.show_title(f" {len(fitting):,}{of}, by {self._order.value}")


class ContrastScreen(PanelledScreen[None]):
    """Compares two selections in a thread."""

    scope = actions.CONTRAST
    CSS_PATH = "results.tcss"
    AUTO_FOCUS = "#pairs RowsView"
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
        self.make_current(self._pairs)
        self._compare()

    def action_exchange(self) -> None:
        self._first, self._second = self._second, self._first
        self._compare()

    def action_leave(self) -> None:
        self.dismiss(None)

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
        first, second = self._first, self._second
        counts = len(first.selection), len(second.selection)
        made = head_lines(self._found, first.name, second.name, *counts)
        return tuple(each for long in made for each in wrapped(long, width))


def _matches(pair: Paired, words: tuple[str, ...]) -> bool:
    return contains_all(f"{pair.name} {pair.second.context} {pair.second.brick} {pair.verdict.value}", words)
