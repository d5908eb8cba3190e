"""Runs in this process, with a fake worker and everything else real."""

import os
import select
import shutil
import signal
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

import pytest

from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.noise import Contention
from dlbricks_tui.host.queue import WorkKind, queued
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.events import Event, Waiting
from dlbricks_tui.jobs.folder import JobState, RunFolder, RunFolders, State, Tally
from dlbricks_tui.measure import inside, noise, results
from dlbricks_tui.measure.events import BatchRestarted, BatchStarted, RoundDone, RoundRepeated
from dlbricks_tui.measure.jobs import CutModel
from dlbricks_tui.measure.known import MOST_TRIES
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.stopping import FEWEST_SAMPLES, Adaptive, FixedRuns
from dlbricks_tui.measure.supervised_worker import SupervisedWorker, TimeLimits
from dlbricks_tui.runs.control import create_run
from dlbricks_tui.runs.events import (
    EstimateChanged,
    FailedBefore,
    Planned,
    ProgramFailed,
    ProgramMeasured,
    RunProgress,
    WorkerReplaced,
)
from dlbricks_tui.runs.planning import read_models
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.runs.results import ONEDNN
from dlbricks_tui.runs.run import execute
from dlbricks_tui.runs.work import EarlyWorker, EarlyWorkers, RunSession
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.protocol import NULL_PROGRAM, Described, Load, Request, Sample
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import BrickForm
from dlbricks_tui.store.selections import by_id, equal
from dlbricks_tui.wording.events import note_of
from tests.host.lines import turn_of
from tests.runs.fake_worker import operators_of
from tests.runs.runs import BRICKS, FAKE, MODEL, Measured, Site, misbehaving

AnEvent = TypeVar("AnEvent", bound=Event)


def execute_until_the_first_result(site: Site, folder: RunFolder, request: RunRequest) -> JobState:
    """Execute a run whose time budget is spent once the first batch has results."""
    measured = False

    def listen(event: Event) -> None:
        nonlocal measured
        measured |= isinstance(event, ProgramMeasured)

    def clock() -> float:
        return 1e6 * measured

    return execute(folder, request, replace(site.place, clock=clock), site.queue, listen).state


def of_kind(events: Sequence[Event], kind: type[AnEvent]) -> list[AnEvent]:
    """The events of one kind."""
    return [event for event in events if isinstance(event, kind)]


def test_a_run_measures_every_brick_once_and_the_next_one_reuses_them_all(measured: Measured, known: Site) -> None:
    assert (measured.state.state, measured.state.bricks) == (State.FINISHED, Tally(BRICKS, measured=BRICKS))
    contents = known.contents()
    assert set(Counter(contents.measured).values()) == {1}
    assert len(contents.measurements) == BRICKS
    assert [it.name for it in contents.end_to_end] == [MODEL]
    events: list[Event] = []
    again = known.run(known.request(end_to_end=True), events.append)
    assert again.bricks == Tally(BRICKS, reused=BRICKS)
    assert not of_kind(events, BatchStarted)
    assert known.contents() == contents


@pytest.mark.parametrize("is_busy", [False, True])
def test_the_first_worker_imports_its_framework_while_models_are_read_unless_other_work_has_the_host(
    site: Site, monkeypatch: pytest.MonkeyPatch, is_busy: bool
) -> None:
    begun: list[str] = []
    early: list[Worker] = []
    start = Worker._start

    def noted(worker: Worker, *pipes: int) -> Any:
        begun.append("worker" if worker._program == site.worker_program else "reader")
        early.append(worker)
        return start(worker, *pipes)

    def read(session: RunSession) -> tuple[CutModel, ...]:
        begun.append("reading")
        # It describes its framework, which it has imported, before it is wanted.
        assert all(select.select([worker._replies], [], [], 60.0)[0] for worker in early)
        return read_models(session)

    monkeypatch.setattr(Worker, "_start", noted)
    # No worker has to tell it.
    (site.data.cache / ONEDNN).mkdir(parents=True)
    request = site.request(rule=FixedRuns(2))
    other = site.queue.join(queued(WorkKind.RUN, ("other",), site.path, "other"))
    if is_busy:
        assert other.try_take()
    else:
        other.leave()

    def listen(event: Event) -> None:
        if isinstance(event, Waiting):
            other.leave()

    state = execute(create_run(request, site.data), request, site.place, site.queue, listen, read=read).state
    assert state.bricks == Tally(BRICKS, measured=BRICKS)
    assert [it for it in begun if it != "reader"] == (["reading", "worker"] if is_busy else ["worker", "reading"])


