"""Events of measuring, rounds and batches, and its error."""

from dataclasses import dataclass
from enum import Enum

from dlbricks_tui.errors import UserError
from dlbricks_tui.jobs.events import Event

# After all is measured a run trains its predictors, and the first one asks for the versions of kernels.
END_SECONDS = 1.0


class MeasureError(UserError):
    """A rule that no run could satisfy, or no worker lives long enough to answer."""


class Stop(str, Enum):
    """The reason why a program gets no more samples."""

    # The interval is as narrow as requested.
    NARROW = "narrow"
    # The requested number of runs.
    RUNS = "runs"
    # The most samples that the rule allows, with an interval that is still too wide.
    MOST_SAMPLES = "most samples"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStarted(Event):
    """A batch of programs is next."""

    number: int
    of: int
    programs: int
    # The time left of the whole run, as in all events.
    seconds_left: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundDone(Event):
    """New samples, by program number, and the readings that show changes of the host."""

    samples_ms: tuple[tuple[int, tuple[float, ...]], ...]
    # None if the worker was lost.
    null_call_ms: float | None
    reference_ms: float | None
    seconds_left: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRepeated(Event):
    """A round of `seconds` was disturbed and is repeated: its samples do not count."""

    reason: str
    seconds: float = 0.0
    seconds_left: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRestarted(Event):
    """The host's speed has changed, so the batch restarts; these samples of each program still count."""

    times_as_fast: float
    samples_ms: tuple[tuple[int, tuple[float, ...]], ...]
    seconds_left: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftNoted(Event):
    """The host is slower or faster than at the start of the run."""

    reference_ms: float
    usual_ms: float
