"""Whether others took the processor away from a process: how often its threads were stopped, and how long they waited.

A thread that was asleep waits a moment, too, until it runs again, however quiet the host is. So waiting alone says
nothing; a thread that is stopped while it computes makes way for somebody. That may be another thread of the same
process, which the kernel has put on the same core: so what others computed meanwhile is counted as well.
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
_MOST_OTHERS = 3.0


class Crowding(NamedTuple):
    """What the kernel has counted of the threads that are alive, since they began."""

    waited_seconds: float
    times_stopped: int
    # What all others have had of all processors; None where nobody knows.
    others_seconds: float | None = None


def since(before: Crowding | None, now: Crowding | None) -> Crowding | None:
    """What was counted between two moments; a thread that has ended meanwhile has taken its counts along."""
    if before is None or now is None:
        return None
    others = None
    if before.others_seconds is not None and now.others_seconds is not None:
        others = max(0.0, now.others_seconds - before.others_seconds)
    return Crowding(
        max(0.0, now.waited_seconds - before.waited_seconds), max(0, now.times_stopped - before.times_stopped), others
    )


def crowding(pid: int, host: HostFiles | None = None) -> Crowding | None:
    """What is known of a process by now; None where the kernel counts nothing."""
    host = host or HostFiles()
    times = [_times_ns(host, path) for path in host.matching(f"proc/{pid}/task/*/schedstat")]
    stops = [_times_stopped(host, path) for path in host.matching(f"proc/{pid}/task/*/status")]
    if not times or not stops or None in times or None in stops:
        return None
    computed_ns, waited_ns = (sum(of_each) for of_each in zip(*(it for it in times if it), strict=True))
    all_times = processor_times(host)
    return Crowding(
        waited_ns / _NANOSECONDS,
        sum(stop for stop in stops if stop),
        None if all_times is None else all_times.taken_seconds - computed_ns / _NANOSECONDS,
    )


def others_running(host: HostFiles | None = None, wait: Callable[[float], None] = time.sleep) -> float:
    """Threads of other programs that compute now, per processor; 0 where the kernel does not say."""
    host = host or HostFiles()
    running: list[int] = []
    for number in range(_READINGS):
        if number:
            wait(_SECONDS_BETWEEN_READINGS)
        count = host.fields("proc/stat", " ").get("procs_running", "")
        if not count.isdecimal():
            return 0.0
        # The thread that asks is one of them.
        running.append(max(0, int(count) - 1))
    # The kernel adds up counts of all processors that change meanwhile: a reading may be absurd.
    return min(_MOST_OTHERS, median(running) / (os.cpu_count() or 1))


def _times_ns(host: HostFiles, path: str) -> tuple[int, int] | None:
    # Nanoseconds on the processor, nanoseconds waiting for it, and how often it was given.
    counted = (host.text(path) or "").split()
    if len(counted) != 3 or not (counted[0].isdecimal() and counted[1].isdecimal()):
        return None
    return int(counted[0]), int(counted[1])


def _times_stopped(host: HostFiles, path: str) -> int | None:
    count = host.fields(path).get("nonvoluntary_ctxt_switches", "")
    return int(count) if count.isdecimal() else None
