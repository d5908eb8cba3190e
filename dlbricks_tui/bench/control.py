"""What a run obeys while it works: its turn on the host, its budget, and what people tell it."""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from dlbricks_tui.bench.errors import RunError
from dlbricks_tui.bench.events import Event, Paused, Resumed, RunEnded, Waiting
from dlbricks_tui.bench.host_lock import HostLock
from dlbricks_tui.bench.process_identity import this_process
from dlbricks_tui.bench.run_folder import RunFolder, RunState, State, Tally
from dlbricks_tui.bench.stop_signals import RunStopped, StopSignals

_NAP_SECONDS = 0.25
# A process that has said how its run ended has nothing left to do but to leave.
_SECONDS_TO_LEAVE = 30.0
_NAP_BEFORE_LEAVING_SECONDS = 0.01


class Control:
    """Keeps the state of a run true, and stops the run where it has to."""

    def __init__(
        self,
        folder: RunFolder,
        lock: HostLock,
        data_folder: Path,
        tell: Callable[[Event], None],
        signals: StopSignals,
        budget_seconds: float | None,
    ) -> None:
        self._folder = folder
        self._lock = lock
        self._data_folder = data_folder
        self._tell = tell
        self._signals = signals
        self._budget_seconds = budget_seconds
        self._began = time.monotonic()
        # Whoever takes a run up wants it to go on, even if it was paused when its last process died.
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

    @property
    def state(self) -> RunState:
        """How the run stands."""
        return self._state

    @property
    def seconds(self) -> float:
        """How long the run has worked; it does not work while it waits or is paused."""
        return time.monotonic() - self._began

    @property
    def seconds_left(self) -> float | None:
        """What is left of the budget, None without one."""
        return None if self._budget_seconds is None else max(0.0, self._budget_seconds - self.seconds)

    def begin(self) -> None:
        """Waits for the host, however long others measure on it."""
        with self._clock_stopped():
            self._take_host()
        self._change(State.RUNNING)

    def checkpoint(self) -> None:
        """Where the run may stop, or stand still for a while."""
        self._signals.check()
        if self.seconds_left == 0.0:
            raise RunStopped(State.FINISHED, f"its time budget of {self._budget_seconds:g} s is spent")
        if self._folder.pause_file.exists():
            with self._clock_stopped():
                self._stand_still()

    def count(self, bricks: Tally, whole_models: Tally) -> None:
        """Lets everybody know how far the run is."""
        self._state = replace(self._state, bricks=bricks, whole_models=whole_models, seconds=self.seconds)
        self._folder.set_state(self._state)

    def end(self, state: State, message: str) -> RunState:
        """The run is over, and somebody else may measure."""
        self._lock.release()
        self._state = replace(self._state, state=state, message=message, seconds=self.seconds)
        try:
            # Told first: who follows the events stops at a state after which nothing follows.
            self._tell(_ended(self._state))
        finally:
            self._folder.set_state(self._state)
        return self._state

    def _take_host(self) -> None:
        told = None
        while not self._lock.try_hold(self._folder.run, self._data_folder):
            holder = self._lock.holder()
            if holder is not None and holder != told:
                told = holder
                self._change(State.WAITING, f"waits for {holder}")
                self._tell(Waiting(holder=str(holder)))
            self._nap()

    def _stand_still(self) -> None:
        self._lock.release()
        self._change(State.PAUSED)
        self._tell(Paused())
        while self._folder.pause_file.exists():
            self._nap()
        self._take_host()
        self._change(State.RUNNING)
        self._tell(Resumed())

    def _nap(self) -> None:
        with self._signals.waiting():
            time.sleep(_NAP_SECONDS)

    def _change(self, state: State, message: str = "") -> None:
        self._state = replace(self._state, state=state, message=message)
        self._folder.set_state(self._state)

    @contextmanager
    def _clock_stopped(self) -> Iterator[None]:
        stopped = time.monotonic()
        try:
            yield
        finally:
            self._began += time.monotonic() - stopped


def _ended(state: RunState) -> RunEnded:
    return RunEnded(
        state=state.state.value,
        message=state.message,
        bricks=state.bricks.total,
        bricks_measured=state.bricks.measured,
        bricks_reused=state.bricks.reused,
        bricks_failed=state.bricks.failed,
        models_failed=state.whole_models.failed,
        seconds=state.seconds,
    )


@contextmanager
def only_process(folder: RunFolder) -> Iterator[None]:
    """Makes sure that no other process works on the run."""
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
    while not _locked(file):
        state = folder.state()
        if state.active or time.monotonic() > give_up:
            raise RunError(
                f"process {state.process.pid} works on run {folder.run} already; "
                f"`dlbricks runs watch {folder.run}` shows how it gets on"
            )
        time.sleep(_NAP_BEFORE_LEAVING_SECONDS)


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
