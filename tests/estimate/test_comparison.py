import math
from dataclasses import replace
from pathlib import Path

import pytest

from dlbricks_tui.bricks.decomposition import Cutting, Decomposition, decompose
from dlbricks_tui.estimate.comparison import (
    DELIVERED,
    PRICES_FILE,
    Candidate,
    accuracy,
    by_group,
    candidates,
    cheapest,
    cost_of,
    parse_prices,
    price_of,
    quickest,
    read_prices,
    remarks_on,
    speedup,
)
from dlbricks_tui.estimate.compositions import EstimateError
from dlbricks_tui.estimate.estimate import estimate
from dlbricks_tui.estimate.knowledge import Knowledge, Latency, MeasuredLatency
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.models.graph import Level
from dlbricks_tui.store.change import timing_by
from dlbricks_tui.store.selections import Way
from tests.bricks.graphs import chain
from tests.store.samples import system

WAY = Way("c5.xlarge", "mxnet", Level.WRITTEN, "hot")


def all_taking(decomposition: Decomposition, ms: float) -> Knowledge:
    latency = Latency(ms, ms, ms)
    return Knowledge({pair: MeasuredLatency(latency, pair, 25) for pair in decomposition.pairs})


def one(layers: int, end_to_end_ms: float | None, granularity: int = 1) -> SystemEstimate:
    """A model of so many equal layers of 1 ms."""
    decomposition = decompose(chain(*["relu"] * layers), Cutting(granularity))
    measured = None if end_to_end_ms is None else Latency(end_to_end_ms, end_to_end_ms, end_to_end_ms)
    return SystemEstimate(WAY, estimate(decomposition, all_taking(decomposition, 1.0)), measured)


def incomplete() -> SystemEstimate:
    decomposition = decompose(chain("relu", "pool"))
    known = dict(list(all_taking(decomposition, 1.0).measured.items())[:1])
    return SystemEstimate(WAY, estimate(decomposition, Knowledge(known)), Latency(9.0, 9.0, 9.0))


def test_the_figures_of_the_paper_follow_from_the_ratios() -> None:
    found = accuracy([one(4, 4.0), one(2, 2.0 / 1.04), one(3, 3.0 / 0.92), one(1, 1.0 / 1.2)])
    assert found is not None
    assert found.models == 4
    assert found.geometric_mean == pytest.approx(math.exp((math.log(1.04) + math.log(0.92) + math.log(1.2)) / 4))
    assert found.mean_absolute_error == pytest.approx((0.04 + 0.08 + 0.2) / 4)
    assert found.worst_error == pytest.approx(0.2)
    assert (found.within_5_percent, found.within_10_percent) == (0.5, 0.75)


def test_models_that_others_know_are_judged_by_them_alone() -> None:
    def known_elsewhere(others_ms: float, share: float = 1.0) -> SystemEstimate:
        found = one(10, 10.0)
        known = round(share * 10)
        parts = [
            replace(it, measured=it.measured and it.measured._replace(others_ms=others_ms)) if number < known else it
            for number, it in enumerate(found.estimate.parts)
        ]
        return replace(found, estimate=replace(found.estimate, parts=tuple(parts)))

    judged = [known_elsewhere(1.02), known_elsewhere(0.8), known_elsewhere(1.5, share=0.5), one(4, 4.0)]
    found = accuracy(judged)
    assert found is not None
    assert (found.models, found.mean_absolute_error, found.by_others) == (4, 0.0, 2)
    assert found.by_others_median_error == pytest.approx(0.11)
    assert found.by_others_within_10_percent == 0.5
    nothing = accuracy([one(4, 4.0)])
    assert nothing is not None
    assert (nothing.by_others, nothing.by_others_median_error) == (0, None)


def test_the_sign_of_an_error_shows_if_the_estimate_is_too_high() -> None:
    assert one(4, 5.0).error == pytest.approx(-0.2)
    assert one(5, 4.0).error == pytest.approx(0.25)
    assert one(5, None).error is None


