"""How a person or a machine ends a run: at once where it waits, and never in the middle of keeping a result."""

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
    """While it is entered, signals stop the run where it says that it may be stopped."""

    def __init__(self, ignore_hangup: bool) -> None:
        self._ignore_hangup = ignore_hangup
        self._stopped: RunStopped | None = None
        self._may_raise = False
        self._before: dict[signal.Signals, Any] = {}
        # What the run ends with when its alarm goes off.
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
        """Stop the run after so many seconds, as a signal does; None takes that back."""
        self._alarm = stop
        # A timer of 0 s never goes off.
        signal.setitimer(signal.ITIMER_REAL, 0.0 if seconds is None else max(seconds, _SOONEST_SECONDS))

    def check(self) -> None:
        """Raises what was asked for in the meantime."""
        if self._stopped is not None:
            raise self._stopped

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Within, the run waits for somebody else, and a signal ends that at once."""
        self._may_raise = True
        try:
            # One that came before would otherwise wait as long as the wait does.
            self.check()
            yield
        finally:
            self._may_raise = False

    def _take(self, number: int, _frame: FrameType | None) -> None:
        self._stop(RunStopped(*_MEANINGS[signal.Signals(number)]))

    def _take_alarm(self, _number: int, _frame: FrameType | None) -> None:
        # A person who has stopped the run already has said why.
        if self._alarm is not None and self._stopped is None:
            self._stop(self._alarm())

    def _stop(self, stopped: RunStopped) -> None:
        self._stopped = stopped
        if self._may_raise:
            self._may_raise = False
            raise self._stopped
