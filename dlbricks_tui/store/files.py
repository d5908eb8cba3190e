"""The files of a store folder: their names, the lines in them, and appending to a journal.

- `results-N.json`: the TinyDB file that compaction N wrote. One JSON object of tables of numbered documents, with each
  document on a separate line: `"7": {...},`.
- `journal-N.jsonl`: the changes after that, one per line. A store without compactions has journal 0 only.

The highest number is in use; the generation before it is kept. A damaged line costs the document on it and no other.
"""

import fcntl
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

from dlbricks_tui.atomic_write import sync_folder
from dlbricks_tui.store.documents import BrokenDocumentError
from dlbricks_tui.store.errors import cannot_read, cannot_write

_NUMBERED = re.compile(r"(results|journal)-(\d+)\.jsonl?")


def base_name(number: int) -> str:
    """Return the name of the TinyDB file of a generation."""
    return f"results-{number}.json"


def journal_name(number: int) -> str:
    """Return the name of the journal of a generation."""
    return f"journal-{number}.jsonl"


@dataclass(frozen=True, slots=True)
class Layout:
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
    except FileNotFoundError:
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
_END = b"}}"
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

    @property
    def end(self) -> int:
        """The offset of the next line."""
        return self.offset + len(self.text) + 1


def complete_lines(file: int, offset: int = 0, number: int = 0) -> Iterator[Line]:
    """Yield the lines from a byte on, up to the last line break; `number` lines come before."""
    for line, complete in _lines(file, offset, number):
        if complete:
            yield line


def all_lines(file: int, longest: int) -> Iterator[Line]:
    """Yield the lines of a file, of which the last one may lack its line break.

    A line that is longer than `longest` bytes raises BrokenDocumentError before it is read whole.
    """
    for line, _ in _lines(file, 0, 0, longest):
        yield line


def _lines(file: int, offset: int, number: int, longest: int | None = None) -> Iterator[tuple[Line, bool]]:
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
            yield Line(number, offset, text), True
            offset += len(text) + 1
        begun = [texts[-1]]
    if rest := b"".join(begun):
        yield Line(number + 1, offset, rest), False


def document_on(line: Line) -> Line | None:
    """Return the document on a line of a TinyDB file or of a journal, None if the line opens or closes a table."""
    if _STRUCTURE.fullmatch(line.text):
        return None
    start = line.text.find(b"{", 0, _LONGEST_NUMBER)
    if start < 0:
        raise BrokenDocumentError("is not a line that dlbricks writes")
    return Line(line.number, line.offset + start, line.text[start : line.text.rfind(b"}") + 1])


def is_end(line: Line) -> bool:
    """Return True if the line ends a complete TinyDB file."""
    return line.text == _END


class NumberedDocument(NamedTuple):
    """A document with the table and the number that it has in a TinyDB file."""

    table: str
    id: int
    text: bytes


def write_tinydb_file(file: BinaryIO, documents: Iterable[NumberedDocument]) -> None:
    """Write at least one document, ordered by table, as a file that plain TinyDB opens."""
    current: str | None = None
    for table, number, text in documents:
        opens = b"%s%s: {" % (b"{" if current is None else b"\n},\n", json.dumps(table).encode())
        file.write(b'%s\n"%d": %s' % (b"," if table == current else opens, number, text))
        current = table
    file.write(b"\n%s\n" % _END)


def append(journal: Path, lines: Iterable[bytes], head: bytes) -> None:
    """Add lines: durably if it returns, not at all if it raises; a new file begins with the head.

    The caller holds the store's lock.
    """
    try:
        file = os.open(journal, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise cannot_write(journal, error) from error
    try:
        _append(file, journal, b"".join(line + b"\n" for line in lines), head + b"\n")
    finally:
        os.close(file)


def _append(file: int, journal: Path, lines: bytes, head: bytes) -> None:
    size = os.fstat(file).st_size
    try:
        # A writer that died in mid-line left an incomplete line, which was not acknowledged. End it.
        before = head if not size else b"" if os.pread(file, 1, size - 1) == b"\n" else b"\n"
        _write(file, before + lines)
        _sync(file)
        if not size:
            sync_folder(journal.parent)
    except OSError as error:
        # On a full disk a part may have been written. Truncating needs no space.
        with suppress(OSError):
            os.ftruncate(file, size)
        raise cannot_write(journal, error) from error


def _write(file: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(file, left) :]


def _sync(file: int) -> None:
    if sys.platform == "darwin":
        # On macOS fsync leaves the data in the cache of the drive.
        fcntl.fcntl(file, fcntl.F_FULLFSYNC)
    else:
        os.fsync(file)
