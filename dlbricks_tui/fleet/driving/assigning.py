"""The tasks of hosts: each gets its next one when it is free, until nothing is left for it."""

from collections.abc import Callable

from dlbricks_tui.fleet.deciding.questions import Answering
from dlbricks_tui.fleet.driving.host_calls import HostCalls
from dlbricks_tui.fleet.driving.host_work import CurrentTask, HostWork
from dlbricks_tui.fleet.driving.pools import BrickPool
from dlbricks_tui.fleet.driving.sharing import SharedPools
from dlbricks_tui.fleet.driving.tasks import TASK_SECONDS, Chosen, next_bricks, probe_bricks, task_of
from dlbricks_tui.fleet.driving.validation import Allowed, MessageMeter
from dlbricks_tui.fleet.events import HostState, TaskGiven
from dlbricks_tui.fleet.request import FleetRequest
from dlbricks_tui.measure.events import Event
from dlbricks_tui.store.database import ResultsDatabase


class Assigning:
    """Chooses the next task of a host, and gives it to the host."""

    def __init__(
        self,
        request: FleetRequest,
        pools: SharedPools,
        answering: Answering,
        calls: HostCalls,
        store: ResultsDatabase,
        tell: Callable[[Event], None],
        clock: Callable[[], float],
    ) -> None:
        self._budget_seconds = request.run.time_budget_seconds
        # All parts together take the time of the probe.
        self._probe_seconds = request.probe_seconds / len(request.run.parts)
        self._pools = pools
        self._answering = answering
        self._calls = calls
        self._store = store
        self._tell = tell
        self._clock = clock
        # True while no host may begin a task.
        self.is_paused = False
        self.is_stopping = False

    def change(self, host: HostWork, state: HostState, message: str = "") -> None:
        """Change and tell the state of a host."""
        if host.change(state, message, self._clock()):
            self._tell(host.changed())

    def next(self, host: HostWork) -> None:
        """Give a host its next task, if it may have one."""
        if host.current is not None or host.is_over or not host.is_there or not host.pools or self.is_stopping:
            return
        if not host.has_work:
            self.change(host, HostState.DONE)
            return
        if self.is_paused or host.is_paused:
            self.change(host, HostState.PAUSED)
            return
        seconds_left = self.budget_left(host)
        if seconds_left == 0.0:
            self.change(host, HostState.DONE, "its time budget is spent")
            return
        for pool in host.pools:
            chosen = self._chosen(pool, host)
            if chosen is not None and chosen.jobs:
                self._give(host, pool, chosen, seconds_left)
                return
        free = any(pool.free for pool in host.pools)
        why = "for results of other hosts" if free else "for other hosts of its system, which measure what is left"
        self.change(host, HostState.IDLE, why)

    def wake(self, pool: BrickPool) -> None:
        """Give hosts work that wait for bricks of a pool."""
        for member in self._pools.members(pool):
            if member.state is HostState.IDLE:
                self.next(member)

    def budget_left(self, host: HostWork) -> float | None:
        """Return the seconds left of the time budget of a host; None without one."""
        budget = self._budget_seconds
        return None if budget is None else max(0.0, budget - host.seconds_spent(self._clock()))

    def _chosen(self, pool: BrickPool, host: HostWork) -> Chosen | None:
        """Return what a host measures next; None if nothing of the pool is free."""
        if not pool.free:
            return None
        if self._probe_seconds and not pool.is_probed:
            pool.is_probed = True
            # What fits in a task needs no probe before it.
            if pool.free_seconds > TASK_SECONDS:
                return probe_bricks(pool, self._store, self._probe_seconds, host.most_bricks)
        return next_bricks(pool, self._answering.wanted(pool), TASK_SECONDS, host.most_bricks)

    def _give(self, host: HostWork, pool: BrickPool, chosen: Chosen, seconds_left: float | None) -> None:
        task = task_of(pool, chosen, seconds_left, self._probe_seconds)
        pool.take(host.name, [job.key for job in chosen.jobs])
        levels = {job.key.brick: job.graph.level for job in chosen.jobs}
        allowed = Allowed(pool.conditions.system, pool.conditions.runtime, pool.conditions.protocol, levels)
        meter = MessageMeter(len(levels), self._clock)
        host.current = CurrentTask(task, pool, allowed, meter, chosen.is_probe, self._clock())
        # A driver that resumes the fleet run ends what its predecessor has left behind.
        self._tell(TaskGiven(host=host.name, task=task.id))
        self._calls.submit(host.name, task, chosen.parcels)
        self.change(host, host.working_state)
