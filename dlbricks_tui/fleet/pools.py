"""The hosts of a fleet run: their states, their tasks, and the pools of bricks that hosts of one system share."""

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dlbricks_tui.estimate.choice import Limit
from dlbricks_tui.estimate.predictors import OtherSystems
from dlbricks_tui.fleet.messages import HostReport, Parcel, Task, TaskProgress
from dlbricks_tui.fleet.request import FleetHostState, HostChanged, HostEntry
from dlbricks_tui.fleet.results import MessageMeter, is_of, runtime_there
from dlbricks_tui.fleet.workload import FleetPart, FleetWorkload, LanguagePart
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.folder import JobState, Tally, new_id
from dlbricks_tui.measure.jobs import Job, JobKey
from dlbricks_tui.measure.known import Conditions, Known, known_in
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.stopping import StoppingRule
from dlbricks_tui.measure.time_left import expected_seconds
from dlbricks_tui.models.graph import Level
from dlbricks_tui.recorded_host import Processors
from dlbricks_tui.runs.planning import PROBE_RULE, informative
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Statistics, System

# A host that goes away costs no more than its task, and each task has a worker to start.
TASK_SECONDS = 40.0
# A brick of which a host returns nothing is asked for so many times.
_MOST_TIMES_ASKED = 2
# A host that goes away so many times while it measures a brick alone does so because of the brick.
_MOST_LOSSES = 2
# A host in one of these states gets no more work in this fleet run.
FINAL = frozenset(FleetHostState(name) for name in ("done", "cancelled", "refused", "distrusted", "failed"))
# The states that spend a time budget: as in a run, pauses and waiting for other work do not.
WORKING = frozenset({FleetHostState.PROBING, FleetHostState.MEASURING})


