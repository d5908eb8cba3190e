"""The calibration of a run: the levels that need one, and their constants, which go to the store."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from dlbricks_tui.estimate.lookup import MOST_CALIBRATIONS, calibrations_of
from dlbricks_tui.estimate.system_estimate import Way
from dlbricks_tui.measure.calibrating import CALIBRATION_SECONDS, calibrate
from dlbricks_tui.measure.calibration_nets import NETWORKS
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
from dlbricks_tui.store.records import Calibration, utc_now
from dlbricks_tui.store.store import Store


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
    - A long run without a time budget adds a calibration to a level that has only a few.
    """
    if request.calibration is CalibrationPolicy.NEVER or request.method is not Method.ALONE:
        return ()
    levels = {job.graph.level for job in jobs}
    if request.calibration is CalibrationPolicy.ANEW:
        return tuple(sorted(levels | {subject.decomposition.graph.level for subject in subjects}))
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
    """Store the constants of these levels; return true if any were found."""

    def measure_network(jobs: Sequence[Job], rule: StoppingRule, results: ResultSink) -> None:
        with time_left.network():
            # The constants are about layers that run one after another.
            measure_alone(session, jobs, rule, results, time_left, side_by_side=False)

    folder, traits = session.place.data.cache / "calibration", session.request.runtime.traits
    found_any = False
    for number, level in enumerate(levels, start=1):
        time_left.expect_networks(len(NETWORKS) * (len(levels) - number + 1))
        left = session.control.seconds_left
        seconds = CALIBRATION_SECONDS if left is None else min(left, CALIBRATION_SECONDS)
        found = calibrate(
            folder,
            traits,
            partial(_loader, session),
            level,
            measure_network,
            session.tell,
            seconds,
            session.place.clock,
        )
        if found is not None:
            correction, networks = found
            found_any = True
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
    return found_any


@contextmanager
def _loader(session: Session, cache: Path) -> Iterator[Loader]:
    """Read models as the runtime of the run runs them."""
    log, program = session.folder.worker_log, session.place.worker_program
    with WorkerFramework(session.request.runtime, log, program) as framework:
        yield Loader(cache, framework, framework)
