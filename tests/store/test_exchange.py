import dataclasses
import gzip
import json
from pathlib import Path

import pytest
import tinydb

from dlbricks_tui.store.conditions import where
from dlbricks_tui.store.documents import TABLES, seal, to_document
from dlbricks_tui.store.errors import ExchangeError, NewerStoreError
from dlbricks_tui.store.exchange import export_file, export_selection, import_file
from dlbricks_tui.store.files import write_tinydb_file
from dlbricks_tui.store.migrations import Document
from dlbricks_tui.store.queries import counts, records_of, select
from dlbricks_tui.store.records import BrickForm, Measurement, Runtime, System
from dlbricks_tui.store.store import Store
from tests.store.samples import brick, form, measurement, one_of_each, run, runtime, system


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    """A file with a record of every kind, from a store of several generations."""
    path = tmp_path / "exported.json"
    with Store(tmp_path / "owner") as store:
        store.add(*one_of_each())
        store.compact()
        store.add(form(1), measurement(brick=brick(1), when="2026-11-20T08:00:00+00:00"), measurement())
        assert export_file(store.generation, [], path) == 4
    return path


def write_file(path: Path, *documents: Document) -> Path:
    with path.open("wb") as file:
        write_tinydb_file(file, [(each["table"], seal(each).text) for each in documents], len(documents))
    return path


def test_export_import_export_gives_the_same_bytes(exported: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.json"
    with Store(tmp_path / "vendor") as store:
        report = import_file(store, exported)
        assert (report.new, report.known, report.conflicts, report.refused) == (11, 0, [], [])
        export_file(store.generation, [], again)
    assert again.read_bytes() == exported.read_bytes()


def test_a_packed_file_is_imported_like_what_it_holds(exported: Path, tmp_path: Path) -> None:
    packed, again = tmp_path / "exported.json.gz", tmp_path / "again.json"
    packed.write_bytes(gzip.compress(exported.read_bytes()))
    with Store(tmp_path / "vendor") as store:
        assert import_file(store, packed).new == 11
        export_file(store.generation, [], again)
        packed.write_bytes(packed.read_bytes()[:-30])
        with pytest.raises(ExchangeError, match="is packed, and not all of it is there"):
            import_file(store, packed)
    assert again.read_bytes() == exported.read_bytes()


def test_importing_twice_changes_nothing(exported: Path, tmp_path: Path) -> None:
    with Store(tmp_path / "vendor") as store:
        import_file(store, exported)
        report = import_file(store, exported)
        assert (report.new, report.known) == (0, 11)
        assert counts(store.generation)["measurements"] == 3


def test_results_of_two_stores_come_together(exported: Path, tmp_path: Path) -> None:
    with Store(tmp_path / "vendor") as store:
        own = measurement(system="other")
        store.add(own, form(), system())
        assert import_file(store, exported).new == 9
        assert own in records_of(store.generation, Measurement)


def test_an_export_is_a_tinydb_file_that_describes_itself(exported: Path) -> None:
    with tinydb.TinyDB(exported, access_mode="r") as database:
        assert database.tables() == {"dlbricks", *TABLES}
        assert database.table("bricks").all()[0]["canonical"]


def test_an_export_of_some_results_takes_along_what_they_refer_to_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "some.json"
    with Store(tmp_path / "owner") as store:
        store.add(*one_of_each(), form(1), system("other"), runtime("other"), run("r2"))
        store.add(measurement(brick=brick(1), system="other", runtime="other", run="r2"))
        assert export_file(store.generation, where(system="other"), path) == 1
    with Store(tmp_path / "vendor") as store:
        import_file(store, path)
        assert records_of(store.generation, BrickForm) == [form(1)]
        assert records_of(store.generation, System) == [system("other")]
        assert records_of(store.generation, Runtime) == [runtime("other")]
        assert {table: count for table, count in counts(store.generation).items() if count} == {
            "bricks": 1, "systems": 1, "runtimes": 1, "runs": 1, "measurements": 1
        }  # fmt: skip


def test_a_result_that_says_something_else_than_the_stored_one_is_kept_beside_it(tmp_path: Path) -> None:
    stored = measurement(1.0)
    other = dataclasses.replace(measurement(2.0), uuid=stored.uuid)
    path = write_file(tmp_path / "file.json", to_document(other))
    with Store(tmp_path / "store") as store:
        store.add(stored)
        report = import_file(store, path)
        (conflict,) = report.conflicts
        assert (report.new, conflict.table, conflict.stored) == (1, "measurements", stored.uuid)
        assert records_of(store.generation, Measurement) == [
            stored,
            dataclasses.replace(other, uuid=conflict.imported),
        ]
        again = import_file(store, path)
        assert (again.new, again.known, again.conflicts) == (0, 1, [])


def test_a_file_that_plain_tinydb_has_written_anew_can_be_imported(exported: Path, tmp_path: Path) -> None:
    with tinydb.TinyDB(exported) as database:
        database.table("mine").insert({"note": "added by hand"})
        database.table("measurements").update({"context": "changed by hand"}, doc_ids=[1])
    assert exported.read_bytes().count(b"\n") == 0
    with Store(tmp_path / "vendor") as store:
        report = import_file(store, exported)
    assert report.new == 10
    assert [str(each).partition(") ")[2] for each in report.refused] == [
        "(document 1 of table measurements) does not agree with its checksum",
        "(document 1 of table mine) does not agree with its checksum",
    ]


def test_the_file_of_a_compacted_store_can_be_imported(tmp_path: Path) -> None:
    with Store(tmp_path / "owner") as store:
        store.add(*one_of_each())
        path = store.compact()
    with Store(tmp_path / "vendor") as store:
        assert import_file(store, path).new == 8


def test_a_journal_is_no_export(tmp_path: Path) -> None:
    with Store(tmp_path / "owner") as store:
        store.add(*one_of_each())
        with pytest.raises(ExchangeError, match="is part of a store"):
            import_file(store, tmp_path / "owner" / "journal-0.jsonl")


def test_damaged_lines_are_named_and_the_others_imported(exported: Path, tmp_path: Path) -> None:
    content = exported.read_bytes()
    exported.write_bytes(content.replace(b'"context":"plain"', b'"context":"plein"', 1))
    with Store(tmp_path / "vendor") as store:
        report = import_file(store, exported)
    assert report.new == 10
    assert [each.reason for each in report.refused] == ["does not agree with its checksum"]


def test_a_file_that_was_cut_off_gives_what_it_has(exported: Path, tmp_path: Path) -> None:
    exported.write_bytes(exported.read_bytes()[:-200])
    with Store(tmp_path / "vendor") as store:
        report = import_file(store, exported)
    assert (report.new, len(report.refused)) == (10, 1)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"key": "ab" * 32}, "has a brick key that is not the hash of its canonical form"),
        ({"uuid": "ab" * 16}, "does not say what its uuid stands for"),
        ({"canonical": 5}, "has a wrong value: 5 is no text"),
        ({"table": "secrets"}, "lacks 'secrets'"),
        ({"schema": "1"}, "has a wrong value"),
        ({"schema": 0}, "lacks 0"),
    ],
)
def test_a_forged_brick_is_refused(tmp_path: Path, change: Document, complaint: str) -> None:
    path = write_file(tmp_path / "file.json", {**to_document(form()), **change}, to_document(form(1)))
    with Store(tmp_path / "store") as store:
        report = import_file(store, path)
        assert records_of(store.generation, BrickForm) == [form(1)]
    assert [each.reason for each in report.refused] == [complaint] or complaint in report.refused[0].reason


