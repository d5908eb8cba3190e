"""Events of a run, one JSON object a line: the file that they are written to and read from, also as a replay."""

import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from dlbricks_tui.measure import events as measuring
from dlbricks_tui.measure.events import BatchRestarted, BatchStarted, DriftNoted, Event, RoundDone, RoundRepeated
from dlbricks_tui.regular_files import open_regular
from dlbricks_tui.runs.errors import RunError
from dlbricks_tui.runs.run_folder import RunFolder

_CHUNK = 1 << 20
# In runs of earlier versions, rounds with other programs followed this event: those of networks for calibration.
_CALIBRATING = b'{"event":"Calibrating"'
_OF_ROUNDS = (BatchStarted, RoundDone, RoundRepeated, BatchRestarted, DriftNoted)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    """A process executes the run; another one resumes it after an interruption."""

    run: str
    pid: int
    models: tuple[str, ...]
    runtime: str
    level: str
    granularity: int
    end_to_end: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting(Event):
    """Another run measures on this host."""

    holder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLoading(Event):
    """A model is read and cut, which takes a while for a new one."""

    model: str
    number: int
    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLeftOut(Event):
    """A model cannot be read; the run goes on with the others."""

    model: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapesRemembered(Event):
    """The run uses shapes or values of inputs that were given before."""

    model: str
    shapes: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelLowered(Event):
    """The runtime cannot fuse this model: its written layers are measured."""

    model: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerUnmeasurable(Event):
    """No runtime can run these layers alone. `layer` names them."""

    model: str
    layer: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedBefore(Event):
    """A brick in a context, or a whole model, is not tried again: it failed in an earlier run, for this reason."""

    brick: str
    context: str
    model: str
    label: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned(Event):
    """The plan of the run, or of one combination; bricks count once per context, whole models apart.

    A brick that several combinations share counts in the first of them.
    """

    system: str
    runtime: str
    bricks: int
    bricks_reused: int
    bricks_failed_before: int
    models: int
    models_reused: int
    models_failed_before: int
    expected_seconds: float
    # Of the bricks to measure, those with a result that is too imprecise, or of a slower host.
    bricks_imprecise: int = 0
    bricks_of_slow_host: int = 0
    # The variant and its number, where the run measures several combinations.
    combination: str = ""
    number: int = 1
    of: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PartStarted(Event):
    """The run goes on with another runtime or number of threads; `later_seconds` are expected for those after it."""

    part: str
    number: int
    of: int
    later_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutProgram(Event):
    """The base of events about a brick in a context, or (brick empty) a whole model; `program` is its number."""

    program: int
    brick: str
    context: str
    model: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramLoaded(AboutProgram):
    """The program is loaded and has run once; `used_by` are the names of the models that need it.

    `samples_ms` are of an earlier run, and count. With `allocates`, each run makes new arrays for the outputs.
    """

    first_run_ms: float
    used_by: tuple[str, ...]
    samples_ms: tuple[float, ...] = ()
    allocates: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramMeasured(AboutProgram):
    """The program's result is in the store."""

    trimmed_mean_ms: float
    low_ms: float
    high_ms: float
    samples: int
    warm_up: int
    outliers: int
    # Why it got no more samples: a value of `stopping.Stop`, or empty.
    stop: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramUnfinished(AboutProgram):
    """The run was stopped before there were enough samples; those so far are in the store."""

    trimmed_mean_ms: float
    low_ms: float
    high_ms: float
    samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramFailed(AboutProgram):
    """The program cannot be measured; the failure is in the store."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerReplaced(Event):
    """The worker was lost, and a new one has replaced it."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateChanged(Event):
    """The estimate of a model so far; latencies are None while no brick is known.

    It includes provisional latencies of bricks that are still being sampled.
    """

    model: str
    sequential_ms: float | None
    parallel_ms: float | None
    low_ms: float | None
    high_ms: float | None
    measured_layers: int
    sampled_layers: int = 0
    missing_layers: int
    unmeasurable_layers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Paused(Event):
    """The run is paused and lets other runs measure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed(Event):
    """The run goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded(Event):
    """The last event; `state` is the final state, `message` the reason, if it needs words."""

    state: str
    message: str
    bricks: int
    bricks_measured: int
    bricks_reused: int
    bricks_failed: int
    models_failed: int
    seconds: float


# The kinds of both modules, by name.
EVENTS: dict[str, type[Event]] = {
    name: kind
    for name, kind in {**vars(measuring), **globals()}.items()
    if isinstance(kind, type) and issubclass(kind, Event)
}


def to_line(event: Event) -> bytes:
    return json.dumps({"event": type(event).__name__, **asdict(event)}, separators=(",", ":")).encode() + b"\n"


def from_line(line: bytes, kinds: Mapping[str, type[Event]] = EVENTS) -> Event | None:
    """Return the event of a line; None if another version of dlbricks wrote it or a crash cut it off."""
    try:
        values = json.loads(line)
        kind = kinds[values["event"]]
        known = {it.name: _frozen(values[it.name]) for it in fields(kind) if it.name in values}
        return kind(**known | {"when": values["when"]}) if _is_moment(values["when"]) else None
    except (ValueError, KeyError, TypeError):
        return None


