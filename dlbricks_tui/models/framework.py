"""The framework as a worker process, started when the first question comes."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import Shape, TensorType
from dlbricks_tui.models.loading import Answer, FusionRefusedError
from dlbricks_tui.runtime.errors import WorkerRefusedError
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.protocol import Fuse, Infer, Reason, Tensor
from dlbricks_tui.runtime.runtime import Runtime

# The largest graphs take seconds; only a worker that hangs takes longer.
PATIENCE_SECONDS = 120.0


class WorkerFramework:
    """Asks one worker of a runtime; leaving the `with` block ends it."""

    def __init__(self, runtime: Runtime, log: Path) -> None:
        self._runtime = runtime
        self._log = log
        self._open = ExitStack()
        self._worker: Worker | None = None

    def __enter__(self) -> "WorkerFramework":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    @property
    def identity(self) -> str:
        """The framework with its version."""
        return f"{self._runtime.framework}-{self._runtime.version}"

    def infer(self, symbol: str, shapes: Mapping[str, Shape]) -> Answer:
        """The types of all outputs."""
        try:
            answer = self._running().ask(Infer(symbol, shapes, {}), PATIENCE_SECONDS)
        except WorkerRefusedError as refused:
            raise ModelError(str(refused)) from None
        return Answer(_types(answer.outputs), frozenset(answer.unknown))

    def fuse(self, symbol: str, shapes: Mapping[str, Shape]) -> Answer:
        """The graph that the framework would run."""
        try:
            answer = self._running().ask(Fuse(symbol, shapes, {}), PATIENCE_SECONDS)
        except WorkerRefusedError as refused:
            if refused.reason in (Reason.UNFUSABLE, Reason.UNKNOWN_OPERATOR):
                raise FusionRefusedError(str(refused)) from None
            raise ModelError(str(refused)) from None
        return Answer(_types(answer.outputs), symbol=answer.symbol, parts=answer.parts)

    def _running(self) -> Worker:
        if self._worker is None or self._worker.pid is None:
            self._worker = self._open.enter_context(Worker(self._runtime, self._log))
        return self._worker


def _types(outputs: Sequence[Sequence[Tensor]]) -> tuple[tuple[TensorType, ...], ...]:
    return tuple(tuple([TensorType(it.shape, it.dtype or "float32") for it in found]) for found in outputs)
