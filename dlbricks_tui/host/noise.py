"""Find sources of noise on this host, with a cure for each, and read its load."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from statistics import median
from typing import NamedTuple

from dlbricks_tui.host.fingerprint import (
    CPU,
    ProcessorTimes,
    distinct,
    governors,
    hyper_threading,
    is_virtual,
    times_by_processor,
    turbo,
)
from dlbricks_tui.host_files import CGROUP, HostFiles, control_groups, quota_cores

# A look costs processor time, and a share of less time than this says little: the kernel counts in ticks of 10 ms.
SECONDS_BETWEEN_LOOKS = 1.0
_NANOSECONDS = 1e9
# The number of running threads changes by the millisecond.
_READINGS, _SECONDS_BETWEEN_READINGS = 5, 0.01
_MOST_COMPETING = 3.0
# A process is idle that computes for a smaller share of the time between two readings.
_IDLE_SHARE = 0.1
UNREADABLE = "unknown"
SECONDS_TO_WATCH = 0.5
# A smaller load counts as housekeeping.
_BUSY_SHARE = 0.05
_STOLEN_SHARE = 0.005
_HOT_CELSIUS = 85.0
# Pieces of fewer pages than two to this power are small. A program takes those first.
_SMALL_ORDERS, _MOST_SCATTERED_BYTES = 4, 1 << 29
# Clocks that are read within some tens of nanoseconds.
_QUICK_CLOCKS = frozenset({"tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"})


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
    all_times = times_by_processor(host).get("cpu")
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


class NoiseVerdict(str, Enum):
    """The verdict on a source of noise."""

    QUIET = "quiet"
    NOISY = "noisy"
    UNKNOWN = "unknown"


_VERDICTS = {True: NoiseVerdict.NOISY, False: NoiseVerdict.QUIET, None: NoiseVerdict.UNKNOWN}


class SourceState(NamedTuple):
    """The state of a source of noise in words, and whether it is noisy; None where the host does not tell."""

    text: str
    noisy: bool | None


_UNKNOWN = SourceState(UNREADABLE, None)


@dataclass(frozen=True, slots=True)
class Finding:
    """A source of noise as it was found; the cure is empty if none is needed."""

    source: str
    state: str
    verdict: NoiseVerdict
    effect: str
    cure: str


@dataclass(frozen=True, slots=True)
class NoiseSource:
    """A source of noise; `look` returns its state now."""

    name: str
    look: Callable[[HostFiles], SourceState]
    effect: str
    cure: str

    def find(self, host: HostFiles) -> Finding:
        """Return its state now, with its effect and cure."""
        text, noisy = self.look(host)
        return Finding(self.name, text, _VERDICTS[noisy], self.effect, "" if noisy is False else self.cure)


def findings(host: HostFiles | None = None) -> tuple[Finding, ...]:
    """Return the state of all sources on this host."""
    host = host or HostFiles()
    return tuple(source.find(host) for source in SOURCES)


def disturbances(host: HostFiles | None = None) -> tuple[str, ...]:
    """Watch the processors for half a second, and return what other programs and guests took, in words.

    Where the processors do not tell, that is returned, too: such a host is not known to be quiet.
    """
    shares = _shares(host or HostFiles())
    if shares is None:
        return ("the load is unknown",)
    return tuple(it.text for it in (_load(shares[0]), _theft(shares[1])) if it.noisy)


def _governor(host: HostFiles) -> SourceState:
    found = governors(host)
    if not found:
        return _UNKNOWN
    preferences = distinct(host, f"{CPU}/cpu[0-9]*/cpufreq/energy_performance_preference")
    told = ", ".join(found) + (f" (preference {', '.join(preferences)})" if preferences else "")
    return SourceState(told, found != ("performance",))


def _load(share: float) -> SourceState:
    return SourceState(f"the processors are {share:.0%} busy", share > _BUSY_SHARE)


def _theft(share: float) -> SourceState:
    return SourceState(f"{share:.1%} stolen now", share > _STOLEN_SHARE)


def _time_quota(host: HostFiles) -> SourceState:
    quota = quota_cores(host)
    if quota is None:
        return SourceState("none", False) if host.exists("proc/self/cgroup") else _UNKNOWN
    folders = [*control_groups(host, ""), *(f"cpu/{group}" for group in control_groups(host, "cpu"))]
    counts = [host.fields(f"{CGROUP}/{folder}/cpu.stat", " ").get("nr_throttled", "") for folder in folders]
    stopped = [int(count) for count in counts if count.isdecimal()]
    suffix = f", stopped {sum(stopped)} times so far" if stopped else ""
    return SourceState(f"{quota:g} core{'' if quota == 1 else 's'}{suffix}", True)


def _affinity(host: HostFiles) -> SourceState:
    if not hasattr(os, "sched_getaffinity"):
        return _UNKNOWN
    usable, there = len(os.sched_getaffinity(0)), os.cpu_count() or 1
    return SourceState(f"{usable} of {there} cores usable", usable < there)


def _heat(host: HostFiles) -> SourceState:
    zones, counts = (
        [number for path in host.matching(pattern) if (number := host.number(path)) is not None]
        for pattern in ("sys/class/thermal/thermal_zone*/temp", f"{CPU}/cpu[0-9]*/thermal_throttle/core_throttle_count")
    )
    # In thousandths of a degree. Zones without a sensor report zero or less.
    celsius, slowed = max([0, *zones]) / 1000, sum(counts)
    told = [f"{celsius:.0f} degrees Celsius"] * (celsius > 0)
    told += [f"cores slowed {slowed} times since start"] * bool(counts)
    return SourceState(", ".join(told), celsius >= _HOT_CELSIUS or slowed > 0) if told else _UNKNOWN


def _huge_pages(host: HostFiles) -> SourceState:
    chosen = (host.text("sys/kernel/mm/transparent_hugepage/enabled") or "").partition("[")[2].partition("]")[0]
    return SourceState(chosen, chosen == "always") if chosen else _UNKNOWN


def _scattered_memory(host: HostFiles) -> SourceState:
    zones = [line.split()[4:] for line in (host.text("proc/buddyinfo") or "").splitlines()]
    if not all(count.isdecimal() for zone in zones for count in zone) or not any(zones):
        return _UNKNOWN
    # The numbers of free pieces of one page, of two, of four, and so on.
    page = os.sysconf("SC_PAGE_SIZE")
    small = sum(int(count) * page << order for zone in zones for order, count in enumerate(zone[:_SMALL_ORDERS]))
    told = f"{small / 1e9:.1f} GB free in pieces below {page << _SMALL_ORDERS >> 10} KB"
    return SourceState(told, small > _MOST_SCATTERED_BYTES)


def _swap(host: HostFiles) -> SourceState:
    described = host.fields("proc/meminfo")
    found = [described.get(name, "").removesuffix("kB").strip() for name in ("SwapTotal", "SwapFree")]
    if not all(map(str.isdecimal, found)):
        return _UNKNOWN
    total, free = map(int, found)
    return SourceState(f"{(total - free) >> 10} MiB in use" if total else "none", total > free)


def _numa_balancing(host: HostFiles) -> SourceState:
    nodes = host.matching("sys/devices/system/node/node[0-9]*")
    if len(nodes) <= 1:
        return SourceState("one node", False) if nodes else _UNKNOWN
    balancing = host.number("proc/sys/kernel/numa_balancing")
    if balancing is None:
        return SourceState(f"{len(nodes)} nodes; {UNREADABLE} whether memory moves", None)
    return SourceState(f"{len(nodes)} nodes, memory {'moves' if balancing else 'stays'}", bool(balancing))


def _clock(host: HostFiles) -> SourceState:
    source = host.text("sys/devices/system/clocksource/clocksource0/current_clocksource")
    return SourceState(source, source not in _QUICK_CLOCKS) if source else _UNKNOWN


def _shares(host: HostFiles) -> tuple[float, float] | None:
    """Watch the processors for half a second, and return the shares of time that were busy and stolen."""
    before = times_by_processor(host).get("cpu")
    if before is None:
        return None
    time.sleep(SECONDS_TO_WATCH)
    after = times_by_processor(host).get("cpu", before)
    elapsed = max(1, after.total - before.total)
    return (after.busy - before.busy) / elapsed, (after.stolen - before.stolen) / elapsed


def _switch(state: bool | None, on: str = "on", off: str = "off") -> SourceState:
    return _UNKNOWN if state is None else SourceState(on if state else off, state)


SOURCES = (
    NoiseSource(
        "frequency governor",
        _governor,
        effect="cores begin slowly and speed up while they work: first samples are up to several times too long",
        cure="sudo cpupower frequency-set -g performance (in a virtual machine: on its host)",
    ),
    NoiseSource(
        "turbo",
        lambda host: _switch(turbo(host)),
        effect="the frequency follows temperature and the load of other cores: samples drift by 5 to 30 %",
        cure="for steadier, slower numbers: echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo, "
        "or echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost",
    ),
    NoiseSource(
        "hyper-threading",
        lambda host: _switch(hyper_threading(host)),
        effect="what runs on the sibling of a core takes up to half of its speed",
        cure="compute with as many threads as there are physical cores, or "
        "echo off | sudo tee /sys/devices/system/cpu/smt/control",
    ),
    NoiseSource(
        "other load",
        lambda host: _load(shares[0]) if (shares := _shares(host)) else _UNKNOWN,
        effect="other programs take turns with the measured one: outliers, and wider intervals",
        cure="end what computes (see `top`), or wait; dlbricks itself runs one measurement at a time per host",
    ),
    NoiseSource(
        "stolen time",
        lambda host: _theft(shares[1]) if (shares := _shares(host)) else _UNKNOWN,
        effect="other guests of the host take the processor: samples grow at random",
        cure="use an instance type with dedicated cores, or measure at another time",
    ),
    NoiseSource(
        "time quota",
        _time_quota,
        effect="a process that has used up its time is stopped until the next period: outliers of tens of milliseconds",
        cure="run without a limit, e.g. docker run without --cpus; bind to cores instead (--cpuset-cpus)",
    ),
    NoiseSource(
        "bound to cores",
        _affinity,
        effect="a framework that starts a thread per core makes them share those it is bound to",
        cure="compute with as many threads as there are usable cores",
    ),
    NoiseSource(
        "temperature",
        _heat,
        effect="a hot processor slows itself down: long runs get slower towards their end",
        cure="better cooling, fewer threads, or pauses between runs",
    ),
    NoiseSource(
        "virtual machine",
        lambda host: _switch(is_virtual(host), "yes", "no"),
        effect="frequency, heat and neighbours are out of sight, and differ between two instances of one type",
        cure="a bare-metal instance shows them; else compare only results of this host",
    ),
    NoiseSource(
        "transparent huge pages",
        _huge_pages,
        effect="the kernel merges pages while a program runs: latencies of large tensors change in mid-run",
        cure="echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
    ),
    NoiseSource(
        "scattered memory",
        _scattered_memory,
        effect="a program gets scattered pages first, which the processor looks up one by one: reading weights takes "
        "up to a quarter longer than in a program that starts later",
        cure="echo 1 | sudo tee /proc/sys/vm/compact_memory",
    ),
    NoiseSource(
        "swap",
        _swap,
        effect="a weight that was moved to disk costs a thousand times its time when it is next read",
        cure="sudo swapoff -a, or end what fills the memory",
    ),
    NoiseSource(
        "NUMA balancing",
        _numa_balancing,
        effect="the kernel moves memory between sockets while a program runs: steps in the latency",
        cure="echo 0 | sudo tee /proc/sys/kernel/numa_balancing, or bind to one node (numactl -N 0 -m 0)",
    ),
    NoiseSource(
        "clock",
        _clock,
        effect="each reading of a slow clock costs a microsecond or more: small layers look slower",
        cure="boot with clocksource=tsc tsc=reliable where the machine has a steady counter",
    ),
)
