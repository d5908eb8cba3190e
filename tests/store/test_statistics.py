import itertools
import math
import random
import statistics
import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.store.change import (
    BESIDE_BEST,
    BRICKS,
    Timing,
    Verdict,
    all_compared,
    changes_from,
    compared,
    t_distance,
    timing_of,
)
from dlbricks_tui.store.statistics import (
    FEWEST_SAMPLES,
    adjusted,
    exact_rank_sum_p_value,
    mean_ratio,
    quantile,
    rank_sum_p_value,
    summarise,
    t_p_value,
)

latencies = st.lists(st.floats(1e-4, 1e4), min_size=1, max_size=60)


@given(latencies)
def test_statistics_agree_with_the_standard_library(samples: list[float]) -> None:
    found = summarise(samples)
    # Their order changes nothing.
    assert summarise(samples[::-1]) == summarise(sorted(samples)) == found
    slack = 1e-9 * max(samples)
    assert min(samples) - slack <= found.low_ms <= found.high_ms <= max(samples) + slack
    assert found.median_ms == pytest.approx(statistics.median(samples))
    assert found.minimum_ms == min(samples)
    assert found.count == len(samples)
    kept = sorted(samples)[len(samples) // 5 : len(samples) - len(samples) // 5]
    assert found.trimmed_mean_ms == pytest.approx(float(statistics.mean(map(Fraction, kept))))
    if len(samples) > 1:
        low, _, high = statistics.quantiles(samples, n=4, method="inclusive")
        assert found.spread_ms == pytest.approx(high - low, abs=1e-9)


def test_intervals_cover_the_true_mean_95_percent_of_the_time() -> None:
    chance = random.Random(1)
    # Of a symmetric distribution the trimmed mean is the mean.
    found = [summarise([chance.gauss(10, 1) for _ in range(40)]) for _ in range(400)]
    assert 0.91 <= statistics.mean(each.low_ms <= 10 <= each.high_ms for each in found) <= 0.98


def test_equal_samples_have_an_interval_of_zero_width_and_none_are_refused() -> None:
    found = summarise([2.5] * 7)
    assert (found.low_ms, found.high_ms, found.spread_ms) == pytest.approx((2.5, 2.5, 0))
    with pytest.raises(ValueError, match="no samples"):
        summarise([])


LATENCIES = st.lists(st.floats(0.01, 100.0), min_size=FEWEST_SAMPLES, max_size=40)


def exact_p_value(first: list[float], second: list[float]) -> float:
    """Over all ways of dealing the samples out: how many give ranks at least as uneven."""
    ranks = {value: rank for rank, value in enumerate(sorted(first + second), 1)}
    middle = len(first) * (len(first) + len(second) + 1) / 2
    seen = abs(sum(ranks[value] for value in first) - middle)
    deals = list(itertools.combinations(ranks.values(), len(first)))
    return sum(abs(sum(deal) - middle) >= seen for deal in deals) / len(deals)


@pytest.mark.parametrize("shift", [0.0, 0.1, 0.3, 0.6, 1.0])
def test_the_p_value_equals_that_of_the_exact_permutation_test(shift: float) -> None:
    chance = random.Random(7)
    first = [chance.random() for _ in range(FEWEST_SAMPLES)]
    second = [chance.random() + shift for _ in range(FEWEST_SAMPLES)]
    found = rank_sum_p_value(first, second)
    assert found == pytest.approx(exact_p_value(first, second), abs=0.015)


@given(LATENCIES, LATENCIES, st.floats(0.5, 4.0))
def test_the_p_value_is_symmetric_and_does_not_depend_on_the_unit(
    first: list[float], second: list[float], unit: float
) -> None:
    one, other = ([round(it, 6) for it in samples] for samples in (first, second))
    found = rank_sum_p_value(one, other)
    assert found is not None and 0.0 <= found <= 1.0
    assert found == pytest.approx(rank_sum_p_value(other, one))
    assert rank_sum_p_value([it * unit for it in one], [it * unit for it in other]) == pytest.approx(found)
    itself = rank_sum_p_value(first, first)
    assert itself is not None and itself > 0.9


def test_equal_samples_do_not_differ_and_too_few_are_not_judged() -> None:
    assert rank_sum_p_value([1.0] * 10, [1.0] * 10) == 1.0
    assert rank_sum_p_value([1.0] * (FEWEST_SAMPLES - 1), [2.0] * 25) is None
    assert rank_sum_p_value([1.0] * FEWEST_SAMPLES, [2.0] * 25) is not None


@pytest.mark.parametrize(("distance", "freedom"), [(2.776, 4), (2.306, 8), (1.960, math.inf)])
def test_p_values_by_students_distribution_are_those_of_its_tables(distance: float, freedom: float) -> None:
    assert t_p_value(distance, freedom) == pytest.approx(0.05, rel=0.02)
    assert t_p_value(t_distance(freedom), freedom) == pytest.approx(0.05) and t_distance(freedom) == pytest.approx(
        distance, rel=0.01
    )
    assert t_p_value(0.0, freedom) == 1.0 and t_p_value(1e200, freedom) == pytest.approx(0.0)


def test_p_values_of_many_tests_are_adjusted_as_published() -> None:
    assert adjusted([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.02, 0.04, 0.04, 0.02])
    assert adjusted([0.5]) == [0.5]
    assert adjusted([]) == []


@given(st.lists(st.floats(0.0, 1.0), max_size=30))
def test_adjustment_never_lowers_a_p_value_and_keeps_the_order(p_values: list[float]) -> None:
    found = adjusted(p_values)
    assert all(raised >= plain or raised == pytest.approx(plain) for raised, plain in zip(found, p_values, strict=True))
    by_plain = [raised for _, raised in sorted(zip(p_values, found, strict=True))]
    assert by_plain == sorted(by_plain)


def test_the_mean_of_ratios_treats_2_and_one_half_alike() -> None:
    ratio, low, high = mean_ratio([2.0, 0.5, 2.0, 0.5])
    assert ratio == pytest.approx(1.0) and low < 1.0 < high
    assert mean_ratio([1.1] * 5) == pytest.approx((1.1, 1.1, 1.1))


@given(latencies, st.sampled_from([0.0, 0.025, 0.25, 1 / 3, 0.5, 0.75, 0.975, 1.0]) | st.floats(0, 1))
def test_quantiles_are_those_of_numpy_to_the_last_bit(samples: list[float], share: float) -> None:
    ordered = np.sort(np.array(samples))
    assert quantile(ordered, share) == quantile(ordered.tolist(), share) == float(np.quantile(ordered, share))


def test_the_exact_p_value_counts_all_orders() -> None:
    samples = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    for first in itertools.combinations(samples, 3):
        second = [it for it in samples if it not in first]
        found = sum(one > other for one in first for other in second)
        extreme = min(found, 15 - found)
        orders = list(itertools.combinations(samples, 3))
        larger = [sum(one > other for one in it for other in samples if other not in it) for it in orders]
        expected = min(1.0, 2 * sum(it <= extreme for it in larger) / len(orders))
        assert exact_rank_sum_p_value(first, second) == pytest.approx(expected)
    assert exact_rank_sum_p_value([1.0] * 5, [1.0] * 6) == 1.0


def test_few_samples_are_compared_with_very_many_in_no_time() -> None:
    began = time.process_time()
    assert exact_rank_sum_p_value(list(range(3000)), [1500.5] * 6) == pytest.approx(0.9925, abs=0.01)
    assert time.process_time() - began < 1.0


def samples(around_ms: float, count: int = 40, spread: float = 0.01, seed: int = 1) -> list[float]:
    chance = random.Random(seed)
    return [around_ms * (1 + chance.gauss(0, spread)) for _ in range(count)]


def measured(around_ms: float, count: int = 40, spread: float = 0.01, seed: int = 1, processes: int = 3) -> Timing:
    """The latency over processes that differ as samples do only."""
    return timing_of([samples(around_ms, count, spread, 10 * seed + number) for number in range(processes)])


def estimated(value_ms: float, half: float) -> Timing:
    return Timing(value_ms=value_ms, low_ms=value_ms * (1 - half), high_ms=value_ms * (1 + half))


@pytest.mark.parametrize(
    ("is_ms", "verdict"), [(10.0, Verdict.SAME), (10.2, Verdict.SAME), (10.6, Verdict.SLOWER), (9.4, Verdict.FASTER)]
)
def test_the_verdict_needs_a_change_beyond_the_limit(is_ms: float, verdict: Verdict) -> None:
    found = compared(measured(10.0), measured(is_ms, seed=2))
    assert found.verdict is verdict
    # A significant change within the limit is the same.
    assert found.significant == (is_ms != 10.0)
    if is_ms == 10.2:
        assert compared(measured(10.0), measured(10.2, seed=2), changes_from(0.01)).verdict is Verdict.SLOWER


def test_too_few_samples_give_no_verdict_however_large_the_change() -> None:
    found = compared(measured(10.0, count=1), measured(20.0, seed=2))
    assert (found.verdict, found.p_value, found.significant) == (Verdict.UNKNOWN, None, False)
    assert found.reason == "fewer than 5 samples"
    assert compared(measured(10.0, count=1), measured(10.0)).verdict is Verdict.UNKNOWN
    assert compared(measured(10.0, count=1), estimated(20.0, 0.01)).p_value is None


def test_a_few_samples_of_a_slow_model_are_enough() -> None:
    found = compared(measured(900.0, count=2, spread=0.004), measured(1000.0, count=3, spread=0.004, seed=2))
    assert found.verdict is Verdict.SLOWER and found.p_value is not None and found.p_value > 1e-4
    same = compared(measured(900.0, count=2, spread=0.004), measured(901.0, count=3, spread=0.004, seed=2))
    assert same.verdict is Verdict.SAME


@pytest.mark.parametrize("processes", [1, 2])
@pytest.mark.parametrize("exchanged", [False, True])
def test_few_processes_on_a_side_need_a_larger_change(processes: int, exchanged: bool) -> None:
    few = measured(10.0, processes=processes)
    for is_ms, verdict in ((10.0, Verdict.SAME), (11.2, Verdict.UNKNOWN), (20.0, Verdict.SLOWER)):
        other = measured(is_ms, seed=2)
        found = compared(other, few) if exchanged else compared(few, other)
        assert found.verdict is (Verdict.FASTER if exchanged and verdict is Verdict.SLOWER else verdict)
        assert found.reason == ("processes differ by up to 10.0 %: measure both in 3 runs" if is_ms == 11.2 else "")


def test_a_change_of_a_brick_counts_from_one_percent_on_and_the_same_is_within_three() -> None:
    assert compared(measured(10.0, spread=0.001), measured(10.2, spread=0.001), BRICKS).verdict is Verdict.SLOWER
    assert compared(measured(10.0, spread=0.001), measured(10.05, spread=0.001), BRICKS).verdict is Verdict.SAME
    # In between, what may be chance, or the difference of two processes, is the same.
    chance = compared(estimated(10.0, 0.015), estimated(10.2, 0.015), BRICKS)
    assert (chance.verdict, chance.significant) == (Verdict.SAME, False)
    few = compared(measured(10.0, spread=0.001, processes=1), measured(10.2, spread=0.001), BRICKS)
    assert (few.verdict, few.significant) == (Verdict.SAME, True)


def test_samples_that_vary_too_much_give_no_verdict() -> None:
    assert compared(measured(10.0, spread=0.3), measured(10.1, spread=0.3, seed=2)).verdict is Verdict.UNKNOWN
    # A change that may be chance is neither slower nor the same.
    found = compared(measured(10.0, count=10, spread=0.3), measured(10.5, count=10, spread=0.3, seed=5))
    assert not found.significant and found.verdict is Verdict.UNKNOWN
    assert found.reason == "it may be chance, as p is not below 0.05"
    wide = compared(estimated(10.0, 0.2), estimated(10.1, 0.2))
    assert wide.reason == "its interval reaches more than 3.0 % to a side"


def test_processes_that_differ_hide_a_change_of_that_size() -> None:
    was = timing_of([samples(10.0), samples(10.8, seed=2), samples(9.3, seed=3)])
    now = timing_of([samples(10.6, seed=4), samples(11.4, seed=5), samples(9.8, seed=6)])
    # All samples together differ, as if each had been independent.
    assert compared(was, now).verdict is Verdict.UNKNOWN
    together = Timing(value_ms=was.value_ms, low_ms=9.9, high_ms=10.1, samples_ms=was.samples_ms)
    assert was.high_ms - was.low_ms > together.high_ms - together.low_ms


def test_several_processes_are_compared_by_a_t_test() -> None:
    was, now = ([samples(around, spread=0.001, seed=seed) for around in (9.8, 10.0, 10.2)] for seed in (1, 2))
    now = [[sample * 1.06 for sample in one] for one in now]
    # t is 3.6 with 4 degrees of freedom.
    quiet = compared(timing_of(was), timing_of(now))
    assert quiet.p_value == pytest.approx(0.0234, rel=0.1) and quiet.verdict is Verdict.SLOWER
    # Two processes do not show by how much they differ.
    assert compared(timing_of(was[:2]), timing_of(now)).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("processes", [1, 2, 3, 5])
def test_slower_never_stands_beside_an_interval_that_holds_zero(processes: int) -> None:
    chance = random.Random(processes)
    found = []
    for _ in range(300):
        sides = [
            [
                samples(by * math.exp(chance.gauss(0, 0.02)), 20, 0.05, chance.randrange(1 << 30))
                for _ in range(processes)
            ]
            for by in (10.0, chance.choice((8.0, 10.6, 11.5)))
        ]
        was, now = map(timing_of, sides)
        found.append(compared(was, now, changes_from(0.01)))
        back = compared(now, was, changes_from(0.01))
        assert back.p_value == pytest.approx(found[-1].p_value)
        assert [1 + it for it in back.interval] == pytest.approx([1 / (1 + it) for it in found[-1].interval[::-1]])
        holds_zero = found[-1].interval[0] <= 0.0 <= found[-1].interval[1]
        assert found[-1].verdict not in (Verdict.SLOWER, Verdict.FASTER) or not holds_zero
    assert {it.verdict for it in found} >= {Verdict.SLOWER, Verdict.FASTER, Verdict.UNKNOWN}


def test_the_best_of_several_needs_a_smaller_p_value() -> None:
    pair = estimated(10.0, 0.05), estimated(10.76, 0.05)
    assert compared(*pair).p_value == pytest.approx(0.042, rel=0.05)
    beside_best = compared(*pair, BESIDE_BEST)
    assert (compared(*pair).verdict, beside_best.verdict) == (Verdict.SLOWER, Verdict.UNKNOWN)
    assert beside_best.reason == "it may be chance, as p is not below 0.035"


def test_one_process_is_taken_to_differ_as_much_as_several_others_do() -> None:
    several = timing_of([samples(10.0), samples(10.3, seed=2), samples(9.7, seed=3)])
    assert several.apart == pytest.approx(0.03, abs=0.005)
    one = measured(12.0, seed=4, processes=1)
    # Two processes of them differ by more.
    for found in (compared(several, one), compared(one, several)):
        alone = compared(measured(10.0), one)
        assert found.interval[1] - found.interval[0] > 2 * (alone.interval[1] - alone.interval[0])


def test_estimates_are_compared_by_their_intervals() -> None:
    assert compared(estimated(10.0, 0.01), estimated(10.6, 0.01)).verdict is Verdict.SLOWER
    assert compared(estimated(10.0, 0.01), estimated(10.1, 0.01)).verdict is Verdict.SAME
    assert compared(estimated(10.0, 0.2), estimated(10.6, 0.2)).verdict is Verdict.UNKNOWN
    assert compared(measured(10.0), estimated(9.0, 0.01)).verdict is Verdict.FASTER


def test_an_interval_that_reaches_zero_stays_above_minus_one_hundred_percent() -> None:
    found = compared(estimated(10.0, 1.0), estimated(10.0, 1.0))
    assert -1.0 < found.interval[0] < -0.99 and 1.0 < found.interval[1] < 1e3 and found.verdict is Verdict.UNKNOWN


def test_a_latency_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be compared"):
        Timing(value_ms=0.0, low_ms=0.0, high_ms=0.0)


def test_one_low_p_value_of_many_models_is_taken_for_chance() -> None:
    chance = estimated(10.0, 0.05), estimated(10.8, 0.05)
    nothing = estimated(10.0, 0.05), estimated(10.0, 0.05)
    assert [it.verdict for it in all_compared([chance])] == [Verdict.SLOWER]
    assert {it.verdict for it in all_compared([chance, *([nothing] * 19)])} == {Verdict.UNKNOWN}
    assert {it.verdict for it in all_compared([chance] * 20)} == {Verdict.SLOWER}
    assert all_compared([]) == []
    # A model without a p-value stays unknown.
    found = all_compared([(measured(10.0, count=1), measured(20.0)), (measured(10.0), measured(12.0, seed=2))])
    assert [it.verdict for it in found] == [Verdict.UNKNOWN, Verdict.SLOWER]


positive = st.floats(0.01, 1000)
halves = st.floats(0.0, 0.5)


@given(positive, positive, halves, halves, st.floats(0.001, 0.5))
def test_exchanging_the_timings_never_turns_slower_into_slower(
    was_ms: float, is_ms: float, was_half: float, is_half: float, by: float
) -> None:
    there = compared(estimated(was_ms, was_half), estimated(is_ms, is_half), changes_from(by))
    back = compared(estimated(is_ms, is_half), estimated(was_ms, was_half), changes_from(by))
    for verdict, opposite in ((Verdict.SLOWER, Verdict.FASTER), (Verdict.FASTER, Verdict.SLOWER)):
        if there.verdict is verdict:
            # A change of exactly the limit may be below it as a share of the larger latency.
            assert back.verdict is opposite or abs(back.change) <= by
    assert there.interval[0] <= there.change <= there.interval[1]
