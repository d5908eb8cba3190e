"""Control of a run: its start, its turn on the host, its time budget, and what pauses or stops it."""

import fcntl
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from dlbricks_tui.crash_log import keep_traceback
from dlbricks_tui.errors import UserError
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.queue import NAP_SECONDS, HostQueue, QueuedWork, Ticket, arrival, this_process
from dlbricks_tui.measure.errors import Stopped
from dlbricks_tui.measure.events import Event
from dlbricks_tui.recorded_host import NOTHING_IS_MEASURED, recorded_host
from dlbricks_tui.regular_files import open_log, read_bytes
from dlbricks_tui.runs.errors import RunError
from dlbricks_tui.runs.events import PartStarted, Paused, Planned, Resumed, RunEnded, Waiting
from dlbricks_tui.runs.progress import TellsTimeLeft
from dlbricks_tui.runs.request import RunRequest, write_request
from dlbricks_tui.runs.run_folder import NO_ROOM, RunFolder, RunFolders, RunState, State, Tally
from dlbricks_tui.runtime.runtime import MOST_THREADS
from dlbricks_tui.store.database import ResultsDatabase

_SOONEST_SECONDS = 1e-3

_MEANINGS: Mapping[signal.Signals, tuple[State, str]] = {
    signal.SIGTERM: (State.CANCELLED, "it was cancelled"),
    signal.SIGINT: (State.INTERRUPTED, "it was interrupted from the keyboard"),
    signal.SIGHUP: (State.INTERRUPTED, "its terminal was closed"),
}
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
        queue: HostQueue,
        task: QueuedWork,
        tell: Callable[[Event], None],
        signals: StopSignals,
        budget_seconds: float | None,
        clock: Callable[[], float] = time.monotonic,
        spent_seconds: float = 0.0,
    ) -> None:
        self._folder = folder
        self._queue = queue
        self._task = task
        # Work that comes while the models are read has its turn later.
        self._arrived: int | None = arrival()
        # Its place in the line of the host; None before it joins, and while it is paused.
        self._ticket: Ticket | None = None
        # What all parts of the run are expected to take, and those after the current one.
        self._planned_seconds = self._later_seconds = 0.0
        self._tell = tell
        self._signals = signals
        self._budget_seconds = budget_seconds
        self._clock = clock
        self._spent_seconds = spent_seconds
        # Where other work comes first, the models are read meanwhile: the budget begins with the turn.
        self._budget_has_begun = not queue.places()
        # Moved on while the run waits or is paused: neither is work.
        self._began = clock()
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
        """Seconds left of the time budget, None without one. Waiting for other work and pauses do not spend it."""
        if self._budget_seconds is None or not self._budget_has_begun:
            return self._budget_seconds
        return max(0.0, self._budget_seconds - self._spent_seconds - self.seconds)

    def begin(self) -> None:
        """Join the line of the host, and wait for the turn."""
        with self._clock_stopped():
            self._wait_for_host()
        if not self._budget_has_begun:
            self._budget_has_begun, self._spent_seconds = True, -self.seconds
            self._watch_budget()
        self._change(State.RUNNING)

    def tell(self, event: Event) -> None:
        """Tell an event, and how far the run is to other processes of the host."""
        self._tell(event)
        left = None
        if isinstance(event, Planned):
            left = self._planned_seconds = self._planned_seconds + event.expected_seconds
        elif isinstance(event, PartStarted):
            self._later_seconds = event.later_seconds
        elif isinstance(event, TellsTimeLeft) and event.seconds_left is not None:
            left = event.seconds_left + self._later_seconds
        if left is not None and self._ticket is not None:
            spent = self.seconds
            self._ticket.progress(spent / (spent + left) if spent + left > 0 else None, left)

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
        """Store and tell the end of the run, and let other work measure."""
        self._leave_line()
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
        return RunStopped(State.FINISHED, f"its time budget of {self._budget_seconds:g} s is spent")

    def _watch_budget(self) -> None:
        """Stop the run when the budget is spent, even while it waits for a worker."""
        if self.seconds_left is not None and self._budget_has_begun:
            self._signals.stop_after(self.seconds_left, self._budget_spent)

    def _wait_for_host(self) -> None:
        def tell(ahead: str) -> None:
            self._change(State.WAITING, f"for {ahead}")
            self._tell(Waiting(holder=ahead))

        self._ticket, self._arrived = self._queue.join(self._task, self._arrived), None
        self._ticket.wait(tell, self._nap)

    def _leave_line(self) -> None:
        if self._ticket is not None:
            self._ticket.leave()
            self._ticket = None

    def _pause(self) -> None:
        self._leave_line()
        self._change(State.PAUSED)
        self._tell(Paused())
        with self._clock_stopped():
            while self._folder.pause_file.exists():
                self._nap()
            self._wait_for_host()
        self._change(State.RUNNING)
        self._tell(Resumed())

    def _nap(self) -> None:
        with self._signals.waiting():
            time.sleep(NAP_SECONDS)

    def _change(self, state: State, message: str = "") -> None:
        self._state = replace(self._state, state=state, message=message)
        self._folder.set_state(self._state)

    @contextmanager
    def _clock_stopped(self) -> Iterator[None]:
        stopped = self._clock()
        self._signals.stop_after(None)
        try:
            yield
        finally:
            self._began += self._clock() - stopped
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