@pytest.mark.parametrize("is_busy", [False, True])
def test_a_worker_from_before_the_run_is_ready_before_competition_is_counted_and_ends_where_other_work_comes_first(
    site: Site, monkeypatch: pytest.MonkeyPatch, is_busy: bool
) -> None:
    request, early = site.request(rule=FixedRuns(2)), EarlyWorker()
    folder = create_run(request, site.data)
    early.start(request.first_runtime(fingerprint().memory_bytes), folder.worker_log, site.worker_program)
    assert early._waiting is not None
    worker = early._waiting[1]
    pid = worker.pid
    other = turn_of(site.queue, "other", site.path) if is_busy else None
    seen: list[bool] = []

    def competing() -> float:
        # The request that it was sent ahead is answered.
        seen.append(worker.pid == pid and not worker._sent)
        return 0.0

    def listen(event: Event) -> None:
        if isinstance(event, Waiting) and other is not None:
            seen.append(worker.pid is None)
            other.leave()
        elif isinstance(event, RoundDone) and not is_busy:
            # The run measures with this one.
            seen.append(worker.pid == pid)

    monkeypatch.setattr("dlbricks_tui.runs.run.competing_threads", competing)
    assert execute(
        folder, request, site.place, site.queue, listen, early=EarlyWorkers(early, EarlyWorker())
    ).state.is_finished
    assert seen == [True, False] if is_busy else len(seen) > 1 and all(seen)


@pytest.mark.parametrize("gibibytes", [1, 64])
def test_a_batch_takes_half_of_the_memory_of_a_host_at_most(site: Site, gibibytes: int) -> None:
    found: list[int] = []

    def read(session: RunSession) -> tuple[CutModel, ...]:
        system = replace(session.system, memory_bytes=gibibytes << 30)
        found.append(replace(session, system=system).batch_limits.memory_bytes)
        return ()

    request = site.request()
    execute(create_run(request, site.data), request, site.place, site.queue, read=read)
    assert found == [gibibytes << 29]


def test_a_worker_that_nothing_needs_ends_with_its_run(known: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int | None] = []
    end = Worker.end

    def noted(worker: Worker) -> int | None:
        ended.append(worker.pid)
        return end(worker)

    monkeypatch.setattr(Worker, "end", noted)
    assert known.run(known.request()).bricks == Tally(BRICKS, reused=BRICKS)
    pids = [pid for pid in ended if pid is not None]
    assert pids and not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_an_estimate_is_predicted_before_the_first_sample_and_measured_in_the_end(measured: Measured) -> None:
    estimates = of_kind(measured.events, EstimateChanged)
    first, last = estimates[0], estimates[-1]
    assert measured.events.index(first) < measured.events.index(of_kind(measured.events, BatchStarted)[0])
    assert first.predicted_layers == first.missing_layers > 0 == first.measured_layers
    assert first.low_ms is not None and first.high_ms is not None and 0 < 2 * first.low_ms < first.high_ms
    assert (last.predicted_layers, last.missing_layers) == (0, 0)


def test_a_result_has_its_conditions_its_samples_and_facts_about_noise(measured: Measured) -> None:
    result = measured.site.contents().measurements[0]
    assert (result.protocol, result.run, result.runtime) == (Method.ALONE.id, measured.state.run, FAKE.identity)
    assert len(result.samples_ms) == result.statistics.count >= Adaptive().least
    assert result.good
    noise = dict(result.noise)
    assert noise["null_call_ms"] == 0.0125
    assert noise["reference_ms"] == pytest.approx(0.5, rel=0.05)
    assert {"warm_up", "outliers"} <= noise.keys()
    with ResultsDatabase(measured.site.data.store) as store:
        assert store.records(BrickForm, equal(key=result.brick))
        assert set(by_id(store.systems())) == {result.system}
        assert by_id(store.runtimes())[FAKE.identity].version == FAKE.version
        run = by_id(store.runs())[measured.state.run]
        assert (run.state, run.measured, run.failed, run.models) == ("finished", BRICKS, 0, (MODEL,))


