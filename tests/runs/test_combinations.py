"""Runs of several batch sizes and numbers of threads, with a fake worker."""

import os
import signal
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from dlbricks_tui.jobs.events import Event
from dlbricks_tui.jobs.folder import RunFolder, RunFolders, State, Tally
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.stopping import FixedRuns
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import Level, Shape
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runs.control import create_run
from dlbricks_tui.runs.events import EstimateChanged, ModelLeftOut, PartStarted, Planned, ProgramLoaded, RunProgress
from dlbricks_tui.runs.request import InputShape, ModelChoice, RunRequest, RuntimeChoice, chosen
from dlbricks_tui.runs.run import RunOutcome, execute, read_outcome
from tests.models.symbols import content, small_network
from tests.models.table_framework import TableFramework
from tests.runs.runs import FAKE, Site

SHAPE: Shape = (1, 3, 8, 8)
BATCHES, THREADS = (1, 4), (1, 2)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path / "data")
    (tmp_path / "net-symbol.json").write_bytes(content(small_network()))
    # The fake worker infers no types: they are in the cache.
    framework = TableFramework("mxnet-1.9.1")
    loader = Loader(site.data.cache, framework)
    for batch_size in (None, *BATCHES):
        loader.load(source_of(tmp_path / "net-symbol.json"), Level.WRITTEN, {"data": SHAPE}, batch_size=batch_size)
    return site


def request(site: Site, *batch_sizes: int, threads: tuple[int, ...] = THREADS, **changes: object) -> RunRequest:
    models = chosen([source_of(site.path.parent / "net-symbol.json")])
    first, *others = (FAKE.with_threads(number) for number in threads)
    asked = RunRequest(
        models=models,
        runtime=first,
        others=tuple(RuntimeChoice(runtime, models, Method.ALONE) for runtime in others),
        inputs=(InputShape("data", SHAPE),),
        batch_sizes=batch_sizes,
        level=Level.WRITTEN,
        rule=FixedRuns(5),
        end_to_end=True,
    )
    return replace(asked, **changes)  # type: ignore[arg-type]


def carried_out(site: Site, asked: RunRequest, listen: Callable[[Event], None] | None = None) -> RunOutcome:
    return execute(create_run(asked, site.data), asked, site.place, site.queue, listen)


def test_a_run_tells_the_cost_of_each_combination_measures_each_and_adds_up_their_progress(site: Site) -> None:
    events: list[Event] = []
    progress, left = RunProgress(), list[float]()

    def listen(event: Event) -> None:
        events.append(event)
        progress.take(event)
        if isinstance(event, PartStarted):
            left.append(progress.later_seconds)

    outcome = carried_out(site, request(site, *BATCHES), listen)
    state = outcome.state
    assert state.state is State.FINISHED
    assert outcome.estimates is not None
    variants = [(it.estimate.variant.batch, it.estimate.variant.threads) for it in outcome.estimates]
    assert variants == [(1, 1), (4, 1), (1, 2), (4, 2)]
    for model in outcome.estimates:
        assert model.estimate.estimate.coverage.complete
        assert model.estimate.end_to_end is not None
    stored = site.contents()
    assert Counter((it.name, it.batch_size, it.runtime[-9:]) for it in stored.end_to_end) == {
        ("net", batch_size, f"threads-{threads}"): 1 for batch_size in BATCHES for threads in THREADS
    }
    assert set(Counter((it.brick, it.context, it.runtime) for it in stored.measurements).values()) == {1}
    folder = RunFolders(site.data.runs).find("last")
    assert read_outcome(folder, site.data).estimates == outcome.estimates

    combinations = ["batch 1, 1 thread", "batch 4, 1 thread", "batch 1, 2 threads", "batch 4, 2 threads"]
    plans = [it for it in events if isinstance(it, Planned)]
    assert [it.combination for it in plans] == combinations
    assert [(it.number, it.of) for it in plans] == [(number, 4) for number in range(1, 5)]
    assert all(it.expected_seconds > 0 for it in plans)
    first = min(number for number, it in enumerate(events) if isinstance(it, ProgramLoaded))
    assert all(events.index(it) < first for it in plans)
    assert sum(it.bricks for it in plans) == state.bricks.total == state.bricks.measured
    assert sum(it.models for it in plans) == state.whole_models.measured == 4

    assert progress.done == progress.total == state.bricks.total + state.whole_models.total
    assert len(progress.bricks) == progress.total
    assert list(progress.estimates) == [f"net ({it})" for it in combinations]
    assert all(it.missing_layers == 0 for it in progress.estimates.values())
    # The second part still has to come while the first one measures.
    assert left[0] > left[1] == 0


