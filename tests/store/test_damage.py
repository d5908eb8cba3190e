"""Damaged lines are counted, named and set aside, a damaged index is never used; everything else is kept."""

import json
import os
import resource
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dlbricks_tui.store import journal
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import DamagedResultError, OtherVersionError, StoreError, to_document
from dlbricks_tui.store.files import layout_of, with_checksum
from dlbricks_tui.store.generation import Generation
from dlbricks_tui.store.index import COLUMN_TYPES, INDEX_NAME, Index
from dlbricks_tui.store.journal import JournalStorage
from dlbricks_tui.store.records import Measurement
from dlbricks_tui.store.selections import OLDEST_FIRST
from dlbricks_tui.store.verification import verify
from tests.store.processes import run_python
from tests.store.samples import brick, form, line_of_record, measurement, one_of_each

RECORDS = [measurement(brick=brick(number), uuid=f"{number + 1:032x}") for number in range(6)]
anywhere = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """A store with six measurements in its journal."""
    folder = tmp_path / "store"
    with ResultsDatabase(folder) as store:
        store.add(*RECORDS)
    return folder


@pytest.fixture
def compacted(filled: Path) -> Path:
    """A store with six measurements in a TinyDB file, and no generation before it."""
    with ResultsDatabase(filled) as store:
        store.compact()
    (filled / "journal-0.jsonl").unlink()
    return filled


def readable(folder: Path) -> list[Measurement]:
    with ResultsDatabase(folder) as store:
        return store.records(Measurement)


@anywhere
@given(st.data())
def test_a_journal_torn_at_any_byte_keeps_every_whole_line(filled: Path, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        content = (filled / "journal-0.jsonl").read_bytes()
        torn = content[: data.draw(st.integers(0, len(content)))]
        Path(folder, "journal-0.jsonl").write_bytes(torn)
        whole = max(0, torn.count(b"\n") - 1)
        assert readable(Path(folder)) == RECORDS[:whole]
        with ResultsDatabase(Path(folder)) as store:
            # The next line is separate from the torn line before it.
            added = measurement()
            store.add(added)
            assert store.records(Measurement) in (
                [*RECORDS[:whole], added],
                # Only the line break was missing: the line is complete, though not acknowledged.
                [*RECORDS[: whole + 1], added],
            )


@anywhere
@given(st.data())
def test_a_flipped_bit_anywhere_in_a_journal_costs_at_most_its_line(filled: Path, data: st.DataObject) -> None:
    content = bytearray((filled / "journal-0.jsonl").read_bytes())
    position = data.draw(st.integers(0, len(content) - 1))
    content[position] ^= 1 << data.draw(st.integers(0, 7))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "journal-0.jsonl").write_bytes(content)
        line = bytes(content[:position]).count(b"\n") + 1
        # A line break that is none any more joins two lines; line 1 is the head.
        lost = {line - 2} | ({line - 1} if line < 7 and bytes(content).count(b"\n") < 7 else set())
        with ResultsDatabase(Path(folder)) as store:
            kept = store.records(Measurement)
            assert all(record in kept for number, record in enumerate(RECORDS) if number not in lost)
            assert all(record in RECORDS for record in kept)
            named = store.damage[0].line == line if store.damage else store.generation.unfinished_bytes > 0
            assert named


@anywhere
@given(st.data())
def test_a_flipped_bit_anywhere_in_a_compacted_file_costs_at_most_its_line(
    compacted: Path, data: st.DataObject
) -> None:
    content = bytearray((compacted / "results-1.json").read_bytes())
    position = data.draw(st.integers(0, len(content) - 1))
    content[position] ^= 1 << data.draw(st.integers(0, 7))
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "results-1.json").write_bytes(content)
        kept = readable(Path(folder))
        assert all(record in RECORDS for record in kept)
        assert len(kept) >= len(RECORDS) - 2


def test_damaged_lines_are_named_and_set_aside_by_the_next_compaction(filled: Path) -> None:
    journal = filled / "journal-0.jsonl"
    lines = journal.read_bytes().split(b"\n")
    lines[2] = lines[2].replace(b"plain", b"ploin")
    journal.write_bytes(b"\n".join(lines))
    with ResultsDatabase(filled) as store:
        assert store.records(Measurement) == [RECORDS[0], *RECORDS[2:]]
        (damage,) = store.damage
        offset = len(lines[0]) + len(lines[1]) + 2
        assert str(damage) == f"journal-0.jsonl line 3 (byte {offset}) does not agree with its checksum"
        store.compact()
        assert not store.damage
        assert store.records(Measurement) == [RECORDS[0], *RECORDS[2:]]
    assert lines[2] in (filled / "set-aside-0.txt").read_bytes()


