"""Results in an order, as people list them, and the look-ups for estimates."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar, cast, overload

import numpy as np
from numpy.typing import NDArray
from tinydb.queries import QueryInstance

from dlbricks_tui.models.graph import Level
from dlbricks_tui.store.columns import (
    COLUMNS,
    Summary,
    Texts,
    column_named,
    column_of,
    sorting_keys,
    summaries_of,
    values_of,
)
from dlbricks_tui.store.errors import QueryError
from dlbricks_tui.store.generation import Generation
from dlbricks_tui.store.index import ORIGIN_COLUMN, Index, Rows
from dlbricks_tui.store.query_masks import ResultFields, matching_rows
from dlbricks_tui.store.records import Result, Run, Runtime, System

Described = TypeVar("Described", System, Runtime, Run)

_PAIR = ("brick", "context")
_WAY = ("system", "runtime", "level", "protocol")


class Pair(NamedTuple):
    """A brick in a context, by their keys."""

    brick: str
    context: str


class SortOrder(NamedTuple):
    """A column to sort by."""

    column: str
    descending: bool = False


OLDEST_FIRST = (SortOrder("when"),)
# The last result counts: own ones before signed ones, those before unsigned ones, and of these the newest.
LEAST_FIRST = (SortOrder(ORIGIN_COLUMN), *OLDEST_FIRST)
NEWEST_FIRST = (SortOrder("when", descending=True),)


@dataclass(frozen=True, slots=True, eq=False)
class Selection(Sequence[Summary]):
    """Results in an order, as of the time of their selection."""

    generation: Generation
    rows: Rows

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, place: int) -> Summary: ...

    @overload
    def __getitem__(self, place: slice) -> "Selection": ...

    def __getitem__(self, place: int | slice) -> "Summary | Selection":
        if isinstance(place, slice):
            return Selection(self.generation, self.rows[place])
        return summaries_of(self.generation.index, self.rows[[place]])[0]

    def __iter__(self) -> Iterator[Summary]:
        return iter(self.summaries())

    def matching(self, query: QueryInstance) -> "Selection":
        """Return the selected results that match a query, in the same order."""
        return Selection(self.generation, matching_rows(query, ResultFields(self.generation, self.rows)))

    def values(self, column: str) -> list[Any]:
        """Return one column of all results."""
        return values_of(self.generation.index, column, self.rows)

    def distinct(self, column: str) -> set[str]:
        """Return the different values of a column that holds texts."""
        found = column_of(self.generation.index, column, self.rows)
        if not isinstance(found, Texts):
            raise QueryError(f"the column {column} does not hold texts")
        return {found.texts[code] for code in np.unique(found.codes).tolist()}

    def numbers(self, column: str) -> NDArray[Any]:
        """Return one column that holds numbers or times; times are in microseconds since 1970."""
        return self.generation.index.column(column)[self.rows]

    @property
    def trust(self) -> list[int]:
        """The rank of each result's origin: own ones have the highest."""
        ranks: list[int] = self.generation.index.trust(self.rows).tolist()
        return ranks

    def summaries(self) -> list[Summary]:
        """Return all results without samples."""
        return summaries_of(self.generation.index, self.rows)

    def result(self, position: int) -> Result:
        """Return one result with its samples."""
        return cast(Result, self.generation.record(int(self.rows[position])))


@dataclass(frozen=True, slots=True)
class Combination:
    """A system, runtime, level and method with results, and the numbers of them."""

    system: str
    runtime: str
    level: Level
    protocol: str
    pairs: int
    measurements: int
    models: int


def parse_order(text: str) -> SortOrder:
    """Return the order that a text names: a column, with a minus before it for descending order."""
    (column,) = checked_columns([text.removeprefix("-")])
    return SortOrder(column, text.startswith("-"))


def checked_columns(names: Iterable[str]) -> tuple[str, ...]:
    """Return the columns of these names or aliases; raise QueryError for any other name."""
    found: list[str] = []
    for name in names:
        column = column_named(name)
        if column is None:
            raise QueryError(f"there is no column {name!r}; the columns are {', '.join(COLUMNS)}")
        found.append(column)
    return tuple(found)


def select(generation: Generation, query: QueryInstance, orders: Sequence[SortOrder]) -> Selection:
    """Return the results that match a query, sorted by the first order, equal ones by the next."""
    rows = matching_rows(query, ResultFields(generation))
    for order in reversed(orders):
        keys = sorting_keys(generation.index, order.column, rows)
        # Reversed before and after: equal keys keep their order.
        by_key = (
            len(rows) - 1 - np.argsort(keys[::-1], kind="stable")[::-1]
            if order.descending
            else np.argsort(keys, kind="stable")
        )
        rows = rows[by_key]
    return Selection(generation, rows)


def by_id(described: Iterable[Described]) -> dict[str, Described]:
    """Return systems, runtimes or runs by their ids."""
    return {each.id: each for each in described}


def newest_of_each(selection: Selection, columns: Sequence[str]) -> Selection:
    """Return the result of each group that agrees in these columns that counts: see LEAST_FIRST."""
    index = selection.generation.index
    newest_first = selection.rows[::-1]
    newest_first = newest_first[np.lexsort((-index.column("when")[newest_first], -index.trust(newest_first)))]
    _, first = np.unique(_numbered(index, columns, newest_first), return_index=True)
    return Selection(selection.generation, newest_first[first])


def newest_by_pair(selection: Selection) -> dict[Pair, Summary]:
    """Return the newest selected measurement of each brick and context."""
    summaries = newest_of_each(selection, _PAIR).summaries()
    return {Pair(summary.brick, summary.context): summary for summary in summaries}


def combinations(selection: Selection) -> list[Combination]:
    """Return the systems, runtimes, levels and methods of the selected results, those with the most bricks first."""
    index, rows = selection.generation.index, selection.rows
    ways, first, way_of_row = np.unique(_numbered(index, _WAY, rows), return_index=True, return_inverse=True)
    of_bricks = index.column("brick")[rows] > 0

    def counted(chosen: NDArray[np.bool_], columns: Sequence[str] = ()) -> list[int]:
        """Count the chosen rows of each way, or their distinct values in these columns."""
        owners = way_of_row[chosen]
        if columns:
            owners = np.unique(_numbered(index, columns, rows[chosen]) * len(ways) + owners) % len(ways)
        return [int(count) for count in np.bincount(owners, minlength=len(ways))]

    examples = summaries_of(index, rows[first])
    numbers = zip(counted(of_bricks, _PAIR), counted(of_bricks), counted(~of_bricks, ("model",)), strict=True)
    found = [
        Combination(way.system, way.runtime, way.level, way.protocol, pairs, measurements, models)
        for way, (pairs, measurements, models) in zip(examples, numbers, strict=True)
    ]
    return sorted(found, key=lambda each: (-each.pairs, -each.measurements, each.system, each.runtime, each.protocol))


def _numbered(index: Index, columns: Sequence[str], rows: Rows) -> NDArray[np.int64]:
    """Return a number for each row; rows with equal texts in these columns have equal numbers."""
    numbers = np.zeros(len(rows), dtype=np.int64)
    for column in columns:
        numbers = numbers * len(index.vocabularies[column].texts) + index.column(column)[rows]
    return numbers
