import os
import signal
import threading
from pathlib import Path

import pytest

from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.errors import StoreBusyError, StoreError
from dlbricks_tui.store.lock import StoreLock
from dlbricks_tui.store.records import BrickForm, Measurement, System
from dlbricks_tui.store.selections import OLDEST_FIRST, by_id, equal
from tests.store.processes import run_python
from tests.store.samples import brick, counts, form, measurement, one_of_each, system


def test_added_records_survive_reopening(tmp_path: Path) -> None:
    with ResultsDatabase(tmp_path) as store:
        assert store.add(*one_of_each()) == len(one_of_each())
    with ResultsDatabase(tmp_path) as store:
        for record in one_of_each():
            assert store.records(type(record)) == [record]


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
        store.add(measurement(1.0), measurement(2.0, context="other"))
        before = store.select(order=OLDEST_FIRST)
        expected = [before.result(position) for position in range(2)]
        for compactions in (0, 2):
            store.delete(before.values("id"))
            for _ in range(compactions):
                store.compact()
            assert store.restore(before) == 2
            assert store.restore(before) == 0
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


def test_selected_results_can_be_read_after_two_compactions_by_others(tmp_path: Path) -> None:
    record = measurement()
    with ResultsDatabase(tmp_path) as reader, ResultsDatabase(tmp_path) as writer:
        writer.add(record)
        reader.refresh()
        selected = reader.select()
        writer.compact()
        writer.compact()
        reader.refresh()
        assert selected.result(0) == record


def test_two_open_stores_write_in_turns(tmp_path: Path) -> None:
    with ResultsDatabase(tmp_path) as one, ResultsDatabase(tmp_path) as other:
        for _ in range(3):
            one.add(measurement())
            other.add(measurement())
            other.compact()
        one.refresh()
        assert len(one.select()) == len(other.select()) == 6


def test_readers_do_not_wait_for_the_lock_and_a_writer_that_waits_too_long_names_its_process(tmp_path: Path) -> None:
    with ResultsDatabase(tmp_path) as store:
        store.add(measurement())
    with StoreLock(tmp_path / "lock"):
        with ResultsDatabase(tmp_path) as reader:
            assert len(reader.select()) == 1
        with pytest.raises(StoreBusyError, match=f"process {os.getpid()} .* locked"):
            StoreLock(tmp_path / "lock", patience_seconds=0.01).__enter__()


def test_a_writer_waits_until_the_lock_is_free(tmp_path: Path) -> None:
    with ResultsDatabase(tmp_path) as store:
        lock = StoreLock(tmp_path / "lock")
        lock.__enter__()
        release = threading.Timer(0.05, lock.__exit__, (None, None, None))
        release.start()
        assert store.add(measurement()) == 1
        release.join()


def test_the_lock_is_released_when_its_process_ends(tmp_path: Path) -> None:
    if (pid := os.fork()) == 0:
        StoreLock(tmp_path / "lock").__enter__()
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


def test_a_brick_key_leads_to_its_form(tmp_path: Path) -> None:
    with ResultsDatabase(tmp_path) as store:
        store.add(measurement(), form(), measurement())
        assert next(iter(store.records(BrickForm, equal(key=brick()))), None) == form()
        assert next(iter(store.records(BrickForm, equal(key=brick(1)))), None) is None


def test_the_latest_description_of_a_system_counts(tmp_path: Path) -> None:
    with ResultsDatabase(tmp_path) as store:
        store.add(system(cores=4), system("other"), system(cores=2))
        assert by_id(store.systems()) == {"c5.xlarge": system(cores=2), "other": system("other")}
        assert len(store.records(System)) == 3


def test_records_need_no_database_and_a_look_up_no_package_but_tinydb_and_numpy() -> None:
    code = """
import sys, dlbricks_tui.store.records
print({"tinydb", "numpy"} & set(sys.modules))
from dlbricks_tui.store import open_results
open_results("/nowhere").select("system=c5.xlarge")
print({"networkx", "onnx", "textual", "rich"} & set(sys.modules))
"""
    assert run_python(code).stdout == "set()\nset()\n"