@pytest.mark.parametrize(
    "change",
    [{"uuid": "xyz"}, {"uuid": "ab"}, {"when": "yesterday"}, {"when": "2026-11-21T08:00:00"}, {"samples_ms": {"a": 1}}],
)
def test_a_forged_measurement_is_refused(tmp_path: Path, change: Document) -> None:
    path = write_file(tmp_path / "file.json", {**to_document(measurement()), **change}, to_document(measurement()))
    with Store(tmp_path / "store") as store:
        report = import_file(store, path)
        assert (report.new, len(report.refused)) == (1, 1)
        assert len(select(store.generation)) == 1


def test_a_file_of_a_newer_version_is_refused_whole(tmp_path: Path) -> None:
    path = write_file(tmp_path / "file.json", {**to_document(form()), "schema": 99})
    with Store(tmp_path / "store") as store, pytest.raises(NewerStoreError, match=r"file.json was written by a newer"):
        import_file(store, path)


@pytest.mark.parametrize("content", [b"nonsense\n", b"{", b'{"a": [1, 2]}', b"[" * 100_000, b"\x00\xff" * 100, b'"x"'])
def test_a_file_of_something_else_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(content)
    with Store(tmp_path / "store") as store, pytest.raises(ExchangeError, match=r"nothing in .*file.json can be read"):
        import_file(store, path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with (
        Store(tmp_path / "store") as store,
        pytest.raises(ExchangeError, match=r"cannot read .*none.json: No such file"),
    ):
        import_file(store, tmp_path / "none.json")


def test_an_export_to_nowhere_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    with Store(tmp_path / "store") as store, pytest.raises(ExchangeError, match=r"cannot write .*: No such file"):
        export_file(store.generation, [], tmp_path / "nowhere" / "file.json")


def test_an_export_replaces_a_file_whole(exported: Path, tmp_path: Path) -> None:
    with Store(tmp_path / "empty") as store:
        export_file(store.generation, [], exported)
    assert json.loads(exported.read_bytes()).keys() == {"dlbricks"}
    assert {path.name for path in tmp_path.iterdir()} == {"owner", "exported.json"}


def test_some_results_are_exported_with_what_they_refer_to_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "some.json"
    with Store(tmp_path / "owner") as store:
        store.add(form(0), form(1), system(), runtime(), measurement(brick=brick(0)), measurement(brick=brick(1)))
        chosen = select(store.generation, where(brick=brick(1)))
        assert export_selection(chosen, path) == 1
    with Store(tmp_path / "vendor") as store:
        import_file(store, path)
        assert [it.key for it in records_of(store.generation, BrickForm)] == [brick(1)]
        assert [it.brick for it in records_of(store.generation, Measurement)] == [brick(1)]
        assert len(records_of(store.generation, System)) == 1
