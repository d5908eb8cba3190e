"""A run at one moment, or its replay, in lines; and lists of runs, fleet runs and other jobs."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum, sqrt
from typing import TYPE_CHECKING

from dlbricks_tui.documents.lines import Line, Span, block
from dlbricks_tui.documents.parts import (
    BLANK_LINE,
    BarFigure,
    Column,
    Figures,
    Part,
    Sentence,
    Table,
    bar_column,
    name_column,
    word_column,
)
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.wording import runs as wording
from dlbricks_tui.wording.numbers import (
    ago,
    duration,
    ends_of,
    in_ms,
    milliseconds,
    names_of,
    or_dash,
    partly,
    percent,
    signed_percent,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dlbricks_tui.api.fleets import FleetSummary
    from dlbricks_tui.api.followed_runs import RunModel, RunSnapshot
    from dlbricks_tui.api.jobs import JobSummary
    from dlbricks_tui.api.measuring import ReplayedModel, ReplayedRun, RunSummary
    from dlbricks_tui.estimate.knowledge import Latency
    from dlbricks_tui.estimate.system_estimate import SystemEstimate


# More cores would leave no room for words.
_MOST_BLOCKS = 16
# Fewer samples of the whole model tell less than the short burst that times it at first.
_ENOUGH_SAMPLES = 8
# A mean lies within this many standard errors with 95 % confidence.
_TWO_SIDED_95 = 1.96
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
    replay = run.replay
    if replay is not None and replay.ended:
        return Span("replay ended", "accent")
    if replay is not None:
        return Span("replay paused", "warn") if replay.paused else Span(f"replay {replay.speed:g}x", "accent")
    if run.pausing and run.state is State.RUNNING:
        return Span("pausing", "warn")
    return Span(run.state.value, STATE_STYLES.get(run.state, "text"))


def how_far(run: RunSnapshot, phrases: int | None = None) -> Line:
    """Return what is done, what failed, and how long it takes, in at most so many phrases, the most important first."""
    counts = run.counts
    left = run.seconds_left if run.active else None
    told = wording.how_far(counts.bricks, counts.models, counts.failed, left)
    spans = [Span(phrase.text, phrase.tone.value) for phrase in told]
    if not run.active and run.seconds_spent:
        spans.append(Span(f"in {duration(run.seconds_spent)}"))
    if counts.reused:
        spans.append(Span(f"{counts.reused:,} known before", "muted"))
    return joined(spans[:phrases])


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
    blocks = "".join(block(min(1.0, share)) for share in run.load.busy)
    drawn = (Span(f"{blocks} ", "bar"),) if with_cores and run.load.cores <= _MOST_BLOCKS else ()
    style = "warn" if run.load.stolen_share >= _MUCH_STOLEN else "muted"
    return (Span("  "), *drawn, Span(f"{wording.load_in_words(run.load)} ", style))


def on_its_way(run: RunSnapshot, model: str) -> str:
    """Return the state of a run that has no estimate of the model yet; empty if there is none."""
    if not run.active or run.replay is not None or model not in run.models:
        return ""
    if run.waits:
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
        if it.model == model and it.sequential_ms is not None and not it.is_partial
    ]
    return f"A run of this model is in progress{': ' * bool(found)}{', '.join(found)}."


def joined(spans: list[Span]) -> Line:
    """Return the spans with commas between them."""
    comma = Span(", ", "muted")
    return tuple(part for span in spans for part in (comma, span))[1:]


@dataclass(frozen=True, slots=True)
class UnderWay:
    """The progress of a run of the open model: in words, and the figures of that run so far."""

    words: str = ""
    # From all layers of the model; None until each has samples.
    estimate: Latency | None = None
    # The latency of the whole model.
    end_to_end: Latency | None = None

    @property
    def has_figures(self) -> bool:
        return self.estimate is not None or self.end_to_end is not None

    def replaces(self, found: SystemEstimate) -> bool:
        """Return whether the figures of the run tell more than the stored results: until these cover the model."""
        return self.has_figures and not found.estimate.coverage.complete

    def parts(self) -> Iterator[Part]:
        """Yield the figures so far, each as soon as the run has it."""
        estimate, whole = self.estimate, self.end_to_end
        if estimate is None:
            yield Sentence("The whole model is timed; its layers follow.", "strong")
        else:
            yield Sentence(f"The estimate so far is {milliseconds(estimate.value_ms)} ms.", "strong")
        known = [(name, it) for name, it in (("end to end", whole), ("sequential", estimate)) if it is not None]
        figures = (BarFigure(name, in_ms(it.value_ms), it.value_ms, it.low_ms, it.high_ms) for name, it in known)
        yield Figures(tuple(figures))
        if estimate is not None:
            ends = f"{milliseconds(estimate.low_ms)} to {milliseconds(estimate.high_ms)} ms"
            yield Sentence(f"{ends}, the 95 % interval so far; more samples narrow it.", "muted")


NOTHING_UNDER_WAY = UnderWay()


def under_way(run: RunSnapshot, model: str) -> UnderWay:
    """Return the progress of a run of a model; nothing if the run is of other models, has ended or is replayed."""
    words = on_its_way(run, model)
    if not words:
        return NOTHING_UNDER_WAY
    # A run in several variants has several figures, of which none is the answer.
    estimates = [it for it in run.estimates if it.model == model]
    wholes = [it for it in run.bricks if it.whole and model in it.used_by]
    if len(estimates) > 1 or len(wholes) > 1:
        return UnderWay(words)
    return UnderWay(
        words,
        next((_estimate_so_far(it) for it in estimates if not it.is_partial), None),
        next((_latency_so_far(it.samples_ms, it.latency_ms, it.half_width) for it in wholes), None),
    )


def _estimate_so_far(run: RunModel) -> Latency | None:
    """Return the estimate of a run in progress; None until each layer has samples."""
    from dlbricks_tui.estimate.knowledge import Latency

    value_ms, low_ms, high_ms = run.sequential_ms, run.low_ms, run.high_ms
    return Latency(value_ms, low_ms, high_ms) if value_ms and low_ms is not None and high_ms is not None else None


def _latency_so_far(samples_ms: Sequence[float], latency_ms: float | None, half_width: float | None) -> Latency | None:
    """Return the latency of a whole model that a run times, from its samples, or as it was measured at first."""
    # Loaded here: the first screen shows no run, and needs no NumPy.
    from dlbricks_tui.estimate.knowledge import Latency
    from dlbricks_tui.store.statistics import trimmed_mean

    if len(samples_ms) >= _ENOUGH_SAMPLES:
        # Samples of the rounds of the bricks saw the host at the same speed as these. The bootstrap of the final
        # interval would take the processor from the run.
        value_ms, samples = trimmed_mean(samples_ms), len(samples_ms)
        squares = fsum((it - value_ms) ** 2 for it in samples_ms)
        half_ms = _TWO_SIDED_95 * sqrt(squares / (samples - 1) / samples)
        return Latency(value_ms, max(0.0, value_ms - half_ms), value_ms + half_ms)
    if not latency_ms:
        return None
    half_ms = latency_ms * (half_width or 0.0)
    return Latency(latency_ms, latency_ms - half_ms, latency_ms + half_ms)


# An active job does not store its time by the second.
RUN_COLUMNS: tuple[Column[RunSummary], ...] = (
    name_column("models", lambda it: names_of(it.models)),
    Column("run", lambda it: it.run),
    Column("state", lambda it: it.state.value),
    Column("bricks", lambda it: it.bricks.total, is_optional=True),
    Column("measured", lambda it: it.bricks.run),
    Column("known", lambda it: it.bricks.reused, is_optional=True),
    Column("failed", lambda it: it.bricks.failed),
    Column("time", lambda it: "" if it.pid else duration(it.seconds)),
)
JOB_COLUMNS: tuple[Column[JobSummary], ...] = (
    name_column("models", lambda it: names_of(it.models)),
    word_column("kind", lambda it: it.kind),
    word_column("job", lambda it: it.id),
    word_column("state", lambda it: it.state.value),
    Column("started", lambda it: ago(it.started)),
    Column("time", lambda it: "" if it.pid else duration(it.seconds)),
    Column("left", lambda it: or_dash(duration, it.seconds_left)),
)
FLEET_COLUMNS: tuple[Column[FleetSummary], ...] = (
    name_column("models", lambda it: names_of(it.models)),
    Column("fleet run", lambda it: it.fleet),
    Column("state", lambda it: it.state.value),
    Column("bricks", lambda it: it.bricks),
    Column("measured", lambda it: it.measured),
    Column("known", lambda it: it.known),
    Column("failed", lambda it: it.failed),
)


def replay_parts(found: ReplayedRun) -> Iterator[Part]:
    """Yield the last estimates that the events of a run tell."""
    if not found.models:
        yield Sentence("its events tell no estimate")
        return
    longest_ms = max((it.sequential_ms or 0.0 for it in found.models), default=0.0) or 1.0
    columns: tuple[Column[ReplayedModel], ...] = (
        name_column("model", lambda it: it.model),
        Column("sequential", lambda it: _sum(it, it.sequential_ms)),
        bar_column(lambda it: (it.sequential_ms or 0.0) / longest_ms),
        Column("95 %", _interval),
        Column("parallel", lambda it: _sum(it, it.parallel_ms)),
        Column("layers", lambda it: f"{it.measured_layers}/{it.layers}"),
        Column("end to end", lambda it: or_dash(in_ms, it.measured_ms)),
        Column("error", lambda it: or_dash(signed_percent, it.error)),
    )
    yield Sentence(found.runtime)
    yield BLANK_LINE
    yield Table(columns, found.models)


def _sum(it: ReplayedModel, latency_ms: float | None) -> str:
    return "-" if latency_ms is None else partly(latency_ms, part=it.measured_layers < it.layers)


def _interval(it: ReplayedModel) -> str:
    if it.low_ms is None or it.high_ms is None:
        return "-"
    return f"{ends_of(it.low_ms, it.high_ms)} ms"
