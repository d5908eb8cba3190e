"""Impossible records are named; proofs, load tests and provenance travel with their results."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.store import documents, index
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import BrokenDocumentError
from dlbricks_tui.store.exchange import export_all, export_selection, import_file
from dlbricks_tui.store.records import LoadTest, Proof, Provenance, Record
from dlbricks_tui.store.statistics import pack_latencies, unpack_latencies
from dlbricks_tui.store.verification import check_plausible, verify
from tests.store.samples import (
    WHEN,
    brick,
    end_to_end,
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

CHANGED = "mxnet-1.9.1 threads-1"
LATENCIES_NS = unpack_latencies(load_test().latencies)
IMPOSSIBLE: tuple[tuple[Callable[..., Any], dict[str, Any], str], ...] = (
    (proof, {"gain": 0.5, "gain_high": 0.6}, "has a gain that does not follow from its samples"),
    (proof, {"gain_low": 0.9}, "has a gain that is outside of its interval"),
    (proof, {"samples_ms": (-1.0,) * 10}, "has an impossible sample"),
    (proof, {"changed_batch_size": 0}, "has an impossible batch size"),
    (proof, {"after": proof().before}, "has a trimmed mean that does not follow from its samples"),
    (proof, {"changed_samples_ms": proof().changed_samples_ms * 2}, "does not follow from its samples"),
    (provenance, {"run": ""}, "is of no run"),
    (provenance, {"when": "2126-11-21T08:00:00+00:00"}, "is from the future"),
    (provenance, {"packages": (("mxnet", 1.9),)}, "has a version of 'mxnet' that is no text"),
    (provenance, {"models": (("ab" * 32, "0f"),)}, "has no SHA-256 of model 'abab"),
    (provenance, {"models": (("ab" * 32, None),)}, "has no SHA-256 of model 'abab"),
    (provenance, {"host": tuple((str(number), "") for number in range(65))}, "has more than 64 packages"),
    (provenance, {"unmet": ("x" * 100_001,)}, "has a text of 100,001 letters"),
    (load_test, {"kind": "burst"}, "is of the unknown scenario 'burst'"),
    (load_test, {"percentile": 100.0}, "has the percentile 100"),
    (load_test, {"percentile": float("nan")}, "has an impossibly large number"),
    (load_test, {"bound_ms": -1.0}, "has an impossible bound, rate or time"),
    (load_test, {"rate": 0.0}, "has an impossible bound, rate or time"),
    (load_test, {"seconds": 0.0}, "has an impossible bound, rate or time"),
    (load_test, {"passing_ms": -0.1}, "has an impossible bound, rate or time"),
    (load_test, {"kind": "single"}, "has a rate, which a scenario of kind single does not have"),
    (load_test, {"rate": None}, "is of a server without a rate"),
    (load_test, {"reasons": ("too few queries",)}, "is valid and has reasons against it"),
    (load_test, {"instances": 0}, "has an impossible batch size, or number of instances or queries"),
    (load_test, {"queries": 699}, "has 700 latencies of 699 queries"),
    (load_test, {"queries": 350}, "has 700 latencies of 350 queries"),
    (load_test, {"latencies": pack_latencies([])}, "has 0 latencies of 700 queries"),
    (load_test, {"latencies": pack_latencies([-1, *LATENCIES_NS[1:]])}, "has an impossible latency"),
    (load_test, {"latencies": pack_latencies([1 << 60, *LATENCIES_NS[1:]])}, "has an impossible latency"),
    (load_test, {"latencies": "?"}, "latencies that cannot be read"),
    (load_test, {"latencies": load_test().latencies[:-8]}, "latencies that cannot be read"),
    (load_test, {"per_second": 400.0}, "has requests per second that do not follow from its queries"),
    (load_test, {"per_second": 4.0}, "has requests per second that do not follow from its queries"),
    (load_test, {"bound_ms": 9.0}, "is valid with too many requests over the bound"),
)


@pytest.mark.parametrize(("made", "changed", "complaint"), IMPOSSIBLE)
def test_a_record_that_cannot_come_from_a_measurement_is_refused(
    made: Callable[..., Any], changed: dict[str, Any], complaint: str
) -> None:
    check_plausible(made())
    with pytest.raises(BrokenDocumentError, match=complaint):
        check_plausible(replace(made(), **changed))


@pytest.mark.parametrize(
    "record",
    [
        # A gain is that of an item where the batch sizes differ.
        proof(30.0, 60.0, changed_batch_size=4, gain=0.5, gain_low=0.49, gain_high=0.51),
        load_test(kind="single", percentile=90.0, rate=None, sought=False, bound_ms=None),
        # Requests of eight samples, with a latency for each request.
        load_test(kind="multi", rate=None, sought=False, per_second=317.0),
        # All samples in one query.
        load_test(kind="offline", rate=None, sought=False, bound_ms=None, queries=1),
        load_test(valid=False, reasons=("the bound is not met",), bound_ms=9.0),
    ],
)
def test_unusual_records_are_plausible(record: Record) -> None:
    check_plausible(record)


def test_impossible_stored_results_are_named_and_no_others(tmp_path: Path) -> None:
    with ResultsDatabase(tmp_path) as store:
        store.add(*one_of_each(), form(1))
    found = verify(tmp_path)
    assert (found.damage, found.implausible) == ((), ())
    negative = replace(measurement(), samples_ms=(-1.0, *measurement().samples_ms[1:]))
    unrelated = replace(measurement(), statistics=measurement(5.0).statistics)
    unknown = measurement(brick=brick(7))
    with ResultsDatabase(tmp_path) as store:
        store.add(negative, unrelated, unknown)
    found = verify(tmp_path)
    assert {each.uuid: each.reason for each in found.implausible} == {
        negative.uuid: "has an impossible sample",
        unrelated.uuid: "has a trimmed mean that does not follow from its samples",
        unknown.uuid: f"is of brick '{brick(7)[:40]}', which is described nowhere",
    }
    assert {each.table for each in found.implausible} == {"measurements"}


def test_a_long_load_test_is_exported_and_imported_whole_to_the_nanosecond(tmp_path: Path) -> None:
    # More characters than any other text may have.
    latencies_ns = [8_000_000 + number * 7919 % 4_000_000 for number in range(40_000)]
    packed = pack_latencies(latencies_ns)
    assert len(packed) > 100_000 and list(unpack_latencies(packed)) == latencies_ns
    test = load_test(latencies=packed, queries=40_000, seconds=1000.0, per_second=40.0)
    with ResultsDatabase(tmp_path / "owner") as store:
        store.add(system(), runtime(), test)
        export_all(store, tmp_path / "all.json.gz")
    with ResultsDatabase(tmp_path / "vendor") as store:
        assert not import_file(store, tmp_path / "all.json.gz").refused
        assert store.records(LoadTest) == [test]


@pytest.mark.parametrize(("kind", "made"), [(Proof, proof), (LoadTest, load_test)])
def test_proofs_and_load_tests_are_found_newest_first_and_exported_with_results_of_their_models_alone(
    tmp_path: Path, kind: type[Proof | LoadTest], made: Callable[..., Record]
) -> None:
    file = tmp_path / "some.json"
    earlier = made(when="2026-11-20T08:00:00+00:00")
    other: Any = {"model": "cd" * 32, "name": "private"}
    with ResultsDatabase(tmp_path / "owner") as store:
        store.add(system(), runtime(), end_to_end(), end_to_end(**other))
        store.add(made(), earlier, made(**other), made(system="m5.large"))
        store.refresh()
        everywhere = store.proofs_on("c5.xlarge") if kind is Proof else store.load_tests_of("ab" * 32, "c5.xlarge")
        found = [it for it in everywhere if it.model == "ab" * 32]
        assert [it.when for it in found] == [WHEN, "2026-11-20T08:00:00+00:00"]
        assert found[1] == earlier
        export_selection(store.select("name=resnet50_v1"), file)
    with ResultsDatabase(tmp_path / "vendor") as store:
        assert not import_file(store, file).refused
        assert {it.name for it in store.records(kind)} == {"resnet50_v1"}


def test_the_newest_provenance_of_a_run_on_a_runtime_is_found(tmp_path: Path) -> None:
    earlier = provenance(when="2026-11-20T08:00:00+00:00", packages=(("mxnet", "1.9.0"),))
    with ResultsDatabase(tmp_path) as store:
        store.add(provenance(), earlier, provenance(run="r2"), provenance(runtime=CHANGED, evaluation="nightly"))
        assert store.provenance_of("r1", "mxnet-1.9.1") == store.records(Provenance)[0]
        changed = store.provenance_of("r1", CHANGED)
        assert changed is not None and changed.evaluation == "nightly"
        assert store.provenance_of("r3", "mxnet-1.9.1") is None


def test_an_export_has_the_provenance_of_its_results_proofs_and_load_tests_that_goes_with_their_runtime(
    tmp_path: Path,
) -> None:
    file, proved, test = tmp_path / "some.json", proof(), load_test()
    other: Any = {"run": "r2", "model": "cd" * 32, "name": "private"}
    kept = [provenance(), provenance(run=proved.uuid, protocol=""), provenance(run=test.uuid, protocol="")]
    # A runtime without results in the export, which does not describe it.
    left_out = [provenance(run="r2"), provenance(runtime=CHANGED), provenance(run=proved.uuid, runtime=CHANGED)]
    with ResultsDatabase(tmp_path / "owner") as store:
        store.add(system(), runtime(), runtime(CHANGED), run(), run("r2"), end_to_end(), end_to_end(**other))
        store.add(proved, test, *kept, *left_out)
        export_selection(store.select("name=resnet50_v1"), file)
    with ResultsDatabase(tmp_path / "vendor") as store:
        assert not import_file(store, file).refused
        assert sorted(it.uuid for it in store.records(Provenance)) == sorted(it.uuid for it in kept)
    text = file.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in text if '"framework"' not in line))
    with ResultsDatabase(tmp_path / "another vendor") as store:
        assert [
            it.reason for it in import_file(store, file).refused if "provenance" in it.reason or "runtime" in it.reason
        ]
        assert store.records(Provenance) == []


def test_the_provenance_of_a_load_test_is_deleted_with_it_and_that_of_a_run_stays(tmp_path: Path) -> None:
    test, result = load_test(), end_to_end()
    with ResultsDatabase(tmp_path) as store:
        store.add(result, test, provenance(run=test.uuid), provenance())
        assert store.delete([test.uuid, result.uuid]) == 2
        assert [it.run for it in store.records(Provenance)] == ["r1"]


def test_provenance_that_a_version_without_its_table_has_indexed_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ResultsDatabase(tmp_path) as store:
        store.add(provenance())
    with monkeypatch.context() as earlier:
        known = {name: it for name, it in documents.TABLES.items() if name != "provenance"}
        earlier.setattr(documents, "TABLES", known)
        earlier.setattr(index, "TABLES", documents.TABLES)
        with ResultsDatabase(tmp_path) as store:
            store.generation.save_index()
    with ResultsDatabase(tmp_path) as store:
        assert store.provenance_of("r1", "mxnet-1.9.1") is not None