def test_a_truncated_compacted_file_reports_how_much_is_left(compacted: Path) -> None:
    path = compacted / "results-1.json"
    content = path.read_bytes()
    path.write_bytes(content[: content.index(b'"4": ') + 30])
    with ResultsDatabase(compacted) as store:
        assert store.records(Measurement) == RECORDS[:3]
        assert "is cut off (3 of 6 documents come before it)" in str(store.damage[-1])


def test_damaged_records_of_a_compacted_file_are_read_from_the_previous_generation(filled: Path) -> None:
    late = measurement()
    expected = sorted([*(record.uuid for record in RECORDS[:4]), late.uuid])
    with ResultsDatabase(filled) as store:
        store.delete([RECORDS[5].uuid])
        store.compact()
        store.add(late)
        store.delete([RECORDS[4].uuid])
    path = filled / "results-1.json"
    content = path.read_bytes()
    path.write_bytes(content[: content.index(b'"3": ') + 30])
    with ResultsDatabase(filled) as store:
        assert sorted(record.uuid for record in store.records(Measurement)) == expected
        assert store.damage
        assert verify(filled).recovered == 2
    # A missing file is replaced in the same way.
    path.unlink()
    with ResultsDatabase(filled) as store:
        assert sorted(record.uuid for record in store.records(Measurement)) == expected
        store.compact()
    assert sorted(record.uuid for record in readable(filled)) == expected
    assert not verify(filled).damage


def test_a_compaction_takes_from_the_previous_generation_what_was_damaged_behind_the_saved_index(filled: Path) -> None:
    with ResultsDatabase(filled) as store:
        path = store.compact()
    assert (filled / INDEX_NAME).exists()
    before, content = path.stat(), path.read_bytes()
    path.write_bytes(content.replace(b'"plain"', b'"ploin"', 1))
    # A disk that loses bits changes no time.
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with ResultsDatabase(filled) as store:
        store.compact()
        assert sorted(record.uuid for record in store.records(Measurement)) == [record.uuid for record in RECORDS]
    assert not verify(filled).damage


def test_a_lost_compacted_file_and_one_of_another_kind_are_named(compacted: Path) -> None:
    late = measurement()
    with ResultsDatabase(compacted) as store:
        store.add(late)
    (compacted / "results-1.json").unlink()
    with ResultsDatabase(compacted) as store:
        assert str(store.damage[0]).startswith("results-1.json")
        assert "missing" in str(store.damage[0])
    (compacted / "results-1.json").write_bytes(b"\x00\xff nonsense\n" * 3)
    with ResultsDatabase(compacted) as store:
        assert store.records(Measurement) == [late]
        assert [each.file for each in store.damage] == ["results-1.json"] * 4


def test_damage_to_an_open_store_costs_only_the_damaged_records(filled: Path) -> None:
    with ResultsDatabase(filled) as store:
        found = store.select(order=OLDEST_FIRST)
        journal = filled / "journal-0.jsonl"
        content = journal.read_bytes()
        with journal.open("r+b") as file:
            file.seek(content.index(b'"samples_ms"'))
            file.write(b"#")
        with pytest.raises(
            DamagedResultError, match=r"journal-0.jsonl line 2 \(byte \d+\) does not agree .* set aside"
        ):
            found.result(0)
        assert store.records(Measurement) == RECORDS[1:]
        assert len(store.damage) == 1


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Let no file grow beyond so many bytes, as if the disk were full."""
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


def test_a_full_disk_without_room_for_the_index_loses_nothing(
    filled: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    complaints: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)
    with ResultsDatabase(filled) as store, files_of_at_most(100):
        store.generation.save_index()
    # numpy's archives complain by themselves when they are broken off.
    assert (complaints, capfd.readouterr()) == ([], ("", ""))
    assert readable(filled) == RECORDS


def test_a_full_disk_loses_no_acknowledged_result(filled: Path) -> None:
    added, *refused = (measurement(uuid=f"{number + 100:032x}") for number in range(3))
    complaint = rf"cannot write {filled}/%s: File too large; the store stays as it was.*free some space"
    with ResultsDatabase(filled) as store:
        with files_of_at_most((filled / "journal-0.jsonl").stat().st_size + 1000):
            assert store.add(added) == 1
            for record in refused:
                with pytest.raises(StoreError, match=complaint % "journal-0.jsonl"):
                    store.add(record)
        with files_of_at_most(1000), pytest.raises(StoreError, match=f"cannot write {filled}/results-1.json: File too"):
            store.compact()
    assert readable(filled) == [*RECORDS, added]
    assert not verify(filled).damage
    assert verify(filled).unfinished_bytes == 0
    assert not list(filled.glob("*.new"))


def test_a_read_only_store_can_be_read_and_an_unreadable_one_is_reported(filled: Path, tmp_path: Path) -> None:
    unreadable = tmp_path / "unreadable"
    shutil.copytree(filled, unreadable)
    (unreadable / "journal-0.jsonl").chmod(0o000)
    for file in (*filled.iterdir(), filled):
        file.chmod(0o555)
    code = """
