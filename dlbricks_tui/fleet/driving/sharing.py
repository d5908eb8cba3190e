"""The pools of a fleet run, and the hosts that share each of them."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from dlbricks_tui.fleet.deciding.estimates import Asker
from dlbricks_tui.fleet.driving.host_work import HostWork
from dlbricks_tui.fleet.driving.pools import BrickPool
from dlbricks_tui.fleet.driving.validation import identity_there
from dlbricks_tui.fleet.driving.workload import FleetWorkload
from dlbricks_tui.fleet.messages import HostReport
from dlbricks_tui.measure.known import Conditions, known_in
from dlbricks_tui.runs.run_folder import RunState, Tally
from dlbricks_tui.runtime.runtime import numbered_identity
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.numbered_threads import processors_of
from dlbricks_tui.store.records import System


class SharedPools:
    """A pool for each part and each system with its runtime. Hosts of the same system share the bricks."""

    def __init__(self, workload: FleetWorkload, store: ResultsDatabase, state: RunState) -> None:
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

    def askers(self, pool: BrickPool) -> Sequence[Asker]:
        """Return the hosts of a pool for its estimates."""
        return [Asker(it.name, it.system, it.entry.price_per_hour) for it in self._members[pool] if it.system]

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
