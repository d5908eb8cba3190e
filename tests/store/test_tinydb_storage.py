from pathlib import Path

import pytest
import tinydb

from dlbricks_tui.store.documents import TABLES
from dlbricks_tui.store.errors import StoreError
from dlbricks_tui.store.queries import counts, records_of, select
from dlbricks_tui.store.records import Measurement, System
from dlbricks_tui.store.store import Store
from dlbricks_tui.store.tinydb_storage import open_tinydb
from tests.store.samples import brick, measurement, one_of_each, system


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A store with a record of every kind, part compacted and part in the journal."""
    with Store(tmp_path) as store:
        store.add(*one_of_each())
        store.compact()
        store.add(measurement(brick=brick(1)), measurement(brick=brick(2)))
    return tmp_path


def test_tinydb_finds_stored_records(filled: Path) -> None:
    with open_tinydb(filled) as database:
        assert database.tables() == set(TABLES)
        table = database.table("measurements")
        assert len(table) == 3
        assert [each["brick"] for each in table.search(tinydb.where("brick") == brick(2))] == [brick(2)]
        assert table.count(tinydb.where("statistics").trimmed_mean_ms < 2) == 3


def test_an_empty_store_is_an_empty_database(tmp_path: Path) -> None:
    with open_tinydb(tmp_path) as database:
        assert database.tables() == set()


def test_a_change_by_tinydb_adds_a_line_to_the_journal(filled: Path) -> None:
    journal = filled / "journal-1.jsonl"
    before = journal.read_bytes()
    with open_tinydb(filled) as database:
        table = database.table("measurements")
        table.update({"flags": ["by hand"]}, tinydb.where("brick") == brick(1))
        assert [each["brick"] for each in table.search(tinydb.where("flags") == ["by hand"])] == [brick(1)]
    after = journal.read_bytes()
    assert after.startswith(before)
    assert after.count(b"\n") == before.count(b"\n") + 2
    with Store(filled) as store:
        flagged = [each for each in records_of(store.generation, Measurement) if each.flags == ("by hand",)]
        assert [each.brick for each in flagged] == [brick(1)]


def test_inserts_and_removals_by_tinydb_are_stored(filled: Path) -> None:
    with open_tinydb(filled) as database:
        table = database.table("measurements")
        copy = {name: value for name, value in table.all()[0].items() if name != "uuid"}
        number = table.insert({**copy, "context": "blocked"})
        inserted = table.get(doc_id=number)
        assert inserted is not None
        assert inserted["context"] == "blocked"
        table.remove(tinydb.where("brick") == brick(2))
        assert table.get(doc_id=number) == inserted
    with Store(filled) as store:
        assert sorted(each.context for each in records_of(store.generation, Measurement)) == [
            "blocked",
            "plain",
            "plain",
        ]


def test_a_changed_definition_gets_another_uuid(filled: Path) -> None:
    with open_tinydb(filled) as database:
        database.table("systems").update({"cores": 64})
    with Store(filled) as store:
        assert records_of(store.generation, System) == [system(cores=64)]


def test_documents_that_are_not_records_are_refused(filled: Path) -> None:
    with open_tinydb(filled) as database:
        with pytest.raises(StoreError, match="of table measurements is not a record of dlbricks: it lacks 'when'"):
            database.table("measurements").insert({"note": "mine"})
        with pytest.raises(StoreError, match="of table mine is not a record"):
            database.table("mine").insert({"note": "mine"})
        assert len(database.table("measurements")) == 3


def test_records_added_by_another_process_are_kept(filled: Path) -> None:
    with open_tinydb(filled) as database:
        table = database.table("measurements")
        assert len(table) == 3
        with Store(filled) as other:
            other.add(measurement(brick=brick(3)))
        table.remove(tinydb.where("brick") == brick(2))
        assert {each["brick"] for each in table} == {brick(0), brick(1), brick(3)}


def test_dropping_tables_deletes_their_records(filled: Path) -> None:
    with open_tinydb(filled) as database:
        database.drop_table("measurements")
        with Store(filled) as store:
            assert counts(store.generation)["measurements"] == 0
            assert len(select(store.generation)) == 1
        database.drop_tables()
    with Store(filled) as store:
        assert not any(counts(store.generation).values())
