"""Signals that stop a run: at once while it waits, and never while it stores a result."""

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

from dlbricks_tui.measure.errors import Stopped
from dlbricks_tui.runs.run_folder import State

_SOONEST_SECONDS = 1e-3

_MEANINGS: Mapping[signal.Signals, tuple[State, str]] = {
    signal.SIGTERM: (State.CANCELLED, "it was cancelled"),
    signal.SIGINT: (State.INTERRUPTED, "it was interrupted from the keyboard"),
    signal.SIGHUP: (State.INTERRUPTED, "its terminal was closed"),
}


class RunStopped(Stopped):
    """The run ends here in a state, for a reason."""

    def __init__(self, state: State, why: str) -> None:
        super().__init__(why)
        self.state = state
        self.why = why


class StopSignals:
    """Signal handlers, within the `with` block, that stop the run at the points where it may be stopped."""

    def __init__(self, ignore_hangup: bool) -> None:
        self._ignore_hangup = ignore_hangup
        self._stopped: RunStopped | None = None
        self._may_raise = False
        self._before: dict[signal.Signals, Any] = {}
        # Returns the reason for stopping when the alarm goes off.
        self._alarm: Callable[[], RunStopped] | None = None

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

    def stop_after(self, seconds: float | None, stop: Callable[[], RunStopped] | None = None) -> None:
        """Stop the run after so many seconds, as a signal does; None cancels that."""
        self._alarm = stop
        # A timer of 0 s never goes off.
        signal.setitimer(signal.ITIMER_REAL, 0.0 if seconds is None else max(seconds, _SOONEST_SECONDS))

    def check(self) -> None:
        """Raise `RunStopped` if a signal has arrived."""
        if self._stopped is not None:
            raise self._stopped

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Let a signal stop the run at once within the block, where it waits for another process."""
        self._may_raise = True
        try:
            # A signal that has arrived before stops the run before it waits.
            self.check()
            yield
        finally:
            self._may_raise = False

    def _take(self, number: int, _frame: FrameType | None) -> None:
        self._stop(RunStopped(*_MEANINGS[signal.Signals(number)]))

    def _take_alarm(self, _number: int, _frame: FrameType | None) -> None:
        # A signal that has stopped the run before keeps its reason.
        if self._alarm is not None and self._stopped is None:
            self._stop(self._alarm())

    def _stop(self, stopped: RunStopped) -> None:
        self._stopped = stopped
        if self._may_raise:
            self._may_raise = False
            raise self._stopped
