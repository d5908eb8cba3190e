"""Results in an order, as people filter and list them, and the look-ups for estimates."""

import operator
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta, timezone
from functools import reduce
from typing import Any, NamedTuple, TypeVar, cast, overload

import numpy as np
from numpy.typing import NDArray
from tinydb import where
from tinydb.queries import QueryInstance

from dlbricks_tui.models.graph import Level
from dlbricks_tui.store.columns import (
    COLUMNS,
    COMPARISONS,
    Content,
    ResultFields,
    Summary,
    Texts,
    column_named,
    column_of,
    matching_rows,
    sorting_keys,
    summaries_of,
    values_of,
)
from dlbricks_tui.store.documents import QueryError
from dlbricks_tui.store.generation import Generation
from dlbricks_tui.store.index import (
    ORIGIN_COLUMN,
    REFERENCE_COLUMN,
    STATISTIC_COLUMNS,
    UUID_BYTES,
    Index,
    Rows,
    since_epoch,
    to_iso,
)
from dlbricks_tui.store.records import Result, Run, RuntimeRecord, Statistics, System
from dlbricks_tui.store.statistics import mean_statistics

Described = TypeVar("Described", System, RuntimeRecord, Run)

_PAIR = ("brick", "context")
_LARGEST = np.iinfo(np.int64).max
_WAY = ("system", "runtime", "level", "protocol")
# Records that agree in these columns are one result: what one run says of a brick or model.
_OF_A_RUN = (
    *("run", "system", "runtime", "level", "protocol", "batch_size"),
    *("brick", "context", "model", "dtype", "kernel_variant", "good", ORIGIN_COLUMN),
)
# The columns whose value is that of several records together.
_MERGED = (*STATISTIC_COLUMNS, "samples")
# The columns in which the records of a result differ, beside their ids.
FIGURES = {*_MERGED, REFERENCE_COLUMN, "when"}


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
    # The records that a result consists of, by the row of the newest, where there are several: see `one_per_run`.
    parts: Mapping[int, Rows] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, place: int) -> Summary: ...

    @overload
    def __getitem__(self, place: slice) -> "Selection": ...

    def __getitem__(self, place: int | slice) -> "Summary | Selection":
        if isinstance(place, slice):
            return self.of_rows(self.rows[place])
        return self.of_rows(self.rows[[place]]).summaries()[0]

    def __iter__(self) -> Iterator[Summary]:
        return iter(self.summaries())

    def of_rows(self, rows: Rows) -> "Selection":
        """Return other rows of the same results."""
        return replace(self, rows=rows)

    def matching(self, query: QueryInstance) -> "Selection":
        """Return the selected results that match a query, in the same order."""
        return self.of_rows(matching_rows(query, ResultFields(self.generation, self.rows)))

    def one_per_run(self) -> "Selection":
        """Return one result for each run and brick or model, with the newest record in its place.

        A run stores a record for each layer that it timed, and a whole model both at once and at the end. The result
        of a brick is the mean of its layers, as in estimates. For a model, and for a brick in a context, the newest
        record counts.
        """
        index = self.generation.index
        groups = numbered(index, _OF_A_RUN, self.rows)
        order = np.lexsort((self.rows, index.column("when")[self.rows], groups))
        ends = np.flatnonzero(np.diff(groups[order], append=-1))
        newest = self.rows[order[ends]]
        several = np.flatnonzero(np.diff(ends, prepend=-1) > 1).tolist()
        begins = [0, *(ends + 1).tolist()]
        parts = {int(newest[it]): self.rows[order[begins[it] : begins[it + 1]]] for it in several}
        is_newest = np.zeros(len(self.rows), dtype=np.bool_)
        is_newest[order[ends]] = True
        return Selection(self.generation, self.rows[is_newest], parts)

    def by_figures(self, query: QueryInstance) -> "Selection":
        """Return the results whose own values match a query: of several records their mean and the newest time."""
        values = {name: self.values(name) for name in columns_in(query) & COLUMNS.keys()}
        passing = [query(dict(zip(values, each, strict=True))) for each in zip(*values.values(), strict=True)]
        return self.of_rows(self.rows[np.array(passing, dtype=np.bool_)])

    def holding(self, records: Rows) -> "Selection":
        """Return the results that these records are part of."""
        newest = {row: last for last, rows in self.parts.items() for row in rows.tolist()}
        found = dict.fromkeys(newest.get(row, row) for row in records.tolist())
        return self.of_rows(np.array([*found], dtype=np.intp))

    @property
    def records(self) -> "Selection":
        """The records that the results consist of."""
        every = [self.parts.get(row, [row]) for row in self.rows.tolist()] if self.parts else [self.rows]
        return Selection(self.generation, np.concatenate([*every, np.zeros(0, np.intp)]).astype(np.intp))

    def sorted_by(self, orders: Sequence[SortOrder]) -> "Selection":
        """Return the results sorted by the first order, equal ones by the next."""
        found = self
        for order in reversed(orders):
            keys = sorting_keys(found.generation.index, order.column, found.rows)
            if found.parts and order.column in _MERGED:
                keys = np.array(found.values(order.column))
            # Reversed before and after: equal keys keep their order.
            by_key = (
                len(found) - 1 - np.argsort(keys[::-1], kind="stable")[::-1]
                if order.descending
                else np.argsort(keys, kind="stable")
            )
            found = found.of_rows(found.rows[by_key])
        return found

    def values(self, column: str) -> list[Any]:
        """Return one column of all results."""
        found = values_of(self.generation.index, column, self.rows)
        for place, mean in self._means() if column in _MERGED else ():
            found[place] = getattr(mean, "count" if column == "samples" else column)
        return found

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
        found = summaries_of(self.generation.index, self.rows)
        for place, mean in self._means():
            latencies = {name: getattr(mean, name) for name in STATISTIC_COLUMNS}
            found[place] = replace(found[place], **latencies, samples=mean.count)
        return found

    def result(self, position: int) -> Result:
        """Return one result with its samples."""
        row = int(self.rows[position])
        newest, *others = (cast(Result, self.generation.record(it)) for it in self._layers(row)[::-1] or (row,))
        if not others:
            return newest
        samples = tuple([each for it in (*reversed(others), newest) for each in it.samples_ms])
        statistics = mean_statistics([it.statistics for it in (*others, newest)])
        return replace(newest, samples_ms=samples, statistics=statistics)

    def _layers(self, row: int) -> list[int]:
        """Return the records of a brick whose mean a result is, oldest first; none if it is a single record."""
        index = self.generation.index
        is_mean = row in self.parts and index.value("brick", row) and not index.value("context", row)
        return self.parts[row].tolist() if is_mean else []

    def _means(self) -> Iterator[tuple[int, Statistics]]:
        """Yield the statistics of the results that are a mean of several records, each with its place."""
        value = self.generation.index.value
        names = {it.name: "samples" if it.name == "count" else it.name for it in fields(Statistics)}
        for place, row in enumerate(self.rows.tolist()) if self.parts else ():
            if layers := self._layers(row):
                stored = [{name: value(column, it).item() for name, column in names.items()} for it in layers]
                yield place, mean_statistics([Statistics(**it) for it in stored])


