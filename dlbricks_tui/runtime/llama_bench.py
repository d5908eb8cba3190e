"""llama.cpp's own benchmark as a process: a llama-bench of the user, or the bindings for Python in an interpreter.

Each run loads a GGUF file, times some tests with it, and ends.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, NamedTuple

from dlbricks_tui.errors import exit_in_words
from dlbricks_tui.printable import printable
from dlbricks_tui.runtime.errors import (
    FrameworkMissingError,
    WorkerDiedError,
    WorkerError,
    WorkerGarbledError,
    WorkerHungError,
)
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import LLAMA_CPP
from dlbricks_tui.runtime.variant import CachePrecision, FlashAttention, stated_flash_attention

PROGRAM = "llama-bench"
# Speaks the same language as llama-bench, with the bindings that an interpreter has.
BINDINGS = Path(__file__).parent / "inside" / "llama_cpp_bench.py"
_VERSION = re.compile(r"^version: (\S+)(?:.*?[(, ]([0-9a-f]{7,})\))?", re.MULTILINE)
_SECONDS_TO_DESCRIBE, _NAP_SECONDS = 20.0, 0.02
_MOST_OUTPUT_BYTES, _LONGEST_REASON = 1 << 20, 200
_SET_PARENT_DEATH_SIGNAL = 1
_TYPES_OF_CACHES = {CachePrecision.INT8: "q8_0"}


class LlamaTest(NamedTuple):
    """A test: a prompt to read, or tokens to generate, behind so many other tokens."""

    prompt: int
    generate: int
    depth: int

    @property
    def arguments(self) -> list[str]:
        return ["-p", str(self.prompt), "-n", str(self.generate), "-d", str(self.depth)]


def is_llama_bench(path: Path) -> bool:
    return path.name.startswith(PROGRAM)


def version_of(program: str) -> str:
    """Return the version of a llama-bench, or of the bindings in an interpreter; without one, the hash of its file."""
    output, errors = _ran([*_command(program), "--version"], os.environ, Path(), _SECONDS_TO_DESCRIBE)
    found = _VERSION.search(output) or _VERSION.search(errors)
    if found is not None:
        return "-".join(filter(None, found.groups()))
    if not is_llama_bench(Path(program)):
        reason = _reason(errors) or ": it has no llama-cpp-python"
        raise FrameworkMissingError(f"{program}{reason}; install it there: {LLAMA_CPP.install_there}")
    if PROGRAM not in output + errors:
        raise WorkerGarbledError(f"{program} does not answer like {PROGRAM}: give the path of llama.cpp's {PROGRAM}")
    return sha256(Path(program).read_bytes()).hexdigest()[:10]


def run_test(
    runtime: Runtime,
    model: Path,
    test: LlamaTest,
    repeats: int = 1,
    seconds: float = 600.0,
    check: Callable[[], None] = lambda: None,
) -> tuple[int, ...]:
    """Load a model, time a test so often, and return the nanoseconds of each time.

    `check` is called all the time, and may raise, which ends the process.
    """
    threads, identity = runtime.settings.threads, runtime.identity
    options = ["-o", "json", "-r", str(repeats)]
    if threads is not None:
        options += ["-t", str(threads)]
    if (flash := stated_flash_attention(identity)) is not None:
        options += ["-fa", "1" if flash is FlashAttention.ON else "0"]
    cache = runtime.cache
    if cache is not None and cache is not runtime.traits.caches[0]:
        name = _TYPES_OF_CACHES.get(cache, cache.value)
        options += ["-ctk", name, "-ctv", name]
    command = [*_command(runtime.python), "-m", str(model), *test.arguments, *options]
    output, errors = _ran(command, runtime.environment(os.environ), model.parent, seconds, check)
    return _samples(output, errors, test)


def _command(program: str) -> list[str]:
    return [program] if is_llama_bench(Path(program)) else [program, str(BINDINGS)]


def _samples(output: str, errors: str, test: LlamaTest) -> tuple[int, ...]:
    """Return the samples of a test in nanoseconds."""
    with suppress(ValueError, TypeError, KeyError, AttributeError):
        for entry in json.loads(output):
            if (entry["n_prompt"], entry["n_gen"], entry["n_depth"]) == test:
                found: list[Any] = entry["samples_ns"]
                if found and all(type(it) is int and it > 0 for it in found):
                    return tuple(found)
    raise WorkerGarbledError(f"{PROGRAM} answered something else than times{_reason(errors or output)}")


def _ran(
    command: Sequence[str],
    environment: Mapping[str, str],
    folder: Path,
    seconds: float,
    check: Callable[[], None] = lambda: None,
) -> tuple[str, str]:
    """Run a command to its end; return what it printed, and its errors."""
    until = time.monotonic() + seconds
    with _files(folder) as (output, errors):
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                env=dict(environment),
                preexec_fn=partial(_end_with_parent, os.getpid()),
            )
        except OSError as error:
            raise WorkerError(f"{command[0]} cannot be started: {error.strerror}") from error
        try:
            while process.poll() is None:
                check()
                if time.monotonic() > until:
                    raise WorkerHungError(f"{PROGRAM} did not answer within {seconds:.0f} s and was ended")
                time.sleep(_NAP_SECONDS)
        finally:
            if process.returncode is None:
                process.kill()
                process.wait()
        told, failed = _text(output), _text(errors)
    code = process.returncode
    # A llama-bench that knows no --version ends with status 1.
    if code and not (code == 1 and "--version" in command):
        raise WorkerDiedError(f"{PROGRAM} {exit_in_words(code)}{_reason(failed or told)}")
    return told, failed


@contextmanager
def _files(folder: Path) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """Open two files for what a program prints: a pipe that nobody reads would stop it."""
    where = folder if folder != Path() else None
    with ExitStack() as opened:
        try:
            output, errors = [opened.enter_context(tempfile.TemporaryFile(dir=where)) for _ in range(2)]
        except OSError as error:
            reason = f"{error.strerror}; free some of the disk"
            raise WorkerError(f"there is no file for what {PROGRAM} prints: {reason}") from error
        yield output, errors


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(_MOST_OUTPUT_BYTES).decode(errors="replace")


def _reason(text: str) -> str:
    """Return the last line of an output, after a colon; nothing if there is none."""
    lines = [it.strip() for it in text.splitlines() if it.strip()]
    return f": {printable(lines[-1][:_LONGEST_REASON])}" if lines else ""


def _end_with_parent(parent: int) -> None:
    """Let the kernel end this process when the one that measures is killed, or was killed just now."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
