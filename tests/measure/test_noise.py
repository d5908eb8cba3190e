from collections.abc import Iterable
from dataclasses import replace

import pytest

from dlbricks_tui.host.noise import Contention
from dlbricks_tui.measure.noise import NoiseMonitor, Round


def a_round(seconds: float, runs: int, contention: Contention | None, reference_ms: float | None) -> Round:
    return Round(seconds, runs, contention, () if reference_ms is None else (reference_ms,))


QUIET = a_round(1.0, 400, Contention(0.01, 17), 0.5)
CONTENDED = a_round(1.0, 400, Contention(0.3, 1500), 0.5)
SLOW = a_round(1.0, 400, Contention(0.0, 0), 0.7)


def test_threads_that_share_the_remaining_cores_show_another_program() -> None:
    shared = a_round(1.0, 404, Contention(0.09, 404), 0.5)
    assert NoiseMonitor().disturbance(shared) == "others took the processor 404 times in 1.00 s"
    assert NoiseMonitor().disturbance(replace(shared, contention=Contention(0.09, 150))) is None
    assert NoiseMonitor().disturbance(replace(shared, contention=Contention(0.001, 404))) is None


def test_threads_of_a_worker_that_preempt_one_another_disturb_no_round() -> None:
    # Thirty-seven programs that take no time to speak of, each run four times.
    own = a_round(0.015, 148, Contention(0.004, 148), 0.5)
    assert NoiseMonitor().disturbance(own) is None
    assert NoiseMonitor().disturbance(replace(own, seconds=0.15)) is not None


@pytest.mark.parametrize(("seconds", "others_seconds"), [(1.0, 0.15), (0.06, 0.03)])
def test_threads_that_share_a_core_on_an_idle_host_disturb_no_round(seconds: float, others_seconds: float) -> None:
    alone = a_round(seconds, 200, Contention(0.05 * seconds, 190, others_seconds), 0.5)
    assert NoiseMonitor().disturbance(alone) is None
    # Another program uses all of the other core.
    beside = replace(alone, contention=Contention(0.05 * seconds, 190, seconds))
    assert NoiseMonitor().disturbance(beside) == f"others took the processor 190 times in {seconds:.2f} s"


def test_a_slow_reference_shows_noise_that_the_kernel_does_not_count() -> None:
    monitor = NoiseMonitor()
    assert monitor.disturbance(SLOW) is None
    for _ in range(9):
        monitor.disturbance(QUIET)
    assert monitor.disturbance(SLOW) == "the host was 1.40 times slower than usual"
    assert monitor.disturbance(a_round(1.0, 400, None, 0.7)) == "the host was 1.40 times slower than usual"


def test_disturbed_rounds_do_not_change_the_usual_reference() -> None:
    monitor = NoiseMonitor()
    for _ in range(9):
        monitor.disturbance(QUIET)
    for _ in range(50):
        monitor.disturbance(a_round(0.01, 20, None, 0.9))
    assert monitor.usual_reference_ms == 0.5


def test_on_a_busy_host_rounds_count_as_they_are_until_it_is_quiet_again() -> None:
    monitor = NoiseMonitor()
    rounds = 0
    while monitor.worth_repeating:
        monitor.disturbance(CONTENDED)
        rounds += 1
    assert 30 <= rounds <= 120
    for _ in range(4):
        monitor.disturbance(QUIET)
    assert not monitor.worth_repeating
    monitor.disturbance(QUIET)
    assert monitor.worth_repeating


def test_a_run_with_little_time_repeats_few_rounds_however_often_the_host_becomes_quiet() -> None:
    monitor = NoiseMonitor(most_seconds=3.0)
    for _ in range(3):
        assert monitor.worth_repeating
        assert monitor.disturbance(CONTENDED) is not None
        monitor.repeat(CONTENDED.seconds)
        for _ in range(9):
            assert monitor.disturbance(QUIET) is None
    assert not monitor.worth_repeating


def told(monitor: NoiseMonitor, rounds: Iterable[Round]) -> list[tuple[float, int]]:
    """The changes that these rounds show: how many times as fast the machine is, and in how many rounds it was."""
    changes = []
    for round_ in rounds:
        monitor.disturbance(round_)
        if (change := monitor.take_change()) is not None:
            changes.append((round(change.times_as_fast, 2), change.rounds))
    return changes


def test_a_speed_up_of_the_host_is_reported_once_and_sets_the_usual_reference() -> None:
    monitor = NoiseMonitor()
    assert told(monitor, [SLOW] * 10) == []
    assert told(monitor, [QUIET] * 4) == []
    assert told(monitor, [QUIET] * 20) == [(1.4, 5)]
    assert monitor.usual_reference_ms == QUIET.reference_ms
    assert monitor.disturbance(SLOW) == "the host was 1.40 times slower than usual"


def test_a_short_speed_up_of_the_host_is_no_change() -> None:
    assert told(NoiseMonitor(), [SLOW if number % 5 == 0 else QUIET for number in range(100)]) == []
    moment = replace(QUIET, seconds=0.06)
    assert told(NoiseMonitor(), [*[SLOW] * 10, *[moment] * 20, SLOW]) == []
    assert told(NoiseMonitor(), [*[SLOW] * 10, *[moment] * 60]) == [(1.4, 50)]


def test_a_lasting_slow_down_of_the_host_sets_the_usual_reference() -> None:
    monitor = NoiseMonitor()
    assert told(monitor, [QUIET] * 10) == []
    assert told(monitor, [SLOW] * 59) == []
    assert told(monitor, [SLOW]) == [(0.71, 0)]
    assert monitor.disturbance(SLOW) is None
    assert told(monitor, [QUIET] * 5) == [(1.4, 5)]


def test_a_mostly_slower_host_is_slower_and_a_contended_one_is_not() -> None:
    monitor = NoiseMonitor()
    assert told(monitor, [QUIET] * 10) == []
    assert told(monitor, [QUIET if number % 4 == 0 else SLOW for number in range(90)]) == [(0.71, 0)]
    contended = NoiseMonitor()
    assert told(contended, [*[QUIET] * 10, *[replace(CONTENDED, references_ms=(0.7,))] * 100]) == []


def test_repeated_rounds_take_a_few_seconds_and_half_as_long_as_those_that_count_at_most() -> None:
    monitor = NoiseMonitor()
    assert (monitor.most_repeated(), monitor.most_repeated(100.0)) == (5.0, 55.0)
    monitor.repeat(5.0)
    assert not monitor.worth_repeating
    monitor.count(10.0)
    assert (monitor.worth_repeating, monitor.most_repeated()) == (True, 5.0)
    monitor.repeat(6.0)
    assert (monitor.worth_repeating, monitor.most_repeated()) == (False, 0.0)


def test_a_run_with_a_budget_repeats_no_more_than_its_part() -> None:
    assert NoiseMonitor(most_seconds=2.0).most_repeated(1000.0) == 2.0
