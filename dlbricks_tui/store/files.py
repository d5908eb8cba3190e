"""The two layouts of documents in a file.

A journal has one document per line. A TinyDB file is one JSON object of tables of numbered documents, as plain TinyDB
reads it, laid out so that each document has a line to itself: `"7": {...},`. One reader serves both, and a damaged line
costs the document on it and no other.
"""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

from dlbricks_tui.store.documents import HEAD, BrokenDocumentError, seal, unseal
from dlbricks_tui.store.migrations import SCHEMA, Document

_CHUNK = 1 << 20
_DOCUMENT_START = b'{"check"'
# Before a document stand its number, quotes, a colon and a space.
_LONGEST_NUMBER = 32
_END = b"}}"
_STRUCTURE = re.compile(rb'\{?"[a-z0-9_]+": \{|\},|\}\}')


@dataclass(frozen=True, slots=True)
class Damage:
    """What in a file cannot be read, and why."""

    file: str
    line: int
    offset: int
    length: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file} line {self.line} (byte {self.offset}) {self.reason}"


class Line(NamedTuple):
    """A line of a file that ends with a line break, without it; lines count from 1."""

    number: int
    offset: int
    text: bytes

    @property
    def end(self) -> int:
        """Where the next line begins."""
        return self.offset + len(self.text) + 1


class Found(NamedTuple):
    """A document that agrees with its checksum, and where its bytes are."""

    offset: int
    length: int
    document: Document


def complete_lines(file: int, offset: int = 0, number: int = 0) -> Iterator[Line]:
    """The lines from a byte on, after so many lines before it; what follows the last line break is left out."""
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


def document_on(line: Line) -> Found | None:
    """The document on a line, None where the line only opens or closes a table."""
    start = line.text.find(_DOCUMENT_START, 0, _LONGEST_NUMBER + len(_DOCUMENT_START))
    if start < 0:
        if _STRUCTURE.fullmatch(line.text):
            return None
        raise BrokenDocumentError("is not as dlbricks writes it")
    text = line.text[start : line.text.rfind(b"}") + 1]
    return Found(line.offset + start, len(text), unseal(text))


def is_end(line: Line) -> bool:
    """Whether this line ends a whole TinyDB file."""
    return line.text == _END


def head(documents: int | None = None) -> bytes:
    """The document that a file begins with; a TinyDB file says there how many others it has."""
    count = {} if documents is None else {"documents": documents}
    return seal({"table": HEAD, "schema": SCHEMA, "format": "dlbricks results", **count}).text


def write_tinydb_file(file: BinaryIO, texts: Iterable[tuple[str, bytes]], documents: int) -> None:
    """Writes documents that come ordered by table as a file that plain TinyDB opens."""
    file.write(b'{"%s": {\n"1": %s' % (HEAD.encode(), head(documents)))
    current, number = HEAD, 1
    for table, text in texts:
        if table == current:
            number += 1
            file.write(b',\n"%d": %s' % (number, text))
        else:
            current, number = table, 1
            file.write(b'\n},\n"%s": {\n"1": %s' % (table.encode(), text))
    file.write(b"\n%s\n" % _END)
