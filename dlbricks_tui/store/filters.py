"""Filters as users write them, as TinyDB queries: `system=c5.xlarge`, `ms>5`, `name~conv`, `when>=2026-11-01`.

| written | query on the columns of results |
|---|---|
| `system=a,b` | `where("system").one_of(["a", "b"])` |
| `ms>5` | `where("trimmed_mean_ms") > 5.0` |
| `when=2026-11-21` | `(where("when") >= "2026-11-21T00:00...") & (where("when") < "2026-11-22T00:00...")` |
| `brick=d0178d` | a test of the beginning |
| `conv` | a test of each text column, joined by `|` |
"""

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta, timezone
from functools import reduce
from typing import Any, cast

from tinydb import where
from tinydb.queries import QueryInstance

from dlbricks_tui.store.columns import COLUMNS, Content, column_named
from dlbricks_tui.store.errors import QueryError
from dlbricks_tui.store.index import ORIGIN_COLUMN, UUID_BYTES, since_epoch, to_iso

_WRITTEN = re.compile(r"(\w+)(==|!=|<=|>=|=|<|>|~)(.*)", re.DOTALL)
_ORDERINGS: Mapping[str, Callable[[Any, Any], QueryInstance]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_FLAGS = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_ID = re.compile(rf"[0-9a-f]{{0,{2 * UUID_BYTES}}}")
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
        return _search(text)
    name, comparison, value = match.groups()
    column = column_named(name)
    if column is None:
        raise QueryError(f"filter {text!r}: there is no column {name!r}; the columns are {', '.join(COLUMNS)}")
    try:
        if comparison == "!=":
            return ~_query(column, "=", value)
        return _query(column, comparison, value)
    except ValueError as error:
        raise QueryError(f"filter {column}{comparison}{value!r}: it {error}") from None


def is_filter(text: str) -> bool:
    """True for a column with a comparison; anything else is a word to search for."""
    return _WRITTEN.fullmatch(text) is not None


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
        return _id_query(comparison, values)
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


def _id_query(comparison: str, values: list[str]) -> QueryInstance:
    if comparison not in ("=", "=="):
        raise ValueError("compares ids by =, != or ==")
    if not all(map(_ID.fullmatch, values)):
        raise ValueError("needs an id, or its first digits, in 0-9 and a-f")
    if all(len(value) == 2 * UUID_BYTES for value in values):
        return where("id").one_of(values)
    return where("id").test(_begins, *values)


def _number_query(column: str, content: Content, comparison: str, values: list[str]) -> QueryInstance:
    try:
        numbers = [_flag(value) if content is Content.FLAG else float(value) for value in values]
    except ValueError:
        raise ValueError("needs yes or no" if content is Content.FLAG else "needs a number") from None
    if comparison in ("=", "=="):
        return where(column).one_of(numbers)
    if comparison not in _ORDERINGS or len(numbers) != 1:
        raise ValueError("compares by =, !=, <, <=, > or >=")
    return _ORDERINGS[comparison](where(column), numbers[0])


def _time_query(column: str, comparison: str, value: str) -> QueryInstance:
    if comparison == "~":
        raise ValueError("compares times by =, !=, <, <=, > or >=")
    begin, end = _period(value.strip())
    time = where(column)
    queries: Mapping[str, QueryInstance] = {
        "<": time < begin,
        "<=": time < end,
        ">": time >= end,
        ">=": time >= begin,
    }
    return queries.get(comparison, (time >= begin) & (time < end))


def _period(value: str) -> tuple[str, str]:
    """Return the begin and end of the value as results have times; a date is a whole day of UTC."""
    try:
        begin = datetime.fromisoformat(value)
        if begin.tzinfo is None:
            begin = begin.replace(tzinfo=timezone.utc)
        lasts = timedelta(days=1) if len(value) == len("2026-11-21") else timedelta(microseconds=1)
        return to_iso(since_epoch(begin)), to_iso(since_epoch(begin + lasts))
    except (ValueError, OverflowError):
        raise ValueError("needs a date such as 2026-11-21, or a date and time") from None


def _search(word: str) -> QueryInstance:
    found = [_containing(column, word) for column in _SEARCHED]
    if _DATE.fullmatch(word):
        try:
            found.append(_time_query("when", "=", word))
        except ValueError:
            # Digits that are no date may be part of a text.
            return reduce(operator.or_, found)
    return reduce(operator.or_, found)


def _containing(column: str, part: str) -> QueryInstance:
    return where(column).test(cast(Any, _contains), part.casefold())


def _contains(text: Any, part: str) -> bool:
    return part in str(text).casefold()


def _begins(text: Any, *beginnings: str) -> bool:
    return str(text).startswith(beginnings)


def _flag(value: str) -> bool:
    if value.strip().lower() not in _FLAGS:
        raise ValueError(value)
    return _FLAGS[value.strip().lower()]
