"""Programs in a worker process, and its supervision: after a crash or a hang the other programs go on in a new worker.

The program that was asked for last is blamed for the loss of a worker, and unloaded. The reference program is equal in
every run: when its latency changes, the host's speed has changed.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any, NamedTuple, TypeVar

from dlbricks_tui.host.noise import Contention, contention, wait_until_idle
from dlbricks_tui.measure.events import MeasureError
from dlbricks_tui.models.graph import TensorType
from dlbricks_tui.models.onnx_operators import native_node
from dlbricks_tui.models.onnx_writer import OnnxSheet
from dlbricks_tui.runtime.errors import WorkerGarbledError, WorkerHungError, WorkerLostError, WorkerRefusedError
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.protocol import (
    NULL_PROGRAM,
    Answer,
    ArrayType,
    Describe,
    Described,
    Load,
    Loaded,
    Network,
    Profile,
    Profiled,
    Program,
    Reason,
    Request,
    Sample,
    TracedRuns,
    TraceRuns,
    Unload,
)
from dlbricks_tui.runtime.traits import Format

START_SECONDS = 120.0
_ATTEMPTS = 3
# A program hangs if it takes this many times its usual time.
_SLOWER_THAN_EVER = 20.0
# Loading a program makes its weights and compiles its kernels, which takes at most as long as this many runs.
_RUNS_PER_LOAD = 100.0
# Making a program ready for the profiler takes about as long as this many runs.
_PROFILER_RUNS = 10
# After this many losses of the worker that no single program explains, programs are sampled one by one.
_LOSSES_BEFORE_ONE_BY_ONE = 3
_NANOSECONDS_PER_MS = 1e6

CRASHED, HUNG, GARBLED = "crashed", "hung", "garbled"

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class TimeLimits:
    """Time limits of loading and sampling, added to a multiple of the expected time; a program beyond them hangs."""

    load_seconds: float = 60.0
    sample_seconds: float = 30.0


class Loss(NamedTuple):
    """Why a program was unloaded, and whether it may work without other programs beside it."""

    reason: str
    message: str
    try_alone: bool = False


class _Loading(NamedTuple):
    """A program, and how long loading it may take; a fixture stays loaded until the end."""

    program: Program
    seconds: float
    fixture: bool


@dataclass(eq=False)
class SupervisedWorker:
    """Loads programs and samples them; leaving the `with` block ends the worker."""

    start: Callable[[], Worker]
    waiting: Callable[[], AbstractContextManager[None]]
    tell_replaced: Callable[[str], None]
    limits: TimeLimits
    memory_limit_bytes: int | None

    def __post_init__(self) -> None:
        self._open = ExitStack()
        self._current: Worker | None = None
        self._described: Described | None = None
        self._programs: dict[str, _Loading] = {}
        self._usual_seconds: dict[str, float] = {}
        self._losses: dict[str, Loss] = {}
        # Why each program that failed is not loaded; unlike `take_losses`, these stay.
        self.reasons: dict[str, Loss] = {}
        self._lost_before: set[str] = set()
        self._unexplained_losses = 0

    def __enter__(self) -> "SupervisedWorker":
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def describe(self) -> Described:
        """Return what the worker told when it was ready: one that is lost before that is replaced."""
        if self._described is None:
            self._current, self._described = self._started()
        return self._described

    def load(self, name: str, program: Program, expected_ms: float = 0.0, *, fixture: bool = False) -> Loaded | None:
        """Load a program beside the others and run it once; None if that fails."""
        loading = _Loading(program, self.limits.load_seconds + _RUNS_PER_LOAD * expected_ms / 1000, fixture)
        self._programs[name] = loading
        return self._tried(name, lambda: self._loaded(name, loading))

    def sample(self, names: Sequence[str], untimed: int, timed: int) -> dict[str, tuple[float, ...]]:
        """Run the programs one by one, untimed and then timed; return the milliseconds of those that did not fail."""
        if len(names) > 1 and self._unexplained_losses < _LOSSES_BEFORE_ONE_BY_ONE:
            try:
                return dict(zip(names, self._sampled(names, untimed, timed), strict=True))
            except WorkerRefusedError:
                # One program no longer runs; sampling one by one finds it.
                pass
            except WorkerLostError as error:
                self._unexplained_losses += 1
                self._replace(error)
        taken: dict[str, tuple[float, ...]] = {}
        for name in filter(self.holds, names):
            rows = self._tried(name, partial(self._sampled, [name], untimed, timed))
            if rows is not None:
                taken[name] = rows[0]
        return {name: samples_ms for name, samples_ms in taken.items() if self.holds(name)}

    def profile(self, name: str, untimed: int, timed: int) -> Profiled | None:
        """Return the times of each operator of a program by the framework's profiler; None if that fails."""
        seconds = self._seconds_for([name], untimed + timed + _PROFILER_RUNS)
        return self._tried(name, lambda: self._ask(Profile(name, untimed, timed), seconds))

    def trace(self, name: str, untimed: int, timed: int, *, operators: bool, lines: bool) -> TracedRuns | None:
        """Return traced runs of a program, with its operators and with the lines of oneDNN; None if that fails."""
        seconds = self._seconds_for([name], untimed + timed + _PROFILER_RUNS)

        def ask() -> TracedRuns:
            found = self._ask(TraceRuns(name, untimed, timed, operators, lines), seconds)
            if len(found.runs) != timed:
                raise WorkerGarbledError(f"the worker's reply has {len(found.runs)} runs of {timed}")
            return found

        return self._tried(name, ask)

    def null_calls(self, count: int) -> tuple[float, ...]:
        """Return the milliseconds of calls that compute nothing; none if the worker was lost."""
        try:
            request = Sample((NULL_PROGRAM,), 1, count)
            return _milliseconds(self._ask(request, self.limits.sample_seconds).durations_ns[0])
        except WorkerLostError as error:
            self._replace(error)
            return ()

    def interrupt(self) -> None:
        """Kill the worker from another thread, so that the thread that waits for its answer gets an error."""
        if self._current is not None:
            self._current.interrupt()

    @property
    def pid(self) -> int | None:
        """The process of the worker; None if it does not run."""
        return self._current.pid if self._current else None

    def contention(self) -> Contention | None:
        """Return the contention counts of the worker so far; None where there are none."""
        return None if self.pid is None else contention(self.pid)

    def wait_until_idle(self) -> None:
        """Wait until the threads of the worker stop computing."""
        if self.pid is not None:
            with self.waiting():
                wait_until_idle(self.pid)

    def holds(self, name: str) -> bool:
        return name in self._programs

    def take_losses(self) -> dict[str, Loss]:
        """Return the programs that failed since the last call."""
        losses, self._losses = self._losses, {}
        return losses

    def clear(self, keep: Collection[str] = ()) -> None:
        """Unload all programs except fixtures and those to keep."""
        names = tuple(name for name, it in self._programs.items() if not it.fixture and name not in keep)
        for name in names:
            del self._programs[name]
        self._unexplained_losses = 0
        if names:
            try:
                self._ask(Unload(names), self.limits.sample_seconds)
            except WorkerLostError as error:
                self._replace(error)

    def _loaded(self, name: str, loading: _Loading) -> Loaded:
        loaded = self._ask(Load(name, loading.program, self.memory_limit_bytes, True), loading.seconds)
        self._usual_seconds[name] = loaded.first_run_seconds
        self.reasons.pop(name, None)
        return loaded

    def _sampled(self, names: Sequence[str], untimed: int, timed: int) -> tuple[tuple[float, ...], ...]:
        # Each run of a brick also runs its producer, which may take longer than the brick.
        seconds = self._seconds_for(names, 2 * (untimed + timed))
        durations_ns = self._ask(Sample(tuple(names), untimed, timed), seconds).durations_ns
        if [len(of_one) for of_one in durations_ns] != [timed] * len(names):
            raise WorkerGarbledError(
                f"the worker's reply does not match the {len(names)} programs it was asked to time"
            )
        return tuple(map(_milliseconds, durations_ns))

    def _seconds_for(self, names: Sequence[str], runs: int) -> float:
        """Return how long so many runs of each program may take."""
        usual_seconds = sum(self._usual_seconds[name] for name in names) * runs
        return self.limits.sample_seconds + _SLOWER_THAN_EVER * usual_seconds

    def _tried(self, name: str, ask: Callable[[], Found]) -> Found | None:
        """Return the worker's answer about a program. If there is none, unload the program and return None."""
        try:
            return ask()
        except WorkerRefusedError as refused:
            self._unload_refused(name, refused)
        except WorkerLostError as error:
            self._blame(name, error)
            self._replace(error)
        return None

    def _unload_refused(self, name: str, refused: WorkerRefusedError) -> None:
        is_alone = all(it.fixture or other == name for other, it in self._programs.items())
        crowded = refused.reason in (Reason.TOO_LARGE, Reason.NO_ROOM) and not is_alone
        self._lose(name, Loss(refused.reason.value, str(refused), try_alone=crowded))

    def _blame(self, name: str, error: WorkerLostError) -> None:
        """Unload the program; it is certainly at fault if it hangs, or takes a second worker down."""
        hung = isinstance(error, WorkerHungError)
        reason = HUNG if hung else GARBLED if isinstance(error, WorkerGarbledError) else CRASHED
        # The first loss may be the fault of a program beside it, or of a kill from outside.
        try_alone = not hung and name not in self._lost_before
        self._lost_before.add(name)
        # A fixture that was lost once stays, and is loaded into the new worker with the other programs.
        if not (try_alone and name in self._programs and self._programs[name].fixture):
            self._lose(name, Loss(reason, str(error), try_alone))

    def _lose(self, name: str, loss: Loss) -> None:
        self._programs.pop(name, None)
        self._losses[name] = self.reasons[name] = loss

    def _replace(self, error: WorkerLostError) -> None:
        """Load all programs into a new worker."""
        self.tell_replaced(str(error))
        waiting = dict(self._programs)
        while waiting:
            name, loading = next(iter(waiting.items()))
            try:
                self._loaded(name, loading)
                del waiting[name]
            except WorkerRefusedError as refused:
                self._unload_refused(name, refused)
                del waiting[name]
            except WorkerLostError as again:
                # The program ended the new worker too: load everything else once more, without it.
                self._blame(name, again)
                waiting = dict(self._programs)

    def _ask(self, request: Request[Answer], seconds: float) -> Answer:
        if self._current is None or self._current.pid is None:
            self._current, self._described = self._started()
        with self.waiting():
            return self._current.ask(request, seconds)

    def _started(self) -> tuple[Worker, Described]:
        """Return a worker that has imported its framework, and what it tells: no program is at fault for that time."""
        lost: WorkerLostError | None = None
        for _ in range(_ATTEMPTS):
            try:
                with self.waiting():
                    worker = self._open.enter_context(self.start())
                    return worker, worker.ask(Describe(), START_SECONDS)
            except WorkerLostError as error:
                self.tell_replaced(str(error))
                lost = error
        raise MeasureError(f"no worker lives long enough to answer: {lost}") from lost