def test_only_complete_models_measured_end_to_end_are_judged() -> None:
    found = accuracy([one(4, 4.0), one(4, None), incomplete()])
    assert found is not None
    assert found.models == 1
    assert accuracy([one(4, None), incomplete()]) is None
    assert accuracy([]) is None


def test_the_speedup_is_all_models_over_the_unique_bricks() -> None:
    # One brick of 1 ms stands for all layers of both models.
    assert speedup([one(4, 5.0), one(3, 3.0)]) == pytest.approx(8.0)
    assert speedup([one(4, None)]) is None


def test_estimates_measured_or_cut_differently_are_separate_groups() -> None:
    elsewhere = replace(one(4, 4.0), way=WAY._replace(system="a1"))
    groups = by_group([one(4, 4.0), one(2, 2.0), elsewhere, one(4, 4.0, granularity=2)])
    assert sorted((group.way.system, group.granularity, len(held)) for group, held in groups.items()) == [
        ("a1", 1, 1),
        ("c5.xlarge", 1, 2),
        ("c5.xlarge", 2, 1),
    ]


SYSTEMS = {name: system(name) for name in ("c5.xlarge", "c5.2xlarge", "mine")}


def on(name: str, layers: int) -> SystemEstimate:
    found = one(layers, None)
    return SystemEstimate(found.way._replace(system=name), found.estimate)


def ranked(*estimates: SystemEstimate) -> tuple[Candidate, ...]:
    return candidates(estimates, SYSTEMS, DELIVERED)


def test_systems_are_listed_fastest_first_and_cheapest_is_separate() -> None:
    found = ranked(on("c5.xlarge", 6), on("c5.2xlarge", 4), on("mine", 5))
    assert [(it.estimate.way.system, it.latency_ms) for it in found] == [
        ("c5.2xlarge", 4),
        ("mine", 5),
        ("c5.xlarge", 6),
    ]
    assert quickest(found) is found[0] and cheapest(found) is found[2]
    # Without a price there is no cost, and nothing is cheapest.
    unpriced = ranked(on("mine", 3))
    assert (unpriced[0].dollars_per_million, cheapest(unpriced)) == (None, None)


def test_a_system_is_priced_by_its_instance_type_when_its_own_name_has_no_price() -> None:
    described = replace(system("host-1"), name="Xeon, 4 cores", instance_type="c5.xlarge")
    (found,) = candidates([on("host-1", 1)], {"host-1": described}, DELIVERED)
    assert found.dollars_per_hour == 0.17


def lacking() -> SystemEstimate:
    """An estimate that lacks a layer, of a model that was not timed either."""
    return replace(incomplete(), end_to_end=None)


def test_a_candidate_that_lacks_layers_is_never_the_best_unless_the_whole_model_was_timed() -> None:
    found = ranked(lacking(), on("c5.xlarge", 9))
    assert [it.complete for it in found] == [True, False]
    assert quickest(found) is cheapest(found) is found[0]
    assert quickest(ranked(lacking())) is None
    (timed,) = ranked(incomplete())
    assert (timed.latency_ms, timed.complete) == (9.0, True)


def predicted(width: float) -> SystemEstimate:
    """An estimate in which all layers are predicted, with an interval that is so many times as wide as it is long."""
    found = on("mine", 3)
    composed = found.estimate.composed
    assert composed is not None
    latency = Latency(*(composed.sequential_ms * it for it in (1.0, 1 - width / 2, 1 + width / 2)))
    coverage = replace(found.estimate.coverage, measured=0, missing=3, predicted=3)
    return replace(
        found, estimate=replace(found.estimate, coverage=coverage, composed=composed._replace(latency=latency))
    )


def test_a_predicted_candidate_is_the_best_only_if_its_interval_is_narrow() -> None:
    for width, best in ((0.2, "mine"), (1.0, "c5.xlarge")):
        found = ranked(predicted(width), on("c5.xlarge", 9))
        assert (quickest(found) or found[1]).estimate.way.system == found[0].estimate.way.system == best
    first, second = remarks_on(ranked(predicted(0.2), on("c5.xlarge", 9)))
    assert first.startswith("quickest") and first.endswith("predicted")
    assert "quickest" not in second


