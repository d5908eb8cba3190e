"""Calibration: the constants that correct the sum of bricks, found on networks built for it."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
from dlbricks_tui.measure.jobs import CutModel, Job, JobKey, cut_model
from dlbricks_tui.measure.known import Known
from dlbricks_tui.measure.noise import NULL_CALL_MS
from dlbricks_tui.measure.plan import plan
from dlbricks_tui.measure.results import ResultSink
from dlbricks_tui.measure.stopping import Adaptive, Samples
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.store.records import Facts, Statistics

# On a noisy host twenty samples leave a quarter of a constant uncertain, and every estimate depends on it. Small
# networks say most about constants, vary most, and cost next to nothing.
RULE = Adaptive(least=20, most=20, most_of_quick=80, quick_seconds=0.4, enough_seconds=2.0)
# Calibrating a level takes so long at most, and needs so many of the networks.
CALIBRATION_SECONDS = 60.0
FEWEST_NETWORKS = 5
# Noise makes constants useless: with a larger mean error than this those of other systems are better.
MOST_ERROR = 0.15


class NetworkResults(ResultSink):
    """The results of one network, which go into the fit and not into the store."""

    def __init__(self) -> None:
        self.found: dict[JobKey, Statistics] = {}
        self.call_ms = 0.0
        self.reasons: list[str] = []

    def keep(self, finished: Sequence[tuple[Job, Samples]], noise: Facts, *, again: bool = False) -> None:
        self.found.update({job.key: samples.statistics for job, samples in finished})
        self.call_ms = float(dict(noise).get(NULL_CALL_MS) or self.call_ms)

    def fail(self, job: Job, reason: str, message: str) -> None:
        self.reasons.append(f"{job.label}: {reason}: {message}")


def networks(folder: Path, form: Format, loader: Loader, level: Level) -> Iterator[CutModel]:
    """Yield the calibration networks, written to a folder and cut."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in calibration_nets(form).items():
        path = folder / f"{name.replace(' ', '_')}{SUFFIXES[form]}"
        path.write_bytes(content)
        graph = loader.load(source_of(path), level)
        yield cut_model(decompose(replace(graph, name=name)))


def in_time(models: Iterable[CutModel], end: float, clock: Callable[[], float]) -> Iterator[CutModel]:
    """Yield networks until another one, measured as long as the longest so far, would end too late."""
    longest = 0.0
    for network in models:
        began = clock()
        if began + longest > end:
            return
        yield network
        longest = max(longest, clock() - began)


def jobs_of(network: CutModel) -> tuple[Job, ...]:
    """Return the jobs of a network: its bricks, and the whole network."""
    return plan((network,), Known(), RULE, end_to_end=True).jobs


def example_of(
    network: CutModel, found: Mapping[JobKey, Statistics], constants: Sequence[str], call_ms: float = 0.0
) -> Example:
    """Return a network as an example; `call_ms` counts if it is among the constants.

    Bricks that compute nothing are not measured.
    """
    paid: list[tuple[int, float]] = []
    sought = found_by_fit(constants)
    terms = [0.0] * len(sought)
    graph = network.decomposition.graph
    for occurrence in network.decomposition.occurrences:
        brick = found.get(JobKey(occurrence.brick.key, occurrence.context))
        if brick is None:
            continue
        brick_ms, times = brick.trimmed_mean_ms, times_paid(graph, occurrence.sequence.layers)
        paid.append((times, brick_ms))
        for number, constant in enumerate(sought):
            terms[number] += times * TERMS[constant](brick_ms, is_cold_in(occurrence.context))
    measured_ms = found[JobKey(model=network.key)].trimmed_mean_ms
    composed_ms = sum(times * latency_ms for times, latency_ms in paid)
    paid_once_ms = call_ms if CALL_MS in constants else 0.0
    return Example(network.name, tuple(terms), composed_ms, measured_ms, density_of(paid), paid_once_ms)


def fit(examples: Sequence[Example], constants: Sequence[str], seconds: float) -> Correction:
    """Fit the constants to the networks that were measured in so many seconds."""
    if len(examples) < FEWEST_NETWORKS:
        raise CalibrationError(
            f"{len(examples)} networks could be measured in {seconds:.0f} s, and {FEWEST_NETWORKS} are needed"
        )
    correction = fitted(examples, constants)
    error = sum(map(abs, correction.residuals)) / len(correction.residuals)
    if error > MOST_ERROR:
        raise CalibrationError(
            f"its mean error is {error:.0%} on networks left out of the fit; run again on a quieter host"
        )
    return correction
