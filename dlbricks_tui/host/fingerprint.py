"""This host: everything about it that affects latencies, and its fingerprint. None stands for what cannot be read."""

import hashlib
import math
import os
import platform
import re
from collections import Counter
from collections.abc import Collection, Mapping
from typing import NamedTuple, cast

from dlbricks_tui.host_files import HostFiles, memory_limits, quota_cores
from dlbricks_tui.recorded_host import processors_here, recorded_host
from dlbricks_tui.runtime.variant import InstructionSet
from dlbricks_tui.store.records import Fact, Facts, System

CPU = "sys/devices/system/cpu"
# The vector instruction sets that frameworks have kernels for, widest first.
_VECTORS = (("avx512f", "avx512"), ("avx2", "avx2"), ("avx", "avx"), ("sve", "sve"), ("asimd", "neon"))
_AVX512_CORE = ("avx512f", "avx512bw", "avx512vl", "avx512dq")
# The flags of a processor that has all instructions of a set of oneDNN.
_FLAGS: Mapping[InstructionSet, tuple[str, ...]] = {
    InstructionSet.SSE41: ("sse4_1",),
    InstructionSet.AVX: ("avx",),
    InstructionSet.AVX2: ("avx2", "fma"),
    InstructionSet.AVX2_VNNI: ("avx2", "fma", "avx_vnni"),
    InstructionSet.AVX512_CORE: _AVX512_CORE,
    InstructionSet.AVX512_CORE_VNNI: (*_AVX512_CORE, "avx512_vnni"),
    InstructionSet.AVX512_CORE_BF16: (*_AVX512_CORE, "avx512_vnni", "avx512_bf16"),
    InstructionSet.AVX512_CORE_FP16: (*_AVX512_CORE, "avx512_vnni", "avx512_bf16", "avx512_fp16"),
    InstructionSet.ALL: (),
}
UNKNOWN = "unknown"
GIBIBYTE = 1 << 30
_DMI = "sys/class/dmi/id"
_EC2_TYPE = re.compile(r"[a-z][a-z0-9-]*\.[a-z0-9-]+")
_CONTAINER_MARKS = (("/docker", "docker"), ("/kubepods", "kubernetes"), ("/lxc", "lxc"), ("/libpod", "podman"))
# The facts about a system that are kept with its results, as they may change from one result to the next.
KEPT_FACTS = ("kernel", "governor", "turbo", "os", "container")


def cpu_model(host: HostFiles) -> str | None:
    """Return the name of the processor, or the implementer and part numbers of an ARM core."""
    described = host.fields("proc/cpuinfo")
    if name := described.get("model name"):
        return " ".join(name.split())
    implementer, part = described.get("CPU implementer"), described.get("CPU part")
    return f"ARM {implementer} {part}" if implementer and part else None


def vector_instructions(host: HostFiles) -> str | None:
    """Return the widest vector instruction set of the processor."""
    flags = _flags(host)
    return next((name for flag, name in _VECTORS if flag in flags), None)


def instruction_sets(host: HostFiles) -> tuple[InstructionSet, ...]:
    """Return the instruction sets of oneDNN that the processor has, the narrowest first."""
    flags = _flags(host)
    return tuple(it for it, needed in _FLAGS.items() if flags.issuperset(needed))


def _flags(host: HostFiles) -> frozenset[str]:
    described = host.fields("proc/cpuinfo")
    return frozenset((described.get("flags") or described.get("Features") or "").split())


def is_virtual(host: HostFiles) -> bool | None:
    """True on a virtual machine; only x86 processors tell."""
    flags = host.fields("proc/cpuinfo").get("flags")
    return None if flags is None else "hypervisor" in flags.split()


def governors(host: HostFiles) -> tuple[str, ...]:
    """Return the distinct frequency governors of the cores; empty if unknown."""
    return distinct(host, f"{CPU}/cpu[0-9]*/cpufreq/scaling_governor")


