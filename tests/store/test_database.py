"""Acknowledged records stay, even if writers are killed or write at the same time."""

import json
import os
import random
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Any, cast

import pytest
import tinydb

from dlbricks_tui.runtime.variant import stated_threads
from dlbricks_tui.store import index
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import TABLES, StoreBusyError, StoreError
from dlbricks_tui.store.exchange import export_all, import_file, read_export
from dlbricks_tui.store.index import INDEX_NAME
from dlbricks_tui.store.journal import writing_alone
from dlbricks_tui.store.records import (
    BrickForm,
    EndToEnd,
    Failure,
    LoadTest,
    Measurement,
    Proof,
    Provenance,
    Record,
    Run,
    RuntimeRecord,
    System,
)
from dlbricks_tui.store.selections import OLDEST_FIRST, by_id
from dlbricks_tui.store.verification import verify
from tests.soak import TOLD
from tests.store.processes import Acknowledged, run_python, start_writer
from tests.store.samples import (
    brick,
    counts,
    end_to_end,
    failure,
    form,
    load_test,
    measurement,
    one_of_each,
    proof,
    provenance,
    run,
    runtime,
    system,
)


def test_reading_a_missing_store_creates_no_file(tmp_path: Path) -> None:
    with ResultsDatabase(tmp_path / "store") as store:
        assert not any(counts(store).values())
    assert not (tmp_path / "store").exists()


def test_records_are_stored_once_however_often_they_are_added(tmp_path: Path) -> None:
    record = measurement()
    with ResultsDatabase(tmp_path) as store:
        assert store.add(form(), system()) == 2
        assert store.add(form(), system(), form()) == 0
        assert store.records(BrickForm) == [form()]
        assert store.add(system(cores=8)) == 1
        assert by_id(store.systems())["c5.xlarge"].cores == 8
        assert [store.add(record), store.add(record), store.add(record, record)] == [1, 0, 0]
        assert store.records(Measurement) == [record]


def test_a_deleted_record_stays_deleted_until_it_is_added_again(tmp_path: Path) -> None:
    first, second = measurement(), measurement()
    with ResultsDatabase(tmp_path) as store:
        store.add(first, second)
        assert store.delete([first.uuid, first.uuid, "00" * 16]) == 1
        assert store.records(Measurement) == [second]
    with ResultsDatabase(tmp_path) as store:
        assert store.records(Measurement) == [second]
        store.compact()
        assert store.records(Measurement) == [second]
        assert store.add(first) == 1
    with ResultsDatabase(tmp_path) as store:
        assert sorted(it.uuid for it in store.records(Measurement)) == sorted([first.uuid, second.uuid])


def test_deleted_records_come_back_as_they_were_even_after_compactions(tmp_path: Path) -> None:
    with ResultsDatabase(tmp_path) as store:
        store.add(measurement(1.0), measurement(2.0, context="other", when="2999-01-01T00:00:00.000000+00:00"))
        before = store.select(order=OLDEST_FIRST)
        expected = [before.result(position) for position in range(2)]
        for compactions in (0, 2):
            store.delete(before.values("id"))
            for _ in range(compactions):
                store.compact()
            assert store.restore(before) == 2
            assert store.restore(before) == 0
            # It stays as it was stored.
            assert len(store.from_the_future) == 1
    with ResultsDatabase(tmp_path) as store:
        after = store.select(order=OLDEST_FIRST)
        assert [after.result(position) for position in range(2)] == expected


def test_an_open_store_sees_compactions_and_later_writes_of_others(tmp_path: Path) -> None:
    with ResultsDatabase(tmp_path) as reader, ResultsDatabase(tmp_path) as writer:
        for round_number in range(3):
            writer.add(measurement(), measurement())
            assert round_number == 0 or reader.refresh()
            writer.compact()
            writer.add(measurement())
            reader.refresh()
            assert len(reader.select()) == 3 * (round_number + 1)
            assert not reader.refresh()


def test_readers_do_not_wait_for_the_lock_and_a_writer_that_waits_too_long_names_its_process(tmp_path: Path) -> None:
    with ResultsDatabase(tmp_path) as store:
        store.add(measurement())
    with writing_alone(tmp_path / "lock"):
        with ResultsDatabase(tmp_path) as reader:
            assert len(reader.select()) == 1
        with (
            pytest.raises(StoreBusyError, match=f"process {os.getpid()} .* locked"),
            writing_alone(tmp_path / "lock", patience_seconds=0.01),
        ):
            pass


