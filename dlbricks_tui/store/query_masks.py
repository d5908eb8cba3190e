"""Answer a TinyDB query from columns: the documents that match are found without reading them.

TinyDB keeps the structure of a query for its cache: `('and', frozenset({('==', ('run',), 'r1'), ...}))`. Each part on a
column gives a mask. Parts that no column can answer leave documents open; those are read, and the query itself decides.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from tinydb.queries import QueryInstance, QueryLike

from dlbricks_tui.store.columns import COLUMNS, Mask, Values, column_of, values_of
from dlbricks_tui.store.documents import TABLES, Document
from dlbricks_tui.store.errors import DamagedResultError
from dlbricks_tui.store.generation import Generation
from dlbricks_tui.store.index import (
    FIELD_OF_COLUMN,
    RESULT_TABLES,
    STATISTIC_COLUMNS,
    TEXT_COLUMNS,
    UUID_BYTES,
    Rows,
)

Path = tuple[str, ...]
_DIGITS = frozenset("0123456789abcdef")


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

    def rows_with(self, path: Path, values: Collection[Any]) -> Rows | None:
        """Return the rows in which a field has one of these values, in any order; None if that takes a search."""
        found: Iterable[int]
        column = self._columns.get(path)
        if column == "brick" and all(isinstance(value, str) and value for value in values):
            found = chain.from_iterable(map(self._index.rows_of_brick, values))
        elif column == "id" and all(map(_is_id, values)):
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

    def rows_with(self, path: Path, values: Collection[Any]) -> Rows | None:
        return super().rows_with(path, values) if self._only is None else None

    def document(self, row: int) -> Document:
        rows = np.array([row])
        return super().document(row) | {name: values_of(self._index, name, rows)[0] for name in COLUMNS}


def _is_id(value: Any) -> bool:
    return isinstance(value, str) and len(value) == 2 * UUID_BYTES and set(value) <= _DIGITS


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


class QueryMatch(NamedTuple):
    """A document that a query matches; it was read only if the columns could not tell."""

    row: int
    document: Document | None


def matches(query: QueryLike, documents: TableFields) -> Iterator[QueryMatch]:
    """Yield the documents that a query matches, in their order; damaged ones are left out."""
    rows, certain = _candidates(query, documents)
    for row, is_certain in zip(rows.tolist(), certain.tolist(), strict=True):
        if is_certain:
            yield QueryMatch(row, None)
            continue
        with suppress(DamagedResultError):
            document = documents.document(row)
            if query(document):
                yield QueryMatch(row, document)


def matching_rows(query: QueryLike, documents: TableFields) -> Rows:
    """Return the rows of the documents that a query matches, in their order."""
    rows, certain = _candidates(query, documents)
    if certain.all():
        return rows
    return np.fromiter((match.row for match in matches(query, documents)), dtype=np.intp)


def _candidates(query: QueryLike, documents: TableFields) -> tuple[Rows, Mask]:
    """Return the rows that may match, and which of them match for certain."""
    structure = query._hash if isinstance(query, QueryInstance) else None
    near = _near(structure, documents)
    rows = documents.rows() if near is None else documents.in_order(near)
    found = _truth(structure, documents, rows)
    possible = found.yes | found.open
    return rows[possible], found.yes[possible]


class _Truth(NamedTuple):
    """The rows that match for certain, and those of which the columns cannot tell."""

    yes: Mask
    open: Mask


def _truth(structure: Any, documents: TableFields, rows: Rows) -> _Truth:
    nothing = np.zeros(len(rows), dtype=np.bool_)
    match structure:
        case ():
            return _Truth(~nothing, nothing)
        case ("and", frozenset() as parts):
            yes, possible = ~nothing, ~nothing
            for part in parts:
                found = _truth(part, documents, rows)
                yes, possible = yes & found.yes, possible & (found.yes | found.open)
            return _Truth(yes, possible & ~yes)
        case ("or", frozenset() as parts):
            yes, possible = nothing, nothing
            for part in parts:
                found = _truth(part, documents, rows)
                yes, possible = yes | found.yes, possible | found.open
            return _Truth(yes, possible & ~yes)
        case ("not", part):
            found = _truth(part, documents, rows)
            return _Truth(~(found.yes | found.open), found.open)
        case (str() as operation, tuple() as path, *operand):
            mask = _mask(operation, path, operand, documents, rows)
            return _Truth(nothing, ~nothing) if mask is None else _Truth(mask, nothing)
    return _Truth(nothing, ~nothing)


def _mask(operation: str, path: Path, operand: list[Any], documents: TableFields, rows: Rows) -> Mask | None:
    values = documents.values(path, rows)
    if values is None:
        return None
    if operation == "exists":
        return np.ones(len(rows), dtype=np.bool_)
    if not operand:
        return None
    return values.mask(operation, operand if operation == "test" else operand[0])


def _near(structure: Any, documents: TableFields) -> Rows | None:
    """Return the few rows among which all matches are, None if that takes a search."""
    match structure:
        case ("==", tuple() as path, value):
            return documents.rows_with(path, [value])
        case ("one_of", tuple() as path, (tuple() | frozenset()) as items):
            return documents.rows_with(path, items)
        case ("and", frozenset() as parts):
            found = [rows for part in parts if (rows := _near(part, documents)) is not None]
            return min(found, key=len, default=None)
        case ("or", frozenset() as parts):
            return _union([_near(part, documents) for part in parts])
    return None


def _union(found: list[Rows | None]) -> Rows | None:
    known = [rows for rows in found if rows is not None]
    return np.unique(np.concatenate(known)) if known and len(known) == len(found) else None