def test_systems_are_compared_over_the_runs_of_half_a_day() -> None:
    def timed(name: str, *runs_ms: float) -> SystemEstimate:
        whole = Latency(runs_ms[-1], runs_ms[-1] - 0.01, runs_ms[-1] + 0.01)
        samples = [ms + number / 1e3 for ms in runs_ms for number in range(20)]
        latencies = [(ms, ms - 0.01, ms + 0.01) for ms in runs_ms]
        return replace(on(name, 9), end_to_end=whole, timing=timing_by(latencies, samples))

    assert remarks_on(ranked(timed("mine", 9.0), timed("c5.xlarge", 9.6)))[1] == "unknown, cheapest"
    found = ranked(timed("mine", 9.02, 8.98, 9.0), timed("c5.xlarge", 9.62, 9.58, 9.6))
    assert remarks_on(found) == ["quickest", "slower, cheapest"]
    # The newest runs alone decide the order; where all runs together are the other way around, nothing is known.
    found = ranked(timed("mine", 9.02, 8.98, 9.9), timed("c5.xlarge", 9.82, 9.78, 9.8))
    assert remarks_on(found) == ["quickest, cheapest", "unknown"]


def test_a_single_system_is_the_only_one_and_not_the_quickest() -> None:
    assert remarks_on(ranked(on("c5.xlarge", 9))) == ["the only one"]
    assert remarks_on(ranked(lacking())) == ["the only one, incomplete"]
    # Several models on one system.
    assert remarks_on((*ranked(on("c5.xlarge", 9)), *ranked(on("c5.xlarge", 4)))) == ["", ""]


def test_the_first_name_with_a_price_is_used_and_those_of_the_user_override_the_delivered_ones(tmp_path: Path) -> None:
    paper = {"c4.xlarge": 0.199, "c4.2xlarge": 0.398, "c5.xlarge": 0.17, "c5.2xlarge": 0.34}
    prices = read_prices(tmp_path)
    assert {name: price_of(prices, name, None) for name in paper} == paper
    known = replace(system("xeon-4c-1234"), name="c5.2xlarge", instance_type="c5.xlarge")
    assert price_of(prices, known.id, known) == 0.34
    (tmp_path / PRICES_FILE).write_text('[dollars_per_hour]\n"c5.xlarge" = 0.2\n"my box" = 0\n')
    changed = {"c5.xlarge": 0.2, "my box": 0.0, "c4.xlarge": DELIVERED["c4.xlarge"], "unknown": None}
    prices = read_prices(tmp_path)
    assert {name: price_of(prices, name, None) for name in changed} == changed
    # A million inferences of 36 ms take ten hours.
    assert cost_of(36.0, 0.17) == pytest.approx(1.7)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("nonsense", "not TOML"),
        ('"c5.xlarge" = 0.17', "needs one table"),
        ("dollars_per_hour = 3", "needs one table"),
        ('[dollars_per_hour]\n"c5.xlarge" = "0.17"', "c5.xlarge costs '0.17'"),
        ("[dollars_per_hour]\na = -1", "a costs -1"),
        ("[dollars_per_hour]\na = 1e308", "a costs 1e+308"),
        ("[dollars_per_hour]\na = nan", "a costs nan"),
        ("[dollars_per_hour]\na = true", "a costs True"),
    ],
)
def test_an_invalid_price_table_is_refused_with_place_and_reason(text: str, complaint: str) -> None:
    with pytest.raises(EstimateError) as refused:
        parse_prices(text, "prices file mine.toml")
    assert "mine.toml" in str(refused.value)
    assert complaint in str(refused.value)


def test_the_documented_example_is_valid() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-it-works" / "estimates.md").read_text(encoding="utf-8")
    example = page.split("```toml\n")[2].split("```")[0]
    assert parse_prices(example, "docs") == {"c5.xlarge": 0.17, "my server": 0.05}
    # A name with a dot needs no quotes.
    assert parse_prices("[dollars_per_hour]\nc5.xlarge = 0.17\na.b = 1", "") == {"c5.xlarge": 0.17, "a.b": 1}
