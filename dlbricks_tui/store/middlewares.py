"""The middlewares of the storage, as TinyDB intends: each takes care of one concern, for every line that is written.

A middleware puts one field before the others when a line is written, and takes it away when the line is read.
"""

import re
import zlib
from abc import abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from tinydb.middlewares import Middleware

from dlbricks_tui.store.documents import SCHEMA, BrokenDocumentError
from dlbricks_tui.store.errors import written_before_0_2, written_by_newer
from dlbricks_tui.store.journal import JournalStorage

# Rewrites a line of one schema as a line of the next.
Migration = Callable[[bytes], bytes]
# By the schema that each one reads. Schema 1 is the first.
MIGRATIONS: Mapping[int, Migration] = {}


class LineMiddleware(Middleware):
    """A middleware through which all lines of a journal pass; TinyDB's own calls go to the storage."""

    def __init__(self, storage: Any) -> None:
        super().__init__(storage)
        self.folder = Path()

    def __call__(self, folder: Path) -> "LineMiddleware":
        super().__call__(folder)  # type: ignore[no-untyped-call]
        self.folder = Path(folder)
        cast(JournalStorage, self.storage).pass_lines_through(self.written, self.read_again)
        return self

    @abstractmethod
    def written(self, line: bytes) -> bytes:
        """Return a line as it is written."""

    @abstractmethod
    def read_again(self, line: bytes) -> bytes:
        """Return a line as it was before it was written; raise BrokenDocumentError if it is damaged."""


class ChecksumMiddleware(LineMiddleware):
    """Begins each line with the CRC-32 of the rest: `{"check":"0f1e2d3c",`."""

    def written(self, line: bytes) -> bytes:
        return with_checksum(line)

    def read_again(self, line: bytes) -> bytes:
        return without_checksum(line)


class SchemaMiddleware(LineMiddleware):
    """Begins each line with the number of its schema, and migrates lines of older schemas: `{"schema":1,`."""

    def __init__(self, storage: Any, schema: int = SCHEMA, migrations: Mapping[int, Migration] = MIGRATIONS) -> None:
        super().__init__(storage)
        self._schema = schema
        self._migrations = migrations

    def written(self, line: bytes) -> bytes:
        return with_schema(line, self._schema)

    def read_again(self, line: bytes) -> bytes:
        cure = f"move the folder {self.folder} away, or choose another data folder with --data-dir"
        return without_schema(line, self.folder, cure, self._schema, self._migrations)


_CHECK = b'{"check":"'
_CHECKED = len(_CHECK) + 8
_SCHEMA = re.compile(rb'\{"schema":(\d+),')


def with_checksum(line: bytes) -> bytes:
    """Return a line with the checksum of the rest as its first field."""
    return b'%s%08x",%s' % (_CHECK, zlib.crc32(line[1:]), line[1:])


def without_checksum(line: bytes) -> bytes:
    """Return a line without its checksum; raise BrokenDocumentError if the checksum is wrong."""
    if not (line.startswith(_CHECK) and line[_CHECKED : _CHECKED + 2] == b'",'):
        raise BrokenDocumentError("does not begin with a checksum")
    rest = line[_CHECKED + 2 :]
    if b"%08x" % zlib.crc32(rest) != line[len(_CHECK) : _CHECKED]:
        raise BrokenDocumentError("does not agree with its checksum")
    return b"{" + rest


def with_schema(line: bytes, schema: int = SCHEMA) -> bytes:
    """Return a line with the number of its schema as its first field."""
    return b'{"schema":%d,%s' % (schema, line[1:])


def without_schema(
    line: bytes, path: Path, cure: str, schema: int = SCHEMA, migrations: Mapping[int, Migration] = MIGRATIONS
) -> bytes:
    """Return a line without its schema, as this version writes it; raise OtherVersionError if it cannot be read.

    `path` names the store or file in the error, and `cure` says what to do.
    """
    match = _SCHEMA.match(line)
    if match is None:
        raise written_before_0_2(path, cure)
    if int(match[1]) > schema:
        raise written_by_newer(path, int(match[1]), schema)
    line = b"{" + line[match.end() :]
    for older in range(int(match[1]), schema):
        if older not in migrations:
            raise BrokenDocumentError(f"has the unknown schema {older}")
        line = migrations[older](line)
    return line
