"""Events of a job shown again, at any speed."""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.events import Event, EventReader, JobStarted, Paused, Waiting
from dlbricks_tui.jobs.folder import JobFolder

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
        raise JobError(f"{folder.noun} {folder.run} has no events to replay: it ended before it began to work")
    return found


def checked_speed(speed: float) -> float:
    """Return the speed of a replay; refuse a number that is no speed."""
    if not (math.isfinite(speed) and speed > 0):
        raise JobError(f"a replay cannot have the speed {speed:g}: give a number above 0, such as 10 for ten times")
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
