"""Fixtures and names for TinyDB's own tests, so that they run on the journal; pytest loads it as a plugin.

Each name of TinyDB that its tests import is replaced by ours: the database, and both storages. The environment variable
`DATABASE` says which database: `indexed`, ours with its tables, or `plain`, TinyDB's own on our storage.
"""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tinydb
import tinydb.database
import tinydb.storages

from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.journal import JournalStorage


class MemoryStorage(JournalStorage):
    """A journal in a folder of its own."""

    def __init__(self) -> None:
        super().__init__(Path(tempfile.mkdtemp()))


class JSONStorage(JournalStorage):
    """A journal in a folder, whatever the options of TinyDB's JSON file are."""

    def __init__(self, path: Path, **_: Any) -> None:
        super().__init__(path)


class Indexed(ResultsDatabase):
    """Our database, which a test may give another storage."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        tinydb.database.TinyDB.__init__(self, *arguments, **options)


class Plain(tinydb.database.TinyDB):
    """TinyDB's own database and tables on our storage."""

    default_storage_class: Any = JSONStorage


Indexed.__name__ = Plain.__name__ = "TinyDB"
tinydb.TinyDB = Indexed if os.environ["DATABASE"] == "indexed" else Plain  # type: ignore[misc]
tinydb.JSONStorage = tinydb.storages.JSONStorage = JSONStorage  # type: ignore[misc, assignment]
tinydb.storages.MemoryStorage = MemoryStorage  # type: ignore[misc, assignment]


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Any]:
    """Return a database with three documents, as TinyDB's own fixture does."""
    database = tinydb.TinyDB(tmp_path / "test.db")
    database.drop_tables()
    database.insert_multiple({"int": 1, "char": char} for char in "abc")
    yield database
