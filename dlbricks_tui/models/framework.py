"""The framework as a worker process, started when the first question comes."""

import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import TypeVar

from dlbricks_tui.models.errors import WrongRuntimeError
from dlbricks_tui.models.graph import UNKNOWN_DTYPE, Shape, TensorType
from dlbricks_tui.models.mxnet.loading import Answer
from dlbricks_tui.runtime.errors import FrameworkMissingError, WorkerDiedError, WorkerRefusedError
from dlbricks_tui.runtime.process import INSIDE, Worker
from dlbricks_tui.runtime.protocol import Fuse, Fused, Infer, Reason, Reply, Request, Tensor
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import Format, Traits

# The largest graphs take seconds; only a worker that hangs takes longer.
PATIENCE_SECONDS = 120.0

AnyReply = TypeVar("AnyReply", bound=Reply)


class WorkerFramework:
    """Asks one worker of a runtime; leaving the `with` block ends it."""

    def __init__(self, runtime: Runtime, log: Path, program: Path = INSIDE) -> None:
        self._runtime = runtime
        self._log = log
        self._program = program
        self._open = ExitStack()
        self._worker: Worker | None = None
        self._interrupted = False
        # What was said of that the framework is missing.
        self._missing = ""

    def __enter__(self) -> "WorkerFramework":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def interrupt(self) -> None:
        """From another thread: kills the worker, so that whoever waits for its answer hears of its death instead."""
        self._interrupted = True
        worker = self._worker
        pid = worker.pid if worker is not None else None
        if pid is not None:
            # It leads a group of its own; one that has ended meanwhile needs no killing.
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)

    def look_again(self) -> None:
        """Starts it anew although its framework was missing: somebody may have installed it since."""
        if self._missing and self._worker is not None:
            self._worker.end()
        self._missing = ""

    @property
    def traits(self) -> Traits:
        """The facts about the framework."""
        return self._runtime.traits

    @property
    def identity(self) -> str:
        """The framework with its version, and the settings that decide what it fuses."""
        settings = [f"{name}={value}" for name, value in sorted(self._runtime.settings.environment)]
        chosen = [setting for setting in settings if setting.startswith(self.traits.graph_variable_prefixes)]
        return " ".join([f"{self._runtime.framework}-{self._runtime.version}", *chosen])

    def infer(self, symbol: str, shapes: Mapping[str, Shape]) -> Answer:
        """The types of all outputs."""
        answer = self._answer(Infer(symbol, shapes, {}), Format.MXNET)
        return Answer(_types(answer.outputs), frozenset(answer.unknown))

    def fuse(self, symbol: str, shapes: Mapping[str, Shape]) -> Answer:
        """The graph that the framework would run."""
        answer = self._fused(Fuse(symbol, shapes, {}), Format.MXNET)
        return Answer(_types(answer.outputs), symbol=answer.symbol, parts=answer.parts)

    def optimised(self, model: str, weights: Mapping[str, TensorType]) -> str:
        """The ONNX model as the framework makes it ready to run."""
        shapes = {name: found.shape for name, found in weights.items() if found.shape is not None}
        dtypes = {name: found.dtype for name, found in weights.items()}
        return self._fused(Fuse(model, shapes, dtypes), Format.ONNX).symbol

    def output_types(self, model: str) -> tuple[TensorType, ...]:
        """The types of what an ONNX model puts out."""
        answer = self._answer(Infer(model, {}, {}), Format.ONNX)
        return tuple([found for (found,) in _types(answer.outputs)])

    def _fused(self, question: Fuse, needed: Format) -> Fused:
        try:
            return self._answer(question, needed)
        except WorkerDiedError as died:
            if self._interrupted:
                raise
            # Some graphs that MXNet cannot fuse it does not refuse, but dies of them.
            raise WorkerRefusedError(Reason.UNFUSABLE, str(died), None) from died

    def _answer(self, question: Request[AnyReply], needed: Format) -> AnyReply:
        # Of many models each would start it anew, only to hear the same.
        if self._missing:
            raise FrameworkMissingError(self._missing)
        try:
            return self._running(needed).ask(question, PATIENCE_SECONDS)
        except FrameworkMissingError as missing:
            self._missing = str(missing)
            raise

    def _running(self, needed: Format) -> Worker:
        runtime = self._runtime
        if runtime.traits.format is not needed:
            raise WrongRuntimeError(
                f"runtime {runtime.name} runs {runtime.traits.format.value} models, and this is one of {needed.value}"
            )
        if self._worker is None or self._worker.pid is None:
            self._worker = self._open.enter_context(Worker(self._runtime, self._log, self._program))
        return self._worker


def _types(outputs: Sequence[Sequence[Tensor]]) -> tuple[tuple[TensorType, ...], ...]:
    return tuple([tuple([TensorType(it.shape, it.dtype or UNKNOWN_DTYPE) for it in found]) for found in outputs])
