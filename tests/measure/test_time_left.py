"""The predicted time left of a run, and its time budget, by a clock that only the tests move."""

import signal
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from dlbricks_tui.host.noise import Contention
from dlbricks_tui.jobs.events import Event, Waiting
from dlbricks_tui.jobs.folder import JobState, State
from dlbricks_tui.measure import inside
from dlbricks_tui.measure.carriers import CarrierJob, TimedCarrier, carrier_jobs
from dlbricks_tui.measure.events import BatchStarted, RoundDone, RoundRepeated
from dlbricks_tui.measure.jobs import Job
from dlbricks_tui.measure.known import Known
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.noise import HostTrack, NoiseMonitor
from dlbricks_tui.measure.plan import plan
from dlbricks_tui.measure.rounds import BatchLimits
from dlbricks_tui.measure.stopping import Adaptive, FixedRuns
from dlbricks_tui.measure.supervised_worker import SupervisedWorker
from dlbricks_tui.measure.time_left import (
    BEFORE_ROUNDS,
    PATIENCE_SECONDS,
    WORKER_START_SECONDS,
    Agenda,
    Pace,
    expected_seconds,
    stages,
)
from dlbricks_tui.runs.control import Control, create_run
from dlbricks_tui.runs.events import Planned, ProgramUnfinished, TellsTimeLeft
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.runs.run import execute
from dlbricks_tui.runtime.protocol import Loaded, Profiled, Program
from tests.bricks.graphs import chain
from tests.host.lines import turn_of
from tests.measure.simulated_host import REFERENCE, Notes, SimulatedHost
from tests.measure.test_plan import cut_models
from tests.runs.runs import BRICKS, Site

LOAD_SECONDS, HALF_A_ROUND_SECONDS = 0.5, 0.5


