"""Frameworks in worker processes, and loaders that ask them.

The protocol of workers is imported where a worker is asked: most commands find all answers in the cache.
"""

from __future__ import annotations

from contextlib import ExitStack
from threading import Timer
from typing import TYPE_CHECKING, TypeVar

from dlbricks_tui.models.cache import GraphAnswer
from dlbricks_tui.models.errors import NotInCacheError, WrongRuntimeError
from dlbricks_tui.models.graph import UNKNOWN_DTYPE, Numbers, Shape, TensorType
from dlbricks_tui.models.input_shapes import ShapeMemory
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.errors import FrameworkMissingError, WorkerDiedError, WorkerHungError, WorkerRefusedError
from dlbricks_tui.runtime.registry import quantising_runtime
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import Format, Traits
from dlbricks_tui.runtime.variant import Precision

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from dlbricks_tui.runtime.process import Worker
    from dlbricks_tui.runtime.protocol import Held, Network, Reply, Request, Tensor

# The largest graphs take seconds. Only a worker that hangs takes longer.
ANSWER_SECONDS = 120.0
# One run of a model, which tells shapes: a loop in it may have any number of trips.
RUN_SECONDS = 20.0
# A run that takes longer is told.
QUIET_SECONDS = 2.0
# The largest models take two minutes.
QUANTISE_SECONDS = 900.0

AnyReply = TypeVar("AnyReply", bound="Reply")


class WorkerFramework:
    """Questions to one worker of a runtime. Leaving the `with` block ends it."""

    def __init__(
        self,
        runtime: Runtime,
        log: Path,
        program: Path | None = None,
        tell: Callable[[str], None] | None = None,
        *,
        may_start: bool = True,
    ) -> None:
        """`tell` takes a line about a question that takes long, in another thread.

        A framework that may not start raises NotInCacheError at each question.
        """
        self._runtime = runtime
        self._tell = tell
        self._log = log
        self._program = program
        self._may_start = may_start
        self._worker: Worker | None = None
        self._interrupted = False
        # The message of the first failure to find the framework.
        self._missing = ""

    def __enter__(self) -> WorkerFramework:
        return self

    def __exit__(self, *_: object) -> None:
        if self._worker is not None:
            self._worker.end()

    def interrupt(self) -> None:
        """Kill the worker from another thread, so that the thread that waits for its answer gets an error."""
        self._interrupted = True
        if self._worker is not None:
            self._worker.interrupt()

    def retry_missing(self) -> None:
        """Try again after the framework was missing: it may have been installed since."""
        if self._missing and self._worker is not None:
            self._worker.end()
        self._missing = ""

    @property
    def traits(self) -> Traits:
        """The facts about the framework."""
        return self._runtime.traits

    @property
    def identity(self) -> str:
        """The framework with its version and the settings that change what it fuses."""
        settings = [f"{name}={value}" for name, value in sorted(self._runtime.settings.environment)]
        chosen = [setting for setting in settings if setting.startswith(self.traits.graph_variable_prefixes)]
        return " ".join(
            [f"{self._runtime.framework}-{self._runtime.version}", *self._runtime.stated_precision, *chosen]
        )

    @property
    def precision(self) -> Precision:
        """The precision that the runtime computes in."""
        return self._runtime.settings.precision

    @property
    def quantiser(self) -> str:
        """The quantiser with its version, and whether it may quantise dynamically."""
        found = quantising_runtime()
        return f"{found.framework}-{found.version}{' dynamic' if self.traits.quantises_dynamically else ''}"

    def quantise(self, file: Path, copy: Path, inputs: Mapping[str, TensorType], values: Mapping[str, Numbers]) -> None:
        """Let ONNX Runtime of this interpreter write a quantised copy of a model file."""
        from dlbricks_tui.runtime.protocol import ArrayType, Network, Quantise

        arrays = {name: ArrayType(it.shape or (), it.dtype) for name, it in inputs.items()}
        network = Network("", arrays, {}, file=str(file), values=values)
        with self._worker_of(quantising_runtime()) as worker:
            worker.ask(Quantise(network, str(copy), self.traits.quantises_dynamically), QUANTISE_SECONDS)

    def infer(self, symbol: str, shapes: Mapping[str, Shape]) -> GraphAnswer:
        """Return the types of all outputs."""
        from dlbricks_tui.runtime.protocol import Infer

        answer = self._answer(Infer(symbol, shapes), Format.MXNET)
        return GraphAnswer(_types(answer.outputs), frozenset(answer.unknown))

    def fuse(self, symbol: str, shapes: Mapping[str, Shape]) -> GraphAnswer:
        """Return the graph that the framework would run."""
        from dlbricks_tui.runtime.protocol import ArrayType, Fuse, Network

        inputs = {name: ArrayType(shape, TensorType(shape).dtype) for name, shape in shapes.items()}
        answer = self._guarded(Fuse(Network(symbol, inputs, {})), Format.MXNET)
        return GraphAnswer(_types(answer.outputs), symbol=answer.symbol, parts=answer.parts)

    def executed(self, network: Network) -> str:
        """Return what the framework executes of an ONNX model, or of the file that it names: a graph, or nodes."""
        from dlbricks_tui.runtime.protocol import Fuse

        return self._guarded(Fuse(network), Format.ONNX).symbol

    def output_types(self, model: str) -> tuple[TensorType, ...]:
        """Return the types of an ONNX model's outputs."""
        from dlbricks_tui.runtime.protocol import Infer

        answer = self._guarded(Infer(model, {}), Format.ONNX)
        return tuple([found for (found,) in _types(answer.outputs)])

    def recorded(
        self,
        model: str,
        inputs: Mapping[str, TensorType],
        weights: Mapping[str, TensorType],
        values: Mapping[str, Numbers],
    ) -> Sequence[Held | None]:
        """Run an ONNX model once, for some seconds at most, and return its outputs."""
        from dlbricks_tui.runtime.protocol import ArrayType, Network, Record

        arrays, learned = (
            {name: ArrayType(it.shape or (), it.dtype) for name, it in them.items()} for them in (inputs, weights)
        )
        question = Record(Network(model, arrays, learned, values=values))
        telling = Timer(QUIET_SECONDS, self._tell or id, [f"{_RUNS}, for at most {RUN_SECONDS:g} s"])
        telling.start()
        try:
            return self._guarded(question, Format.ONNX, RUN_SECONDS).outputs
        finally:
            telling.cancel()

    def _guarded(
        self, question: Request[AnyReply], needed: Format, most_seconds: float = ANSWER_SECONDS, *, again: bool = True
    ) -> AnyReply:
        try:
            return self._answer(question, needed, most_seconds)
        except (WorkerDiedError, WorkerHungError) as lost:
            if self._interrupted:
                raise
            if again and isinstance(lost, WorkerDiedError):
                # It may have been killed from outside, and the cache would keep that as a fact about the model.
                return self._guarded(question, needed, most_seconds, again=False)
            from dlbricks_tui.runtime.protocol import Reason

            # Frameworks crash on some graphs that they cannot fuse or run.
            raise WorkerRefusedError(Reason.UNFUSABLE, str(lost), None) from lost

    def _answer(self, question: Request[AnyReply], needed: Format, most_seconds: float = ANSWER_SECONDS) -> AnyReply:
        # With many models, each would start the worker again and get the same error.
        if self._missing:
            raise FrameworkMissingError(self._missing)
        runtime = self._runtime
        if self._may_start and runtime.traits.format is not needed:
            raise WrongRuntimeError(
                f"runtime {runtime.name} runs {runtime.traits.format.value} models, and this is one of {needed.value}"
            )
        try:
            if self._worker is None or self._worker.pid is None:
                self._worker = self._worker_of(runtime).__enter__()
            return self._worker.ask(question, most_seconds)
        except FrameworkMissingError as missing:
            self._missing = str(missing)
            raise

    def _worker_of(self, runtime: Runtime) -> Worker:
        if not self._may_start:
            raise NotInCacheError("this model has not been read before")
        from dlbricks_tui.runtime.process import INSIDE, Worker

        return Worker(runtime, self._log, self._program or INSIDE)


