"""The threads of a process by the counters of Linux and of the processor.

`ThreadWatch` says when each ran on which processor, and when it waited for one. Linux adds to the run time of a thread
when the thread stops, and every few milliseconds while it goes on. So the length of a span is exact where a thread ran
between two sleeps, and its place is known to about the time between readings.

`PerfEvents` counts by `perf_event_open`. Linux refuses many events: to other users, on virtual machines, and in
containers. So each event that cannot be counted is named with the reason.
"""

import ctypes
import errno
import os
import platform
import struct
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from dlbricks_tui.store.records import Facts
from dlbricks_tui.traces.trace import Counter, TraceError, TraceSpan, Track, TrackKind

WAITS = "waits for a processor"
_NS_PER_MS = 1e6
# The fields of `stat` after the name of the thread, which may contain anything.
_STATE, _MINOR, _MAJOR, _PROCESSOR = 0, 7, 9, 36
_RUNNABLE = b"R"
_SWITCHES = (b"\nvoluntary_ctxt_switches:", b"\nnonvoluntary_ctxt_switches:")


class ThreadState(NamedTuple):
    """The state of a thread and its page faults so far: its `stat`."""

    runnable: bool
    processor: int
    # Minor and major ones.
    faults: tuple[int, int]


class Reading(NamedTuple):
    """A thread at a moment."""

    time_ns: int
    run_ns: int
    wait_ns: int
    runnable: bool
    processor: int


@dataclass(slots=True)
class ThreadHistory:
    """What was read about a thread, in the order of time."""

    thread: int
    name: str
    readings: list[Reading] = field(default_factory=list)
    # The values of `_COUNTS` at moments.
    counts: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)


def times_in(schedstat: bytes) -> tuple[int, int]:
    """Return how long a thread ran and waited by `/proc/PID/task/TID/schedstat`; raise ValueError for other texts."""
    run_ns, wait_ns, _ = map(int, schedstat.split())
    return run_ns, wait_ns


def state_in(stat: bytes) -> ThreadState:
    """Return the state in the text of `/proc/PID/task/TID/stat`; raise ValueError if it is another text."""
    rest = stat[stat.rindex(b")") + 1 :].split(None, _PROCESSOR + 1)
    if len(rest) <= _PROCESSOR:
        raise ValueError("too few fields")
    return ThreadState(rest[_STATE] == _RUNNABLE, int(rest[_PROCESSOR]), (int(rest[_MINOR]), int(rest[_MAJOR])))


def switches_in(status: bytes) -> tuple[int, ...]:
    """Return how often a thread gave its processor up because it had to wait, and because another one took it.

    They are in the text of `/proc/PID/task/TID/status`; raise ValueError for other texts.
    """
    return tuple(int(status[status.index(name) + len(name) :].split(None, 1)[0]) for name in _SWITCHES)


def running_spans(readings: Sequence[Reading]) -> tuple[TraceSpan, ...]:
    """Return when a thread ran on which processor, and when it waited for one, in nanoseconds of the readings."""
    spans, begin = list[TraceSpan](), 0
    for number in range(1, len(readings)):
        # A period goes from a reading at which the thread sleeps to the next such one.
        if not readings[number].runnable or number == len(readings) - 1:
            if readings[number].run_ns > readings[begin].run_ns:
                spans += _spans_in(readings[begin : number + 1])
            begin = number
    return tuple(spans)


def tracks(histories: Iterable[ThreadHistory], start_ns: int, end_ns: int) -> tuple[Track, ...]:
    """Return a track for each thread that ran between two moments, in nanoseconds from the first one."""
    found = []
    for it in histories:
        spans = []
        for span in running_spans(it.readings):
            begin, end = max(span.start_ns, start_ns), min(span.start_ns + span.duration_ns, end_ns)
            if end > begin:
                spans.append(replace(span, start_ns=begin - start_ns, duration_ns=end - begin))
        if spans:
            found.append(Track(name=f"{it.name} {it.thread}", kind=TrackKind.THREAD, spans=tuple(spans)))
    return tuple(found)


