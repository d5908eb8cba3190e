from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.estimate.compositions import (
    FREELY,
    Schedule,
    SequenceTask,
    Sharing,
    critical_path,
    schedule,
    sequential_ps,
)
from tests.estimate.task_graphs import chained, task_graphs

WORKERS = st.integers(1, 5)
ALONE = Sharing(parallel=False)
TWO_AT_MOST = Sharing(at_most=2, label="two")
SHARINGS = st.sampled_from([FREELY, ALONE, TWO_AT_MOST, Sharing(at_most=1, label="one")])


def slowed(factor: str) -> Sharing:
    return Sharing(slowdown=Fraction(factor))


def most_at_once(plan: Schedule, numbers: list[int]) -> int:
    """How many of these tasks run at the same time at most; ones that take no time take no room."""
    spans = [plan.placed[number] for number in numbers if plan.placed[number].end_ps > plan.placed[number].begin_ps]
    return max((sum(other.begin_ps <= span.begin_ps < other.end_ps for other in spans) for span in spans), default=0)


@given(task_graphs())
def test_unlimited_workers_take_exactly_the_critical_path(tasks: tuple[SequenceTask, ...]) -> None:
    assert schedule(tasks).latency_ps == critical_path(tasks).latency_ps
    assert schedule(tasks, len(tasks) + 1).latency_ps == critical_path(tasks).latency_ps


@given(st.lists(st.integers(0, 1000), max_size=12), WORKERS)
def test_on_a_chain_more_workers_gain_nothing(latencies: list[int], workers: int) -> None:
    tasks = chained(*latencies)
    assert schedule(tasks, workers).latency_ps == schedule(tasks).latency_ps == sum(latencies)


@given(task_graphs(SHARINGS), WORKERS)
def test_schedules_respect_dependencies_workers_and_limits(tasks: tuple[SequenceTask, ...], workers: int) -> None:
    assert schedule(tasks, 1).latency_ps == sequential_ps(tasks)
    plan = schedule(tasks, workers)
    assert sequential_ps(tasks) >= plan.latency_ps >= critical_path(tasks).latency_ps
    for number, task in enumerate(tasks):
        assert plan.placed[number].end_ps - plan.placed[number].begin_ps == task.latency_ps
        assert all(plan.placed[source].end_ps <= plan.placed[number].begin_ps for source in task.after)
    assert most_at_once(plan, list(range(len(tasks)))) <= workers
    for sharing in (TWO_AT_MOST, Sharing(at_most=1, label="one")):
        limited = [number for number, task in enumerate(tasks) if task.sharing == sharing]
        assert most_at_once(plan, limited) <= (sharing.at_most or 0)


@given(task_graphs(SHARINGS))
def test_a_task_that_is_not_parallel_runs_by_itself(tasks: tuple[SequenceTask, ...]) -> None:
    placed = schedule(tasks).placed
    for number, task in enumerate(tasks):
        if not task.sharing.parallel:
            begin, end = placed[number]
            assert all(
                other.end_ps <= begin or other.begin_ps >= end
                for index, other in enumerate(placed)
                if index != number and other.end_ps > other.begin_ps
            )


def test_tasks_with_the_longest_remaining_path_start_first() -> None:
    plan = schedule([SequenceTask(1), SequenceTask(5), SequenceTask(1), SequenceTask(7, (2,))], 2)
    assert [span.begin_ps for span in plan.placed] == [5, 0, 0, 1]
    assert plan.latency_ps == 8


def test_two_tasks_slow_each_other_down_until_one_ends() -> None:
    # Both run at half speed until the short one ends at 20; the long one has 20 of its 30 left then.
    assert schedule([SequenceTask(10, sharing=slowed("2")), SequenceTask(30, sharing=slowed("2"))]).placed == (
        (0, 20),
        (0, 40),
    )


def test_a_task_joined_in_the_middle_is_slowed_from_then_on() -> None:
    tasks = [SequenceTask(10), SequenceTask(100, sharing=slowed("1.5")), SequenceTask(30, (0,))]
    # Beside the first, then beside the third: 10 and 30 take 40 of the clock, in which 40 / 1.5 of 100 get done.
    assert schedule(tasks).placed[1].end_ps == pytest.approx(40 + 100 - 40 / 1.5, abs=2)


@given(task_graphs(st.sampled_from([slowed("1"), slowed("1.3"), slowed("3")])), WORKERS)
def test_slowing_down_makes_nothing_quicker_and_one_worker_not_slower(
    tasks: tuple[SequenceTask, ...], workers: int
) -> None:
    # Each change of pace rounds to a picosecond.
    assert schedule(tasks, workers).latency_ps >= critical_path(tasks).latency_ps - len(tasks) ** 2
    assert schedule(tasks, 1).latency_ps == sequential_ps(tasks)
