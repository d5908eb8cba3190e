import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.bricks.decomposition import Cutting, decompose
from dlbricks_tui.measure.jobs import CutModel, Job, JobKey, cut_model
from dlbricks_tui.measure.known import Known, Renewal, Why
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.plan import keys_of, plan
from dlbricks_tui.measure.rounds import MEBIBYTE, Batch, BatchLimits, JobSamples, Portion, Rounds, batches, in_turn
from dlbricks_tui.measure.stopping import FEWEST_SAMPLES, Adaptive, FixedRuns, StoppingRule
from dlbricks_tui.measure.time_left import Pace
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.runtime.traits import MXNET, ONNX_RUNTIME
from dlbricks_tui.store.records import Statistics
from tests.bricks.graphs import DATA, Spec, after, built, chain, graphs, weighing

RULE = Adaptive(enough_ms=0.0)


def named(graph: LayerGraph, name: str) -> LayerGraph:
    """The graph under another name."""
    return replace(graph, name=name)


def cut_models(*graphs: LayerGraph, cutting: Cutting | None = None) -> tuple[CutModel, ...]:
    """The graphs as models called m0, m1, ..."""
    return tuple(cut_model(decompose(named(graph, f"m{number}"), cutting)) for number, graph in enumerate(graphs))


def measured(latency_ms: float = 1.0, half_width: float = 0.001, count: int = 40) -> Statistics:
    """Statistics of so many samples around a latency."""
    return Statistics(
        trimmed_mean_ms=latency_ms,
        median_ms=latency_ms,
        minimum_ms=latency_ms,
        spread_ms=0.0,
        low_ms=latency_ms * (1 - half_width),
        high_ms=latency_ms * (1 + half_width),
        count=count,
    )


def targets(jobs: Iterable[Job]) -> list[JobKey]:
    """Return the keys of jobs."""
    return [job.key for job in jobs]


@given(st.lists(graphs(), min_size=1, max_size=3), st.sampled_from(list(Cut)), st.booleans(), st.data())
def test_every_key_is_measured_reused_or_known_to_fail_exactly_once(
    networks: list[LayerGraph], cut: Cut, end_to_end: bool, data: st.DataObject
) -> None:
    models = cut_models(*networks, cutting=Cutting(3, cut))
    everything = keys_of(models, end_to_end)
    assert len(set(everything)) == len(everything)
    some = st.lists(st.sampled_from(everything), unique=True) if everything else st.just([])
    known = Known(dict.fromkeys(data.draw(some), measured()), dict.fromkeys(data.draw(some), "it crashed"))
    found = plan(models, known, RULE, end_to_end)
    runnable = {
        JobKey(model=model.key)
        for model in models
        if any(layer.operators for layer in model.decomposition.graph.layers)
    }
    expected = {target for target in everything if target.brick or target in runnable}
    counted = [*targets(found.jobs), *found.reused, *targets(found.failed)]
    assert sorted(counted) == sorted(expected)
    assert found.reused == known.measured.keys() & expected


def test_a_brick_with_enough_samples_for_its_share_of_a_model_is_not_measured_again() -> None:
    models = cut_models(chain("pool", "relu", "relu"), chain("relu"))
    jobs = {job.label.split()[0]: job for job in plan(models, Known(), RULE).jobs}
    assert jobs["relu"].share == 1.0
    assert 0 < jobs["pool"].share < 1
    pool = jobs["pool"].key
    wide = measured(jobs["pool"].expected_ms, half_width=1.5 * RULE.target)
    alone = plan(cut_models(chain("pool")), Known({pool: wide}), RULE)
    assert pool not in alone.reused
    many = cut_models(chain("pool", *["relu"] * 30))
    assert pool in plan(many, Known({pool: wide}), RULE).reused
    # Its latency turned out to be most of the model: the run that measured it could not know that.
    long = measured(1e6, half_width=1.5 * RULE.target)
    assert pool in plan(many, Known({pool: long}), RULE).reused


def test_a_brick_of_several_models_runs_once_and_counts_their_uses() -> None:
    models = cut_models(chain("pool", "relu", "relu"), chain("relu"))
    jobs = {job.label.split()[0]: job for job in plan(models, Known(), RULE).jobs}
    assert set(jobs) == {"pool", "relu"}
    assert jobs["pool"].uses == (("m0", 1),)
    assert dict(jobs["relu"].uses) == {"m0": 2, "m1": 1}


