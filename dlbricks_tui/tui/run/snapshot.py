"""The state of a run at one moment: frozen values, made in a thread and drawn by widgets."""

from dataclasses import dataclass
from enum import Enum

from dlbricks_tui.host.load import HostLoad
from dlbricks_tui.jobs.folder import ACTIVE, State
from dlbricks_tui.wording.runs import NONE_DONE, Done, Note


class BrickState(Enum):
    """The state of a brick in the run."""

    SAMPLING = "sampling"
    MEASURED = "measured"
    # The most samples were taken, and the interval is still too wide.
    AT_LIMIT = "stopped at a limit"
    # The run ended before there were enough samples.
    UNFINISHED = "unfinished"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class RunBrick:
    """A brick in a context, or a whole model, that the run has started to time."""

    number: int
    label: str
    used_by: tuple[str, ...] = ()
    whole: bool = False
    state: BrickState = BrickState.SAMPLING
    samples_ms: tuple[float, ...] = ()
    # None while it is sampled and after a failure; a latency of zero has no share either.
    latency_ms: float | None = None
    half_width: float | None = None
    # The reason of the failure or of the limit.
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RunModel:
    """The current estimate of a model; latencies are None while nothing is known."""

    name: str
    sequential_ms: float | None
    parallel_ms: float | None
    # Half of the interval as a share of the sequential latency, from the first estimate to the newest.
    half_widths: tuple[float, ...]
    measured_layers: int
    layers: int
    # Layers that count with the samples so far.
    sampled_layers: int = 0
    unmeasurable_layers: int = 0
    # The ends of the interval of the sequential latency.
    low_ms: float | None = None
    high_ms: float | None = None

    @property
    def coverage(self) -> float:
        """The share of measured layers."""
        return self.measured_layers / self.layers if self.layers else 1.0

    @property
    def is_partial(self) -> bool:
        """Return whether some layers do not count in the latencies."""
        return self.measured_layers + self.sampled_layers < self.layers

    @property
    def is_impossible(self) -> bool:
        """Return whether everything is measured and an estimate is still impossible."""
        return self.sequential_ms is None and self.measured_layers + self.unmeasurable_layers >= self.layers > 0


@dataclass(frozen=True, slots=True)
class RunTally:
    """The counts of bricks and of whole models; `reused` and `failed` are of both."""

    bricks: Done = NONE_DONE
    models: Done = NONE_DONE
    reused: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class ReplayPace:
    """The pace of a replay; `speed` is the seconds of the run that pass in one second."""

    speed: float
    paused: bool = False
    # True after the last event, and once the user has stopped it.
    ended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSnapshot:
    """Everything that is shown of a run."""

    run: str
    state: State
    models: tuple[str, ...]
    # True if the run was asked to pause, even if it has not paused yet.
    pausing: bool = False
    # The reason why it waits, or how it ended.
    message: str = ""
    # The settings in a few words.
    settings: tuple[str, ...] = ()
    counts: RunTally = RunTally()
    # The share of work done; None while the amount of work is unknown.
    share: float | None = None
    seconds_left: float | None = None
    seconds_spent: float = 0.0
    # The current step in words.
    at_work: str = ""
    # The slowdown of the host since the start; None while it is unknown.
    drift: float | None = None
    bricks: tuple[RunBrick, ...] = ()
    estimates: tuple[RunModel, ...] = ()
    notes: tuple[Note, ...] = ()
    # Set if these are events of the past, shown again.
    replay: ReplayPace | None = None
    # The load of the host; None before it is known, and after the run.
    load: HostLoad | None = None

    @property
    def active(self) -> bool:
        """Return whether a process works on it or waits to, or its replay goes on."""
        return self.state in ACTIVE if self.replay is None else not self.replay.ended

    @property
    def measures(self) -> bool:
        """Return whether programs are timed now, which other work would disturb."""
        return self.active and self.replay is None and self.state is not State.PAUSED

    @property
    def can_be_resumed(self) -> bool:
        """Return whether it ended before it was complete."""
        return self.replay is None and self.state in (State.INTERRUPTED, State.CANCELLED, State.FAILED)