class Way(NamedTuple):
    """A way of measuring: only results of one way are combined."""

    system: str
    runtime: str
    level: Level
    protocol: str

    @property
    def query(self) -> QueryInstance:
        """The query for its results."""
        return equal(system=self.system, runtime=self.runtime, level=self.level.value, protocol=self.protocol)


class Combination(NamedTuple):
    """A system, runtime, level and method with results, and the numbers of them."""

    system: str
    runtime: str
    level: Level
    protocol: str
    pairs: int
    measurements: int
    models: int

    @property
    def way(self) -> Way:
        """The way of measuring."""
        return Way(self.system, self.runtime, self.level, self.protocol)


def parse_order(text: str) -> SortOrder:
    """Return the order that a text names: a column, with a minus before it for descending order."""
    (column,) = checked_columns([text.removeprefix("-")])
    return SortOrder(column, text.startswith("-"))


def parsed_orders(orders: Iterable[str | SortOrder]) -> list[SortOrder]:
    """Return orders of which some are texts."""
    return [parse_order(it) if isinstance(it, str) else it for it in orders]


def checked_columns(names: Iterable[str]) -> tuple[str, ...]:
    """Return the columns of these names or aliases; raise QueryError for any other name."""
    found: list[str] = []
    for name in names:
        column = column_named(name)
        if column is None:
            raise QueryError(f"there is no column {name!r}; the columns are {', '.join(COLUMNS)}")
        found.append(column)
    return tuple(found)


