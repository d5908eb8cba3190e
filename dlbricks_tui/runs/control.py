"""Control of a run: its turn on the host, its time budget, and the signals and files that pause or stop it."""

import fcntl
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from dlbricks_tui.host.host_lock import HostLock, this_process
from dlbricks_tui.measure.errors import Stopped
from dlbricks_tui.measure.events import Event
from dlbricks_tui.runs.errors import RunError
from dlbricks_tui.runs.events import Paused, Resumed, RunEnded, Waiting
from dlbricks_tui.runs.run_folder import RunFolder, RunState, State, Tally

_SOONEST_SECONDS = 1e-3

_MEANINGS: Mapping[signal.Signals, tuple[State, str]] = {
    signal.SIGTERM: (State.CANCELLED, "it was cancelled"),
    signal.SIGINT: (State.INTERRUPTED, "it was interrupted from the keyboard"),
    signal.SIGHUP: (State.INTERRUPTED, "its terminal was closed"),
}
_NAP_SECONDS = 0.25
# A process that has stored the end of its run exits soon.
_SECONDS_TO_LEAVE = 30.0
_NAP_BEFORE_LEAVING_SECONDS = 0.01


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
        """Stop the run after this many seconds, as a signal would; None cancels that."""
        self._alarm = stop
        # A timer of 0 s never goes off.
        signal.setitimer(signal.ITIMER_REAL, 0.0 if seconds is None else max(seconds, _SOONEST_SECONDS))

    def check(self) -> None:
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


class Control:
    """Keeps the stored state of a run up to date, and pauses or stops the run."""

    def __init__(
        self,
        folder: RunFolder,
        lock: HostLock,
        data_folder: Path,
        tell: Callable[[Event], None],
        signals: StopSignals,
        budget_seconds: float | None,
        clock: Callable[[], float] = time.monotonic,
        spent_seconds: float = 0.0,
    ) -> None:
        self._folder = folder
        self._lock = lock
        self._data_folder = data_folder
        self._tell = tell
        self._signals = signals
        self._budget_seconds = budget_seconds
        self._clock = clock
        self._has_host = False
        # The clock of the work stops while the run waits or is paused, that of the budget while it is paused.
        self._began = clock()
        self._budget_began = self._began - spent_seconds
        # A resumed run goes on, even if it was paused when its last process died.
        folder.unpause()
        self._state = replace(
            folder.state(),
            state=State.STARTING,
            process=this_process(),
            bricks=Tally(),
            whole_models=Tally(),
            seconds=0.0,
            message="",
        )
        self._folder.set_state(self._state)
        self._watch_budget()

    @property
    def state(self) -> RunState:
        return self._state

    @property
    def seconds(self) -> float:
        """Seconds of work so far, without waiting and pauses."""
        return self._clock() - self._began

    @property
    def seconds_left(self) -> float | None:
        """Seconds left of the time budget, None without one. Waiting for other runs spends it, too."""
        if self._budget_seconds is None:
            return None
        return max(0.0, self._budget_seconds - (self._clock() - self._budget_began))

    def begin(self) -> None:
        """Wait for the host until the other run has ended or the budget is spent."""
        self._wait_for_host()
        self._change(State.RUNNING)

    def checkpoint(self) -> None:
        """Raise `RunStopped` if the run is to end; wait while it is paused."""
        self._signals.check()
        self._check_budget()
        if self._folder.pause_file.exists():
            self._pause()

    def count(self, bricks: Tally, whole_models: Tally) -> None:
        """Store how far the run is."""
        self._state = replace(self._state, bricks=bricks, whole_models=whole_models, seconds=self.seconds)
        self._folder.set_state(self._state)

    def end(self, state: State, message: str) -> RunState:
        """Store and tell the end of the run, and let other runs measure."""
        self._lock.release()
        self._state = replace(self._state, state=state, message=message, seconds=self.seconds)
        try:
            # Told before the state changes: viewers stop reading events at a final state.
            self._tell(
                RunEnded(
                    state=state.value,
                    message=message,
                    bricks=self._state.bricks.total,
                    bricks_measured=self._state.bricks.measured,
                    bricks_reused=self._state.bricks.reused,
                    bricks_failed=self._state.bricks.failed,
                    models_failed=self._state.whole_models.failed,
                    seconds=self._state.seconds,
                )
            )
        finally:
            self._folder.set_state(self._state)
        return self._state

    def _check_budget(self) -> None:
        if self.seconds_left == 0.0:
            raise self._budget_spent()

    def _budget_spent(self) -> RunStopped:
        waited = "; all of it passed while another run measured on this host" if not self._has_host else ""
        return RunStopped(State.FINISHED, f"its time budget of {self._budget_seconds:g} s is spent{waited}")

    def _watch_budget(self) -> None:
        """Stop the run when the budget is spent, even while it waits for a worker."""
        if self.seconds_left is not None:
            self._signals.stop_after(self.seconds_left, self._budget_spent)

    def _wait_for_host(self) -> None:
        began = self._clock()
        try:
            self._take_host()
        finally:
            self._began += self._clock() - began

    def _take_host(self) -> None:
        told = None
        while not self._lock.try_hold(self._folder.run, self._data_folder):
            holder = self._lock.holder()
            if holder is not None and holder != told:
                told = holder
                self._change(State.WAITING, f"for {holder}")
                self._tell(Waiting(holder=str(holder)))
            self._check_budget()
            self._nap()
        self._has_host = True

    def _pause(self) -> None:
        self._lock.release()
        self._has_host = False
        self._change(State.PAUSED)
        self._tell(Paused())
        with self._clocks_stopped():
            while self._folder.pause_file.exists():
                self._nap()
        self._wait_for_host()
        self._change(State.RUNNING)
        self._tell(Resumed())

    def _nap(self) -> None:
        with self._signals.waiting():
            time.sleep(_NAP_SECONDS)

    def _change(self, state: State, message: str = "") -> None:
        self._state = replace(self._state, state=state, message=message)
        self._folder.set_state(self._state)

    @contextmanager
    def _clocks_stopped(self) -> Iterator[None]:
        stopped = self._clock()
        self._signals.stop_after(None)
        try:
            yield
        finally:
            paused_seconds = self._clock() - stopped
            self._began += paused_seconds
            self._budget_began += paused_seconds
            self._watch_budget()


@contextmanager
def only_process(folder: RunFolder) -> Iterator[None]:
    """Make sure that no other process works on the run."""
    try:
        file = os.open(folder.lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise RunError(f"cannot write {folder.lock_file}: {error.strerror}; make it writable") from error
    try:
        _lock(file, folder)
        yield
    finally:
        os.close(file)


def _lock(file: int, folder: RunFolder) -> None:
    give_up = time.monotonic() + _SECONDS_TO_LEAVE
    while True:
        with suppress(BlockingIOError):
            return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        state = folder.state()
        if state.active or time.monotonic() > give_up:
            raise RunError(
                f"process {state.process.pid} works on {folder.noun} {folder.run} already; "
                f"`{folder.watched_by} {folder.run}` shows how it gets on"
            )
        time.sleep(_NAP_BEFORE_LEAVING_SECONDS)
