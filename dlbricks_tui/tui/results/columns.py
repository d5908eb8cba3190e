"""The columns of the table of results, and the box that chooses them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from textual.app import ComposeResult

from dlbricks_tui.documents.lines import Line, Span, column, contains_all, line
from dlbricks_tui.documents.results import RESULT_COLUMNS
from dlbricks_tui.store.columns import COLUMNS, Content
from dlbricks_tui.store.selections import SortOrder
from dlbricks_tui.tui.dialogs.dialog import Box, SearchedDialog
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.results import actions
from dlbricks_tui.tui.widgets.rows import DrawnRows, place_of

# Later orders would only decide between a few equal results.
_MOST_ORDERS = 3
_WIDEST_NAME = 60
_GAP = 1
NO_RESULT = "No result is selected."
# Those up to the age fit on 80 columns: they tell results of one brick or model apart.
FIRST_COLUMNS = (
    *("name", "runtime", "threads", "batch_size", "trimmed_mean_ms", "when"),
    *("precision", "models", "samples", "system", "context", "level", "good"),
)


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The visible columns and the sort orders, the first order first."""

    columns: tuple[str, ...] = FIRST_COLUMNS
    orders: tuple[SortOrder, ...] = (SortOrder("when", descending=True),)

    def sorted_by(self, column: str) -> Arrangement:
        """Return the arrangement sorted by a column; the current one is reversed."""
        first = self.orders[0]
        # Users mostly look for the greatest number and the newest time.
        begins = COLUMNS[column] in (Content.NUMBER, Content.TIME)
        descending = not first.descending if first.column == column else begins
        rest = [order for order in self.orders if order.column != column]
        return replace(self, orders=(SortOrder(column, descending), *rest)[:_MOST_ORDERS])

    def with_columns(self, columns: Sequence[str]) -> Arrangement:
        return replace(self, columns=tuple(columns))


class PlacedColumn(NamedTuple):
    """A column that fits, with its width."""

    column: str
    width: int


def placed(columns: Sequence[str], first: int, width: int) -> tuple[PlacedColumn, ...]:
    """Return the columns from `first` on that fit; names get the remaining width."""
    found: list[PlacedColumn] = []
    left = width
    for name in columns[first:]:
        needed = RESULT_COLUMNS[name].width + _GAP
        if needed > left and found:
            break
        found.append(PlacedColumn(name, min(needed, left) - _GAP))
        left -= needed
    more = max(0, left)
    return tuple(
        PlacedColumn(column, min(own + more, _WIDEST_NAME) if column == "name" else own) for column, own in found
    )


def first_to_show(columns: Sequence[str], current: int, first: int, width: int) -> int:
    """Return the first column to show so that the current one is visible, with as little scrolling as possible."""
    first = min(first, current)
    while len(placed(columns, first, width)) <= current - first:
        first += 1
    return first


def is_right(column: str) -> bool:
    """Return whether the values of a column are right-aligned."""
    return COLUMNS[column] is Content.NUMBER


class ColumnsScreen(SearchedDialog[tuple[str, ...]]):
    """Returns the selected columns in their order."""

    scope = actions.COLUMNS
    SEARCH_HINT = "name or meaning"
    ABOUT = "Marked columns are shown, in this order. Columns that do not fit are to the right of the last visible one."

    def __init__(self, shown: Sequence[str]) -> None:
        self._list: DrawnRows[str] = DrawnRows(self._row)
        super().__init__(self._list)
        self._chosen = set(shown)
        # All columns, whether they are found and chosen or not.
        self._order = [*shown, *(name for name in COLUMNS if name not in shown)]
        self._words: Sequence[str] = ()
        self._list.show_placeholder(
            line("No column contains all of these words."), Hint("{find.clear} shows all columns again.", "muted")
        )

    def compose(self) -> ComposeResult:
        with Box("Columns", actions.COLUMNS, classes="-tall"):
            yield self._list
            yield self.search_line

    def on_mount(self) -> None:
        self._find()

    def show_found(self, words: Sequence[str]) -> None:
        here = self._list.selected
        self._words = words
        self._find()
        self._list.move_to(place_of(here, self._list.items))

    def action_use(self) -> None:
        if self._chosen:
            self.dismiss(tuple(name for name in self._order if name in self._chosen))
        else:
            self.notify("Choose at least one column.")

    def action_show_or_hide(self) -> None:
        if self._list.selected is not None:
            self._chosen ^= {self._list.selected}
            self._list.action_down()
            self._list.refresh()

    def action_move_right(self) -> None:
        self._shift(1)

    def action_move_left(self) -> None:
        self._shift(-1)

    def _shift(self, step: int) -> None:
        """Swap the selected column with its neighbour in the full order."""
        name = self._list.selected
        if name is None:
            return
        here = self._order.index(name)
        there = here + step
        if 0 <= there < len(self._order):
            self._order[here], self._order[there] = self._order[there], self._order[here]
            self._find()
            self._list.cursor = self._list.items.index(name)

    def _find(self) -> None:
        self._list.items = tuple(name for name in self._order if _matches(name, self._words))
        self._list.rows_changed()

    def _row(self, index: int, width: int) -> Line:
        name = self._list.items[index]
        mark = Span("[x] ", "mark") if name in self._chosen else Span("[ ] ", "muted")
        return line(mark, column(name, 18, "strong"), Span(RESULT_COLUMNS[name].about, "muted"))


def _matches(name: str, words: Sequence[str]) -> bool:
    return contains_all(f"{name} {RESULT_COLUMNS[name].title} {RESULT_COLUMNS[name].about}", words)