def by_id(described: Iterable[Described]) -> dict[str, Described]:
    """Return systems, runtimes or runs by their ids."""
    return {each.id: each for each in described}


def combinations(selection: Selection) -> list[Combination]:
    """Return the systems, runtimes, levels and methods of the selected results, those with the most bricks first."""
    index, rows = selection.generation.index, selection.rows
    ways, first, way_of_row = np.unique(numbered(index, _WAY, rows), return_index=True, return_inverse=True)
    of_bricks = index.column("brick")[rows] > 0

    def counted(chosen: NDArray[np.bool_], columns: Sequence[str] = ()) -> list[int]:
        """Count the chosen rows of each way, or their distinct values in these columns."""
        owners = way_of_row[chosen]
        if columns:
            owners = np.unique(numbered(index, columns, rows[chosen]) * len(ways) + owners) % len(ways)
        return [int(count) for count in np.bincount(owners, minlength=len(ways))]

    examples = summaries_of(index, rows[first])
    numbers = zip(counted(of_bricks, _PAIR), counted(of_bricks), counted(~of_bricks, ("model",)), strict=True)
    found = [
        Combination(way.system, way.runtime, way.level, way.protocol, pairs, measurements, models)
        for way, (pairs, measurements, models) in zip(examples, numbers, strict=True)
    ]
    return sorted(found, key=lambda each: (-each.pairs, -each.measurements, each.system, each.runtime, each.protocol))


def numbered(index: Index, columns: Sequence[str], rows: Rows) -> NDArray[np.int64]:
    """Return a number for each row; rows with equal values in these columns have equal numbers."""
    numbers, most = np.zeros(len(rows), dtype=np.int64), 1
    for column in columns:
        values = index.column(column)[rows].astype(np.int64)
        width = int(np.max(values, initial=0)) + 1
        if most * width > _LARGEST:
            found, numbers = np.unique(numbers, return_inverse=True)
            most = len(found)
        numbers, most = numbers * width + values, most * width
    return numbers


_WRITTEN = re.compile(r"(\w+)(==|!=|<=|>=|=|<|>|~)(.*)", re.DOTALL)
_FLAGS = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_KEYS = re.compile(r"[0-9a-f,]*")
_ID = re.compile(rf"[0-9a-f]{{1,{2 * UUID_BYTES}}}")
# The texts in which a word is searched. Most origins are `own`, a part of many words.
_SEARCHED = [
    name
    for name, content in COLUMNS.items()
    if content in (Content.TEXT, Content.KEY) and name not in ("id", ORIGIN_COLUMN)
]


def parse_filter(text: str) -> QueryInstance:
    """Return the query that a filter of the user stands for; a bare word searches all texts."""
    match = _WRITTEN.fullmatch(text)
    if not match:
        found = [_containing(column, text) for column in _SEARCHED]
        # Digits that are no date may be part of a text.
        with suppress(ValueError):
            if _DATE.fullmatch(text):
                found.append(_time_query("when", "=", text))
        return reduce(operator.or_, found)
    name, comparison, value = match.groups()
    # The list of results names models in a column of this title; the column has their keys.
    column = "models" if name == "model" and not _KEYS.fullmatch(value) else column_named(name)
    if column is None:
        raise QueryError(f"filter {text!r}: there is no column {name!r}; the columns are {', '.join(COLUMNS)}")
    try:
        return ~_query(column, "=", value) if comparison == "!=" else _query(column, comparison, value)
    except ValueError as error:
        raise QueryError(f"filter {column}{comparison}{value!r}: it {error}") from None


