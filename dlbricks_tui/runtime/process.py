"""A worker process with a framework: start it, send requests, end it, and keep its output in a log."""

import os
import re
import selectors
import signal
import subprocess
import tempfile
import threading
import time
import weakref
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, cast

from dlbricks_tui.errors import exit_in_words
from dlbricks_tui.files import open_log, open_regular
from dlbricks_tui.recorded_host import NOTHING_IS_MEASURED, recorded_host
from dlbricks_tui.runtime.errors import (
    FrameworkMissingError,
    WorkerDiedError,
    WorkerGarbledError,
    WorkerHungError,
    WorkerRefusedError,
)
from dlbricks_tui.runtime.lines import ProtocolError, decode, encode
from dlbricks_tui.runtime.protocol import Answer, Reason, Refused, Reply, Request, answers
from dlbricks_tui.runtime.runtime import Runtime

INSIDE = Path(__file__).resolve().parent / "inside"

CHUNK_BYTES = 1 << 18
# Ten times the size for the largest graph. The limit protects our memory from a defective worker.
LONGEST_REPLY_BYTES = 1 << 28
SECONDS_FROM_CLOSED_PIPE_TO_EXIT = 5.0

KEPT_BYTES = 1 << 20
TAIL_BYTES = 1 << 14
LONGEST_QUOTE = 200

# Lines of a stack trace name places in the source of a framework. They do not help in a message of one line.
STACK_TRACE = ("  ", "Stack trace", "[bt]", "Traceback")
# MXNet's routine output when it loads a graph.
ROUTINE = re.compile("subgraph backend is not in use|saved by previous version|successfully upgraded")


class Worker:
    """A process that answers requests one by one. Leaving the `with` block ends it, and so does any failure.

    Only one thread at a time may ask. The output of the framework goes to the log.
    """

    def __init__(self, runtime: Runtime, log: Path, program: Path = INSIDE) -> None:
        self._runtime = runtime
        self.log = WorkerLog(log)
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None
        self._requests = -1
        self._replies = -1
        # The request that was sent ahead.
        self._sent = b""
        # Holds the temporary files of the process, which is killed before it could remove them.
        self._scratch: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> "Worker":
        """Start the process, unless it was started before."""
        if self._process is not None:
            return self
        if recorded_host() is not None:
            raise FrameworkMissingError(NOTHING_IS_MEASURED)
        worker_reads, self._requests = os.pipe()
        self._replies, worker_writes = os.pipe()
        # A worker that does not read must not block us beyond the time-out.
        os.set_blocking(self._requests, False)
        try:
            self._process = self._start(worker_reads, worker_writes)
        except BaseException:
            self._clean_up()
            raise
        finally:
            os.close(worker_reads)
            os.close(worker_writes)
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def pid(self) -> int | None:
        """The process id, None before the start and after the end."""
        return self._process.pid if self._process else None

    def send_ahead(self, request: Request[Answer]) -> None:
        """Let a new worker begin with the request that it will be asked first."""
        self._sent = encode(request)
        # If the process has ended, `ask` tells why.
        with suppress(BrokenPipeError):
            os.write(self._requests, self._sent)

    def ask(self, request: Request[Answer], timeout_seconds: float) -> Answer:
        """Return the answer, or raise a WorkerError. A refusal leaves the worker running; any other error ends it."""
        if self._process is None:
            raise WorkerDiedError(f"{self._name} has ended")
        try:
            reply = decode(Reply, self._exchange(self._process, encode(request), timeout_seconds))
        except ProtocolError as error:
            self.end()
            raise WorkerGarbledError(f"{self._name} wrote an invalid answer: {error}; {self.log.hint}") from error
        except BaseException:
            # After an interrupted exchange, the late answer would be taken for the answer to the next request.
            self.end()
            raise
        if isinstance(reply, Refused):
            if reply.reason is Reason.NO_PRECISION:
                raise FrameworkMissingError(f"{reply.message}: choose another precision", reply.message)
            if reply.reason is Reason.NO_FRAMEWORK:
                told = f"{self._runtime.python}: {reply.message}; {self._remedy}"
                raise FrameworkMissingError(told, reply.message)
            raise WorkerRefusedError(reply.reason, reply.message, reply.node)
        if not answers(request, reply):
            self.end()
            wrong = f"answers {type(request).__name__} with {type(reply).__name__}"
            raise WorkerGarbledError(f"{self._name} {wrong}; {self.log.hint}")
        return cast("Answer", reply)

    def end(self) -> int | None:
        """Kill the process with all its children, wait for it, and return its exit status."""
        process, self._process = self._process, None
        if process is None:
            return None
        if process.poll() is None:
            # The worker leads its own process group. Its id cannot be reused before `wait`.
            os.killpg(process.pid, signal.SIGKILL)
        status = process.wait()
        self._clean_up()
        return status

    def interrupt(self) -> None:
        """Kill the process from another thread, so that the thread that waits for its answer gets an error."""
        process = self._process
        if process is not None:
            # It leads its own process group, and may have ended meanwhile.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    @property
    def _name(self) -> str:
        return f"the worker of {self._runtime.name}"

    def _start(self, worker_reads: int, worker_writes: int) -> subprocess.Popen[bytes]:
        command = [self._runtime.python, str(self._program)]
        command += ["--requests", str(worker_reads), "--replies", str(worker_writes)]
        command += ["--framework", self._runtime.framework]
        if self._runtime.settings.memory_limit_bytes is not None:
            command += ["--memory-limit", str(self._runtime.settings.memory_limit_bytes)]
        if threading.current_thread() is threading.main_thread():
            # The kernel reports the death of the starting thread, and only the main thread lives as long as this
            # process.
            command += ["--die-with", str(os.getpid())]
        environment = self._runtime.environment(os.environ)
        # Without a folder for temporary files, a worker answers all that needs none.
        with suppress(OSError):
            self._scratch = tempfile.TemporaryDirectory(prefix="dlbricks-", ignore_cleanup_errors=True)
            environment["TMPDIR"] = self._scratch.name
        with self.log.open() as log:
            try:
                return subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=(worker_reads, worker_writes),
                    env=environment,
                    cwd=self.log.folder,
                    start_new_session=True,
                )
            except OSError as error:
                raise FrameworkMissingError(
                    f"cannot start {self._runtime.python}: {error.strerror}; {self._remedy}"
                ) from error

    def _exchange(self, process: subprocess.Popen[bytes], line: bytes, timeout_seconds: float) -> bytes:
        deadline = time.monotonic() + timeout_seconds
        sent, self._sent = self._sent, b""
        outgoing, incoming = memoryview(line.removeprefix(sent)), bytearray()
        with selectors.DefaultSelector() as selector:
            if outgoing:
                selector.register(self._requests, selectors.EVENT_WRITE)
            selector.register(self._replies, selectors.EVENT_READ)
            while True:
                remaining = deadline - time.monotonic()
                ready = {key.fd for key, _ in selector.select(remaining)} if remaining > 0 else set()
                if not ready:
                    raise WorkerHungError(f"{self._name} did not answer within {timeout_seconds:g} s; {self.log.hint}")
                if self._replies in ready:
                    chunk = os.read(self._replies, CHUNK_BYTES)
                    if not chunk:
                        raise self._death(process)
                    incoming += chunk
                    if b"\n" in chunk:
                        return bytes(incoming)
                    if len(incoming) > LONGEST_REPLY_BYTES:
                        raise ProtocolError("a line without an end")
                elif outgoing:
                    try:
                        outgoing = outgoing[os.write(self._requests, outgoing) :]
                    except BrokenPipeError:
                        raise self._death(process) from None
                    if not outgoing:
                        selector.unregister(self._requests)

    def _death(self, process: subprocess.Popen[bytes]) -> WorkerDiedError:
        try:
            how = exit_in_words(process.wait(SECONDS_FROM_CLOSED_PIPE_TO_EXIT))
        except subprocess.TimeoutExpired:
            how = "closed its pipe and went on"
        return WorkerDiedError(f"{self._name} {how}: {self.log.last_message()}; {self.log.hint}")

    @property
    def _remedy(self) -> str:
        traits = self._runtime.traits
        return (
            f"install {traits.title} there ({traits.install_there}), "
            "or register an interpreter that has it: `dlbricks runtimes add PATH`"
        )

    def _clean_up(self) -> None:
        os.close(self._requests)
        os.close(self._replies)
        if self._scratch is not None:
            self._scratch.cleanup()


