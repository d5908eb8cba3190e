"""Answer a TinyDB query from columns: the documents that match are found without reading them.

TinyDB keeps the structure of a query for its cache: `('and', frozenset({('==', ('run',), 'r1'), ...}))`. Each part on a
column gives a mask. Parts that no column can answer leave documents open; those are read, and the query itself decides.
"""

import operator
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from tinydb.queries import QueryInstance, QueryLike

from dlbricks_tui.store.documents import Document
from dlbricks_tui.store.errors import DamagedResultError
from dlbricks_tui.store.index import Column, Rows

Mask = NDArray[np.bool_]
Path = tuple[str, ...]

_COMPARISONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
# Whole numbers up to here are exact as floating-point numbers.
_EXACT = 1 << 53


class Numbers(NamedTuple):
    """The values of a column that holds numbers or truth values."""

    values: Column

    def mask(self, operation: str, operand: Any) -> Mask | None:
        """Return the rows that pass a test, None if a column cannot tell."""
        if operation == "one_of" and isinstance(operand, tuple | frozenset) and all(map(_is_number, operand)):
            return np.isin(self.values, list(operand))
        if operation not in _COMPARISONS or not _is_number(operand):
            return None
        mask: Mask = _COMPARISONS[operation](self.values, operand)
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
            codes = [self.code(text) for text in operand if isinstance(text, str)]
            return np.isin(self.codes, [code for code in codes if code is not None])
        if operation in _COMPARISONS and isinstance(operand, str):
            return self._passing(lambda text: _COMPARISONS[operation](text, operand))
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
    text_of: Callable[[int], str]

    def mask(self, operation: str, operand: Any) -> Mask | None:
        """Return the rows that pass a test, None if a column cannot tell."""
        if operation not in _COMPARISONS or not isinstance(operand, str):
            return None
        times = self.values
        # Texts of one length and one time zone are in the order of the times.
        every = range(int(times.min(initial=0)), int(times.max(initial=0)) + 1)
        begin = every.start + bisect_left(every, operand, key=self.text_of)
        end = every.start + bisect_right(every, operand, key=self.text_of)
        masks: Mapping[str, Mask] = {
            "<": times < begin,
            "<=": times < end,
            ">": times >= end,
            ">=": times >= begin,
            "!=": (times < begin) | (times >= end),
        }
        return masks.get(operation, (times >= begin) & (times < end))


Values = Numbers | Texts | Times


class Fields(Protocol):
    """Documents whose fields may have columns."""

    def rows(self) -> Rows:
        """Return the rows of all documents, in their order."""

    def in_order(self, rows: Rows) -> Rows:
        """Return these rows in the order of the documents."""

    def rows_with(self, path: Path, value: Any) -> Rows | None:
        """Return the rows in which a field has a value, in any order; None if that takes a search."""

    def values(self, path: Path, rows: Rows) -> Values | None:
        """Return the values of a field that all documents have; None if it has no column."""

    def document(self, row: int) -> Document:
        """Read a document."""


class Match(NamedTuple):
    """A document that a query matches; it was read only if the columns could not tell."""

    row: int
    document: Document | None


def matches(query: QueryLike, fields: Fields) -> Iterator[Match]:
    """Yield the documents that a query matches, in their order; damaged ones are left out."""
    rows, certain = _candidates(query, fields)
    for row, is_certain in zip(rows.tolist(), certain.tolist(), strict=True):
        if is_certain:
            yield Match(row, None)
            continue
        with suppress(DamagedResultError):
            document = fields.document(row)
            if query(document):
                yield Match(row, document)


def matching_rows(query: QueryLike, fields: Fields) -> Rows:
    """Return the rows of the documents that a query matches, in their order."""
    rows, certain = _candidates(query, fields)
    if certain.all():
        return rows
    return np.fromiter((match.row for match in matches(query, fields)), dtype=np.intp)


def _candidates(query: QueryLike, fields: Fields) -> tuple[Rows, Mask]:
    """Return the rows that may match, and which of them match for certain."""
    structure = query._hash if isinstance(query, QueryInstance) else None
    near = _near(structure, fields)
    rows = fields.rows() if near is None else fields.in_order(near)
    found = _truth(structure, fields, rows)
    possible = found.yes | found.open
    return rows[possible], found.yes[possible]


class _Truth(NamedTuple):
    """The rows that match for certain, and those of which the columns cannot tell."""

    yes: Mask
    open: Mask


def _truth(structure: Any, fields: Fields, rows: Rows) -> _Truth:
    nothing = np.zeros(len(rows), dtype=np.bool_)
    match structure:
        case ():
            return _Truth(~nothing, nothing)
        case ("and", frozenset() as parts):
            yes, possible = ~nothing, ~nothing
            for part in parts:
                found = _truth(part, fields, rows)
                yes, possible = yes & found.yes, possible & (found.yes | found.open)
            return _Truth(yes, possible & ~yes)
        case ("or", frozenset() as parts):
            yes, possible = nothing, nothing
            for part in parts:
                found = _truth(part, fields, rows)
                yes, possible = yes | found.yes, possible | found.open
            return _Truth(yes, possible & ~yes)
        case ("not", part):
            found = _truth(part, fields, rows)
            return _Truth(~(found.yes | found.open), found.open)
        case (str() as operation, tuple() as path, *operand):
            mask = _mask(operation, path, operand, fields, rows)
            return _Truth(nothing, ~nothing) if mask is None else _Truth(mask, nothing)
    return _Truth(nothing, ~nothing)


def _mask(operation: str, path: Path, operand: list[Any], fields: Fields, rows: Rows) -> Mask | None:
    values = fields.values(path, rows)
    if values is None:
        return None
    if operation == "exists":
        return np.ones(len(rows), dtype=np.bool_)
    if not operand:
        return None
    return values.mask(operation, operand if operation == "test" else operand[0])


def _near(structure: Any, fields: Fields) -> Rows | None:
    """Return the few rows among which all matches are, None if that takes a search."""
    match structure:
        case ("==", tuple() as path, value):
            return fields.rows_with(path, value)
        case ("one_of", tuple() as path, (tuple() | frozenset()) as items):
            return _union([fields.rows_with(path, value) for value in items])
        case ("and", frozenset() as parts):
            found = [rows for part in parts if (rows := _near(part, fields)) is not None]
            return min(found, key=len, default=None)
        case ("or", frozenset() as parts):
            return _union([_near(part, fields) for part in parts])
    return None


def _union(found: list[Rows | None]) -> Rows | None:
    known = [rows for rows in found if rows is not None]
    return np.unique(np.concatenate(known)) if known and len(known) == len(found) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, bool | float) or (isinstance(value, int) and abs(value) <= _EXACT)