def is_filter(text: str) -> bool:
    """True for a column with a comparison; anything else is a word to search for."""
    return _WRITTEN.fullmatch(text) is not None


def columns_in(structure: Any) -> set[str]:
    """Return the names of the columns that a query, or a part of its hash, tests; and some of its other words."""
    match structure:
        case QueryInstance():
            return columns_in(structure._hash)
        case (str(name),):
            return {name}
        case tuple() | frozenset():
            return set().union(*map(columns_in, structure))
        case _:
            return set()


def all_of(queries: Iterable[QueryInstance]) -> QueryInstance:
    """Return the query for documents that match all queries."""
    return reduce(operator.and_, queries, noop())


def noop() -> QueryInstance:
    """Return the query that every document matches."""
    return where("").noop()


def equal(**values: str | int | bool) -> QueryInstance:
    """Return the query for documents whose fields have these values."""
    return all_of(where(name) == value for name, value in values.items())


def _query(column: str, comparison: str, value: str) -> QueryInstance:
    """Return the query; raise ValueError, whose message completes "it ..."."""
    content = COLUMNS[column]
    values = [value] if comparison == "==" else value.split(",")
    if column == "id":
        if comparison not in ("=", "=="):
            raise ValueError("compares ids by =, != or ==")
        if not all(map(_ID.fullmatch, values)):
            raise ValueError("needs an id, or its first digits, in 0-9 and a-f")
        is_whole = all(len(value) == 2 * UUID_BYTES for value in values)
        return where("id").one_of(values) if is_whole else where("id").test(_begins, *values)
    if content in (Content.TEXT, Content.KEY):
        return _text_query(column, content, comparison, values)
    if content is Content.TIME:
        return _time_query(column, comparison, value)
    return _number_query(column, content, comparison, values)


def _text_query(column: str, content: Content, comparison: str, values: list[str]) -> QueryInstance:
    if comparison == "~":
        return _containing(column, ",".join(values))
    if comparison not in ("=", "=="):
        raise ValueError("compares texts by =, !=, == or ~")
    if comparison == "==":
        return equal(**{column: values[0]})
    if content is Content.KEY and all(values):
        return where(column).test(_begins, *values)
    return where(column).one_of(values)


def _number_query(column: str, content: Content, comparison: str, values: list[str]) -> QueryInstance:
    try:
        numbers = [_FLAGS[value.strip().lower()] if content is Content.FLAG else float(value) for value in values]
    except (ValueError, KeyError):
        raise ValueError("needs yes or no" if content is Content.FLAG else "needs a number") from None
    if comparison in ("=", "=="):
        return where(column).one_of(numbers)
    if comparison == "~" or len(numbers) != 1:
        raise ValueError("compares by =, !=, <, <=, > or >=")
    found: QueryInstance = COMPARISONS[comparison](where(column), numbers[0])
    return found


def _time_query(column: str, comparison: str, value: str) -> QueryInstance:
    if comparison == "~":
        raise ValueError("compares times by =, !=, <, <=, > or >=")
    value = value.strip()
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=timezone.utc)
        # A date is a whole day of UTC.
        lasts = timedelta(days=1) if len(value) == len("2026-11-21") else timedelta(microseconds=1)
        begin, end = to_iso(since_epoch(moment)), to_iso(since_epoch(moment + lasts))
    except (ValueError, OverflowError):
        raise ValueError("needs a date such as 2026-11-21, or a date and time") from None
    time = where(column)
    queries: Mapping[str, QueryInstance] = {"<": time < begin, "<=": time < end, ">": time >= end, ">=": time >= begin}
    return queries.get(comparison, (time >= begin) & (time < end))


def _containing(column: str, part: str) -> QueryInstance:
    return where(column).test(cast(Any, _contains), part.casefold())


def _contains(text: Any, part: str) -> bool:
    return part in str(text).casefold()


def _begins(text: Any, *beginnings: str) -> bool:
    return str(text).startswith(beginnings)
