"""Queries: results by filter and order, and the look-ups for estimates."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from dlbricks_tui.models.graph import Level
from dlbricks_tui.store.columns import COLUMNS, Rows, Summary, column_named, sorting_keys, summaries_of, values_of
from dlbricks_tui.store.conditions import Condition, meeting, where
from dlbricks_tui.store.documents import TABLES
from dlbricks_tui.store.errors import DamagedResultError, QueryError
from dlbricks_tui.store.generation import Generation
from dlbricks_tui.store.index import RESULT_TABLES, Index
from dlbricks_tui.store.records import BrickForm, Record, Result, Run, Runtime, System

AnyRecord = TypeVar("AnyRecord", bound=Record)

_PAIR = ("brick", "context")
_WAY = ("system", "runtime", "level", "protocol")


class Pair(NamedTuple):
    """A brick in a context, by their keys."""

    brick: str
    context: str


class Order(NamedTuple):
    """A column to sort by."""

    column: str
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Selection:
    """Results in an order, as of the time of their selection."""

    generation: Generation
    rows: Rows

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, start: int, stop: int) -> "Selection":
        """Return the results from one position up to another."""
        return Selection(self.generation, self.rows[start:stop])

    def values(self, column: str) -> list[Any]:
        """Return one column of all results."""
        return values_of(self.generation.index, column, self.rows)

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


def parse_order(text: str) -> Order:
    """Return the order that a text names: a column, with a minus before it for descending order."""
    (column,) = checked_columns([text.removeprefix("-")])
    return Order(column, text.startswith("-"))


def checked_columns(names: Iterable[str]) -> tuple[str, ...]:
    """Return the columns of these names or aliases; raise QueryError for any other name."""
    found: list[str] = []
    for name in names:
        column = column_named(name)
        if column is None:
            raise QueryError(f"there is no column {name!r}; the columns are {', '.join(COLUMNS)}")
        found.append(column)
    return tuple(found)


def select(
    generation: Generation, conditions: Iterable[Condition] = (), orders: Sequence[Order] = (Order("when"),)
) -> Selection:
    """Return the results that meet all conditions, sorted by the first order, equal ones by the next."""
    index = generation.index
    rows = meeting(index, conditions, index.rows_of(*RESULT_TABLES))
    for order in reversed(orders):
        keys = sorting_keys(index, order.column, rows)
        # Reversed before and after: equal keys keep their order.
        by_key = (
            len(rows) - 1 - np.argsort(keys[::-1], kind="stable")[::-1]
            if order.descending
            else np.argsort(keys, kind="stable")
        )
        rows = rows[by_key]
    return Selection(generation, rows)


def newest_good(
    generation: Generation, pair: Pair, system: str, runtime: str, protocol: str | None = None
) -> Summary | None:
    """Return the newest good measurement of a brick in a context; the time does not depend on the store's size."""
    asked = where(context=pair.context, system=system, runtime=runtime, good=True, of="brick")
    asked += where(protocol=protocol) if protocol is not None else ()
    rows = meeting(generation.index, asked, np.fromiter(generation.index.rows_of_brick(pair.brick), dtype=np.intp))
    if not len(rows):
        return None
    # Of equally old results, the one stored last comes first.
    newest = rows[np.argmax(generation.index.column("when")[rows])]
    return summaries_of(generation.index, np.array([newest]))[0]


def history(generation: Generation, brick: str) -> Selection:
    """Return all measurements of a brick, oldest first."""
    return select(generation, where(brick=brick, of="brick"))


def among(selection: Selection, pairs: Collection[Pair]) -> Selection:
    """Return the selected measurements of these bricks in their contexts."""
    index = selection.generation.index
    bricks, contexts = index.vocabularies["brick"], index.vocabularies["context"]
    codes = ((bricks.code(pair.brick), contexts.code(pair.context)) for pair in pairs)
    wanted = [brick * len(contexts.texts) + context for brick, context in codes if brick and context is not None]
    numbers = _numbered(index, _PAIR, selection.rows)
    return Selection(selection.generation, selection.rows[np.isin(numbers, wanted)])


