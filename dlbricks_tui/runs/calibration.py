"""The calibration of a run: the levels that need one, and their constants, which go to the store."""

from collections.abc import Iterable, Sequence

from dlbricks_tui.estimate.calibration import Example
from dlbricks_tui.estimate.errors import CalibrationError
from dlbricks_tui.estimate.lookup import MOST_CALIBRATIONS, calibrations_of
from dlbricks_tui.estimate.system_estimate import Way
from dlbricks_tui.measure.calibrating import (
    CALIBRATION_SECONDS,
    RULE,
    NetworkResults,
    example_of,
    fit,
    in_time,
    jobs_of,
    networks,
)
from dlbricks_tui.measure.calibration_nets import NETWORKS
from dlbricks_tui.measure.events import Calibrated, Calibrating, CalibrationFailed
from dlbricks_tui.measure.jobs import CutModel, Job
from dlbricks_tui.measure.known import Conditions
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.time_left import SECONDS_PER_NETWORK, TimeLeft
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runs.request import CalibrationPolicy, RunRequest
from dlbricks_tui.runs.work import Session, measure_alone
from dlbricks_tui.store.generation import Generation
from dlbricks_tui.store.records import Calibration, utc_now
from dlbricks_tui.store.store import Store


def levels_due(
    request: RunRequest,
    models: Iterable[CutModel],
    jobs: Iterable[Job],
    conditions: Conditions,
    generation: Generation,
    expected_seconds: float,
) -> tuple[Level, ...]:
    """Return the levels of the jobs that lack a calibration with the current constants.

    - With the policy `ANEW`: the levels of all models, even if no job is left.
    - A long run without a time budget adds a calibration to a level that has only a few.
    """
    if request.calibration is CalibrationPolicy.NEVER or request.method is not Method.ALONE:
        return ()
    levels = {job.graph.level for job in jobs}
    if request.calibration is CalibrationPolicy.ANEW:
        return tuple(sorted(levels | {model.decomposition.graph.level for model in models}))
    today = request.runtime.traits.calibration_constants
    is_long = request.time_budget_seconds is None and expected_seconds >= calibration_seconds(levels)

    def is_due(level: Level) -> bool:
        found = calibrations_of(generation, way_of(conditions, level))
        if not found or tuple(name for name, _ in found[0].constants) != today:
            return True
        return is_long and len(found) < MOST_CALIBRATIONS

    return tuple(filter(is_due, sorted(levels)))


def way_of(conditions: Conditions, level: Level) -> Way:
    """Return the way of measuring that a calibration applies to."""
    return Way(conditions.system, conditions.runtime, level, conditions.protocol)


def calibration_seconds(levels: Iterable[Level]) -> float:
    """Return about how long it takes to calibrate these levels."""
    return SECONDS_PER_NETWORK * sum(len(NETWORKS) for _ in levels)


def calibrate_levels(session: Session, levels: Sequence[Level], time_left: TimeLeft, store: Store) -> bool:
    """Store the constants of these levels; return True if any were found."""
    found_any = False
    for number, level in enumerate(levels, start=1):
        time_left.expect_networks(len(NETWORKS) * (len(levels) - number + 1))
        found = calibrate_level(session, level, time_left)
        if found is not None:
            found_any = True
            store.add(found)
    return found_any


def calibrate_level(session: Session, level: Level, time_left: TimeLeft) -> Calibration | None:
    """Measure the calibration networks and fit the constants of a level; tell and return None if that fails.

    Each network has a worker of its own, since the placement of threads on cores differs from one process to the next.
    """
    clock, traits = session.place.clock, session.request.runtime.traits
    left = session.control.seconds_left
    seconds = CALIBRATION_SECONDS if left is None else min(left, CALIBRATION_SECONDS)
    end = clock() + seconds
    examples: list[Example] = []
    reasons: list[str] = []
    try:
        found = _networks(session, level)
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
    return Calibration(
        when=utc_now(),
        run=session.folder.run,
        constants=correction.constants,
        residuals=tuple(zip(names, correction.residuals, strict=True)),
        densities=tuple(zip(names, correction.densities, strict=True)),
        **way_of(session.conditions, level)._asdict(),
    )


def _networks(session: Session, level: Level) -> tuple[CutModel, ...]:
    folder, runtime = session.place.data.cache / "calibration", session.request.runtime
    with WorkerFramework(runtime, session.folder.worker_log, session.place.worker_program) as framework:
        return tuple(networks(folder, runtime.traits.format, Loader(folder, framework, framework), level))
