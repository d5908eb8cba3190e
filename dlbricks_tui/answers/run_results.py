"""Runs and probes as plain values: the results of the Python API, and the JSON documents of the commands."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import fsum, sqrt
from pathlib import Path

from dlbricks_tui.answers.documents import OMIT_NONE
from dlbricks_tui.answers.results import ModelEstimate
from dlbricks_tui.estimate.knowledge import Latency
from dlbricks_tui.jobs.folder import JobState, State, Tally
from dlbricks_tui.runs.events import EstimateChanged
from dlbricks_tui.runs.progress import RunProgress
from dlbricks_tui.store.statistics import trimmed_mean


@dataclass(frozen=True, slots=True)
class Counts:
    """Bricks, or whole models, of a run: `run` counts those that it measured, `reused` those known before."""

    total: int
    run: int
    reused: int
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """The outcome of a run, with an estimate of each of its models."""

    run: str
    state: State
    # The reason for an early end.
    message: str
    bricks: Counts
    end_to_end: Counts
    unfinished: int
    seconds: float
    models: tuple[ModelEstimate, ...]
    # The file with the results of a suite.
    results: Path | None = field(default=None, metadata=OMIT_NONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeResult:
    """The outcome of a probe: estimates from the bricks that it measured, and from systems that have the others."""

    run: str
    state: State
    # The reason for an early end.
    message: str
    system: str
    runtime: str
    # The systems with results of the same runtime, level and method.
    known_systems: tuple[str, ...]
    # The number of bricks that it measured, in part if the run was stopped.
    bricks: int
    seconds: float
    models: tuple[ModelEstimate, ...]


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run of the data folder; `pid` is the process that works on it."""

    run: str
    state: State
    message: str
    models: tuple[str, ...]
    bricks: Counts
    end_to_end: Counts
    unfinished: int
    started: str
    seconds: float
    pid: int | None


@dataclass(frozen=True, slots=True)
class ReplayedModel:
    """The last estimate of a model that the events of a run tell; None is what they do not tell."""

    model: str
    sequential_ms: float | None
    parallel_ms: float | None
    low_ms: float | None
    high_ms: float | None
    measured_ms: float | None
    measured_layers: int
    layers: int

    @property
    def error(self) -> float | None:
        """The sequential estimate relative to the measured latency."""
        if self.sequential_ms is None or not self.measured_ms or self.measured_layers < self.layers:
            return None
        return self.sequential_ms / self.measured_ms - 1


@dataclass(frozen=True, slots=True)
class ReplayedRun:
    """A run as far as its events tell of it; `state` is that of the last event."""

    run: str
    state: State
    # The reason for an early end.
    message: str
    runtime: str
    # The seconds that the replayed part took when it was recorded, without most of its idle time.
    seconds: float
    models: tuple[ReplayedModel, ...]


def replayed_run(run: str, progress: RunProgress, seconds: float) -> ReplayedRun:
    """Return a run by the progress that its events tell."""
    measured_ms = {
        name: program.measured.trimmed_mean_ms
        for program in progress.programs.values()
        if program.measured is not None and not program.about.brick
        for name in program.about.used_by
    }
    models = (_replayed_model(it, measured_ms.get(it.model)) for it in progress.estimates.values())
    runtime = progress.started.runtime if progress.started else ""
    return ReplayedRun(run, progress.state, progress.message, runtime, seconds, tuple(models))


def _replayed_model(told: EstimateChanged, measured_ms: float | None) -> ReplayedModel:
    known = told.measured_layers + told.sampled_layers
    return ReplayedModel(
        model=told.model,
        sequential_ms=told.sequential_ms,
        parallel_ms=told.parallel_ms,
        low_ms=told.low_ms,
        high_ms=told.high_ms,
        measured_ms=measured_ms,
        measured_layers=known,
        layers=known + told.missing_layers + told.unmeasurable_layers,
    )


def run_result(state: JobState, models: Iterable[ModelEstimate] = (), results: Path | None = None) -> RunResult:
    """Return the outcome of a run by its state."""
    return RunResult(
        run=state.run,
        state=state.state,
        message=state.message,
        bricks=_counts(state.bricks),
        end_to_end=_counts(state.whole_models),
        unfinished=state.bricks.unfinished + state.whole_models.unfinished,
        seconds=state.seconds,
        models=tuple(models),
        results=results,
    )


def probe_result(
    state: JobState, system: str, runtime: str, known_systems: Iterable[str], models: Iterable[ModelEstimate]
) -> ProbeResult:
    """Return the outcome of a probe by the state of its run."""
    return ProbeResult(
        run=state.run,
        state=state.state,
        message=state.message,
        system=system,
        runtime=runtime,
        known_systems=tuple(known_systems),
        bricks=state.bricks.measured + state.bricks.unfinished,
        seconds=state.seconds,
        models=tuple(models),
    )


def run_summary(state: JobState) -> RunSummary:
    """Return a run of the data folder by its state."""
    return RunSummary(
        run=state.run,
        state=state.state,
        message=state.message,
        models=state.models,
        bricks=_counts(state.bricks),
        end_to_end=_counts(state.whole_models),
        unfinished=state.bricks.unfinished + state.whole_models.unfinished,
        started=state.started,
        seconds=state.seconds,
        pid=state.process.pid if state.active else None,
    )


def _counts(tally: Tally) -> Counts:
    return Counts(tally.total, tally.measured, tally.reused, tally.failed)


# Fewer samples of the whole model tell less than the short burst that times it at first.
_ENOUGH_SAMPLES = 8
# A mean lies within this many standard errors with 95 % confidence.
_TWO_SIDED_95 = 1.96


def estimate_so_far(value_ms: float | None, low_ms: float | None, high_ms: float | None) -> Latency | None:
    """Return the estimate of a run in progress; None until each layer has samples."""
    return Latency(value_ms, low_ms, high_ms) if value_ms and low_ms is not None and high_ms is not None else None


def latency_so_far(samples_ms: Sequence[float], latency_ms: float | None, half_width: float | None) -> Latency | None:
    """Return the latency of a whole model that a run times, from its samples, or as it was measured at first."""
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
