"""The storage keeps the contract of TinyDB, whose own database and tables work on it."""

from pathlib import Path

import pytest
import tinydb
from tinydb import where
from tinydb.middlewares import CachingMiddleware

from dlbricks_tui.store.errors import StoreError
from dlbricks_tui.store.journal import JournalStorage


def opened(folder: Path) -> tinydb.TinyDB:
    return tinydb.TinyDB(folder, storage=JournalStorage)


def change_inside(document: dict[str, dict[str, int]]) -> None:
    document["deep"]["number"] += 1


def test_changes_of_tinydb_are_read_by_the_next_database(tmp_path: Path) -> None:
    with opened(tmp_path) as database:
        table = database.table("mine")
        table.insert_multiple({"deep": {"number": number}} for number in range(3))
        table.update(change_inside, where("deep").number == 1)
        table.remove(doc_ids=[1])
        database.table("other").insert({})
        database.drop_table("other")
    with opened(tmp_path) as database:
        assert database.tables() == {"mine"}
        assert {it.doc_id: it["deep"]["number"] for it in database.table("mine")} == {2: 2, 3: 2}


def test_a_change_writes_one_line(tmp_path: Path) -> None:
    with opened(tmp_path) as database:
        database.insert_multiple({"number": number} for number in range(100))
        before = (tmp_path / "journal-0.jsonl").read_bytes()
        database.update({"number": 7}, doc_ids=[50])
        after = (tmp_path / "journal-0.jsonl").read_bytes()
    assert after.removeprefix(before) == b'{"table":"_default","doc_id":50,"number":7}\n'


def test_documents_of_another_writer_are_kept_and_never_overwritten(tmp_path: Path) -> None:
    with opened(tmp_path / "none") as database:
        assert database.storage.read() is None
        assert database.tables() == set()
    assert not (tmp_path / "none").exists()
    with opened(tmp_path) as one, opened(tmp_path) as other:
        one.insert({"by": "one"})
        read = one.storage.read() or {}
        other.table("other").insert({"by": "other"})
        one.storage.write(read)
        assert one.tables() == {"_default", "other"}
        read = one.storage.read() or {}
        other.insert({"by": "other"})
        with pytest.raises(StoreError, match="document 2 of _default was added by another writer; repeat the change"):
            one.storage.write({**read, "_default": {"2": {"by": "one"}}})
        assert one.all() == [{"by": "one"}, {"by": "other"}]


def test_tinydb_may_keep_documents_in_its_cache_and_write_them_later(tmp_path: Path) -> None:
    storage = CachingMiddleware(JournalStorage)  # type: ignore[no-untyped-call]
    storage.WRITE_CACHE_SIZE = 2
    with tinydb.TinyDB(tmp_path, storage=storage) as database:
        for number in range(5):
            database.insert({"number": number})
        database.remove(where("number") == 1)
    with opened(tmp_path) as database:
        assert [it["number"] for it in database] == [0, 2, 3, 4]
