"""Runs and probes as plain values: the results of the Python API, and the JSON documents of the commands."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from dlbricks_tui.answers.documents import OMIT_NONE
from dlbricks_tui.answers.results import TIME_WHOLE, ModelEstimate, model_estimate
from dlbricks_tui.estimate.curve import Point
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.jobs.folder import JobState, RunFolder, RunFolders, State, StoredJobs, Tally
from dlbricks_tui.runs.events import (
    EstimateChanged,
    FailedBefore,
    ModelLoading,
    Planned,
    ProgramMeasured,
    RunEnded,
    ShapesRemembered,
    WorkerReplaced,
)
from dlbricks_tui.runs.progress import RunProgress
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.runs.run import EstimatedModel, RunOutcome
from dlbricks_tui.wording.events import all_combinations, measured, noise_note, note_of
from dlbricks_tui.wording.numbers import counted
from dlbricks_tui.wording.runs import Note, Tone

# The options that change what an event reports.
_HINTS: dict[type[Event], str] = {
    FailedBefore: "--retry-failed tries it again",
    ShapesRemembered: "--input or --value gives others",
}


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


def run_result(state: JobState, outcome: RunOutcome | None = None) -> RunResult:
    """Return a run by its state, with the estimates of its outcome once it has ended."""
    models = [] if outcome is None else _estimates(outcome)
    if outcome is not None and outcome.request.end_to_end:
        # The models were timed just now, or cannot be.
        models = [replace(it, next_step=None) if it.next_step == TIME_WHOLE else it for it in models]
    suite = None if outcome is None else outcome.request.suite
    return RunResult(
        run=state.run,
        state=state.state,
        message=state.message,
        bricks=_counts(state.bricks),
        end_to_end=_counts(state.whole_models),
        unfinished=state.bricks.unfinished + state.whole_models.unfinished,
        seconds=state.seconds,
        models=tuple(models),
        results=None if suite is None else suite.results,
    )


def probe_result(outcome: RunOutcome, known_systems: Iterable[str]) -> ProbeResult:
    """Return the outcome of a probe by that of its run."""
    state = outcome.state
    return ProbeResult(
        run=state.run,
        state=state.state,
        message=state.message,
        system=fingerprint().id,
        runtime=outcome.request.runtime.identity,
        known_systems=tuple(known_systems),
        bricks=state.bricks.measured + state.bricks.unfinished,
        seconds=state.seconds,
        models=tuple(_estimates(outcome)),
    )


def _estimates(outcome: RunOutcome) -> list[ModelEstimate]:
    return [model_estimate(decomposition, one) for decomposition, one in outcome.estimates or ()]


def points_of_run(found: Iterable[EstimatedModel], request: RunRequest) -> dict[str, list[Point]]:
    """Return the estimates of a run of several variants by the names of its models."""
    runtimes = {part.runtime.identity: part.runtime for part in request.parts}
    points: dict[str, list[Point]] = {}
    for decomposition, one in found:
        runtime = runtimes[one.way.runtime]
        point = Point(runtime.name, runtime.settings.threads, one)
        points.setdefault(decomposition.graph.name, []).append(point)
    return points


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


def stored_runs(data: DataFolder) -> StoredJobs:
    """Return the states of all runs, and the runs whose state cannot be read."""
    return RunFolders(data.runs).stored()


def find_run(wanted: str, data: DataFolder) -> RunFolder:
    """Find a run by its id, or by the beginning of its id if that is unique; `last` is the newest."""
    return RunFolders(data.runs).find(wanted)


class FollowedRun:
    """A run as its events tell it, and what a viewer should read of each; a quiet one tells failures and doubts only.

    A run that takes `few_samples` by choice does not mind wide intervals.
    """

    def __init__(self, *, quiet: bool = False, few_samples: bool = False) -> None:
        self.progress = RunProgress()
        self.quiet, self.few_samples = quiet, few_samples

    def take(self, event: Event) -> list[str]:
        """Add an event, and return the lines to read about it."""
        lines = []
        if isinstance(event, ProgramMeasured) and not (event.brick or self.quiet or self._is_known(event)):
            lines.append(measured(event))
        self.progress.take(event)
        note = note_of(event)
        if note is not None and type(event) not in _HINTS and self._is_told(event, note):
            lines.append(note.text)
        if not self.quiet and isinstance(event, Planned) and event.number == event.of > 1:
            lines.append(all_combinations(event.of, self.progress.planned or event))
        if not self.quiet and isinstance(event, RunEnded):
            lines += [_at_limits(self.progress)] if self.progress.at_limits and not self.few_samples else []
            lines += filter(None, [noise_note(self.progress.disturbances)])
        return lines

    def remark(self, event: Event) -> str:
        """Return what to read of an event once: each combination of a run reads its models anew."""
        note, hint = note_of(event), _HINTS.get(type(event))
        return f"{note.text}; {hint}" if hint and note is not None and self._is_told(event, note) else ""

    def _is_told(self, event: Event, note: Note) -> bool:
        if isinstance(event, RunEnded):
            # The command writes another summary, which lacks only the reason.
            return bool(event.message)
        if self.quiet:
            return note.tone in (Tone.FAILURE, Tone.DOUBT) and not isinstance(event, WorkerReplaced)
        return not isinstance(event, ModelLoading)

    def _is_known(self, event: ProgramMeasured) -> bool:
        program = self.progress.programs.get(event.program)
        return program is not None and program.measured is not None


def _at_limits(progress: RunProgress) -> str:
    taken = counted(sum(program.measured is not None for program in progress.programs.values()), "result")
    return (
        f"{progress.at_limits} of {taken} are known less precisely than asked for, although they took the most "
        "samples: run again on a quieter host"
    )
