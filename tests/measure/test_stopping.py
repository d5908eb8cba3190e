import math
import random
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.estimate.estimate import is_wide
from dlbricks_tui.measure.events import MeasureError, Stop
from dlbricks_tui.measure.stopping import (
    Adaptive,
    FixedRuns,
    StoppingRule,
    drifting_half_width_ms,
    half_width_ms,
    outliers,
    samples_of,
    samples_until_narrow,
    warm_up_length,
)
from dlbricks_tui.store.statistics import summarise

LATENCIES = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=150)


def noisy(count: int, spread: float, seed: int = 1) -> list[float]:
    """Samples around 10 ms."""
    chance = random.Random(seed)
    return [10.0 * (1 + spread * chance.gauss(0, 1)) for _ in range(count)]


def samples_until_satisfied(rule: StoppingRule, samples: list[float], share: float = 1.0) -> int:
    """Return the number of samples that the rule takes of such a share of a model, looking whenever it wants to."""
    for count in range(1, len(samples) + 1):
        if rule.looks_at(count) and rule.stop(samples_of(samples[:count], rule).statistics, share) is not None:
            return count
    raise AssertionError("the rule never stops")


def test_a_steady_program_takes_the_fewest_samples_and_a_noisy_one_more() -> None:
    rule = Adaptive(target=0.01)
    steady = samples_until_satisfied(rule, [0.1 * sample for sample in noisy(200, 0.002)])
    restless = samples_until_satisfied(rule, noisy(200, 0.03))
    assert steady == rule.least
    assert rule.least < restless < rule.most
    statistics = samples_of(noisy(200, 0.03)[:restless], rule).statistics
    assert half_width_ms(statistics) <= rule.target * statistics.trimmed_mean_ms


def test_a_very_quick_program_needs_no_interval_below_the_resolution() -> None:
    quick = [0.01 * sample for sample in noisy(200, 0.03)]
    assert samples_until_satisfied(Adaptive(enough_ms=0.003), quick) == Adaptive().least
    assert samples_until_satisfied(Adaptive(target=0.01, enough_ms=0.0), quick) > Adaptive().least


def test_samples_say_whether_their_interval_is_narrow_or_a_limit_was_reached() -> None:
    rule = Adaptive()
    assert rule.stop(samples_of([10.0] * 12, rule).statistics) is Stop.NARROW
    assert rule.stop(samples_of([10.0, 30.0, 20.0, 50.0], rule).statistics) is None
    assert rule.stop(samples_of(noisy(100, 0.5), rule).statistics) is Stop.MOST_SAMPLES
    assert FixedRuns(5).stop(samples_of(noisy(5, 0.5), FixedRuns(5)).statistics) is Stop.RUNS


def test_an_interval_that_no_run_accepts_by_default_is_called_wide() -> None:
    rule, unimportant = Adaptive(), 1e-9
    for share in (0.04, 0.049, 0.051, 0.06, 0.5):
        statistics = summarise([10.0 * (1 - share), 10.0 * (1 + share)] * 6)
        found = rule.stop(statistics, unimportant) is Stop.NARROW
        assert found is not is_wide(statistics.trimmed_mean_ms, half_width_ms(statistics))
    assert not is_wide(0.005, rule.enough_ms)
    assert is_wide(0.005, 1.01 * rule.enough_ms)


def test_a_small_part_of_every_model_takes_fewer_samples() -> None:
    rule, samples = Adaptive(target=0.01), noisy(200, 0.03)

    def needed(share: float) -> int:
        return samples_until_satisfied(rule, samples, share)

    assert needed(1.0) == needed(0.3) > needed(0.15) > needed(0.001) == needed(1e-9) == 8
    wild = [10 * sample for sample in noisy(200, 0.5)]
    assert samples_until_satisfied(rule, wild) == rule.most
    assert 8 < samples_until_satisfied(rule, wild, 1e-9) <= 0.6 * rule.most


def test_a_narrower_target_may_take_more_samples_up_to_four_times_as_many() -> None:
    usual, wild = Adaptive(), noisy(400, 0.5)
    assert samples_until_satisfied(usual, wild) == usual.most
    most = [usual.narrowed(usual.target / times).most / usual.most for times in (0.5, 1, 1.5, 2, 8)]
    assert most == pytest.approx([1, 1, 2.25, 4, 4], rel=0.01)
    narrow = usual.narrowed(usual.target / 2)
    assert samples_until_satisfied(narrow, wild) == 4 * usual.most
    # A small share of a model has half as many.
    assert narrow.most_samples(0.5, 0.01) == narrow.most / 2


