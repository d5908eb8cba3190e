"""The columns of the table of results, and the box that chooses them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from textual.app import ComposeResult

from dlbricks_tui.store.columns import COLUMNS, Content
from dlbricks_tui.store.queries import Order
from dlbricks_tui.tui.dialogs.dialog import Box, SearchedDialog
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.lines import Line, Span, column, contains_all, line
from dlbricks_tui.tui.results import actions
from dlbricks_tui.tui.widgets.rows import RowsView, place_of
from dlbricks_tui.wording.numbers import milliseconds

# Later orders would only decide between a few equal results.
_MOST_ORDERS = 3
_KEY_DIGITS = 12
_MINUTES = len("2026-11-21T12:34")
_WIDEST_NAME = 60
_GAP = 1
NO_RESULT = "No result is selected."
_NUMBER = 9


class Heading(NamedTuple):
    """The title and the width of a column."""

    title: str
    width: int


HEADINGS: Mapping[str, Heading] = {
    "id": Heading("id", _KEY_DIGITS),
    "of": Heading("of", 5),
    "name": Heading("name", 22),
    "kind": Heading("kind", 13),
    "brick": Heading("brick", _KEY_DIGITS),
    "context": Heading("context", 14),
    "model": Heading("model key", _KEY_DIGITS),
    "system": Heading("system", 16),
    "runtime": Heading("runtime", 20),
    "level": Heading("level", 7),
    "protocol": Heading("protocol", 13),
    "batch_size": Heading("batch", 6),
    "dtype": Heading("type", 8),
    "kernel_variant": Heading("kernel", 10),
    "trimmed_mean_ms": Heading("ms", _NUMBER),
    "median_ms": Heading("median", _NUMBER),
    "minimum_ms": Heading("minimum", _NUMBER),
    "spread_ms": Heading("spread", _NUMBER),
    "low_ms": Heading("low", _NUMBER),
    "high_ms": Heading("high", _NUMBER),
    "samples": Heading("n", 5),
    "reference_ms": Heading("reference", _NUMBER),
    "when": Heading("when, UTC", _MINUTES),
    "run": Heading("run", 20),
    "good": Heading("good", 5),
    "models": Heading("models", 22),
}
# The first of them fit on 80 columns.
FIRST_COLUMNS = ("name", "trimmed_mean_ms", "samples", "when", "system", "runtime", "context", "level", "good")


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The visible columns and the sort orders, the first order first."""

    columns: tuple[str, ...] = FIRST_COLUMNS
    orders: tuple[Order, ...] = (Order("when", descending=True),)

    def sorted_by(self, column: str) -> Arrangement:
        """Return the arrangement sorted by a column; the current one is reversed."""
        first = self.orders[0]
        # Users mostly look for the greatest number and the newest time.
        begins = COLUMNS[column] in (Content.NUMBER, Content.TIME)
        descending = not first.descending if first.column == column else begins
        rest = [order for order in self.orders if order.column != column]
        return replace(self, orders=(Order(column, descending), *rest)[:_MOST_ORDERS])

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
        needed = HEADINGS[name].width + _GAP
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


def cell(column: str, value: Any) -> str:
    """Return the text of a value."""
    if column.endswith("_ms"):
        return milliseconds(value)
    content = COLUMNS[column]
    if content is Content.KEY:
        return str(value)[:_KEY_DIGITS]
    if content is Content.TIME:
        return str(value)[:_MINUTES].replace("T", " ")
    if content is Content.FLAG:
        return "yes" if value else "no"
    return str(value)


_ABOUT = {
    "id": "the id of the result",
    "of": "brick or model",
    "name": "operators, window and input of a brick; the name of a model",
    "kind": "the kind of a brick",
    "brick": "the key of the brick",
    "context": "the context of the brick",
    "model": "the key of the model",
    "system": "the system",
    "runtime": "the runtime",
    "level": "written or fused layers",
    "protocol": "the method of measuring",
    "batch_size": "the batch size",
    "dtype": "the data type",
    "kernel_variant": "the kernel",
    "trimmed_mean_ms": "the latency in estimates: the trimmed mean",
    "median_ms": "the median of the samples",
    "minimum_ms": "the minimum of the samples",
    "spread_ms": "the distance between the quartiles",
    "low_ms": "the lower end of the 95 % interval",
    "high_ms": "the upper end of the 95 % interval",
    "samples": "the number of samples",
    "reference_ms": "the latency of the reference: the speed of the host",
    "when": "the time of the measurement",
    "run": "the id of the run",
    "good": "whether no flag was raised",
    "models": "the models of the run that measured it",
}


class ColumnsScreen(SearchedDialog[tuple[str, ...]]):
    """Returns the selected columns in their order."""

    scope = actions.COLUMNS
    SEARCH_HINT = "name or meaning"
    ABOUT = "Marked columns are shown, in this order. Columns that do not fit are to the right of the last visible one."

    def __init__(self, shown: Sequence[str]) -> None:
        self._list = _ColumnRows(shown)
        super().__init__(self._list)

    def compose(self) -> ComposeResult:
        with Box("Columns", actions.COLUMNS, classes="-tall"):
            yield self._list
            yield self.search_line

    def show_found(self, words: Sequence[str]) -> None:
        self._list.seek(words)

    def action_use(self) -> None:
        if self._list.shown:
            self.dismiss(tuple(self._list.shown))
        else:
            self.notify("Choose at least one column.")

    def action_show_or_hide(self) -> None:
        self._list.toggle()

    def action_move_right(self) -> None:
        self._list.shift(1)

    def action_move_left(self) -> None:
        self._list.shift(-1)


class _ColumnRows(RowsView):
    def __init__(self, shown: Sequence[str]) -> None:
        super().__init__()
        self._chosen = set(shown)
        self._order = [*shown, *(name for name in COLUMNS if name not in shown)]
        self._words: tuple[str, ...] = ()
        self._found = tuple(self._order)
        self.show_placeholder(
            line("No column contains all of these words."), Hint("{find.clear} shows all columns again.", "muted")
        )

    @property
    def shown(self) -> list[str]:
        """The selected columns."""
        return [name for name in self._order if name in self._chosen]

    @property
    def row_count(self) -> int:
        return len(self._found)

    def row(self, index: int, width: int) -> Line:
        name = self._found[index]
        mark = Span("[x] " if name in self._chosen else "[ ] ", "mark" if name in self._chosen else "muted")
        return line(mark, column(name, 18, "strong"), Span(_ABOUT[name], "muted"))

    def on_mount(self) -> None:
        self.rows_changed()

    def seek(self, words: Sequence[str]) -> None:
        """Show only the columns that contain all of the words."""
        here = self._found[self.cursor] if self._found else None
        self._words = tuple(words)
        self._find()
        self.move_to(place_of(here, self._found))

    def toggle(self) -> None:
        """Show or hide the column under the cursor."""
        if self._found:
            self._chosen ^= {self._found[self.cursor]}
            self.action_down()
            self.refresh()

    def shift(self, step: int) -> None:
        """Swap the column under the cursor with its neighbour in the full order."""
        if not self._found:
            return
        name = self._found[self.cursor]
        here = self._order.index(name)
        there = here + step
        if 0 <= there < len(self._order):
            self._order[here], self._order[there] = self._order[there], self._order[here]
            self._find()
            self.cursor = self._found.index(name)

    def _find(self) -> None:
        self._found = tuple(name for name in self._order if _matches(name, self._words))
        self.rows_changed()


def _matches(name: str, words: Sequence[str]) -> bool:
    return contains_all(f"{name} {HEADINGS[name].title} {_ABOUT[name]}", words)
