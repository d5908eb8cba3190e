"""Programs in a worker, and who is to blame when the worker is lost: the others go on in a fresh one."""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, ExitStack
from types import TracebackType
from typing import NamedTuple

from dlbricks_tui.host.contention import Crowding, crowding
from dlbricks_tui.measure.errors import WorkerStartError
from dlbricks_tui.runtime.errors import (
    WorkerDiedError,
    WorkerError,
    WorkerGarbledError,
    WorkerHungError,
    WorkerRefusedError,
)
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.protocol import (
    Answer,
    Describe,
    Described,
    Load,
    Loaded,
    NullCalls,
    Profile,
    Profiled,
    Program,
    Reason,
    Request,
    Sample,
    Unload,
)

_START_SECONDS = 120.0
_ATTEMPTS = 3
# A program that takes so many times as long as it ever did hangs.
_SLOWER_THAN_EVER = 20.0
# Making a program ready for the profiler takes about as long as so many runs.
_PROFILER_RUNS = 10
# After so many losses of the worker that no program was to blame for, programs are asked one by one.
_LOSSES_BEFORE_ONE_BY_ONE = 3
# The worker is gone, for a reason that may lie in what it was asked.
LOST_WORKER = (WorkerDiedError, WorkerHungError, WorkerGarbledError)

CRASHED, HUNG, GARBLED = "crashed", "hung", "garbled"


class Task(NamedTuple):
    """A program, and how long it may take to load and run once."""

    program: Program
    load_seconds: float


class Loss(NamedTuple):
    """A program that is off the bench; whether it deserves to be tried once more, and alone."""

    reason: str
    message: str
    try_alone: bool = False


class _Ready(NamedTuple):
    """A worker that has answered, and what it said of itself."""

    worker: Worker
    described: Described


