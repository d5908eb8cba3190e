"""Entries of the journal: one line of JSON for each change of a table.

| line | meaning |
|---|---|
| `{"table":"runs","doc_id":7,...}` | document 7 of the table is this; any earlier one is replaced |
| `{"removed":"runs","doc_id":7}` | document 7 is removed |
| `{"cleared":"runs"}` | the table has no documents |
| `{"dropped":"runs"}` | there is no such table |
"""

import json
import re
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple

from dlbricks_tui.store.documents import BrokenDocumentError, Document

# The table of the one document at the head of every file, which is no document of the user.
HEAD = "dlbricks"
# The format in the head. Stores from before version 0.2.0 have another.
FORMAT = "dlbricks-database"

_RECORD = re.compile(rb'\{"table":"([a-z_]+)","doc_id":\d+,"uuid":"([0-9a-f]{32})"')
_LINE = re.compile(rb'\{"(table|removed|cleared|dropped)":("(?:[^"\\]|\\.)*")(?:,"doc_id":(-?\d+))?(?=[,}])')


class EntryKind(Enum):
    """The change that an entry makes; the value is its first name in the line."""

    PUT = "table"
    REMOVE = "removed"
    CLEAR = "cleared"
    DROP = "dropped"


class JournalEntry(NamedTuple):
    """A change of a table."""

    action: EntryKind
    table: str
    doc_id: int = 0
    document: Document | None = None


def line_of(entry: JournalEntry) -> bytes:
    """Return an entry as a line."""
    head = f'{{"{entry.action.value}":{json.dumps(entry.table)}'
    if entry.action in (EntryKind.PUT, EntryKind.REMOVE):
        head += f',"doc_id":{entry.doc_id}'
    return f"{head}{_rest_of(entry.document or {})}".encode("ascii")


def entry_on(line: bytes) -> JournalEntry:
    """Return the entry on a line."""
    match = _LINE.match(line)
    if match is None:
        raise BrokenDocumentError("is not a line that dlbricks writes")
    action, table = EntryKind(match[1].decode("ascii")), _table_named(match[2])
    if action is not EntryKind.PUT:
        return JournalEntry(action, table, int(match[3] or 0))
    if match[3] is None:
        raise BrokenDocumentError("has no doc_id")
    try:
        rest = line[match.end() :].decode("ascii").removeprefix(",")
        return JournalEntry(action, table, int(match[3]), json.loads("{" + rest))
    except (ValueError, RecursionError) as error:
        # A forged line: the checksum is right.
        raise BrokenDocumentError(f"is not JSON: {error}") from error


@lru_cache
def _table_named(text: bytes) -> str:
    name: str = json.loads(text)
    return name


class NamedRecord(NamedTuple):
    """A record by its table and UUID."""

    table: str
    uuid: str


def record_on(line: bytes) -> NamedRecord | None:
    """Return the record on a line that dlbricks wrote, without reading the rest; else None."""
    match = _RECORD.match(line)
    return None if match is None else NamedRecord(match[1].decode("ascii"), match[2].decode("ascii"))


def are_alike(line: bytes, other: bytes) -> bool:
    """Return True if two lines are of the same table and have the same document, perhaps under other numbers."""
    match, matched = _LINE.match(line), _LINE.match(other)
    if match is None or matched is None or match[3] is None or matched[3] is None:
        return False
    return (line[: match.start(3)], line[match.end(3) :]) == (other[: matched.start(3)], other[matched.end(3) :])


def renumbered(line: bytes, doc_id: int) -> bytes:
    """Return the line of a document with another number."""
    match = _LINE.match(line)
    if match is None:
        raise BrokenDocumentError("is not a line that dlbricks writes")
    return b"%s%d%s" % (line[: match.start(3)], doc_id, line[match.end(3) :])


def head_of(**facts: Any) -> JournalEntry:
    """Return the first entry of a file."""
    return JournalEntry(EntryKind.PUT, HEAD, 1, {"format": FORMAT, **facts})


def _rest_of(document: Document) -> str:
    text = json.dumps(document, separators=(",", ":"), allow_nan=False)
    return "}" if text == "{}" else f",{text[1:]}"
