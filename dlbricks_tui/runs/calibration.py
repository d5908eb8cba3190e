"""The calibration of a run: the levels that need one, and their constants, which go to the store."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from dlbricks_tui.estimate.errors import CalibrationError
from dlbricks_tui.estimate.lookup import MOST_CALIBRATIONS, calibrations_of
from dlbricks_tui.estimate.system_estimate import Way
from dlbricks_tui.measure.calibrating import ENOUGH_NETWORKS, calibrate
from dlbricks_tui.measure.calibration_nets import NETWORKS
from dlbricks_tui.measure.events import CalibrationFailed
from dlbricks_tui.measure.jobs import Job, Subject
from dlbricks_tui.measure.known import Conditions
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.results import ResultSink
from dlbricks_tui.measure.stopping import StoppingRule
from dlbricks_tui.measure.time_left import SECONDS_PER_NETWORK, TimeLeft
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runs.request import CalibrationPolicy, RunRequest
from dlbricks_tui.runs.work import Session, measure_alone
from dlbricks_tui.store.generation import Generation
from dlbricks_tui.store.records import Calibration, Constants, utc_now
from dlbricks_tui.store.store import Store

# The share of a time budget that calibrating may take.
_MOST_OF_A_BUDGET = 0.5
# Calibration is skipped if each of the fewest networks would have less than this share of its usual time.
_LEAST_SHARE_OF_A_NETWORK = 0.6
# A calibration may lack so many networks, because these fail on some systems.
_MAY_FAIL = 2


def levels_due(
    request: RunRequest,
    subjects: Iterable[Subject],
    jobs: Iterable[Job],
    conditions: Conditions,
    generation: Generation,
    expected_seconds: float,
) -> tuple[Level, ...]:
    """Return the levels of the jobs that lack a calibration with the current constants.

    - With the policy `ANEW`: the levels of all models, even if no job is left.
    - With a time budget a calibration on few networks is enough.
    - A long run adds a calibration to a level that has only a few.
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
        return not in_haste and (_lacks_networks(found[0]) or (is_long and len(found) < MOST_CALIBRATIONS))

    return tuple(filter(is_due, sorted(levels)))


def _lacks_networks(calibration: Calibration) -> bool:
    """True if a calibration lacks more of the current networks than usually fail."""
    return len(set(NETWORKS).difference(names_in(calibration.residuals))) > _MAY_FAIL


def names_in(values: Constants) -> tuple[str, ...]:
    """Return the names of constants."""
    return tuple(name for name, _ in values)


def way_of(conditions: Conditions, level: Level) -> Way:
    """Return the way of measuring that a calibration applies to."""
    return Way(conditions.system, conditions.runtime, level, conditions.protocol)


def calibration_seconds(levels: Iterable[Level]) -> float:
    """Return about how long it takes to calibrate these levels."""
    return SECONDS_PER_NETWORK * sum(len(NETWORKS) for _ in levels)


def calibrate_levels(session: Session, levels: Sequence[Level], time_left: TimeLeft, store: Store) -> None:
    """Store the constants of these levels, before any estimate of them."""

    def measure_network(jobs: Sequence[Job], rule: StoppingRule, results: ResultSink) -> None:
        left = _seconds_left(session)
        if left is not None and left < 0:
            raise CalibrationError("it has taken half of the time budget")
        with time_left.network():
            # The constants are about layers that run one after another.
            measure_alone(session, jobs, rule, results, time_left, side_by_side=False)

    for number, level in enumerate(levels, start=1):
        time_left.expect_networks(len(NETWORKS) * (len(levels) - number + 1))
        left = _seconds_left(session)
        if left is not None and left < ENOUGH_NETWORKS * _LEAST_SHARE_OF_A_NETWORK * SECONDS_PER_NETWORK:
            session.tell(CalibrationFailed(reason="half of the time budget is too short for it"))
            continue
        folder, traits = session.place.data.cache / "calibration", session.request.runtime.traits
        found = calibrate(folder, traits, partial(_loader, session), level, measure_network, session.tell)
        if found is not None:
            correction, networks = found
            store.add(
                Calibration(
                    when=utc_now(),
                    run=session.folder.run,
                    constants=correction.constants,
                    residuals=tuple(zip(networks, correction.residuals, strict=True)),
                    densities=tuple(zip(networks, correction.densities, strict=True)),
                    **way_of(session.conditions, level)._asdict(),
                )
            )
    time_left.begin_jobs()


@contextmanager
def _loader(session: Session, cache: Path) -> Iterator[Loader]:
    """Read models as the runtime of the run runs them."""
    log, program = session.folder.worker_log, session.place.worker_program
    with WorkerFramework(session.request.runtime, log, program) as framework:
        yield Loader(cache, framework, framework)


def _seconds_left(session: Session) -> float | None:
    """Return the part of a time budget that is left for calibrating; None without a budget."""
    budget, left = session.request.time_budget_seconds, session.control.seconds_left
    return None if budget is None or left is None else left - (1 - _MOST_OF_A_BUDGET) * budget