class Workbench:
    """Loads programs and samples them; leaving the `with` block ends the worker."""

    def __init__(
        self,
        start: Callable[[], Worker],
        waiting: Callable[[], AbstractContextManager[None]],
        tell_replaced: Callable[[str], None],
        sample_seconds: float,
        memory_limit_bytes: int | None,
    ) -> None:
        self._start = start
        self._waiting = waiting
        self._tell_replaced = tell_replaced
        self._sample_seconds = sample_seconds
        self._memory_limit_bytes = memory_limit_bytes
        self._open = ExitStack()
        self._at_work: _Ready | None = None
        # What stays on the bench whatever is measured, and what is measured.
        self._fixtures: dict[str, Task] = {}
        self._tasks: dict[str, Task] = {}
        self._usual_seconds: dict[str, float] = {}
        self._losses: dict[str, Loss] = {}
        self._lost_before: set[str] = set()
        self._unexplained_losses = 0

    def __enter__(self) -> "Workbench":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def describe(self) -> Described:
        """What executes."""
        return self._ready().described

    def load(self, name: str, task: Task, *, fixture: bool = False) -> Loaded | None:
        """Loads a program beside the others and runs it once; None where that is a loss."""
        shelf = self._fixtures if fixture else self._tasks
        shelf[name] = task
        try:
            return self._loaded(name, task)
        except WorkerRefusedError as refused:
            self._take_off(name, refused)
        except LOST_WORKER as error:
            self._blame(name, error)
            self._replace(error)
        return None

    def sample(self, names: Sequence[str], warm: int, repeat: int) -> dict[str, tuple[int, ...]]:
        """One round: each program in turn, first untimed and then timed; the nanoseconds of those that came through."""
        if len(names) > 1 and self._unexplained_losses < _LOSSES_BEFORE_ONE_BY_ONE:
            try:
                return dict(zip(names, self._sampled(names, warm, repeat), strict=True))
            except WorkerRefusedError:
                # One of them does not run any more; the worker is well, and says which when asked one by one.
                pass
            except LOST_WORKER as error:
                self._unexplained_losses += 1
                self._replace(error)
        durations: dict[str, tuple[int, ...]] = {}
        for name in names:
            if not self.holds(name):
                continue
            try:
                durations[name] = self._sampled([name], warm, repeat)[0]
            except WorkerRefusedError as refused:
                self._take_off(name, refused)
            except LOST_WORKER as error:
                self._blame(name, error)
                self._replace(error)
        return {name: taken for name, taken in durations.items() if self.holds(name)}

    def profile(self, name: str, warm: int, repeat: int) -> Profiled | None:
        """The times of each operator of a program by the framework's profiler; None where that is a loss."""
        runs = warm + repeat + _PROFILER_RUNS
        timeout_seconds = self._sample_seconds + _SLOWER_THAN_EVER * self._usual_seconds[name] * runs
        try:
            return self._ask(Profile(name, warm, repeat), timeout_seconds)
        except WorkerRefusedError as refused:
            self._take_off(name, refused)
        except LOST_WORKER as error:
            self._blame(name, error)
            self._replace(error)
        return None

    def null_calls(self, count: int) -> tuple[int, ...]:
        """What it takes to call a program that does nothing; nothing where the worker was lost meanwhile."""
        try:
            return self._ask(NullCalls(count), self._sample_seconds).durations_ns[0]
        except LOST_WORKER as error:
            self._replace(error)
            return ()

    def crowding(self) -> Crowding | None:
        """How much others have kept the worker from the processor so far; None where nobody knows."""
        pid = self._at_work.worker.pid if self._at_work else None
        return None if pid is None else crowding(pid)

    def holds(self, name: str) -> bool:
        """Whether that program is there to be sampled."""
        return name in self._fixtures or name in self._tasks

    def take_losses(self) -> dict[str, Loss]:
        """The programs that were lost since this was last asked."""
        losses, self._losses = self._losses, {}
        return losses

    def clear(self, keep: Collection[str] = ()) -> None:
        """Makes room for the next programs, beside those to keep."""
        names = tuple(name for name in self._tasks if name not in keep)
        for name in names:
            del self._tasks[name]
        self._unexplained_losses = 0
        if names:
            try:
                self._ask(Unload(names), self._sample_seconds)
            except LOST_WORKER as error:
                self._replace(error)

    @property
    def _on_bench(self) -> dict[str, Task]:
        return {**self._fixtures, **self._tasks}

    def _loaded(self, name: str, task: Task) -> Loaded:
        loaded = self._ask(Load(name, task.program, self._memory_limit_bytes, True), task.load_seconds)
        self._usual_seconds[name] = loaded.first_run_seconds
        return loaded

    def _sampled(self, names: Sequence[str], warm: int, repeat: int) -> tuple[tuple[int, ...], ...]:
        # A producer runs before, which may take longer than the program itself.
        runs = 2 * (warm + repeat)
        usual_seconds = sum(self._usual_seconds[name] for name in names) * runs
        timeout_seconds = self._sample_seconds + _SLOWER_THAN_EVER * usual_seconds
        durations_ns = self._ask(Sample(tuple(names), warm, repeat), timeout_seconds).durations_ns
        if [len(of_one) for of_one in durations_ns] != [repeat] * len(names):
            raise WorkerGarbledError(f"the worker timed something else than the {len(names)} programs it was asked for")
        return durations_ns

    def _take_off(self, name: str, refused: WorkerRefusedError) -> None:
        self._forget(name)
        crowded = refused.reason is Reason.TOO_LARGE and bool(self._tasks)
        self._losses[name] = Loss(refused.reason.value, str(refused), try_alone=crowded)

    def _blame(self, name: str, error: WorkerError) -> None:
        """Takes the program off the bench; for sure it is to blame if it hangs, or takes a second worker along."""
        self._forget(name)
        hung = isinstance(error, WorkerHungError)
        reason = HUNG if hung else GARBLED if isinstance(error, WorkerGarbledError) else CRASHED
        # The first time it may have been its neighbours' doing, or somebody's who kills processes.
        self._losses[name] = Loss(reason, str(error), try_alone=not hung and name not in self._lost_before)
        self._lost_before.add(name)

    def _forget(self, name: str) -> None:
        self._fixtures.pop(name, None)
        self._tasks.pop(name, None)

    def _replace(self, error: WorkerError) -> None:
        """Puts everything that is on the bench into a fresh worker."""
        self._tell_replaced(str(error))
        waiting = self._on_bench
        while waiting:
            name, task = next(iter(waiting.items()))
            try:
                self._loaded(name, task)
                del waiting[name]
            except WorkerRefusedError as refused:
                self._take_off(name, refused)
                del waiting[name]
            except LOST_WORKER as again:
                # Its loss took the worker along once more: everything else is loaded anew, without it.
                self._blame(name, again)
                waiting = self._on_bench

    def _ask(self, request: Request[Answer], timeout_seconds: float) -> Answer:
        worker = self._ready().worker
        with self._waiting():
            return worker.ask(request, timeout_seconds)

    def _ready(self) -> _Ready:
        """A worker that has its framework: however long that took to import, no program was to blame."""
        if self._at_work is None or self._at_work.worker.pid is None:
            self._at_work = self._started()
        return self._at_work

    def _started(self) -> _Ready:
        lost: WorkerError | None = None
        for _ in range(_ATTEMPTS):
            try:
                with self._waiting():
                    worker = self._open.enter_context(self._start())
                    return _Ready(worker, worker.ask(Describe(), _START_SECONDS))
            except LOST_WORKER as error:
                self._tell_replaced(str(error))
                lost = error
        raise WorkerStartError(f"no worker lives long enough to be asked anything: {lost}") from lost
