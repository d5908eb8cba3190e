"""A run as it is seen at a moment: frozen values, made in a thread and drawn by widgets."""

from dataclasses import dataclass
from enum import Enum

from dlbricks_tui.runs.run_folder import ACTIVE, State
from dlbricks_tui.wording.runs import Note


class Standing(Enum):
    """How a brick stands in the run."""

    ON_BENCH = "on the bench"
    MEASURED = "measured"
    # It has the most samples, and its interval is still too wide.
    AT_LIMIT = "stopped at a limit"
    # The run was stopped before there were samples enough.
    UNFINISHED = "unfinished"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class RunBrick:
    """A brick in a context, or a whole model, that the run has begun with."""

    number: int
    label: str
    used_by: tuple[str, ...] = ()
    whole: bool = False
    standing: Standing = Standing.ON_BENCH
    samples_ms: tuple[float, ...] = ()
    # None while it is on the bench, and where it failed; of no time at all there is no share either.
    latency_ms: float | None = None
    half_width: float | None = None
    # Why it failed, or at which limit it was stopped.
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RunModel:
    """A model's estimate by now; latencies are None while nothing of it is known."""

    name: str
    sequential_ms: float | None
    parallel_ms: float | None
    # Half of the interval as a share of the sequential latency, from the first estimate on to the newest.
    half_widths: tuple[float, ...]
    measured_layers: int
    layers: int
    # Counted in by the samples that there are so far.
    sampled_layers: int = 0
    unmeasurable_layers: int = 0

    @property
    def coverage(self) -> float:
        """How much of the model is measured."""
        return self.measured_layers / self.layers if self.layers else 1.0

    @property
    def is_partial(self) -> bool:
        """Whether layers are left that do not count in the latencies."""
        return self.measured_layers + self.sampled_layers < self.layers

    @property
    def is_impossible(self) -> bool:
        """Whether nothing is left to measure, and there is no estimate all the same."""
        return self.sequential_ms is None and self.measured_layers + self.unmeasurable_layers >= self.layers > 0


@dataclass(frozen=True, slots=True)
class Counts:
    """Bricks and whole models together."""

    total: int = 0
    measured: int = 0
    reused: int = 0
    failed: int = 0

    @property
    def done(self) -> int:
        """How many need no more work."""
        return self.measured + self.reused + self.failed


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSnapshot:
    """All that is shown of a run."""

    run: str
    state: State
    models: tuple[str, ...]
    # Where the run was asked to stand still, whether it does so already or not.
    pausing: bool = False
    # For whom or why it waits, or how it ended, where that needs words.
    message: str = ""
    # How it measures, in a few words.
    settings: tuple[str, ...] = ()
    counts: Counts = Counts()
    # How much of the work is done, None while nobody knows how much there is.
    share: float | None = None
    seconds_left: float | None = None
    seconds_spent: float = 0.0
    # What is being done, in words.
    at_work: str = ""
    # True while it calibrates, which comes after all that was asked for.
    calibrating: bool = False
    # How much slower than at first the machine has become; None while that cannot be told.
    drift: float | None = None
    bricks: tuple[RunBrick, ...] = ()
    estimates: tuple[RunModel, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def active(self) -> bool:
        """Whether a process works on it, or waits to."""
        return self.state in ACTIVE

    @property
    def can_be_taken_up(self) -> bool:
        """Whether it ended before all was done."""
        return self.state in (State.INTERRUPTED, State.CANCELLED, State.FAILED)