def _milliseconds(durations_ns: Iterable[int]) -> tuple[float, ...]:
    return tuple(duration / _NANOSECONDS_PER_MS for duration in durations_ns)


# A convolution as in the middle of most networks: long enough to be timed well, short enough to cost little.
_DATA, _WEIGHT = (1, 64, 28, 28), (64, 64, 3, 3)
_DTYPE = "float32"
_OPSET = 13
# So much memory shows when other guests of the host take bandwidth.
_BYTES_READ, _ROWS = 1 << 26, 64

REFERENCE = "reference"
# A single run is too short to judge a round by: one interrupt would make the round count as disturbed.
_UNTIMED_RUNS, _RUNS = 1, 5
RUNS_PER_READING = _UNTIMED_RUNS + _RUNS


def reference_ms(worker: SupervisedWorker) -> float | None:
    """Return the latency of the reference program now; None if the worker could not load it."""
    if not worker.holds(REFERENCE):
        return None
    taken = worker.sample([REFERENCE], _UNTIMED_RUNS, _RUNS)
    return median(taken[REFERENCE]) if taken else None


def reference_program(form: Format) -> Program:
    """Return the program for runtimes of a format."""
    data, weight = {"data": ArrayType(_DATA, _DTYPE)}, {"weight": ArrayType(_WEIGHT, _DTYPE)}
    return Program(Network(_WRITERS[form](), data, weight))