_RUNS = "some shapes or branches of the model follow from its data: it is run once to learn them"


def _types(outputs: Sequence[Sequence[Tensor]]) -> tuple[tuple[TensorType, ...], ...]:
    return tuple([tuple([TensorType(it.shape, it.dtype or UNKNOWN_DTYPE) for it in found]) for found in outputs])


class Frameworks:
    """The workers that models are read with, at most one per format.

    One thread at a time may ask each, any thread may interrupt.
    """

    def __init__(
        self,
        runtimes: Mapping[Format, Runtime],
        cache: Path,
        log: Path,
        memory: ShapeMemory | None = None,
        most_bytes: int | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        """`runtimes` names the runtime for each format; there is always one for MXNet's.

        `most_bytes` is the memory for the tensors of a model at a given batch size. `tell` takes a line about a
        question that takes long.
        """
        self._workers = {form: WorkerFramework(runtime, log, tell=tell) for form, runtime in runtimes.items()}
        resting = {form: WorkerFramework(runtime, log, may_start=False) for form, runtime in runtimes.items()}
        # They ask the frameworks for everything not in the cache, or raise NotInCacheError.
        self.loader, self.loader_from_cache = (
            Loader(cache, them[Format.MXNET], them.get(Format.ONNX), memory, most_bytes)
            for them in (self._workers, resting)
        )

    @property
    def identities(self) -> tuple[str, ...]:
        """The frameworks with their versions and the settings that change what they fuse."""
        return tuple(worker.identity for worker in self._workers.values())

    def retry_missing(self) -> None:
        """Try again after a framework was missing."""
        for worker in self._workers.values():
            worker.retry_missing()

    def interrupt(self) -> None:
        """End the workers, together with their current requests."""
        for worker in self._workers.values():
            worker.interrupt()

    def close(self) -> None:
        """End the workers."""
        with ExitStack() as opened:
            for worker in self._workers.values():
                opened.push(worker)
