"""The columns by which results are listed, filtered and sorted, and tests of their values."""

import operator
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from enum import Enum
from itertools import chain
from typing import Any, NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray
from tinydb.queries import QueryInstance, QueryLike

from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.runtime.variant import Variant, stated_precision, stated_threads, stated_variant
from dlbricks_tui.store.documents import TABLES, DamagedResultError, Document
from dlbricks_tui.store.generation import Generation
from dlbricks_tui.store.index import (
    FIELD_OF_COLUMN,
    ORIGIN_COLUMN,
    OWN,
    REFERENCE_COLUMN,
    RESULT_TABLES,
    SHARED_COLUMN,
    STATISTIC_COLUMNS,
    TEXT_COLUMNS,
    UUID_BYTES,
    Column,
    Index,
    Rows,
    kind_of_label,
    to_iso,
    trust_in,
)

Mask = NDArray[np.bool_]


class Content(Enum):
    """The type of a column's values."""

    TEXT = "text"
    # A long hexadecimal text, which users shorten.
    KEY = "key"
    NUMBER = "number"
    TIME = "time"
    FLAG = "flag"


COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
# Whole numbers up to here are exact as floating-point numbers.
_EXACT = 1 << 53
# Other names that filters and orders accept for a column: the headings of the results table.
_ALIASES: Mapping[str, str] = {
    "part": "name",
    "ms": "trimmed_mean_ms",
    "median": "median_ms",
    "minimum": "minimum_ms",
    "spread": "spread_ms",
    "low": "low_ms",
    "high": "high_ms",
    "batch": "batch_size",
    "type": "dtype",
    "kernel": "kernel_variant",
    "n": "samples",
    "reference": REFERENCE_COLUMN,
}
# The subject of a result by its table.
_OF = {"measurements": "brick", "end_to_end": "model"}
# A whole model has no kind.
_KINDS = ("", *(kind.value for kind in Kind))


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """A result without its samples: of a brick in a context, or of a whole model (brick and context empty)."""

    id: str
    of: str
    name: str
    kind: str
    brick: str
    context: str
    model: str
    system: str
    runtime: str
    level: Level
    protocol: str
    batch_size: int
    threads: int
    precision: str
    dtype: str
    kernel_variant: str
    trimmed_mean_ms: float
    median_ms: float
    minimum_ms: float
    spread_ms: float
    low_ms: float
    high_ms: float
    samples: int
    reference_ms: float
    when: str
    run: str
    good: bool
    # Its model, or for a brick the models of its run.
    models: str
    # Where it comes from: `own`, `unsigned`, or `signed by` somebody.
    origin: str
    # Half of the interval as a share of the latency, for all results of the same rounds; negative if unknown.
    shared: float

    @property
    def precedence(self) -> tuple[int, str]:
        """The rank among results of the same subject: the highest one counts, as with `LEAST_FIRST`."""
        return trust_in(self.origin), self.when

    @property
    def variant(self) -> Variant:
        """The variant in which it was measured."""
        return replace(stated_variant(self.runtime, self.batch_size), threads=self.threads or None)

    @property
    def key(self) -> str:
        """The argument for `dlbricks results show`: the brick's key, or the id of a whole model's result."""
        return self.brick or self.id


_KEYS = ("id", "brick", "model")
_CONTENT_OF: Mapping[type, Content] = {
    str: Content.TEXT,
    Level: Content.TEXT,
    int: Content.NUMBER,
    float: Content.NUMBER,
    bool: Content.FLAG,
}
# In the order of the lists.
COLUMNS: Mapping[str, Content] = {
    name: Content.KEY if name in _KEYS else Content.TIME if name == "when" else _CONTENT_OF[kind]
    for name, kind in get_type_hints(Summary).items()
    if name != SHARED_COLUMN
}


def column_named(name: str) -> str | None:
    """Return the column of that name or alias, None if there is none."""
    return name if name in COLUMNS else _ALIASES.get(name)


class Numbers(NamedTuple):
    """The values of a column that holds numbers or truth values."""

    values: Column

    def mask(self, operation: str, operand: Any) -> Mask | None:
        """Return the rows that pass a test, None if a column cannot tell."""
        if operation == "one_of" and isinstance(operand, tuple | frozenset) and all(map(_is_number, operand)):
            return np.isin(self.values, list(operand))
        if operation not in COMPARISONS or not _is_number(operand):
            return None
        mask: Mask = COMPARISONS[operation](self.values, operand)
        return mask


