"""The driver of a fleet run: it gives hosts their tasks until the question is answered.

Each host reports itself and is checked. Then it is probed, and measures task after task. What it returns is checked and
stored; then it is told as events.
"""

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from queue import SimpleQueue

from dlbricks_tui.errors import UserError
from dlbricks_tui.estimate.comparison import Prices, read_prices
from dlbricks_tui.estimate.inquiry import Predictors
from dlbricks_tui.fleet.answering import Answering
from dlbricks_tui.fleet.engine import Engine, HostAnswered, HostJoined, HostLeft, HostSaid, HostUnreachable, News
from dlbricks_tui.fleet.folder import FleetControl, FleetFolder, HostAdded, HostCommanded, read_fleet_request
from dlbricks_tui.fleet.messages import HostMessage, HostReport, ResultFound, TaskProgress
from dlbricks_tui.fleet.pools import (
    TASK_SECONDS,
    WORKING,
    BrickPool,
    CurrentTask,
    HostWork,
    SharedPools,
    holding,
    next_bricks,
    probe_bricks,
    task_of,
)
from dlbricks_tui.fleet.request import (
    FleetEnded,
    FleetError,
    FleetHostState,
    FleetRequest,
    FleetStarted,
    HostBrickFailed,
    HostEntry,
    ResultStored,
    TaskGiven,
)
from dlbricks_tui.fleet.results import (
    FleetResults,
    ImpossibleError,
    MessageMeter,
    check_report,
    check_result,
    read_messages,
    reason_against,
)
from dlbricks_tui.fleet.scheduler import PLAIN, Certificates, check_address, set_up
from dlbricks_tui.fleet.workload import FleetWorkload, LanguagePart, read_workload
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.queue import this_process
from dlbricks_tui.jobs.control import JobStopped, StopSignals, only_process
from dlbricks_tui.jobs.events import Event, EventWriter
from dlbricks_tui.jobs.folder import JobState, State
from dlbricks_tui.measure.jobs import Job, JobKey
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.store.database import ResultsDatabase

# A host that is away for longer is given up.
PATIENCE_SECONDS, _PATIENCE = 600.0, "10 minutes"
# A host that is to end its task and does not tell its end is given up after so long.
_SECONDS_TO_END = 30.0
_SECONDS_BETWEEN_PROGRESS = 1.0
# A host gets no more tasks after so many that failed one after another without any result.
_MOST_FAILURES = 2
# A host that lost a call and is there is asked again.
_SECONDS_TO_ASK_AGAIN = 5.0
# The hosts of a finished fleet run have joined its scheduler, or do so at once.
_SECONDS_TO_JOIN = 5.0
# The user's commands are looked for so often.
_WAIT_SECONDS = 0.25
# Hosts have so long to end their tasks when the fleet run is stopped.
_SECONDS_TO_STOP = 10.0