PACKAGE_PARENT = Path(__file__).resolve().parents[2]
# This dlbricks comes first on the path, whatever else is installed and wherever the process works.
_CODE = "import importlib, sys; sys.path[0] = sys.argv[1]; importlib.import_module(sys.argv[2]).main(*sys.argv[3:])"
# The pipe that a process waits at for the end of the one that has started it.
LEASH_VARIABLE = "DLBRICKS_LEASH"
_SECONDS_TO_START = 120.0
_NAP_SECONDS = 0.02


def create_run(request: RunRequest, data: DataFolder) -> RunFolder:
    """Create a run that a process can execute."""
    _refuse_in_demonstration()
    for runtime in (part.runtime for part in request.parts):
        threads = runtime.settings.threads
        if threads is not None and threads > MOST_THREADS:
            raise RunError(
                f"runtime {runtime.name} is to compute with {threads} threads, and {MOST_THREADS} are the most: "
                "ask for fewer (--threads, or OMP_NUM_THREADS), such as one for each core"
            )
    with ResultsDatabase(data.store):
        # A store that cannot be used is refused before there is a run.
        folder = RunFolders(data.runs).create(request.model_names)
    write_request(folder.request_file, request)
    return folder


def command_of(module: str, *arguments: str) -> list[str]:
    """Return the command that calls `main` of a module of this dlbricks in a process of its own."""
    return [sys.executable, "-c", _CODE, str(PACKAGE_PARENT), module, *arguments]


def start_detached(folder: RunFolder, data: DataFolder, module: str) -> None:
    """Execute the run in a separate process, and return when it has begun; `module` has its `main`."""
    _refuse_in_demonstration()
    command = command_of(module, str(folder.path), str(data.path))
    try:
        with open_log(folder.output_file) as output:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=folder.path,
                start_new_session=True,
            )
    except OSError as error:
        raise RunError(f"cannot start {folder.noun} {folder.run}: {error.strerror}") from error
    give_up = time.monotonic() + _SECONDS_TO_START
    while folder.state().process.pid != process.pid:
        # The run may have begun and ended since the state was read.
        if process.poll() is not None and folder.state().process.pid != process.pid:
            lines = read_bytes(folder.output_file).decode(errors="replace").splitlines() or ["it printed nothing"]
            raise RunError(f"{folder.noun} {folder.run} did not start: {lines[-1]}")
        if time.monotonic() > give_up:
            raise RunError(
                f"{folder.noun} {folder.run} did not start within {_SECONDS_TO_START:g} s; see {folder.output_file}"
            )
        time.sleep(_NAP_SECONDS)


def take_order() -> tuple[Any, Callable[[bytes], None]]:
    """Return the order in the standard input of this process, and the function that writes its messages.

    From now on all else that is printed goes to standard error.
    """
    _hold_leash()
    order = pickle.load(sys.stdin.buffer)
    output = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def write(line: bytes) -> None:
        written = 0
        try:
            while written < len(line):
                written += os.write(output, line[written:])
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            # Progress that a full disk does not take is lost; the result goes to the store.
            begin = os.lseek(output, 0, os.SEEK_CUR) - written
            os.ftruncate(output, begin)
            os.lseek(output, begin, os.SEEK_SET)

    return order, write


def _hold_leash() -> None:
    """End this process by SIGTERM when the one ends that has started it and waits for it, even if that is killed."""
    leash = os.environ.pop(LEASH_VARIABLE, None)

    def wait(pipe: int) -> None:
        os.read(pipe, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    if leash is not None:
        threading.Thread(target=wait, args=(int(leash),), name="leash", daemon=True).start()


def _refuse_in_demonstration() -> None:
    if recorded_host() is not None:
        raise RunError(NOTHING_IS_MEASURED)


def carry_out(work: Callable[[StopSignals], None], data: DataFolder, fail: Callable[[str], None]) -> bool:
    """Return whether some work came to its end; `fail` takes the reason if it did not."""
    with StopSignals(ignore_hangup=False) as signals:
        try:
            work(signals)
        except RunStopped as stopped:
            fail(stopped.why)
        except UserError as error:
            fail(str(error))
        except Exception as error:  # noqa: BLE001 - a fault of dlbricks is one line, too
            fail(f"internal error: {error}; the traceback is in {keep_traceback(error, data.log)}")
        else:
            return True
    return False
