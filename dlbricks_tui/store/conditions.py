"""Filters as users write them: `system=c5.xlarge`, `trimmed_mean_ms>5`, `name~conv`, `when>=2026-11-01`."""

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dlbricks_tui.store.columns import COLUMNS, DERIVED, Content, Rows, column_named, numbers_of, texts_of
from dlbricks_tui.store.errors import QueryError
from dlbricks_tui.store.index import TEXT_COLUMNS, UUID_BYTES, Index, since_epoch

Mask = NDArray[np.bool_]

_WRITTEN = re.compile(r"(\w+)(==|!=|<=|>=|=|<|>|~)(.*)", re.DOTALL)
_ORDERINGS: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_FLAGS = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_ID = re.compile(rf"[0-9a-f]{{0,{2 * UUID_BYTES}}}")


@dataclass(frozen=True, slots=True)
class Condition:
    """A column, a comparison and a value; without a column, a word that any text column may contain, or a date.

    `=` accepts several values separated by commas, and the beginning of a key. `==` takes the value literally.
    """

    column: str
    comparison: str
    value: str

    def mask(self, index: Index, rows: Rows) -> Mask:
        """Return a mask of the rows that meet the condition."""
        if not self.column:
            found = np.zeros(len(rows), dtype=np.bool_)
            for name in (*TEXT_COLUMNS, *DERIVED):
                found |= _text_mask(index, name, rows, self._contains)
            return found | self._day_mask(index, rows)
        content = COLUMNS[self.column]
        if self.comparison == "!=":
            return ~Condition(self.column, "=", self.value).mask(index, rows)
        if self.column == "id":
            return self._id_mask(index, rows)
        if self.comparison == "==" and self.column in index.vocabularies and self.column != "name":
            # No search through the texts: look-ups must not slow down as the store grows.
            code = index.vocabularies[self.column].code(self.value)
            return np.equal(index.column(self.column)[rows], -1 if code is None else code)
        if content in (Content.TEXT, Content.KEY):
            return _text_mask(index, self.column, rows, self._text_test(content))
        numbers = numbers_of(index, self.column, rows)
        if content is Content.TIME:
            return self._time_mask(numbers)
        return self._number_mask(numbers, _flag if content is Content.FLAG else float)

    @property
    def _values(self) -> tuple[str, ...]:
        return (self.value,) if self.comparison == "==" else tuple(self.value.split(","))

    def _contains(self, text: str) -> bool:
        return self.value.casefold() in text.casefold()

    def _text_test(self, content: Content) -> Callable[[str], bool]:
        if self.comparison == "~":
            return self._contains
        if self.comparison not in ("=", "=="):
            raise self._wrong("compares texts by =, !=, == or ~")
        values = self._values
        if content is Content.KEY and self.comparison == "=":
            return lambda text: text.startswith(values) if all(values) else text in values
        return lambda text: text in values

    def _id_mask(self, index: Index, rows: Rows) -> Mask:
        if self.comparison not in ("=", "=="):
            raise self._wrong("compares ids by =, != or ==")
        digits = index.column("uuid")[rows].view(np.uint8).reshape(-1, UUID_BYTES)
        found = np.zeros(len(rows), dtype=np.bool_)
        for value in self._values:
            if not _ID.fullmatch(value):
                raise self._wrong("needs an id, or its first digits, in 0-9 and a-f")
            whole = np.frombuffer(bytes.fromhex(value[: len(value) // 2 * 2]), dtype=np.uint8)
            same = (digits[:, : len(whole)] == whole).all(axis=1)
            if len(value) % 2:
                same &= digits[:, len(whole)] >> 4 == int(value[-1], 16)
            found |= same
        return found

    def _number_mask(self, numbers: NDArray[Any], read: Callable[[str], float]) -> Mask:
        try:
            values = [read(value.strip()) for value in self._values]
        except ValueError:
            raise self._wrong("needs a number" if read is float else "needs yes or no") from None
        if self.comparison in ("=", "=="):
            return np.isin(numbers, values)
        if self.comparison not in _ORDERINGS or len(values) != 1:
            raise self._wrong("compares by =, !=, <, <=, > or >=")
        mask: Mask = _ORDERINGS[self.comparison](numbers, values[0])
        return mask

    def _day_mask(self, index: Index, rows: Rows) -> Mask:
        """Return the rows of a day, if the value is a date."""
        if _DATE.fullmatch(self.value):
            with suppress(QueryError):
                return Condition("when", "=", self.value).mask(index, rows)
        return np.zeros(len(rows), dtype=np.bool_)

    def _time_mask(self, times: NDArray[np.int64]) -> Mask:
        if self.comparison == "~":
            raise self._wrong("compares times by =, !=, <, <=, > or >=")
        begin, end = self._period()
        masks: Mapping[str, Mask] = {"<": times < begin, "<=": times < end, ">": times >= end, ">=": times >= begin}
        return masks.get(self.comparison, (times >= begin) & (times < end))

    def _period(self) -> tuple[int, int]:
        """Return the begin and end of the value in microseconds; a date is a whole day of UTC."""
        try:
            begin = datetime.fromisoformat(self.value.strip())
        except ValueError:
            raise self._wrong("needs a date such as 2026-11-21, or a date and time") from None
        if begin.tzinfo is None:
            begin = begin.replace(tzinfo=timezone.utc)
        lasts = timedelta(days=1) if len(self.value.strip()) == len("2026-11-21") else timedelta(microseconds=1)
        return since_epoch(begin), since_epoch(begin + lasts)

    def _wrong(self, what: str) -> QueryError:
        return QueryError(f"filter {self.column}{self.comparison}{self.value!r}: it {what}")


def parse_condition(text: str) -> Condition:
    """Return the condition in a filter of the user; a bare word searches all texts."""
    match = _WRITTEN.fullmatch(text)
    if not match:
        return Condition("", "~", text)
    name, comparison, value = match.groups()
    column = column_named(name)
    if column is None:
        raise QueryError(f"filter {text!r}: there is no column {name!r}; the columns are {', '.join(COLUMNS)}")
    return Condition(column, comparison, value)


def where(**values: str | int | bool) -> tuple[Condition, ...]:
    """Return conditions for exact values of columns."""
    return tuple(
        Condition(column, "==", ("yes" if value else "no") if isinstance(value, bool) else str(value))
        for column, value in values.items()
    )


def meeting(index: Index, conditions: Iterable[Condition], rows: Rows) -> Rows:
    """Return the rows that meet all conditions."""
    for condition in conditions:
        rows = rows[condition.mask(index, rows)]
    return rows


def _text_mask(index: Index, column: str, rows: Rows, test: Callable[[str], bool]) -> Mask:
    # Test each distinct text once.
    texts, codes = texts_of(index, column, rows)
    passes = np.fromiter(map(test, texts), dtype=np.bool_, count=len(texts))
    return passes[codes]


def _flag(value: str) -> float:
    if value.lower() not in _FLAGS:
        raise ValueError(value)
    return _FLAGS[value.lower()]
