"""Which levels a run has to calibrate before it measures, and about how long that takes."""

from collections.abc import Iterable

from dlbricks_tui.estimate.lookup import MOST_CALIBRATIONS, calibrations_of
from dlbricks_tui.estimate.system_estimate import Way
from dlbricks_tui.measure.calibration_nets import NETWORKS
from dlbricks_tui.measure.jobs import Job, Subject
from dlbricks_tui.measure.known import Conditions
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.time_left import SECONDS_PER_NETWORK
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runs.request import CalibrationPolicy, RunRequest
from dlbricks_tui.store.generation import Generation
from dlbricks_tui.store.records import Calibration, Constants

# So many networks may lack in a calibration because they fail wherever it was made.
_MAY_FAIL = 2


def levels_due(
    request: RunRequest,
    subjects: Iterable[Subject],
    jobs: Iterable[Job],
    conditions: Conditions,
    generation: Generation,
    expected_seconds: float,
) -> tuple[Level, ...]:
    """Those levels of what is to be measured of which nobody knows by today's constants what the method misses.

    Where it is asked for anew, those of all models, though there be nothing else to measure. What was found on few
    networks, in the time that a budget left for it, does where there is a budget. A level that was calibrated only
    a few times is calibrated once more by a run that is expected to take longer than that.
    """
    if request.calibration is CalibrationPolicy.NEVER or request.method is not Method.ALONE:
        return ()
    levels = {job.graph.level for job in jobs}
    if request.calibration is CalibrationPolicy.ANEW:
        return tuple(sorted(levels | {subject.decomposition.graph.level for subject in subjects}))
    today = request.runtime.traits.calibration_constants
    in_haste = request.time_budget_seconds is not None
    is_long = expected_seconds >= calibration_seconds(levels)

    def is_due(level: Level) -> bool:
        found = calibrations_of(generation, way_of(conditions, level))
        if not found or names_in(found[0].constants) != today or not found[0].densities:
            return True
        return not in_haste and (lacks_much(found[0]) or (is_long and len(found) < MOST_CALIBRATIONS))

    return tuple(filter(is_due, sorted(levels)))


def lacks_much(calibration: Calibration) -> bool:
    """Whether a calibration is of so few of today's networks that more cannot be meant than that some fail here."""
    return len(set(NETWORKS).difference(names_in(calibration.residuals))) > _MAY_FAIL


def names_in(values: Constants) -> tuple[str, ...]:
    """What values are called."""
    return tuple(name for name, _ in values)


def way_of(conditions: Conditions, level: Level) -> Way:
    """The way of measuring that a calibration holds for."""
    return Way(conditions.system, conditions.runtime, level, conditions.protocol)


def calibration_seconds(levels: Iterable[Level]) -> float:
    """About how long it takes to calibrate these levels."""
    return SECONDS_PER_NETWORK * sum(len(NETWORKS) for _ in levels)