def turbo(host: HostFiles) -> bool | None:
    """True if cores may exceed their nominal frequency."""
    # The Intel driver has the inverse setting.
    forbidden = host.number(f"{CPU}/intel_pstate/no_turbo")
    if forbidden is not None:
        return not forbidden
    allowed = host.number(f"{CPU}/cpufreq/boost")
    return None if allowed is None else bool(allowed)


def hyper_threading(host: HostFiles) -> bool | None:
    """True if two logical processors share a core."""
    active = host.number(f"{CPU}/smt/active")
    if active is not None:
        return bool(active)
    siblings = distinct(host, f"{CPU}/cpu[0-9]*/topology/thread_siblings_list")
    return any(re.search("[,-]", listed) for listed in siblings) if siblings else None


def memory_bytes(host: HostFiles) -> int | None:
    """Return the memory of the host, or the limit of the control group."""
    total = host.fields("proc/meminfo").get("MemTotal", "").split()
    known = [int(total[0]) * 1024] if total and total[0].isdecimal() else []
    return min([*known, *memory_limits(host)], default=None)


def distinct(host: HostFiles, pattern: str) -> tuple[str, ...]:
    """Return the different contents of the files that match a pattern."""
    found = (host.text(path) for path in host.matching(pattern))
    return tuple(sorted({text for text in found if text}))


class ProcessorTimes(NamedTuple):
    """Times of one or all processors in kernel ticks; `busy` excludes time that a hypervisor has stolen."""

    total: int
    busy: int
    stolen: int

    @property
    def taken_seconds(self) -> float:
        """Seconds that were used, by this host or by other guests of its hypervisor."""
        return (self.busy + self.stolen) / os.sysconf("SC_CLK_TCK")


def times_by_processor(host: HostFiles) -> dict[str, ProcessorTimes]:
    """Return the times so far of each processor, and of all together as `cpu`, as far as they are known."""
    found: dict[str, ProcessorTimes] = {}
    for line in (host.text("proc/stat") or "").splitlines():
        name, *numbers = line.split()[:9] or [""]
        if name.rstrip("0123456789") == "cpu" and len(numbers) == 8 and all(map(str.isdecimal, numbers)):
            # user, nice, system, idle, waiting, interrupts, soft interrupts, stolen; guests count within user.
            ticks = [int(number) for number in numbers]
            idle, stolen = ticks[3] + ticks[4], ticks[7]
            found[name] = ProcessorTimes(sum(ticks), sum(ticks) - idle - stolen, stolen)
    return found


class DataCache(NamedTuple):
    """A cache of the first processor, and the number of processors that share it."""

    level: int
    bytes: int
    processors: int


def caches(host: HostFiles) -> tuple[DataCache, ...]:
    """Return the caches that hold data, as far as the kernel tells."""
    found = []
    for folder in host.matching(f"{CPU}/cpu0/cache/index[0-9]*"):
        level, size = host.number(f"{folder}/level"), (host.text(f"{folder}/size") or "").removesuffix("K")
        if level is not None and size.isdecimal() and host.text(f"{folder}/type") != "Instruction":
            shared_by = _processors_in(host.text(f"{folder}/shared_cpu_list") or "")
            found.append(DataCache(level, int(size) << 10, max(1, len(shared_by))))
    return tuple(found)


def _processors_in(listed: str) -> list[int]:
    """Return the processors in a list such as `0-3,8`."""
    found: list[int] = []
    for part in listed.split(","):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            found += range(int(first), int(last or first) + 1)
    return found


def core_kinds(host: HostFiles, usable: Collection[int]) -> str:
    """Return how many processors of each kind are usable, such as `4xatom`; empty unless some of a mixed host are."""
    atoms = _processors_in(host.text("sys/devices/cpu_atom/cpus") or "")
    everything = _processors_in(host.text(f"{CPU}/online") or "")
    # Arm processors have a capacity; hybrid ones of Intel are listed by kind.
    kinds = {it: host.text(f"{CPU}/cpu{it}/cpu_capacity") or ("atom" if it in atoms else "core") for it in everything}
    here = Counter(kinds[it] for it in usable if it in kinds)
    if len({*kinds.values()}) < 2 or here == Counter(kinds.values()):
        return ""
    return "+".join(f"{count}x{kind}" for kind, count in sorted(here.items()))


