"""Reading the threads of a process from outside while it computes."""

import os
import sys
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from dlbricks_tui.traces.threads import (
    Counts,
    Reading,
    ThreadHistory,
    ThreadsError,
    counters,
    state_in,
    switches_in,
    times_in,
    tracks,
)
from dlbricks_tui.traces.trace import Counter, Track

# With the eight threads of a worker that computes on both processors of a virtual machine, reading takes 7 % of one of
# them at this interval, and 10 % at half of it. The lengths of most spans are exact at any interval.
INTERVAL_SECONDS = 0.002
# Threads are listed, and counters read, once in this many readings: they take longer.
_READINGS_PER_LOOK = 32
# Most threads of a worker sleep throughout. One that has slept for so many readings is read in one of these many.
_READINGS_UNTIL_IDLE, _READINGS_PER_IDLE_ONE = 64, 8
# The texts that are read are shorter.
_MOST_BYTES = 4096


@dataclass(frozen=True, slots=True)
class ThreadActivity:
    """What the threads of a process did between two moments."""

    tracks: tuple[Track, ...]
    # Of all threads together, from 0 on.
    counters: tuple[Counter, ...]


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
        """Read all threads once, and go on reading; raise ThreadsError where that is impossible."""
        if sys.platform != "linux":
            raise ThreadsError("the thread level needs /proc of Linux: leave this level out")
        self._look()
        if not self._live:
            raise ThreadsError(f"no thread can be read in {self._folder}: leave the thread level out")
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        for it in self._live.values():
            it.close()

    def activity(self, start_ns: int, end_ns: int) -> ThreadActivity:
        """Return what the threads did between two moments of `time.monotonic_ns`, after the `with` block."""
        return ThreadActivity(tracks(self._histories, start_ns, end_ns), counters(self._histories, start_ns, end_ns))

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
                raise ThreadsError(reason) from None
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
                self._last = Reading(now, times.run_ns, times.wait_ns, state.runnable, state.processor)
                self._keep()
        except (OSError, ValueError):
            return False
        self._known_until_ns = now
        self._asleep += not self._last.runnable
        return True

    def _keep(self) -> None:
        """Add the last reading to the history, at the latest time at which it was still so."""
        if self._text:
            self.history.take(self._last._replace(time_ns=max(self._last.time_ns, self._known_until_ns)))

    def count(self) -> bool:
        """Read the context switches and page faults; return False if the thread has ended."""
        now = time.monotonic_ns()
        try:
            switches = switches_in(os.pread(self._files[2], _MOST_BYTES, 0))
            state = state_in(os.pread(self._files[1], _MOST_BYTES, 0))
        except (OSError, ValueError):
            return False
        self.history.counts.append(Counts(now, switches, state.minor_faults, state.major_faults))
        return True
