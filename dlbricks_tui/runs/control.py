"""Control of a run: its start, its turn on the host, its time budget, and what pauses or stops it."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.queue import NAP_SECONDS, HostQueue, Place, Ticket, arrival, this_process
from dlbricks_tui.jobs.control import JobStopped, StopSignals
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.events import Event, Paused, Resumed, Waiting
from dlbricks_tui.jobs.folder import JobState, RunFolder, RunFolders, State
from dlbricks_tui.jobs.kinds import refuse_in_demonstration
from dlbricks_tui.runs.events import RunEnded, RunProgress
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.runtime.runtime import MOST_THREADS
from dlbricks_tui.store.database import ResultsDatabase


class Control:
    """Keeps the stored state of a run up to date, and pauses or stops the run."""

    def __init__(
        self,
        folder: RunFolder,
        queue: HostQueue,
        task: Place,
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
        self._tell = tell
        self._progress = RunProgress()
        self._signals = signals
        self._budget_seconds = budget_seconds
        self._clock = clock
        self._spent_seconds = spent_seconds
        self.host_was_busy = bool(queue.places())
        # Where other work comes first, the models are read meanwhile: the budget begins with the turn.
        self._budget_has_begun = not self.host_was_busy
        # Moved on while the run waits or is paused: neither is work.
        self._began = clock()
        # A resumed run goes on, even if it was paused when its last process died.
        folder.unpause()
        self._state = replace(folder.state(), state=State.STARTING, process=this_process(), seconds=0.0, message="")
        self._folder.set_state(self._state)
        self._watch_budget()

    @property
    def state(self) -> JobState:
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
        self._progress.take(event)
        left = self._progress.seconds_left
        if left is not None and self._ticket is not None:
            left, spent = left if self.seconds_left is None else min(left, self.seconds_left), self.seconds
            self._ticket.progress(spent / (spent + left) if spent + left > 0 else None, left)

    def checkpoint(self) -> None:
        """Raise `JobStopped` if the run is to end; wait while it is paused."""
        self._signals.check()
        if self.seconds_left == 0.0:
            raise self._budget_spent()
        if self._folder.pause_file.exists():
            self._pause()

    def save_counts(self) -> None:
        """Store how far the run is by the events that it has told."""
        bricks, models = self._progress.of_bricks, self._progress.of_models
        self._state = replace(self._state, bricks=bricks, whole_models=models, seconds=self.seconds)
        self._folder.set_state(self._state)

    def end(self, state: State, message: str) -> JobState:
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

    def _budget_spent(self) -> JobStopped:
        return JobStopped(State.FINISHED, f"its time budget of {self._budget_seconds:g} s is spent")

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


def create_run(request: RunRequest, data: DataFolder, run: str = "") -> RunFolder:
    """Create a run that a process can execute, of this id if there is one."""
    refuse_in_demonstration()
    for runtime in (part.runtime for part in request.parts):
        threads = runtime.settings.threads
        if threads is not None and threads > MOST_THREADS:
            raise JobError(
                f"runtime {runtime.name} is to compute with {threads} threads, and {MOST_THREADS} are the most: "
                "ask for fewer (--threads, or OMP_NUM_THREADS), such as one for each core"
            )
    with ResultsDatabase(data.store):
        # A store that cannot be used is refused before there is a run.
        return RunFolders(data.runs).create(request.model_names, run=run, request=request)
