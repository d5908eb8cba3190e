"""The framework as a worker process, started when the first question comes."""

import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType

from dlbricks_tui.models.graph import UNKNOWN_DTYPE, Shape, TensorType
from dlbricks_tui.models.loading import Answer
from dlbricks_tui.runtime.errors import WorkerDiedError, WorkerRefusedError
from dlbricks_tui.runtime.process import INSIDE, Worker
from dlbricks_tui.runtime.protocol import Fuse, Infer, Reason, Tensor
from dlbricks_tui.runtime.runtime import Runtime

# The largest graphs take seconds; only a worker that hangs takes longer.
PATIENCE_SECONDS = 120.0
# Settings that change which graph the framework makes of a model.
GRAPH_SETTINGS_PREFIX = "MXNET_"


class WorkerFramework:
    """Asks one worker of a runtime; leaving the `with` block ends it."""

    def __init__(self, runtime: Runtime, log: Path, program: Path = INSIDE) -> None:
        self._runtime = runtime
        self._log = log
        self._program = program
        self._open = ExitStack()
        self._worker: Worker | None = None
        self._interrupted = False

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

    @property
    def identity(self) -> str:
        """The framework with its version, and the settings that decide what it fuses."""
        settings = [f"{name}={value}" for name, value in sorted(self._runtime.settings.environment)]
        chosen = [setting for setting in settings if setting.startswith(GRAPH_SETTINGS_PREFIX)]
        return " ".join([f"{self._runtime.framework}-{self._runtime.version}", *chosen])

    def infer(self, symbol: str, shapes: Mapping[str, Shape]) -> Answer:
        """The types of all outputs."""
        answer = self._running().ask(Infer(symbol, shapes, {}), PATIENCE_SECONDS)
        return Answer(_types(answer.outputs), frozenset(answer.unknown))

    def fuse(self, symbol: str, shapes: Mapping[str, Shape]) -> Answer:
        """The graph that the framework would run."""
        try:
            answer = self._running().ask(Fuse(symbol, shapes, {}), PATIENCE_SECONDS)
        except WorkerDiedError as died:
            if self._interrupted:
                raise
            # Some graphs that MXNet cannot fuse it does not refuse, but dies of them.
            raise WorkerRefusedError(Reason.UNFUSABLE, str(died), None) from died
        return Answer(_types(answer.outputs), symbol=answer.symbol, parts=answer.parts)

    def _running(self) -> Worker:
        if self._worker is None or self._worker.pid is None:
            self._worker = self._open.enter_context(Worker(self._runtime, self._log, self._program))
        return self._worker


def _types(outputs: Sequence[Sequence[Tensor]]) -> tuple[tuple[TensorType, ...], ...]:
    return tuple([tuple([TensorType(it.shape, it.dtype or UNKNOWN_DTYPE) for it in found]) for found in outputs])
