"""The plan of a run: the jobs that the store lacks, and the levels to calibrate."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from dlbricks_tui.measure.calibration_nets import NETWORKS
from dlbricks_tui.measure.jobs import Job, JobKey
from dlbricks_tui.measure.known import known_in, with_earlier
from dlbricks_tui.measure.plan import Plan, keys_of, plan
from dlbricks_tui.measure.results import runtime_record
from dlbricks_tui.measure.time_left import TimeLeft, expected_seconds
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runs.calibration import levels_due
from dlbricks_tui.runs.events import FailedBefore, LayerUnmeasurable, Planned
from dlbricks_tui.runs.preparation import Workload
from dlbricks_tui.runs.results import Counts
from dlbricks_tui.runs.run_folder import Tally
from dlbricks_tui.runs.work import Session
from dlbricks_tui.store.store import Store


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """The jobs of a run, the levels to calibrate for them, and the time left."""

    jobs: tuple[Job, ...]
    counts: Counts
    levels: tuple[Level, ...]
    time_left: TimeLeft


def plan_run(session: Session, workload: Workload, store: Store) -> PlannedRun:
    """Return what the store lacks of a workload, and tell it."""
    request, conditions = session.request, session.conditions
    keys = keys_of(workload.models, request.end_to_end, request.method) + tuple(job.key for job in workload.bricks)
    # A resumed run goes on from its own results.
    since = session.control.state.started if request.again else ""
    known = known_in(store.generation, conditions, keys, since)
    if request.retry_failed:
        known = replace(known, failed={})
    found = plan(workload.models, known, request.rule, request.end_to_end, workload.bricks, request.method)
    found = replace(found, jobs=with_earlier(found.jobs, store.generation, conditions, known))
    seconds = expected_seconds(request.method, request.rule, found.jobs, session.competing)
    levels = levels_due(request, workload.models, found.jobs, conditions, store.generation, seconds)
    networks = len(NETWORKS) * len(levels)
    time_left = TimeLeft(networks, lambda: session.control.seconds_left, session.place.clock, session.competing)
    planned = PlannedRun(found.jobs, Counts(_tally(found, whole=False), _tally(found, whole=True)), levels, time_left)
    _tell_plan(session, found, planned, time_left.total(seconds))
    session.control.count(*planned.counts)
    store.add(session.system, runtime_record(request.runtime, session.system))
    return planned


def _tell_plan(session: Session, found: Plan, planned: PlannedRun, seconds: float) -> None:
    for layer in found.unmeasurable:
        session.tell(LayerUnmeasurable(**layer._asdict()))
    for job, reason in found.failed.items():
        session.tell(FailedBefore(label=job.label, reason=reason, **job.key._asdict()))
    bricks, models = planned.counts
    session.tell(
        Planned(
            system=session.conditions.system,
            runtime=session.conditions.runtime,
            bricks=bricks.total,
            bricks_reused=bricks.reused,
            bricks_failed_before=bricks.failed,
            models=models.total,
            models_reused=models.reused,
            models_failed_before=models.failed,
            expected_seconds=seconds,
        )
    )


def _tally(plan: Plan, *, whole: bool) -> Tally:
    def count(keys: Iterable[JobKey]) -> int:
        return sum(bool(key.brick) is not whole for key in keys)

    reused, failed = count(plan.reused), count(job.key for job in plan.failed)
    return Tally(count(job.key for job in plan.jobs) + reused + failed, 0, reused, failed)
