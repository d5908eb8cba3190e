"""What can be asked of the store: results by filter and order, and the look-ups that estimates are made of."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from dlbricks_tui.models.graph import Level
from dlbricks_tui.store.columns import COLUMNS, Rows, Summary, sorting_keys, summaries_of, values_of
from dlbricks_tui.store.conditions import Condition, meeting, where
from dlbricks_tui.store.documents import TABLES
from dlbricks_tui.store.errors import DamagedResultError, QueryError
from dlbricks_tui.store.generation import Generation
from dlbricks_tui.store.index import RESULT_TABLES
from dlbricks_tui.store.records import BrickForm, Record, Result, Run, Runtime, System

AnyRecord = TypeVar("AnyRecord", bound=Record)


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
    """Results in an order, as they were when they were selected."""

    generation: Generation
    rows: Rows

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, start: int, stop: int) -> "Selection":
        """Some of them that stand beside each other."""
        return Selection(self.generation, self.rows[start:stop])

    def values(self, column: str) -> list[Any]:
        """One column of all of them."""
        return values_of(self.generation.index, column, self.rows)

    def summaries(self) -> list[Summary]:
        """All of them, without samples."""
        return summaries_of(self.generation.index, self.rows)

    def result(self, position: int) -> Result:
        """One of them, whole."""
        return cast(Result, self.generation.record(int(self.rows[position])))


@dataclass(frozen=True, slots=True)
class Combination:
    """One way in which results were measured, and how many there are: what to offer where nothing else fits."""

    system: str
    runtime: str
    level: Level
    protocol: str
    pairs: int
    measurements: int
    models: int


def parse_order(text: str) -> Order:
    """A column to sort by, with a minus before it for the other way round."""
    (column,) = checked_columns([text.removeprefix("-")])
    return Order(column, text.startswith("-"))


def checked_columns(names: Iterable[str]) -> tuple[str, ...]:
    """The names, if all of them are columns."""
    names = tuple(names)
    for name in names:
        if name not in COLUMNS:
            raise QueryError(f"there is no column {name!r}; the columns are {', '.join(COLUMNS)}")
    return names


def select(
    generation: Generation, conditions: Iterable[Condition] = (), orders: Sequence[Order] = (Order("when"),)
) -> Selection:
    """The results that meet all conditions, sorted by the first order, equal ones by the next."""
    index = generation.index
    rows = meeting(index, conditions, index.rows_of(*RESULT_TABLES))
    for order in reversed(orders):
        keys = sorting_keys(index, order.column, rows)
        # Reversed before and after, so that equal ones keep their order.
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
    """The newest good measurement of a brick in a context; takes no longer in a large store."""
    asked = where(context=pair.context, system=system, runtime=runtime, good=True, of="brick")
    asked += where(protocol=protocol) if protocol is not None else ()
    rows = meeting(generation.index, asked, np.fromiter(generation.index.rows_of_brick(pair.brick), dtype=np.intp))
    if not len(rows):
        return None
    # Of equally old ones the one stored last, which comes first.
    newest = rows[np.argmax(generation.index.column("when")[rows])]
    return summaries_of(generation.index, np.array([newest]))[0]


def history(generation: Generation, brick: str) -> Selection:
    """All measurements of a brick, oldest first."""
    return select(generation, where(brick=brick, of="brick"))


def newest_by_pair(selection: Selection) -> dict[Pair, Summary]:
    """Of the selected measurements the newest of each brick and context."""
    rows = selection.rows[np.argsort(selection.generation.index.column("when")[selection.rows], kind="stable")]
    # Later ones replace earlier ones before anything else is looked up for them.
    newest = dict(zip(_pairs(Selection(selection.generation, rows)), rows.tolist(), strict=True))
    kept = Selection(selection.generation, np.fromiter(newest.values(), dtype=np.intp, count=len(newest)))
    return dict(zip(newest, kept.summaries(), strict=True))


def all_by_pair(selection: Selection) -> dict[Pair, list[Summary]]:
    """The selected measurements of each brick and context, in the order of the selection."""
    found: defaultdict[Pair, list[Summary]] = defaultdict(list)
    for pair, summary in zip(_pairs(selection), selection.summaries(), strict=True):
        found[pair].append(summary)
    return dict(found)


def combinations(generation: Generation, conditions: Iterable[Condition] = ()) -> list[Combination]:
    """The systems, runtimes, levels and protocols with results, those with the most bricks first."""
    selection = select(generation, conditions)
    pairs: defaultdict[tuple[str, str, str, str], set[Pair]] = defaultdict(set)
    models: defaultdict[tuple[str, str, str, str], set[str]] = defaultdict(set)
    measurements: Counter[tuple[str, str, str, str]] = Counter()
    ways = zip(*map(selection.values, ("system", "runtime", "level", "protocol")), strict=True)
    for way, pair, model in zip(ways, _pairs(selection), selection.values("model"), strict=True):
        if model:
            models[way].add(model)
        else:
            pairs[way].add(pair)
            measurements[way] += 1
    found = [
        Combination(*way[:2], Level(way[2]), way[3], len(pairs[way]), measurements[way], len(models[way]))
        for way in sorted(pairs.keys() | models.keys())
    ]
    return sorted(found, key=lambda combination: -combination.pairs)


def counts(generation: Generation) -> dict[str, int]:
    """How many records each table has."""
    return {table: len(generation.index.rows_of(table)) for table in TABLES}


def brick_form(generation: Generation, brick: str) -> BrickForm | None:
    """What a brick key stands for, None where the store does not know it."""
    for row in generation.index.rows_of_brick(brick):
        record = generation.record(row)
        if isinstance(record, BrickForm):
            return record
    return None


def systems(generation: Generation) -> dict[str, System]:
    """The systems by id, as they were described last."""
    return {system.id: system for system in records_of(generation, System)}


def runtimes(generation: Generation) -> dict[str, Runtime]:
    """The runtimes by id, as they were described last."""
    return {runtime.id: runtime for runtime in records_of(generation, Runtime)}


def runs(generation: Generation) -> dict[str, Run]:
    """The runs by id, as they stood last."""
    return {run.id: run for run in sorted(records_of(generation, Run), key=lambda run: run.when)}


def records_of(generation: Generation, kind: type[AnyRecord]) -> list[AnyRecord]:
    """All records of one kind, whole, in the order in which they were stored."""
    table = next(name for name, each in TABLES.items() if each is kind)
    found: list[AnyRecord] = []
    for row in generation.index.rows_of(table).tolist():
        # One that is damaged has joined the damage that the store reports.
        with suppress(DamagedResultError):
            found.append(cast(AnyRecord, generation.record(row)))
    return found


def _pairs(selection: Selection) -> list[Pair]:
    return list(map(Pair, selection.values("brick"), selection.values("context")))
