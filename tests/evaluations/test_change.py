import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.evaluations.change import Change, CheckVerdict, Timing, compared, corrected, timing_of


def samples(around_ms: float, count: int = 40, spread: float = 0.01, seed: int = 1) -> list[float]:
    chance = random.Random(seed)
    return [around_ms * (1 + chance.gauss(0, spread)) for _ in range(count)]


def measured(around_ms: float, count: int = 40, spread: float = 0.01, seed: int = 1) -> Timing:
    return timing_of([samples(around_ms, count, spread, seed)])


def estimated(value_ms: float, half: float) -> Timing:
    return Timing(value_ms=value_ms, low_ms=value_ms * (1 - half), high_ms=value_ms * (1 + half))


@pytest.mark.parametrize(
    ("is_ms", "verdict"),
    [
        (10.0, CheckVerdict.SAME),
        (10.2, CheckVerdict.SAME),
        (10.6, CheckVerdict.SLOWER),
        (9.4, CheckVerdict.FASTER),
    ],
)
def test_the_verdict_needs_a_change_beyond_the_limit(is_ms: float, verdict: CheckVerdict) -> None:
    assert compared(measured(10.0), measured(is_ms, seed=2), by=0.03).verdict is verdict


def test_a_significant_change_within_the_limit_is_the_same() -> None:
    found = compared(measured(10.0), measured(10.2, seed=2), by=0.03)
    assert found.significant and found.verdict is CheckVerdict.SAME
    assert compared(measured(10.0), measured(10.2, seed=2), by=0.01).verdict is CheckVerdict.SLOWER


def test_the_interval_of_the_change_lies_around_it() -> None:
    found = compared(measured(10.0), measured(11.0, seed=2))
    assert found.low < found.change < found.high
    assert found.change == pytest.approx(0.1, abs=0.01) and found.high - found.low < 0.03


def test_too_few_samples_give_no_verdict_however_large_the_change() -> None:
    found = compared(measured(10.0, count=4), measured(20.0, seed=2))
    assert (found.verdict, found.p_value, found.significant) == (CheckVerdict.UNKNOWN, None, False)
    assert compared(measured(10.0, count=4), measured(10.0)).verdict is CheckVerdict.UNKNOWN


def test_a_few_samples_of_a_slow_model_are_enough() -> None:
    found = compared(measured(900.0, count=5, spread=0.004), measured(1000.0, count=9, spread=0.004, seed=2))
    assert found.verdict is CheckVerdict.SLOWER and found.p_value is not None and found.p_value > 1e-4
    same = compared(measured(900.0, count=5, spread=0.004), measured(901.0, count=9, spread=0.004, seed=2))
    assert same.verdict is CheckVerdict.SAME


def test_samples_that_vary_too_much_give_no_verdict() -> None:
    assert compared(measured(10.0, spread=0.3), measured(10.1, spread=0.3, seed=2)).verdict is CheckVerdict.UNKNOWN
    # A change that may be chance is neither slower nor the same.
    found = compared(measured(10.0, count=10, spread=0.3), measured(10.5, count=10, spread=0.3, seed=3))
    assert not found.significant and found.verdict is CheckVerdict.UNKNOWN


def test_processes_that_differ_hide_a_change_of_that_size() -> None:
    was = timing_of([samples(10.0), samples(10.8, seed=2), samples(9.3, seed=3)])
    now = timing_of([samples(10.6, seed=4), samples(11.4, seed=5), samples(9.8, seed=6)])
    # All samples together differ, as if each had been independent.
    assert compared(was, now).verdict is CheckVerdict.UNKNOWN
    together = Timing(value_ms=was.value_ms, low_ms=9.9, high_ms=10.1, samples_ms=was.samples_ms)
    assert was.high_ms - was.low_ms > together.high_ms - together.low_ms


def test_one_process_is_taken_to_differ_as_much_as_several_others_do() -> None:
    several = timing_of([samples(10.0), samples(10.3, seed=2), samples(9.7, seed=3)])
    assert several.apart == pytest.approx(0.03, abs=0.005)
    one = measured(10.6, seed=4)
    # Two processes of them differ by more.
    assert (
        compared(several, one).verdict is CheckVerdict.UNKNOWN
        and compared(one, several).verdict is CheckVerdict.UNKNOWN
    )
    assert compared(measured(10.0), one).verdict is CheckVerdict.SLOWER


def test_estimates_are_compared_by_their_intervals() -> None:
    assert compared(estimated(10.0, 0.01), estimated(10.6, 0.01)).verdict is CheckVerdict.SLOWER
    assert compared(estimated(10.0, 0.01), estimated(10.1, 0.01)).verdict is CheckVerdict.SAME
    assert compared(estimated(10.0, 0.2), estimated(10.6, 0.2)).verdict is CheckVerdict.UNKNOWN
    assert compared(measured(10.0), estimated(9.0, 0.01)).verdict is CheckVerdict.FASTER


def test_an_interval_that_reaches_zero_stays_above_minus_one_hundred_percent() -> None:
    found = compared(estimated(10.0, 1.0), estimated(10.0, 1.0))
    assert found.low == -1.0 and found.verdict is CheckVerdict.UNKNOWN


def test_a_latency_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot be compared"):
        Timing(value_ms=0.0, low_ms=0.0, high_ms=0.0)


def changes_by_chance(p_values: Sequence[float]) -> list[Change]:
    return [
        Change(was_ms=1, is_ms=1.05, change=0.05, low=0.0, high=0.1, p_value=p, significant=p < 0.05, verdict=verdict)
        for p, verdict in ((p, CheckVerdict.SLOWER if p < 0.05 else CheckVerdict.UNKNOWN) for p in p_values)
    ]


def test_one_low_p_value_of_many_models_is_taken_for_chance() -> None:
    found = corrected(changes_by_chance([0.03, *([0.5] * 19)]), by=0.03)
    assert {it.verdict for it in found} == {CheckVerdict.UNKNOWN}
    assert [it.verdict for it in corrected(changes_by_chance([0.03]), by=0.03)] == [CheckVerdict.SLOWER]
    assert [it.verdict for it in corrected(changes_by_chance([1e-9] * 20), by=0.03)] == [CheckVerdict.SLOWER] * 20


def test_models_without_a_p_value_stay_unknown_among_others() -> None:
    unknown = compared(measured(10.0, count=3), measured(20.0))
    found = corrected([unknown, compared(measured(10.0), measured(12.0, seed=2))], by=0.03)
    assert [it.verdict for it in found] == [CheckVerdict.UNKNOWN, CheckVerdict.SLOWER]


positive = st.floats(0.01, 1000)
halves = st.floats(0.0, 0.5)


@given(positive, positive, halves, halves, st.floats(0.001, 0.5))
def test_exchanging_the_timings_never_turns_slower_into_slower(
    was_ms: float, is_ms: float, was_half: float, is_half: float, by: float
) -> None:
    there = compared(estimated(was_ms, was_half), estimated(is_ms, is_half), by)
    back = compared(estimated(is_ms, is_half), estimated(was_ms, was_half), by)
    for verdict, opposite in ((CheckVerdict.SLOWER, CheckVerdict.FASTER), (CheckVerdict.FASTER, CheckVerdict.SLOWER)):
        if there.verdict is verdict:
            # A change of exactly the limit may be below it as a share of the larger latency.
            assert back.verdict is opposite or abs(back.change) <= by
    assert there.low <= there.change <= there.high
