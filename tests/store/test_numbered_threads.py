"""Stores, files and lines of earlier versions, in which `threads-default` stands for the number of the framework."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.runtime.variant import stated_threads
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.exporting import export_all
from dlbricks_tui.store.importing import import_file, read_export
from dlbricks_tui.store.records import (
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
from tests.store.samples import (
    end_to_end,
    failure,
    form,
    load_test,
    measurement,
    proof,
    provenance,
    run,
    runtime,
    system,
)

MXNET, ONNX = (f"{framework} python-3.11 threads-{{}} MXNET_X=1" for framework in ("mxnet-1.9.1", "onnxruntime-1.32.0"))
# A core of four has two logical processors on one of these systems.
SHARED, PLAIN = "c5.xlarge", "c7g.xlarge"
OF_RECORDS = (Run, Provenance, Failure, Proof, LoadTest, EndToEnd, Measurement)


def machine(name: str, architecture: str, *, hyper_threading: bool) -> System:
    return system(name, facts=(("machine", architecture), ("hyper_threading", hyper_threading)))


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