def test_a_brick_is_timed_once_in_each_of_its_contexts() -> None:
    graph = weighing(weighing(chain("conv", "conv", "relu"), 0, 2), 1, 6)
    (model,) = cut_models(graph)
    jobs = plan((model,), Known(), RULE).jobs
    assert sorted(job.key.context for job in jobs) == ["conv", "conv;cold", "plain;cold"]
    assert {job.key for job in jobs} == set(keys_of((model,)))
    assert sum(job.share for job in jobs) == pytest.approx(1.0)


def test_the_brick_that_removes_most_uncertainty_comes_first() -> None:
    often, seldom = Spec("relu", DATA), Spec("pool", DATA)
    models = cut_models(built([*[often] * 5, seldom]))
    assert [job.label.split()[0] for job in plan(models, Known(), RULE).jobs] == ["relu", "pool"]
    # What is known already, if not well enough, can wait until something is known of the rest.
    relu = next(job.key for job in plan(models, Known(), RULE).jobs if job.label.startswith("relu"))
    latency_ms = next(job.expected_ms for job in plan(models, Known(), RULE).jobs)
    wide = Known({relu: measured(latency_ms, half_width=0.05)})
    assert [job.label.split()[0] for job in plan(models, wide, RULE).jobs] == ["pool", "relu"]


def test_repetitions_count_as_uses_and_constants_are_never_run() -> None:
    graph = built([Spec("constant"), Spec("conv", DATA, times=3), Spec("add", after(0, 1))])
    jobs = plan(cut_models(graph), Known(), RULE).jobs
    assert {job.label.split()[0]: job.uses[0].times for job in jobs} == {"conv": 3, "add": 1}


def test_a_brick_with_a_result_has_not_failed() -> None:
    models = cut_models(chain("conv"))
    target = keys_of(models)[0]
    assert plan(models, Known({target: measured()}, {target: "it hung"}), RULE).reused == {target}


def test_a_model_whose_layers_do_not_tell_how_long_it_takes_is_timed_from_its_file() -> None:
    graph = chain("conv", "relu")
    unable = replace(graph, layers=(graph.layers[0], replace(graph.layers[1], unmeasurable="it reads a sequence")))
    file = Path("net.onnx")
    models = [
        cut_model(decompose(named(graph, "able")), file),
        cut_model(decompose(named(unable, "unable")), file),
        cut_model(decompose(named(graph, "lowered")), file, lowered=True),
    ]
    timed = {job.label: job.needs_file for job in plan(models, Known(), RULE).jobs if job.whole}
    assert timed == {"unable end to end": True, "lowered end to end": True}
    assert sum(not key.brick for key in keys_of(models)) == 2


def again_of(models: tuple[CutModel, ...], known: Known) -> set[str]:
    """The first words of the bricks that are measured again by the method `inside`, and the models."""
    found = plan(models, known, RULE, end_to_end=True, method=Method.INSIDE)
    assert found.again.keys() == set(targets(found.jobs))
    return {job.label.split()[0] for job in found.jobs}


def test_bricks_are_measured_again_if_their_errors_together_change_a_model() -> None:
    models = cut_models(chain("conv", "pool"))
    jobs = plan(models, Known(), RULE, end_to_end=True, method=Method.INSIDE).jobs
    conv, pool = (next(job for job in jobs if job.label.startswith(name)) for name in ("conv", "pool"))
    measured_before = {job.key: measured(job.expected_ms) for job in jobs}
    whole_ms = conv.expected_ms + pool.expected_ms

    def known(*doubts: tuple[Job, float]) -> Known:
        again = {job.key: Renewal(Why.IMPRECISE, share * whole_ms) for job, share in doubts}
        return Known(measured_before, again=again)

    assert again_of(models, known()) == set()
    assert again_of(models, known((pool, 0.009))) == set()
    assert again_of(models, known((pool, 0.006), (conv, 0.006))) == {"conv", "pool", "m0"}
    # The model is timed in the same minutes as its bricks.
    assert again_of(models, known((pool, 0.02))) == {"pool", "m0"}
    # In a longer model the same error does not matter.
    longer = cut_models(chain("pool", *["conv"] * 40))
    assert (
        again_of(
            longer,
            Known(
                measured_before | {key: measured() for key in keys_of(longer, True, Method.INSIDE)},
                again={pool.key: Renewal(Why.IMPRECISE, 0.001)},
            ),
        )
        == set()
    )


