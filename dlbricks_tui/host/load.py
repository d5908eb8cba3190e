"""The load of the processors between two looks, and other programs that compete for them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.host.processor import HostFiles, ProcessorTimes, processor_times, times_by_processor

if TYPE_CHECKING:
    from collections.abc import Mapping

# A look costs processor time, and a share of less time than this says little: the kernel counts in ticks of 10 ms.
SECONDS_BETWEEN_LOOKS = 1.0


@dataclass(frozen=True, slots=True)
class HostLoad:
    """The shares of time in which each core was busy, and in which the hypervisor gave it to other guests."""

    busy: tuple[float, ...]
    stolen: tuple[float, ...]

    @property
    def cores(self) -> int:
        """The number of cores of the host."""
        return len(self.busy)

    @property
    def busy_cores(self) -> float:
        """The number of cores that were busy on average."""
        return sum(self.busy)

    @property
    def stolen_share(self) -> float:
        """The share of the time of all cores that other guests took."""
        return sum(self.stolen) / len(self.stolen) if self.stolen else 0.0


class LoadMeter:
    """Reads the load of the host at most once in a second."""

    def __init__(self, host: HostFiles | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._host = host or HostFiles()
        self._clock = clock
        self._before: Mapping[str, ProcessorTimes] = {}
        self._looked_at = -SECONDS_BETWEEN_LOOKS
        self._load: HostLoad | None = None

    def look(self) -> HostLoad | None:
        """Return the load between the last two looks; None before the second one, and where the host does not tell."""
        now = self._clock()
        if now - self._looked_at >= SECONDS_BETWEEN_LOOKS:
            times = times_by_processor(self._host)
            times.pop("cpu", None)
            busy, stolen = [], []
            for name, after in times.items():
                before = self._before.get(name)
                # A core may have been switched on or off meanwhile.
                if before is not None and after.total > before.total:
                    elapsed = after.total - before.total
                    busy.append(_share((after.busy - before.busy) / elapsed))
                    stolen.append(_share((after.stolen - before.stolen) / elapsed))
            self._load = HostLoad(tuple(busy), tuple(stolen)) if busy else None
            self._before, self._looked_at = times, now
        return self._load


def _share(value: float) -> float:
    # The counters of idle time may run backwards by a tick.
    return min(1.0, max(0.0, value))


_NANOSECONDS = 1e9
# The number of running threads changes by the millisecond.
_READINGS, _SECONDS_BETWEEN_READINGS = 5, 0.01
_MOST_COMPETING = 3.0
# A process is idle that computes for a smaller share of the time between two readings.
_IDLE_SHARE = 0.1


class Contention(NamedTuple):
    """Counts of the kernel for the live threads of a process, since they began."""

    waited_seconds: float
    preemptions: int
    # The processor time of all other processes; None where the kernel does not say.
    others_seconds: float | None = None


def contention_between(before: Contention | None, now: Contention | None) -> Contention | None:
    """Return what was counted between two moments; threads that ended in between do not count."""
    if before is None or now is None:
        return None
    others = None
    if before.others_seconds is not None and now.others_seconds is not None:
        others = max(0.0, now.others_seconds - before.others_seconds)
    return Contention(
        max(0.0, now.waited_seconds - before.waited_seconds), max(0, now.preemptions - before.preemptions), others
    )


def contention(pid: int, host: HostFiles | None = None) -> Contention | None:
    """Return the counts of a process so far; None where the kernel keeps none."""
    host = host or HostFiles()
    times = [_times_ns(host, path) for path in host.matching(f"proc/{pid}/task/*/schedstat")]
    counts = [
        host.fields(path).get("nonvoluntary_ctxt_switches", "") for path in host.matching(f"proc/{pid}/task/*/status")
    ]
    if not times or not counts or None in times or not all(map(str.isdecimal, counts)):
        return None
    computed_ns, waited_ns = (sum(of_each) for of_each in zip(*(it for it in times if it), strict=True))
    all_times = processor_times(host)
    return Contention(
        waited_ns / _NANOSECONDS,
        sum(map(int, counts)),
        None if all_times is None else all_times.taken_seconds - computed_ns / _NANOSECONDS,
    )


def wait_until_idle(
    pid: int, host: HostFiles | None = None, wait: Callable[[float], None] = time.sleep, most_seconds: float = 1.0
) -> None:
    """Wait until the threads of a process stop computing, for so long at most.

    The threads of a framework go on spinning for a while after their work, and would take the processor from another
    process.
    """
    host = host or HostFiles()
    before = _computed_seconds(pid, host)
    for _ in range(round(most_seconds / _SECONDS_BETWEEN_READINGS)):
        wait(_SECONDS_BETWEEN_READINGS)
        now = _computed_seconds(pid, host)
        if now - before < _IDLE_SHARE * _SECONDS_BETWEEN_READINGS:
            return
        before = now


def _computed_seconds(pid: int, host: HostFiles) -> float:
    """Return the processor time that the live threads of a process have taken; 0 where the kernel does not say."""
    times = (_times_ns(host, path) for path in host.matching(f"proc/{pid}/task/*/schedstat"))
    return sum(it[0] for it in times if it) / _NANOSECONDS


def competing_threads(host: HostFiles | None = None, wait: Callable[[float], None] = time.sleep) -> float:
    """Return the number of running threads of other programs per processor; 0 where the kernel does not say."""
    host = host or HostFiles()
    running: list[int] = []
    for number in range(_READINGS):
        if number:
            wait(_SECONDS_BETWEEN_READINGS)
        count = host.fields("proc/stat", " ").get("procs_running", "")
        if not count.isdecimal():
            return 0.0
        # The calling thread is one of them.
        running.append(max(0, int(count) - 1))
    # The kernel sums counters that change meanwhile: a single reading may be absurd.
    return min(_MOST_COMPETING, median(running) / (os.cpu_count() or 1))


def _times_ns(host: HostFiles, path: str) -> tuple[int, int] | None:
    # Nanoseconds on a processor, nanoseconds waiting for one, number of time slices.
    counted = (host.text(path) or "").split()
    if len(counted) != 3 or not (counted[0].isdecimal() and counted[1].isdecimal()):
        return None
    return int(counted[0]), int(counted[1])
