from collections.abc import Iterable
from dataclasses import replace

import pytest

from dlbricks_tui.host.contention import Crowding
from dlbricks_tui.measure.noise import Calmness, Circumstances

QUIET = Circumstances(1.0, 400, Crowding(0.01, 17), 0.5)
CROWDED = Circumstances(1.0, 400, Crowding(0.3, 1500), 0.5)
SLOW = Circumstances(1.0, 400, Crowding(0.0, 0), 0.7)


def test_a_machine_of_ones_own_disturbs_nothing() -> None:
    calmness = Calmness()
    assert [calmness.disturbance(QUIET) for _ in range(20)] == [None] * 20
    assert calmness.usual_reference_ms == 0.5


def test_somebody_who_computes_beside_is_told() -> None:
    assert Calmness().disturbance(CROWDED) == "others took the processor 1,500 times in 1.00 s"


def test_threads_that_share_what_is_left_of_the_cores_tell_of_somebody_else() -> None:
    shared = Circumstances(1.0, 404, Crowding(0.09, 404), 0.5)
    assert Calmness().disturbance(shared) == "others took the processor 404 times in 1.00 s"
    assert Calmness().disturbance(replace(shared, crowding=Crowding(0.09, 150))) is None
    assert Calmness().disturbance(replace(shared, crowding=Crowding(0.001, 404))) is None


def test_threads_of_a_worker_that_make_way_for_one_another_are_not_others() -> None:
    # Thirty-seven programs that take no time to speak of, each run four times.
    own = Circumstances(0.015, 148, Crowding(0.004, 148), 0.5)
    assert Calmness().disturbance(own) is None
    assert Calmness().disturbance(replace(own, seconds=0.15)) is not None


@pytest.mark.parametrize(("seconds", "others_seconds"), [(1.0, 0.15), (0.06, 0.03)])
def test_threads_that_share_a_core_while_nobody_else_computes_disturb_nothing(
    seconds: float, others_seconds: float
) -> None:
    alone = Circumstances(seconds, 200, Crowding(0.05 * seconds, 190, others_seconds), 0.5)
    assert Calmness().disturbance(alone) is None
    # Somebody has all of the other core.
    beside = replace(alone, crowding=Crowding(0.05 * seconds, 190, seconds))
    assert Calmness().disturbance(beside) == f"others took the processor 190 times in {seconds:.2f} s"


def test_a_slow_reference_tells_of_what_the_kernel_does_not_count() -> None:
    calmness = Calmness()
    assert calmness.disturbance(SLOW) is None
    for _ in range(9):
        calmness.disturbance(QUIET)
    assert calmness.disturbance(SLOW) == "the machine was 1.40 times slower than usual"
    assert calmness.disturbance(Circumstances(1.0, 400, None, 0.7)) == "the machine was 1.40 times slower than usual"


def test_disturbed_rounds_do_not_change_what_is_usual() -> None:
    calmness = Calmness()
    for _ in range(9):
        calmness.disturbance(QUIET)
    for _ in range(50):
        calmness.disturbance(Circumstances(0.01, 20, None, 0.9))
    assert calmness.usual_reference_ms == 0.5


def test_of_a_busy_host_rounds_are_taken_as_they_are_until_it_is_quiet_again() -> None:
    calmness = Calmness()
    rounds = 0
    while calmness.worth_repeating:
        calmness.disturbance(CROWDED)
        rounds += 1
    assert 30 <= rounds <= 120
    for _ in range(4):
        calmness.disturbance(QUIET)
    assert not calmness.worth_repeating
    calmness.disturbance(QUIET)
    assert calmness.worth_repeating


def test_nobody_knows_nothing() -> None:
    assert Calmness().disturbance(Circumstances(1.0, 400, None, None)) is None


def test_who_has_little_time_waits_less_for_quiet_however_often_it_becomes_quiet_again() -> None:
    calmness = Calmness(most_seconds=3.0)
    for _ in range(3):
        assert calmness.worth_repeating
        assert calmness.disturbance(CROWDED) is not None
        calmness.repeat(CROWDED.seconds)
        for _ in range(9):
            assert calmness.disturbance(QUIET) is None
    assert not calmness.worth_repeating


def told(calmness: Calmness, rounds: Iterable[Circumstances]) -> list[tuple[float, int]]:
    """The changes that these rounds show: how many times as fast the machine is, and in how many rounds it was."""
    changes = []
    for round_ in rounds:
        calmness.disturbance(round_)
        if (change := calmness.take_change()) is not None:
            changes.append((round(change.times_as_fast, 2), change.rounds))
    return changes


def test_a_machine_that_has_become_quicker_is_told_once_and_measured_by_what_it_is_now() -> None:
    calmness = Calmness()
    assert told(calmness, [SLOW] * 10) == []
    assert told(calmness, [QUIET] * 4) == []
    assert told(calmness, [QUIET] * 20) == [(1.4, 5)]
    assert calmness.usual_reference_ms == QUIET.reference_ms
    assert calmness.disturbance(SLOW) == "the machine was 1.40 times slower than usual"


def test_a_machine_that_is_quicker_now_and_then_or_for_a_moment_is_the_same() -> None:
    assert told(Calmness(), [SLOW if number % 5 == 0 else QUIET for number in range(100)]) == []
    moment = replace(QUIET, seconds=0.06)
    assert told(Calmness(), [*[SLOW] * 10, *[moment] * 20, SLOW]) == []
    assert told(Calmness(), [*[SLOW] * 10, *[moment] * 60]) == [(1.4, 50)]


def test_of_a_machine_that_stays_slower_for_as_long_as_anybody_waits_that_is_usual() -> None:
    calmness = Calmness()
    assert told(calmness, [QUIET] * 10) == []
    assert told(calmness, [SLOW] * 59) == []
    assert told(calmness, [SLOW]) == [(0.71, 0)]
    assert calmness.disturbance(SLOW) is None
    assert told(calmness, [QUIET] * 5) == [(1.4, 5)]


def test_a_machine_that_is_mostly_slower_is_slower_and_one_in_which_others_compute_is_not() -> None:
    calmness = Calmness()
    assert told(calmness, [QUIET] * 10) == []
    assert told(calmness, [QUIET if number % 4 == 0 else SLOW for number in range(90)]) == [(0.71, 0)]
    crowded = Calmness()
    assert told(crowded, [*[QUIET] * 10, *[replace(CROWDED, reference_ms=0.7)] * 100]) == []


def test_what_is_measured_anew_is_taken_from_the_time_to_wait() -> None:
    calmness = Calmness(most_seconds=3.0)
    calmness.repeat(2.0)
    assert calmness.worth_repeating
    calmness.repeat(1.0)
    assert not calmness.worth_repeating


def test_repeated_rounds_take_a_few_seconds_and_half_as_long_as_those_that_count_at_most() -> None:
    calmness = Calmness()
    assert (calmness.most_repeated(), calmness.most_repeated(100.0)) == (5.0, 55.0)
    calmness.repeat(5.0)
    assert not calmness.worth_repeating
    calmness.count(10.0)
    assert (calmness.worth_repeating, calmness.most_repeated()) == (True, 5.0)
    calmness.repeat(6.0)
    assert (calmness.worth_repeating, calmness.most_repeated()) == (False, 0.0)


def test_a_run_with_a_budget_repeats_no_more_than_its_part() -> None:
    assert Calmness(most_seconds=2.0).most_repeated(1000.0) == 2.0
