import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.store.significance import FEWEST_SAMPLES, adjusted, mean_ratio, rank_sum_p_value

LATENCIES = st.lists(st.floats(0.01, 100.0), min_size=FEWEST_SAMPLES, max_size=40)


def exact_p_value(first: list[float], second: list[float]) -> float:
    """Over all ways of dealing the samples out: how many give ranks at least as uneven."""
    ranks = {value: rank for rank, value in enumerate(sorted(first + second), 1)}
    middle = len(first) * (len(first) + len(second) + 1) / 2
    seen = abs(sum(ranks[value] for value in first) - middle)
    deals = list(itertools.combinations(ranks.values(), len(first)))
    return sum(abs(sum(deal) - middle) >= seen for deal in deals) / len(deals)


@pytest.mark.parametrize("shift", [0.0, 0.1, 0.3, 0.6, 1.0])
def test_the_p_value_is_that_of_counting_all_ways_of_dealing_the_samples_out(shift: float) -> None:
    chance = random.Random(7)
    first = [chance.random() for _ in range(FEWEST_SAMPLES)]
    second = [chance.random() + shift for _ in range(FEWEST_SAMPLES)]
    found = rank_sum_p_value(first, second)
    assert found == pytest.approx(exact_p_value(first, second), abs=0.015)


@given(LATENCIES, LATENCIES)
def test_it_makes_no_difference_which_series_is_called_the_first(first: list[float], second: list[float]) -> None:
    found = rank_sum_p_value(first, second)
    assert found is not None and 0.0 <= found <= 1.0
    assert found == pytest.approx(rank_sum_p_value(second, first))


@given(LATENCIES, LATENCIES, st.floats(0.5, 4.0))
def test_the_unit_of_the_samples_does_not_matter(first: list[float], second: list[float], unit: float) -> None:
    scaled = rank_sum_p_value([round(it, 6) * unit for it in first], [round(it, 6) * unit for it in second])
    assert scaled == pytest.approx(rank_sum_p_value([round(it, 6) for it in first], [round(it, 6) for it in second]))


@given(LATENCIES)
def test_a_series_does_not_differ_from_itself(samples: list[float]) -> None:
    found = rank_sum_p_value(samples, samples)
    assert found is not None and found > 0.9


def test_equal_samples_throughout_say_nothing() -> None:
    assert rank_sum_p_value([1.0] * 10, [1.0] * 10) == 1.0


def test_too_few_samples_are_not_judged() -> None:
    assert rank_sum_p_value([1.0] * (FEWEST_SAMPLES - 1), [2.0] * 25) is None


def test_chance_is_called_a_difference_as_often_as_promised() -> None:
    chance = random.Random(3)
    found = [
        rank_sum_p_value([chance.expovariate(1) for _ in range(25)], [chance.expovariate(1) for _ in range(25)])
        for _ in range(400)
    ]
    assert 0.02 < sum(it is not None and it < 0.05 for it in found) / len(found) < 0.08


def test_p_values_of_many_tests_are_raised_as_the_procedure_says() -> None:
    assert adjusted([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.02, 0.04, 0.04, 0.02])
    assert adjusted([0.5]) == [0.5]
    assert adjusted([]) == []


@given(st.lists(st.floats(0.0, 1.0), max_size=30))
def test_a_p_value_never_falls_and_the_order_stays(p_values: list[float]) -> None:
    found = adjusted(p_values)
    assert all(raised >= plain or raised == pytest.approx(plain) for raised, plain in zip(found, p_values, strict=True))
    by_plain = [raised for _, raised in sorted(zip(p_values, found, strict=True))]
    assert by_plain == sorted(by_plain)


def test_the_mean_of_ratios_treats_twice_and_half_alike() -> None:
    ratio, low, high = mean_ratio([2.0, 0.5, 2.0, 0.5])
    assert ratio == pytest.approx(1.0) and low < 1.0 < high
    assert mean_ratio([1.1] * 5) == pytest.approx((1.1, 1.1, 1.1))
