"""Claims of different files that contradict each other are found, and nothing else."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.store.claims import Claim, conflicting_claims
from dlbricks_tui.store.database import ResultsDatabase, Source
from dlbricks_tui.store.records import Measurement
from dlbricks_tui.store.statistics import summarise
from tests.store.samples import brick, end_to_end, form, measurement, runtime, system

A, B, C = Source("a.json", "ann"), Source("b.json"), Source("c.json")
LATER = "2026-11-22T08:00:00.000000+00:00"


@pytest.fixture
def store(tmp_path: Path) -> ResultsDatabase:
    store = ResultsDatabase(tmp_path / "store")
    store.add(form(0), form(1), system(), system("other"), runtime(), runtime("other"))
    return store


def claims(store: ResultsDatabase, files: Mapping[Source, list[Any]]) -> tuple[Claim, ...]:
    for source, records in files.items():
        store.add_imported(records, source)
    store.refresh()
    return conflicting_claims(store, {it.uuid: source for source, records in files.items() for it in records})


def told(found: tuple[Claim, ...]) -> list[list[tuple[float, str, str]]]:
    return [[(round(it.result.median_ms, 2), it.file, it.result.origin) for it in claim.claimed] for claim in found]


def test_two_files_that_claim_different_latencies_contradict_each_other(store: ResultsDatabase) -> None:
    found = claims(store, {B: [measurement(2.0, when=LATER)], A: [measurement(1.0)]})
    # The first one counts: it is signed.
    assert told(found) == [[(1.02, "a.json", "signed by ann"), (2.04, "b.json", "unsigned")]]
    (claim,) = found
    assert claim.ratio == pytest.approx(2.0)
    assert claim.p_value is not None and claim.p_value < 0.01


def test_a_file_may_contradict_the_own_result_which_counts_and_is_no_claim_of_a_file(store: ResultsDatabase) -> None:
    own = measurement(1.0)
    store.add(own)
    assert not claims(store, {A: [own]})
    found = claims(store, {A: [own, measurement(0.1, when=LATER)]})
    assert told(found) == [[(1.02, "", "own"), (0.1, "a.json", "signed by ann")]]


def test_a_file_may_contradict_an_earlier_import(store: ResultsDatabase) -> None:
    assert not claims(store, {A: [measurement(1.0)]})
    assert told(claims(store, {B: [measurement(3.0)]})) == [
        [(1.02, "a.json", "signed by ann"), (3.06, "b.json", "unsigned")]
    ]
    # Claims of other files only are not of this import.
    assert not claims(store, {C: [measurement(1.0, brick=brick(1))]})


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
    store: ResultsDatabase, other: Measurement
) -> None:
    assert not claims(store, {A: [measurement(1.0)], B: [other]})


def test_the_newest_result_of_a_file_is_its_claim_and_noisy_samples_that_overlap_are_no_contradiction(
    store: ResultsDatabase,
) -> None:
    changed = [measurement(9.0), measurement(1.0, when=LATER)]
    assert not claims(store, {A: changed, B: [measurement(1.0)]})
    samples = tuple(1.0 + number % 2 for number in range(10))
    noisy = measurement(samples_ms=samples, statistics=summarise(samples), brick=brick(1))
    assert not claims(store, {A: [noisy], B: [measurement(1.6, brick=brick(1))]})


def test_the_largest_contradictions_come_first_and_models_are_compared_too(store: ResultsDatabase) -> None:
    found = claims(
        store,
        {
            A: [measurement(1.0), measurement(1.0, brick=brick(1)), end_to_end(10.0)],
            B: [measurement(2.0), measurement(4.0, brick=brick(1)), end_to_end(90.0)],
            C: [measurement(1.0), end_to_end(10.0)],
        },
    )
    assert [(it.subject.of, round(it.ratio)) for it in found] == [("model", 9), ("brick", 4), ("brick", 2)]
    assert [len(it.claimed) for it in found] == [3, 2, 3]


def test_with_too_few_samples_to_test_the_intervals_decide(store: ResultsDatabase) -> None:
    few = (3.0, 3.1)
    (claim,) = claims(store, {A: [measurement(1.0)], B: [measurement(samples_ms=few, statistics=summarise(few))]})
    assert claim.p_value is None