def test_the_lock_is_released_when_its_process_ends(tmp_path: Path) -> None:
    if (pid := os.fork()) == 0:
        writing_alone(tmp_path / "lock").__enter__()
        os.kill(os.getpid(), signal.SIGKILL)
    assert os.WTERMSIG(os.waitpid(pid, 0)[1]) == signal.SIGKILL
    assert (tmp_path / "lock").read_text().strip() == str(pid)
    with ResultsDatabase(tmp_path) as store:
        assert store.add(measurement()) == 1


def test_a_measurement_without_a_number_is_refused_and_one_with_flags_doubtful(tmp_path: Path) -> None:
    assert measurement().good
    assert not measurement(flags=("drift",)).good
    with ResultsDatabase(tmp_path) as store:
        with pytest.raises(StoreError, match="table measurements cannot be stored"):
            store.add(measurement(samples_ms=(1.0, float("nan"))))
        assert store.add(measurement()) == 1


def test_records_need_no_database_and_a_look_up_no_package_but_tinydb_and_numpy(tmp_path: Path) -> None:
    code = f"""
import sys, dlbricks_tui.store.records
print({{"tinydb", "numpy"}} & set(sys.modules))
from dlbricks_tui.store import open_results
open_results("{tmp_path}").select("system=c5.xlarge")
print({{"networkx", "onnx", "textual", "rich"}} & set(sys.modules))
"""
    assert run_python(code).stdout == "set()\nset()\n"


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


@pytest.mark.parametrize("compacting", [False, True])
def test_a_date_from_the_future_is_that_of_the_record_before_until_it_is_corrected(
    tmp_path: Path, compacting: bool
) -> None:
    first, second, ahead, far_ahead = (f"{year}-11-20T08:00:00.000000+00:00" for year in (2024, 2025, 2998, 2999))
    added = [measurement(when=when) for when in (first, far_ahead, second, ahead)]
    found = [replace(it, when=when) for it, when in zip(added, (first, first, second, second), strict=True)]
    with ResultsDatabase(tmp_path) as store:
        store.add(*added)
        if compacting:
            store.compact()
        store.refresh()
        assert store.from_the_future == [far_ahead, ahead]
        listed = store.select(order=OLDEST_FIRST)
        assert listed.values("id") == [it.uuid for it in added]
        assert listed.values("when") == [it.when for it in listed] == [it.when for it in found]
        assert store.records(Measurement) == found
        assert [store.correct_dates(), store.correct_dates()] == [2, 0]
    with ResultsDatabase(tmp_path) as store:
        assert not store.from_the_future
        assert store.records(Measurement) == found


def test_a_date_from_the_future_follows_deletions_and_the_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, ahead, _ = whens = [f"{year}-11-20T08:00:00.000000+00:00" for year in (2024, 2025, 2998, 2999)]
    with ResultsDatabase(tmp_path) as store:
        store.add(*(measurement(when=when) for when in whens))
        listed = store.select(order=OLDEST_FIRST)
        assert listed.values("when") == [first, second, second, second]
        store.delete(listed.values("id")[1:2])
        assert store.select(order=OLDEST_FIRST).values("when") == [first, first, first]

        class Later(datetime):
            @classmethod
            def now(cls, tz: object = None) -> "Later":
                return cls(2999, 1, 1, tzinfo=timezone.utc)

        monkeypatch.setattr(index, "datetime", Later)
        assert store.select(order=OLDEST_FIRST).values("when") == [first, ahead, ahead]


