"""The index on disk: a cache that may be lost, stale or damaged at any time, and then is built again."""

import io
import json
import zipfile
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dlbricks_tui.atomic_write import replace_file
from dlbricks_tui.store.files import Damage
from dlbricks_tui.store.index import COLUMN_TYPES, TEXT_COLUMNS, Index

# Raised with any change to the columns, or to what a document means to them.
_VERSION = 3
_META = "meta"


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of a file an index knows, and the file's size and time of change when it was saved."""

    file: str
    covered: int
    lines: int
    size: int
    modified_ns: int


@dataclass(frozen=True, slots=True)
class SavedIndex:
    """An index with what it covers and the damage that was found on the way."""

    index: Index
    coverage: tuple[Coverage, ...]
    damage: tuple[Damage, ...]


def save_index(path: Path, index: Index, coverage: Sequence[Coverage], damage: Sequence[Damage]) -> None:
    """Saves the index where it can be saved."""
    meta = {
        "version": _VERSION,
        "coverage": [asdict(each) for each in coverage],
        "damage": [asdict(each) for each in damage],
        "texts": {name: index.vocabularies[name].texts for name in TEXT_COLUMNS},
    }
    # To the types of numpy 2 any keyword might be `allow_pickle`.
    columns: dict[str, Any] = {name: index.column(name) for name in COLUMN_TYPES}
    columns[_META] = np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8)
    # In a folder that cannot be written, or on a full disk, each opening builds it anew.
    with suppress(OSError):
        # In memory first: numpy's archive, broken off by a full disk, complains on its own when it is thrown away.
        archive = io.BytesIO()
        np.savez(archive, **columns)
        replace_file(path, lambda file: file.write(archive.getbuffer()))


def load_index(path: Path) -> SavedIndex | None:
    """The saved index, None when there is none that this dlbricks can use."""
    try:
        with np.load(path, allow_pickle=False) as saved:
            meta = json.loads(saved[_META].tobytes())
            if meta["version"] != _VERSION:
                return None
            columns = {name: saved[name].astype(kind, copy=False) for name, kind in COLUMN_TYPES.items()}
        return SavedIndex(
            Index(columns, meta["texts"]),
            tuple(Coverage(**each) for each in meta["coverage"]),
            tuple(Damage(**each) for each in meta["damage"]),
        )
    except (OSError, EOFError, ValueError, KeyError, TypeError, IndexError, zipfile.BadZipFile, zlib.error):
        return None