def _symbol() -> str:
    nodes = [
        {"op": "null", "name": "data", "inputs": []},
        {"op": "null", "name": "weight", "inputs": []},
        {
            "op": "Convolution",
            "name": "reference",
            "attrs": {"kernel": "(3, 3)", "pad": "(1, 1)", "num_filter": "64", "no_bias": "True"},
            "inputs": [[0, 0, 0], [1, 0, 0]],
        },
    ]
    document = {"nodes": nodes, "arg_nodes": [0, 1], "heads": [[2, 0, 0]], "attrs": {"mxnet_version": ["int", 10500]}}
    return json.dumps(document)


def _onnx() -> str:
    sheet = OnnxSheet()
    weight = sheet.variable("weight", TensorType(_WEIGHT, _DTYPE), learned=True)
    return _written(sheet, "Conv", TensorType(_DATA, _DTYPE), (weight, 0), pads=[1, 1, 1, 1])


def memory_reference() -> Program:
    """Return a program of ONNX that reads memory with all threads, as decoding does."""
    read = TensorType((_ROWS, _BYTES_READ // _ROWS // 4), _DTYPE)
    text = _written(OnnxSheet(), "ReduceMax", read, axes=[1], keepdims=1)
    return Program(Network(text, {"data": ArrayType(read.shape or (), _DTYPE)}, {}))


def _written(sheet: OnnxSheet, op: str, read: TensorType, *weights: tuple[int, int], **attributes: Any) -> str:
    """Return a network with one operator, which reads data and weights."""
    from onnx.helper import make_node

    feeds = [(sheet.variable("data", read, learned=False), 0), *weights]
    node = make_node(op, ["data", "weight"][: len(feeds)], ["result"], **attributes)
    return sheet.text([(sheet.operator(native_node(node, {}, _OPSET), "reference", feeds), 0)])


_WRITERS: Mapping[Format, Callable[[], str]] = {Format.MXNET: _symbol, Format.ONNX: _onnx}
