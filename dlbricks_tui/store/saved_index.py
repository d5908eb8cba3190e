"""The index on the disk, so that the next process opens quickly.

It is a cache: it is built again if it is missing, stale or damaged. The file begins with a line of JSON; the columns
follow.
"""

import json
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from dlbricks_tui.atomic_write import replace_file
from dlbricks_tui.regular_files import open_regular
from dlbricks_tui.store.documents import TABLES
from dlbricks_tui.store.files import Damage
from dlbricks_tui.store.index import COLUMN_TYPES, TEXT_COLUMNS, Index, KnownTable

INDEX_NAME = "index.bin"
# Raise it with any change to the columns, or to how documents fill them.
_VERSION = 3
# The table of records that came after it. A version of dlbricks without it indexes its documents without columns.
_LATER_TABLES = ("provenance",)


@dataclass(frozen=True, slots=True)
class IndexedPart:
    """The part of a file that an index covers, and the file's size and time when the index was saved."""

    file: str
    covered: int
    lines: int
    size: int
    modified_ns: int


@dataclass(frozen=True, slots=True)
class SavedIndex:
    """An index, the files it covers and the damage found in them."""

    index: Index
    coverage: tuple[IndexedPart, ...]
    damage: tuple[Damage, ...]


def save_index(folder: Path, index: Index, coverage: Sequence[IndexedPart], damage: Sequence[Damage]) -> None:
    """Save the index; a folder that cannot be written is no error."""
    columns: list[Any] = [index.stored(name).view(np.uint8) for name in COLUMN_TYPES]
    head = {
        "version": _VERSION,
        "rows": index.rows,
        "coverage": [asdict(each) for each in coverage],
        "damage": [asdict(each) for each in damage],
        "tables": {name: asdict(table) for name, table in index.known_tables.items()},
        "record_tables": list(TABLES),
        "texts": {name: index.vocabularies[name].texts for name in TEXT_COLUMNS},
    }
    text = json.dumps(head).encode()
    check = zlib.crc32(text)
    for column in columns:
        check = zlib.crc32(column, check)

    def write(file: BinaryIO) -> None:
        file.writelines([b"%08x" % check, text, b"\n", *columns])

    # Without a saved index each opening builds it again.
    with suppress(OSError):
        replace_file(folder / INDEX_NAME, write)


def _has_columns(head: Mapping[str, Any]) -> bool:
    """Return whether the version that saved an index knew all tables of records in it."""
    unknown = [name for name in _LATER_TABLES if name not in head.get("record_tables", ())]
    return not any(name in head["tables"] for name in unknown)


def load_index(folder: Path) -> SavedIndex | None:
    """Return the saved index, None if there is none or this version cannot use it."""
    try:
        with open_regular(folder / INDEX_NAME) as file:
            stated, text = file.read(8), file.readline()
            head = json.loads(text)
            if head["version"] != _VERSION or not _has_columns(head):
                return None
            check = zlib.crc32(text.removesuffix(b"\n"))
            columns: dict[str, Any] = {}
            for name, kind in COLUMN_TYPES.items():
                columns[name] = np.fromfile(file, dtype=kind, count=head["rows"])
                check = zlib.crc32(columns[name].view(np.uint8), check)
            if stated != b"%08x" % check or file.read(1):
                return None
        return SavedIndex(
            Index(columns, head["texts"], {name: KnownTable(**table) for name, table in head["tables"].items()}),
            tuple(IndexedPart(**each) for each in head["coverage"]),
            tuple(Damage(**each) for each in head["damage"]),
        )
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, MemoryError, RecursionError):
        return None