@dataclass(eq=False)
class Driver:
    """Drives the hosts of a fleet run. `take` and `tick` never wait."""

    request: FleetRequest
    workload: FleetWorkload
    calls: Engine
    store: ResultsDatabase
    predictors: Predictors
    prices: Prices
    control: FleetControl
    tell: Callable[[Event], None]
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.hosts: dict[str, HostWork] = {}
        # All parts together take the time of the probe.
        self._probe_seconds = self.request.probe_seconds / len(self.workload.parts)
        self._results = FleetResults(self.store, self.control.state.run, self.workload.digests)
        self.pools = SharedPools(self.workload, self.store, self.control.state)
        question = self.request.question
        self._answering = Answering(
            question, self.store, self.predictors, self.prices, self.hosts, self.pools, self.tell
        )
        # True while no host may begin a task.
        self._is_paused = False
        self._is_stopping = False
        self._began = self.clock()
        self._told_progress = 0.0

    def begin(self, entries: Iterable[HostEntry], tasks_before: Mapping[str, str]) -> None:
        """Take hosts in, which join when they are reached; `tasks_before` are those of an earlier driver."""
        for entry in entries:
            self._host(entry.name, entry)
        for name, task in tasks_before.items():
            self._host(name).task_before = task

    def take(self, news: Iterable[News]) -> None:
        """Take what has happened at the hosts."""
        said: defaultdict[str, list[HostSaid]] = defaultdict(list)
        for event in news:
            if isinstance(event, HostSaid):
                # Results that came together are stored together.
                said[event.host].append(event)
                continue
            if event.host in said:
                self._said(self._host(event.host), said.pop(event.host))
            self._take(event)
        for name, messages in said.items():
            self._said(self._host(name), messages)

    def tick(self) -> None:
        """Do what is due without a message: the user's commands, hosts that stay away, estimates, and progress."""
        for command in self.control.commands.new():
            self._obey(command)
        if self.control.is_paused is not self._is_paused:
            self._is_paused = self.control.is_paused
            self.control.change(State.PAUSED if self._is_paused else State.RUNNING)
            for host in tuple(self.hosts.values()):
                self._pause_or_resume(host)
        for host in self.hosts.values():
            self._look_after(host)
        self._answer()
        if self.clock() >= self._told_progress + _SECONDS_BETWEEN_PROGRESS:
            self.tell_progress()

    def _answer(self) -> None:
        """Tell new estimates and orders, and end the work of hosts that cannot change the answer."""
        # While nothing is measured, estimates may take all the time.
        orders = self._answering.tell(at_once=not self.waits_for_tasks)
        if self._answering.is_answered and self._answering.is_stale:
            # Results that have come meanwhile may open the order again.
            orders |= self._answering.tell(at_once=True)
        waiting = [host for host in self.hosts.values() if not host.is_over]
        if self._answering.is_answered:
            for host in waiting:
                self._finish(host, FleetHostState.DONE, "the order of the hosts is settled")
            return
        if orders:
            # Other bricks may be wanted now.
            for host in waiting:
                if host.state is FleetHostState.IDLE:
                    self._next(host)
        # A host that is to end its task may hand bricks back.
        if not self.waits_for_tasks and all(host.state is FleetHostState.IDLE for host in waiting):
            for host in waiting:
                self._change(host, FleetHostState.DONE, "what is left cannot settle the order of the hosts")

    @property
    def is_over(self) -> bool:
        """True if no host has anything to do any more."""
        if not self.hosts:
            return self.clock() - self._began > PATIENCE_SECONDS
        return all(host.is_over and host.current is None for host in self.hosts.values())

    @property
    def waits_for_tasks(self) -> bool:
        """True if any host still has a task."""
        return any(host.current is not None for host in self.hosts.values())

    def stop(self) -> None:
        """End all tasks, because the fleet run ends."""
        self._is_stopping = True
        for host in self.hosts.values():
            if host.current is not None:
                self.calls.control(host.name, host.current.task.id, "cancel")

    def tell_progress(self) -> None:
        """Tell how far each host is, if that has changed, and store how far all are together."""
        self._told_progress = self.clock()
        for host in self.hosts.values():
            self._tell_of(host)
        self.control.count(self.pools.bricks)

    def tell_answers(self) -> None:
        """Tell the final estimates of all models on all hosts, and the orders of the hosts."""
        for pool in self.pools.all:
            self._answering.note(pool)
        self._answering.tell(at_once=True)

    def _host(self, name: str, entry: HostEntry | None = None) -> HostWork:
        if name not in self.hosts:
            self.hosts[name] = HostWork(entry or HostEntry(name=name), MessageMeter(self.clock), self.clock())
            self._tell_of(self.hosts[name])
        return self.hosts[name]

    def _take(self, event: News) -> None:
        host = self._host(event.host)
        match event:
            case HostJoined():
                self._joined(host)
            case HostAnswered(task="", text=text, error=error):
                self._reported(host, text, error)
            case HostLeft(is_gone=is_gone):
                self._left(host, is_gone=is_gone)
            case HostAnswered(task=task, text=text, error=error):
                self._over(host, task, text, error)
            case HostUnreachable(reason=reason, is_final=is_final) if not host.is_there and not host.is_over:
                state = FleetHostState.LOST if host.pools else FleetHostState.CONNECTING
                self._change(host, FleetHostState.REFUSED if is_final else state, reason)

    def _joined(self, host: HostWork) -> None:
        host.is_there = True
        if not host.is_over:
            self.calls.report(host.name, host.task_before)
            self._resume_task_before(host)

    def _resume_task_before(self, host: HostWork) -> None:
        """Let the run of an earlier task go on, which may be paused. The next task waits for it."""
        if host.task_before and not (self._is_paused or host.is_paused):
            self.calls.control(host.name, host.task_before, "resume")
            host.task_before = ""

    def _reported(self, host: HostWork, text: str, error: str) -> None:
        """Take the report of a host: check it, and give it its first task."""
        if host.is_over or host.current is not None:
            return
        if error:
            self._change(host, FleetHostState.FAILED, error)
            return
        with self._distrusting(host):
            (report,) = read_messages(host.meter, [text], HostReport)
            system = check_report(report)
            if against := reason_against(report, [part.request for part in self.workload.parts]):
                self._change(host, FleetHostState.REFUSED, against)
                return
            for pool in host.pools if report.lived else ():
                pool.forgive(host.name)
            self.pools.join(host, report, system)
            for pool in host.pools:
                # Another host of the same system may have measured bricks before.
                self._answering.note(pool)
            ways = [(pool.runtime, pool.conditions.protocol) for pool in host.pools]
            self._results.describe(host.name, report, system, ways)
            self._change(host, FleetHostState.IDLE)
            self._next(host)

    @contextmanager
    def _distrusting(self, host: HostWork) -> Iterator[None]:
        """End the work of a host that returned something impossible."""
        try:
            yield
        except ImpossibleError as lie:
            self._finish(host, FleetHostState.DISTRUSTED, f"it returned {lie}")

    def _said(self, host: HostWork, said: Sequence[HostSaid]) -> None:
        if (current := host.current) is None:
            return
        # What it tells about earlier tasks is not new.
        texts = [it.text for it in said if it.task == current.task.id]
        with self._distrusting(host):
            kinds: tuple[type[HostMessage], ...] = (TaskProgress, ResultFound)
            self._keep(host, current, read_messages(host.meter, texts, *kinds))
        if host.current is None or current.progress is None or host.is_over:
            return
        is_paused = self._is_paused or host.is_paused
        if is_paused and not current.progress.paused:
            # The pause came before the run of the task was there.
            self.calls.control(host.name, current.task.id, "pause")
        if current.progress.waits_for:
            self._change(host, FleetHostState.WAITING, f"for {current.progress.waits_for}")
        elif current.progress.paused or is_paused:
            self._change(host, FleetHostState.PAUSED)
        else:
            self._change(host, host.working_state, current.progress.note)

    def _over(self, host: HostWork, task: str, text: str, error: str) -> None:
        """Take the end of a task, and the bricks that have no result."""
        if host.current is None or host.current.task.id != task:
            return
        ended = None
        if not error:
            with self._distrusting(host):
                (ended,) = read_messages(host.meter, [text], TaskProgress)
        current = host.end_task()
        if current is None:
            return
        is_finished = ended is not None and ended.state == "finished"
        is_complete = is_finished and not current.is_probe and self._budget_left(host) != 0.0
        self._tell_failed(current.pool, host, current.pool.hand_back(host.name, is_complete=is_complete))
        if is_finished or current.has_results:
            host.failures = 0
            # Its next task is twice as large, up to the time of a task.
            host.most_bricks = None if host.most_bricks is None else 2 * host.most_bricks
        else:
            host.failures += 1
        if host.failures >= _MOST_FAILURES and not host.is_over:
            reason = error or ("its task told no end" if ended is None else ended.reason or f"a task was {ended.state}")
            self._change(host, FleetHostState.FAILED, reason)
        self._next(host)
        self._wake(current.pool)

    def _left(self, host: HostWork, *, is_gone: bool) -> None:
        """Take the loss of a host: its bricks are free again, and it goes on when it returns."""
        host.is_there = host.is_there and not is_gone
        host.ask_after = self.clock() + _SECONDS_TO_ASK_AGAIN
        if host.current is not None:
            host.task_before = host.current.task.id
        if host.state not in WORKING:
            self._forget_task(host)
        ended = host.end_task()
        if not host.is_over:
            # One that never gets as far as its report is given up, too.
            state = FleetHostState.LOST if host.pools or not is_gone else FleetHostState.CONNECTING
            self._change(host, state, "its connection ended")
        if ended is not None:
            # One of the bricks may be the cause: the next task has half as many.
            host.most_bricks = max(1, len(ended.task.bricks) // 2)
            self._tell_failed(ended.pool, host, ended.pool.lose(host.name))
            self._wake(ended.pool)

    def _finish(self, host: HostWork, state: FleetHostState, message: str) -> None:
        """End the work of a host for this fleet run."""
        if host.current is not None:
            self.calls.control(host.name, host.current.task.id, "cancel")
        self._change(host, state, message)
        if state is FleetHostState.DISTRUSTED:
            # Nothing that it sends counts any more, not even the end of its task.
            self._forget_task(host)

    def _forget_task(self, host: HostWork) -> None:
        current = host.end_task()
        if current is not None:
            current.pool.hand_back(host.name, is_complete=False)
            self._wake(current.pool)

    def _obey(self, command: Event) -> None:
        match command:
            case HostAdded(entry=entry):
                self._host(entry.name, entry)
                self.calls.add(entry)
            case HostCommanded(host=name, what=what) if name in self.hosts:
                host = self.hosts[name]
                if what != "cancel":
                    host.is_paused = what == "pause"
                    self._pause_or_resume(host)
                elif not host.is_over:
                    self._finish(host, FleetHostState.CANCELLED, "")

    def _pause_or_resume(self, host: HostWork) -> None:
        if host.is_over:
            return
        is_paused = self._is_paused or host.is_paused
        self._resume_task_before(host)
        if host.current is not None:
            self.calls.control(host.name, host.current.task.id, "pause" if is_paused else "resume")
        if host.is_there and host.pools:
            self._change(host, FleetHostState.PAUSED if is_paused else host.working_state)
        self._next(host)

    def _look_after(self, host: HostWork) -> None:
        """Note what has become of a host that sends nothing: it is done, or away for too long."""
        now = self.clock()
        away = now - host.since
        if host.is_over:
            if host.current is not None and away > _SECONDS_TO_END:
                self._forget_task(host)
        elif host.current is None and host.pools and not host.has_work:
            self._change(host, FleetHostState.DONE)
        elif host.state is FleetHostState.LOST and host.is_there and now >= host.ask_after:
            host.ask_after = now + _SECONDS_TO_ASK_AGAIN
            self.calls.report(host.name, host.task_before)
        elif host.state in (FleetHostState.LOST, FleetHostState.CONNECTING) and away > PATIENCE_SECONDS:
            what = "did not come back" if host.state is FleetHostState.LOST else "did not join"
            because = f": {host.message}" if host.message else ""
            self._change(host, FleetHostState.FAILED, f"it {what} within {_PATIENCE}{because}")

    def _change(self, host: HostWork, state: FleetHostState, message: str = "") -> None:
        """Change and tell the state of a host."""
        if (state, message) != (host.state, host.message):
            if state is not host.state:
                now = self.clock()
                host.worked_before, host.since = host.seconds_worked(now), now
            host.state, host.message = state, message
            self._tell_of(host)

    def _tell_of(self, host: HostWork) -> None:
        """Tell the state and the progress of a host if they have changed."""
        now = host.now(self.pools.seconds_left(host))
        if now != host.told:
            host.told = now
            self.tell(now)

    def _next(self, host: HostWork) -> None:
        """Give a host its next task, if it may have one."""
        if host.current is not None or host.is_over or not host.is_there or not host.pools:
            return
        if self._is_stopping:
            self._change(host, FleetHostState.IDLE)
            return
        if not host.has_work:
            self._change(host, FleetHostState.DONE)
            return
        if self._is_paused or host.is_paused:
            self._change(host, FleetHostState.PAUSED)
            return
        seconds_left = self._budget_left(host)
        if seconds_left == 0.0:
            self._change(host, FleetHostState.DONE, "its time budget is spent")
            return
        # All probes come first.
        for pool in sorted(host.pools, key=lambda it: it.is_probed):
            if not pool.free:
                continue
            is_probe = False
            if self._probe_seconds and not pool.is_probed:
                pool.is_probed = True
                # What fits in a task needs no probe before it.
                is_probe = pool.free_seconds > TASK_SECONDS or isinstance(pool.part, LanguagePart)
            if is_probe:
                jobs = probe_bricks(pool, self.store, self._probe_seconds, host.most_bricks)
            else:
                jobs = next_bricks(pool, self._answering.wanted(pool), TASK_SECONDS, host.most_bricks)
            if jobs:
                self._give(host, pool, jobs, seconds_left, is_probe=is_probe)
                return
        free = any(pool.free for pool in host.pools)
        why = "for results of other hosts" if free else "for other hosts of its system, which measure what is left"
        self._change(host, FleetHostState.IDLE, why)

    def _wake(self, pool: BrickPool) -> None:
        """Give hosts work that wait for bricks of a pool."""
        for member in tuple(self.pools.members[pool]):
            if member.state is FleetHostState.IDLE:
                self._next(member)

    def _budget_left(self, host: HostWork) -> float | None:
        """Return the seconds left of the time budget of a host; None without one."""
        budget = self.request.run.time_budget_seconds
        return None if budget is None else max(0.0, budget - host.seconds_worked(self.clock()))

    def _give(
        self, host: HostWork, pool: BrickPool, jobs: Sequence[Job], seconds_left: float | None, *, is_probe: bool
    ) -> None:
        limits = [it for it in (seconds_left, self._probe_seconds if is_probe else None) if it is not None]
        task = task_of(pool, jobs, min(limits, default=None), is_probe=is_probe)
        pool.take(host.name, [job.key for job in jobs])
        levels = {job.key.brick: job.graph.level for job in jobs}
        host.meter.bricks += len(levels)
        host.current = CurrentTask(task, pool, levels, is_probe)
        # A driver that resumes the fleet run ends what its predecessor has left behind.
        self.tell(TaskGiven(host=host.name, task=task.id))
        self.calls.carry_out(host.name, task, holding(pool, jobs))
        self._change(host, host.working_state)

    def _tell_failed(self, pool: BrickPool, host: HostWork, failed: Mapping[JobKey, Job]) -> None:
        """Tell which bricks of a pool cannot be measured."""
        for key, job in failed.items():
            reason = pool.failed[key]
            self.tell(HostBrickFailed(host=host.name, brick=key.brick, label=job.label, reason=reason))
        if failed:
            self._answering.note(pool, failed)

    def _keep(self, host: HostWork, current: CurrentTask, messages: Sequence[HostMessage]) -> None:
        """Check, store and tell what a host has returned for its task; after an ImpossibleError nothing is stored."""
        results = [it.record for it in messages if isinstance(it, ResultFound)]
        records = [check_result(it, current.pool.conditions, current.levels) for it in results]
        for message in messages:
            if isinstance(message, TaskProgress):
                current.progress = message
        if not records:
            return
        pool = current.pool
        measured, failed = self._results.keep(host.name, records, pool.part.jobs)
        current.has_results |= bool(measured or failed)
        new = pool.learn(measured)
        for key, job in new.items():
            found = measured[key]
            self.tell(
                ResultStored(
                    host=host.name,
                    brick=key.brick,
                    label=job.label,
                    trimmed_mean_ms=found.trimmed_mean_ms,
                    low_ms=found.low_ms,
                    high_ms=found.high_ms,
                )
            )
        self._tell_failed(pool, host, pool.give_up(failed))
        self._answering.note(pool, measured)


def reach(folder: FleetFolder, request: FleetRequest, hosts: tuple[HostEntry, ...], data: DataFolder) -> Engine:
    """Return the means to call the hosts of a fleet run, through a scheduler that exists already, or over SSH."""
    certificates = Certificates(data.certificates)
    set_up(folder.logs / "dask.log")
    if request.scheduler:
        is_plain = check_address(request.scheduler, request.allow_plain).scheme == PLAIN
        return Engine(request.scheduler, None if is_plain else certificates.for_driver())
    certificates.create()
    # Loaded here: it loads dask, which is set up now.
    from dlbricks_tui.fleet.cluster import FleetCluster

    events: SimpleQueue[News] = SimpleQueue()
    cluster = FleetCluster(hosts, certificates, folder.logs, events.put)
    return Engine(cluster.scheduler_address, certificates.for_driver(), cluster, events)


@dataclass(frozen=True, slots=True)
class FleetPlace:
    """Means of a fleet run: the data folder, the functions that reach its hosts and read its models, and its clock."""

    data: DataFolder
    reach_hosts: Callable[[FleetFolder, FleetRequest, tuple[HostEntry, ...], DataFolder], Engine] = reach
    read_models: Callable[[RunRequest, DataFolder, Path, Callable[[Event], None]], FleetWorkload] = read_workload
    clock: Callable[[], float] = time.monotonic


def execute_fleet(
    folder: FleetFolder,
    place: FleetPlace,
    listener: Callable[[Event], None] | None = None,
    *,
    detached: bool = False,
) -> JobState:
    """Drive a fleet run to its end, and return its last state. One that is detached outlives its terminal."""
    request = read_fleet_request(folder.request_file)
    with (
        only_process(folder),
        StopSignals(ignore_hangup=detached) as signals,
        closing(EventWriter(folder.events_file, listener)) as events,
    ):
        if request.scheduler and folder.state().is_finished:
            # If its scheduler or all hosts are gone, its end and its events stay as they are.
            with closing(place.reach_hosts(folder, request, (), place.data)) as calls:
                calls.start()
                _wait_for_host(calls, request, place.clock)
        control = FleetControl(folder, place.clock)
        hosts = folder.entries()
        tasks_before = folder.given_tasks()

        def end(state: State, message: str) -> JobState:
            # Told before the state changes: viewers stop reading events at a final state.
            events.tell(FleetEnded(state=state.value, message=message, seconds=control.seconds))
            return control.change(state, message)

        events.tell(_started(folder, request, hosts))
        try:
            with closing(place.reach_hosts(folder, request, hosts, place.data)) as calls:
                # Hosts are reached while the models are read. A wrong address is told before that.
                calls.start()
                with signals.waiting():
                    workload = _workload(folder, request, place, events.tell)
                with ResultsDatabase(place.data.store) as store:
                    prices, predictors = read_prices(place.data.path), Predictors(store, place.data.cache)
                    driver = Driver(
                        request, workload, calls, store, predictors, prices, control, events.tell, place.clock
                    )
                    driver.begin(hosts, tasks_before)
                    control.change(State.RUNNING)
                    ended = _drive(driver, signals)
                    control.count(driver.pools.bricks, at_once=True)
            return end(*ended)
        except JobStopped as early:
            return end(early.state, early.why)
        except UserError as error:
            end(State.FAILED, str(error))
            raise
        except BaseException:
            end(State.FAILED, "a fault of dlbricks; what was measured before it is kept")
            raise


def _started(folder: FleetFolder, request: FleetRequest, hosts: Iterable[HostEntry]) -> FleetStarted:
    return FleetStarted(
        fleet=folder.run,
        pid=this_process().pid,
        models=request.model_names,
        runtimes=request.runtimes,
        level=request.run.level.value,
        question=request.question.value,
        hosts=tuple(host.name for host in hosts),
    )


def _workload(
    folder: FleetFolder, request: FleetRequest, place: FleetPlace, tell: Callable[[Event], None]
) -> FleetWorkload:
    """Return what the hosts are asked to measure: bricks of models, and language models."""
    workload = FleetWorkload(())
    if request.run.model_names:
        workload = place.read_models(request.run, place.data, folder.worker_log, tell)
    language = [LanguagePart.of(asked, request.run) for asked in request.language]
    return replace(workload, parts=(*workload.parts, *language))


def _wait_for_host(calls: Engine, request: FleetRequest, clock: Callable[[], float]) -> None:
    """Wait a little until any host has joined the scheduler; raise FleetError if none does."""
    give_up = clock() + _SECONDS_TO_JOIN
    while not any(isinstance(it, HostJoined) for it in calls.wait(_WAIT_SECONDS)):
        if clock() > give_up:
            raise FleetError(
                f"no host has joined {request.scheduler}: start `dlbricks fleet worker {request.scheduler} "
                "--name NAME` on one, and resume again; the fleet run stays finished"
            )


def _drive(driver: Driver, signals: StopSignals) -> tuple[State, str]:
    """Drive the hosts until they have nothing to do or that is stopped; tell the answers, and return the end."""
    stopped = None
    try:
        while not driver.is_over:
            signals.check()
            driver.take(driver.calls.wait(_WAIT_SECONDS))
            driver.tick()
    except JobStopped as early:
        stopped = early
        # Hosts still send what they have measured.
        driver.stop()
        give_up = driver.clock() + _SECONDS_TO_STOP
        while driver.waits_for_tasks and driver.clock() < give_up:
            driver.take(driver.calls.wait(_WAIT_SECONDS))
    driver.tell_answers()
    driver.tell_progress()
    return outcome(tuple(driver.hosts.values())) if stopped is None else (stopped.state, stopped.why)


def outcome(hosts: Sequence[HostWork]) -> tuple[State, str]:
    """Return the state of a fleet run whose hosts have nothing to do any more, and the reason in a line."""
    if not hosts:
        return State.FAILED, f"no host joined within {_PATIENCE}"
    lacking = [host for host in hosts if host.state is not FleetHostState.DONE]
    if all(host.state is FleetHostState.CANCELLED for host in hosts):
        return State.CANCELLED, "all of its hosts were cancelled"
    named = "; ".join(f"{it.name}: {it.message or it.state.value}" for it in lacking[:3])
    more = f" and {len(lacking) - 3} more" if len(lacking) > 3 else ""
    if len(lacking) == len(hosts):
        return State.FAILED, f"no host could measure everything: {named}{more}"
    if lacking:
        return State.FINISHED, f"{len(lacking)} of {len(hosts)} hosts could not measure everything: {named}{more}"
    return State.FINISHED, ""


def main(folder: str, data: str) -> None:
    """Drive a detached fleet run; the entry point of its process."""
    try:
        execute_fleet(FleetFolder(Path(folder)), FleetPlace(DataFolder(Path(data))), detached=True)
    except UserError as error:
        sys.exit(str(error))