class Texts(NamedTuple):
    """The values of a column that holds texts: the distinct texts, and the number of each row's text."""

    texts: list[str]
    codes: Column
    # Returns the number of a text without a search; None if several numbers may have one text.
    code: Callable[[str], int | None] | None = None

    def mask(self, operation: str, operand: Any) -> Mask | None:
        """Return the rows that pass a test, None if a column cannot tell."""
        if operation == "==" and isinstance(operand, str):
            operation, operand = "one_of", (operand,)
        if operation == "one_of" and isinstance(operand, tuple | frozenset):
            if self.code is None:
                return self._passing(lambda text: text in operand)
            found = [self.code(text) for text in operand if isinstance(text, str)]
            codes = [code for code in found if code is not None]
            return self.codes == codes[0] if len(codes) == 1 else np.isin(self.codes, codes)
        if operation in COMPARISONS and isinstance(operand, str):
            return self._passing(lambda text: COMPARISONS[operation](text, operand))
        if operation == "test":
            test, arguments = operand
            # TinyDB keeps lists as tuples here: the test may tell one from the other.
            if all(isinstance(argument, str | int | float | None) for argument in arguments):
                return self._passing(lambda text: test(text, *arguments))
        return None

    def _passing(self, test: Callable[[str], Any]) -> Mask:
        # Each distinct text is tested once.
        passes = np.fromiter((bool(test(text)) for text in self.texts), dtype=np.bool_, count=len(self.texts))
        return passes[self.codes]


class Times(NamedTuple):
    """The values of a column that holds times; the documents have them as texts, all of the same length."""

    values: Column

    def mask(self, operation: str, operand: Any) -> Mask | None:
        """Return the rows that pass a test, None if a column cannot tell."""
        if operation not in COMPARISONS or not isinstance(operand, str):
            return None
        # Texts of one length and one time zone are in the order of the times.
        every = range(int(self.values.min(initial=0)), int(self.values.max(initial=0)) + 1)
        place = every.start + bisect_left(every, operand, key=to_iso)
        # Between two times is a place for texts that are no time.
        is_time = place in every and to_iso(place) == operand
        mask: Mask = COMPARISONS[operation](2 * self.values, 2 * place - (not is_time))
        return mask


Values = Numbers | Texts | Times


def _is_number(value: Any) -> bool:
    return isinstance(value, bool | float) or (isinstance(value, int) and abs(value) <= _EXACT)


def column_of(index: Index, column: str, rows: Rows) -> Values:
    """Return the values of a column, or of one that is derived from other records."""
    if column == "id":
        ids = [uuid.hex() for uuid in index.column("uuid")[rows].tolist()]
        return Texts(ids, np.arange(len(ids)))
    if column == "when":
        return Times(index.column(column)[rows])
    if column == "of":
        return Texts([_OF.get(table, table) for table in index.known_tables], index.column("table")[rows])
    if column == "kind":
        # It follows from the brick's name.
        names, codes = np.unique(_name_codes(index, rows), return_inverse=True)
        texts = index.vocabularies["name"].texts
        kinds = np.array([_KINDS.index(kind_of_label(texts[name]).value) for name in names.tolist()], dtype=np.intp)
        is_whole = index.column("brick")[rows] == 0
        return Texts(list(_KINDS), np.where(is_whole, 0, kinds[codes] if len(names) else codes))
    if column == "models":
        # A brick may belong to any model of its run.
        of_runs = index.names_of("runs", "run")[index.column("run")[rows]]
        codes = np.where(index.column("brick")[rows] == 0, index.column("name")[rows], of_runs)
        return Texts(index.vocabularies["name"].texts, codes, index.vocabularies["name"].code)
    if column in ("threads", "precision"):
        # Each distinct runtime is read once.
        identities, codes = index.vocabularies["runtime"].texts, index.column("runtime")[rows]
        if column == "precision":
            return Texts([stated_precision(identity).value for identity in identities], codes)
        return Numbers(np.array([stated_threads(identity) or 0 for identity in identities], dtype=np.int64)[codes])
    if column == ORIGIN_COLUMN:
        known = index.vocabularies[column]
        return Texts(index.origins(), index.column(column)[rows], lambda text: 0 if text == OWN else known.code(text))
    if column in TEXT_COLUMNS:
        codes = _name_codes(index, rows) if column == "name" else index.column(column)[rows]
        return Texts(index.vocabularies[column].texts, codes, index.vocabularies[column].code)
    return Numbers(index.column(column)[rows])


