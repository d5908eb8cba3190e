import itertools
import math
import random
import statistics
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.store.statistics import (
    FEWEST_SAMPLES,
    adjusted,
    exact_rank_sum_p_value,
    mean_ratio,
    quantile,
    rank_sum_p_value,
    summarise,
    t_p_value,
    trimmed_mean,
)

latencies = st.lists(st.floats(1e-4, 1e4), min_size=1, max_size=60)


def test_the_trimmed_mean_drops_a_fifth_at_either_end() -> None:
    assert trimmed_mean([1000, 2, 3, 4, 0]) == 3
    assert trimmed_mean([*range(50)]) == statistics.mean(range(10, 40))


def test_the_trimmed_mean_reproduces_the_papers_means() -> None:
    # Fifty runs whose first one is slow, as in the authors' files: the mean uses thirty.
    samples = [733.0] + [155.0] * 24 + [156.0] * 20 + [170.0] * 5
    assert trimmed_mean(samples) == pytest.approx(statistics.mean(sorted(samples)[10:40]))


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


def test_more_samples_make_the_interval_narrower() -> None:
    chance = random.Random(2)
    few, many = (summarise([chance.gauss(10, 1) for _ in range(count)]) for count in (20, 2000))
    assert many.high_ms - many.low_ms < (few.high_ms - few.low_ms) / 4


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


def test_false_positives_occur_at_the_stated_rate() -> None:
    chance = random.Random(3)
    found = [
        rank_sum_p_value([chance.expovariate(1) for _ in range(25)], [chance.expovariate(1) for _ in range(25)])
        for _ in range(400)
    ]
    assert 0.02 < sum(it is not None and it < 0.05 for it in found) / len(found) < 0.08


@pytest.mark.parametrize(("distance", "freedom"), [(2.776, 4), (2.306, 8), (1.960, math.inf)])
def test_p_values_by_students_distribution_are_those_of_its_tables(distance: float, freedom: float) -> None:
    assert t_p_value(distance, freedom) == pytest.approx(0.05, rel=0.02)
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


def test_the_exact_p_value_is_near_the_approximate_one_and_careful_with_equal_samples() -> None:
    chance = random.Random(4)
    first, second = ([chance.gauss(mean, 1) for _ in range(10)] for mean in (0.0, 1.2))
    assert exact_rank_sum_p_value(first, second) == pytest.approx(rank_sum_p_value(first, second), abs=0.01)
    assert exact_rank_sum_p_value([1.0] * 5, [1.0] * 6) == 1.0
    assert exact_rank_sum_p_value([1.0] * 5, [2.0] * 5) == pytest.approx(2 / 252)