def _is_moment(when: str) -> bool:
    """Return whether a text is a time that can be compared with others; raise ValueError or TypeError if it is none."""
    return datetime.fromisoformat(when).tzinfo is not None


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


class EventWriter:
    """Appends events to the file, and passes them to a listener in this process."""

    def __init__(self, path: Path, listener: Callable[[Event], None] | None = None) -> None:
        self._path = path
        self._listener = listener
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
    """Reads new events; cheap while there are none. `kinds` are the events of the file by name."""

    def __init__(self, path: Path, kinds: Mapping[str, type[Event]] = EVENTS) -> None:
        self._path = path
        self._kinds = kinds
        self._position = 0
        self._unfinished = b""
        self._calibrates = False

    def new(self) -> tuple[Event, ...]:
        """Return the events since the last call."""
        found: list[Event] = []
        for line in self._new_lines():
            event = from_line(line, self._kinds)
            if event is None:
                self._calibrates = line.startswith(_CALIBRATING)
            elif not (self._calibrates and isinstance(event, _OF_ROUNDS)):
                self._calibrates = False
                found.append(event)
        return tuple(found)

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
            raise RunError(f"cannot read {self._path}: {error.strerror}") from error


def follow(path: Path, goes_on: Callable[[], bool], wait: Callable[[], None]) -> Iterator[Event]:
    """Yield all events from the first one on, until the run has ended."""
    reader = EventReader(path)
    while True:
        # Checked before reading, so that the last events are read.
        more_may_come = goes_on()
        yield from reader.new()
        if not more_may_come:
            return
        wait()


# A run may have waited for hours: a replay shows that it did, and goes on.
MOST_IDLE_SECONDS = 1.0
# Replays that are slower or faster than this show nothing new.
SLOWEST, FASTEST = 0.125, 4096.0


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
            # Nothing worked before another process resumed the run.
            idle = isinstance(before, Paused | Waiting) or isinstance(event, RunStarted)
            seconds += min(passed, MOST_IDLE_SECONDS) if idle else passed
        found.append(TimedEvent(seconds, event))
        before, newest = event, when
    return tuple(found)


def events_so_far(folder: RunFolder) -> tuple[TimedEvent, ...]:
    """Return the events that a run has written until now; it may still go on."""
    found = timed(EventReader(folder.events_file).new())
    if not found:
        raise RunError(f"{folder.noun} {folder.run} has no events to replay: it ended before it began to work")
    return found


def checked_speed(speed: float) -> float:
    """Return the speed of a replay; refuse a number that is no speed."""
    if not (math.isfinite(speed) and speed > 0):
        raise RunError(f"a replay cannot have the speed {speed:g}: give a number above 0, such as 10 for ten times")
    return speed


class Replay:
    """A replay in progress. `clock` tells seconds; the replay asks it, and never waits.

    All events up to the second `begin` of the run are due at once.
    """

    def __init__(
        self, events: Sequence[TimedEvent], speed: float, clock: Callable[[], float], begin: float = 0.0
    ) -> None:
        self._events = events
        self._clock = clock
        self._speed = checked_speed(speed)
        self._next = 0
        # The seconds of the run that had passed when the clock told `_since`.
        self._passed = begin
        self._since = clock()
        self._paused = False

    @property
    def speed(self) -> float:
        """The seconds of the run that pass in one second."""
        return self._speed

    @property
    def paused(self) -> bool:
        return self._paused

    @property
    def ended(self) -> bool:
        """True once all events were returned."""
        return self._next == len(self._events)

    @property
    def position(self) -> float:
        """The seconds of the run that have passed."""
        return self._passed if self._paused else self._passed + (self._clock() - self._since) * self._speed

    @property
    def seconds_to_wait(self) -> float | None:
        """The time until the next event is due; None if it never is: after the last one, and in a pause."""
        if self.ended or self._paused:
            return None
        return max(0.0, (self._events[self._next].seconds - self.position) / self._speed)

    def due(self) -> tuple[Event, ...]:
        """Return the events that have become due since the last call."""
        first, position = self._next, self.position
        while self._next < len(self._events) and self._events[self._next].seconds <= position:
            self._next += 1
        return tuple(it.event for it in self._events[first : self._next])

    def pause(self) -> None:
        """Stop at the current position until `go_on`."""
        self._passed, self._paused = self.position, True

    def go_on(self) -> None:
        """Go on after a pause."""
        self._passed, self._since, self._paused = self.position, self._clock(), False

    def change_speed(self, factor: float) -> None:
        """Go on `factor` times as fast, within the limits."""
        self._passed, self._since = self.position, self._clock()
        self._speed = min(max(self._speed * factor, SLOWEST), FASTEST)


def play(replay: Replay, wait: Callable[[float], None]) -> Iterator[Event]:
    """Yield all events, each when it is due; `wait` lets so many seconds pass."""
    while not replay.ended:
        yield from replay.due()
        if (seconds := replay.seconds_to_wait) is not None:
            wait(seconds)
