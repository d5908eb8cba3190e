"""Imported records are told apart from own ones for good, and never count before them."""

from pathlib import Path

import pytest

from dlbricks_tui.measure.jobs import JobKey
from dlbricks_tui.measure.known import Conditions, known_in
from dlbricks_tui.store.database import ResultsDatabase, Source
from dlbricks_tui.store.records import EndToEnd, Import, Measurement, Record
from dlbricks_tui.store.selections import LEAST_FIRST, equal, newest_of_each
from tests.store.samples import (
    brick,
    end_to_end,
    failure,
    form,
    measurement,
    peaks,
    proof,
    provenance,
    run,
    runtime,
    system,
)

LATER = "2026-11-22T08:00:00.000000+00:00"
LATEST = "2026-11-23T08:00:00.000000+00:00"
OWN = measurement(1.0)
SIGNED = measurement(2.0, when=LATER)
UNSIGNED = measurement(3.0, when=LATEST)
ANN, NOBODY = Source("a.json", "ann"), Source("b.json")


@pytest.fixture
def store(tmp_path: Path) -> ResultsDatabase:
    """A store with an own, a signed and an unsigned result of the same brick; those of others are newer."""
    store = ResultsDatabase(tmp_path / "store")
    store.add(form(), system(), runtime(), OWN)
    store.add_imported([SIGNED], ANN)
    store.add_imported([UNSIGNED], NOBODY)
    store.refresh()
    return store


def origins(store: ResultsDatabase) -> dict[str, str]:
    found = store.select()
    return dict(zip(found.values("id"), found.values("origin"), strict=True))


EXPECTED = {OWN.uuid: "own", SIGNED.uuid: "signed by ann", UNSIGNED.uuid: "unsigned"}


def test_the_origin_is_a_column_to_filter_and_sort_by(store: ResultsDatabase) -> None:
    assert origins(store) == EXPECTED
    assert store.select("origin=own").values("id") == [OWN.uuid]
    assert store.select("origin~ann").values("id") == [SIGNED.uuid]
    assert store.select("origin!=own", "origin!=unsigned").values("id") == [SIGNED.uuid]
    assert store.select(equal(origin="own")).values("id") == [OWN.uuid]
    assert store.select(order=["-origin"]).values("origin") == ["own", "signed by ann", "unsigned"]
    # A bare word searches texts of results: every origin would be found by `own`.
    assert len(store.select("own")) == 0


def test_the_origin_stays_over_openings_and_compactions(store: ResultsDatabase) -> None:
    folder = store.storage.generation.folder
    for trusting_index in (False, True, False, True):
        if not trusting_index:
            (folder / "index.bin").unlink(missing_ok=True)
        with ResultsDatabase(folder) as again:
            assert origins(again) == EXPECTED
            again.compact()
            assert origins(again) == EXPECTED


def test_a_result_that_is_known_or_restored_keeps_its_origin(store: ResultsDatabase) -> None:
    assert store.add_imported([OWN, UNSIGNED], ANN) == 0
    assert store.add(SIGNED) == 0
    store.refresh()
    assert origins(store) == EXPECTED
    assert len(store.records(Import)) == 2
    deleted = store.select()
    store.delete(EXPECTED)
    assert store.restore(deleted) == 3
    store.refresh()
    assert origins(store) == EXPECTED


def test_own_results_count_before_signed_ones_and_those_before_unsigned_ones(store: ResultsDatabase) -> None:
    assert store.select(order=LEAST_FIRST).values("id") == [UNSIGNED.uuid, SIGNED.uuid, OWN.uuid]
    assert newest_of_each(store.select(), ("brick",)).values("id") == [OWN.uuid]
    assert store.records(Measurement)[-1] == OWN
    store.delete([OWN.uuid])
    store.refresh()
    assert newest_of_each(store.select(), ("brick",)).values("id") == [SIGNED.uuid]


def test_records_of_others_replace_no_own_ones(tmp_path: Path) -> None:
    own: list[Record] = [system(), runtime(), run(), provenance(), peaks(), proof()]
    model = end_to_end()
    with ResultsDatabase(tmp_path / "store") as store:
        store.add_imported([system(memory_bytes=1), runtime(python="2.7")], NOBODY)
        store.add(*own, model)
        forged: list[Record] = [
            run(state="failed", when=LATEST),
            provenance(when=LATEST, evaluation="forged"),
            peaks(when=LATEST, arithmetic=(("avx2", 1e9),)),
            proof(30.0, 1.0, when=LATEST),
            end_to_end(1.0, when=LATEST),
            system(memory_bytes=2),
        ]
        assert store.add_imported(forged, ANN) == len(forged)
        store.refresh()
        assert store.systems() == (system(),)
        assert store.runtimes() == (runtime(),)
        assert store.runs() == (own[2],)
        assert store.provenance_of("r1", "mxnet-1.9.1") == own[3]
        assert store.peaks() == (own[4],)
        assert store.proofs_on("c5.xlarge")[0] == own[5]
        assert store.records(EndToEnd, equal(model="ab" * 32))[-1] == model
        assert store.records(EndToEnd, own=True) == [model]


def test_a_run_measures_itself_what_others_have_claimed(tmp_path: Path) -> None:
    conditions = Conditions("c5.xlarge", "mxnet-1.9.1", "hot")
    key, other = JobKey(brick(), "plain", ""), JobKey(brick(1), "plain", "")
    with ResultsDatabase(tmp_path / "store") as store:
        store.add_imported([form(), system(), runtime(), SIGNED, failure()], ANN)
        store.refresh()
        known = known_in(store, conditions, [key, other])
        assert (known.measured, known.failed) == ({}, {})
        store.add(OWN)
        store.refresh()
        assert known_in(store, conditions, [key, other]).measured[key].median_ms == OWN.statistics.median_ms