class BrickPool:
    """The bricks that one system has to measure by one runtime. Hosts of the same system share them."""

    def __init__(self, part: FleetPart, runtime: Runtime, conditions: Conditions, known: Known, fleet: str) -> None:
        self.part = part
        # As the hosts have it.
        self.runtime = runtime
        self.conditions = conditions
        found = part.plan(known)
        # The bricks that still need samples, and those of them that are in no task.
        self.left: dict[JobKey, Job] = {job.key: part.jobs[job.key] for job in found.jobs if job.key in part.jobs}
        self.free = dict(self.left)
        self._in_flight: dict[str, frozenset[JobKey]] = {}
        # The bricks that cannot be measured on this system, and why.
        self.failed = {job.key: reason for job, reason in found.failed.items() if job.key in part.jobs}
        # The bricks with a result in the local store.
        self.measured = {key: it for key, it in known.measured.items() if key in part.jobs}
        self._asked = Counter[JobKey]()
        self._losses = Counter[JobKey]()
        # What may have been the cause of the last loss of each host.
        self._blamed: dict[str, list[JobKey]] = {}
        # The bricks that had enough samples before the fleet run, which may have been resumed.
        own = [key for key in self.measured if key not in self.left and is_of(fleet, known.runs.get(key, ""))]
        self.reused = self.done - len(own)
        # True once a host of the system has had its probe.
        self.is_probed = False
        self._seconds = expected_seconds(part.request.method, part.request.rule, self.left.values())
        self._left_at_first = len(self.left)

    @property
    def total(self) -> int:
        """The number of all its bricks."""
        return len(self.part.jobs)

    @property
    def done(self) -> int:
        """The number of its bricks with enough samples."""
        return self.total - len(self.left) - len(self.failed)

    @property
    def free_seconds(self) -> float:
        """About the time that the free bricks take on one host."""
        return self._seconds * len(self.free) / max(1, self._left_at_first)

    def take(self, host: str, keys: Iterable[JobKey]) -> None:
        """Note that a host measures bricks."""
        self._in_flight[host] = frozenset(keys)
        # Its loss before was the end of more than its connection.
        self._blamed.pop(host, None)
        for key in self._in_flight[host]:
            self.free.pop(key, None)

    def learn(self, measured: Mapping[JobKey, Statistics]) -> dict[JobKey, Job]:
        """Note results that are stored, and return the bricks that had none before."""
        known = {key: statistics for key, statistics in measured.items() if key in self.part.jobs}
        new = {key: self.part.jobs[key] for key in known if key not in self.measured}
        for key, statistics in known.items():
            self.measured[key] = statistics
            self.failed.pop(key, None)
            request, job = self.part.request, self.part.jobs[key]
            if request.method is Method.INSIDE or request.rule.stop(statistics, job.share) is not None:
                self._drop(key)
        return new

    def give_up(self, reasons: Mapping[JobKey, str]) -> dict[JobKey, Job]:
        """Note bricks that this system cannot measure, and return those that are new."""
        new = {key: self.left[key] for key in reasons if key in self.left and key not in self.measured}
        for key in new:
            self._drop(key)
            self.failed[key] = reasons[key]
        return new

    def hand_back(self, host: str, *, is_complete: bool) -> dict[JobKey, Job]:
        """Note that a task is over, and return the bricks that the host could not measure, for no known reason.

        A task that is complete had all the time that its bricks needed.
        """
        waiting = self._released(host)
        if not is_complete:
            return {}
        self._asked.update(waiting)
        spent = [key for key in waiting if self._asked[key] >= _MOST_TIMES_ASKED]
        for key in spent:
            # Some samples are better than none.
            if key in self.measured:
                self._drop(key)
        return self.give_up(dict.fromkeys(spent, "the host returned no result of it"))

    def lose(self, host: str) -> dict[JobKey, Job]:
        """Note that a host has gone away with its task, and return the brick that is the cause of that, if any."""
        waiting = self._released(host)
        self._blamed[host] = blamed = waiting if len(waiting) == 1 else []
        self._losses.update(blamed)
        spent = [key for key in blamed if self._losses[key] >= _MOST_LOSSES]
        return self.give_up(dict.fromkeys(spent, "its host went away each time while it was measured"))

    def forgive(self, host: str) -> None:
        """Note that a host has only lost its connection: no brick was the cause."""
        self._losses.subtract(self._blamed.pop(host, ()))

    def _released(self, host: str) -> list[JobKey]:
        """Return the bricks in the task of a host that still need samples; they are free again."""
        waiting = [key for key in self._in_flight.pop(host, ()) if key in self.left]
        self.free.update((key, self.left[key]) for key in waiting)
        return waiting

    def _drop(self, key: JobKey) -> None:
        self.left.pop(key, None)
        self.free.pop(key, None)


def next_bricks(
    pool: BrickPool,
    wanted: Iterable[Job],
    most_seconds: float = TASK_SECONDS,
    most_bricks: int | None = None,
    rule: StoppingRule | None = None,
) -> tuple[Job, ...]:
    """Return the first of the wanted bricks that a host can measure in so many seconds, at least one.

    Inside of networks a brick costs the time of its network, so the other bricks of that come along.
    """
    if isinstance(pool.part, LanguagePart):
        # One job measures all that is left.
        return pool.part.chosen(pool.free, is_probe=False) if tuple(wanted) else ()
    request = pool.part.request
    rule = rule or request.rule

    def seconds(jobs: Sequence[Job]) -> float:
        return expected_seconds(request.method, rule, jobs)

    found: list[Job] = []
    for group in _groups(pool, wanted):
        if seconds([*found, *group]) > most_seconds:
            # One network more than fits in the time would be too much; the first one is begun in any case.
            if request.method is Method.INSIDE:
                return tuple(found or group)[:most_bricks]
            sizes = range(1, len(group) + 1)
            fitting = bisect_right(sizes, most_seconds, key=lambda size: seconds([*found, *group[:size]]))
            return tuple(found + group[: max(fitting, 0 if found else 1)])[:most_bricks]
        found += group
        if most_bricks is not None and len(found) >= most_bricks:
            break
    return tuple(found[:most_bricks])


