"""The load of the processors between two looks."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.host.host_files import HostFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

# A look costs processor time, and a share of less time than this says little: the kernel counts in ticks of 10 ms.
SECONDS_BETWEEN_LOOKS = 1.0


@dataclass(frozen=True, slots=True)
class Load:
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


class _CoreTimes(NamedTuple):
    """The times of one core in kernel ticks."""

    total: int
    busy: int
    stolen: int


class LoadMeter:
    """Reads the load of the host at most once in a second."""

    def __init__(self, host: HostFiles | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._host = host or HostFiles()
        self._clock = clock
        self._before: Mapping[str, _CoreTimes] = {}
        self._looked_at = -SECONDS_BETWEEN_LOOKS
        self._load: Load | None = None

    def look(self) -> Load | None:
        """Return the load between the last two looks; None before the second one, and where the host does not tell."""
        now = self._clock()
        if now - self._looked_at >= SECONDS_BETWEEN_LOOKS:
            times = _core_times(self._host.text("proc/stat") or "")
            self._load = _load_between(self._before, times)
            self._before, self._looked_at = times, now
        return self._load


def _core_times(text: str) -> dict[str, _CoreTimes]:
    found: dict[str, _CoreTimes] = {}
    for line in text.splitlines():
        name, *numbers = line.split()[:9] or [""]
        # The line without a number is the sum of all cores.
        if name.startswith("cpu") and name[3:].isdecimal() and len(numbers) == 8 and all(map(str.isdecimal, numbers)):
            # user, nice, system, idle, waiting, interrupts, soft interrupts, stolen.
            ticks: Sequence[int] = [int(number) for number in numbers]
            idle, stolen = ticks[3] + ticks[4], ticks[7]
            found[name] = _CoreTimes(sum(ticks), sum(ticks) - idle - stolen, stolen)
    return found


def _load_between(before: Mapping[str, _CoreTimes], after: Mapping[str, _CoreTimes]) -> Load | None:
    shares = []
    for name, now in after.items():
        then = before.get(name)
        # A core may have been switched on or off meanwhile.
        if then is not None and now.total > then.total:
            elapsed = now.total - then.total
            shares.append(((now.busy - then.busy) / elapsed, (now.stolen - then.stolen) / elapsed))
    if not shares:
        return None
    busy, stolen = zip(*((_share(one), _share(other)) for one, other in shares), strict=True)
    return Load(busy, stolen)


def _share(value: float) -> float:
    # The counters of idle time may run backwards by a tick.
    return min(1.0, max(0.0, value))
