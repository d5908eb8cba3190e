"""The bricks that the hosts of one system still have to measure."""

from collections import Counter
from collections.abc import Iterable, Mapping

from dlbricks_tui.fleet.driving.storing import is_of
from dlbricks_tui.fleet.driving.workload import FleetPart
from dlbricks_tui.measure.jobs import Job, JobKey
from dlbricks_tui.measure.known import Conditions, Known
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.plan import plan
from dlbricks_tui.measure.time_left import expected_seconds
from dlbricks_tui.store.records import Statistics

# A brick of which a host returns nothing is asked for so many times.
_MOST_TIMES_ASKED = 2
# A host that goes away so many times while it measures a brick alone does so because of the brick.
_MOST_LOSSES = 2


class BrickPool:
    """The bricks that one system has to measure by one runtime. Hosts of the same system share them."""

    def __init__(self, part: FleetPart, conditions: Conditions, known: Known, fleet: str) -> None:
        self.part = part
        self.conditions = conditions
        found = plan(part.models, known, part.request.rule, False, (), part.request.method)
        # The bricks that still need samples, and those of them that are in no task.
        self._left = {job.key: part.jobs[job.key] for job in found.jobs if job.key in part.jobs}
        self._free = dict(self._left)
        self._in_flight: dict[str, frozenset[JobKey]] = {}
        # The bricks that cannot be measured on this system, and why.
        self.failed = {job.key: reason for job, reason in found.failed.items() if job.key in part.jobs}
        # The bricks with a result in the local store.
        self.measured = {key: it for key, it in known.measured.items() if key in part.jobs}
        self._asked = Counter[JobKey]()
        self._losses = Counter[JobKey]()
        # The bricks that had enough samples before the fleet run, which may have been resumed.
        own = [key for key in self.measured if key not in self._left and is_of(fleet, known.runs.get(key, ""))]
        self.reused = self.done - len(own)
        # True once a host of the system has had its probe.
        self.is_probed = False
        self._seconds = expected_seconds(part.request.method, part.request.rule, self._left.values())
        self._left_at_first = len(self._left)

    @property
    def total(self) -> int:
        """The number of all its bricks."""
        return len(self.part.jobs)

    @property
    def done(self) -> int:
        """The number of its bricks with enough samples."""
        return self.total - len(self._left) - len(self.failed)

    @property
    def left(self) -> Mapping[JobKey, Job]:
        """The bricks that still need samples."""
        return self._left

    @property
    def free(self) -> Mapping[JobKey, Job]:
        """The bricks that still need samples and are in no task."""
        return self._free

    @property
    def free_seconds(self) -> float:
        """About the time that the free bricks take on one host."""
        return self._seconds * len(self._free) / max(1, self._left_at_first)

    def take(self, host: str, keys: Iterable[JobKey]) -> None:
        """Note that a host measures bricks."""
        self._in_flight[host] = frozenset(keys)
        for key in self._in_flight[host]:
            self._free.pop(key, None)

    def learn(self, measured: Mapping[JobKey, Statistics]) -> dict[JobKey, Job]:
        """Note results that are stored, and return the bricks that had none before."""
        known = {key: statistics for key, statistics in measured.items() if key in self.part.jobs}
        new = {key: self.part.jobs[key] for key in known if key not in self.measured}
        for key, statistics in known.items():
            self.measured[key] = statistics
            self.failed.pop(key, None)
            if self._is_enough(self.part.jobs[key], statistics):
                self._drop(key)
        return new

    def give_up(self, reasons: Mapping[JobKey, str]) -> dict[JobKey, Job]:
        """Note bricks that this system cannot measure, and return those that are new."""
        new = {key: self._left[key] for key in reasons if key in self._left and key not in self.measured}
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
        if len(waiting) != 1:
            return {}
        self._losses.update(waiting)
        if self._losses[waiting[0]] < _MOST_LOSSES:
            return {}
        return self.give_up({waiting[0]: "its host went away each time while it was measured"})

    def _released(self, host: str) -> list[JobKey]:
        """Return the bricks in the task of a host that still need samples; they are free again."""
        waiting = [key for key in self._in_flight.pop(host, ()) if key in self._left]
        self._free.update((key, self._left[key]) for key in waiting)
        return waiting

    def _drop(self, key: JobKey) -> None:
        self._left.pop(key, None)
        self._free.pop(key, None)

    def _is_enough(self, job: Job, statistics: Statistics) -> bool:
        request = self.part.request
        return request.method is Method.INSIDE or request.rule.stop(statistics, job.share) is not None
