"""How long the threads of a process were ready to run and had to wait, because somebody else had the processor."""

from dlbricks_tui.bench.host_files import HostFiles

_NANOSECONDS = 1e9


class Crowding:
    """Reads what the kernel counts of a process; where it counts nothing, nothing is known."""

    def __init__(self, host: HostFiles | None = None) -> None:
        self._host = host or HostFiles()

    def waited_seconds(self, pid: int) -> float | None:
        """What the threads that are alive have waited since they began, taken together."""
        waits = [self._wait_ns(path) for path in self._host.matching(f"proc/{pid}/task/*/schedstat")]
        known = [wait for wait in waits if wait is not None]
        return sum(known) / _NANOSECONDS if known else None

    def _wait_ns(self, path: str) -> int | None:
        # Nanoseconds on the processor, nanoseconds waiting for it, and how often it was given.
        counted = (self._host.text(path) or "").split()
        return int(counted[1]) if len(counted) == 3 and counted[1].isdecimal() else None
