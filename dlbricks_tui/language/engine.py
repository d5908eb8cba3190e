"""The engine that runs whole language models: onnxruntime-genai, in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from dlbricks_tui.language.errors import LanguageError
from dlbricks_tui.runtime.errors import FrameworkMissingError, WorkerDiedError, WorkerError, WorkerRefusedError
from dlbricks_tui.runtime.process import INSIDE, Worker
from dlbricks_tui.runtime.protocol import Generate, OpenEngine, Reason
from dlbricks_tui.runtime.runtime import Runtime

ENGINE = "onnxruntime-genai"
# Limits, which only an engine that hangs exceeds: of a request, and added to it per gigabyte of weights.
_SECONDS, _SECONDS_TO_LOAD, _SECONDS_PER_TOKEN, _SECONDS_PER_PROMPT_TOKEN = 120.0, 120.0, 10.0, 2.0
_NS_PER_MS = 1e6
_NO_ROOM = "the whole model does not fit into the memory that is free: stop other programs, or choose a smaller one"

Waiting = Callable[[], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True)
class EngineRun:
    """The times of one text: until the first token, and of each later one; and the most memory held so far."""

    prefill_ms: float
    step_ms: tuple[float, ...]
    peak_bytes: int


class Engine:
    """A whole model in the engine, ready to generate."""

    def __init__(self, worker: Worker, version: str, gigabytes: float, waiting: Waiting) -> None:
        self.version = version
        self._worker = worker
        self._gigabytes = gigabytes
        self._waiting = waiting

    def run(self, prompt: int, generate: int) -> EngineRun:
        """Read a prompt of so many tokens, and generate so many, at least one."""
        per_gigabyte = _SECONDS_PER_PROMPT_TOKEN * prompt + _SECONDS_PER_TOKEN * generate
        with _told(), self._waiting():
            found = self._worker.ask(Generate(prompt, generate), _SECONDS + self._gigabytes * per_gigabyte)
        steps = tuple([it / _NS_PER_MS for it in found.later_ns])
        return EngineRun(found.first_ns / _NS_PER_MS, steps, found.peak_bytes)

    @property
    def pid(self) -> int | None:
        """The process of the engine; None after its end."""
        return self._worker.pid


@contextmanager
def open_engine(
    runtime: Runtime,
    folder: Path,
    log: Path,
    waiting: Waiting = nullcontext,
    program: Path = INSIDE,
) -> Iterator[Engine]:
    """Load a folder into the engine of a runtime's interpreter, with its threads; leaving the block ends the engine."""
    gigabytes = sum(it.stat().st_size for it in folder.iterdir()) / 1e9
    with Worker(runtime, log, program) as worker:
        with _told(), waiting():
            request = OpenEngine(str(folder.resolve()), runtime.settings.threads or 0)
            opened = worker.ask(request, _SECONDS + _SECONDS_TO_LOAD * gigabytes)
        yield Engine(worker, opened.version, gigabytes, waiting)


@contextmanager
def _told() -> Iterator[None]:
    """Turn errors of the process into those of language models."""
    try:
        yield
    except FrameworkMissingError as error:
        raise LanguageError(
            f"timing whole models needs {ENGINE} ({error.reason or error}); install it: pip install 'dlbricks-tui[llm]'"
        ) from error
    except WorkerRefusedError as error:
        raise LanguageError(_NO_ROOM if error.reason is Reason.TOO_LARGE else f"{ENGINE}: {error}") from error
    except WorkerDiedError as error:
        # The kernel kills the process that takes too much.
        raise LanguageError(_NO_ROOM if "SIGKILL" in str(error) else f"{ENGINE}: {error}") from error
    except WorkerError as error:
        raise LanguageError(f"{ENGINE}: {error}") from error
