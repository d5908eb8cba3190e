"""The fingerprint of this host: everything about it that affects latencies."""

import hashlib
import math
import os
import platform
import re
from typing import cast

from dlbricks_tui.host import processor
from dlbricks_tui.host.processor import HostFiles
from dlbricks_tui.recorded_host import processors_here, recorded_host
from dlbricks_tui.store.records import Fact, Facts, System

UNKNOWN = "unknown"
GIBIBYTE = 1 << 30

_DMI = "sys/class/dmi/id"
_EC2_TYPE = re.compile(r"[a-z][a-z0-9-]*\.[a-z0-9-]+")
_CONTAINER_MARKS = (("/docker", "docker"), ("/kubepods", "kubernetes"), ("/lxc", "lxc"), ("/libpod", "podman"))
# The facts about a system that are kept with its results, as they may change from one result to the next.
_KEPT = ("kernel", "governor", "turbo", "os", "container")


def fingerprint(host: HostFiles | None = None, usable_cores: int | None = None) -> System:
    """Return this host as a system of the store; its id is stable while nothing changes that affects latencies."""
    if host is None and (recorded := recorded_host()) is not None:
        # Loaded here: only demonstrations need it.
        from dlbricks_tui.store.documents import record_of

        return cast("System", record_of("systems", recorded.system))
    host = host or HostFiles()
    cores = processors_here().number if usable_cores is None else usable_cores
    cpu = processor.cpu_model(host) or platform.machine() or UNKNOWN
    memory = processor.memory_bytes(host) or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    # The firmware of Nitro machines names the type of an EC2 instance.
    product = host.text(f"{_DMI}/product_name") or ""
    is_named = host.text(f"{_DMI}/sys_vendor") == "Amazon EC2" and _EC2_TYPE.fullmatch(product)
    instance = product if is_named else ""
    # The settings that affect latencies and that a user or a scheduler can change.
    settings: Facts = (
        ("quota_cores", processor.quota_cores(host) or "none"),
        ("hyper_threading", _known(processor.hyper_threading(host))),
        ("governor", "+".join(processor.governors(host)) or UNKNOWN),
        ("turbo", _known(processor.turbo(host))),
        ("vectors", _known(processor.vector_instructions(host))),
    )
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
    microcode = processor.microcode(host or HostFiles())
    kept = ((name, _known(described.get(name))) for name in _KEPT)
    return (("cpu", system.cpu), ("microcode", _known(microcode)), *kept)


def _surroundings(host: HostFiles) -> Facts:
    """Return facts that may explain why two results differ."""
    release = host.fields("etc/os-release", "=")
    return (
        ("kernel", host.text("proc/sys/kernel/osrelease") or platform.release() or UNKNOWN),
        ("os", release.get("PRETTY_NAME", "").strip('"') or platform.system() or UNKNOWN),
        ("virtual", _known(processor.is_virtual(host))),
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
