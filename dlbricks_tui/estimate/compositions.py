"""Rules that turn latencies of layer sequences into the latency of a model (paper, section 3.2).

Latencies are whole picoseconds here: sums of them are exact, so that one worker takes exactly the sequential time,
and unlimited workers exactly that of the critical path.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

PICOSECONDS_PER_MS = 1_000_000_000


def picoseconds(latency_ms: float) -> int:
    """A latency in the unit of the compositions."""
    return round(latency_ms * PICOSECONDS_PER_MS)


def milliseconds(latency_ps: int) -> float:
    """A latency in the unit that people read."""
    return latency_ps / PICOSECONDS_PER_MS


@dataclass(frozen=True, slots=True)
class Sharing:
    """How a task gets on with others on one machine; tasks of equal sharing count together towards `at_most`."""

    parallel: bool = True
    at_most: int | None = None
    # How many times as long it takes while any other task runs.
    slowdown: Fraction = Fraction(1)
    # Tells two limits of the same size apart.
    label: str = ""


FREELY = Sharing()


@dataclass(frozen=True, slots=True)
class Task:
    """One sequence to execute: how long it takes by itself, and which tasks, all listed before it, it waits for."""

    latency_ps: int
    after: tuple[int, ...] = ()
    sharing: Sharing = FREELY


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """The longest way through the tasks: nothing that keeps their order can be quicker, unless tasks get quicker."""

    latency_ps: int
    tasks: tuple[int, ...]


def sequential_ps(tasks: Sequence[Task]) -> int:
    """One after the other."""
    return sum(task.latency_ps for task in tasks)


def critical_path(tasks: Sequence[Task]) -> CriticalPath:
    """The longest path through the tasks; of equally long ones that which comes first."""
    ends: list[int] = []
    before: list[int | None] = []
    for task in tasks:
        latest = max(task.after, key=ends.__getitem__, default=None)
        before.append(latest)
        ends.append(task.latency_ps + (0 if latest is None else ends[latest]))
    # Of equal ends the last: what takes no time at the end of a model is on the way too.
    last = max(reversed(range(len(tasks))), key=ends.__getitem__, default=None)
    longest = 0 if last is None else ends[last]
    path: list[int] = []
    while last is not None:
        path.append(last)
        last = before[last]
    return CriticalPath(longest, tuple(reversed(path)))
