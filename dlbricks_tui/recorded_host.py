"""The recorded host of a demonstration.

In a demonstration, a host that was recorded takes the place of this one: its system, its runtimes and its results are
shown, and nothing is measured.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from dlbricks_tui.host_files import HostFiles, cores_within, quota_cores

NOTHING_IS_MEASURED = "a demonstration measures nothing: quit it, and start `dlbricks` itself"
_CPU = Path("/sys/devices/system/cpu")


class Processors(NamedTuple):
    """The logical processors that programs may use, on which the usual number of threads depends."""

    number: int
    machine: str
    # True if two of them share a core.
    hyper_threading: bool
    # The limit on their time, in cores, as a container has; anything but a number is no limit.
    quota: object = None

    @property
    def to_use(self) -> int:
        """The most threads that none of them waits for another, nor for the next period of the limit."""
        return cores_within(self.number, self.quota)

    @classmethod
    def of(cls, number: int, facts: Mapping[str, Any]) -> Processors | None:
        """Return the processors of a system of the store; None if its facts do not name the architecture."""
        machine = facts.get("machine")
        if not machine:
            return None
        return cls(number, str(machine), facts.get("hyper_threading") is True, facts.get("quota_cores"))


@dataclass(frozen=True, slots=True)
class RecordedHost:
    """A host as it was when it was recorded."""

    # The network name, on which cached answers of frameworks depend.
    name: str
    # The system as a document of the store.
    system: Mapping[str, Any]
    # The versions of the packages of frameworks.
    versions: Mapping[str, str]
    python: str
    # The date of the recording.
    when: str

    @property
    def origin(self) -> str:
        """The system and the date, in words."""
        return f"recorded on {self.system['name']}, {self.when}"

    def version_of(self, packages: Iterable[str]) -> str | None:
        """Return the version of the first of the packages that the host has."""
        return next((self.versions[package] for package in packages if package in self.versions), None)


_recorded: RecordedHost | None = None


def recorded_host() -> RecordedHost | None:
    """Return the host that takes the place of this one; None outside of demonstrations."""
    return _recorded


def processors_here() -> Processors:
    """Return the processors of this host, or those of the recorded one."""
    if _recorded is not None and (recorded := Processors.of(_recorded.system["cores"], _recorded.system["facts"])):
        return recorded
    # Only Linux can bind a process to some of them.
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    return Processors(len(usable), platform.machine(), _share_cores(usable), quota_cores(HostFiles()))


def _share_cores(processors: Collection[int]) -> bool:
    """Return whether two of these logical processors share a core; False where the kernel does not tell."""
    with suppress(OSError):
        cores = {(_CPU / f"cpu{it}/topology/thread_siblings_list").read_text(encoding="ascii") for it in processors}
        return len(cores) < len(processors)
    return False


def host_name() -> str:
    """Return the network name of this host."""
    return platform.node() if _recorded is None else _recorded.name


@contextmanager
def in_place_of_this_host(host: RecordedHost | None) -> Iterator[None]:
    """Let a recorded host take the place of this one, in all threads of this process; None ends that for a while."""
    global _recorded
    before, _recorded = _recorded, host
    try:
        yield
    finally:
        _recorded = before