def test_a_resumed_run_goes_on_with_the_combinations_that_are_left(site: Site) -> None:
    asked = request(site, 1)
    folder = create_run(asked, site.data)

    def cancel(event: Event) -> None:
        if isinstance(event, PartStarted) and event.number == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    stopped = execute(folder, asked, site.place, site.queue, cancel).state
    assert stopped.state is State.CANCELLED
    assert stopped.bricks.measured == stopped.bricks.total // 2
    resumed = execute(RunFolder(folder.path), asked, site.place, site.queue).state
    half = stopped.bricks.measured
    assert resumed.bricks == Tally(2 * half, measured=half, reused=half)


def test_the_outcome_of_a_run_is_read_although_one_of_its_runtimes_reads_no_model(site: Site) -> None:
    path = site.path.parent / "bad-symbol.json"
    path.write_bytes(b"{}")
    bad = RuntimeChoice(FAKE.with_threads(2), (ModelChoice("bad", path),), Method.ALONE)
    outcome = carried_out(site, request(site, threads=(1,), others=(bad,)))
    assert outcome.estimates and outcome.state.state is State.FINISHED
    assert read_outcome(RunFolders(site.data.runs).find("last"), site.data).estimates == outcome.estimates


def test_a_batch_that_memory_cannot_hold_is_left_out_once_and_the_others_are_measured(site: Site) -> None:
    events: list[Event] = []
    outcome = carried_out(site, request(site, 1, 10**9, threads=(1,)), events.append)
    (refused,) = [it for it in events if isinstance(it, ModelLeftOut)]
    assert "net at batch size 1,000,000,000 needs about" in refused.reason
    assert [it.estimate.variant.batch for it in outcome.estimates or ()] == [1]
    assert outcome.state.bricks.measured == outcome.state.bricks.total > 0
    # A single combination keeps its plain name.
    events.clear()
    carried_out(site, request(site, threads=(1,)), events.append)
    assert {it.model for it in events if isinstance(it, EstimateChanged)} == {"net"}
    (planned,) = [it for it in events if isinstance(it, Planned)]
    assert (planned.combination, planned.number, planned.of) == ("", 1, 1)
    # A limit of memory counts in place of the host's.
    events.clear()
    carried_out(site, request(site, 1, 4, threads=(1,), memory_limit_bytes=20_000), events.append)
    assert [it.model for it in events if isinstance(it, ModelLeftOut)] == ["net (batch 4)"]


def test_a_run_whose_batches_are_all_too_large_fails_before_anything_loads(site: Site) -> None:
    events: list[Event] = []
    with pytest.raises(ModelError, match="give a smaller --batch"):
        carried_out(site, request(site, 10**9), events.append)
    assert not any(isinstance(it, Planned | ProgramLoaded) for it in events)
    assert RunFolders(site.data.runs).find("last").state().state is State.FAILED


def test_the_costs_of_combinations_add_up_to_a_time_budget_that_is_too_short(site: Site) -> None:
    events: list[Event] = []
    carried_out(site, request(site, *BATCHES, time_budget_seconds=1.0), events.append)
    costs = [it.expected_seconds for it in events if isinstance(it, Planned)]
    # The start of the worker alone takes as long. Reading the models has spent some of it.
    assert 0 < sum(costs) <= 1.0
    assert costs[0] > 0 and costs[2:] == [0.0, 0.0]
    left = [it.budget_seconds for it in events if isinstance(it, PartStarted)]
    assert left and left[0] is not None and left[0] <= 1.0
