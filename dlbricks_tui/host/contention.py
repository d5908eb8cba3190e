"""CPU contention: how often a process's threads were preempted, and how long they waited for a processor.

Waiting alone proves nothing: a thread that wakes up waits a moment on a quiet host, too. A preempted thread makes way
for another one, which may belong to the same process. So the processor time of all other processes counts as well.
"""

import os
import time
from collections.abc import Callable
from statistics import median
from typing import NamedTuple

from dlbricks_tui.host.host_files import HostFiles
from dlbricks_tui.host.processor import processor_times

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
    counts = [_preemptions(host, path) for path in host.matching(f"proc/{pid}/task/*/status")]
    if not times or not counts or None in times or None in counts:
        return None
    computed_ns, waited_ns = (sum(of_each) for of_each in zip(*(it for it in times if it), strict=True))
    all_times = processor_times(host)
    return Contention(
        waited_ns / _NANOSECONDS,
        sum(count for count in counts if count),
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


def _preemptions(host: HostFiles, path: str) -> int | None:
    count = host.fields(path).get("nonvoluntary_ctxt_switches", "")
    return int(count) if count.isdecimal() else None
