"""Traces as jobs: the order, and the events."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dlbricks_tui.analysis.what_if import Execution
from dlbricks_tui.host.queue import WorkKind
from dlbricks_tui.jobs.events import Event, event_kinds
from dlbricks_tui.jobs.kinds import JobKind
from dlbricks_tui.models.graph import Numbers, Shape
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.traces.trace import TraceLevel

USUAL_INFERENCES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceOrder:
    """A model, how it is executed, and the levels to trace, with so many inferences of each in each round."""

    source: ModelSource
    execution: Execution
    levels: tuple[TraceLevel, ...] = tuple(TraceLevel)
    inferences: int = USUAL_INFERENCES
    inputs: Mapping[str, Shape] = field(default_factory=dict)
    values: Mapping[str, Numbers] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelStarted(Event):
    """The worker of a level starts, and loads the model."""

    level: TraceLevel


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundStarted(Event):
    """A round begins: the model runs some times at each level whose worker has loaded it."""

    # From 1 on.
    number: int
    rounds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelDone(Event):
    """The end of a level: the median of its inferences, or the reason why it cannot be traced."""

    level: TraceLevel
    inference_ms: float | None
    # None for the lowest level that was traced, and for a level that cannot be traced.
    overhead_ms: float | None
    missing: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceDone(Event):
    """The trace is in its file."""

    id: str


TRACE = JobKind(
    WorkKind.TRACE,
    TraceOrder,
    event_kinds(LevelStarted, RoundStarted, LevelDone, TraceDone),
    "dlbricks_tui.traces.process",
)
