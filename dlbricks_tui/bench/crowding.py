"""Whether others took the processor away from a process: how often its threads were stopped, and how long they waited.

A thread that was asleep waits a moment, too, until it runs again, however quiet the host is. So waiting alone says
nothing; a thread that is stopped while it computes makes way for somebody.
"""

from typing import NamedTuple

from dlbricks_tui.bench.host_files import HostFiles

_NANOSECONDS = 1e9


class Crowding(NamedTuple):
    """What the kernel has counted of the threads that are alive, since they began."""

    waited_seconds: float
    times_stopped: int


def since(before: Crowding | None, now: Crowding | None) -> Crowding | None:
    """What was counted between two moments; a thread that has ended meanwhile has taken its counts along."""
    if before is None or now is None:
        return None
    return Crowding(
        max(0.0, now.waited_seconds - before.waited_seconds), max(0, now.times_stopped - before.times_stopped)
    )


def crowding(pid: int, host: HostFiles | None = None) -> Crowding | None:
    """What is known of a process by now; None where the kernel counts nothing."""
    host = host or HostFiles()
    waits = [_wait_ns(host, path) for path in host.matching(f"proc/{pid}/task/*/schedstat")]
    stops = [_times_stopped(host, path) for path in host.matching(f"proc/{pid}/task/*/status")]
    if not waits or not stops or None in waits or None in stops:
        return None
    return Crowding(sum(wait for wait in waits if wait) / _NANOSECONDS, sum(stop for stop in stops if stop))


def _wait_ns(host: HostFiles, path: str) -> int | None:
    # Nanoseconds on the processor, nanoseconds waiting for it, and how often it was given.
    counted = (host.text(path) or "").split()
    return int(counted[1]) if len(counted) == 3 and counted[1].isdecimal() else None


def _times_stopped(host: HostFiles, path: str) -> int | None:
    count = host.fields(path).get("nonvoluntary_ctxt_switches", "")
    return int(count) if count.isdecimal() else None