@given(st.lists(graphs(), min_size=1, max_size=4), st.booleans(), st.integers(1, 5))
def test_batches_hold_every_job_once_and_keep_within_the_limits(
    models: list[LayerGraph], end_to_end: bool, programs: int
) -> None:
    jobs = plan(cut_models(*models), Known(), RULE, end_to_end).jobs
    found = batches(jobs, BatchLimits(programs=programs, programs_beside_models=programs))
    assert sorted(targets({job: None for batch in found for job in batch.jobs})) == sorted(targets(jobs))
    assert all(0 < len(batch.jobs) <= programs for batch in found)
    bricks = [job for batch in found for job in batch.bricks]
    assert len(bricks) == len(set(bricks))
    # A whole model is in as many batches as it says, one after another.
    for whole in {whole for batch in found for whole in batch.wholes}:
        places = [number for number, batch in enumerate(found) if whole in batch.wholes]
        assert places == list(range(places[0], places[0] + found[places[0]].parts))
        assert [found[place].part for place in places] == list(range(1, len(places) + 1))
    shares = [sum(batch.portion(job).here for batch in found if job in batch.jobs) for job in jobs]
    assert all(abs(share - 1) < 1e-9 for share in shares)


def test_models_that_share_half_of_their_bricks_are_timed_in_the_same_rounds() -> None:
    models = (chain("conv", "relu"), chain("conv", "relu", "conv"), chain("conv", "pool"), chain("split"))
    jobs = plan(cut_models(*(replace(it, traits=ONNX_RUNTIME) for it in models)), Known(), RULE, end_to_end=True).jobs
    found = batches(jobs, BatchLimits())
    together = sorted(sorted(whole.uses[0].model for whole in batch.wholes) for batch in found)
    assert together == [["m0", "m1", "m2"], ["m3"]]
    assert sorted(len(batch.bricks) for batch in found) == [1, 3]


def test_models_that_do_not_fit_together_are_each_timed_beside_a_part_of_their_bricks() -> None:
    models = (chain("conv", "relu"), chain("conv", "relu", "conv"), chain("conv", "relu", "pool"))
    jobs = plan(cut_models(*models), Known(), RULE, end_to_end=True).jobs
    found = batches(jobs, BatchLimits(memory_bytes=7 * MEBIBYTE))
    assert sorted(len(batch.wholes) for batch in found if batch.part == 1) == [1, 2]
    assert Counter(job for batch in found for job in batch.bricks) == Counter(job for job in jobs if not job.whole)
    beside_a_brick_of_its_own = {
        use.model
        for batch in found
        for job in batch.bricks
        for use in job.uses
        if use.model in {whole.uses[0].model for whole in batch.wholes}
    }
    assert beside_a_brick_of_its_own == {"m0", "m1", "m2"}


def test_a_fused_model_needs_its_memory_twice() -> None:
    graph = chain("conv", "relu", "conv", "pool")
    limits = BatchLimits(memory_bytes=420 * MEBIBYTE)
    beside_bricks = {}
    for level in Level:
        jobs = plan(cut_models(replace(graph, level=level)), Known(), RULE, end_to_end=True).jobs
        sized = [replace(job, memory_bytes=(250 if job.whole else 20) * MEBIBYTE) for job in jobs]
        beside_bricks[level] = all(batch.bricks for batch in batches(sized, limits))
    assert beside_bricks == {Level.WRITTEN: True, Level.FUSED: False}


def test_a_model_takes_samples_in_each_batch_in_proportion_to_its_bricks_there() -> None:
    """On a host that changes meanwhile half of its samples would else be of minutes that few of its bricks are of."""
    jobs = plan(cut_models(chain("conv", "relu", "pool", "split")), Known(), RULE, end_to_end=True).jobs
    (whole,) = (job for job in jobs if job.whole)
    lasting = (70.0, 20.0, 9.0, 1.0)
    bricks = [
        replace(job, expected_ms=ms) for job, ms in zip([it for it in jobs if not it.whole], lasting, strict=True)
    ]
    found = batches([whole, *bricks], BatchLimits(programs_beside_models=3))
    assert [batch.portion(whole).here for batch in found] == pytest.approx([0.9, 0.1])
    assert [batch.portion(whole).so_far for batch in found] == pytest.approx([0.9, 1])


def test_a_job_that_exceeds_the_limits_is_a_batch_of_its_own() -> None:
    jobs = plan(cut_models(chain("conv", "relu", "pool")), Known(), RULE).jobs
    assert len(batches(jobs, BatchLimits(memory_bytes=1))) == len(jobs)


