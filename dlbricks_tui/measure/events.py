"""Events of measuring: rounds, batches and calibrations."""

from dataclasses import dataclass, field

from dlbricks_tui.store.records import utc_now


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened at a moment."""

    when: str = field(default_factory=utc_now)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStarted(Event):
    """Programs that are measured together come next."""

    number: int
    of: int
    programs: int
    # Of the whole run, as in all events.
    seconds_left: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundDone(Event):
    """New samples, by program number; with them what tells whether the machine has changed."""

    samples_ms: tuple[tuple[int, tuple[float, ...]], ...]
    # None where the worker was lost before it could tell.
    null_call_ms: float | None
    reference_ms: float | None
    seconds_left: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRepeated(Event):
    """A round took `seconds`, was disturbed, and is repeated: its samples do not count."""

    reason: str
    seconds: float = 0.0
    seconds_left: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunAnew(Event):
    """The machine is another than it was: the batch is measured anew, and of each program these samples still count."""

    times_as_fast: float
    samples_ms: tuple[tuple[int, tuple[float, ...]], ...]
    seconds_left: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrating(Event):
    """A network made for it is measured, once for each system and runtime, to find out what the method misses."""

    network: str
    number: int
    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated(Event):
    """Estimates are corrected from now on; `error` is the mean one on networks that had no part in the fit."""

    error: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationFailed(Event):
    """Estimates stay as they are composed, and their intervals say nothing of the method."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftNoted(Event):
    """The machine has become slower or faster than it was when the run began."""

    reference_ms: float
    usual_ms: float