def counters(histories: Sequence[ThreadHistory], start_ns: int, end_ns: int) -> tuple[Counter, ...]:
    """Return the counters of all threads together, from 0 at the first moment on."""
    times = _added_up([[(it.time_ns, (it.run_ns, it.wait_ns)) for it in each.readings] for each in histories])
    counts = _added_up([it.counts for it in histories])
    columns = [
        *((name, "ms", times, number, _NS_PER_MS) for number, name in enumerate(_TIMES)),
        *((name, "", counts, number, 1.0) for number, name in enumerate(_COUNTS)),
    ]
    return tuple(
        _counter(name, unit, [(at, values[number] / scale) for at, values in rows.items()], start_ns, end_ns)
        for name, unit, rows, number, scale in columns
    )


_TIMES = ("running", "waiting for a processor")
_COUNTS = ("voluntary context switches", "involuntary context switches", "minor page faults", "major page faults")


def _spans_in(period: Sequence[Reading]) -> Iterator[TraceSpan]:
    """Yield the spans of a period: as long as the thread ran and waited in it, in its middle."""
    first, last = period[0], period[-1]
    length = last.time_ns - first.time_ns
    ran, waited = last.run_ns - first.run_ns, last.wait_ns - first.wait_ns
    # A thread that goes on is added up later than it is read: nothing lasts longer than the period.
    taken = min(length, ran + waited)
    # Where a period begins or ends with a running thread, the thread ran up to there.
    slack = length - taken
    start = first.time_ns if first.runnable else first.time_ns + (slack if last.runnable else slack // 2)
    end = start + taken
    # The thread waited for a processor where Linux has counted a wait, which it does at its end.
    gaps, at = [], start
    for before, after in pairwise(period):
        waited = after.wait_ns - before.wait_ns
        if waited > 0 and at < end:
            resumed = min(max((before.time_ns + after.time_ns) // 2, at + waited), end)
            gaps.append((max(at, resumed - waited), resumed))
            at = resumed
    # Its processors, each with the time from which on it was there: a sleeping thread has that on which it ran last.
    known = [it for it in period if it.runnable] or [last]
    processors = [(first.time_ns, known[0].processor)]
    processors += [(it.time_ns, it.processor) for before, it in pairwise(known) if before.processor != it.processor]
    at = start
    for gap_start, gap_end in [*gaps, (end, end)]:
        ends = [*(since for since, _ in processors[1:]), gap_start]
        for (since, processor), until in zip(processors, ends, strict=True):
            begin, stop = max(at, since), min(gap_start, max(until, since))
            if stop > begin:
                name, where = f"running on cpu {processor}", (("processor", processor),)
                yield TraceSpan(name=name, start_ns=begin, duration_ns=stop - begin, details=where)
        if gap_end > gap_start:
            yield TraceSpan(name=WAITS, start_ns=gap_start, duration_ns=gap_end - gap_start)
        at = gap_end


def _added_up(of_threads: Sequence[Sequence[tuple[int, tuple[int, ...]]]]) -> Mapping[int, tuple[int, ...]]:
    """Return, for each moment at which a thread was read, the sums over all threads of what each had counted by then.

    A thread counts from its first reading on.
    """
    rows = sorted((at, number, values) for number, rows in enumerate(of_threads) for at, values in rows)
    latest: dict[int, tuple[int, ...]] = {}
    sums: dict[int, tuple[int, ...]] = {}
    total: tuple[int, ...] = ()
    for at, number, values in rows:
        before = latest.get(number, values)
        total = tuple(map(sum, zip(total or (0,) * len(values), values, (-it for it in before), strict=True)))
        latest[number] = values
        sums[at] = total
    return sums


def _counter(name: str, unit: str, rows: Sequence[tuple[int, float]], start_ns: int, end_ns: int) -> Counter:
    """Return a counter from 0 on, with the moments at which it changed."""
    base = next((value for at, value in reversed(rows) if at <= start_ns), rows[0][1] if rows else 0.0)
    kept = [(0, 0.0)]
    for at, value in rows:
        if start_ns < at <= end_ns and value - base != kept[-1][1]:
            kept.append((at - start_ns, value - base))
    return Counter(name=name, unit=unit, times_ns=tuple(at for at, _ in kept), values=tuple(it for _, it in kept))


# With the eight threads of a worker that computes on both processors of a virtual machine, reading takes 7 % of one of
# them at this interval, and 10 % at half of it. The lengths of most spans are exact at any interval.
INTERVAL_SECONDS = 0.002
# Threads are listed, and counters read, once in this many readings: they take longer.
_READINGS_PER_LOOK = 32
# Most threads of a worker sleep throughout. One that has slept for so many readings is read in one of these many.
_READINGS_UNTIL_IDLE, _READINGS_PER_IDLE_ONE = 64, 8
# The texts that are read are shorter.
_MOST_BYTES = 4096


class ThreadWatch:
    """Reads the threads of a process, in a thread of this one, within the `with` block."""

    def __init__(self, pid: int, interval_seconds: float = INTERVAL_SECONDS, proc: Path = Path("/proc")) -> None:
        self._folder = proc / str(pid) / "task"
        self._interval_seconds = interval_seconds
        self._live: dict[str, _WatchedThread] = {}
        self._histories: list[ThreadHistory] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="thread watch", daemon=True)

    def __enter__(self) -> "ThreadWatch":
        """Read all threads once, and go on reading; raise TraceError where that is impossible."""
        if sys.platform != "linux":
            raise TraceError("the thread level needs /proc of Linux: leave this level out")
        self._look()
        if not self._live:
            raise TraceError(f"no thread can be read in {self._folder}: leave the thread level out")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        for it in self._live.values():
            it.close()

    def activity(self, start_ns: int, end_ns: int) -> tuple[tuple[Track, ...], tuple[Counter, ...]]:
        """Return what the threads did between two moments of `time.monotonic_ns`, after the `with` block.

        The counters are of all threads together, from 0 on.
        """
        return tracks(self._histories, start_ns, end_ns), counters(self._histories, start_ns, end_ns)

    def _watch(self) -> None:
        readings = 0
        due = time.monotonic()
        while not self._ended.is_set():
            readings += 1
            if readings % _READINGS_PER_LOOK:
                self._read(readings)
            else:
                self._look()
            # A late reading does not make the next ones follow sooner.
            due = max(due + self._interval_seconds, time.monotonic())
            time.sleep(max(0.0, due - time.monotonic()))
        self._look()

    def _look(self) -> None:
        """Find threads that have begun, and read everything about each."""
        with suppress(OSError):
            for thread in os.listdir(self._folder):  # noqa: PTH208 - half the time of Path.iterdir
                if thread not in self._live:
                    with suppress(OSError):
                        self._live[thread] = watched = _WatchedThread(self._folder / thread)
                        self._histories.append(watched.history)
        self._read(0)
        for thread, watched in list(self._live.items()):
            if not watched.count():
                self._forget(thread)

    def _read(self, number: int) -> None:
        ended = [thread for thread, watched in self._live.items() if not watched.read(number)]
        for thread in ended:
            self._forget(thread)

    def _forget(self, thread: str) -> None:
        # Linux may give its number to a new thread.
        self._live.pop(thread).close()


class _WatchedThread:
    """The open files of a thread, and what was read from them."""

    def __init__(self, folder: Path) -> None:
        name = (folder / "comm").read_bytes().strip().decode(errors="replace")
        self.history = ThreadHistory(int(folder.name), name)
        self._files: list[int] = []
        # The text of the last reading; equal ones are not read further.
        self._text = b""
        self._last = Reading(0, 0, 0, runnable=False, processor=0)
        self._known_until_ns = self._asleep = 0
        try:
            for each in ("schedstat", "stat", "status"):
                self._files.append(os.open(folder / each, os.O_RDONLY | os.O_CLOEXEC))
        except FileNotFoundError:
            self.close()
            if (folder / "stat").exists():
                reason = "this Linux does not count the run time of threads: leave the thread level out"
                raise TraceError(reason) from None
            raise

    def close(self) -> None:
        """Close the files, and add what was read last to the history."""
        self._keep()
        for file in self._files:
            os.close(file)
        self._files.clear()

    def read(self, number: int) -> bool:
        """Read the times, and the state if they have changed; return False if the thread has ended.

        `number` counts the readings of all threads: a thread that has slept for long is read in some of them.
        """
        if self._asleep >= _READINGS_UNTIL_IDLE and number % _READINGS_PER_IDLE_ONE:
            return True
        now = time.monotonic_ns()
        try:
            text = os.pread(self._files[0], _MOST_BYTES, 0)
            # A thread that has neither got nor lost a processor is in the same state as before.
            if text != self._text:
                times, state = times_in(text), state_in(os.pread(self._files[1], _MOST_BYTES, 0))
                self._keep()
                self._text, self._asleep = text, 0
                self._last = Reading(now, *times, state.runnable, state.processor)
                self._keep()
        except (OSError, ValueError):
            return False
        self._known_until_ns = now
        self._asleep += not self._last.runnable
        return True

    def _keep(self) -> None:
        """Add the last reading to the history, at the latest time at which it was still so."""
        if self._text:
            self.history.readings.append(self._last._replace(time_ns=max(self._last.time_ns, self._known_until_ns)))

    def count(self) -> bool:
        """Read the context switches and page faults; return False if the thread has ended."""
        now = time.monotonic_ns()
        try:
            switches = switches_in(os.pread(self._files[2], _MOST_BYTES, 0))
            state = state_in(os.pread(self._files[1], _MOST_BYTES, 0))
        except (OSError, ValueError):
            return False
        self.history.counts.append((now, switches + state.faults))
        return True


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
_HARDWARE, _SOFTWARE = 0, 1
_WITHOUT_KERNEL, _WITHOUT_HYPERVISOR = 1 << 5, 1 << 6
# Where Linux counts: the first of these that it allows. Counts that include the kernel tell more; those of events in
# its own code are always 0 without it.
_IN_USER_SPACE, _IN_KERNEL = (True,), (False,)


class _Event(NamedTuple):
    name: str
    type: int
    config: int
    # Values of the kernel's `exclude_kernel` to try in turn.
    in_user_space: tuple[bool, ...]


EVENTS = (
    _Event("cycles", _HARDWARE, 0, _IN_USER_SPACE),
    _Event("instructions", _HARDWARE, 1, _IN_USER_SPACE),
    _Event("cache-misses", _HARDWARE, 3, _IN_USER_SPACE),
    _Event("branch-misses", _HARDWARE, 5, _IN_USER_SPACE),
    _Event("task-clock", _SOFTWARE, 1, _IN_KERNEL + _IN_USER_SPACE),
    _Event("page-faults", _SOFTWARE, 2, _IN_KERNEL + _IN_USER_SPACE),
    _Event("context-switches", _SOFTWARE, 3, _IN_KERNEL),
    _Event("cpu-migrations", _SOFTWARE, 4, _IN_KERNEL),
)
_NO_MORE_FILES = (errno.EMFILE, errno.ENFILE)


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
        """Open all events that are allowed; no event is an error. Threads are watched on Linux only, which has them."""
        threads = list[int]()
        with suppress(OSError):
            threads += [int(it.name) for it in self._folder.iterdir()]
        for event in EVENTS:
            self._open(event, threads)
        self._before = self._read()
        return self

    def __exit__(self, *_: object) -> None:
        after = self._read()
        self._found = {name: after[name] - before for name, before in self._before.items()}
        for files in self._files.values():
            _close(files)

    @property
    def totals(self) -> tuple[Facts, tuple[str, ...]]:
        """The counts of all threads within the `with` block, after it, and lines with the events that lack, and why."""
        counted = tuple((name.replace("-", "_"), round(value)) for name, value in self._found.items())
        names: defaultdict[str, list[str]] = defaultdict(list)
        for name, reason in self._refused.items():
            names[reason].append(name)
        return counted, tuple(f"{', '.join(those)}: {reason}" for reason, those in names.items())

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
    flags = _WITHOUT_HYPERVISOR | (_WITHOUT_KERNEL if in_user_space else 0)
    attributes = _ATTRIBUTES.pack(event.type, _ATTRIBUTES.size, event.config, 0, 0, _TOTAL_TIMES, flags, 0, 0, 0)
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
