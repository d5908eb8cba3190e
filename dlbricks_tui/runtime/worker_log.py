"""The log file with the output of workers."""

import os
import re
import tempfile
from pathlib import Path
from typing import BinaryIO

KEPT_BYTES = 1 << 20
TAIL_BYTES = 1 << 14
LONGEST_QUOTE = 200

# Lines of a stack trace name places in the source of a framework. They do not help in a message of one line.
STACK_TRACE = ("  ", "Stack trace", "[bt]", "Traceback")
# MXNet's routine output when it loads a graph.
ROUTINE = re.compile("subgraph backend is not in use|saved by previous version|successfully upgraded")


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

    def open(self) -> BinaryIO:
        """Open the log for a new worker, and remember where its output begins."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            outgrown = self.path.exists() and self.path.stat().st_size > KEPT_BYTES
            log = self.path.open("wb" if outgrown else "ab")
        except OSError:
            # A worker can run without a log.
            self._substitute = tempfile.TemporaryFile()  # noqa: SIM115 - it is read when the worker has ended
            log = os.fdopen(os.dup(self._substitute.fileno()), "wb")
        else:
            self._substitute = None
        self._start = log.seek(0, os.SEEK_END)
        return log

    def last_message(self) -> str:
        """Return the last line of this worker that tells why it ended."""
        try:
            with self._written() as log:
                end = log.seek(0, os.SEEK_END)
                log.seek(max(self._start, end - TAIL_BYTES))
                lines = log.read().decode(errors="replace").splitlines()
        except OSError:
            lines = []
        messages = [
            line for line in lines if line.strip() and not line.startswith(STACK_TRACE) and not ROUTINE.search(line)
        ]
        return messages[-1].strip()[:LONGEST_QUOTE] if messages else "it printed nothing"

    def _written(self) -> BinaryIO:
        return self.path.open("rb") if self._substitute is None else os.fdopen(os.dup(self._substitute.fileno()), "rb")
