"""Imported records are told apart from own ones for good; claims of files that contradict each other are found."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.api.store_contents import known_systems
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.measure.jobs import JobKey
from dlbricks_tui.measure.known import Conditions, known_in
from dlbricks_tui.store.claims import Claim, conflicting_claims
from dlbricks_tui.store.database import ResultsDatabase, Source
from dlbricks_tui.store.index import INDEX_NAME
from dlbricks_tui.store.records import EndToEnd, Import, Measurement, Record
from dlbricks_tui.store.selections import LEAST_FIRST, equal
from dlbricks_tui.store.statistics import summarise
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


def test_systems_count_results_of_others_as_lists_do(store: ResultsDatabase, tmp_path: Path) -> None:
    # The run of another host has timed the brick in two layers.
    store.add_imported([measurement(4.0, when=LATEST)], NOBODY)
    store.refresh()
    (known,) = known_systems(store, DataFolder(tmp_path))
    assert (len(store.results()), known.imported) == (3, ["1 signed by ann", "1 unsigned"])


def test_the_origin_stays_over_openings_and_compactions(store: ResultsDatabase) -> None:
    folder = store.storage.generation.folder
    for trusting_index in (False, True, False, True):
        if not trusting_index:
            (folder / INDEX_NAME).unlink(missing_ok=True)
        with ResultsDatabase(folder) as again:
            assert origins(again) == EXPECTED
            again.compact()
            assert origins(again) == EXPECTED
    # The files are told of records that are no longer there, and the index is saved all the same.
    with ResultsDatabase(folder) as again:
        again.delete([SIGNED.uuid])
        again.compact()
    (folder / INDEX_NAME).unlink()
    with ResultsDatabase(folder) as again:
        again.generation.save_index()
    assert (folder / INDEX_NAME).exists()


def test_what_is_left_of_a_torn_import_is_no_own_result(store: ResultsDatabase) -> None:
    folder = store.storage.generation.folder
    journal, before = folder / "journal-0.jsonl", (folder / "journal-0.jsonl").stat().st_size
    late = [measurement(4.0, brick=brick(1)), measurement(5.0)]
    store.add_imported([form(1), *late], NOBODY)
    whole, own = journal.read_bytes(), measurement(6.0)
    ends = [place for place, byte in enumerate(whole) if byte == ord("\n") and place > before]
    for end, left in zip(ends, (0, 0, 1, 2, 2), strict=True):
        # Another process has looked, and saved what it read, when half of it was there.
        journal.write_bytes(whole[: ends[0] + 1])
        with ResultsDatabase(folder) as reader:
            reader.generation.save_index()
        journal.write_bytes(whole[: end + 10])
        with ResultsDatabase(folder) as torn:
            expected = {**EXPECTED, **{it.uuid: "unsigned" for it in late[:left]}}
            assert origins(torn) == expected
            torn.add(own)
            torn.compact()
            assert origins(torn) == {**expected, own.uuid: "own"}
        for file in (folder / "results-1.json", folder / "journal-1.jsonl"):
            file.unlink(missing_ok=True)


def test_a_result_that_is_known_or_restored_keeps_its_origin(store: ResultsDatabase) -> None:
    assert store.add_imported([OWN, UNSIGNED], ANN) == 0
    assert store.add(SIGNED) == 0
    store.refresh()
    assert origins(store) == EXPECTED
    assert len(store.records(Import)) == 2
    deleted = store.select()
    store.delete(EXPECTED)
    before = {uuid: store.source_of(uuid) for uuid in EXPECTED}
    assert store.restore(deleted) == 3
    store.refresh()
    assert origins(store) == EXPECTED
    assert {uuid: store.source_of(uuid) for uuid in EXPECTED} == before


def test_own_results_count_before_signed_ones_and_those_before_unsigned_ones(store: ResultsDatabase) -> None:
    assert store.select(order=LEAST_FIRST).values("id") == [UNSIGNED.uuid, SIGNED.uuid, OWN.uuid]
    assert store.records(Measurement)[-1] == OWN
    store.delete([OWN.uuid])
    store.refresh()
    assert store.select(order=LEAST_FIRST).values("id")[-1:] == [SIGNED.uuid]


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


A, B, C = Source("a.json", "ann"), Source("b.json"), Source("c.json")
LATER = "2026-11-22T08:00:00.000000+00:00"


@pytest.fixture
def fresh(tmp_path: Path) -> ResultsDatabase:
    fresh = ResultsDatabase(tmp_path / "store")
    fresh.add(form(0), form(1), system(), system("other"), runtime(), runtime("other"))
    return fresh


def claims(fresh: ResultsDatabase, files: Mapping[Source, list[Any]]) -> tuple[Claim, ...]:
    for source, records in files.items():
        fresh.add_imported(records, source)
    fresh.refresh()
    return conflicting_claims(fresh, {it.uuid: source for source, records in files.items() for it in records})


def told(found: tuple[Claim, ...]) -> list[list[tuple[float, str, str]]]:
    return [[(round(it.result.median_ms, 2), it.file, it.result.origin) for it in claim.claimed] for claim in found]


def test_two_files_that_claim_different_latencies_contradict_each_other(fresh: ResultsDatabase) -> None:
    found = claims(fresh, {B: [measurement(2.0, when=LATER)], A: [measurement(1.0)]})
    # The first one counts: it is signed.
    assert told(found) == [[(1.02, "a.json", "signed by ann"), (2.04, "b.json", "unsigned")]]
    (claim,) = found
    assert claim.ratio == pytest.approx(2.0)
    assert claim.p_value is not None and claim.p_value < 0.01


def test_a_file_may_contradict_the_own_result_which_counts_and_is_no_claim_of_a_file(fresh: ResultsDatabase) -> None:
    own = measurement(1.0)
    fresh.add(own)
    assert not claims(fresh, {A: [own]})
    found = claims(fresh, {A: [own, measurement(0.1, when=LATER)]})
    assert told(found) == [[(1.02, "", "own"), (0.1, "a.json", "signed by ann")]]


def test_a_file_may_contradict_an_earlier_import(fresh: ResultsDatabase) -> None:
    assert not claims(fresh, {A: [measurement(1.0)]})
    assert told(claims(fresh, {B: [measurement(3.0)]})) == [
        [(1.02, "a.json", "signed by ann"), (3.06, "b.json", "unsigned")]
    ]
    # Claims of other files only are not of this import.
    assert not claims(fresh, {C: [measurement(1.0, brick=brick(1))]})


@pytest.mark.parametrize(
    "other",
    [
        measurement(1.05),
        measurement(2.0, brick=brick(1)),
        measurement(2.0, context="cold"),
        measurement(2.0, system="other"),
        measurement(2.0, runtime="other"),
        measurement(2.0, protocol="alone"),
        measurement(2.0, batch_size=8),
        measurement(2.0, flags=("drift",)),
        end_to_end(2.0),
    ],
)
def test_other_subjects_small_differences_and_doubtful_results_are_no_contradiction(
    fresh: ResultsDatabase, other: Measurement
) -> None:
    assert not claims(fresh, {A: [measurement(1.0)], B: [other]})


def test_the_newest_result_of_a_file_is_its_claim_and_noisy_samples_that_overlap_are_no_contradiction(
    fresh: ResultsDatabase,
) -> None:
    changed = [measurement(9.0), measurement(1.0, when=LATER)]
    assert not claims(fresh, {A: changed, B: [measurement(1.0)]})
    samples = tuple(1.0 + number % 2 for number in range(10))
    noisy = measurement(samples_ms=samples, statistics=summarise(samples), brick=brick(1))
    assert not claims(fresh, {A: [noisy], B: [measurement(1.6, brick=brick(1))]})


def test_the_largest_contradictions_come_first_and_models_are_compared_too(fresh: ResultsDatabase) -> None:
    found = claims(
        fresh,
        {
            A: [measurement(1.0), measurement(1.0, brick=brick(1)), end_to_end(10.0)],
            B: [measurement(2.0), measurement(4.0, brick=brick(1)), end_to_end(90.0)],
            C: [measurement(1.0), end_to_end(10.0)],
        },
    )
    assert [(it.subject.of, round(it.ratio)) for it in found] == [("model", 9), ("brick", 4), ("brick", 2)]
    assert [len(it.claimed) for it in found] == [3, 2, 3]


def test_with_too_few_samples_to_test_the_intervals_decide(fresh: ResultsDatabase) -> None:
    few = (3.0, 3.1)
    (claim,) = claims(fresh, {A: [measurement(1.0)], B: [measurement(samples_ms=few, statistics=summarise(few))]})
    assert claim.p_value is None