@dataclass
class Clock:
    """A time that passes when it is told to."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


class Timed:
    """A run with the fake worker, in which loading and rounds take a known time; what it tells, and when."""

    def __init__(self, site: Site, monkeypatch: pytest.MonkeyPatch, disturbed: int = 0) -> None:
        self.clock = Clock()
        self.events: list[tuple[float, Event]] = []
        self._site = site
        self._rounds = 0
        load, sample = SupervisedWorker.load, SupervisedWorker.sample

        def slow_load(worker: SupervisedWorker, name: str, *about: Any, **more: Any) -> Any:
            self.clock.now += LOAD_SECONDS
            return load(worker, name, *about, **more)

        def slow_sample(worker: SupervisedWorker, names: Sequence[str], *runs: int) -> dict[str, tuple[float, ...]]:
            self.clock.now += HALF_A_ROUND_SECONDS * (list(names) == ["reference"])
            return sample(worker, names, *runs)

        def contention(_: SupervisedWorker) -> Contention:
            # Asked for at both ends of a round: others come in each of the disturbed ones.
            self._rounds += 1
            times = min(self._rounds // 2, disturbed)
            return Contention(10.0 * times, 10**6 * times)

        monkeypatch.setattr(SupervisedWorker, "load", slow_load)
        monkeypatch.setattr(SupervisedWorker, "sample", slow_sample)
        monkeypatch.setattr(SupervisedWorker, "contention", contention)

    def run(self, request: RunRequest, **place: Any) -> JobState:
        """Execute the run."""
        place = {"clock": self.clock, "limits": BatchLimits(), **place}
        result = execute(
            create_run(request, self._site.data),
            request,
            replace(self._site.place, **place),
            self._site.queue,
            lambda event: self.events.append((self.clock.now, event)),
        )
        return result.state

    def said_and_true(self) -> list[tuple[float, float]]:
        """The time left in each event that says one, and what it turned out to be."""
        end = self.events[-1][0]
        told = [
            (event.seconds_left, end - when)
            for when, event in self.events
            if isinstance(event, BatchStarted | RoundDone | RoundRepeated)
        ]
        return [(said, true) for said, true in told if said is not None]

    def count(self, kind: type[Event]) -> int:
        """Return the number of such events."""
        return sum(isinstance(event, kind) for _, event in self.events)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "data")


def jobs_of(*kinds: str) -> Sequence[Job]:
    return plan(cut_models(chain(*kinds)), Known(), Adaptive()).jobs


def test_the_time_left_of_a_run_follows_its_rounds_so_far(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    timed = Timed(site, monkeypatch)
    timed.run(site.request(rule=FixedRuns(30)))
    said_and_true = timed.said_and_true()[5:-3]
    assert len(said_and_true) > 20
    assert all(0.8 * true < said < 1.25 * true for said, true in said_and_true)


@pytest.mark.parametrize("disturbed", [12, 10**6])
def test_the_time_left_keeps_changing_while_rounds_are_repeated(
    disturbed: int, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed = Timed(site, monkeypatch, disturbed)
    timed.run(site.request(rule=FixedRuns(30)))
    assert timed.count(RoundDone) == 30
    # They cost little time on any host.
    assert 5 <= timed.count(RoundRepeated) <= 5 + 30 / 2 + 1
    said_and_true = timed.said_and_true()
    told = [said for said, _ in said_and_true]
    assert all(before != after for before, after in pairwise(told))
    assert all(0.5 * true < said < 2 * true for said, true in said_and_true[8:-4])


def test_predicted_repeats_follow_the_repeats_so_far_up_to_the_limit() -> None:
    jobs = jobs_of("conv", "relu", "pool")
    samples = dict.fromkeys(jobs, 10)

    def left(calmness: NoiseMonitor, repeated_seconds: float) -> float:
        pace = Pace(FixedRuns(20), calmness)
        for _ in range(10):
            pace.sampled(jobs, 2.0)
        pace.repeated(repeated_seconds)
        return pace.seconds_for(samples)

    assert left(NoiseMonitor(), 0.0) == pytest.approx(20.0)
    assert left(NoiseMonitor(), 4.0) == pytest.approx(20.0 + 4.0 * 20.0 / 22.0)
    assert left(NoiseMonitor(most_seconds=1.0), 400.0) == pytest.approx(21.0)


def test_noise_takes_more_samples() -> None:
    jobs = jobs_of("conv", "relu", "pool")
    quiet, noisy = Pace(Adaptive()), Pace(Adaptive())
    for _ in range(20):
        quiet.sampled(jobs, 1.0)
        noisy.sampled(jobs, 1.0, noisy=True)
    assert (quiet.disturbed_share, noisy.disturbed_share) == (0, 20 / 30)
    assert noisy.seconds_for(dict.fromkeys(jobs, 20)) > 1.5 * quiet.seconds_for(dict.fromkeys(jobs, 20))


def test_the_first_guess_includes_the_start_of_the_worker_and_the_load_of_the_host() -> None:
    jobs = jobs_of("conv", "relu", "pool")
    assert expected_seconds(Method.ALONE, Adaptive(), ()) == 0.0
    quiet = expected_seconds(Method.ALONE, Adaptive(), jobs)
    assert quiet == WORKER_START_SECONDS + Pace(Adaptive()).seconds_for(dict.fromkeys(jobs, 0))
    assert expected_seconds(Method.ALONE, Adaptive(), jobs, others=1.0) > 2 * quiet


def test_the_first_guess_of_inside_includes_a_wait_for_a_quiet_host() -> None:
    models = cut_models(chain("conv", "relu", "pool"))
    jobs = plan(models, Known(), Adaptive(), end_to_end=True, method=Method.INSIDE).jobs
    quiet, busy = (expected_seconds(Method.INSIDE, Adaptive(), jobs, others) for others in (0.0, 1.0))
    assert quiet > WORKER_START_SECONDS + BEFORE_ROUNDS.seconds
    assert quiet + PATIENCE_SECONDS < busy < 2 * quiet + PATIENCE_SECONDS
    # Models alone need few quiet samples.
    whole = [job for job in jobs if job.whole]
    assert expected_seconds(Method.INSIDE, Adaptive(), whole, others=1.0) < 10.0


def test_the_time_left_never_exceeds_the_budget(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    timed = Timed(site, monkeypatch)
    state = timed.run(site.request(rule=FixedRuns(100), time_budget_seconds=60.0))
    assert (state.state, state.message) == (State.FINISHED, "its time budget of 60 s is spent")
    # Each has enough samples for a result, and fewer than it was to have.
    assert (state.bricks.unfinished, timed.count(ProgramUnfinished)) == (BRICKS, BRICKS)
    assert all(said <= max(0.0, true) for said, true in timed.said_and_true())
    assert [event.expected_seconds <= 60 for _, event in timed.events if isinstance(event, Planned)] == [True]
    # Within a second and the round in flight.
    assert timed.clock.now - 1000.0 <= 60 + 1 + 2 * HALF_A_ROUND_SECONDS


def test_a_budget_begins_when_the_turn_comes(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    timed = Timed(site, monkeypatch)
    request = site.request(time_budget_seconds=30.0, rule=FixedRuns(100))
    other = turn_of(site.queue, "other", site.data.path)

    def nap(_: Control) -> None:
        timed.clock.now += 1000.0
        other.leave()

    monkeypatch.setattr(Control, "_nap", nap)
    # The command took long to start, as other work measured.
    state = timed.run(request, spent_seconds=50.0)
    assert timed.count(Waiting) == 1
    assert state.state is State.FINISHED and "30 s is spent" in state.message
    assert 25 < timed.clock.now - 2000.0 <= 30 + LOAD_SECONDS + 2 * HALF_A_ROUND_SECONDS
    assert state.bricks.measured + state.bricks.unfinished > 0


def test_a_budget_does_not_include_pauses(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    timed = Timed(site, monkeypatch)
    folder: list[Control] = []

    def nap(control: Control) -> None:
        timed.clock.now += 1000.0
        folder.append(control)
        control._folder.unpause()

    monkeypatch.setattr(Control, "_nap", nap)
    request = site.request(rule=FixedRuns(10), time_budget_seconds=100.0)
    run = create_run(request, site.data)

    def listen(event: Event) -> None:
        if isinstance(event, RoundDone) and not folder:
            run.pause_file.touch()

    place = replace(site.place, clock=timed.clock, limits=BatchLimits())
    state = execute(run, request, place, site.queue, listen).state
    assert folder
    assert (state.state, state.message, state.bricks.measured) == (State.FINISHED, "", BRICKS)


def test_pauses_are_no_time_of_a_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, took = Clock(), list[float]()

    class Paused(Notes):
        def checkpoint(self) -> None:
            clock.now += 1000.0

    class Noted(Agenda):
        def end_stage(self, seconds: float) -> None:
            took.append(seconds)

    monkeypatch.setattr(inside, "time", SimpleNamespace(monotonic=clock, process_time=lambda: 0.0))
    models, notes = cut_models(chain("conv", "relu", "pool")), Paused()
    jobs = plan(models, Known(), Adaptive(), end_to_end=True, method=Method.INSIDE).jobs
    worker: Any = TimedHost(clock, is_busy=False)
    timing = inside.Inside(
        *(worker, notes, notes, Adaptive(), notes.events.append, REFERENCE, NoiseMonitor(), 0.05), agenda=Noted()
    )
    timing.time_models([job for job in jobs if job.whole], before_carriers=True)
    timing.time_carriers(carrier_jobs(models, {job.key.brick: job for job in jobs if not job.whole}))
    assert len(took) == 2 and all(0 < it < 100 for it in took)


def test_a_spent_budget_ends_a_run_that_waits_for_its_worker(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_MANNERS", '{"Flatten": "hang on load"}')
    load = SupervisedWorker.load

    def alarming(worker: SupervisedWorker, name: str, *about: Any, **more: Any) -> Any:
        if name != "reference":
            # The timer of the budget goes off as soon as the worker is asked.
            signal.setitimer(signal.ITIMER_REAL, 0.01)
        return load(worker, name, *about, **more)

    monkeypatch.setattr(SupervisedWorker, "load", alarming)
    state = site.run(site.request(time_budget_seconds=5000.0))
    assert (state.state, state.message) == (State.FINISHED, "its time budget of 5000 s is spent")
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)


def test_a_slow_carrier_whose_interval_is_far_too_wide_will_probably_take_all_of_its_time() -> None:
    nothing: Any = None
    chance = Random(1)
    it = TimedCarrier(CarrierJob("it", "", nothing, nothing, 80.0, {}, {}), ("it",), 80.0, 15.0, HostTrack(0.05))
    said: list[float] = []
    while not it.is_done():
        it.track.read(0.05)
        it.plain_ms.append(80.0 * chance.lognormvariate(0, 0.3))
        it.moments.append(it.track.now)
        it.seconds += 0.64
        said.append(len(it.plain_ms) + it.rounds_left())
    assert len(said) == 24
    assert all(24 / 1.1 < it < 24 * 1.1 for it in said[8:])


class TimedHost(SimulatedHost):
    """A simulated host on which time passes as its programs load and run, perhaps beside those of others."""

    def __init__(self, clock: Clock, *, is_busy: bool) -> None:
        latencies_ms = {"conv": 40.0, "relu": 8.0, "pool": 20.0}
        super().__init__({op: (1.6 if is_busy else 1.0) * it for op, it in latencies_ms.items()}, seed=1)
        self._clock, self._is_busy = clock, is_busy

    def load(self, name: str, program: Program, expected_ms: float = 0.0, *, fixture: bool = False) -> Loaded | None:
        loaded = super().load(name, program, expected_ms, fixture=fixture)
        (first_ms,) = super().sample([name], 0, 1)[name]
        self._clock.now += 0.4 + first_ms / 1000
        return loaded and replace(loaded, first_run_seconds=first_ms / 1000)

    def sample(self, names: Sequence[str], warm: int, repeat: int) -> dict[str, tuple[float, ...]]:
        taken = super().sample(names, warm, repeat)
        self._clock.now += (warm + repeat) / repeat * sum(map(sum, taken.values())) / 1000
        return taken

    def profile(self, name: str, warm: int, repeat: int) -> Profiled | None:
        found = super().profile(name, warm, repeat)
        assert found is not None
        self._clock.now += (warm + repeat) / repeat * sum(map(sum, found.durations_ns)) / 1e9
        return found

    def contention(self) -> Contention:
        others = self._clock.now if self._is_busy else 0.0
        return Contention(others, int(1000 * others))


ALTERNATE = [("conv", "relu", "pool"), ("relu", "pool")]
# A model takes 20 times as long as the one beside which it is timed.
UNLIKE = [("relu", "pool"), ("conv",) * 14]


def inside_said_and_true(
    monkeypatch: pytest.MonkeyPatch, networks: Sequence[Sequence[str]], *, is_busy: bool, in_a_group: bool
) -> Sequence[float]:
    """Return the time left that `inside` said over the true one, if that is more than a few rounds.

    Each model may have a group of its own.
    """
    clock = Clock()
    monkeypatch.setattr(inside, "time", SimpleNamespace(monotonic=clock, process_time=lambda: 0.0))
    cut = [cut_models(*(chain(*it) for it in networks))] if in_a_group else [cut_models(chain(*it)) for it in networks]
    jobs = [plan(models, Known(), Adaptive(), end_to_end=True, method=Method.INSIDE).jobs for models in cut]
    wholes = [job for some in jobs for job in some if job.whole]
    groups = [
        carrier_jobs(models, {job.key.brick: job for job in some if not job.whole})
        for models, some in zip(cut, jobs, strict=True)
    ]
    told: list[tuple[float, Event]] = []
    worker: Any = TimedHost(clock, is_busy=is_busy)
    notes, noise, agenda = Notes(), NoiseMonitor(), Agenda(stages(wholes, groups), float(is_busy))
    started = clock.now
    timing = inside.Inside(
        *(worker, notes, notes, Adaptive(), lambda it: told.append((clock.now, it)), REFERENCE, noise, 0.05),
        agenda=agenda,
    )
    timing.time_models(wholes, before_carriers=True)
    for group in groups:
        timing.time_carriers(group, len(networks))
    took = clock.now - started
    return [
        it.seconds_left / (clock.now - when)
        for when, it in told
        if isinstance(it, TellsTimeLeft) and it.seconds_left is not None and 0.1 < (when - started) / took < 0.9
        if clock.now - when > 4.0
    ]


@pytest.mark.parametrize(
    ("networks", "in_a_group"),
    [(ALTERNATE[:1], False), (3 * ALTERNATE, False), (UNLIKE, True)],
    ids=["one model", "six models", "unlike models in a group"],
)
@pytest.mark.parametrize("is_busy", [False, True], ids=["quiet", "busy"])
def test_what_inside_says_of_its_time_left_is_mostly_true_within_a_factor_of_one_and_a_half(
    networks: Sequence[Sequence[str]], in_a_group: bool, is_busy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ratios = inside_said_and_true(monkeypatch, networks, is_busy=is_busy, in_a_group=in_a_group)
    assert len(ratios) > 5
    # The interval of a few rounds is wide or narrow by chance.
    assert sum(1 / 1.5 < it < 1.5 for it in ratios) >= 0.8 * len(ratios)
    assert 0.5 < min(ratios) <= max(ratios) < 2.0


def test_a_whole_model_announces_no_long_wait_for_a_quiet_host_that_soon_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    monkeypatch.setattr(inside, "time", SimpleNamespace(monotonic=clock, process_time=lambda: 0.0))
    jobs = plan(cut_models(chain("relu")), Known(), Adaptive(), end_to_end=True, method=Method.INSIDE).jobs
    worker: Any = TimedHost(clock, is_busy=True)
    worker.latencies_ms["relu"] = 0.5
    told: list[tuple[float, float]] = []

    def note(event: Event) -> None:
        if isinstance(event, RoundRepeated) and event.seconds_left is not None:
            told.append((clock.now, event.seconds_left))

    timing = inside.Inside(worker, Notes(), Notes(), Adaptive(), note, REFERENCE, NoiseMonitor(), 0.05)
    timing.time_models([job for job in jobs if job.whole])
    assert told
    assert all(left < clock.now - when + 2.1 for when, left in told)
