import random
import statistics
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.store.statistics import summarise, trimmed_mean

latencies = st.lists(st.floats(1e-4, 1e4), min_size=1, max_size=60)


def test_a_fifth_is_dropped_at_either_end() -> None:
    assert trimmed_mean([1000, 2, 3, 4, 0]) == 3
    assert trimmed_mean([*range(50)]) == statistics.mean(range(10, 40))


def test_the_paper_s_published_means_are_these_means() -> None:
    # Fifty runs whose first one is slow, as in the authors' files: thirty of them count.
    samples = [733.0] + [155.0] * 24 + [156.0] * 20 + [170.0] * 5
    assert trimmed_mean(samples) == pytest.approx(statistics.mean(sorted(samples)[10:40]))


@given(latencies)
def test_statistics_say_what_the_standard_library_says(samples: list[float]) -> None:
    found = summarise(samples)
    assert found.median_ms == pytest.approx(statistics.median(samples))
    assert found.minimum_ms == min(samples)
    assert found.count == len(samples)
    kept = sorted(samples)[len(samples) // 5 : len(samples) - len(samples) // 5]
    assert found.trimmed_mean_ms == pytest.approx(float(statistics.mean(map(Fraction, kept))))
    if len(samples) > 1:
        low, _, high = statistics.quantiles(samples, n=4, method="inclusive")
        assert found.spread_ms == pytest.approx(high - low, abs=1e-9)


@given(latencies)
def test_the_interval_lies_among_the_samples_and_around_what_they_say(samples: list[float]) -> None:
    found = summarise(samples)
    slack = 1e-9 * max(samples)
    assert min(samples) - slack <= found.low_ms <= found.high_ms <= max(samples) + slack


@given(latencies, st.randoms(use_true_random=False))
def test_the_order_of_samples_changes_nothing(samples: list[float], chance: random.Random) -> None:
    shuffled = chance.sample(samples, len(samples))
    assert summarise(shuffled) == summarise(samples)


def test_nineteen_intervals_in_twenty_hold_the_truth() -> None:
    chance = random.Random(1)
    # Of a symmetric distribution the trimmed mean is the mean.
    found = [summarise([chance.gauss(10, 1) for _ in range(40)]) for _ in range(400)]
    assert 0.91 <= statistics.mean(each.low_ms <= 10 <= each.high_ms for each in found) <= 0.98


def test_more_samples_make_the_interval_narrower() -> None:
    chance = random.Random(2)
    few, many = (summarise([chance.gauss(10, 1) for _ in range(count)]) for count in (20, 2000))
    assert many.high_ms - many.low_ms < (few.high_ms - few.low_ms) / 4


def test_equal_samples_leave_no_doubt() -> None:
    found = summarise([2.5] * 7)
    assert (found.low_ms, found.high_ms, found.spread_ms) == pytest.approx((2.5, 2.5, 0))


def test_no_samples_say_nothing() -> None:
    with pytest.raises(ValueError, match="no samples"):
        summarise([])
