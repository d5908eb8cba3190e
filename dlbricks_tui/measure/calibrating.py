"""Calibration: the constants that correct the sum of bricks, found on networks built for it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from dlbricks_tui.bricks.coldness import Caches
from dlbricks_tui.bricks.contexts import caches_in, word_of
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.bricks.identity import times_paid
from dlbricks_tui.estimate.calibration import (
    CALL_MS,
    TERMS,
    Circumstances,
    Correction,
    Example,
    density_of,
    fitted,
    found_by_fit,
)
from dlbricks_tui.estimate.errors import CalibrationError
from dlbricks_tui.measure.calibration_nets import SUFFIXES, calibration_nets
from dlbricks_tui.measure.events import Calibrated, Calibrating, CalibrationFailed, Event
from dlbricks_tui.measure.jobs import Job, JobKey, Subject, subject_of
from dlbricks_tui.measure.known import Known
from dlbricks_tui.measure.noise import NULL_CALL_MS
from dlbricks_tui.measure.plan import plan
from dlbricks_tui.measure.stopping import Adaptive, Samples, StoppingRule
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.traits import Format, Traits
from dlbricks_tui.store.records import Facts, Statistics

# On a noisy host twenty samples leave a quarter of a constant uncertain, and every estimate depends on it. Small
# networks say most about constants, vary most, and cost next to nothing.
RULE = Adaptive(least=20, most=20, most_of_quick=80, quick_seconds=0.4, enough_seconds=2.0)
# Where there is no time for all of the networks, so many do.
ENOUGH_NETWORKS = 8


class Notes:
    """The results of one network, which go into the fit and not into the store."""

    def __init__(self) -> None:
        self.found: dict[JobKey, Statistics] = {}
        self.call_ms = 0.0
        self.reasons: list[str] = []

    def loaded(self, job: Job, first_run_seconds: float, earlier_ms: Sequence[float]) -> None:
        """Do nothing."""

    def keep(self, finished: Sequence[tuple[Job, Samples]], noise: Facts) -> None:
        """Note the statistics of a program."""
        self.found.update({job.key: series.statistics for job, series in finished})
        self.call_ms = float(dict(noise).get(NULL_CALL_MS) or self.call_ms)

    def keep_unfinished(self, stopped: Sequence[tuple[Job, Samples]], noise: Facts) -> None:
        """Do nothing: a calibration that is stopped starts again."""

    def reopen(self, jobs: Sequence[Job]) -> None:
        """Keep the statistics until the programs are timed again."""

    def fail(self, job: Job, reason: str, message: str) -> None:
        """Note why a program cannot be measured."""
        self.reasons.append(f"{job.label}: {reason}: {message}")

    def save_counts(self) -> None:
        """Do nothing: calibration networks do not count."""

    def tell_estimates(self, provisional: object) -> None:
        """Do nothing: there is no estimate before the end."""


# Measures jobs by a rule in a fresh worker, and notes what it finds, or says that there is no more time for it.
Measurer = Callable[[Sequence[Job], StoppingRule, Notes], None]


def calibrate(
    folder: Path,
    traits: Traits,
    open_loader: Callable[[Path], AbstractContextManager[Loader]],
    level: Level,
    measure: Measurer,
    tell: Callable[[Event], None],
) -> tuple[Correction, tuple[str, ...]] | None:
    """The correction and the networks that its residuals are of; None, which is told, where it cannot be found.

    The loader keeps in the folder what it reads there; networks are of the format that is asked for.
    Each network has a worker of its own: how threads come to lie on cores differs from one process to the next.
    """
    examples: list[Example] = []
    reasons: list[str] = []
    try:
        subjects = tuple(networks(folder, traits.format, open_loader, level))
        for number, subject in enumerate(subjects, start=1):
            tell(Calibrating(network=subject.name, number=number, of=len(subjects)))
            notes = Notes()
            try:
                measure(plan((subject,), Known(), RULE, end_to_end=True).jobs, RULE, notes)
            except CalibrationError:
                if len(examples) < ENOUGH_NETWORKS:
                    raise
                break
            reasons += notes.reasons
            if not notes.reasons:
                examples.append(example_of(subject, notes.found, traits.calibration_constants, notes.call_ms))
        correction = fitted(examples, traits.calibration_constants)
    except (CalibrationError, ModelError) as failure:
        tell(CalibrationFailed(reason="; ".join([str(failure), *reasons[:1]])))
        return None
    tell(Calibrated(error=sum(map(abs, correction.residuals)) / len(correction.residuals)))
    return correction, tuple(example.name for example in examples)


def networks(
    folder: Path, form: Format, open_loader: Callable[[Path], AbstractContextManager[Loader]], level: Level
) -> Iterator[Subject]:
    """Those that systems are calibrated on, written to a folder and taken apart."""
    folder.mkdir(parents=True, exist_ok=True)
    with open_loader(folder) as loader:
        for name, content in calibration_nets(form).items():
            path = folder / f"{name.replace(' ', '_')}{SUFFIXES[form]}"
            path.write_bytes(content)
            graph = loader.load(source_of(path), level)
            yield subject_of(decompose(replace(graph, name=name)))


def example_of(
    subject: Subject, found: Mapping[JobKey, Statistics], constants: Sequence[str], call_ms: float = 0.0
) -> Example:
    """A network by what was found of its bricks and of it; bricks that compute nothing are not measured.

    What a call took meanwhile is told of where it is among the constants.
    """
    paid: list[tuple[int, float]] = []
    sought = found_by_fit(constants)
    terms = [0.0] * len(sought)
    graph = subject.decomposition.graph
    for occurrence in subject.decomposition.occurrences:
        brick = found.get(JobKey(occurrence.brick.key, occurrence.context))
        if brick is None:
            continue
        layers, brick_ms = occurrence.sequence.layers, brick.trimmed_mean_ms
        times = times_paid(graph, layers)
        paid.append((times, brick_ms))
        twin = found.get(JobKey(occurrence.brick.key, occurrence.twin)) if occurrence.twin is not None else None
        twin_ms = None if twin is None else twin.trimmed_mean_ms
        cold = caches_in(occurrence.context) is Caches.COLD
        circumstances = Circumstances(brick_ms, graph.touched_bytes, cold, twin_ms, word_of(occurrence.twin or ""))
        for number, constant in enumerate(sought):
            terms[number] += times * TERMS[constant](circumstances)
    measured_ms = found[JobKey(model=subject.key)].trimmed_mean_ms
    composed_ms = sum(times * latency_ms for times, latency_ms in paid)
    paid_once_ms = call_ms if CALL_MS in constants else 0.0
    return Example(subject.name, tuple(terms), composed_ms, measured_ms, density_of(paid), paid_once_ms)
