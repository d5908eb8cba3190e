"""Two selections of results, compared."""

from __future__ import annotations

from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on

from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.lines import Line, Span, line, wrapped
from dlbricks_tui.tui.screens.panelled import PanelledScreen
from dlbricks_tui.tui.screens.results.contrast_lines import head_lines, heading, row
from dlbricks_tui.tui.screens.results.errands import Compared, ResultsErrands
from dlbricks_tui.tui.widgets.key_bar import KeyBar
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import RowsView
from dlbricks_tui.tui.widgets.said import Said

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import ComposeResult

    from dlbricks_tui.store.contrast import Contrast, Paired
    from dlbricks_tui.tui.screens.results.kept import Kept
    from dlbricks_tui.tui.shared_store import SharedStore
    from dlbricks_tui.tui.widgets.search_line import SearchLine


class PairOrder(Enum):
    """What stands at the top."""

    DIFFERENCE = "greatest difference"
    CHANGE = "greatest change"
    NAME = "name"


_SORTS: dict[PairOrder, Callable[[Paired], tuple[object, ...]]] = {
    PairOrder.DIFFERENCE: lambda it: (-abs(it.second.trimmed_mean_ms - it.first.trimmed_mean_ms), it.name),
    PairOrder.CHANGE: lambda it: (-abs(it.ratio - 1.0), it.name),
    PairOrder.NAME: lambda it: (it.name, it.second.context),
}


class PairRows(RowsView):
    """The pairs that the search leaves."""

    def __init__(self) -> None:
        super().__init__()
        self.pairs: tuple[Paired, ...] = ()

    @property
    def row_count(self) -> int:
        return len(self.pairs)

    def row(self, index: int, width: int) -> Line:
        return row(self.pairs[index], width)


class PairsPanel(Panel):
    """What both selections have."""

    scope = Scope.PAIRS
    BINDINGS = bindings(Scope.PAIRS)
    TITLE = "In both"
    SEARCH_HINT = "operator, shape, model, or: slower"
    HEADED = True
    ABOUT = (
        "The newest good result of each brick in its context, and of each model, that both selections have. p says how "
        "likely such different samples are if nothing differs (Mann and Whitney's test, raised for how many are "
        "compared at once). 'slower' and 'faster' need a p below 0.05 and a change of 1 % at least. Samples of one run "
        "share what is peculiar to it: compare several runs before you trust a change of a few percent."
    )

    def __init__(self) -> None:
        self._list = PairRows()
        super().__init__(self._list, id="pairs")
        self._pairs: tuple[Paired, ...] = ()
        self._order = PairOrder.DIFFERENCE
        self._sought: tuple[str, ...] = ()
        self._list.say(line(Span("Comparing.", "muted")))

    def heading(self, width: int) -> Line:
        return (Span(" "), *heading(width - 1))

    def show(self, pairs: tuple[Paired, ...]) -> None:
        """Lists the pairs."""
        self._pairs = pairs
        self._list.say(line("Nothing to list."))
        self._find()

    def on_search_line_sought(self, event: SearchLine.Sought) -> None:
        self._sought = tuple(event.text.casefold().split())
        self._find()

    def on_click(self) -> None:
        self.take_focus()

    def action_sort(self) -> None:
        orders = list(PairOrder)
        self._order = orders[(orders.index(self._order) + 1) % len(orders)]
        self._find()

    @on(RowsView.Rested)
    def _rested(self, event: RowsView.Rested) -> None:
        event.stop()

    def _find(self) -> None:
        fitting = [pair for pair in self._pairs if _fits(pair, self._sought)]
        self._list.pairs = tuple(sorted(fitting, key=_SORTS[self._order]))
        self._list.cursor = 0
        self._list.rows_changed()
        of = "" if len(fitting) == len(self._pairs) else f" of {len(self._pairs):,}"
        self.show_title(f" {len(fitting):,}{of}, by {self._order.value}")


class ContrastScreen(PanelledScreen[None]):
    """Compares when it is opened."""

    scope: ClassVar[Scope] = Scope.CONTRAST
    BINDINGS = bindings(Scope.CONTRAST)
    AUTO_FOCUS = "#pairs RowsView"
    ABOUT = "A is the selection that was kept, B the one that was shown when you compared."

    def __init__(self, store: SharedStore, first: Kept, second: Kept) -> None:
        super().__init__()
        self._errands = ResultsErrands(store, self.post_message)
        self._first = first
        self._second = second
        self._found: Contrast | None = None
        self._head = Said(self._head_lines, classes="contrast-head")
        self._pairs = PairsPanel()

    def compose(self) -> ComposeResult:
        yield self._head
        yield self._pairs
        yield KeyBar()

    def on_mount(self) -> None:
        self.make_current(self._pairs)
        self._compare()

    @on(Compared)
    def _compared(self, event: Compared) -> None:
        self._found = event.found
        self._head.refresh(layout=True)
        self._pairs.show(event.found.pairs)

    def action_exchange(self) -> None:
        self._first, self._second = self._second, self._first
        self._compare()

    def action_leave(self) -> None:
        self.dismiss(None)

    def _compare(self) -> None:
        self._found = None
        self._head.refresh(layout=True)
        self.ask(partial(self._errands.compare, self._first.selection, self._second.selection), "compare")

    def _head_lines(self, width: int) -> tuple[Line, ...]:
        first, second = self._first, self._second
        counts = len(first.selection), len(second.selection)
        made = head_lines(self._found, first.called, second.called, *counts)
        return tuple(each for long in made for each in wrapped(long, width))


def _fits(pair: Paired, words: tuple[str, ...]) -> bool:
    text = f"{pair.name} {pair.second.context} {pair.second.brick} {pair.verdict.value}".casefold()
    return all(word in text for word in words)
