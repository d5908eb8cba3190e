"""The calibration of a run: the levels that need one, and the constants that correct the sum of bricks.

Constants are found on networks built for it, which are measured like the models of a user, and go to the store.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from dlbricks_tui.bricks.contexts import is_cold_in
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.bricks.identity import times_paid
from dlbricks_tui.estimate.calibration import (
    BATCH_SIZE,
    CALL_MS,
    TERMS,
    Correction,
    Example,
    density_of,
    fitted,
    found_by_fit,
)
from dlbricks_tui.estimate.errors import CalibrationError
from dlbricks_tui.estimate.lookup import MOST_CALIBRATIONS, calibrations_of, constants_of, nearest_calibrated
from dlbricks_tui.estimate.system_estimate import Way
from dlbricks_tui.measure.calibration_nets import NETWORKS, SUFFIXES, calibration_nets
from dlbricks_tui.measure.events import Calibrated, Calibrating, CalibrationFailed
from dlbricks_tui.measure.jobs import CutModel, Job, JobKey, cut_model
from dlbricks_tui.measure.known import Conditions, Known
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.noise import NULL_CALL_MS
from dlbricks_tui.measure.plan import plan
from dlbricks_tui.measure.results import ResultSink
from dlbricks_tui.measure.stopping import Adaptive, Samples
from dlbricks_tui.measure.time_left import SECONDS_PER_NETWORK, TimeLeft
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runs.request import CalibrationPolicy, RunRequest
from dlbricks_tui.runs.work import RunSession, measure_alone
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Calibration, Facts, Statistics, utc_now

# On a noisy host twenty samples leave a quarter of a constant uncertain, and every estimate depends on it. Small
# networks say most about constants, vary most, and cost next to nothing.
RULE = Adaptive(least=20, most=20, most_of_quick=80, quick_seconds=0.4, enough_seconds=2.0)
# The most seconds for the calibration of a level, and the fewest networks that it needs.
CALIBRATION_SECONDS = 60.0
FEWEST_NETWORKS = 5
# Noise makes constants useless: with a larger mean error than this those of other systems are better.
MOST_ERROR = 0.15


class Target(NamedTuple):
    """A level to calibrate, and the batch size of the networks."""

    level: Level
    batch_size: int


def targets_due(
    request: RunRequest,
    models: Iterable[CutModel],
    jobs: Iterable[Job],
    conditions: Conditions,
    store: ResultsDatabase,
    expected_seconds: float,
) -> tuple[Target, ...]:
    """Return the levels of the jobs that lack a calibration with the current constants.

    A level is calibrated at the smallest batch size of the run; other batch sizes share these constants.

    - With the policy `ANEW`: the levels of all models in all batch sizes, even if no job is left.
    - A long run without a time budget adds a calibration to a level that has only a few.
    """
    if request.calibration is CalibrationPolicy.NEVER or request.method is not Method.ALONE:
        return ()
    needed = {Target(job.graph.level, job.graph.batch_size) for job in jobs}
    if request.calibration is CalibrationPolicy.ANEW:
        graphs = [model.decomposition.graph for model in models]
        return tuple(sorted(needed | {Target(graph.level, graph.batch_size) for graph in graphs}))
    smallest = {level: min(it.batch_size for it in needed if it.level is level) for level, _ in needed}
    targets = sorted(Target(level, batch_size) for level, batch_size in smallest.items())
    today = request.runtime.traits.calibration_constants
    if not today:
        return ()
    is_long = request.time_budget_seconds is None and expected_seconds >= calibration_seconds(targets)

    def is_due(target: Target) -> bool:
        way = way_of(conditions, target.level)
        nearest = nearest_calibrated(store, way, target.batch_size)
        if nearest is None or constants_of(calibrations_of(store, way, nearest)[0]).keys() != set(today):
            return True
        return is_long and len(calibrations_of(store, way, target.batch_size)) < MOST_CALIBRATIONS

    return tuple(filter(is_due, targets))


def way_of(conditions: Conditions, level: Level) -> Way:
    """Return the way of measuring that a calibration applies to."""
    return Way(conditions.system, conditions.runtime, level, conditions.protocol)


def calibration_seconds(targets: Iterable[Target]) -> float:
    """Return about how long it takes to calibrate these levels."""
    return SECONDS_PER_NETWORK * sum(len(NETWORKS) for _ in targets)


def calibrate(session: RunSession, targets: Sequence[Target], time_left: TimeLeft, store: ResultsDatabase) -> bool:
    """Store the constants of these levels; return True if any were found."""
    found_any = False
    for number, target in enumerate(targets, start=1):
        time_left.expect_networks(len(NETWORKS) * (len(targets) - number + 1))
        found = calibrate_level(session, target, time_left)
        if found is not None:
            found_any = True
            store.add(found)
    return found_any


def calibrate_level(session: RunSession, target: Target, time_left: TimeLeft) -> Calibration | None:
    """Measure the calibration networks and fit the constants of a level; tell and return None if that fails.

    Each network has a separate worker, because the placement of threads on cores differs from one process to the next.
    """
    clock, traits = session.place.clock, session.request.runtime.traits
    left = session.control.seconds_left
    seconds = CALIBRATION_SECONDS if left is None else min(left, CALIBRATION_SECONDS)
    end = clock() + seconds
    examples: list[Example] = []
    reasons: list[str] = []
    try:
        found = networks(session, target)
        for number, network in enumerate(in_time(found, end, clock), start=1):
            session.tell(Calibrating(network=network.name, number=number, of=len(found)))
            results = NetworkResults()
            with time_left.network():
                # The constants are about layers that run one after another.
                measure_alone(session, jobs_of(network), RULE, results, time_left, side_by_side=False)
            reasons += results.reasons
            if not results.reasons:
                examples.append(example_of(network, results.found, traits.calibration_constants, results.call_ms))
        correction = fit(examples, traits.calibration_constants, seconds)
    except (CalibrationError, ModelError) as failure:
        session.tell(CalibrationFailed(reason="; ".join([str(failure), *reasons[:1]])))
        return None
    session.tell(Calibrated(error=sum(map(abs, correction.residuals)) / len(correction.residuals)))
    names = [example.name for example in examples]
    # Without a batch size, earlier versions apply the constants too.
    beside = () if target.batch_size == 1 else ((BATCH_SIZE, float(target.batch_size)),)
    return Calibration(
        when=utc_now(),
        run=session.folder.run,
        constants=(*correction.constants, *beside),
        residuals=tuple(zip(names, correction.residuals, strict=True)),
        densities=tuple(zip(names, correction.densities, strict=True)),
        **way_of(session.conditions, target.level)._asdict(),
    )


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


def networks(session: RunSession, target: Target) -> tuple[CutModel, ...]:
    """Return the calibration networks, written to the cache and cut."""
    folder, runtime = session.place.data.cache / "calibration", session.request.runtime
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    with WorkerFramework(runtime, session.folder.worker_log, session.place.worker_program) as framework:
        loader = Loader(folder, framework, framework)
        for name, content in calibration_nets(runtime.traits.format, target.batch_size).items():
            path = folder / f"{name.replace(' ', '_')}{SUFFIXES[runtime.traits.format]}"
            path.write_bytes(content)
            graph = loader.load(source_of(path), target.level)
            found.append(cut_model(decompose(replace(graph, name=name))))
    return tuple(found)


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
    """Fit the constants to the networks that were measured in this many seconds."""
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
