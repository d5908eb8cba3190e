"""The plan of a run, and its measurements: what the store lacks is timed and stored."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from dlbricks_tui.measure.alone import program_of
from dlbricks_tui.measure.calibration_nets import NETWORKS
from dlbricks_tui.measure.carriers import carrier_jobs, groups
from dlbricks_tui.measure.inside import Inside
from dlbricks_tui.measure.jobs import JobKey, Subject
from dlbricks_tui.measure.known import known_in, with_earlier
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.plan import Plan, keys_of, plan
from dlbricks_tui.measure.reference import reference_program
from dlbricks_tui.measure.results import Recorder, runtime_record
from dlbricks_tui.measure.stopping import Adaptive
from dlbricks_tui.measure.time_left import TimeLeft, expected_seconds
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runs.calibration import levels_due
from dlbricks_tui.runs.errors import RunError
from dlbricks_tui.runs.events import FailedBefore, LayerUnmeasurable, Planned
from dlbricks_tui.runs.preparation import Workload
from dlbricks_tui.runs.results import Counts, LiveEstimates, RunResults
from dlbricks_tui.runs.run_folder import State, Tally
from dlbricks_tui.runs.session import Session, measure_alone
from dlbricks_tui.runs.stop_signals import RunStopped
from dlbricks_tui.store.records import Run, utc_now
from dlbricks_tui.store.store import Store


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """The jobs of a run, the levels to calibrate for them, and the time left."""

    plan: Plan
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
    time_left = TimeLeft(
        networks, seconds, lambda: session.control.seconds_left, session.place.clock, session.competing
    )
    planned = PlannedRun(found, Counts(_tally(found, whole=False), _tally(found, whole=True)), levels, time_left)
    _tell_plan(session, planned)
    session.control.count(*planned.counts)
    store.add(session.system, runtime_record(request.runtime, session.system))
    return planned


def measure(session: Session, workload: Workload, planned: PlannedRun, store: Store) -> None:
    """Measure the jobs of a plan; if the run is stopped, what was measured until then is in the store."""
    request, jobs = session.request, planned.plan.jobs
    estimates = LiveEstimates(workload.models, store.generation, session.conditions)
    recorder = Recorder(session.folder.run, session.conditions)
    results = RunResults(store, recorder, estimates, session.tell, planned.counts, session.control.count)
    state = State.INTERRUPTED
    try:
        if jobs and request.method is Method.INSIDE:
            _measure_inside(session, workload.models, planned, results)
        elif jobs:
            side_by_side = request.runtime.at_once > 1
            measure_alone(session, jobs, request.rule, results, planned.time_left, side_by_side=side_by_side)
        state = State.FINISHED
    except RunStopped as stopped:
        state = stopped.state
        raise
    finally:
        results.save_counts()
        store.add(_record(session, state, results.counts.bricks))
        results.tell_estimates()


def _measure_inside(session: Session, models: Sequence[Subject], planned: PlannedRun, results: RunResults) -> None:
    """Time whole models, then carriers, and at last alone the bricks that no carrier holds."""
    request, jobs = session.request, planned.plan.jobs
    if not isinstance(request.rule, Adaptive):
        raise RunError("a fixed number of runs applies to bricks that are timed alone: use --method alone")
    bricks = {job.key.brick: job for job in jobs if not job.whole}
    carriers = carrier_jobs(models, bricks)
    with session.worker(request.runtime.for_profiling()) as worker:
        reference = reference_program(request.runtime.traits.format)
        inside = Inside(worker, results, session.control, request.rule, session.tell, reference)
        inside.time_models([(job, program_of(job, side_by_side=False)) for job in jobs if job.whole])
        for group in groups(carriers, session.batch_limits.memory_bytes):
            inside.time_carriers(group, of=len(carriers))
    left = [job for job in bricks.values() if job not in inside.kept]
    if left:
        measure_alone(session, left, request.rule, results, planned.time_left, side_by_side=False)


def _tell_plan(session: Session, planned: PlannedRun) -> None:
    for layer in planned.plan.unmeasurable:
        session.tell(LayerUnmeasurable(**layer._asdict()))
    for job, reason in planned.plan.failed.items():
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
            expected_seconds=planned.time_left.total(0.0),
        )
    )


def _record(session: Session, state: State, bricks: Tally) -> Run:
    request = session.request
    return Run(
        id=session.folder.run,
        when=utc_now(),
        started=session.control.state.started,
        state=state.value,
        system=session.conditions.system,
        runtime=session.conditions.runtime,
        level=request.level,
        protocol=session.conditions.protocol,
        granularity=request.cutting.granularity,
        models=request.model_names,
        measured=bricks.measured,
        reused=bricks.reused,
        failed=bricks.failed,
        settings=(
            ("rule", str(request.rule)),
            ("cut", request.cutting.cut.value),
            ("order", request.cutting.order.value),
            ("end_to_end", request.end_to_end),
            ("time_budget_seconds", request.time_budget_seconds),
        ),
    )


def _tally(plan: Plan, *, whole: bool) -> Tally:
    def count(keys: Iterable[JobKey]) -> int:
        return sum(bool(key.brick) is not whole for key in keys)

    reused, failed = count(plan.reused), count(job.key for job in plan.failed)
    return Tally(count(job.key for job in plan.jobs) + reused + failed, 0, reused, failed)