def test_models_that_share_batches_are_timed_beside_their_own_bricks() -> None:
    models = cut_models(chain("conv", "relu"), chain("conv", "relu", "pool", "split"))
    jobs = plan(models, Known(), RULE, end_to_end=True).jobs
    small, large = sorted((job for job in jobs if job.whole), key=lambda job: len(job.layers))
    # Each brick of both stands before those of one.
    bricks = [replace(job, expected_ms=1.0) for job in sorted(jobs, key=lambda job: -len(job.uses)) if not job.whole]
    found = batches([small, large, *bricks], BatchLimits(programs_beside_models=4))
    assert [sorted(len(job.uses) for job in batch.bricks) for batch in found] == [[2, 2], [1, 1]]
    assert [batch.portion(small).here for batch in found] == [1.0, 0.0]
    assert [batch.portion(large).here for batch in found] == [0.5, 0.5]


def test_a_model_that_fills_the_memory_is_timed_by_itself() -> None:
    jobs = plan(cut_models(chain("conv", "relu")), Known(), RULE, end_to_end=True).jobs
    (whole,) = (job for job in jobs if job.whole)
    found = batches(jobs, BatchLimits(memory_bytes=whole.memory_bytes + 1))
    assert [batch.jobs for batch in found if batch.wholes] == [(whole,)]


def test_models_of_one_name_are_all_timed() -> None:
    models = [cut_model(decompose(named(chain(*kinds), "same"))) for kinds in (["conv", "relu"], ["conv", "pool"])]
    jobs = plan(models, Known(), RULE, end_to_end=True).jobs
    timed = {job for batch in batches(jobs, BatchLimits()) for job in batch.jobs}
    assert timed == set(jobs)
    assert sum(job.whole for job in timed) == 2


def test_the_time_left_corrects_expected_latencies_by_measured_ones() -> None:
    kinds = ["conv", "relu", "pool"]
    (some, *_) = plan(cut_models(chain(*kinds)), Known(), RULE).jobs
    jobs = [replace(some, key=JobKey(f"brick {size}"), expected_ms=10.0**size) for size in range(-4, 5)]
    small, large = jobs[0], jobs[-1]
    before, learned = Pace(RULE), Pace(RULE)
    for job in jobs:
        learned.learn(job, math.sqrt(job.expected_ms))
    assert learned.seconds_for({small: 20}) > 5 * before.seconds_for({small: 20})
    assert learned.seconds_for({large: 0}) < before.seconds_for({large: 0}) / 5


# The names of jobs: their numbers in the plan.
MODEL, LARGE, SMALL = "0", "1", "2"
NOTHING = LayerGraph("none", Level.WRITTEN, (), (), (), traits=MXNET)
# More apart from each other than any rule takes for enough.
RESTLESS = (10.0, 20.0, 14.0)
# A model and its bricks.
LASTING = {"model": 6.0, "large": 3.0, "small": 1.0}


def a_job(name: str, share: float = 1.0) -> Job:
    key = JobKey(model=name) if name == MODEL else JobKey(brick=name)
    return Job(key, name, name, NOTHING, (), (), 10.0, 0, share=share, number=int(name))


JOBS = {MODEL: a_job(MODEL), LARGE: a_job(LARGE, 0.5), SMALL: a_job(SMALL, 0.01)}


def rounds_of(rule: StoppingRule, batch: Batch, *names: str) -> Rounds:
    """Return the rounds of a batch in which these take part."""
    rounds = Rounds(rule)
    rounds.begin(batch)
    for name in names:
        rounds.add(JobSamples(JOBS[name], 40.0))
    return rounds


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
    batch = Batch((JOBS[LARGE], JOBS[SMALL]), (JOBS[MODEL],))
    rounds = rounds_of(Adaptive(), batch, MODEL, LARGE, SMALL)
    parts, done = to_the_end(rounds, RESTLESS)
    taken = Counter(name for names in parts for name in names)
    assert taken[MODEL] == taken[LARGE] == done[MODEL] == done[LARGE] == 50
    together = [names for names in parts if SMALL in names and MODEL in names]
    assert len(together) == 25
    # It is looked at now and then only.
    assert taken[SMALL] <= len(together) + 3


def test_a_quick_model_finishes_after_its_bricks_and_a_slow_one_may_finish_before() -> None:
    """A host that changes in between would be another for the model than for what it is compared with."""
    alone_at_the_end = {}
    for model_ms in (20.0, 200.0):
        rounds = rounds_of(Adaptive(), Batch((JOBS[LARGE],), (JOBS[MODEL],)), MODEL, LARGE)
        number = 0
        done: dict[str, int] = {}
        while names := rounds.due():
            number += 1
            samples_ms = {MODEL: [model_ms], LARGE: [RESTLESS[number % 3]]}
            rounds.count({name: samples_ms[name] for name in names})
            done |= {job.name: number for job, _ in rounds.take_finished()}
        alone_at_the_end[model_ms] = done[LARGE] - done[MODEL]
    assert alone_at_the_end[20.0] == 0
    assert alone_at_the_end[200.0] > 40


