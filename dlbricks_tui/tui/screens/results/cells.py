"""The columns of the table of results: what they are called, how wide they are, and how their values are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from dlbricks_tui.store.columns import COLUMNS, Content
from dlbricks_tui.store.queries import Order
from dlbricks_tui.wording.numbers import milliseconds

# Further orders than these decide between too few results to be worth the sorting.
_MOST_ORDERS = 3
_KEY_DIGITS = 12
_MINUTES = len("2026-11-21T12:34")
_WIDEST_NAME = 60
_GAP = 1
NO_RESULT = "There is no result here to copy the key of."
_NUMBER = 9


class Heading(NamedTuple):
    """What stands above a column, and how wide it is."""

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
# The first fit on 80 columns.
FIRST_COLUMNS = ("name", "trimmed_mean_ms", "samples", "when", "system", "runtime", "context", "level", "good")


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Which columns are shown, and by which results are sorted, the first order first."""

    columns: tuple[str, ...] = FIRST_COLUMNS
    orders: tuple[Order, ...] = (Order("when", descending=True),)

    def sorted_by(self, column: str) -> Arrangement:
        """The same sorted by a column; by the one that it is sorted by the other way round."""
        first = self.orders[0]
        # Of numbers and times one mostly looks for the greatest.
        begins = COLUMNS[column] in (Content.NUMBER, Content.TIME)
        descending = not first.descending if first.column == column else begins
        rest = [order for order in self.orders if order.column != column]
        return replace(self, orders=(Order(column, descending), *rest)[:_MOST_ORDERS])

    def with_columns(self, columns: Sequence[str]) -> Arrangement:
        """The same with other columns."""
        return replace(self, columns=tuple(columns))


class Placed(NamedTuple):
    """A column that there is room for."""

    column: str
    width: int


def placed(columns: Sequence[str], first: int, width: int) -> tuple[Placed, ...]:
    """As many columns from the first one on as there is room for; names take what is left over."""
    found: list[Placed] = []
    left = width
    for column in columns[first:]:
        needed = HEADINGS[column].width + _GAP
        if needed > left and found:
            break
        found.append(Placed(column, min(needed, left) - _GAP))
        left -= needed
    more = max(0, left)
    return tuple(Placed(column, min(own + more, _WIDEST_NAME) if column == "name" else own) for column, own in found)


def first_to_show(columns: Sequence[str], current: int, first: int, width: int) -> int:
    """From which column on the current one is in sight, and as few others as possible have moved."""
    first = min(first, current)
    while len(placed(columns, first, width)) <= current - first:
        first += 1
    return first


def is_right(column: str) -> bool:
    """Whether the values of a column end below each other."""
    return COLUMNS[column] is Content.NUMBER


def cell(column: str, value: Any) -> str:
    """A value as a person reads it."""
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