def probe_bricks(
    pool: BrickPool, store: ResultsDatabase, seconds: float, most_bricks: int | None = None
) -> tuple[Job, ...]:
    """Return the bricks that tell most about a system in a few seconds.

    Where no other system has results of the bricks, these are the ones that are expected to take most of the time.
    """
    part, conditions = pool.part, pool.conditions
    if isinstance(part, LanguagePart):
        return part.chosen(pool.free, is_probe=True)
    levels = {model.decomposition.graph.level for model in part.models}
    level = levels.pop() if len(levels) == 1 else part.request.level
    others = OtherSystems(store, conditions.at(level))
    free = tuple(pool.free.values())
    try:
        wanted = informative(free, part.models, others, part.request.method, Limit(len(free), seconds))
    except JobError:
        # No other system knows any of the bricks.
        wanted = []
    if not wanted:
        by_time = sorted(free, key=lambda job: -job.expected_ms * sum(use.times for use in job.uses))
        return next_bricks(pool, by_time, seconds, most_bricks, PROBE_RULE)
    return tuple(wanted[:most_bricks])


def holding(pool: BrickPool, jobs: Iterable[Job]) -> tuple[Parcel, ...]:
    """Return the parcels for some bricks, as few as a greedy choice finds."""
    found: dict[str, Parcel] = {}
    if isinstance(pool.part, LanguagePart):
        return ()
    # Bricks of a single model leave no choice, so they come first.
    for job in sorted(jobs, key=lambda it: len(it.uses)):
        holders = pool.part.holders(job)
        if not any(parcel.sha256 in found for parcel in holders):
            found[holders[0].sha256] = holders[0]
    return tuple(found.values())


def task_of(pool: BrickPool, jobs: Sequence[Job], seconds: float | None, *, is_probe: bool) -> Task:
    """Return the task that measures some bricks in so many seconds."""
    request = pool.part.request
    keys = tuple(dict.fromkeys(job.key.brick for job in jobs))
    rule = PROBE_RULE if is_probe else request.rule
    run = replace(request, rule=rule, time_budget_seconds=seconds, only=keys)
    order = pool.part.order(is_probe=is_probe) if isinstance(pool.part, LanguagePart) else None
    # Also when hosts share a data folder, as the run of a task has its id.
    return Task(id=new_id(4), request=run, bricks=keys, language=order)


def _groups(pool: BrickPool, wanted: Iterable[Job]) -> Iterator[list[Job]]:
    """Yield the free bricks among the wanted ones: all together, or with the others of their network."""
    free = pool.free
    if pool.part.request.method is not Method.INSIDE:
        yield [job for job in wanted if job.key in free]
        return
    seen: set[str] = set()
    for job in wanted:
        if job.key.brick in seen or job.key not in free:
            continue
        parcel = pool.part.holders(job)[0]
        group = [free[key] for key in pool.part.keys.get(parcel.sha256, ()) if key in free and key.brick not in seen]
        seen.update(it.key.brick for it in group)
        yield group


@dataclass(slots=True, eq=False)
class CurrentTask:
    """The task of a host, the levels of its bricks, and what the host has told so far."""

    task: Task
    pool: BrickPool
    levels: Mapping[str, Level]
    is_probe: bool
    progress: TaskProgress | None = None
    # True once the host has returned a result or a failure of a brick.
    has_results: bool = False


