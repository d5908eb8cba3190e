"""The files of a store folder: their names, the lines in them, and appending to a journal.

- `results-N.json`: the TinyDB file that compaction N wrote. One JSON object of tables of numbered documents, with each
  document on a separate line: `"7": {...},`.
- `journal-N.jsonl`: the changes after that, one per line. A store without compactions has journal 0 only.

The highest number is in use; the generation before it is kept. A damaged line costs the document on it and no other.

Each line of a journal is an entry. It begins with its checksum and its schema: `{"check":"0f1e2d3c","schema":1,`. Then:

| line | meaning |
|---|---|
| `{"table":"runs","doc_id":7,...}` | document 7 of the table is this; any earlier one is replaced |
| `{"removed":"runs","doc_id":7}` | document 7 is removed |
| `{"cleared":"runs"}` | the table has no documents |
| `{"dropped":"runs"}` | there is no such table |
"""

import fcntl
import json
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from dlbricks_tui.files import sync_folder
from dlbricks_tui.store.documents import (
    SCHEMA,
    BrokenDocumentError,
    Document,
    StoreError,
    cannot_read,
    cannot_write,
    written_before_0_2,
    written_by_newer,
)

_NUMBERED = re.compile(r"(results|journal)-(\d+)\.jsonl?")


def base_name(number: int) -> str:
    """Return the name of the TinyDB file of a generation."""
    return f"results-{number}.json"


def journal_name(number: int) -> str:
    """Return the name of the journal of a generation."""
    return f"journal-{number}.jsonl"


class Layout(NamedTuple):
    """The numbers of the generations that have a TinyDB file, and of those that have a journal."""

    bases: frozenset[int]
    journals: frozenset[int]

    @property
    def newest(self) -> int:
        """The number of the generation in use."""
        return max(self.bases | self.journals, default=0)

    @property
    def files(self) -> tuple[str, ...]:
        """The files to read, in this order; the last one takes new records and may not exist yet.

        A journal without its TinyDB file is the rest of a damaged generation: the generations before it are read too.
        """
        base = max(self.bases, default=0)
        names = [base_name(base)] if self.bases else []
        return (*names, *map(journal_name, sorted({*(each for each in self.journals if each >= base), self.newest})))

    @property
    def files_before(self) -> tuple[str, ...]:
        """The files from which the newest TinyDB file was compacted."""
        newest = max(self.bases, default=0)
        older = Layout(
            frozenset(each for each in self.bases if each < newest),
            frozenset(each for each in self.journals if each < newest),
        )
        return older.files if older.bases or older.journals else ()

    @property
    def missing(self) -> str | None:
        """The TinyDB file that is missing, and whose results are lost."""
        if self.bases or not self.journals or 0 in self.journals:
            return None
        return base_name(min(self.journals))


def layout_of(folder: Path) -> Layout:
    """Return the generations in a folder; none if the folder does not exist."""
    found: dict[str, set[int]] = {"results": set(), "journal": set()}
    try:
        names = os.listdir(folder)  # noqa: PTH208 - quicker, and done at every look-up
    except FileNotFoundError as error:
        if folder.is_symlink():
            # Such as to a disk that is not mounted.
            raise StoreError(
                f"{folder} is a link to {folder.readlink()}, which does not exist: make that folder, or choose another "
                "data folder"
            ) from error
        names = []
    except OSError as error:
        raise cannot_read(folder, error) from error
    for name in names:
        if match := _NUMBERED.fullmatch(name):
            found[match[1]].add(int(match[2]))
    return Layout(frozenset(found["results"]), frozenset(found["journal"]))


_CHUNK = 1 << 20
# A number, quotes, a colon and a space precede a document.
_LONGEST_NUMBER = 32
# The last line of a complete TinyDB file.
END = b"}}"
_STRUCTURE = re.compile(rb'\{?"(?:[^"\\]|\\.)*": \{|\},|\}\}')


@dataclass(frozen=True, slots=True)
class Damage:
    """A part of a file that cannot be read, with the reason."""

    file: str
    line: int
    offset: int
    length: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file} line {self.line} (byte {self.offset}) {self.reason}"


class Line(NamedTuple):
    """A line of a file without its line break; lines count from 1."""

    number: int
    offset: int
    text: bytes
    # False for the last line of a file that lacks its line break.
    complete: bool = True

    @property
    def end(self) -> int:
        """The offset of the next line."""
        return self.offset + len(self.text) + 1


def complete_lines(file: int, offset: int = 0, number: int = 0) -> Iterator[Line]:
    """Yield the lines from a byte on, up to the last line break; `number` lines come before."""
    return (line for line in all_lines(file, offset=offset, number=number) if line.complete)


def all_lines(file: int, longest: int | None = None, offset: int = 0, number: int = 0) -> Iterator[Line]:
    """Yield the lines of a file, of which the last one may lack its line break.

    A line that is longer than `longest` bytes raises BrokenDocumentError before it is read whole.
    """
    begun: list[bytes] = []
    position = offset
    while chunk := os.pread(file, _CHUNK, position):
        position += len(chunk)
        end_of_line, *texts = chunk.split(b"\n")
        begun.append(end_of_line)
        if longest is not None and not texts and position - offset > longest:
            raise BrokenDocumentError(f"has a line of more than {longest >> 20} MiB")
        if not texts:
            continue
        for text in (b"".join(begun), *texts[:-1]):
            number += 1
            yield Line(number, offset, text)
            offset += len(text) + 1
        begun = [texts[-1]]
    if rest := b"".join(begun):
        yield Line(number + 1, offset, rest, False)


