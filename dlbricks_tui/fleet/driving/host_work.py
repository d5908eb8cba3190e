"""The hosts of a fleet run: their states, the tasks that they carry out, and the pools of bricks that they share."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dlbricks_tui.fleet.driving.pools import BrickPool
from dlbricks_tui.fleet.driving.results import Allowed, MessageMeter, identity_there
from dlbricks_tui.fleet.messages import HostReport, Task, TaskEnded, TaskProgress
from dlbricks_tui.fleet.parcels import FleetWorkload
from dlbricks_tui.fleet.request import FleetHostState, HostChanged, HostEntry, HostProgress
from dlbricks_tui.jobs.folder import JobState, Tally
from dlbricks_tui.measure.known import Conditions, known_in
from dlbricks_tui.runtime.runtime import numbered_identity
from dlbricks_tui.store.database import ResultsDatabase, processors_of
from dlbricks_tui.store.records import System

# A host in one of these states gets no more work in this fleet run.
FINAL = frozenset(
    {
        FleetHostState.DONE,
        FleetHostState.CANCELLED,
        FleetHostState.REFUSED,
        FleetHostState.DISTRUSTED,
        FleetHostState.FAILED,
    }
)


@dataclass(slots=True, eq=False)
class CurrentTask:
    """The task of a host, what the host may return for it, and what it has told so far."""

    task: Task
    pool: BrickPool
    allowed: Allowed
    meter: MessageMeter
    is_probe: bool
    began: float
    progress: TaskProgress | None = None
    note: str = ""
    ended: TaskEnded | None = None
    # True once the host has returned a result or a failure of a brick.
    has_results: bool = False


@dataclass(slots=True, eq=False)
class HostWork:
    """A host of a fleet run, as its driver knows it."""

    entry: HostEntry
    # Counts messages that are about no current task.
    stray: MessageMeter
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
    spent_seconds: float = 0.0
    disturbed_rounds: int = 0
    disturbed_seconds: float = 0.0
    told: HostProgress | None = None

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

    @property
    def meter(self) -> MessageMeter:
        """The meter that counts what it sends now."""
        return self.stray if self.current is None else self.current.meter

    def seconds_spent(self, now: float) -> float:
        """Return the seconds that it has had tasks for."""
        return self.spent_seconds + (now - self.current.began if self.current else 0.0)

    def change(self, state: FleetHostState, message: str, now: float) -> bool:
        """Change its state, and return True if it was another one."""
        if (state, message) == (self.state, self.message):
            return False
        if state is not self.state:
            self.since = now
        self.state, self.message = state, message
        return True

    def changed(self) -> HostChanged:
        """Return the event that tells its state."""
        system = self.system
        return HostChanged(
            host=self.name,
            state=self.state.value,
            message=self.message,
            system="" if system is None else system.id,
            system_name="" if system is None else system.name,
        )

    def new_progress(self, seconds_left: float | None) -> HostProgress | None:
        """Return the event that tells its progress; None if that has been told."""
        now = None if self.current is None else self.current.progress
        found = HostProgress(
            host=self.name,
            bricks=sum(pool.done for pool in self.pools),
            of=sum(pool.total for pool in self.pools),
            failed=sum(len(pool.failed) for pool in self.pools),
            seconds_left=seconds_left,
            disturbed_rounds=self.disturbed_rounds + (now.disturbed_rounds if now else 0),
            disturbed_seconds=self.disturbed_seconds + (now.disturbed_seconds if now else 0.0),
        )
        if self.told is not None and replace(self.told, when=found.when) == found:
            return None
        self.told = found
        return found

    def end_task(self, now: float) -> CurrentTask | None:
        """Forget the current task, and return it."""
        ended, self.current = self.current, None
        if ended is not None:
            self.spent_seconds += now - ended.began
            if ended.progress is not None:
                self.disturbed_rounds += ended.progress.disturbed_rounds
                self.disturbed_seconds += ended.progress.disturbed_seconds
        return ended

    def shrink(self, bricks: int) -> None:
        """Halve its next task after a loss during one of so many bricks: one of them may be the cause."""
        self.most_bricks = max(1, bricks // 2)

    def grow(self) -> None:
        """Double its next task, after one that went well."""
        if self.most_bricks is not None:
            self.most_bricks *= 2


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
        self._members: defaultdict[BrickPool, list[HostWork]] = defaultdict(list)

    def join(self, host: HostWork, report: HostReport, system: System) -> None:
        """Give a host the pools of its system."""
        self.leave(host)
        host.system = system
        found = []
        for number, part in enumerate(self._workload.parts):
            # The report was checked: the host has the runtime.
            identity = numbered_identity(identity_there(part.request.runtime, report) or "", processors_of(system))
            found.append(self._pool(number, Conditions(system.id, identity, part.request.method.id)))
        host.pools = tuple(found)
        for pool in found:
            self._members[pool].append(host)

    def leave(self, host: HostWork) -> None:
        """Take a host out of its pools, as its system may have changed."""
        for pool in host.pools:
            self._members[pool].remove(host)
        host.pools = ()

    @property
    def all(self) -> Sequence[BrickPool]:
        """All pools."""
        return tuple(self._pools.values())

    def members(self, pool: BrickPool) -> Sequence[HostWork]:
        """Return the hosts that share a pool."""
        return tuple(self._members[pool])

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
        return now + sum(pool.free_seconds / len(self._members[pool]) for pool in host.pools)

    def _pool(self, number: int, conditions: Conditions) -> BrickPool:
        known = self._pools.get((number, conditions))
        if known is None:
            part = self._workload.parts[number]
            found = known_in(self._store, conditions, part.jobs, self._started if part.request.again else "")
            if part.request.retry_failed:
                found = replace(found, failed={})
            known = self._pools[number, conditions] = BrickPool(part, conditions, found, self._fleet)
        return known