def test_only_models_run_their_operators_side_by_side(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    diary = site.data.path / "diary"
    monkeypatch.setenv("FAKE_DIARY", str(diary))
    site.run(site.request(end_to_end=True, rule=FixedRuns(5), runtime=FAKE.side_by_side(2)))
    asked = dict.fromkeys((operators, way) for operators, *_, way in map(str.split, diary.read_text().splitlines()))
    abreast = [operators for operators, way in asked if way == "abreast"]
    assert [len(operators.split("+")) for operators in abreast] == [21]


@pytest.mark.parametrize(
    ("of_flatten", "of_dropout"),
    [
        (("crash on load", "crashed"), ("garbage on sample", "garbled")),
        (("crash on sample", "crashed"), ("not finite", "not finite")),
        (("hang on load", "hung"), ("hang on sample", "hung")),
    ],
)
def test_misbehaving_programs_fail_alone_with_their_reasons(
    site: Site, monkeypatch: pytest.MonkeyPatch, of_flatten: tuple[str, str], of_dropout: tuple[str, str]
) -> None:
    site = misbehaving(site, monkeypatch, Flatten=of_flatten[0], Dropout=of_dropout[0])
    ask = SupervisedWorker._ask

    def impatient(worker: SupervisedWorker, request: Request[Any], seconds: float) -> Any:
        """Wait for what hangs as long as necessary only."""
        loaded = [request.program] if isinstance(request, Load) else []
        sampled = [it for it in request.programs if it != NULL_PROGRAM] if isinstance(request, Sample) else []
        hangs = [*loaded, *(worker._programs[name].program for name in sampled)]
        moment = "load" if loaded else "sample"
        if any(site.manners.get(op) == f"hang on {moment}" for program in hangs for op in operators_of(program)):
            assert seconds >= 60.0
            seconds = 0.05
        return ask(worker, request, seconds)

    monkeypatch.setattr(SupervisedWorker, "_ask", impatient)
    monkeypatch.setattr(results, "value_advice", lambda inputs, failure: "; give it: --value x=NUMBER")
    events: list[Event] = []
    limits = TimeLimits(load_seconds=60.0, sample_seconds=60.0)
    state = site.run(site.request(time_limits=limits, end_to_end=True, rule=FixedRuns(5)), events.append)
    contents = site.contents()
    failed = of_kind(events, ProgramFailed)
    bricks = [it for it in failed if not it.model]
    assert {(it.label.split()[0], it.reason) for it in bricks} == {
        ("flatten", of_flatten[1]),
        ("dropout", of_dropout[1]),
    }
    # The model has both of them.
    assert len(failed) == len(bricks) + 1
    assert state.state is State.FINISHED
    assert state.bricks == Tally(BRICKS, measured=BRICKS - len(bricks), failed=len(bricks))
    assert len(contents.measurements) == BRICKS - len(bricks)
    assert {(it.brick, it.context) for it in contents.failures if not it.model} == {
        (it.brick, it.context) for it in bricks
    }
    assert sorted((it.reason, it.message) for it in contents.failures) == sorted(
        (it.reason, it.message) for it in failed
    )
    assert all(it.message.endswith("--value x=NUMBER") == (not it.brick) for it in contents.failures)


def test_programs_that_fail_in_a_batch_are_retried_alone(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site = misbehaving(site, monkeypatch, Flatten="crash beside others", Dropout="too large beside others")
    events: list[Event] = []
    state = site.run(site.request(rule=FixedRuns(5)), events.append)
    assert state.bricks == Tally(BRICKS, measured=BRICKS)
    assert [event.programs for event in of_kind(events, BatchStarted)][-2:] == [1, 1]
    assert of_kind(events, WorkerReplaced)


def test_a_worker_that_is_killed_before_it_loads_anything_is_replaced(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, killed = SupervisedWorker._started, list[int]()

    def killed_once(worker: SupervisedWorker) -> tuple[Worker, Described]:
        found, described = started(worker)
        if not killed and found.pid is not None:
            killed.append(found.pid)
            os.kill(found.pid, signal.SIGKILL)
        return found, described

    monkeypatch.setattr(SupervisedWorker, "_started", killed_once)
    state = site.run(site.request(rule=FixedRuns(5)))
    assert killed and state.state is State.FINISHED
    assert state.bricks == Tally(BRICKS, measured=BRICKS)


def test_a_full_folder_for_temporary_files_is_no_failure_of_a_brick(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = misbehaving(site, monkeypatch, Flatten="no room")
    events: list[Event] = []
    state = site.run(site.request(rule=FixedRuns(5)), events.append)
    assert {it.reason for it in of_kind(events, ProgramFailed)} == {"no room"}
    assert (state.bricks.failed, site.contents().failures) == (1, [])


def test_bricks_that_failed_or_are_known_are_measured_again_only_on_request(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    rude = misbehaving(site, monkeypatch, Flatten="crash on load", Dropout="not understood")
    rule, progress, events = FixedRuns(FEWEST_SAMPLES), RunProgress(), list[Event]()

    def take(event: Event) -> None:
        progress.take(event)
        events.append(event)

    failed = rude.run(rude.request(rule=rule), take).bricks.failed
    assert {it.label.split()[0] for it in of_kind(events, ProgramFailed)} == {"flatten", "dropout"}
    assert progress.failed == progress.of_bricks.failed == failed
    # A request that the worker did not understand is no failure of the brick.
    assert [it.reason for it in site.contents().failures] == ["crashed"]
    monkeypatch.setenv("FAKE_MANNERS", "{}")
    second = site.run(site.request(rule=rule), take).bricks
    assert second == Tally(BRICKS, measured=failed - 1, reused=BRICKS - failed, failed=1)
    # The progress of the next run starts again.
    assert (progress.failed, progress.of_bricks.failed) == (0, 1)
    assert [it.label.split()[0] for it in of_kind(events, FailedBefore)] == ["flatten"]
    assert (progress.total, progress.done) == (BRICKS, BRICKS)
    retried = site.run(site.request(rule=rule, retry_failed=True)).bricks
    assert retried == Tally(BRICKS, measured=1, reused=BRICKS - 1)
    assert site.run(site.request(rule=rule)).bricks == Tally(BRICKS, reused=BRICKS)

    # Of three batches the first is done in time.
    request = site.request(again=True, rule=rule, time_budget_seconds=1000.0)
    folder = create_run(request, site.data)
    begun = execute_until_the_first_result(site, folder, request).bricks
    assert 0 < begun.measured < BRICKS
    assert begun == Tally(BRICKS, measured=begun.measured)
    done = execute(folder, replace(request, time_budget_seconds=None), site.place, site.queue).state.bricks
    assert done == Tally(BRICKS, measured=BRICKS - begun.measured, reused=begun.measured)
    assert set(Counter(site.contents().measured).values()) == {2}


def test_unfinished_samples_are_continued_unless_the_host_has_changed(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.run(site.request(rule=FixedRuns(6), end_to_end=True))
    slower = Site(site.path.with_name("slower"))
    shutil.copytree(site.path, slower.path)
    for where, factor, again in ((site, 1, 4), (slower, 2, 10)):
        monkeypatch.setenv("FAKE_FACTOR", str(factor))
        events: list[Event] = []
        state = where.run(where.request(rule=FixedRuns(10), end_to_end=True), events.append)
        assert (state.bricks, state.whole_models) == (Tally(BRICKS, measured=BRICKS), Tally(1, measured=1))
        taken = Counter(program for event in of_kind(events, RoundDone) for program, _ in event.samples_ms)
        assert set(taken.values()) == {again}
        contents = where.contents()
        results = [*contents.measurements, *contents.end_to_end]
        assert Counter(len(it.samples_ms) for it in results) == {6: BRICKS + 1, 10: BRICKS + 1}
        progress = RunProgress()
        for event in events:
            progress.take(event)
        assert {len(brick.samples_ms) for brick in progress.bricks.values()} == {10}


def test_a_round_disturbed_by_other_programs_is_repeated(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    # A shorter round tells nothing of others.
    monkeypatch.setattr("dlbricks_tui.measure.noise._SHORTEST_SECONDS", 0.0)
    asked = 0

    def counted(_: SupervisedWorker) -> Contention:
        nonlocal asked
        asked += 1
        # Between the third and the fourth question, which is within the second round, somebody came.
        return Contention(10.0, 10**6) if asked >= 4 else Contention(0.0, 0)

    monkeypatch.setattr(SupervisedWorker, "contention", counted)
    events: list[Event] = []
    ended = site.run(site.request(), events.append)
    repeated = of_kind(events, RoundRepeated)
    assert len(repeated) == 1
    assert "others took the processor" in repeated[0].reason
    assert (ended.state, ended.bricks) == (State.FINISHED, Tally(BRICKS, measured=BRICKS))
    noise = [dict(result.noise) for result in site.contents().measurements]
    assert [facts["repeated_rounds"] for facts in noise if "repeated_rounds" in facts]


@pytest.mark.parametrize(("at_first", "later"), [(3, 2), (2, 3)])
def test_a_batch_restarts_with_all_of_its_programs_when_the_speed_of_the_host_changes(
    site: Site, monkeypatch: pytest.MonkeyPatch, at_first: int, later: int
) -> None:
    sample, rounds, as_at_first = SupervisedWorker.sample, Counter[str](), 14

    def changing(worker: SupervisedWorker, names: Sequence[str], *runs: int) -> dict[str, tuple[float, ...]]:
        rounds["half"] += names == ["reference"]
        slower = at_first if rounds["half"] <= 2 * as_at_first else later
        taken = sample(worker, names, *runs)
        return {name: tuple(slower * duration for duration in durations) for name, durations in taken.items()}

    monkeypatch.setattr(SupervisedWorker, "sample", changing)
    monkeypatch.setattr(noise, "_SECONDS_TO_BE_SURE", 0.0)
    monkeypatch.setattr(noise, "_PATIENCE_SECONDS", 0.0)
    events: list[Event] = []
    # By the time it changes those that are a small part of the model are done, as none is by chance before or after.
    done = site.run(site.request(rule=Adaptive(1e-9, most=24, enough_ms=0.0)), events.append)
    (begun,) = of_kind(events, BatchRestarted)
    assert begun.times_as_fast == pytest.approx(at_first / later, rel=0.02)
    # A speed-up keeps the last five rounds, a slow-down keeps none.
    assert {len(samples_ms) for _, samples_ms in begun.samples_ms} == ({0, 5} if later < at_first else {0})
    assert len(of_kind(events, ProgramMeasured)) > done.bricks.measured == BRICKS
    progress = RunProgress()
    for event in events:
        progress.take(event)
    assert (progress.of_bricks.measured, progress.done) == (BRICKS, progress.total)
    found = sorted(site.contents().measurements, key=attrgetter("when"))
    newest = {(it.brick, it.context): it for it in found}
    assert len(newest) == BRICKS
    for it in newest.values():
        assert max(it.samples_ms) < 1.3 * min(it.samples_ms)
    repeated = [value for it in newest.values() for name, value in it.noise if name == "repeated_rounds"]
    assert any(isinstance(value, int) and value >= as_at_first for value in repeated)


def test_without_a_reference_program_only_drift_is_missed(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site = misbehaving(site, monkeypatch, Convolution="unbuildable")
    state = site.run(site.request())
    assert state.state is State.FINISHED
    assert state.bricks.measured > 0
    assert all("reference_ms" not in dict(it.noise) for it in site.contents().measurements)


def test_a_spent_budget_ends_the_run_and_keeps_its_samples(site: Site) -> None:
    request = site.request(time_budget_seconds=1000.0)
    state = execute_until_the_first_result(site, create_run(request, site.data), request)
    assert state.state is State.FINISHED
    assert "budget" in state.message
    # What has samples but not enough has a result, and is not done.
    assert 0 < len(site.contents().measurements) == state.bricks.measured + state.bricks.unfinished < BRICKS


def test_a_runtime_that_has_changed_since_the_request_is_refused(site: Site) -> None:
    with pytest.raises(JobError, match=r"1\.9\.1 now"):
        site.run(site.request(runtime=replace(FAKE, version="1.5.1")))
    (state,) = RunFolders(site.data.runs).states()
    assert state.state is State.FAILED
    assert "1.9.1" in state.message


OTHER_MODEL = "table1:18"
# Noisy programs take long enough with it.
RULE = Adaptive(least=10, most=10)


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs end soon: these hosts never become quiet within one."""
    monkeypatch.setattr(inside, "_MOST_PLAIN_RUNS", 10)
    monkeypatch.setattr(inside, "PATIENCE_SECONDS", 0.0)


def planned_by(site: Site, model: str = MODEL, *, end_to_end: bool = True, again: bool = False) -> Planned:
    """Run a model, and return the plan of that."""
    events: list[Event] = []
    request = site.request(model, method=Method.INSIDE, end_to_end=end_to_end, again=again, rule=RULE)
    assert site.run(request, events.append).state is State.FINISHED
    (found,) = [event for event in events if isinstance(event, Planned)]
    return found


def noisy(monkeypatch: pytest.MonkeyPatch, noise: float = 0.6) -> None:
    monkeypatch.setenv("FAKE_NOISE", str(noise))


def widest_share(site: Site) -> float:
    """Return the widest interval of the newest results that count, relative to their latency."""
    with ResultsDatabase(site.data.store) as store:
        found = store.select("good=true", "of=brick").summaries()
        newest = [it for it in found if it.run == found[0].run and it.trimmed_mean_ms > 0.1]
    return max((it.high_ms - it.low_ms) / 2 / it.trimmed_mean_ms for it in newest)


def told(planned: Planned) -> str:
    note = note_of(planned)
    assert note is not None
    return note.text


def test_results_of_a_noisy_run_are_measured_again_by_the_next_run_until_they_are_precise(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    noisy(monkeypatch)
    assert planned_by(site).bricks_reused == 0
    noisy(monkeypatch, 0.005)
    second = planned_by(site)
    assert second.bricks_imprecise > 0
    assert second.models_reused == 0, "a model and its bricks are timed in the same minutes"
    assert f"{second.bricks_imprecise} again: too imprecise so far" in told(second)
    assert widest_share(site) < 0.05
    third = planned_by(site)
    assert (third.bricks_reused, third.models_reused) == (BRICKS, 1)
    assert told(third) == f"{BRICKS} bricks: {BRICKS} known, 0 to measure; 0 of 1 model to time end to end"


def test_a_run_with_a_target_measures_results_again_that_are_too_wide_for_it(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    noisy(monkeypatch)
    planned_by(site, end_to_end=False)
    noisy(monkeypatch, 0.005)
    asked = site.request(MODEL, method=Method.INSIDE, rule=RULE)
    assert site.run(replace(asked, target=0.9)).bricks.measured == 0
    assert site.run(replace(asked, target=0.01)).bricks.measured > 0


def test_a_host_that_is_always_noisy_is_not_measured_for_ever(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    noisy(monkeypatch)
    *tries, last = (BRICKS - planned_by(site, end_to_end=False).bricks_reused for _ in range(MOST_TRIES + 1))
    assert tries[0] == BRICKS
    assert all(tries)
    assert last == 0


def test_bricks_of_a_slower_host_are_measured_again_once_the_host_turns_out_to_be_quicker(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_FACTOR", "2")
    planned_by(site)
    before = site.contents()
    assert planned_by(site).bricks_reused == BRICKS, "nothing says that the host was slow"
    assert site.contents() == before
    monkeypatch.setenv("FAKE_FACTOR", "1")
    planned_by(site, OTHER_MODEL)
    found = planned_by(site)
    assert found.bricks_of_slow_host > 0
    assert "again: measured while the host was slower" in told(found)
    assert planned_by(site).bricks_reused == BRICKS
