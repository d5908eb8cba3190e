"""The compositions of the latencies of layer sequences to that of a model (paper, section 3.2).

Latencies are whole picoseconds here, so that sums are exact: one worker takes exactly the sequential time, and
unlimited workers exactly the time of the critical path.
"""

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from heapq import heappop, heappush
from typing import NamedTuple

PICOSECONDS_PER_MS = 1_000_000_000


def picoseconds(latency_ms: float) -> int:
    """Convert a latency to the unit of the compositions."""
    return round(latency_ms * PICOSECONDS_PER_MS)


def milliseconds(latency_ps: int) -> float:
    """Convert picoseconds to milliseconds."""
    return latency_ps / PICOSECONDS_PER_MS


class Sharing(NamedTuple):
    """The limits of a task that runs beside others. Tasks with equal `Sharing` count together towards `at_most`."""

    parallel: bool = True
    at_most: int | None = None
    # The factor of its latency while any other task runs.
    slowdown: Fraction = Fraction(1)
    # Distinguishes two limits of the same size.
    label: str = ""


FREELY = Sharing()


class SequenceTask(NamedTuple):
    """A sequence to execute: its latency by itself, and the earlier tasks that must end before it begins."""

    latency_ps: int
    after: tuple[int, ...] = ()
    sharing: Sharing = FREELY


class CriticalPath(NamedTuple):
    """The longest path through the tasks: the least latency of any schedule that keeps their order."""

    latency_ps: int
    tasks: tuple[int, ...]


def critical_path(tasks: Sequence[SequenceTask]) -> CriticalPath:
    """Return the longest path through the tasks; of equally long ones the first."""
    ends: list[int] = []
    before: list[int | None] = []
    for task in tasks:
        latest = max(task.after, key=ends.__getitem__, default=None)
        before.append(latest)
        ends.append(task.latency_ps + (0 if latest is None else ends[latest]))
    # Of equal ends the last: tasks without latency at the end of a model are on the path too.
    last = max(reversed(range(len(tasks))), key=ends.__getitem__, default=None)
    longest = 0 if last is None else ends[last]
    path: list[int] = []
    while last is not None:
        path.append(last)
        last = before[last]
    return CriticalPath(longest, tuple(reversed(path)))


class Placed(NamedTuple):
    """The begin and the end of a task."""

    begin_ps: int
    end_ps: int


class Schedule(NamedTuple):
    """The begin and the end of each task, in the order of the tasks."""

    placed: tuple[Placed, ...]

    @property
    def latency_ps(self) -> int:
        """The time from the first begin to the last end."""
        return max((each.end_ps for each in self.placed), default=0)


def schedule(tasks: Sequence[SequenceTask], workers: int | None = None) -> Schedule:
    """Return the list schedule on some workers; None: as many as are useful.

    A free worker takes the ready task with the longest path to the end. If that task must run by itself, less urgent
    tasks wait until it has the machine for itself.
    """
    return _ListScheduling(tasks, workers).run()


class _ListScheduling:
    def __init__(self, tasks: Sequence[SequenceTask], workers: int | None) -> None:
        self.tasks = tasks
        self.workers = workers
        self.now_ps = 0
        # The end of each running task, if as many tasks as now keep running.
        self.running: dict[int, int] = {}
        # Entries that differ from `running` are out of date and skipped.
        self.ends: list[tuple[int, int]] = []
        self.ready: list[tuple[int, int]] = []
        # Ready tasks that the limit of their sharing holds back.
        self.parked: defaultdict[Sharing, list[tuple[int, int]]] = defaultdict(list)
        self.active: defaultdict[Sharing, int] = defaultdict(int)
        self.crowded = False

    def run(self) -> Schedule:
        readers: list[list[int]] = [[] for _ in self.tasks]
        for number, task in enumerate(self.tasks):
            for source in task.after:
                readers[source].append(number)
        # The longest path to the end.
        urgency = [0] * len(self.tasks)
        for number in reversed(range(len(self.tasks))):
            later = max((urgency[reader] for reader in readers[number]), default=0)
            urgency[number] = self.tasks[number].latency_ps + later
        waits_for = [len(task.after) for task in self.tasks]
        begins = [0] * len(self.tasks)
        ends = [0] * len(self.tasks)
        for number, count in enumerate(waits_for):
            if not count:
                heappush(self.ready, (-urgency[number], number))
        while self.ready or self.running:
            started = self._start()
            for number in started:
                begins[number] = self.now_ps
            crowded = len(self.running) > 1
            if crowded != self.crowded:
                # At most one task goes on: with more of them `crowded` would not have changed. It runs by itself now,
                # or no longer does.
                for number in self.running.keys() - set(started):
                    left_ps = self.running[number] - self.now_ps
                    self._expect(number, left_ps if crowded else left_ps / self.tasks[number].sharing.slowdown, crowded)
                self.crowded = crowded
            for number in started:
                self._expect(number, self.tasks[number].latency_ps, crowded)
            for number in self._finish():
                ends[number] = self.now_ps
                for reader in readers[number]:
                    waits_for[reader] -= 1
                    if not waits_for[reader]:
                        heappush(self.ready, (-urgency[reader], reader))
        return Schedule(tuple(map(Placed, begins, ends)))

    def _start(self) -> list[int]:
        started: list[int] = []
        while self.ready and (self.workers is None or len(self.running) < self.workers):
            sharing = self.tasks[self.ready[0][1]].sharing
            if self.running and not (sharing.parallel and self.tasks[next(iter(self.running))].sharing.parallel):
                break
            entry = heappop(self.ready)
            if sharing.at_most is not None and self.active[sharing] >= sharing.at_most:
                heappush(self.parked[sharing], entry)
                continue
            self.active[sharing] += 1
            self.running[entry[1]] = self.now_ps
            started.append(entry[1])
        return started

    def _expect(self, number: int, alone_ps: int | Fraction, crowded: bool) -> None:
        slowdown = self.tasks[number].sharing.slowdown if crowded else 1
        self.running[number] = self.now_ps + round(alone_ps * slowdown)
        heappush(self.ends, (self.running[number], number))

    def _finish(self) -> list[int]:
        """Advance to the next end, and return the tasks that end there."""
        finished: list[int] = []
        while self.ends and (not finished or self.ends[0][0] == self.now_ps):
            end_ps, number = heappop(self.ends)
            if self.running.get(number) != end_ps:
                continue
            self.now_ps = end_ps
            del self.running[number]
            finished.append(number)
            sharing = self.tasks[number].sharing
            self.active[sharing] -= 1
            if self.parked[sharing]:
                heappush(self.ready, heappop(self.parked[sharing]))
        return finished
