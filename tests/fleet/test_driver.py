"""The driver of a fleet run, with hosts that are objects: nothing here takes time, or depends on it."""

import json
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.fleet.answering import seconds_inside
from dlbricks_tui.fleet.driver import FleetPlace, execute_fleet
from dlbricks_tui.fleet.engine import HostUnreachable
from dlbricks_tui.fleet.folder import create_fleet, read_fleet_request
from dlbricks_tui.fleet.messages import Parcel, Task, TaskProgress, text_of
from dlbricks_tui.fleet.request import (
    FleetEnded,
    FleetError,
    FleetHostState,
    FleetProgress,
    FleetRequest,
    HostBrickFailed,
    HostChanged,
    HostEntry,
    HostEstimate,
    OrderFound,
    ResultStored,
)
from dlbricks_tui.fleet.results import FleetResults
from dlbricks_tui.fleet.workload import FleetPart, FleetWorkload
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.jobs.folder import JobState, State
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.library import Library
from dlbricks_tui.runs.planning import PROBE_RULE, cut_models
from dlbricks_tui.settings.measuring import Question
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import NoRoomError
from dlbricks_tui.store.records import Measurement, Provenance, Record
from dlbricks_tui.store.selections import equal
from tests.fleet.fake_engine import FakeEngine, FakeHost, Lie, another_system, progress, record_text
from tests.runs.runs import FAKE, Site

MODELS = ("alexnet", "vgg11")


@pytest.fixture(scope="module")
def workload(tmp_path_factory: pytest.TempPathFactory) -> FleetWorkload:
    """Two models, cut once for all tests."""
    return workload_of(tmp_path_factory.mktemp("models"), *MODELS)


@pytest.fixture(scope="module")
def small_workload(tmp_path_factory: pytest.TempPathFactory) -> FleetWorkload:
    """A model, for tests that need no second one."""
    return workload_of(tmp_path_factory.mktemp("model"), MODELS[0])


def workload_of(path: Path, *names: str) -> FleetWorkload:
    site = Site(path)
    request = site.request(*names, method=Method.INSIDE)
    library = Library(SAMPLE_MODELS, site.path, request.runtime.traits.format)
    models = cut_models(request, library, site.data.cache, site.path / "log", lambda _: None)
    parcels = {
        model.name: Parcel(sha256=f"{number:064x}", suffix=".json", content=b"{}", bricks=model.decomposition.bricks)
        for number, model in enumerate(models)
    }
    return FleetWorkload((FleetPart(request, models, parcels),))


def in_parts(workload: FleetWorkload) -> FleetWorkload:
    """Return the same models, each in a part of its own."""
    (whole,) = workload.parts
    parts = (replace(whole, models=(it,), parcels={it.name: whole.parcels[it.name]}) for it in whole.models)
    return FleetWorkload(tuple(parts))