@dataclass(slots=True, eq=False)
class HostWork:
    """A host of a fleet run, as its driver knows it."""

    entry: HostEntry
    meter: MessageMeter
    # The time at which it came into its state.
    since: float
    state: FleetHostState = FleetHostState.CONNECTING
    message: str = ""
    is_there: bool = False
    is_paused: bool = False
    # When to ask it again, after a call that was lost.
    ask_after: float = 0.0
    system: System | None = None
    # One for each part of the fleet run.
    pools: tuple[BrickPool, ...] = ()
    current: CurrentTask | None = None
    # The task that it had when it went away, or when the driver before this one ended.
    task_before: str = ""
    # The most bricks of a task; None: as many as fit in its time.
    most_bricks: int | None = None
    # Tasks that failed one after another without a result.
    failures: int = 0
    # The time for which it has worked before it came into its state.
    worked_before: float = 0.0
    disturbed_rounds: int = 0
    disturbed_seconds: float = 0.0
    # What was told of it.
    told: HostChanged | None = None

    @property
    def name(self) -> str:
        """Its name in the fleet."""
        return self.entry.name

    @property
    def is_over(self) -> bool:
        """True if it gets no more work."""
        return self.state in FINAL

    @property
    def has_work(self) -> bool:
        """True if bricks are left that it may have to measure."""
        return any(pool.left for pool in self.pools)

    @property
    def working_state(self) -> FleetHostState:
        """The state that its task amounts to."""
        if self.current is None:
            return FleetHostState.IDLE
        return FleetHostState.PROBING if self.current.is_probe else FleetHostState.MEASURING

    def now(self, seconds_left: float | None) -> HostChanged:
        """Return the event that tells of it."""
        system, now = self.system, None if self.current is None else self.current.progress
        return HostChanged(
            host=self.name,
            state=self.state,
            message=self.message,
            system="" if system is None else system.id,
            system_name="" if system is None else system.name,
            bricks=sum(pool.done for pool in self.pools),
            of=sum(pool.total for pool in self.pools),
            failed=sum(len(pool.failed) for pool in self.pools),
            seconds_left=seconds_left,
            disturbed_rounds=self.disturbed_rounds + (now.disturbed_rounds if now else 0),
            disturbed_seconds=self.disturbed_seconds + (now.disturbed_seconds if now else 0.0),
        )

    def seconds_worked(self, now: float) -> float:
        """Return the time for which it has worked until now."""
        return self.worked_before + (now - self.since if self.state in WORKING else 0.0)

    def end_task(self) -> CurrentTask | None:
        """Forget the current task, and return it."""
        ended, self.current = self.current, None
        if ended is not None and ended.progress is not None:
            self.disturbed_rounds += ended.progress.disturbed_rounds
            self.disturbed_seconds += ended.progress.disturbed_seconds
        return ended


class SharedPools:
    """A pool for each part and each system with its runtime. Hosts of the same system share the bricks."""

    def __init__(self, workload: FleetWorkload, store: ResultsDatabase, state: JobState) -> None:
        self._workload = workload
        self._store = store
        # Results since then count where everything is to be measured again.
        self._started = state.started
        self._fleet = state.run
        # By the number of the part.
        self._pools: dict[tuple[int, Conditions], BrickPool] = {}
        # The hosts that share a pool.
        self.members: defaultdict[BrickPool, list[HostWork]] = defaultdict(list)

    def join(self, host: HostWork, report: HostReport, system: System) -> None:
        """Give a host the pools of its system."""
        # Its system may have changed.
        for pool in host.pools:
            self.members[pool].remove(host)
        host.system = system
        found = []
        for number, part in enumerate(self._workload.parts):
            # The report was checked: the host has the runtime.
            runtime = runtime_there(part.request.runtime, report) or part.request.runtime
            if (there := Processors.of(system.cores, dict(system.facts))) is not None:
                runtime = runtime.on(there)
            conditions = Conditions(system.id, runtime.identity, part.protocol)
            if (number, conditions) not in self._pools:
                known = known_in(self._store, conditions, part.jobs, self._started if part.request.again else "")
                known = replace(known, failed={}) if part.request.retry_failed else known
                self._pools[number, conditions] = BrickPool(part, runtime, conditions, known, self._fleet)
            found.append(self._pools[number, conditions])
        host.pools = tuple(found)
        for pool in found:
            self.members[pool].append(host)

    @property
    def all(self) -> Sequence[BrickPool]:
        """All pools."""
        return tuple(self._pools.values())

    @property
    def bricks(self) -> Tally:
        """The bricks of all hosts, those of equal hosts once."""
        reused = sum(pool.reused for pool in self.all)
        measured = sum(pool.done for pool in self.all) - reused
        return Tally(sum(it.total for it in self.all), measured, reused, sum(len(it.failed) for it in self.all))

    def seconds_left(self, host: HostWork) -> float | None:
        """Return the seconds that a host still needs: the rest of its task, and its share of the free bricks."""
        if host.is_over or not host.pools:
            return None
        progress = None if host.current is None else host.current.progress
        now = 0.0 if progress is None else progress.seconds_left or 0.0
        return now + sum(pool.free_seconds / len(self.members[pool]) for pool in host.pools)