@pytest.mark.parametrize("first", [18, 20])
def test_a_model_has_most_samples_where_most_of_its_bricks_are_and_none_where_none_is(first: int) -> None:
    """Without bricks in its last batch it is done when those of others are."""
    here, later = {JOBS[MODEL]: Portion(first / 20, first / 20)}, {JOBS[MODEL]: Portion(1 - first / 20, 1.0)}
    rounds = rounds_of(FixedRuns(20), Batch((JOBS[LARGE],), (JOBS[MODEL],), 1, 2, here), MODEL, LARGE)
    parts, done = to_the_end(rounds, RESTLESS)
    assert (sum(MODEL in names for names in parts), len(parts), done) == (first, 20, {LARGE: 20})
    rounds.begin(Batch((JOBS[SMALL],), (JOBS[MODEL],), 2, 2, later))
    rounds.add(JobSamples(JOBS[SMALL], 40.0))
    parts, done = to_the_end(rounds, RESTLESS)
    assert (sum(MODEL in names for names in parts), len(parts)) == (20 - first, 20)
    assert MODEL in done


def test_a_steady_model_is_not_finished_before_its_last_batch() -> None:
    rounds = rounds_of(Adaptive(), Batch((JOBS[LARGE],), (JOBS[MODEL],), part=1, parts=2), MODEL, LARGE)
    for _ in range(Adaptive().most):
        rounds.count({MODEL: [10.0]})
        assert rounds.take_finished() == []
    rounds.remove(LARGE)
    rounds.begin(Batch((), (JOBS[MODEL],), part=2, parts=2))
    assert [job.name for job, _ in rounds.take_finished()] == [MODEL]


def test_a_removed_job_has_no_more_rounds_and_no_samples() -> None:
    rounds = rounds_of(FixedRuns(8), Batch((JOBS[LARGE], JOBS[SMALL])), LARGE, SMALL)
    rounds.count({name: [10.0] for name in rounds.due()})
    rounds.remove(SMALL)
    assert rounds.due() == [LARGE]
    assert rounds.so_far() == []
    for _ in range(FEWEST_SAMPLES - 1):
        rounds.count({LARGE: [10.0]})
    ((job, series),) = rounds.so_far()
    assert (job, len(series.samples_ms)) == (JOBS[LARGE], FEWEST_SAMPLES)


def test_a_restart_keeps_the_latest_rounds_and_reopens_finished_jobs() -> None:
    rounds = rounds_of(FixedRuns(4), Batch((JOBS[LARGE], JOBS[SMALL]), (JOBS[MODEL],)), MODEL, LARGE, SMALL)
    for number in range(3):
        rounds.count({LARGE: [float(number)], SMALL: [float(number)]})
    rounds.count({LARGE: [3.0]})
    assert [job.name for job, _ in rounds.take_finished()] == [LARGE]
    assert [job.name for job in rounds.restart(2)] == [LARGE]
    kept = {name: program.samples_ms for name, program in rounds.unfinished.items()}
    assert kept == {MODEL: [], LARGE: [2.0, 3.0], SMALL: [2.0]}
    _, done = to_the_end(rounds, RESTLESS)
    assert done.keys() == JOBS.keys()


def test_a_restart_keeps_a_model_s_samples_of_earlier_batches() -> None:
    rounds = rounds_of(FixedRuns(20), Batch((JOBS[LARGE],), (JOBS[MODEL],), part=1, parts=2), MODEL)
    rounds.count({MODEL: [1.0]})
    rounds.begin(Batch((JOBS[SMALL],), (JOBS[MODEL],), part=2, parts=2))
    for sample_ms in (2.0, 3.0, 4.0):
        rounds.count({MODEL: [sample_ms]})
    rounds.restart(1)
    assert rounds.unfinished[MODEL].samples_ms == [1.0, 4.0]
    rounds.restart(0)
    assert rounds.unfinished[MODEL].samples_ms == [1.0]


def test_samples_of_an_earlier_run_count_until_the_host_changes() -> None:
    rounds = Rounds(FixedRuns(8))
    rounds.begin(Batch((JOBS[LARGE],)))
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
