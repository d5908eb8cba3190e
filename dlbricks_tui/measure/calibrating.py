"""Calibration: the constants that correct the sum of bricks, found on networks built for it."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

from dlbricks_tui.bricks.contexts import is_cold_in
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.bricks.identity import times_paid
from dlbricks_tui.estimate.calibration import (
    CALL_MS,
    TERMS,
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
# Calibrating a level takes so long at most, and needs so many of the networks.
CALIBRATION_SECONDS = 60.0
FEWEST_NETWORKS = 5


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


# Measures jobs by a rule in a fresh worker, and notes what it finds.
Measurer = Callable[[Sequence[Job], StoppingRule, Notes], None]


def calibrate(
    folder: Path,
    traits: Traits,
    open_loader: Callable[[Path], AbstractContextManager[Loader]],
    level: Level,
    measure: Measurer,
    tell: Callable[[Event], None],
    seconds: float = CALIBRATION_SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[Correction, tuple[str, ...]] | None:
    """Return the correction and the networks that its residuals are of; None, which is told, where none is found.

    The loader keeps in the folder what it reads there. Each network has a worker of its own, since the placement of
    threads on cores differs from one process to the next. A network that would end too late is left out.
    """
    end = clock() + seconds
    longest = 0.0
    examples: list[Example] = []
    reasons: list[str] = []
    try:
        subjects = tuple(networks(folder, traits.format, open_loader, level))
        for number, subject in enumerate(subjects, start=1):
            began = clock()
            if began + longest > end:
                break
            tell(Calibrating(network=subject.name, number=number, of=len(subjects)))
            notes = Notes()
            measure(plan((subject,), Known(), RULE, end_to_end=True).jobs, RULE, notes)
            longest = max(longest, clock() - began)
            reasons += notes.reasons
            if not notes.reasons:
                examples.append(example_of(subject, notes.found, traits.calibration_constants, notes.call_ms))
        if len(examples) < FEWEST_NETWORKS:
            raise CalibrationError(
                f"{len(examples)} networks could be measured in {seconds:.0f} s, and {FEWEST_NETWORKS} are needed"
            )
        correction = fitted(examples, traits.calibration_constants)
    except (CalibrationError, ModelError) as failure:
        tell(CalibrationFailed(reason="; ".join([str(failure), *reasons[:1]])))
        return None
    tell(Calibrated(error=sum(map(abs, correction.residuals)) / len(correction.residuals)))
    return correction, tuple(example.name for example in examples)


def networks(
    folder: Path, form: Format, open_loader: Callable[[Path], AbstractContextManager[Loader]], level: Level
) -> Iterator[Subject]:
    """Yield the calibration networks, written to a folder and cut."""
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
    """Return a network as an example; `call_ms` counts if it is among the constants.

    Bricks that compute nothing are not measured.
    """
    paid: list[tuple[int, float]] = []
    sought = found_by_fit(constants)
    terms = [0.0] * len(sought)
    graph = subject.decomposition.graph
    for occurrence in subject.decomposition.occurrences:
        brick = found.get(JobKey(occurrence.brick.key, occurrence.context))
        if brick is None:
            continue
        brick_ms, times = brick.trimmed_mean_ms, times_paid(graph, occurrence.sequence.layers)
        paid.append((times, brick_ms))
        for number, constant in enumerate(sought):
            terms[number] += times * TERMS[constant](brick_ms, is_cold_in(occurrence.context))
    measured_ms = found[JobKey(model=subject.key)].trimmed_mean_ms
    composed_ms = sum(times * latency_ms for times, latency_ms in paid)
    paid_once_ms = call_ms if CALL_MS in constants else 0.0
    return Example(subject.name, tuple(terms), composed_ms, measured_ms, density_of(paid), paid_once_ms)