def test_kills_at_random_moments_lose_no_acknowledged_result(tmp_path: Path) -> None:
    chance, acknowledged = random.Random(3), Acknowledged()
    for _ in range(3):
        with start_writer(tmp_path, "churn") as writer:
            output = cast(IO[bytes], writer.stdout)
            # Killed after its first result at the earliest.
            head = output.readline() + output.readline()
            assert b"+" in head
            time.sleep(chance.uniform(0, 0.1))
            writer.kill()
            acknowledged.take(head + output.read())
        acknowledged.check(tmp_path)
    # A line that was torn is named, and it is all that is ever lost.
    reasons = [it.reason for it in verify(tmp_path).damage]
    assert all("checksum" in it or "a line that dlbricks writes" in it for it in reasons)


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS has another call for it")
def test_a_result_and_the_name_of_its_file_are_on_the_disk_before_it_is_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[tuple[int, int]] = []

    def fsync(file: int) -> None:
        found = os.fstat(file)
        flushed.append((found.st_ino, found.st_size))

    monkeypatch.setattr(os, "fsync", fsync)
    with ResultsDatabase(tmp_path) as store:
        for _ in range(2):
            store.add(measurement())
            journal = (tmp_path / "journal-0.jsonl").stat()
            assert (journal.st_ino, journal.st_size) in flushed
        assert tmp_path.stat().st_ino in dict(flushed)


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS has another call for it")
def test_the_names_of_a_new_store_are_on_the_disk_before_its_first_line_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[int] = []

    class KilledError(BaseException):
        """Stands for the end of the process."""

    def fsync(file: int) -> None:
        flushed.append(os.fstat(file).st_ino)
        if stat.S_ISREG(os.fstat(file).st_mode):
            raise KilledError

    folder = tmp_path / "data" / "store"
    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(KilledError), ResultsDatabase(folder) as store:
        store.add(measurement())
    # The next writer finds lines in the journal, and flushes no names.
    assert (folder / "journal-0.jsonl").stat().st_size
    assert {it.stat().st_ino for it in (folder, folder.parent, tmp_path)} <= set(flushed)


def test_two_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    writers: list[subprocess.Popen[bytes]] = [start_writer(tmp_path, "add", "30") for _ in range(2)]
    acknowledged = {line for writer in writers for line in writer.communicate()[0].decode().split() if line[0] == "+"}
    assert [writer.returncode for writer in writers] == [0, 0]
    with ResultsDatabase(tmp_path) as store:
        assert {f"+{uuid}" for uuid in store.select().values("id")} == acknowledged
    assert len(acknowledged) == 60
    assert not verify(tmp_path).damage