class WorkerLog:
    """The file to which all workers of a kind append. It starts again when it has grown large."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._start = 0
        # Stands in for a log file that cannot be written.
        self._substitute: BinaryIO | None = None

    @property
    def hint(self) -> str:
        """A clause for messages that names the log file."""
        return f"its log is {self.path}" if self._substitute is None else f"its log cannot be kept in {self.path}"

    @property
    def folder(self) -> Path:
        """The working folder of a worker, in which it may leave a core dump."""
        return self.path.parent if self._substitute is None else Path(tempfile.gettempdir())

    def move(self, path: Path) -> None:
        """Move the log to another file, unless it cannot be written; a worker writes on."""
        with suppress(OSError):
            # Another worker that writes to this log may have moved it.
            self.path = self.path.replace(path) if self.path.exists() else path

    def open(self) -> BinaryIO:
        """Open the log for a new worker, and remember where its output begins."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            outgrown = self.path.exists() and self.path.stat().st_size > KEPT_BYTES
            log = open_log(self.path)
            if outgrown:
                log.truncate(0)
        except OSError:
            # A worker can run without a log.
            if self._substitute is None:
                self._substitute = tempfile.TemporaryFile()  # noqa: SIM115 - it is read when the worker has ended
                weakref.finalize(self, self._substitute.close)
            log = os.fdopen(os.dup(self._substitute.fileno()), "wb")
        else:
            self._substitute = None
        self._start = log.seek(0, os.SEEK_END)
        return log

    def last_message(self) -> str:
        """Return the last line of this worker that tells why it ended."""
        kept = self._substitute
        try:
            with open_regular(self.path) if kept is None else os.fdopen(os.dup(kept.fileno()), "rb") as log:
                end = log.seek(0, os.SEEK_END)
                log.seek(max(self._start, end - TAIL_BYTES))
                lines = log.read().decode(errors="replace").splitlines()
        except OSError:
            lines = []
        messages = [
            line for line in lines if line.strip() and not line.startswith(STACK_TRACE) and not ROUTINE.search(line)
        ]
        return messages[-1].strip()[:LONGEST_QUOTE] if messages else "it printed nothing"