def fingerprint(host: HostFiles | None = None, usable_cores: int | None = None) -> System:
    """Return this host as a system of the store; its id is stable while nothing changes that affects latencies."""
    if host is None and (recorded := recorded_host()) is not None:
        # Loaded here: only demonstrations need it.
        from dlbricks_tui.store.documents import record_of

        return cast("System", record_of("systems", recorded.system))
    host = host or HostFiles()
    cores = processors_here().number if usable_cores is None else usable_cores
    cpu = cpu_model(host) or platform.machine() or UNKNOWN
    memory = memory_bytes(host) or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    # The firmware of Nitro machines names the type of an EC2 instance.
    product = host.text(f"{_DMI}/product_name") or ""
    is_named = host.text(f"{_DMI}/sys_vendor") == "Amazon EC2" and _EC2_TYPE.fullmatch(product)
    instance = product if is_named else ""
    # The settings that affect latencies and that a user or a scheduler can change.
    settings: Facts = (
        ("quota_cores", quota_cores(host) or "none"),
        ("hyper_threading", _known(hyper_threading(host))),
        ("governor", "+".join(governors(host)) or UNKNOWN),
        ("turbo", _known(turbo(host))),
        ("vectors", _known(vector_instructions(host))),
    )
    bound = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()
    if kinds := core_kinds(host, bound):
        # The same number of faster cores is another system.
        settings = (*settings, ("core_kinds", kinds))
    # The kernel is left out: an update would orphan all results of a host.
    # The memory is rounded, because the firmware reserves a varying part of it.
    deciding = (cpu, cores, math.ceil(memory / GIBIBYTE), instance, *settings)
    digest = hashlib.sha256(repr(deciding).encode()).hexdigest()[:8]
    # Trademarks and clock rates make a name long, and the digest covers them.
    plain = re.sub(r"\((R|TM)\)|@.*|\bCPU\b|\bProcessor\b", "", instance or cpu, flags=re.IGNORECASE)
    slug = "-".join(re.findall(r"[a-z0-9.]+", plain.lower())) or UNKNOWN
    return System(
        id=f"{slug}-{cores}c-{digest}",
        name=f"{instance or cpu}, {cores} core{'s' if cores != 1 else ''}",
        cpu=cpu,
        cores=cores,
        memory_bytes=memory,
        instance_type=instance,
        facts=(*settings, *_surroundings(host)),
    )


def host_facts(system: System, host: HostFiles | None = None) -> Facts:
    """Return the facts about this host, which is `system`, that results are kept with."""
    described = dict(system.facts)
    kept = ((name, _known(described.get(name))) for name in KEPT_FACTS)
    # Virtual machines may hide or invent it.
    microcode = (host or HostFiles()).fields("proc/cpuinfo").get("microcode")
    return (("cpu", system.cpu), ("microcode", microcode or UNKNOWN), *kept)


def _surroundings(host: HostFiles) -> Facts:
    """Return facts that may explain why two results differ."""
    release = host.fields("etc/os-release", "=")
    return (
        ("kernel", host.text("proc/sys/kernel/osrelease") or platform.release() or UNKNOWN),
        ("os", release.get("PRETTY_NAME", "").strip('"') or platform.system() or UNKNOWN),
        ("virtual", _known(is_virtual(host))),
        ("container", _container(host)),
        ("machine", platform.machine() or UNKNOWN),
        ("vendor", host.text(f"{_DMI}/sys_vendor") or UNKNOWN),
        ("last_level_cache", host.text("sys/devices/system/cpu/cpu0/cache/index3/size") or UNKNOWN),
    )


def _container(host: HostFiles) -> str:
    if host.exists(".dockerenv"):
        return "docker"
    if host.exists("run/.containerenv"):
        return "podman"
    groups = host.text("proc/1/cgroup")
    if groups is None:
        return UNKNOWN
    return next((name for mark, name in _CONTAINER_MARKS if mark in groups), "none")


def _known(value: Fact) -> Fact:
    return UNKNOWN if value is None else value
