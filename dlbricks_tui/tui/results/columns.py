"""The columns of the table of results, and the box that chooses them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from textual.app import ComposeResult

from dlbricks_tui.documents.lines import Line, Span, column, contains_all, line
from dlbricks_tui.store.columns import COLUMNS, Content
from dlbricks_tui.store.selections import SortOrder
from dlbricks_tui.tui.dialogs.dialog import Box, SearchedDialog
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.results import actions
from dlbricks_tui.tui.widgets.rows import DrawnRows, place_of
from dlbricks_tui.wording.ages import ago
from dlbricks_tui.wording.numbers import milliseconds

# Later orders would only decide between a few equal results.
_MOST_ORDERS = 3
_KEY_DIGITS = 12
_MINUTES = len("2026-11-21T12:34")
_AGE = len("59 min")
_WIDEST_NAME = 60
_GAP = 1
NO_RESULT = "No result is selected."
_NUMBER = 9


class Heading(NamedTuple):
    """The title, the width and the meaning of a column."""

    title: str
    width: int
    about: str


HEADINGS: Mapping[str, Heading] = {
    "id": Heading("id", _KEY_DIGITS, "the id of the result"),
    "of": Heading("of", 5, "brick or model"),
    "name": Heading("name", 18, "operators, window and input of a brick; the name of a model"),
    "kind": Heading("kind", 13, "the kind of a brick"),
    "brick": Heading("brick", _KEY_DIGITS, "the key of the brick"),
    "context": Heading("context", 14, "the context of the brick"),
    "model": Heading("model key", _KEY_DIGITS, "the key of the model"),
    "system": Heading("system", 16, "the system"),
    "runtime": Heading("runtime", 18, "the framework with its version; a result has the rest"),
    "level": Heading("level", 7, "written or fused layers"),
    "protocol": Heading("protocol", 13, "the method of measuring"),
    "batch_size": Heading("batch", 6, "the batch size"),
    "threads": Heading("threads", 7, "the threads of the runtime; 0: its default"),
    "precision": Heading("precision", 9, "the numbers that it computed with; accuracy is not checked"),
    "dtype": Heading("type", 8, "the data type"),
    "kernel_variant": Heading("kernel", 10, "the kernel"),
    "trimmed_mean_ms": Heading("ms", _NUMBER, "the latency in estimates: the trimmed mean"),
    "median_ms": Heading("median", _NUMBER, "the median of the samples"),
    "minimum_ms": Heading("minimum", _NUMBER, "the minimum of the samples"),
    "spread_ms": Heading("spread", _NUMBER, "the distance between the quartiles"),
    "low_ms": Heading("low", _NUMBER, "the lower end of the 95 % interval"),
    "high_ms": Heading("high", _NUMBER, "the upper end of the 95 % interval"),
    "samples": Heading("n", 5, "the number of samples"),
    "reference_ms": Heading("reference", _NUMBER, "the latency of the reference: the speed of the host"),
    "when": Heading("age", _AGE, "the age of the measurement; a result has its time"),
    "run": Heading("run", 20, "the id of the run"),
    "good": Heading("good", 5, "whether no flag was raised"),
    "models": Heading("models", 22, "the models of the run that measured it"),
    "origin": Heading("origin", 12, "own, unsigned, or who signed the imported file"),
}
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


def short_cell(column: str, value: Any) -> str:
    """Return the text of a value in a list, where ages and frameworks tell more at a glance."""
    if column == "when":
        return ago(str(value)).removesuffix(" ago")
    if column == "threads" and not value:
        return "default"
    return str(value).partition(" ")[0] if column == "runtime" else cell(column, value)


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
        return line(mark, column(name, 18, "strong"), Span(HEADINGS[name].about, "muted"))


def _matches(name: str, words: Sequence[str]) -> bool:
    return contains_all(f"{name} {HEADINGS[name].title} {HEADINGS[name].about}", words)
