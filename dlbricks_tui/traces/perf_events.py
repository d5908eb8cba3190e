"""The counters of the processor and of Linux for the threads of a process, by `perf_event_open`.

Linux refuses many of them: to other users, on virtual machines, and in containers. So each event that cannot be counted
is named with the reason.
"""

import ctypes
import errno
import os
import platform
import struct
import sys
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, IntFlag
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from dlbricks_tui.store.records import Facts

# The number of the system call.
_CALLS: Mapping[str, int] = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "ppc64le": 319, "s390x": 331}
_PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
# The first version of `struct perf_event_attr`, which all versions of Linux take: type, size, config, sample period,
# sample type, format of readings, flags, wake-up, type of breakpoint, and its address.
_ATTRIBUTES = struct.Struct("=IIQQQQQIIQ")
# Value, time enabled, time counted.
_READING = struct.Struct("=QQQ")
_TOTAL_TIMES = 3
_CLOSE_ON_EXEC = 8
_ANY_PROCESSOR, _NO_GROUP = -1, -1


class _Type(Enum):
    HARDWARE = 0
    SOFTWARE = 1


class _Flag(IntFlag):
    WITHOUT_KERNEL = 1 << 5
    WITHOUT_HYPERVISOR = 1 << 6


class _Event(NamedTuple):
    name: str
    type: _Type
    config: int
    # Linux counts it in its own code: without the right to see that, it is always 0.
    in_kernel: bool = False

    @property
    def in_user_space(self) -> tuple[bool, ...]:
        """Whether to count in user space alone: first what tells more, then what may be allowed."""
        if self.type is _Type.HARDWARE:
            return (True,)
        return (False,) if self.in_kernel else (False, True)


EVENTS = (
    _Event("cycles", _Type.HARDWARE, 0),
    _Event("instructions", _Type.HARDWARE, 1),
    _Event("cache-misses", _Type.HARDWARE, 3),
    _Event("branch-misses", _Type.HARDWARE, 5),
    _Event("task-clock", _Type.SOFTWARE, 1),
    _Event("page-faults", _Type.SOFTWARE, 2),
    _Event("context-switches", _Type.SOFTWARE, 3, in_kernel=True),
    _Event("cpu-migrations", _Type.SOFTWARE, 4, in_kernel=True),
)
_NO_MORE_FILES = (errno.EMFILE, errno.ENFILE)


@dataclass(frozen=True, slots=True)
class PerfTotals:
    """The counts of all threads together, and one line for the events that could not be counted, each with a reason."""

    totals: Facts
    missing: tuple[str, ...]


class PerfEvents:
    """Counts the events of the threads that a process has at the beginning of the `with` block.

    Threads that begin later are not counted. Events of the processor are counted in user space only.
    """

    def __init__(self, pid: int, proc: Path = Path("/proc")) -> None:
        self._folder = proc / str(pid) / "task"
        self._files: dict[str, list[int]] = {}
        self._refused: dict[str, str] = {}
        self._before: Mapping[str, float] = {}
        self._found: Mapping[str, float] = {}

    def __enter__(self) -> "PerfEvents":
        """Open all events that are allowed; no event is an error."""
        if sys.platform != "linux":
            self._refused = dict.fromkeys((it.name for it in EVENTS), "only Linux has perf events")
            return self
        threads = list[int]()
        with suppress(OSError):
            threads += [int(it.name) for it in self._folder.iterdir()]
        for event in EVENTS:
            self._open(event, threads)
        self._before = self._read()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        after = self._read()
        self._found = {name: after[name] - before for name, before in self._before.items()}
        for files in self._files.values():
            _close(files)

    @property
    def totals(self) -> PerfTotals:
        """The counts within the `with` block, after it."""
        counted = tuple((name.replace("-", "_"), round(value)) for name, value in self._found.items())
        names: defaultdict[str, list[str]] = defaultdict(list)
        for name, reason in self._refused.items():
            names[reason].append(name)
        return PerfTotals(counted, tuple(f"{', '.join(those)}: {reason}" for reason, those in names.items()))

    def _open(self, event: _Event, threads: list[int]) -> None:
        opened: list[int] = []
        failure = errno.ESRCH
        for thread in threads:
            file: int | None = None
            for in_user_space in event.in_user_space:
                file, failure = _open_event(event, thread, in_user_space)
                if failure != errno.EACCES:
                    break
            if file is not None:
                opened.append(file)
            elif failure != errno.ESRCH:
                # The sum of some threads would be taken for that of all.
                _close(opened)
                self._refused[event.name] = _reason(failure)
                return
        if opened:
            self._files[event.name] = opened
        else:
            self._refused[event.name] = _reason(failure)

    def _read(self) -> dict[str, float]:
        counts = dict.fromkeys(self._files, 0.0)
        for name, files in self._files.items():
            for file in files:
                value, enabled, counted = _READING.unpack(os.read(file, _READING.size))
                # Where the processor has too few counters, Linux counts for a part of the time.
                counts[name] += float(value) * enabled / counted if counted else 0.0
        return counts


def _open_event(event: _Event, thread: int, in_user_space: bool) -> tuple[int | None, int]:
    """Return the file of an event of a thread, or else the number of the error."""
    number = _CALLS.get(platform.machine())
    if number is None:
        return None, errno.ENOSYS
    flags = _Flag.WITHOUT_HYPERVISOR | (_Flag.WITHOUT_KERNEL if in_user_space else _Flag(0))
    attributes = _ATTRIBUTES.pack(
        event.type.value, _ATTRIBUTES.size, event.config, 0, 0, _TOTAL_TIMES, int(flags), 0, 0, 0
    )
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    file = call(
        ctypes.c_long(number),
        ctypes.c_char_p(attributes),
        ctypes.c_int(thread),
        ctypes.c_int(_ANY_PROCESSOR),
        ctypes.c_int(_NO_GROUP),
        ctypes.c_ulong(_CLOSE_ON_EXEC),
    )
    return (file, 0) if file >= 0 else (None, ctypes.get_errno())


def _reason(failure: int) -> str:
    if failure in (errno.EACCES, errno.EPERM):
        try:
            paranoid = _PARANOID.read_text().strip()
        except OSError:
            paranoid = "unknown"
        return f"not allowed (kernel.perf_event_paranoid is {paranoid}; 1 allows all of them)"
    if failure in (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV, errno.EINVAL):
        return "this processor does not count them, or its virtual machine hides them"
    if failure == errno.ENOSYS:
        return "this Linux has no perf events"
    if failure in _NO_MORE_FILES:
        return "too many open files (`ulimit -n` allows more)"
    return os.strerror(failure)


def _close(files: list[int]) -> None:
    for file in files:
        with suppress(OSError):
            os.close(file)
