"""The compositions of the latencies of layer sequences to that of a model (paper, section 3.2).

Latencies are whole picoseconds here, so that sums are exact: one worker takes exactly the sequential time, and
unlimited workers exactly the time of the critical path.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

PICOSECONDS_PER_MS = 1_000_000_000


def picoseconds(latency_ms: float) -> int:
    """Convert a latency to the unit of the compositions."""
    return round(latency_ms * PICOSECONDS_PER_MS)


def milliseconds(latency_ps: int) -> float:
    """Convert picoseconds to milliseconds."""
    return latency_ps / PICOSECONDS_PER_MS


@dataclass(frozen=True, slots=True)
class Sharing:
    """The limits of a task that runs beside others. Tasks with equal `Sharing` count together towards `at_most`."""

    parallel: bool = True
    at_most: int | None = None
    # The factor of its latency while any other task runs.
    slowdown: Fraction = Fraction(1)
    # Distinguishes two limits of the same size.
    label: str = ""


FREELY = Sharing()


@dataclass(frozen=True, slots=True)
class Task:
    """A sequence to execute: its latency by itself, and the earlier tasks that must end before it begins."""

    latency_ps: int
    after: tuple[int, ...] = ()
    sharing: Sharing = FREELY


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """The longest path through the tasks: the least latency of any schedule that keeps their order."""

    latency_ps: int
    tasks: tuple[int, ...]


def sequential_ps(tasks: Sequence[Task]) -> int:
    """Return the latency of all tasks one after another."""
    return sum(task.latency_ps for task in tasks)


def critical_path(tasks: Sequence[Task]) -> CriticalPath:
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