class Fleet:
    """A fleet run in a data folder, its hosts, and the events so far."""

    def __init__(
        self, path: Path, workload: FleetWorkload, *hosts: FakeHost, seconds: float | None = None, **changes: Any
    ) -> None:
        path.mkdir(exist_ok=True)
        self.workload, self.engine, self.site = workload, FakeEngine(hosts), Site(path / "data")
        self.events: list[Event] = []
        self.watch: Callable[[Event], None] = lambda _: None
        run = replace(self.site.request(*MODELS, method=Method.INSIDE), time_budget_seconds=seconds)
        names = tuple(HostEntry(name=host.name) for host in hosts)
        request = FleetRequest(run=run, hosts=names, probe_seconds=0.0)
        self.folder = create_fleet(replace(request, **changes), self.site.data)

    def drive(self, *, detached: bool = False) -> JobState:
        """Drive it to its end."""

        def listen(event: Event) -> None:
            self.events.append(event)
            self.watch(event)

        place = FleetPlace(self.site.data, lambda *_: self.engine, lambda *_: self.workload, self.engine.clock)
        return execute_fleet(self.folder, place, listen, detached=detached)

    @property
    def bricks(self) -> int:
        """The number of different bricks of the models."""
        return len(self.workload.parts[0].jobs)

    @property
    def progress(self) -> FleetProgress:
        """What its events tell."""
        return self.folder.progress()

    def states(self) -> dict[str, FleetHostState]:
        return {name: row.state for name, row in self.progress.hosts.items()}

    def measured(self) -> Counter[tuple[str, str]]:
        """How often each system measured each brick, by the local store."""
        return Counter((it.system, it.brick) for it in self.site.contents().measurements)

    def told(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def at_step(self, actions: dict[int, Callable[[], object]]) -> None:
        """Do something when the hosts have taken so many steps."""
        self.engine.before_step = lambda step: actions.get(step, lambda: None)()

    def has_everything_once(self) -> bool:
        """All bricks were measured once on each system."""
        wanted = {job.key.brick for job in self.workload.parts[0].jobs.values()}
        systems = {host.system.id for host in self.engine.hosts.values()}
        return self.measured() == Counter((it, brick) for it in systems for brick in wanted)


FleetOf = Callable[..., Fleet]


@pytest.fixture
def fleet_of(tmp_path: Path, small_workload: FleetWorkload) -> FleetOf:
    """Return a function that makes the fleet run of a model with hosts."""
    return partial(Fleet, tmp_path, small_workload)


@pytest.fixture
def short_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let tasks end after five seconds, so that hosts get several."""
    monkeypatch.setattr("dlbricks_tui.fleet.driver.TASK_SECONDS", 5.0)


def honest(name: str, **changes: Any) -> FakeHost:
    return FakeHost(name, another_system(name), **changes)


def test_each_host_measures_each_brick_once_and_results_are_durable_before_they_are_told(
    tmp_path: Path, workload: FleetWorkload
) -> None:
    installed = (FAKE.identity, FAKE.identity.replace("1.9.1", "1.8.0"))
    fleet = Fleet(tmp_path, workload, honest("one"), honest("two", latency_ms=2.0, changes={"runtimes": installed}))

    with ResultsDatabase(fleet.site.data.store) as store:

        def is_stored(event: Event) -> None:
            if isinstance(event, ResultStored):
                store.refresh()
                system = fleet.engine.hosts[event.host].system.id
                assert len(store.records(Measurement, equal(system=system, brick=event.brick))) == 1

        fleet.watch = is_stored
        state = fleet.drive()
    assert (state.state, state.message) == (State.FINISHED, "")
    assert (state.bricks.total, state.bricks.measured) == (2 * fleet.bricks, 2 * fleet.bricks)
    assert fleet.has_everything_once()
    assert len(fleet.told(ResultStored)) == 2 * fleet.bricks
    assert fleet.states() == {"one": FleetHostState.DONE, "two": FleetHostState.DONE}
    assert {row.bricks for row in fleet.progress.hosts.values()} == {fleet.bricks}
    last = {(it.host, it.model): it for it in fleet.told(HostEstimate)}
    assert set(last) == {(host, model) for host in ("one", "two") for model in MODELS}
    for model in MODELS:
        assert (last["two", model].sequential_ms or 0) > (last["one", model].sequential_ms or 0) > 0
        assert last["one", model].missing_layers == 0
    with ResultsDatabase(fleet.site.data.store) as store:
        found = store.records(Provenance)
        assert {it.run for it in store.records(Measurement)} == {it.run for it in found}
    systems = {f"{fleet.folder.run}@{name}": host.system.id for name, host in fleet.engine.hosts.items()}
    assert {it.run: it.system for it in found} == systems
    assert {dict(it.packages)["mxnet"] for it in found} == {"1.9.1"}


def test_a_host_that_dies_costs_the_brick_in_flight_and_continues_when_it_returns(fleet_of: FleetOf) -> None:
    fleet = fleet_of(honest("one"), honest("two"))
    engine = fleet.engine
    fleet.at_step({4: partial(engine.lose, "one"), 30: partial(engine.bring_back, "one")})
    state = fleet.drive()
    assert (state.state, state.message) == (State.FINISHED, "")
    assert FleetHostState.LOST in [it.state for it in fleet.told(HostChanged) if it.host == "one"]
    assert fleet.has_everything_once()


def test_a_brick_that_takes_its_host_away_is_given_up(fleet_of: FleetOf, small_workload: FleetWorkload) -> None:
    deadly = sorted(key.brick for key in small_workload.parts[0].jobs)[3]
    fleet = fleet_of(honest("one", deadly=frozenset([deadly])))
    engine = fleet.engine
    engine.before_step = lambda _: None if engine.hosts["one"].is_there else engine.bring_back("one")
    state = fleet.drive()
    (failed,) = fleet.told(HostBrickFailed)
    assert failed.brick == deadly
    assert "went away" in failed.reason
    assert state.bricks.failed == 1
    assert len(fleet.measured()) == fleet.bricks - 1


def test_a_brick_is_no_cause_of_a_lost_connection(fleet_of: FleetOf, small_workload: FleetWorkload) -> None:
    unlucky = sorted(key.brick for key in small_workload.parts[0].jobs)[3]
    # Its run goes on each time.
    host = honest("one", deadly=frozenset([unlucky]), changes={"lived": True})
    fleet = fleet_of(host)

    def reconnect(_: int) -> None:
        if sum(task.bricks == (unlucky,) for task in host.tasks) == 3:
            host.deadly = frozenset()
        if not host.is_there:
            fleet.engine.bring_back("one")

    fleet.engine.before_step = reconnect
    assert fleet.drive().bricks.failed == 0
    assert fleet.has_everything_once()


def test_a_brick_is_no_cause_of_the_loss_of_a_paused_host(fleet_of: FleetOf) -> None:
    fleet = fleet_of(honest("one"))
    engine, command = fleet.engine, partial(fleet.folder.command_host, "one")

    def pause() -> None:
        engine.hosts["one"].is_paused = True
        command("pause")

    once = pause, partial(engine.lose, "one"), partial(engine.bring_back, "one"), partial(command, "resume")
    fleet.at_step(dict(enumerate(once * 10)))
    assert fleet.drive().bricks.failed == 0
    assert fleet.has_everything_once()


def test_a_brick_without_a_result_is_asked_for_twice(fleet_of: FleetOf, small_workload: FleetWorkload) -> None:
    lacking = min(key.brick for key in small_workload.parts[0].jobs)
    fleet = fleet_of(honest("one", unknown=frozenset([lacking])))
    fleet.drive()
    assert [it.brick for it in fleet.told(HostBrickFailed)] == [lacking]
    assert sum(lacking in task.bricks for task in fleet.engine.hosts["one"].tasks) == 2


def test_a_driver_that_dies_resumes_and_asks_only_for_what_it_lacks(fleet_of: FleetOf) -> None:
    fleet = fleet_of(honest("one"), honest("two"))

    class KilledError(BaseException):
        """Stands for the end of the process."""

    def kill(step: int) -> None:
        if step == 4:
            raise KilledError

    fleet.engine.before_step = kill
    with pytest.raises(KilledError):
        fleet.drive()
    stored = set(fleet.measured())
    assert 0 < len(stored) < 2 * fleet.bricks
    for host in fleet.engine.hosts.values():
        host.tasks.clear()
    fleet.engine.before_step = lambda _: None
    assert fleet.drive().state is State.FINISHED
    assert fleet.has_everything_once()
    for host in fleet.engine.hosts.values():
        asked = {brick for task in host.tasks for brick in task.bricks}
        assert not asked & {brick for system, brick in stored if system == host.system.id}


def test_a_fleet_run_that_is_driven_again_keeps_its_tally(fleet_of: FleetOf) -> None:
    fleet = fleet_of(honest("one"), honest("two"))
    first = fleet.drive()
    assert (first.bricks.measured, first.bricks.reused) == (2 * fleet.bricks, 0)
    again = fleet.drive()
    assert (again.state, again.bricks) == (State.FINISHED, first.bricks)
    assert again.seconds >= first.seconds
    # Another fleet run finds the same results.
    fleet.folder = create_fleet(read_fleet_request(fleet.folder.request_file), fleet.site.data)
    reused = replace(first.bricks, measured=0, reused=2 * fleet.bricks)
    assert fleet.drive().bricks == reused
    # Its end, its tally and its estimates stay while hosts are away.
    before = fleet.progress
    for host in fleet.engine.hosts.values():
        host.is_there = False
    with pytest.raises(FleetError, match=f"10 minutes; fleet run {fleet.folder.run} stays as it was"):
        fleet.drive()
    away = fleet.folder.state()
    assert (away.state, away.bricks, fleet.progress) == (State.FINISHED, reused, before)


def test_a_paused_host_and_a_paused_fleet_run_get_no_work_until_they_are_resumed(fleet_of: FleetOf) -> None:
    fleet = fleet_of(honest("one"), honest("two"))
    sent: list[tuple[State, int]] = []

    def count() -> None:
        sent.append((fleet.folder.state().state, len(fleet.engine.hosts["one"].store)))

    pause, unpause = (partial(fleet.folder.command_host, "one", what) for what in ("pause", "resume"))
    of_host: dict[int, Callable[[], object]] = {3: pause, 6: count, 40: count, 41: unpause}
    fleet.at_step({**of_host, 42: fleet.folder.pause, 60: count, 61: fleet.folder.unpause})
    assert fleet.drive().state is State.FINISHED
    assert sent[0] == sent[1] == (State.RUNNING, sent[0][1]) and sent[0][1] < fleet.bricks
    # A paused fleet run pauses all hosts.
    assert sent[2][0] is State.PAUSED and sent[2][1] < fleet.bricks
    assert FleetHostState.PAUSED in [it.state for it in fleet.told(HostChanged) if it.host == "one"]
    assert fleet.has_everything_once()


def test_a_cancelled_host_ends_and_the_others_continue(fleet_of: FleetOf) -> None:
    fleet = fleet_of(honest("one"), honest("two"))
    fleet.at_step({3: lambda: fleet.folder.command_host("one", "cancel")})
    state = fleet.drive()
    assert state.state is State.FINISHED
    assert fleet.states() == {"one": FleetHostState.CANCELLED, "two": FleetHostState.DONE}
    assert "one: cancelled" in state.message


def test_bricks_of_a_cancelled_host_are_measured_by_an_equal_one_that_waits(fleet_of: FleetOf) -> None:
    twin = another_system("twin")
    fleet = fleet_of(FakeHost("one", twin), FakeHost("two", twin))
    fleet.at_step({3: lambda: fleet.folder.command_host("one", "cancel")})
    assert fleet.drive().state is State.FINISHED
    assert fleet.has_everything_once()


def test_a_host_that_is_added_while_it_runs_takes_part_and_does_so_when_it_is_resumed(fleet_of: FleetOf) -> None:
    fleet = fleet_of(honest("one"))
    fleet.at_step({3: lambda: fleet.folder.add_hosts([HostEntry(name="two", price_per_hour=3.6)])})
    assert fleet.drive().state is State.FINISHED
    assert fleet.has_everything_once()
    priced = next(it for it in reversed(fleet.told(HostEstimate)) if it.host == "two")
    # A thousand inferences a second and dollars a millisecond make this figure.
    assert priced.dollars_per_million == pytest.approx(3.6 * 1e6 / 3600 / priced.per_second)
    assert fleet.folder.host_names() == ("one", "two")


def lying(texts: Callable[[FakeHost, Task, str], Iterable[str]]) -> Lie:
    """A host that tells the truth about its first bricks, and then lies."""

    def lie(host: FakeHost, task: Task, brick: str) -> Sequence[str]:
        truth = record_text(host.measured(brick))
        return [truth] if len(host.store) < 3 else list(texts(host, task, brick))

    return lie


def result(**fields: Any) -> Callable[[FakeHost, Task, str], Iterable[str]]:
    return lambda host, task, brick: [record_text(replace(host.result(brick), **fields))]


def document(change: Callable[[dict[str, Any]], object]) -> Callable[[FakeHost, Task, str], Iterable[str]]:
    """A result whose JSON was changed."""

    def texts(host: FakeHost, task: Task, brick: str) -> Iterable[str]:
        message = json.loads(record_text(host.result(brick)))
        change(message["record"])
        return [json.dumps(message)]

    return texts


LIES = {
    "a brick it was not given": (result(brick="f" * 64), "was not given"),
    "a billion samples": (
        document(lambda it: it["statistics"].update(count=1_000_000_000)),
        "count that does not follow from its samples",
    ),
    "very many samples": (document(lambda it: it.update(samples_ms=[1.0] * 200_000)), "200,000 samples"),
    "another host's fingerprint": (result(system="two-4c"), "of another host"),
    "another runtime": (result(runtime="onnxruntime-9 python-3.11 threads-1"), "of another runtime"),
    "another method": (result(protocol="guesswork"), "of another method"),
    "a NaN": (document(lambda it: it["statistics"].update(median_ms=float("nan"))), "NaN"),
    "an infinite sample": (document(lambda it: it["samples_ms"].__setitem__(0, 10**400)), ""),
    "a date in the future": (result(when="2999-01-01T00:00:00.000000+00:00"), "future"),
    "a text of megabytes": (result(kernel_variant="x" * 3_000_000), "text of 3,000,000 letters"),
    "a whole model": (document(lambda it: it.update(table="end_to_end")), "kind"),
    "no JSON": (lambda *_: ["{"], ""),
    "deep JSON": (lambda *_: ["[" * 100_000], ""),
    "a progress beyond its end": (
        lambda *_: [text_of(progress(4, 5)).replace('"done":4', '"done":6')],
        "6 of 5 bricks",
    ),
    "a flood": (
        lambda host, task, brick: [text_of(TaskProgress(note="hello"))] * 50_000,
        "MB about",
    ),
}


REPORTS = {
    "another version": ({"dlbricks": "0.0.1"}, FleetHostState.REFUSED, "has dlbricks 0.0.1"),
    "a method of another version": (
        {"methods": {"inside": "inside-0"}},
        FleetHostState.REFUSED,
        "by the method inside-0",
    ),
    "no framework": ({"runtimes": ()}, FleetHostState.REFUSED, "lacks MXNet 1.9.1"),
    "very many runtimes": ({"runtimes": ("mxnet-1 x",) * 101}, FleetHostState.DISTRUSTED, "101"),
    "a clock of long ago": ({"clock": "2001-01-01T00:00:00+00:00"}, FleetHostState.REFUSED, "has a clock"),
    "a clock without a zone": ({"clock": "2026-01-01T00:00:00"}, FleetHostState.DISTRUSTED, "time zone"),
    "a system without an id": ({"system": {}}, FleetHostState.DISTRUSTED, "report"),
    "a very long text": ({"python": "3" * 2000}, FleetHostState.DISTRUSTED, "python of 2,000 letters"),
}


FULL_DISK = "cannot write /data/parcels: No space left on device; free some space, or make it writable"


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory, small_workload: FleetWorkload) -> Fleet:
    """A fleet run with an honest host, and one for each lie, each report that is not as it should be, and a fault."""
    two = honest("two")

    def stolen(host: FakeHost, task: Task, brick: str) -> Iterable[str]:
        return [record_text(host.result(brick, uuid=next(iter(two.store.values())).uuid))]

    liars = [honest(name, lie=lying(texts)) for name, (texts, _) in LIES.items()]
    unfit = [honest(name, changes=changes) for name, (changes, _, _) in REPORTS.items()]
    others = honest("thief", lie=lying(stolen)), honest("full", fault=FULL_DISK)
    hosts = (two, *liars, *unfit, *others)
    assert len({host.name for host in hosts}) == len(hosts)
    fleet = Fleet(tmp_path_factory.mktemp("crowd"), small_workload, *hosts)
    assert fleet.drive().state is State.FINISHED
    return fleet


@pytest.mark.parametrize("name", LIES)
def test_a_host_that_lies_is_distrusted_in_a_line(crowd: Fleet, name: str) -> None:
    row = crowd.progress.hosts[name]
    assert row.state is FleetHostState.DISTRUSTED
    assert LIES[name][1] in row.message
    assert "\n" not in row.message
    assert len(row.message) < 500


def test_nothing_that_a_host_lies_about_is_stored_and_the_others_continue(crowd: Fleet) -> None:
    assert crowd.states()["two"] is FleetHostState.DONE
    assert crowd.states()["thief"] is FleetHostState.DISTRUSTED
    assert crowd.states()["full"] is FleetHostState.FAILED
    assert crowd.progress.hosts["full"].message == FULL_DISK
    stored = crowd.site.contents().measurements
    truths = {it.uuid for host in crowd.engine.hosts.values() for it in host.store.values()}
    assert {it.uuid for it in stored} <= truths
    assert sum(it.system == crowd.engine.hosts["two"].system.id for it in stored) == crowd.bricks


@pytest.mark.parametrize("name", REPORTS)
def test_a_host_that_lacks_something_or_reports_nonsense_gets_no_work(crowd: Fleet, name: str) -> None:
    _, state, reason = REPORTS[name]
    row = crowd.progress.hosts[name]
    assert row.state is state
    assert reason in row.message
    assert not crowd.engine.hosts[name].tasks


def test_a_host_whose_clock_is_ahead_may_send_a_result_again(tmp_path: Path, small_workload: FleetWorkload) -> None:
    jobs = small_workload.parts[0].jobs
    ahead = (datetime.now(timezone.utc) + timedelta(minutes=5)).isoformat(timespec="microseconds")
    sent = honest("one").result(next(iter(jobs)).brick, when=ahead)
    with ResultsDatabase(tmp_path) as store:
        store.add(honest("one").result("f" * 64))
        results = FleetResults(store, "fleet", ())
        assert results.keep("one", [sent], jobs) == results.keep("one", [sent], jobs)


def test_a_full_disk_at_home_ends_in_a_line_and_the_run_goes_on_later(
    fleet_of: FleetOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = fleet_of(honest("one"))
    add = ResultsDatabase.add

    def full(store: ResultsDatabase, *records: Record) -> int:
        if len(fleet.told(ResultStored)) >= 3:
            raise NoRoomError("cannot write results: No space left on device; free some space")
        return add(store, *records)

    with monkeypatch.context() as patch:
        patch.setattr(ResultsDatabase, "add", full)
        with pytest.raises(NoRoomError, match="free some space"):
            fleet.drive()
    state = fleet.folder.state()
    assert state.state is State.FAILED
    assert "free some space" in state.message
    assert fleet.engine.is_closed
    assert len(fleet.measured()) == len(fleet.told(ResultStored))
    assert fleet.drive().state is State.FINISHED
    assert fleet.has_everything_once()


def test_a_host_that_stays_away_is_given_up_after_a_while(fleet_of: FleetOf) -> None:
    fleet = fleet_of(honest("one"), honest("two", is_there=False))
    fleet.at_step({3: partial(fleet.engine.lose, "one")})
    state = fleet.drive()
    assert state.state is State.FAILED
    assert fleet.states() == {"one": FleetHostState.FAILED, "two": FleetHostState.FAILED}
    assert "did not come back within 10 minutes: its connection ended" in fleet.progress.hosts["one"].message
    assert "did not join" in fleet.progress.hosts["two"].message
    assert isinstance(fleet.events[-1], FleetEnded)


def test_a_host_that_goes_away_before_each_report_is_given_up(
    fleet_of: FleetOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = fleet_of(honest("one"))
    engine = fleet.engine
    monkeypatch.setattr(engine, "report", lambda name, _: engine.lose(name))

    def return_again(step: int) -> None:
        assert step < 10_000
        engine.waiting.append(HostUnreachable("one", "its worker ended"))
        engine.bring_back("one")

    engine.before_step = return_again
    assert fleet.drive().state is State.FAILED
    assert "did not join within 10 minutes" in fleet.progress.hosts["one"].message


@pytest.mark.usefixtures("short_tasks")
def test_a_fleet_run_whose_time_budget_was_spent_can_be_resumed(tmp_path: Path, workload: FleetWorkload) -> None:
    fleet = Fleet(tmp_path, workload, honest("one"), seconds=1.0)
    assert fleet.drive().state is State.FINISHED
    assert fleet.engine.hosts["one"].tasks[0].request.time_budget_seconds == 1.0
    assert fleet.progress.hosts["one"].message == "its time budget is spent"
    assert not fleet.folder.is_complete
    fleet.drive()
    assert fleet.folder.is_complete and fleet.has_everything_once()


@pytest.mark.usefixtures("short_tasks")
def test_a_pause_spends_no_time_budget_also_if_the_host_goes_away_in_it(
    tmp_path: Path, workload: FleetWorkload
) -> None:
    fleet = Fleet(tmp_path, workload, honest("one"), seconds=60.0)
    pause, unpause = (partial(fleet.folder.command_host, "one", what) for what in ("pause", "resume"))
    lose, return_again = (partial(it, "one") for it in (fleet.engine.lose, fleet.engine.bring_back))
    fleet.at_step({1: pause, 300: lose, 301: return_again, 400: unpause})
    assert fleet.drive().state is State.FINISHED
    assert fleet.has_everything_once()


@pytest.mark.usefixtures("short_tasks")
def test_a_host_is_probed_before_it_measures_the_rest(tmp_path: Path, workload: FleetWorkload) -> None:
    fleet = Fleet(tmp_path, workload, honest("one"), probe_seconds=14.0)
    assert fleet.drive().state is State.FINISHED
    first, second, *_ = fleet.engine.hosts["one"].tasks
    assert (first.request.rule, first.request.time_budget_seconds) == (PROBE_RULE, 14.0)
    assert (second.request.rule, second.request.time_budget_seconds) == (workload.parts[0].request.rule, None)
    states = [it.state for it in fleet.told(HostChanged)]
    assert states.index(FleetHostState.PROBING) < states.index(FleetHostState.MEASURING)
    assert fleet.has_everything_once()


def test_each_part_is_probed_before_the_rest_of_any_is_measured(
    tmp_path: Path, workload: FleetWorkload, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dlbricks_tui.fleet.driver.TASK_SECONDS", 2.0)
    monkeypatch.setattr("dlbricks_tui.fleet.driver.probe_bricks", lambda pool, *_: tuple(pool.free.values())[:5])
    fleet = Fleet(tmp_path, in_parts(workload), honest("one"), probe_seconds=4.0)
    assert fleet.drive().state is State.FINISHED
    rules = [it.request.rule for it in fleet.engine.hosts["one"].tasks]
    assert rules[:2] == [PROBE_RULE] * len(MODELS) and PROBE_RULE not in rules[2:]


def test_which_host_ends_before_everything_is_measured(
    tmp_path: Path, workload: FleetWorkload, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The hosts of this test take no time, and estimates do.
    monkeypatch.setattr("dlbricks_tui.fleet.answering._SHARE_OF_TIME", 1e9)
    monkeypatch.setattr("dlbricks_tui.fleet.driver.TASK_SECONDS", 5.0)
    # Hosts of one system share its bricks and have one rank.
    twin = another_system("twin")
    hosts = (honest("slow", latency_ms=50.0), FakeHost("fast", twin), FakeHost("other", twin))
    # One that is refused has no place in an order.
    refused = honest("refused", changes={"dlbricks": "0.0.1"})
    fleet = Fleet(tmp_path, workload, *hosts, refused, question=Question.WHICH_HOST)
    assert fleet.drive().state is State.FINISHED
    orders = {it.model: it for it in fleet.told(OrderFound)}
    assert set(orders) == set(MODELS)
    assert all(it.settled and it.order == (("fast", "other"), ("slow",)) for it in orders.values())
    assert all(host.tasks for host in hosts)
    assert "the order of the hosts is settled" in {it.message for it in fleet.progress.hosts.values()}
    assert sum(len(host.store) for host in hosts) < 2 * fleet.bricks


def test_which_host_is_answered_for_every_part_and_not_for_the_first_only(
    tmp_path: Path, workload: FleetWorkload, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dlbricks_tui.fleet.answering._SHARE_OF_TIME", 1e9)
    hosts = (honest("slow", latency_ms=50.0), honest("fast"))
    fleet = Fleet(tmp_path, in_parts(workload), *hosts, question=Question.WHICH_HOST)
    assert fleet.drive().state is State.FINISHED
    orders = {it.model: it for it in fleet.told(OrderFound)}
    assert {model: it.settled for model, it in orders.items()} == dict.fromkeys(MODELS, True)


def test_a_host_whose_connection_is_refused_is_left_out_with_the_reason(fleet_of: FleetOf) -> None:
    fleet = fleet_of(honest("one", is_there=False), honest("two"))
    fleet.engine.waiting.append(HostUnreachable("one", "nothing answers"))
    fleet.engine.waiting.append(HostUnreachable("one", "its key is not the known one", is_final=True))
    assert fleet.drive().state is State.FINISHED
    assert [(it.state, it.message) for it in fleet.told(HostChanged) if it.host == "one"] == [
        ("connecting", ""),
        ("connecting", "nothing answers"),
        ("refused", "its key is not the known one"),
    ]
    assert fleet.states()["two"] is FleetHostState.DONE


def test_a_signal_cancels_all_tasks_and_keeps_what_was_measured(fleet_of: FleetOf) -> None:
    fleet = fleet_of(honest("one"), honest("two"))
    fleet.at_step({3: partial(os.kill, os.getpid(), signal.SIGTERM)})
    state = fleet.drive()
    assert (state.state, state.message) == (State.CANCELLED, "it was cancelled")
    assert {*fleet.states().values()} == {FleetHostState.IDLE}
    assert all(host.task is None for host in fleet.engine.hosts.values())
    assert 0 < len(fleet.measured()) < 2 * fleet.bricks
    assert len(fleet.measured()) == len(fleet.told(ResultStored))
    assert fleet.drive().state is State.FINISHED
    assert fleet.has_everything_once()


def test_a_detached_fleet_run_outlives_its_terminal(tmp_path: Path, small_workload: FleetWorkload) -> None:
    fleet = Fleet(tmp_path, small_workload, honest("one"))
    fleet.at_step({2: partial(os.kill, os.getpid(), signal.SIGHUP)})
    assert fleet.drive(detached=True).state is State.FINISHED
    other = Fleet(tmp_path / "other", small_workload, honest("one"))
    other.at_step({2: partial(os.kill, os.getpid(), signal.SIGHUP)})
    assert other.drive().state is State.INTERRUPTED


def test_a_parcel_takes_seconds_and_a_slow_one_some_runs() -> None:
    for latency_ms, least, most in ((0.1, 0.1, 1), (10, 1, 4), (1_000, 5, 6), (60_000, 300, 301)):
        assert least <= seconds_inside(latency_ms) <= most