@pytest.mark.soak
def test_kills_full_disks_and_compactions_lose_nothing_acknowledged(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """`SOAK_SECONDS` sets another length, such as an hour."""
    end = time.monotonic() + float(os.environ.get("SOAK_SECONDS", "300"))
    chance, acknowledged, kills = random.Random(47), Acknowledged(), 0
    readers = [start_writer(tmp_path, "read") for _ in range(3)]
    while time.monotonic() < end:
        writers = [start_writer(tmp_path, "churn") for _ in range(2)]
        heads = [cast(IO[bytes], writer.stdout).readline() for writer in writers]
        for writer, head in zip(writers, heads, strict=True):
            time.sleep(chance.uniform(0, 1))
            writer.kill()
            kills += 1
            acknowledged.take(head + writer.communicate()[0])
        acknowledged.check(tmp_path)
        # So that an hour does not fill the disk.
        if len(acknowledged.there) > 20_000:
            with ResultsDatabase(tmp_path) as store:
                store.delete(acknowledged.there)
            acknowledged.there.clear()
    assert [reader.poll() for reader in readers] == [None] * 3
    for reader in readers:
        reader.kill()
        reader.communicate()
    record_property(TOLD, f"{kills} kills of writers, some on a full disk: no acknowledged result lost")
    # A writer that was killed may have announced a deletion and not made it.
    assert verify(tmp_path).records["measurements"] == len(acknowledged.there | acknowledged.perhaps_deleted)


MXNET, ONNX = (f"{framework} python-3.11 threads-{{}} MXNET_X=1" for framework in ("mxnet-1.9.1", "onnxruntime-1.32.0"))
# A core of four has two logical processors on one of these systems.
SHARED, PLAIN = "c5.xlarge", "c7g.xlarge"
OF_RECORDS = (Run, Provenance, Failure, Proof, LoadTest, EndToEnd, Measurement)


def machine(name: str, architecture: str, *, hyper_threading: bool) -> System:
    facts = ("machine", architecture), ("hyper_threading", hyper_threading)
    # Frameworks that decided themselves knew of no limit.
    return system(name, facts=(*facts, ("quota_cores", 1.0)))


def described(identity: str, threads: int) -> RuntimeRecord:
    return runtime(identity, framework=identity.partition("-")[0], threads=threads)


def earlier_records() -> list[Record]:
    """Return results of two systems by two frameworks as earlier versions stored them."""
    default, onnx = MXNET.format("default"), ONNX.format("default")
    way: dict[str, Any] = {"system": SHARED, "runtime": default}
    return [
        form(),
        machine(SHARED, "x86_64", hyper_threading=True),
        machine(PLAIN, "aarch64", hyper_threading=False),
        described(default, 2),
        described(default, 4),
        described(onnx, 4),
        run(**way),
        provenance(**way),
        failure(**way),
        proof(**way, changed_runtime=onnx),
        load_test(**way),
        end_to_end(**way),
        measurement(**way),
        measurement(system=SHARED, runtime=onnx),
        measurement(system=PLAIN, runtime=default),
        measurement(system=PLAIN, runtime=onnx),
    ]


def of_earlier_version(folder: Path, *more: Record) -> list[Record]:
    """Write a store like an earlier version, and return its records in their order."""
    records = [*earlier_records(), *more]
    with ResultsDatabase(folder) as store:
        store.add(*records)
    return records


def records_in(store: ResultsDatabase) -> list[Any]:
    return [it for kind in OF_RECORDS for it in store.records(kind)]


def numbers_in(store: ResultsDatabase) -> dict[tuple[str, str], int | None]:
    """Return the number of threads of each framework with results on each system."""
    found = store.select(order=()).summaries()
    return {(it.system, it.runtime.partition("-")[0]): stated_threads(it.runtime) for it in found}


def test_a_store_of_an_earlier_version_opens_with_the_numbers_of_its_systems_and_keeps_the_rest(tmp_path: Path) -> None:
    before = [it for it in of_earlier_version(tmp_path) if isinstance(it, OF_RECORDS)]
    with ResultsDatabase(tmp_path) as store:
        # MXNet halves on x86 only.
        expected = {(SHARED, "mxnet"): 2, (SHARED, "onnxruntime"): 2, (PLAIN, "mxnet"): 4, (PLAIN, "onnxruntime"): 4}
        assert numbers_in(store) == expected
        after, known = {it.uuid: it for it in records_in(store)}, {it.id: it for it in store.runtimes()}
    assert {it.uuid for it in before} == after.keys()
    for was in before:
        number = "2" if was.system == SHARED else "4"
        changed: dict[str, Any] = {"runtime": was.runtime.replace("default", number)}
        if isinstance(was, Proof):
            changed["changed_runtime"] = ONNX.format(2)
        assert after[was.uuid] == replace(was, **changed)
    # Each number with results is described.
    assert len(known) == 4
    for identity, threads in ((MXNET, 2), (MXNET, 4), (ONNX, 2), (ONNX, 4)):
        named = described(identity.format("default"), threads)
        assert known[identity.format(threads)] == replace(named, id=identity.format(threads))
    # A second opening writes nothing.
    size = (tmp_path / "journal-0.jsonl").stat().st_size
    with ResultsDatabase(tmp_path) as store:
        assert records_in(store) == list(after.values())
    assert (tmp_path / "journal-0.jsonl").stat().st_size == size


@pytest.mark.parametrize(
    ("there", "identity"),
    [
        # The store does not describe the system, or not its architecture.
        ((), MXNET),
        ((system("other"),), MXNET),
        # A framework of another version of dlbricks.
        ((machine("other", "x86_64", hyper_threading=False),), "torch-2.0 python-3.11 threads-{}"),
    ],
)
def test_no_number_is_guessed(tmp_path: Path, there: tuple[System, ...], identity: str) -> None:
    default = identity.format("default")
    with ResultsDatabase(tmp_path) as store:
        store.add(*there, described(default, 4), end_to_end(system="other", runtime=default))
    with ResultsDatabase(tmp_path) as store:
        (found,) = store.select().summaries()
        assert (found.runtime, found.threads) == (default, 0)
        assert default in {it.id for it in store.runtimes()}


def test_a_store_that_cannot_be_written_is_read_as_it_is(tmp_path: Path) -> None:
    of_earlier_version(tmp_path)
    # No writer can lock it.
    (tmp_path / "lock").unlink()
    (tmp_path / "lock").mkdir()
    with ResultsDatabase(tmp_path) as store:
        assert set(numbers_in(store).values()) == {None}


def test_a_file_of_an_earlier_version_is_imported_with_the_numbers(tmp_path: Path) -> None:
    file = tmp_path / "earlier.json"
    with ResultsDatabase(tmp_path / "earlier") as store:
        store.add(*earlier_records())
        export_all(store, file)
    with ResultsDatabase(tmp_path / "mine") as store:
        import_file(store, file)
        numbers = numbers_in(store)
        # Importing it again changes nothing.
        again = import_file(store, file)
        assert (again.new, again.conflicts, again.refused) == (0, [], [])
    with ResultsDatabase(tmp_path / "earlier") as store:
        assert numbers == numbers_in(store)
    records, refused = read_export(file, (Measurement,))
    assert (len(records), refused) == (4, [])
    assert all(isinstance(it, Measurement) and stated_threads(it.runtime) for it in records)
