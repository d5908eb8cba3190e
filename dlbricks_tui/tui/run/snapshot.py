"""The state of a run at one moment: frozen values, made in a thread and drawn by widgets, and their words."""

from dataclasses import dataclass
from enum import Enum

from dlbricks_tui.documents.lines import Line, Span
from dlbricks_tui.host.load import HostLoad
from dlbricks_tui.jobs.folder import ACTIVE, State
from dlbricks_tui.wording import runs as wording
from dlbricks_tui.wording.numbers import duration, milliseconds, percent, sign_of
from dlbricks_tui.wording.runs import NONE_DONE, Done, Note


class BrickState(Enum):
    """The state of a brick in the run."""

    SAMPLING = "sampling"
    MEASURED = "measured"
    # The most samples were taken, and the interval is still too wide.
    AT_LIMIT = "noisy"
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
    # Layers that count with a prediction.
    predicted_layers: int = 0

    @property
    def coverage(self) -> float:
        """The share of measured layers."""
        return self.measured_layers / self.layers if self.layers else 1.0

    @property
    def is_partial(self) -> bool:
        """Return whether the latencies of some layers are neither measured nor sampled."""
        return self.measured_layers + self.sampled_layers < self.layers

    @property
    def sign(self) -> str:
        """The sign before a latency that is a part, or that is partly predicted."""
        counted = self.measured_layers + self.sampled_layers + self.predicted_layers
        return sign_of(partial=counted < self.layers, predicted=self.is_partial)


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
    # The number of interrupted runs of the data folder, if this is one of them.
    interrupted: int = 0

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


_BLOCKS = "▁▂▃▄▅▆▇█"
# More cores would leave no room for words.
_MOST_BLOCKS = 16
# Other guests that take more of the processor disturb measurements.
_MUCH_STOLEN = 0.05

STATE_STYLES = {
    State.RUNNING: "good",
    State.FINISHED: "good",
    State.PAUSED: "warn",
    State.WAITING: "warn",
    State.CANCELLED: "warn",
    State.INTERRUPTED: "bad",
    State.FAILED: "bad",
}


def state_of(run: RunSnapshot) -> Span:
    """Return the state of the run, or of its replay."""
    if run.replay is not None:
        return Span(_replay_state(run.replay), "warn" if run.replay.paused and not run.replay.ended else "accent")
    if run.pausing and run.state is State.RUNNING:
        return Span("pausing", "warn")
    return Span(run.state.value, STATE_STYLES.get(run.state, "text"))


def _replay_state(replay: ReplayPace) -> str:
    if replay.ended:
        return "replay ended"
    return "replay paused" if replay.paused else f"replay {replay.speed:g}x"


def how_far(run: RunSnapshot) -> Line:
    """Return what is done, what failed, and how long it takes; the more important comes first."""
    counts = run.counts
    spans = _spans(wording.how_far(counts.bricks, counts.models, counts.failed, _seconds_left(run)))
    if not run.active and run.seconds_spent:
        spans.append(Span(f"in {duration(run.seconds_spent)}"))
    if counts.reused:
        spans.append(Span(f"{counts.reused:,} known before", "muted"))
    return joined(spans)


def _seconds_left(run: RunSnapshot) -> float | None:
    return run.seconds_left if run.active else None


def _spans(phrases: list[wording.Phrase]) -> list[Span]:
    return [Span(phrase.text, phrase.tone.value) for phrase in phrases]


def what_now(run: RunSnapshot) -> Line:
    """Return the current step of the run, or why it does not work."""
    if run.message:
        return (Span(run.message, "bad" if run.state is State.FAILED else "warn"),)
    if run.state is State.PAUSED and run.replay is None:
        return (Span("paused; others may measure", "warn"),)
    return (Span(run.at_work, "muted"),) if run.at_work else ()


def load_of(run: RunSnapshot, *, with_cores: bool) -> Line:
    """Return the load of the host while the run works, with a block for each core where there is room."""
    if run.load is None or not run.active or run.replay is not None:
        return ()
    blocks = "".join(_BLOCKS[round(min(1.0, share) * (len(_BLOCKS) - 1))] for share in run.load.busy)
    drawn = (Span(f"{blocks} ", "bar"),) if with_cores and run.load.cores <= _MOST_BLOCKS else ()
    style = "warn" if run.load.stolen_share >= _MUCH_STOLEN else "muted"
    return (Span("  "), *drawn, Span(f"{wording.load_in_words(run.load)} ", style))


def on_its_way(run: RunSnapshot, model: str) -> str:
    """Return the state of a run that has no estimate of the model yet; empty if there is none."""
    if not run.active or run.replay is not None or model not in run.models:
        return ""
    if run.state is State.WAITING:
        return "A run of this model waits for another run to end."
    if run.pausing:
        return "A run of this model is paused."
    found = [
        f"it took {milliseconds(brick.latency_ms)} ms end to end"
        for brick in run.bricks
        if brick.whole and model in brick.used_by and brick.latency_ms is not None
    ]
    found += [
        f"the estimate so far is {milliseconds(it.sequential_ms)} ms"
        + (f" ±{percent(it.half_widths[-1], 1)}" if it.half_widths else "")
        for it in run.estimates
        if it.name == model and it.sequential_ms is not None and not it.is_partial
    ]
    return f"A run of this model is in progress{': ' * bool(found)}{', '.join(found)}."


def joined(spans: list[Span]) -> Line:
    """Return the spans with commas between them."""
    comma = Span(", ", "muted")
    return tuple(part for span in spans for part in (comma, span))[1:]
