"""The file in which a run tells what happens, written by one process and followed by any number of others."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from dlbricks_tui.measure.events import Event
from dlbricks_tui.runs.errors import RunError
from dlbricks_tui.runs.events import from_line, to_line

_CHUNK = 1 << 20


class EventWriter:
    """Appends events, and tells them to those who listen in this process."""

    def __init__(self, path: Path, listener: Callable[[Event], None] | None = None) -> None:
        self._path = path
        self._listener = listener
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
            size = os.fstat(self._file).st_size
            if size and os.pread(self._file, 1, size - 1) != b"\n":
                # A process that died in mid-line must not take the first event of the next one with it.
                os.write(self._file, b"\n")
        except OSError as error:
            raise self._unwritable(error) from error

    def close(self) -> None:
        """Nothing more happens."""
        os.close(self._file)

    def tell(self, event: Event) -> None:
        """Writes an event for all who follow; it need not survive the machine, results are in the store."""
        line = to_line(event)
        try:
            while line:
                line = line[os.write(self._file, line) :]
        except OSError as error:
            raise self._unwritable(error) from error
        if self._listener is not None:
            self._listener(event)

    def _unwritable(self, error: OSError) -> RunError:
        return RunError(
            f"cannot write {self._path}: {error.strerror}; free some space or make it writable, then resume the run"
        )


class EventReader:
    """Reads on from where it stopped; asking costs next to nothing while nothing happens."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0
        self._unfinished = b""

    def new(self) -> tuple[Event, ...]:
        """What has happened since it was last asked."""
        return tuple(event for line in self._new_lines() if (event := from_line(line)) is not None)

    def _new_lines(self) -> Iterator[bytes]:
        try:
            with self._path.open("rb") as file:
                file.seek(self._position)
                while chunk := file.read(_CHUNK):
                    self._position += len(chunk)
                    *lines, self._unfinished = (self._unfinished + chunk).split(b"\n")
                    yield from lines
        except FileNotFoundError:
            return
        except OSError as error:
            raise RunError(f"cannot read {self._path}: {error.strerror}") from error


def follow(path: Path, goes_on: Callable[[], bool], wait: Callable[[], None]) -> Iterator[Event]:
    """All events from the first one on, until the run is over and everything is told."""
    reader = EventReader(path)
    while True:
        # Asked before reading, so that what a run tells last is read.
        more_may_come = goes_on()
        yield from reader.new()
        if not more_may_come:
            return
        wait()