def test_targets_of_carriers_that_share_an_estimate_add_up_to_that_of_the_estimate() -> None:
    usual, shares = Adaptive(), (0.5, 0.3, 0.15, 0.05)
    errors = [usual.for_share(it).target * it for it in shares]
    assert math.hypot(*errors) == pytest.approx(usual.target)
    assert [usual.for_share(it).most for it in (1.0, 0.5, 0.1, 0.0)] == [50, 25, 12, 12]
    assert usual.for_share(0.0).target == pytest.approx(5 * usual.target)
    assert usual.for_share(1.0) == usual
    assert [Adaptive(0.2).for_share(0.1).target, Adaptive(0.9).for_share(0.1).target] == [0.5, 0.9]


def test_slow_programs_are_capped_by_time() -> None:
    rule = Adaptive(least=20, most=100, most_seconds=20.0, enough_seconds=0.25)
    assert rule.bounds(10.0) == (20, 100)
    assert rule.bounds(20.0) == (13, 100)
    assert rule.bounds(100.0) == (8, 100)
    assert rule.bounds(400.0) == (5, 50)
    assert rule.bounds(2_000.0) == (5, 10)
    assert rule.bounds(5_000.0) == (4, 4)
    assert rule.bounds(60_000.0) == (3, 3)


def test_fixed_runs_take_exactly_the_given_number_and_drop_none() -> None:
    rule = FixedRuns(100)
    samples = [99.0, 98.0, *noisy(150, 0.3)]
    assert samples_until_satisfied(rule, samples) == 100
    assert samples_of(samples[:100], rule).statistics.count == 100


@given(LATENCIES)
def test_only_the_warm_up_is_left_out_of_the_statistics(samples: list[float]) -> None:
    series = samples_of(samples, Adaptive())
    assert series.samples_ms == tuple(samples)
    assert series.statistics.count == len(samples) - series.warm_up
    assert series.warm_up <= len(samples) // 2


def test_slow_first_samples_are_warm_up_and_slow_later_ones_are_not() -> None:
    assert warm_up_length([50.0, 30.0, 20.0, *noisy(30, 0.01)]) == 3
    assert warm_up_length([*noisy(15, 0.01), 50.0, *noisy(15, 0.01)]) == 0
    assert warm_up_length(noisy(30, 0.01)) == 0


def test_a_speed_up_of_the_host_is_no_warm_up() -> None:
    """Programs finished before have slow samples only, so the others must keep theirs."""
    samples = [*(1.3 * sample for sample in noisy(20, 0.01)), *noisy(20, 0.01)]
    series = samples_of(samples, Adaptive())
    assert series.warm_up == 0
    assert series.statistics.trimmed_mean_ms > 1.1 * min(samples)


def test_outliers_are_counted_and_stay_in_the_samples() -> None:
    samples = [*noisy(20, 0.01), 90.0, *noisy(20, 0.01, seed=2)]
    assert outliers(samples) == (20,)
    series = samples_of(samples, Adaptive())
    assert series.outliers == 1
    assert series.statistics.count == len(samples)


@given(st.integers(1, 400))
def test_the_rule_is_checked_less_often_with_more_samples_and_always_at_the_end(count: int) -> None:
    rule = Adaptive(least=20, most=110)
    looks = [samples for samples in range(1, rule.most) if rule.looks_at(samples)]
    assert rule.least in looks
    assert looks[0] == 3
    assert len(looks) < 25
    assert rule.looks_at(count) == (count in looks or count >= rule.most)


def test_rules_that_cannot_be_satisfied_are_refused() -> None:
    for target in (0.0, -1.0, 1.0):
        with pytest.raises(MeasureError, match="target"):
            Adaptive(target=target)
    with pytest.raises(MeasureError, match="runs"):
        FixedRuns(0)


def test_samples_until_narrow_are_about_those_that_the_interval_then_needs() -> None:
    told = []
    for seed in range(30):
        samples = noisy(100, 0.2, seed)
        half_ms = drifting_half_width_ms(samples)
        assert samples_until_narrow(samples, 1.001 * half_ms, 1000) == 100
        assert samples_until_narrow(samples[:20], half_ms, 20) == 20
        told.append(samples_until_narrow(samples[:20], half_ms, 1000))
    assert median(told) == pytest.approx(100, rel=0.25), "the interval of a few samples is wider than it will be"
