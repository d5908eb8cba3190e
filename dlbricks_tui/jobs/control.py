"""Stop a job by a signal or another process, and lock its folder against other processes."""

import fcntl
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from types import FrameType, TracebackType
from typing import Any

from dlbricks_tui.jobs.errors import JobError, Stopped
from dlbricks_tui.jobs.folder import JobFolder, State

_SOONEST_SECONDS = 1e-3

_MEANINGS: Mapping[signal.Signals, tuple[State, str]] = {
    signal.SIGTERM: (State.CANCELLED, "it was cancelled"),
    signal.SIGINT: (State.INTERRUPTED, "it was interrupted from the keyboard"),
    signal.SIGHUP: (State.INTERRUPTED, "its terminal was closed"),
}
# A process that has stored the end of its job exits soon.
_SECONDS_TO_LEAVE = 30.0
_NAP_BEFORE_LEAVING_SECONDS = 0.01


class JobStopped(Stopped):
    """The job ends here in a state, for a reason."""

    def __init__(self, state: State, why: str) -> None:
        super().__init__(why)
        self.state = state
        self.why = why


class StopSignals:
    """Signal handlers, within the `with` block, that stop the job at the points where it may be stopped."""

    def __init__(self, ignore_hangup: bool) -> None:
        self._ignore_hangup = ignore_hangup
        self._stopped: JobStopped | None = None
        self._may_raise = False
        self._before: dict[signal.Signals, Any] = {}
        # Returns the reason for stopping when the alarm goes off.
        self._alarm: Callable[[], JobStopped] | None = None

    def __enter__(self) -> "StopSignals":
        self._before[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._take_alarm)
        for number in _MEANINGS:
            ignored = number is signal.SIGHUP and self._ignore_hangup
            self._before[number] = signal.signal(number, signal.SIG_IGN if ignored else self._take)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop_after(None)
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def stop_after(self, seconds: float | None, stop: Callable[[], JobStopped] | None = None) -> None:
        """Stop the job after this many seconds, as a signal would; None cancels that."""
        self._alarm = stop
        # A timer of 0 s never goes off.
        signal.setitimer(signal.ITIMER_REAL, 0.0 if seconds is None else max(seconds, _SOONEST_SECONDS))

    def check(self) -> None:
        if self._stopped is not None:
            raise self._stopped

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Let a signal stop the job at once within the block, where it waits for another process."""
        self._may_raise = True
        try:
            # A signal that has arrived before stops the job before it waits.
            self.check()
            yield
        finally:
            self._may_raise = False

    def _take(self, number: int, _frame: FrameType | None) -> None:
        self._stop(JobStopped(*_MEANINGS[signal.Signals(number)]))

    def _take_alarm(self, _number: int, _frame: FrameType | None) -> None:
        # A signal that has stopped the job before keeps its reason.
        if self._alarm is not None and self._stopped is None:
            self._stop(self._alarm())

    def _stop(self, stopped: JobStopped) -> None:
        self._stopped = stopped
        if self._may_raise:
            self._may_raise = False
            raise self._stopped


@contextmanager
def only_process(folder: JobFolder) -> Iterator[None]:
    """Make sure that no other process works on the job."""
    try:
        file = os.open(folder.lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise JobError(f"cannot write {folder.lock_file}: {error.strerror}; make it writable") from error
    try:
        _lock(file, folder)
        # Padded, so that a shorter number overwrites a longer one.
        with suppress(OSError):
            os.pwrite(file, f"{os.getpid():<31}\n".encode(), 0)
        yield
    finally:
        os.close(file)


def _lock(file: int, folder: JobFolder) -> None:
    give_up = time.monotonic() + _SECONDS_TO_LEAVE
    while True:
        try:
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass
        except OSError as error:
            # Such as of a network that has no locks.
            raise JobError(
                f"cannot lock {folder.lock_file}: {error.strerror}; choose another data folder with --data-dir"
            ) from error
        state = folder.state()
        if state.active or time.monotonic() > give_up:
            raise JobError(
                f"process {state.process.pid} works on {folder.noun} {folder.run} already; "
                f"`{folder.watched_by} {folder.run}` shows how it gets on"
            )
        time.sleep(_NAP_BEFORE_LEAVING_SECONDS)
