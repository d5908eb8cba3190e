from dataclasses import replace

import pytest

from dlbricks_tui.estimate.errors import EstimateError
from dlbricks_tui.estimate.system_estimate import (
    Offer,
    best_offer,
    find_runtime,
    find_system,
    preferred_level,
    what_is_there,
)
from dlbricks_tui.models.graph import Level
from dlbricks_tui.store.records import System
from dlbricks_tui.store.selections import Combination, Way
from tests.store.samples import runtime, system


def called(identity: str, name: str, instance_type: str = "") -> System:
    return replace(system(identity), name=name, instance_type=instance_type)


SYSTEMS = {
    it.id: it
    for it in (
        called("epyc-2c-ab12", "EPYC 7R13, 2 cores"),
        called("xeon-4c-cd34", "Xeon 8124M, 4 cores", "c5.xlarge"),
        called("c4.xlarge", "c4.xlarge"),
    )
}


def offer(system: str, runtime: str, sequences: int, newest: int = 0, protocol: str = "hot") -> Offer:
    return Offer(Way(system, runtime, Level.FUSED, protocol), sequences, 2, newest)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("epyc-2c-ab12", "epyc-2c-ab12"),
        ("C5.XLARGE", "xeon-4c-cd34"),
        ("Xeon 8124M, 4 cores", "xeon-4c-cd34"),
        ("epyc", "epyc-2c-ab12"),
    ],
)
def test_a_system_is_found_by_any_of_its_names_or_a_part_of_one(wanted: str, found: str) -> None:
    assert find_system(wanted, SYSTEMS) == found


def test_an_id_takes_precedence_over_names_and_a_whole_name_over_parts_of_others() -> None:
    host = called("c5.xlarge-4c-ef56", "c5.xlarge, 4 cores", "c5.xlarge")
    assert find_system("c5.xlarge", {it.id: it for it in (host, system("c5.xlarge"))}) == "c5.xlarge"
    assert find_system("c5", {it.id: it for it in (system("c5"), system("c5.xlarge"))}) == "c5"


@pytest.mark.parametrize(("wanted", "problem"), [("xlarge", "2 systems are called"), ("m5", "no system in the store")])
def test_ambiguous_or_unknown_names_are_refused_with_a_list(wanted: str, problem: str) -> None:
    with pytest.raises(EstimateError, match=problem) as refused:
        find_system(wanted, SYSTEMS)
    assert "c4.xlarge" in str(refused.value)
    with pytest.raises(EstimateError, match=f"called '{wanted}', as nothing was measured or imported yet"):
        find_system(wanted, {})


def test_a_runtime_is_found_by_id_or_name() -> None:
    known = {it.id: it for it in (runtime("mxnet-1.9.1 threads-2"), replace(runtime("mxnet-1.5.1"), name="old"))}
    assert find_runtime("old", known) == "mxnet-1.5.1"
    assert find_runtime("threads-2", known) == "mxnet-1.9.1 threads-2"


def test_the_series_with_the_highest_coverage_is_best_and_the_newest_breaks_ties() -> None:
    offers = [
        offer("a", "one", 5, newest=9),
        offer("a", "two", 7, newest=1),
        offer("a", "three", 7, newest=2),
        offer("b", "one", 9),
    ]
    assert best_offer(offers, "a", None) == offers[2]
    assert best_offer(offers, "a", "one") == offers[0]
    assert best_offer(offers, "a", "four") is None
    assert best_offer(offers, "c", None) is None


def test_fused_is_preferred_unless_only_written_has_results() -> None:
    assert preferred_level([]) is Level.FUSED
    assert preferred_level([Level.WRITTEN, Level.FUSED]) is Level.FUSED
    assert preferred_level([Level.WRITTEN]) is Level.WRITTEN


def test_available_results_are_listed_closest_first() -> None:
    def there(system: str, runtime: str, pairs: int) -> Combination:
        return Combination(system, runtime, Level.WRITTEN, "hot", pairs, pairs, 1)

    found = [there("a", "old", 90), there("b", "ours", 80), there("c5", "ours", 1), there("c5", "old", 2)]
    assert what_is_there(found[:1], "c5", "ours") == "the store has 90 bricks at level written on a by old"
    assert what_is_there(found, "c5", "ours") == (
        "the store has 1 brick at level written on c5 by ours, 2 bricks at level written on c5 by old, "
        "80 bricks at level written on b by ours, and 1 other set"
    )
    assert what_is_there([], "c5", None) == "the store has no results yet"
