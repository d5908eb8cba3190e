"""Sources of noise on this host: their state, their effect on latencies, and what helps against them."""

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, NamedTuple

from dlbricks_tui.host import processor
from dlbricks_tui.host.host_files import HostFiles
from dlbricks_tui.host.processor import ProcessorTimes, processor_times

UNREADABLE = "unknown"
SECONDS_TO_WATCH = 0.5
# A smaller load counts as housekeeping.
_BUSY_SHARE = 0.05
_STOLEN_SHARE = 0.005
_HOT_CELSIUS = 85.0


class Verdict(str, Enum):
    """The verdict on a source of noise."""

    QUIET = "quiet"
    NOISY = "noisy"
    UNKNOWN = "unknown"


class State(NamedTuple):
    """The state of a source in words, and the verdict."""

    text: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Finding:
    """A source of noise as it was found; the cure is empty if none is needed."""

    source: str
    state: str
    verdict: Verdict
    effect: str
    cure: str


class NoiseSource(ABC):
    """A source of noise."""

    name: ClassVar[str]
    effect: ClassVar[str]
    cure: ClassVar[str]

    @abstractmethod
    def look(self, host: HostFiles) -> State:
        """Return its state now."""

    def find(self, host: HostFiles) -> Finding:
        """Return its state now, with its effect and cure."""
        state = self.look(host)
        return Finding(
            self.name, state.text, state.verdict, self.effect, "" if state.verdict is Verdict.QUIET else self.cure
        )


class Governor(NoiseSource):
    """The rule by which the kernel chooses the frequency of the cores."""

    name = "frequency governor"
    effect = "cores begin slowly and speed up while they work: first samples are up to several times too long"
    cure = "sudo cpupower frequency-set -g performance (in a virtual machine: on its host)"

    def look(self, host: HostFiles) -> State:
        found = processor.governors(host)
        if not found:
            return _unknown()
        preferences = processor.energy_preferences(host)
        told = ", ".join(found) + (f" (preference {', '.join(preferences)})" if preferences else "")
        return _judged(told, noisy=found != ("performance",))


class Turbo(NoiseSource):
    """Frequencies above the nominal one."""

    name = "turbo"
    effect = "the frequency follows temperature and the load of other cores: samples drift by 5 to 30 %"
    cure = (
        "for steadier, slower numbers: echo 1 | sudo tee /sys/devices/system/cpu/intel_pstate/no_turbo, "
        "or echo 0 | sudo tee /sys/devices/system/cpu/cpufreq/boost"
    )

    def look(self, host: HostFiles) -> State:
        allowed = processor.turbo(host)
        return _unknown() if allowed is None else _judged("on" if allowed else "off", noisy=allowed)


class HyperThreading(NoiseSource):
    """Two logical processors that share one core."""

    name = "hyper-threading"
    effect = "what runs on the sibling of a core takes up to half of its speed"
    cure = (
        "compute with as many threads as there are physical cores, or "
        "echo off | sudo tee /sys/devices/system/cpu/smt/control"
    )

    def look(self, host: HostFiles) -> State:
        shared = processor.hyper_threading(host)
        return _unknown() if shared is None else _judged("on" if shared else "off", noisy=shared)


class OtherLoad(NoiseSource):
    """Other programs that compute."""

    name = "other load"
    effect = "other programs take turns with the measured one: outliers, and wider intervals"
    cure = "end what computes (see `top`), or wait; dlbricks itself runs one measurement at a time per host"

    def __init__(self, wait: Callable[[float], None] = time.sleep) -> None:
        self._wait = wait

    def look(self, host: HostFiles) -> State:
        share = _share_of_time(host, self._wait, lambda times: times.busy)
        if share is None:
            return _unknown()
        return _judged(f"the processors are {share:.0%} busy", noisy=share > _BUSY_SHARE)


class StolenTime(NoiseSource):
    """Processor time that the hypervisor gives to other guests."""

    name = "stolen time"
    effect = "other guests of the host take the processor: samples grow at random"
    cure = "use an instance type with dedicated cores, or measure at another time"

    def __init__(self, wait: Callable[[float], None] = time.sleep) -> None:
        self._wait = wait

    def look(self, host: HostFiles) -> State:
        share = _share_of_time(host, self._wait, lambda times: times.stolen)
        if share is None:
            return _unknown()
        return _judged(f"{share:.1%} stolen now", noisy=share > _STOLEN_SHARE)


class TimeQuota(NoiseSource):
    """A limit on processor time, as containers have."""

    name = "time quota"
    effect = "a process that has used up its time is stopped until the next period: outliers of tens of milliseconds"
    cure = "run without a limit, e.g. docker run without --cpus; bind to cores instead (--cpuset-cpus)"

    def look(self, host: HostFiles) -> State:
        quota = processor.quota_cores(host)
        if quota is None:
            known = host.exists("proc/self/cgroup")
            return State("none", Verdict.QUIET) if known else _unknown()
        stopped = processor.throttled_periods(host)
        suffix = "" if stopped is None else f", stopped {stopped} times so far"
        return State(f"{quota:g} cores{suffix}", Verdict.NOISY)


