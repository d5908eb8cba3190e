"""Events of jobs, one JSON object a line: their file, and the events shown again, at any speed."""

import json
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from dlbricks_tui.files import open_regular
from dlbricks_tui.jobs.codec import decoded
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.folder import NO_ROOM, JobFolder
from dlbricks_tui.store.records import utc_now

_CHUNK = 1 << 20
# A run may have waited for hours: a replay shows that it did, and goes on.
MOST_IDLE_SECONDS = 1.0
# Replays that are slower or faster than this show nothing new.
SLOWEST, FASTEST = 0.125, 4096.0


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


@dataclass(frozen=True, slots=True)
class TimedEvent:
    """An event, and how long after the first one it is due: seconds of the run, without most of its idle time."""

    seconds: float
    event: Event


def timed(events: Iterable[Event]) -> tuple[TimedEvent, ...]:
    """Return the events with their times. A clock that was set back does not change their order."""
    found: list[TimedEvent] = []
    seconds, before, newest = 0.0, None, None
    for event in events:
        when = datetime.fromisoformat(event.when)
        if newest is not None:
            passed = max(0.0, (when - newest).total_seconds())
            # Nothing worked before another process resumed the job.
            idle = isinstance(before, Paused | Waiting) or isinstance(event, JobStarted)
            seconds += min(passed, MOST_IDLE_SECONDS) if idle else passed
        found.append(TimedEvent(seconds, event))
        before, newest = event, when
    return tuple(found)


def events_so_far(folder: JobFolder, reader: EventReader) -> tuple[TimedEvent, ...]:
    """Return the events that a job has written until now; it may still go on."""
    found = timed(reader.new())
    if not found:
        raise JobError(f"{folder.noun} {folder.run} has no events to replay: no process has worked on it")
    return found


class Replay:
    """A replay in progress. `clock` tells seconds; the replay asks it, and never waits.

    All events up to the second `begin` of the run are due at once.
    """

    def __init__(
        self, events: Sequence[TimedEvent], speed: float, clock: Callable[[], float], begin: float = 0.0
    ) -> None:
        self._events = events
        self._clock = clock
        if not (math.isfinite(speed) and speed > 0):
            raise JobError(f"a replay cannot have the speed {speed:g}: give a number above 0, such as 10 for ten times")
        # The seconds of the run that pass in one second.
        self.speed = speed
        self._next = 0
        # The seconds of the run that had passed when the clock told `_since`.
        self._passed = begin
        self._since = clock()
        self.paused = False

    @property
    def ended(self) -> bool:
        """True once all events were returned."""
        return self._next == len(self._events)

    @property
    def position(self) -> float:
        """The seconds of the run that have passed."""
        return self._passed if self.paused else self._passed + (self._clock() - self._since) * self.speed

    @property
    def seconds_to_wait(self) -> float | None:
        """The time until the next event is due; None if it never is: after the last one, and in a pause."""
        if self.ended or self.paused:
            return None
        return max(0.0, (self._events[self._next].seconds - self.position) / self.speed)

    def due(self) -> tuple[Event, ...]:
        """Return the events that have become due since the last call."""
        first, position = self._next, self.position
        while self._next < len(self._events) and self._events[self._next].seconds <= position:
            self._next += 1
        return tuple(it.event for it in self._events[first : self._next])

    def pause(self) -> None:
        """Stop at the current position until `go_on`."""
        self._passed, self.paused = self.position, True

    def go_on(self) -> None:
        """Go on after a pause."""
        self._passed, self._since, self.paused = self.position, self._clock(), False

    def change_speed(self, factor: float) -> None:
        """Go on `factor` times as fast, within the limits."""
        self._passed, self._since = self.position, self._clock()
        self.speed = min(max(self.speed * factor, SLOWEST), FASTEST)

    @property
    def length(self) -> float:
        """The seconds of the run between the first event and the last one."""
        return self._events[-1].seconds

    def play(self, wait: Callable[[float], None] = lambda seconds: time.sleep(seconds)) -> Iterator[Event]:
        """Yield all events, each when it is due; `wait` lets so many seconds pass."""
        while not self.ended:
            yield from self.due()
            if (seconds := self.seconds_to_wait) is not None:
                wait(seconds)
