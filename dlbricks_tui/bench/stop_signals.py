"""How a person or a machine ends a run: at once where it waits, and never in the middle of keeping a result."""

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

from dlbricks_tui.bench.run_folder import State

_MEANINGS: Mapping[signal.Signals, tuple[State, str]] = {
    signal.SIGTERM: (State.CANCELLED, "it was cancelled"),
    signal.SIGINT: (State.INTERRUPTED, "it was interrupted from the keyboard"),
    signal.SIGHUP: (State.INTERRUPTED, "its terminal was closed"),
}


class RunStopped(Exception):  # noqa: N818 - not an error: a run that is told to stop does what it should
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

    def __enter__(self) -> "StopSignals":
        for number in _MEANINGS:
            ignored = number is signal.SIGHUP and self._ignore_hangup
            self._before[number] = signal.signal(number, signal.SIG_IGN if ignored else self._take)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

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
        self._stopped = RunStopped(*_MEANINGS[signal.Signals(number)])
        if self._may_raise:
            self._may_raise = False
            raise self._stopped
