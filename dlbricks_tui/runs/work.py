"""What a run does when it has its turn: read the models, see what the store lacks, measure that."""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from dlbricks_tui.bricks.programs import file_program, model_program, sequence_program
from dlbricks_tui.estimate.errors import CalibrationError
from dlbricks_tui.host.contention import others_running
from dlbricks_tui.host.fingerprint import GIBIBYTE, fingerprint
from dlbricks_tui.measure.alone import Measuring
from dlbricks_tui.measure.batching import BatchLimits
from dlbricks_tui.measure.calibrating import ENOUGH_NETWORKS, calibrate
from dlbricks_tui.measure.calibration_nets import NETWORKS
from dlbricks_tui.measure.carriers import carrier_tasks, groups
from dlbricks_tui.measure.events import CalibrationFailed, Event
from dlbricks_tui.measure.inside import Inside
from dlbricks_tui.measure.jobs import Entry, Job, Subject, Target
from dlbricks_tui.measure.known import known_in, with_earlier
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.noise import Calmness
from dlbricks_tui.measure.plan import Plan, plan, targets_of
from dlbricks_tui.measure.reference import reference_program
from dlbricks_tui.measure.results import Keeper, Recorder, conditions_of, runtime_record
from dlbricks_tui.measure.stopping import Adaptive, StoppingRule
from dlbricks_tui.measure.time_left import SECONDS_PER_NETWORK, TimeLeft, expected_seconds
from dlbricks_tui.measure.workbench import Task, Workbench
from dlbricks_tui.models.framework import WorkerFramework
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import Library
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runs.calibration import levels_due, way_of
from dlbricks_tui.runs.control import Control
from dlbricks_tui.runs.errors import RunError
from dlbricks_tui.runs.events import FailedBefore, LayerUnmeasurable, Planned, WorkerReplaced
from dlbricks_tui.runs.preparation import Assignment, Preparation, prepare
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.runs.results import Counts, Ledger, Outlook
from dlbricks_tui.runs.run_folder import RunFolder, State, Tally
from dlbricks_tui.runs.stop_signals import RunStopped, StopSignals
from dlbricks_tui.runtime.process import INSIDE, Worker
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.settings import SAMPLE_MODELS, DataFolder
from dlbricks_tui.store.records import Calibration, Run, utc_now
from dlbricks_tui.store.store import Store

# What a framework reserves of the address space without ever touching it.
_RESERVED_BYTES = 8 * GIBIBYTE
# Of a host's memory one batch may take one such part.
_PARTS_OF_MEMORY = 2
# What of a time budget may go into what nobody asked for.
_MOST_OF_A_BUDGET_TO_CALIBRATE, _MOST_OF_A_BUDGET_TO_WAIT = 0.5, 0.1
# Where each would have to be calibrated on in less than this part of the usual time, it is not worth to begin.
_LEAST_SHARE_OF_A_NETWORK = 0.6
# To load a program makes its weights and compiles its kernels, which takes longer than to run it.
_RUNS_PER_LOAD = 100.0


@dataclass(frozen=True, slots=True)
class Workplace:
    """Where a run works: the user's data, the models it may know, the program of its workers, limits and clock."""

    data: DataFolder
    samples: Path = SAMPLE_MODELS
    worker_program: Path = INSIDE
    limits: BatchLimits = field(default_factory=BatchLimits)
    clock: Callable[[], float] = time.monotonic
    # How long the command had worked before the run began: a time budget includes it.
    spent_seconds: float = 0.0


