"""The screen that compares two selections of results."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from dlbricks_tui.answers.comparisons.contrasts import ComparedPair
from dlbricks_tui.documents.contrast import NOTHING_IN_COMMON, pair_columns, ratio_parts, selection_parts
from dlbricks_tui.documents.layout import laid_out
from dlbricks_tui.documents.lines import Line, Span, line
from dlbricks_tui.documents.parts import Column, Part, Sentence
from dlbricks_tui.tui.results import actions, work
from dlbricks_tui.tui.widgets.panel import Orders, counts_text
from dlbricks_tui.tui.widgets.screens import KeyBar, PanelledScreen
from dlbricks_tui.tui.widgets.table import TablePanel
from dlbricks_tui.tui.widgets.text import TextLines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual.app import ComposeResult

    from dlbricks_tui.answers.comparisons.contrasts import ComparedResults
    from dlbricks_tui.answers.comparisons.selecting import NamedSelection
    from dlbricks_tui.tui.session import SharedStore


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