def values_of(index: Index, column: str, rows: Rows) -> list[Any]:
    """Return the values of a column as Python objects."""
    found = column_of(index, column, rows)
    if isinstance(found, Texts):
        return [found.texts[code] for code in found.codes.tolist()]
    values: list[Any] = found.values.tolist()
    return list(map(to_iso, values)) if isinstance(found, Times) else values


def sorting_keys(index: Index, column: str, rows: Rows) -> Column:
    """Return numbers in the order in which users expect the values."""
    if column == "id":
        return index.column("uuid")[rows].view(">u8").reshape(-1, 2)[:, 0]
    if column == ORIGIN_COLUMN:
        return index.trust(rows)
    found = column_of(index, column, rows)
    if not isinstance(found, Texts):
        return found.values
    # Equal texts, such as those of two runs of the same models, get equal ranks.
    _, ranks = np.unique(np.array(found.texts, dtype=np.object_), return_inverse=True)
    return ranks[found.codes]


def summaries_of(index: Index, rows: Rows) -> list[Summary]:
    """Return the rows as summaries."""
    names = (*COLUMNS, SHARED_COLUMN)
    columns = [values_of(index, column, rows) for column in names]
    columns[names.index("level")] = [Level(level) for level in values_of(index, "level", rows)]
    return [Summary(**dict(zip(names, values, strict=True))) for values in zip(*columns, strict=True)]


def _name_codes(index: Index, rows: Rows) -> Column:
    """Return the number of each row's name; a measurement has the name of its brick."""
    named = index.names_of("bricks", "brick")[index.column("brick")[rows]]
    return np.where(named == 0, index.column("name")[rows], named)


Path = tuple[str, ...]
_ID = re.compile(rf"[0-9a-f]{{{2 * UUID_BYTES}}}")


class TableFields:
    """The documents of a table, and the fields that have columns."""

    def __init__(self, generation: Generation, *tables: str, columns: Mapping[Path, str] | None = None) -> None:
        self._generation = generation
        self._index = generation.index
        self._tables = tables
        self._columns = columns_of_table(*tables) if columns is None else columns

    def rows(self) -> Rows:
        """Return the rows of all documents, in their order."""
        return self._index.rows_of(*self._tables)

    def in_order(self, rows: Rows) -> Rows:
        """Return these rows in the order of the documents."""
        return rows[np.argsort(self._index.column("order")[rows])]

    def rows_with(self, condition: Any) -> Rows | None:
        """Return the rows that pass a condition, in any order; None if finding them takes a search."""
        match condition:
            case ("==", tuple() as path, value):
                values: Any = (value,)
            case ("one_of", tuple() as path, (tuple() | frozenset()) as values):
                pass
            case _:
                return None
        found: Iterable[int]
        column = self._columns.get(path)
        if column == "brick" and all(isinstance(value, str) and value for value in values):
            found = chain.from_iterable(map(self._index.rows_of_brick, values))
        elif column == "id" and all(isinstance(it, str) and _ID.fullmatch(it) for it in values):
            found = (row for row in map(self._index.row_of_uuid, values) if row is not None)
        else:
            return None
        rows = np.unique(np.fromiter(found, dtype=np.intp))
        known = self._index.known_tables
        return rows[np.isin(self._index.column("table")[rows], [known[it].code for it in self._tables if it in known])]

    def values(self, path: Path, rows: Rows) -> Values | None:
        """Return the values of a field, which all documents have; None if it has no column."""
        column = self._columns.get(path)
        return None if column is None else column_of(self._index, column, rows)

    def distinct_in(self, condition: Any) -> int:
        """Return the number of distinct texts in the column that has to have a text; 0 for any other condition."""
        match condition:
            case ("==", tuple() as path, str()) if (column := self._columns.get(path)) in TEXT_COLUMNS:
                return len(self._index.vocabularies[column].texts)
        return 0

    def document(self, row: int) -> Document:
        """Read a document."""
        return self._generation.document(row)