import sys
from pathlib import Path
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.errors import UserError
from tests.store.samples import measurement
with ResultsDatabase(Path(sys.argv[1])) as store:
    print(len(store.select()))
    for work in (lambda: store.add(measurement()), store.compact, lambda: ResultsDatabase(Path(sys.argv[2]))):
        try:
            work()
        except UserError as error:
            print(error)
"""
    count, adding, compacting, opening = run_python(code, str(filled), str(unreadable)).stdout.splitlines()
    filled.chmod(0o755)
    assert count == "6"
    assert adding == compacting
    assert adding.startswith(f"cannot write {filled / 'lock'}: Permission denied")
    assert adding.endswith("make it writable, or choose another data folder")
    assert opening.startswith(f"cannot read {unreadable / 'journal-0.jsonl'}: Permission denied")


def test_a_file_in_place_of_the_store_folder_is_reported(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("not a folder")
    with pytest.raises(StoreError, match="store: Not a directory"):
        ResultsDatabase(tmp_path / "store")


@pytest.mark.parametrize("compacting", [False, True])
def test_a_store_of_a_newer_version_is_refused_and_unchanged(filled: Path, compacting: bool) -> None:
    if compacting:
        with ResultsDatabase(filled) as store:
            store.compact()
    newer = line_of_record(measurement(), schema=99)
    journal = filled / ("journal-1.jsonl" if compacting else "journal-0.jsonl")
    with journal.open("ab") as file:
        file.write(newer + b"\n")
    before = {path.name: path.read_bytes() for path in filled.iterdir()}
    with pytest.raises(OtherVersionError, match=r"written by a newer dlbricks \(schema 99, .* update dlbricks"):
        ResultsDatabase(filled)
    with pytest.raises(OtherVersionError):
        verify(filled)
    assert {path.name: path.read_bytes() for path in filled.iterdir()} == before


@pytest.mark.parametrize("schema", [1, 2, 3])
def test_a_store_of_an_unreleased_version_is_refused_and_unchanged(tmp_path: Path, schema: int) -> None:
    head = {"table": "dlbricks", "schema": schema, "format": "dlbricks results"}
    documents = [head, {**to_document(measurement()), "schema": schema}]
    journal = tmp_path / "journal-0.jsonl"
    lines = (with_checksum(json.dumps(document).encode()) for document in documents)
    journal.write_bytes(b"".join(line + b"\n" for line in lines))
    before = journal.read_bytes()
    complaint = rf"{tmp_path} was written by a dlbricks before version 0\.2\.0, .* move the folder {tmp_path} away, or"
    with pytest.raises(OtherVersionError, match=complaint):
        ResultsDatabase(tmp_path)
    with pytest.raises(OtherVersionError, match=complaint):
        verify(tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {journal.name: before}


def test_an_upgrade_of_an_open_store_is_noticed_before_writing(filled: Path) -> None:
    journal = filled / "journal-0.jsonl"
    with ResultsDatabase(filled) as store:
        with journal.open("ab") as file:
            file.write(line_of_record(measurement(), schema=99) + b"\n")
        before = journal.read_bytes()
        with pytest.raises(OtherVersionError):
            store.add(measurement())
        assert journal.read_bytes() == before


MANY = [measurement(brick=brick(number % 50)) for number in range(60)]


def same(one: Index, other: Index) -> bool:
    return (
        all((one.column(name) == other.column(name)).all() for name in COLUMN_TYPES)
        and all(one.vocabularies[name].texts == other.vocabularies[name].texts for name in one.vocabularies)
        and (one.names_of("bricks", "brick") == other.names_of("bricks", "brick")).all()
        and list(one.rows_of_brick(brick(7))) == list(other.rows_of_brick(brick(7)))
    )


@pytest.fixture
def indexed(tmp_path: Path) -> Path:
    """A store whose index is saved."""
    with ResultsDatabase(tmp_path) as store:
        store.add(*one_of_each(), *MANY)
        # Stores as small as this one have none.
        assert not (tmp_path / INDEX_NAME).exists()
        store.generation.save_index()
    return tmp_path


def built_anew(folder: Path) -> Index:
    decode = JournalStorage(folder).decode
    return Generation(folder, layout_of(folder), decode, trust_saved_index=False).index


def test_a_saved_index_equals_a_rebuilt_one_and_is_completed_by_later_lines(indexed: Path) -> None:
    with ResultsDatabase(indexed) as store:
        assert same(store.generation.index, built_anew(indexed))
        store.add(form(3), measurement(brick=brick(7)))
        store.delete([MANY[0].uuid, MANY[7].uuid])
    with ResultsDatabase(indexed) as store:
        assert same(store.generation.index, built_anew(indexed))
        assert len(store.select()) == 61


def test_the_index_is_saved_once_enough_lines_are_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "_LEAST_WORTH_SAVING", 7)
    saved = tmp_path / INDEX_NAME
    with ResultsDatabase(tmp_path) as store:
        store.add(*MANY[:5])
        assert not saved.exists()
        store.add(MANY[5])
        assert saved.exists()
        before = saved.read_bytes()
        store.add(*MANY[6:10])
        assert saved.read_bytes() == before
    assert saved.read_bytes() == before


@pytest.mark.parametrize(("change", "results"), [("flipped", 61), ("truncated", 14), ("compacted", 61)])
def test_a_saved_index_is_ignored_after_the_file_was_changed(indexed: Path, change: str, results: int) -> None:
    file = indexed / "journal-0.jsonl"
    content = bytearray(file.read_bytes())
    if change == "compacted":
        with ResultsDatabase(indexed) as store:
            store.compact()
        file.unlink()
        file = indexed / "results-1.json"
        content = bytearray(file.read_bytes())
    if change == "truncated":
        content = bytearray(b"".join(content.splitlines(keepends=True)[:25]))
    else:
        content[content.rindex(b'"samples_ms"')] ^= 1
    file.write_bytes(content)
    with ResultsDatabase(indexed) as store:
        assert len(store.select()) == results
        assert len(store.damage) == (change != "truncated")


def test_a_saved_index_is_ignored_once_a_longer_journal_of_another_store_is_in_place(indexed: Path) -> None:
    with ResultsDatabase(indexed / "other") as other:
        # The lines are as long as those of the first one.
        other.add(*one_of_each(), *(measurement(brick=brick(number % 50)) for number in range(61)))
    shutil.copy(indexed / "other" / "journal-0.jsonl", indexed)
    with ResultsDatabase(indexed) as store:
        assert same(store.generation.index, built_anew(indexed))


def test_an_open_store_whose_folder_is_moved_away_begins_anew(filled: Path, tmp_path: Path) -> None:
    added = measurement()
    with ResultsDatabase(filled) as store:
        filled.rename(tmp_path / "old")
        store.add(added)
        assert store.records(Measurement) == [added]
    assert readable(tmp_path / "old") == RECORDS


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=30)
@given(st.data())
def test_a_damaged_index_is_never_used(indexed: Path, data: st.DataObject) -> None:
    path = indexed / INDEX_NAME
    content = path.read_bytes()
    damaged = bytearray(content)
    damaged[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    path.write_bytes(damaged[: data.draw(st.integers(0, len(content)) | st.just(len(content)))])
    with ResultsDatabase(indexed) as store:
        assert len(store.select()) == 62
        assert store.generation.record(68) == MANY[-4]
    path.write_bytes(content)


def test_adding_a_row_keeps_existing_views_of_columns() -> None:
    index = Index()
    before = index.column("length")
    for number in range(2000):
        form = {"uuid": f"{number:032x}", "key": f"{number}", "canonical": ""}
        index.put("bricks", number, form, 0, number, 1)
    assert not len(before)
    assert (index.column("offset") == np.arange(2000)).all()
    assert list(index.rows_of_brick("1999")) == [1999]
    assert list(index.rows_of_brick("")) == []


def test_a_store_whose_link_leads_nowhere_is_not_taken_for_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "store").symlink_to(tmp_path / "unmounted")
    with pytest.raises(StoreError, match=r"is a link to .*unmounted, which does not exist: make that folder"):
        ResultsDatabase(tmp_path / "store")
    (tmp_path / "unmounted").mkdir()
    ResultsDatabase(tmp_path / "store").close()
