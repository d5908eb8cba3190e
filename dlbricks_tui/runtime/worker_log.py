"""What a framework prints, kept out of everybody's sight until it matters."""

import os
import re
import tempfile
from pathlib import Path
from typing import BinaryIO

KEPT_BYTES = 1 << 20
TAIL_BYTES = 1 << 14
LONGEST_QUOTE = 200

# Lines of a stack trace say where in a framework's source it died, which helps nobody in one line.
STACK_TRACE = ("  ", "Stack trace", "[bt]", "Traceback")
# What MXNet says whenever it reads a graph and makes it ready.
OF_COURSE = re.compile("subgraph backend is not in use|saved by previous version|successfully upgraded")


class WorkerLog:
    """One file to which all workers of a kind append; begun anew when it has grown large."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._begins_at = 0
        # In the place of a file that cannot be written.
        self._unkept: BinaryIO | None = None

    @property
    def hint(self) -> str:
        """Where to read on."""
        return f"its log is {self.path}" if self._unkept is None else f"its log cannot be kept in {self.path}"

    @property
    def folder(self) -> Path:
        """Where a worker may leave what it leaves when it dies."""
        return self.path.parent if self._unkept is None else Path(tempfile.gettempdir())

    def open(self) -> BinaryIO:
        """The file to write to; what is there already is not this worker's."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            outgrown = self.path.exists() and self.path.stat().st_size > KEPT_BYTES
            log = self.path.open("wb" if outgrown else "ab")
        except OSError:
            # What a framework prints matters only when it dies: it can answer where nothing can be kept.
            self._unkept = tempfile.TemporaryFile()  # noqa: SIM115 - it is read when the worker is gone
            log = os.fdopen(os.dup(self._unkept.fileno()), "wb")
        else:
            self._unkept = None
        self._begins_at = log.seek(0, os.SEEK_END)
        return log

    def last_words(self) -> str:
        """The last line of this worker that says anything of its end."""
        try:
            with self._written() as log:
                end = log.seek(0, os.SEEK_END)
                log.seek(max(self._begins_at, end - TAIL_BYTES))
                lines = log.read().decode(errors="replace").splitlines()
        except OSError:
            lines = []
        told = [
            line for line in lines if line.strip() and not line.startswith(STACK_TRACE) and not OF_COURSE.search(line)
        ]
        return told[-1].strip()[:LONGEST_QUOTE] if told else "it printed nothing"

    def _written(self) -> BinaryIO:
        return self.path.open("rb") if self._unkept is None else os.fdopen(os.dup(self._unkept.fileno()), "rb")