class Heat(NoiseSource):
    """Cores that were slowed because they were hot."""

    name = "temperature"
    effect = "a hot processor slows itself down: long runs get slower towards their end"
    cure = "better cooling, fewer threads, or pauses between runs"

    def look(self, host: HostFiles) -> State:
        celsius, slowed = processor.hottest_celsius(host), processor.core_throttle_count(host)
        if celsius is None and slowed is None:
            return _unknown()
        told = [] if celsius is None else [f"{celsius:.0f} degrees Celsius"]
        told += [] if slowed is None else [f"cores slowed {slowed} times since start"]
        return _judged(", ".join(told), noisy=(celsius or 0.0) >= _HOT_CELSIUS or bool(slowed))


class VirtualMachine(NoiseSource):
    """A hypervisor below the kernel."""

    name = "virtual machine"
    effect = "frequency, heat and neighbours are out of sight, and differ between two instances of one type"
    cure = "a bare-metal instance shows them; else compare only results of this host"

    def look(self, host: HostFiles) -> State:
        virtual = processor.is_virtual(host)
        return _unknown() if virtual is None else _judged("yes" if virtual else "no", noisy=virtual)


class HugePages(NoiseSource):
    """Large memory pages that the kernel uses without being asked."""

    name = "transparent huge pages"
    effect = "the kernel merges pages while a program runs: latencies of large tensors change in mid-run"
    cure = "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"

    def look(self, host: HostFiles) -> State:
        chosen = (host.text("sys/kernel/mm/transparent_hugepage/enabled") or "").partition("[")[2].partition("]")[0]
        return _judged(chosen, noisy=chosen == "always") if chosen else _unknown()


class Swap(NoiseSource):
    """Memory that has been moved to a disk."""

    name = "swap"
    effect = "a weight that was moved to disk costs a thousand times its time when it is next read"
    cure = "sudo swapoff -a, or end what fills the memory"

    def look(self, host: HostFiles) -> State:
        described = host.fields("proc/meminfo")
        total, free = (_kibibytes(described.get(name)) for name in ("SwapTotal", "SwapFree"))
        if total is None or free is None:
            return _unknown()
        if not total:
            return State("none", Verdict.QUIET)
        return _judged(f"{(total - free) >> 10} MiB in use", noisy=total > free)


class NumaBalancing(NoiseSource):
    """Memory that the kernel moves between the nodes of a large machine."""

    name = "NUMA balancing"
    effect = "the kernel moves memory between sockets while a program runs: steps in the latency"
    cure = "echo 0 | sudo tee /proc/sys/kernel/numa_balancing, or bind to one node (numactl -N 0 -m 0)"

    def look(self, host: HostFiles) -> State:
        nodes = host.matching("sys/devices/system/node/node[0-9]*")
        if len(nodes) <= 1:
            return State("one node", Verdict.QUIET) if nodes else _unknown()
        balancing = host.number("proc/sys/kernel/numa_balancing")
        if balancing is None:
            return State(f"{len(nodes)} nodes; {UNREADABLE} whether memory moves", Verdict.UNKNOWN)
        return _judged(f"{len(nodes)} nodes, memory {'moves' if balancing else 'stays'}", noisy=bool(balancing))


class Clock(NoiseSource):
    """The clock that latencies are measured with."""

    name = "clock"
    effect = "each reading of a slow clock costs a microsecond or more: small layers look slower"
    cure = "boot with clocksource=tsc tsc=reliable where the machine has a steady counter"

    quick: ClassVar[frozenset[str]] = frozenset({"tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"})

    def look(self, host: HostFiles) -> State:
        source = host.text("sys/devices/system/clocksource/clocksource0/current_clocksource")
        return _judged(source, noisy=source not in self.quick) if source else _unknown()


class Affinity(NoiseSource):
    """The cores that this process may use."""

    name = "bound to cores"
    effect = "a framework that starts a thread per core makes them share those it is bound to"
    cure = "compute with as many threads as there are usable cores"

    def look(self, host: HostFiles) -> State:
        if not hasattr(os, "sched_getaffinity"):
            return _unknown()
        usable, there = len(os.sched_getaffinity(0)), os.cpu_count() or 1
        return _judged(f"{usable} of {there} cores usable", noisy=usable < there)


SOURCES: tuple[NoiseSource, ...] = (
    Governor(),
    Turbo(),
    HyperThreading(),
    OtherLoad(),
    StolenTime(),
    TimeQuota(),
    Affinity(),
    Heat(),
    VirtualMachine(),
    HugePages(),
    Swap(),
    NumaBalancing(),
    Clock(),
)


def findings(host: HostFiles | None = None, sources: Iterable[NoiseSource] = SOURCES) -> tuple[Finding, ...]:
    """Return the state of all sources on this host."""
    host = host or HostFiles()
    return tuple(source.find(host) for source in sources)


def _share_of_time(
    host: HostFiles, wait: Callable[[float], None], part: Callable[[ProcessorTimes], int]
) -> float | None:
    before = processor_times(host)
    if before is None:
        return None
    wait(SECONDS_TO_WATCH)
    after = processor_times(host) or before
    return (part(after) - part(before)) / max(1, after.total - before.total)


def _kibibytes(text: str | None) -> int | None:
    number = (text or "").removesuffix("kB").strip()
    return int(number) if number.isdecimal() else None


def _unknown() -> State:
    return State(UNREADABLE, Verdict.UNKNOWN)


def _judged(told: str, *, noisy: bool) -> State:
    return State(told, Verdict.NOISY if noisy else Verdict.QUIET)
