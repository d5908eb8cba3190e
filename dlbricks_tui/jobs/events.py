"""Events of jobs, one JSON object a line: the file that they are written to and read from."""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from dlbricks_tui.files import open_regular
from dlbricks_tui.jobs.codec import decoded
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.folder import NO_ROOM
from dlbricks_tui.store.records import utc_now

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """The base of all events."""

    # Of no matter for equality.
    when: str = field(default_factory=utc_now, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting(Event):
    """Other work measures on this host."""

    holder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused(Event):
    """The job is paused and lets other work measure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed(Event):
    """The job goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStarted(Event):
    """A process works on the job; another one resumes it after an interruption."""

    pid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnded(Event):
    """The last event; `state` is the final state, `message` the reason, if it needs words."""

    state: str
    message: str
    seconds: float


EventKinds = Mapping[str, type[Event]]


def event_kinds(*kinds: Any) -> EventKinds:
    """Return the events of a kind of job by name: those of all jobs, and these."""
    return {kind.__name__: kind for kind in (Waiting, Paused, Resumed, JobStarted, JobEnded, *kinds)}


def to_line(event: Event) -> bytes:
    return json.dumps({"event": type(event).__name__, **asdict(event)}, separators=(",", ":")).encode() + b"\n"


def from_line(line: bytes, kinds: EventKinds) -> Event | str:
    """Return the event of a line, or its name if another version of dlbricks wrote it; "" if a crash cut it off."""
    name = ""
    try:
        values = json.loads(line)
        name = str(values["event"])
        found = decoded(kinds[name], values)
        # A time that can be compared with others.
        is_moment = "when" in values and datetime.fromisoformat(found.when).tzinfo is not None
        return found if is_moment else name
    except (ValueError, KeyError, TypeError, RecursionError):
        return name


class EventWriter:
    """Appends events to the file, and passes them to a listener in this process.

    With `spares_disk`, events that a full disk does not take are lost, and the work goes on.
    """

    def __init__(
        self, path: Path, listener: Callable[[Event], None] | None = None, *, spares_disk: bool = False
    ) -> None:
        self._path = path
        self._listener = listener
        self._spares_disk = spares_disk
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
            size = os.fstat(self._file).st_size
            if size and os.pread(self._file, 1, size - 1) != b"\n":
                # A line that was cut off by a crash must not spoil the next event.
                os.write(self._file, b"\n")
        except OSError as error:
            raise self._unwritable(error) from error

    def close(self) -> None:
        os.close(self._file)

    def tell(self, event: Event) -> None:
        """Write an event for all viewers; unlike results it may be lost when the host goes down."""
        line, written = to_line(event), 0
        try:
            while written < len(line):
                written += os.write(self._file, line[written:])
        except OSError as error:
            if not self._spares_disk or error.errno not in NO_ROOM:
                raise self._unwritable(error) from error
            os.ftruncate(self._file, os.fstat(self._file).st_size - written)
        if self._listener is not None:
            self._listener(event)

    def _unwritable(self, error: OSError) -> JobError:
        return JobError(
            f"cannot write {self._path}: {error.strerror}; free some space or make it writable, then resume it"
        )


class EventReader:
    """Reads new events; cheap while there are none. `kinds` are the events of the file by name."""

    def __init__(self, path: Path, kinds: EventKinds) -> None:
        self._path = path
        self._kinds = kinds
        self._position = 0
        self._unfinished = b""
        # The events that cannot be read, by name: another version has written them, or a crash has cut them off ("").
        self.unreadable: Counter[str] = Counter()

    def new(self) -> tuple[Event, ...]:
        """Return the events since the last call."""
        return tuple(event for event in map(self._read, self._new_lines()) if event is not None)

    def _read(self, line: bytes) -> Event | None:
        found = from_line(line, self._kinds)
        if isinstance(found, Event):
            return found
        self.unreadable[found] += 1
        return None

    def _new_lines(self) -> Iterator[bytes]:
        try:
            with open_regular(self._path) as file:
                file.seek(self._position)
                while chunk := file.read(_CHUNK):
                    self._position += len(chunk)
                    *lines, self._unfinished = (self._unfinished + chunk).split(b"\n")
                    yield from lines
        except FileNotFoundError:
            return
        except OSError as error:
            raise JobError(f"cannot read {self._path}: {error.strerror}") from error


def follow(reader: EventReader, goes_on: Callable[[], bool], wait: Callable[[], None]) -> Iterator[Event]:
    """Yield all events from the first one on, until the job has ended."""
    while True:
        # Checked before reading, so that the last events are read.
        more_may_come = goes_on()
        yield from reader.new()
        if not more_may_come:
            return
        wait()
