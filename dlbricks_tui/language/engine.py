"""The engine that runs whole language models: onnxruntime-genai, in a process of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from dlbricks_tui.host.contention import wait_until_idle
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
    """The times of one text: until the first token, of each later one, and of processors in all.

    `peak_bytes` is the most memory that the engine has held so far.
    """

    prefill_ms: float
    step_ms: tuple[float, ...]
    processor_seconds: float
    peak_bytes: int


class GenaiEngine:
    """The engine with the whole model of a folder; leaving the `with` block ends it."""

    def __init__(
        self, runtime: Runtime, folder: Path, log: Path, waiting: Waiting = nullcontext, program: Path = INSIDE
    ) -> None:
        self._folder = folder
        self._threads = runtime.settings.threads or 0
        self._worker = Worker(runtime, log, program)
        self._gigabytes = sum(it.stat().st_size for it in folder.iterdir()) / 1e9
        self._waiting = waiting
        self.version = ""

    def __enter__(self) -> GenaiEngine:
        with _told():
            self._worker.__enter__()
        try:
            self.load()
        except BaseException:
            self._worker.end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.end()

    def load(self) -> None:
        """Load the model, in place of what was loaded before: its weights get other places in memory."""
        request = OpenEngine(str(self._folder.resolve()), self._threads)
        with _told(), self._waiting():
            found = self._worker.ask(request, _SECONDS + _SECONDS_TO_LOAD * self._gigabytes)
        self.version = found.version

    def run(self, prompt: int, generate: int) -> EngineRun:
        """Read a prompt of so many tokens, and generate so many, at least one."""
        per_gigabyte = _SECONDS_PER_PROMPT_TOKEN * prompt + _SECONDS_PER_TOKEN * generate
        with _told(), self._waiting():
            found = self._worker.ask(Generate(prompt, generate), _SECONDS + self._gigabytes * per_gigabyte)
        if self._worker.pid is not None:
            # Its threads go on spinning for a while.
            wait_until_idle(self._worker.pid)
        steps = tuple([it / _NS_PER_MS for it in found.later_ns])
        return EngineRun(found.first_ns / _NS_PER_MS, steps, found.processor_ns / 1e9, found.peak_bytes)


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