def newest_of_each(selection: Selection, columns: Sequence[str]) -> Selection:
    """Return the newest result of each group that agrees in these columns."""
    index = selection.generation.index
    newest_first = selection.rows[::-1]
    newest_first = newest_first[np.argsort(-index.column("when")[newest_first], kind="stable")]
    _, first = np.unique(_numbered(index, columns, newest_first), return_index=True)
    return Selection(selection.generation, newest_first[first])


def newest_by_pair(selection: Selection) -> dict[Pair, Summary]:
    """Return the newest selected measurement of each brick and context."""
    summaries = newest_of_each(selection, _PAIR).summaries()
    return {Pair(summary.brick, summary.context): summary for summary in summaries}


def all_by_pair(selection: Selection) -> dict[Pair, list[Summary]]:
    """Return the selected measurements of each brick and context, in the order of the selection."""
    found: defaultdict[Pair, list[Summary]] = defaultdict(list)
    for summary in selection.summaries():
        found[Pair(summary.brick, summary.context)].append(summary)
    return dict(found)


def combinations(generation: Generation, conditions: Iterable[Condition] = ()) -> list[Combination]:
    """Return the systems, runtimes, levels and methods with results, those with the most bricks first."""
    index = generation.index
    rows = select(generation, conditions, orders=()).rows
    ways, first, way_of_row = np.unique(_numbered(index, _WAY, rows), return_index=True, return_inverse=True)
    of_bricks = index.column("brick")[rows] > 0

    def counted(chosen: NDArray[np.bool_], columns: Sequence[str] = ()) -> list[int]:
        """Count the chosen rows of each way, or their distinct values in these columns."""
        different = _numbered(index, columns, rows[chosen]) if columns else np.arange(int(chosen.sum()))
        owners = np.unique(np.stack([way_of_row[chosen], different]), axis=1)[0]
        return [int(count) for count in np.bincount(owners, minlength=len(ways))]

    examples = summaries_of(index, rows[first])
    numbers = zip(counted(of_bricks, _PAIR), counted(of_bricks), counted(~of_bricks, ("model",)), strict=True)
    found = [
        Combination(way.system, way.runtime, way.level, way.protocol, pairs, measurements, models)
        for way, (pairs, measurements, models) in zip(examples, numbers, strict=True)
    ]
    return sorted(found, key=lambda each: (-each.pairs, -each.measurements, each.system, each.runtime, each.protocol))


def counts(generation: Generation) -> dict[str, int]:
    """Return the number of records in each table."""
    return {table: len(generation.index.rows_of(table)) for table in TABLES}


def brick_form(generation: Generation, brick: str) -> BrickForm | None:
    """Return the form of a brick, None if the store does not have it."""
    for row in generation.index.rows_of_brick(brick):
        record = generation.record(row)
        if isinstance(record, BrickForm):
            return record
    return None


def systems(generation: Generation) -> dict[str, System]:
    """Return the systems by id, each as described last."""
    return {system.id: system for system in records_of(generation, System)}


def runtimes(generation: Generation) -> dict[str, Runtime]:
    """Return the runtimes by id, each as described last."""
    return {runtime.id: runtime for runtime in records_of(generation, Runtime)}


def runs(generation: Generation) -> dict[str, Run]:
    """Return the runs by id, each in its last state."""
    return {run.id: run for run in sorted(records_of(generation, Run), key=lambda run: run.when)}


def records_of(generation: Generation, kind: type[AnyRecord]) -> list[AnyRecord]:
    """Return all records of one kind in the order in which they were stored."""
    table = next(name for name, each in TABLES.items() if each is kind)
    found: list[AnyRecord] = []
    for row in generation.index.rows_of(table).tolist():
        # The store reports damaged records.
        with suppress(DamagedResultError):
            found.append(cast(AnyRecord, generation.record(row)))
    return found


def _numbered(index: Index, columns: Sequence[str], rows: Rows) -> NDArray[np.int64]:
    """Return a number for each row; rows with equal texts in these columns have equal numbers."""
    numbers = np.zeros(len(rows), dtype=np.int64)
    for column in columns:
        numbers = numbers * len(index.vocabularies[column].texts) + index.column(column)[rows]
    return numbers
