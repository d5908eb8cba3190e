"""The jobs of each round, their order, and when they are finished."""

from collections import Counter
from itertools import accumulate

import pytest

from dlbricks_tui.measure.jobs import Job, JobKey
from dlbricks_tui.measure.rounds import JobSamples, Rounds, in_turn
from dlbricks_tui.measure.stopping import FEWEST_SAMPLES, Adaptive, FixedRuns, StoppingRule
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.runtime.traits import MXNET

MODEL, LARGE, SMALL = "whole model", "large brick", "small brick"
NOTHING = LayerGraph("none", Level.WRITTEN, (), (), (), traits=MXNET)
# More apart from each other than any rule takes for enough.
RESTLESS = (10.0, 20.0, 14.0)
# A model and its bricks.
LASTING = {"model": 6.0, "large": 3.0, "small": 1.0}


def a_job(number: int, name: str, share: float = 1.0) -> Job:
    key = JobKey(model=name) if name == MODEL else JobKey(brick=name)
    return Job(key, name, name, NOTHING, (), (), 10.0, 0, share=share, number=number)


JOBS = {MODEL: a_job(0, MODEL), LARGE: a_job(1, LARGE, 0.5), SMALL: a_job(2, SMALL, 0.01)}


def rounds_of(rule: StoppingRule, *names: str) -> tuple[Rounds, dict[str, str]]:
    """Rounds in which these take part, and what their jobs are called."""
    rounds = Rounds(rule)
    called = {}
    for name in names:
        job = JOBS[name]
        called[name] = job.name
        rounds.add(JobSamples(job, 40.0))
    return rounds, called


def to_the_end(rounds: Rounds, samples_ms: tuple[float, ...]) -> tuple[list[list[str]], dict[str, int]]:
    """Return the jobs of each round of a batch, and after how many rounds each was finished; samples repeat in turn."""
    parts: list[list[str]] = []
    done: dict[str, int] = {}
    while names := rounds.due():
        rounds.count({name: [samples_ms[len(parts) % len(samples_ms)]] for name in names})
        parts.append(names)
        done |= {job.name: len(parts) for job, _ in rounds.take_finished()}
    return parts, done


def test_a_noisy_job_that_needs_fewer_samples_takes_them_spread_over_all_rounds() -> None:
    rounds, called = rounds_of(Adaptive(), MODEL, LARGE, SMALL)
    parts, done = to_the_end(rounds, RESTLESS)
    taken = Counter(name for names in parts for name in names)
    assert taken[called[MODEL]] == taken[called[LARGE]] == done[called[MODEL]] == done[called[LARGE]] == 100
    together = [names for names in parts if called[SMALL] in names and called[MODEL] in names]
    assert len(together) == 25
    # It is looked at now and then only.
    assert taken[called[SMALL]] <= len(together) + 3


def test_a_quick_model_finishes_after_its_bricks_and_a_slow_one_may_finish_before() -> None:
    """A host that changes in between would be another for the model than for what it is compared with."""
    alone_at_the_end = {}
    for model_ms in (20.0, 200.0):
        rounds, called = rounds_of(Adaptive(), MODEL, LARGE)
        number = 0
        done: dict[str, int] = {}
        while names := rounds.due():
            number += 1
            samples_ms = {called[MODEL]: [model_ms], called[LARGE]: [RESTLESS[number % 3]]}
            rounds.count({name: samples_ms[name] for name in names})
            done |= {job.name: number for job, _ in rounds.take_finished()}
        alone_at_the_end[model_ms] = done[called[LARGE]] - done[called[MODEL]]
    assert alone_at_the_end[20.0] == 0
    assert alone_at_the_end[200.0] > 50


def test_a_removed_job_has_no_more_rounds_and_no_samples() -> None:
    rounds, called = rounds_of(FixedRuns(8), LARGE, SMALL)
    rounds.count({name: [10.0] for name in rounds.due()})
    rounds.remove(called[SMALL])
    assert rounds.due() == [called[LARGE]]
    assert rounds.so_far() == []
    for _ in range(FEWEST_SAMPLES - 1):
        rounds.count({called[LARGE]: [10.0]})
    ((job, series),) = rounds.so_far()
    assert (job, len(series.samples_ms)) == (JOBS[LARGE], FEWEST_SAMPLES)


def test_a_restart_keeps_the_latest_rounds_and_reopens_finished_jobs() -> None:
    rounds, called = rounds_of(FixedRuns(4), MODEL, LARGE, SMALL)
    for number in range(3):
        rounds.count({called[LARGE]: [float(number)], called[SMALL]: [float(number)]})
    rounds.count({called[LARGE]: [3.0]})
    assert [job.name for job, _ in rounds.take_finished()] == [called[LARGE]]
    assert [job.name for job in rounds.restart(2)] == [called[LARGE]]
    kept = {name: program.samples_ms for name, program in rounds.unfinished.items()}
    assert kept == {called[MODEL]: [], called[LARGE]: [2.0, 3.0], called[SMALL]: [2.0]}
    _, done = to_the_end(rounds, RESTLESS)
    assert done.keys() == set(called.values())


def test_samples_of_an_earlier_run_count_until_the_host_changes() -> None:
    rounds = Rounds(FixedRuns(8))
    samples = JobSamples(JOBS[LARGE], 40.0, (9.0,) * 5)
    rounds.add(samples)
    assert rounds.added_to() == []
    rounds.count({samples.job.name: [10.0]})
    ((_, series),) = rounds.added_to()
    assert series.samples_ms == (9.0,) * 5 + (10.0,)
    assert rounds.take_finished() == []
    rounds.restart(latest=1)
    assert samples.samples_ms == [10.0]
    parts, done = to_the_end(rounds, (10.0,))
    assert (len(parts), done) == (7, {samples.job.name: 7})


def test_in_the_long_run_every_item_is_in_the_middle_of_a_round_on_average() -> None:
    middles: dict[str, list[float]] = {name: [] for name in LASTING}
    for number in range(1000):
        order = in_turn([*LASTING], [*LASTING.values()], number)
        for name, end in zip(order, accumulate(LASTING[name] for name in order), strict=True):
            middles[name].append(end - LASTING[name] / 2)
    averages = {name: sum(found) / len(found) for name, found in middles.items()}
    assert averages == pytest.approx(dict.fromkeys(LASTING, sum(LASTING.values()) / 2), rel=0.02)