def document_on(line: Line) -> Line | None:
    """Return the document on a line of a TinyDB file or of a journal, None if the line opens or closes a table."""
    if _STRUCTURE.fullmatch(line.text):
        return None
    start = line.text.find(b"{", 0, _LONGEST_NUMBER)
    if start < 0:
        raise BrokenDocumentError("is not a line that dlbricks writes")
    return Line(line.number, line.offset + start, line.text[start : line.text.rfind(b"}") + 1])


def write_tinydb_file(file: BinaryIO, documents: Iterable[tuple[str, int, bytes]]) -> None:
    """Write at least one document as a file that plain TinyDB opens: its table, number and line, ordered by table."""
    current: str | None = None
    for table, number, text in documents:
        opens = b"%s%s: {" % (b"{" if current is None else b"\n},\n", json.dumps(table).encode())
        file.write(b'%s\n"%d": %s' % (b"," if table == current else opens, number, text))
        current = table
    file.write(b"\n%s\n" % END)


def append(journal: Path, lines: Iterable[bytes], head: bytes) -> None:
    """Add lines: durably if it returns, not at all if it raises; a new file begins with the head.

    The caller holds the store's lock.
    """
    try:
        file = os.open(journal, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise cannot_write(journal, error) from error
    size = os.fstat(file).st_size
    try:
        if not size:
            # Before the first line: a journal that has lines has a durable name, even if its writer was killed.
            _sync_names(journal.parent)
        # A writer that died in mid-line left an incomplete line, which was not acknowledged. End it.
        before = head + b"\n" if not size else b"" if os.pread(file, 1, size - 1) == b"\n" else b"\n"
        left = memoryview(before + b"".join(line + b"\n" for line in lines))
        while left:
            left = left[os.write(file, left) :]
        if sys.platform == "darwin":
            # On macOS fsync leaves the data in the cache of the drive.
            fcntl.fcntl(file, fcntl.F_FULLFSYNC)
        else:
            os.fsync(file)
    except OSError as error:
        # On a full disk a part may have been written. Truncating needs no space.
        with suppress(OSError):
            os.ftruncate(file, size)
        raise cannot_write(journal, error) from error
    finally:
        os.close(file)


def _sync_names(folder: Path) -> None:
    """Flush the names in a store folder, and those in the folders above it, which may be new, too."""
    sync_folder(folder)
    for above in folder.parents:
        # Those that this user cannot list are not new.
        with suppress(PermissionError):
            sync_folder(above)


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
    text = json.dumps(entry.document or {}, separators=(",", ":"), allow_nan=False)
    return f"{head}{'}' if text == '{}' else f',{text[1:]}'}".encode("ascii")


def entry_on(line: bytes) -> JournalEntry:
    """Return the entry on a line."""
    match = _LINE.match(line)
    if match is None:
        raise BrokenDocumentError("is not a line that dlbricks writes")
    action, table = EntryKind(match[1].decode("ascii")), str(_table_named(match[2]))
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


_table_named = lru_cache(json.loads)


def record_on(line: bytes) -> tuple[str, str]:
    """Return the table and UUID of the record on a line that dlbricks wrote, without reading the rest; else nothing."""
    match = _RECORD.match(line)
    return (match[1].decode("ascii"), match[2].decode("ascii")) if match else ("", "")


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


# Rewrites a line of one schema as a line of the next.
Migration = Callable[[bytes], bytes]
# By the schema that each one reads. Schema 1 is the first.
MIGRATIONS: Mapping[int, Migration] = {}
_CHECK = b'{"check":"'
_CHECKED = len(_CHECK) + 8
_SCHEMA = re.compile(rb'\{"schema":(\d+),')


def with_checksum(line: bytes) -> bytes:
    """Return a line with the CRC-32 of the rest as its first field."""
    return b'%s%08x",%s' % (_CHECK, zlib.crc32(line[1:]), line[1:])


def sealed(line: bytes, schema: int = SCHEMA) -> bytes:
    """Return a line that begins with its checksum and its schema."""
    return with_checksum(b'{"schema":%d,%s' % (schema, line[1:]))


def unsealed(
    line: bytes, path: Path, cure: str, schema: int = SCHEMA, migrations: Mapping[int, Migration] = MIGRATIONS
) -> bytes:
    """Return a line without its checksum and schema, as this version writes it.

    Raise BrokenDocumentError if it is damaged, and OtherVersionError if this version cannot read it. `path` names the
    store or file in the error, and `cure` says what to do.
    """
    if not (line.startswith(_CHECK) and line[_CHECKED : _CHECKED + 2] == b'",'):
        raise BrokenDocumentError("does not begin with a checksum")
    rest = line[_CHECKED + 2 :]
    if b"%08x" % zlib.crc32(rest) != line[len(_CHECK) : _CHECKED]:
        raise BrokenDocumentError("does not agree with its checksum")
    line = b"{" + rest
    match = _SCHEMA.match(line)
    if match is None:
        raise written_before_0_2(path, cure)
    written = int(match[1])
    if written > schema:
        raise written_by_newer(path, written, schema)
    line = b"{" + line[match.end() :]
    for older in range(written, schema):
        if older not in migrations:
            raise BrokenDocumentError(f"has the unknown schema {older}")
        line = migrations[older](line)
    return line
