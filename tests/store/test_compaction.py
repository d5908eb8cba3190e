import json
from pathlib import Path

import tinydb

from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import TABLES
from dlbricks_tui.store.index import INDEX_NAME
from dlbricks_tui.store.records import Measurement
from tests.store.samples import brick, counts, measurement, one_of_each


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if path.name not in ("lock", INDEX_NAME)}


def test_plain_tinydb_opens_a_compacted_file(tmp_path: Path) -> None:
    with ResultsDatabase(tmp_path) as store:
        store.add(*one_of_each(), *(measurement(brick=brick(number)) for number in range(20)))
        path = store.compact()
    with tinydb.TinyDB(path, access_mode="r") as database:
        assert database.tables() == {"dlbricks", *TABLES}
        measurements = database.table("measurements")
        assert len(measurements) == 21
        assert measurements.count(tinydb.where("brick") == brick(3)) == 1
        assert [document.doc_id for document in measurements.all()] == list(range(1, 22))
        assert database.table("systems").all()[0]["instance_type"] == "c5.xlarge"


def test_compacting_keeps_the_documents_of_the_journal_byte_for_byte(tmp_path: Path) -> None:
    with ResultsDatabase(tmp_path) as store:
        store.add(*one_of_each())
        before = counts(store)
        _, *written = (tmp_path / "journal-0.jsonl").read_bytes().splitlines()
        for _ in range(3):
            content = store.compact().read_bytes()
            assert counts(store) == before
            assert all(text in content for text in written)
        for record in one_of_each():
            assert store.records(type(record)) == [record]
    assert [json.loads(text)["table"] for text in written] == [name for name in json.loads(content) if name in TABLES]


def test_the_previous_generation_is_kept_until_the_next_compaction(tmp_path: Path) -> None:
    with ResultsDatabase(tmp_path) as store:
        store.add(measurement())
        store.compact()
        assert names(tmp_path) == {"journal-0.jsonl", "results-1.json"}
        store.add(measurement())
        store.compact()
        assert names(tmp_path) == {"results-1.json", "journal-1.jsonl", "results-2.json"}
        store.compact()
        assert names(tmp_path) == {"results-2.json", "results-3.json"}


def test_an_empty_store_can_be_compacted(tmp_path: Path) -> None:
    with ResultsDatabase(tmp_path) as store:
        path = store.compact()
        assert not any(counts(store).values())
        store.add(measurement())
    with tinydb.TinyDB(path, access_mode="r") as database:
        assert database.tables() == {"dlbricks"}
    # The draft of a killed compaction is deleted.
    (tmp_path / "results-2.json.4711.new").write_bytes(b'{"dlbricks": {\n"1": {"che')
    with ResultsDatabase(tmp_path) as store:
        assert len(store.select()) == 1
        assert not store.damage
        store.compact()
    assert names(tmp_path) == {"results-1.json", "journal-1.jsonl", "results-2.json"}


def test_a_reader_of_the_previous_generation_keeps_reading(tmp_path: Path) -> None:
    with ResultsDatabase(tmp_path) as reader, ResultsDatabase(tmp_path) as writer:
        record = measurement()
        writer.add(record)
        reader.refresh()
        held = reader.generation
        for _ in range(3):
            writer.compact()
        reader.refresh()
        assert reader.generation is not held
        (row,) = held.index.rows_of("measurements").tolist()
        assert [held.record(row)] == reader.records(Measurement) == [record]