class ResultFields(TableFields):
    """Bricks and whole models that were timed, in one list, or some of them.

    Their documents also have the columns of the list.
    """

    def __init__(self, generation: Generation, only: Rows | None = None) -> None:
        super().__init__(generation, *RESULT_TABLES, columns={(name,): name for name in COLUMNS})
        self._only = only

    def rows(self) -> Rows:
        return super().rows() if self._only is None else self._only

    def rows_with(self, condition: Any) -> Rows | None:
        return super().rows_with(condition) if self._only is None else None

    def document(self, row: int) -> Document:
        rows = np.array([row])
        return super().document(row) | {name: values_of(self._index, name, rows)[0] for name in COLUMNS}


def columns_of_table(table: str) -> Mapping[Path, str]:
    """Return the fields of a table that have columns; a table that is not one of dlbricks has none."""
    if table not in TABLES:
        return {}
    found: dict[Path, str] = {("uuid",): "id"}
    names = {field: column for column, field in FIELD_OF_COLUMN.get(table, {}).items()}
    for each in fields(TABLES[table]):
        column = names.get(each.name, each.name)
        if column in TEXT_COLUMNS:
            found[(each.name,)] = column
    if table in RESULT_TABLES:
        found |= {("statistics", name): name for name in STATISTIC_COLUMNS}
        found |= {("statistics", "count"): "samples", ("batch_size",): "batch_size"}
    return found


def matches(query: QueryLike, documents: TableFields) -> Iterator[int]:
    """Yield the rows of the documents that a query matches, in their order; damaged ones are left out."""
    rows, certain = _candidates(query, documents)
    for row, is_certain in zip(rows.tolist(), certain.tolist(), strict=True):
        # Read only if the columns cannot tell.
        with suppress(DamagedResultError):
            if is_certain or query(documents.document(row)):
                yield row


def matching_rows(query: QueryLike, documents: TableFields) -> Rows:
    """Return the rows of the documents that a query matches, in their order."""
    rows, certain = _candidates(query, documents)
    return rows if certain.all() else np.fromiter(matches(query, documents), dtype=np.intp)


def _candidates(query: QueryLike, documents: TableFields) -> tuple[Rows, Mask]:
    """Return the rows that may match, and which of them match for certain."""
    conditions = list(_conditions(query._hash if isinstance(query, QueryInstance) else None))
    near = [found for it in conditions if (found := documents.rows_with(it)) is not None]
    rows = documents.in_order(min(near, key=len)) if near else documents.rows()
    certain = np.ones(len(rows), dtype=np.bool_)
    # The tests that few rows may pass come first: the others have only these left to test.
    for part in sorted(conditions, key=documents.distinct_in, reverse=True):
        truth = _truth(part, documents, rows)
        certain &= truth.certain
        if not truth.possible.all():
            rows, certain = rows[truth.possible], certain[truth.possible]
    return rows, certain


def _conditions(structure: Any) -> Iterator[Any]:
    """Yield the conditions that a document has to meet, all of them."""
    match structure:
        case ():
            return
        case ("and", frozenset() as parts):
            for part in parts:
                yield from _conditions(part)
        case _:
            yield structure


class _Truth(NamedTuple):
    """The rows that match for certain, and those that match as far as the columns can tell."""

    certain: Mask
    possible: Mask


def _truth(structure: Any, documents: TableFields, rows: Rows) -> _Truth:
    none, every = np.zeros(len(rows), dtype=np.bool_), np.ones(len(rows), dtype=np.bool_)
    match structure:
        case ():
            return _Truth(every, every)
        case ("and" | "or" as operation, frozenset() as parts):
            found = np.array([_truth(part, documents, rows) for part in parts])
            return _Truth(*(found.all(axis=0) if operation == "and" else found.any(axis=0)))
        case ("not", part):
            truth = _truth(part, documents, rows)
            return _Truth(~truth.possible, ~truth.certain)
        case (str() as operation, tuple() as path, *operand):
            values = documents.values(path, rows)
            if values is not None and operation == "exists":
                return _Truth(every, every)
            if values is not None and operand:
                mask = values.mask(operation, operand if operation == "test" else operand[0])
                return _Truth(none, every) if mask is None else _Truth(mask, mask)
    return _Truth(none, every)