class Work:
    """The work of one run."""

    def __init__(
        self,
        folder: RunFolder,
        request: RunRequest,
        place: Workplace,
        control: Control,
        signals: StopSignals,
        tell: Callable[[Event], None],
        prepare: Preparation | None = None,
    ) -> None:
        self._prepare = prepare or self._models
        self._folder = folder
        self._request = request
        self._place = place
        self._control = control
        self._signals = signals
        self._tell = tell
        self._system = fingerprint()
        # Before the run has a worker, all who compute are others.
        self._others = others_running()
        budget = request.time_budget_seconds
        # One for calibration networks and bricks: their rounds wait for the same host to become quiet.
        self._calmness = Calmness(most_seconds=math.inf if budget is None else _MOST_OF_A_BUDGET_TO_WAIT * budget)
        self._conditions = conditions_of(self._system.id, request.runtime, request.method)

    def do(self) -> None:
        """Does all of it, or raises what stopped it; what was measured until then is in the store."""
        with self._signals.waiting():
            assignment = self._prepare(self._request, self._folder, self._tell)
        with Store(self._place.data.store) as store:
            planned = self._plan(assignment, store)
            counts = _counts(planned)
            subjects, held = assignment.models, store.generation
            seconds = expected_seconds(self._request.method, self._request.rule, planned.jobs, self._others)
            uncalibrated = levels_due(self._request, subjects, planned.jobs, self._conditions, held, seconds)
            networks = len(NETWORKS) * len(uncalibrated)
            self._time_left = TimeLeft(
                networks, seconds, lambda: self._control.seconds_left, self._place.clock, self._others
            )
            self._tell_plan(planned, counts, self._time_left.total(0.0))
            self._control.count(*counts)
            store.add(self._system, runtime_record(self._request.runtime, self._system))
            self._calibrate(uncalibrated, store)
            self._time_left.begin_jobs()
            outlook = Outlook(assignment.models, store.generation, self._conditions)
            recorder = Recorder(self._folder.run, self._conditions)
            ledger = Ledger(store, recorder, outlook, self._tell, counts, self._control.count)
            state = State.INTERRUPTED
            try:
                if planned.jobs and self._request.method is Method.INSIDE:
                    self._measure_inside(planned.jobs, assignment.models, ledger)
                elif planned.jobs:
                    side_by_side = self._request.runtime.at_once > 1
                    self._measure(planned.jobs, self._request.rule, ledger, side_by_side=side_by_side)
                state = State.FINISHED
            except RunStopped as stopped:
                state = stopped.state
                raise
            finally:
                ledger.save_counts()
                store.add(self._record(state, ledger.counts.bricks))
                ledger.tell_estimates()

    def _models(self, request: RunRequest, folder: RunFolder, tell: Callable[[Event], None]) -> Assignment:
        library = Library(self._place.samples, self._place.data.path)
        return Assignment(prepare(request, library, self._place.data.cache, folder.worker_log, tell))

    def _plan(self, assignment: Assignment, store: Store) -> Plan:
        end_to_end = self._request.end_to_end
        method = self._request.method
        targets = targets_of(assignment.models, end_to_end, method) + tuple(job.target for job in assignment.bricks)
        # A run that is taken up again goes on where it was.
        since = self._control.state.started if self._request.again else ""
        known = known_in(store.generation, self._conditions, targets, since)
        if self._request.retry_failed:
            known = replace(known, failed={})
        found = plan(assignment.models, known, self._request.rule, end_to_end, assignment.bricks, method)
        return replace(found, jobs=with_earlier(found.jobs, store.generation, self._conditions, known))

    def _tell_plan(self, found: Plan, counts: Counts, seconds: float) -> None:
        for layer in found.unmeasurable:
            self._tell(LayerUnmeasurable(**layer._asdict()))
        for job, reason in found.failed.items():
            self._tell(FailedBefore(label=job.label, reason=reason, **job.target._asdict()))
        self._tell(
            Planned(
                system=self._conditions.system,
                runtime=self._conditions.runtime,
                bricks=counts.bricks.total,
                bricks_reused=counts.bricks.reused,
                bricks_failed_before=counts.bricks.failed,
                models=counts.whole_models.total,
                models_reused=counts.whole_models.reused,
                models_failed_before=counts.whole_models.failed,
                expected_seconds=seconds,
            )
        )

    def _calibrate(self, levels: Sequence[Level], store: Store) -> None:
        """Finds out what the method misses there, before anything is estimated of these levels."""
        for number, level in enumerate(levels, start=1):
            self._time_left.expect_networks(len(NETWORKS) * (len(levels) - number + 1))
            left = self._seconds_to_calibrate
            if left is not None and left < ENOUGH_NETWORKS * _LEAST_SHARE_OF_A_NETWORK * SECONDS_PER_NETWORK:
                self._tell(CalibrationFailed(reason="half of the time budget is too short for it"))
                continue
            found = calibrate(
                self._place.data.cache / "calibration",
                self._request.runtime.traits,
                self._loader,
                level,
                self._measure_in_time,
                self._tell,
            )
            if found is not None:
                correction, networks = found
                store.add(
                    Calibration(
                        when=utc_now(),
                        run=self._folder.run,
                        constants=correction.constants,
                        residuals=tuple(zip(networks, correction.residuals, strict=True)),
                        densities=tuple(zip(networks, correction.densities, strict=True)),
                        **way_of(self._conditions, level)._asdict(),
                    )
                )

    @contextmanager
    def _loader(self, cache: Path) -> Iterator[Loader]:
        """Reads models as the runtime of the run has them."""
        with WorkerFramework(self._request.runtime, self._folder.worker_log, self._place.worker_program) as framework:
            yield Loader(cache, framework, framework)

    def _measure_in_time(self, jobs: Sequence[Job], rule: StoppingRule, ledger: Keeper) -> None:
        """Measures while there is time for anything but what was asked for."""
        left = self._seconds_to_calibrate
        if left is not None and left < 0:
            raise CalibrationError("it has taken half of the time budget")
        with self._time_left.network():
            # The sum of bricks, which is what it looks into, is of layers that run one after another.
            self._measure(jobs, rule, ledger, side_by_side=False)

    @property
    def _seconds_to_calibrate(self) -> float | None:
        """How much of a time budget may still go into that; None without a budget."""
        budget, left = self._request.time_budget_seconds, self._control.seconds_left
        return None if budget is None or left is None else left - (1 - _MOST_OF_A_BUDGET_TO_CALIBRATE) * budget

    def _measure_inside(self, jobs: Sequence[Job], subjects: Sequence[Subject], ledger: Ledger) -> None:
        """Time whole models, then carriers, then alone those bricks that no carrier holds."""
        rule = self._request.rule
        if not isinstance(rule, Adaptive):
            raise RunError("a fixed number of runs is of bricks that are timed alone: use --method alone")
        entries = [Entry(number, job) for number, job in enumerate(jobs)]
        bricks = {entry.job.target.brick: entry for entry in entries if not entry.job.whole}
        carriers = carrier_tasks(subjects, bricks, self._request.patience.load_seconds)
        with self._workbench(self._request.runtime.for_profiling()) as bench:
            inside = Inside(bench, ledger, self._control, rule, self._tell, self._reference)
            inside.time_models(
                [(entry, self._task(entry.job, side_by_side=False)) for entry in entries if entry.job.whole]
            )
            for group in groups(carriers, self._limits.memory_bytes):
                inside.time_carriers(group, of=len(carriers))
        left = [entry.job for entry in bricks.values() if entry not in inside.kept]
        if left:
            self._measure(left, self._request.rule, ledger, side_by_side=False, first_number=len(entries))

    def _measure(
        self,
        jobs: Sequence[Job],
        rule: StoppingRule,
        ledger: Keeper,
        *,
        side_by_side: bool,
        first_number: int = 0,
    ) -> None:
        task = partial(self._task, side_by_side=side_by_side)
        with self._workbench(self._request.runtime) as bench:
            measuring = Measuring(
                bench, ledger, self._control, rule, task, self._tell, self._calmness, self._time_left, self._place.clock
            )
            measuring.take_reference(self._reference)
            measuring.work_through(jobs, self._limits, first_number)

    @contextmanager
    def _workbench(self, runtime: Runtime) -> Iterator[Workbench]:
        with Workbench(
            lambda: Worker(self._limited(runtime), self._folder.worker_log, self._place.worker_program),
            self._signals.waiting,
            lambda message: self._tell(WorkerReplaced(message=message)),
            self._request.patience.sample_seconds,
            self._memory_limit_bytes,
        ) as bench:
            self._refuse_another_version(bench.describe().version)
            yield bench

    @property
    def _reference(self) -> Task:
        return Task(reference_program(self._request.runtime.traits.format), self._request.patience.load_seconds)

    def _task(self, job: Job, *, side_by_side: bool) -> Task:
        if job.whole:
            found = file_program(job.graph, job.file) if job.file and job.from_file else model_program(job.graph)
            program = replace(found, side_by_side=side_by_side)
        else:
            program = sequence_program(job.graph, job.layers, job.kept, job.caches)
        return Task(program, self._request.patience.load_seconds + _RUNS_PER_LOAD * job.expected_ms / 1000)

    def _limited(self, runtime: Runtime) -> Runtime:
        limit = self._memory_limit_bytes + _RESERVED_BYTES
        return replace(runtime, settings=replace(runtime.settings, memory_limit_bytes=limit))

    @property
    def _limits(self) -> BatchLimits:
        """Those of the place, with more memory where the host has plenty: what is in one batch can be compared."""
        usual = self._place.limits
        return replace(usual, memory_bytes=max(usual.memory_bytes, self._memory_limit_bytes // _PARTS_OF_MEMORY))

    @property
    def _memory_limit_bytes(self) -> int:
        return self._request.memory_limit_bytes or self._system.memory_bytes

    def _refuse_another_version(self, version: str) -> None:
        runtime = self._request.runtime
        if version != runtime.version:
            raise RunError(
                f"runtime {runtime.name} has {runtime.framework} {version} by now, and {runtime.version} when the run "
                f"was asked for; `dlbricks runtimes check {runtime.name}`, then start the run anew"
            )

    def _record(self, state: State, bricks: Tally) -> Run:
        request = self._request
        return Run(
            id=self._folder.run,
            when=utc_now(),
            started=self._control.state.started,
            state=state.value,
            system=self._conditions.system,
            runtime=self._conditions.runtime,
            level=request.level,
            protocol=self._conditions.protocol,
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


def _counts(plan: Plan) -> Counts:
    return Counts(_tally(plan, whole=False), _tally(plan, whole=True))


def _tally(plan: Plan, *, whole: bool) -> Tally:
    def count(targets: Iterable[Target]) -> int:
        return sum(bool(target.brick) is not whole for target in targets)

    reused, failed = count(plan.reused), count(job.target for job in plan.failed)
    return Tally(count(job.target for job in plan.jobs) + reused + failed, 0, reused, failed)
