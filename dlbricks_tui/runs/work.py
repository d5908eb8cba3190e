"""The work of a run: where it works, and how its jobs are measured."""

import time
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from dlbricks_tui.errors import UserError
from dlbricks_tui.estimate.inquiry import Predictors
from dlbricks_tui.estimate.knowledge import host_speed
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.jobs.control import JobStopped, StopSignals
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.jobs.folder import RunFolder, State
from dlbricks_tui.measure.alone import Alone
from dlbricks_tui.measure.carriers import carrier_jobs, groups
from dlbricks_tui.measure.events import END_SECONDS
from dlbricks_tui.measure.inside import Inside
from dlbricks_tui.measure.jobs import CutModel, Job
from dlbricks_tui.measure.known import Conditions
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.noise import NoiseMonitor
from dlbricks_tui.measure.results import Recorder, ResultSink, conditions_of
from dlbricks_tui.measure.rounds import BatchLimits
from dlbricks_tui.measure.stopping import Adaptive
from dlbricks_tui.measure.supervised_worker import START_SECONDS, Loss, SupervisedWorker, TimeLimits, reference_program
from dlbricks_tui.measure.time_left import Agenda, stages
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.runs.control import Control
from dlbricks_tui.runs.events import WorkerReplaced
from dlbricks_tui.runs.request import RunRequest, can_be_alone
from dlbricks_tui.runs.results import (
    LiveEstimates,
    RunResults,
    explaining,
    keep_provenance,
    knows_no_onednn,
    model_digests,
    provenance,
    with_known_onednn,
    with_onednn,
)
from dlbricks_tui.runtime.errors import WorkerError
from dlbricks_tui.runtime.process import INSIDE, Worker
from dlbricks_tui.runtime.protocol import Describe, Described, Reason
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Provenance, Run, System, new_uuid, utc_now

# The graphs of models, or the reasons why they cannot be read.
KnownGraphs = dict[Hashable, LayerGraph | UserError]

# One batch may take half of the host's memory.
_MEMORY_DIVISOR = 2


@dataclass(frozen=True, slots=True)
class Workplace:
    """Where a run works: the data folder, sample models, the program of its workers, limits and clock."""

    data: DataFolder
    samples: Path = SAMPLE_MODELS
    worker_program: Path = INSIDE
    limits: BatchLimits = field(default_factory=BatchLimits)
    clock: Callable[[], float] = time.monotonic
    # Seconds already spent by the command before the run begins; the time budget includes them.
    spent_seconds: float = 0.0


def _ignore(_: Described) -> None:
    pass


class EarlyWorker:
    """A worker that imports its framework while models are read; whoever needs a worker of its runtime takes it."""

    def __init__(self) -> None:
        self._waiting: tuple[Runtime, Worker] | None = None

    def start(self, limited: Runtime, log: Path, program: Path) -> None:
        """Start a worker, unless it was started before; whoever starts the next one tells why it cannot start."""
        if self._waiting is not None and self._waiting[0] == limited:
            return
        self.end()
        with suppress(WorkerError):
            worker = Worker(limited, log, program).__enter__()
            self._waiting = limited, worker
            # A worker imports its framework when it is asked for the first time.
            worker.send_ahead(Describe())

    def move_log(self, path: Path) -> None:
        """Move the log of the worker, if there is one."""
        if self._waiting is not None:
            self._waiting[1].log.move(path)

    def settle(self) -> None:
        """Wait until the worker has imported its framework, if there is one."""
        if self._waiting is not None:
            with suppress(WorkerError):
                self._waiting[1].ask(Describe(), START_SECONDS)

    def take(self, limited: Runtime) -> Worker | None:
        """Return the worker if it is of this runtime, and end it if not: it could still be importing."""
        if self._waiting is None or self._waiting[0] != limited:
            self.end()
            return None
        (_, worker), self._waiting = self._waiting, None
        return worker

    def end(self) -> None:
        """End the worker if nobody took it."""
        if self._waiting is not None:
            self._waiting[1].end()
            self._waiting = None


class EarlyWorkers(NamedTuple):
    """The worker that times first, and the one that tells the version of oneDNN, if none is known."""

    first: EarlyWorker
    explainer: EarlyWorker

    def start_explaining(self, runtime: Runtime, place: Workplace, log: Path) -> None:
        """Start the worker that tells the version, so that the end of the run need not wait for it."""
        if knows_no_onednn(runtime, place.data.cache):
            self.explainer.start(explaining(runtime), log, place.worker_program)

    def move_log(self, path: Path) -> None:
        """Move the logs of both."""
        for worker in self:
            worker.move_log(path)

    def settle(self) -> None:
        """Wait until both have imported their framework."""
        for worker in self:
            worker.settle()

    def end(self) -> None:
        """End those that nobody took."""
        for worker in self:
            worker.end()


@dataclass(frozen=True, slots=True)
class RunSession:
    """A run in progress: its request, its place, the means to stop it, and the function that reports its events."""

    folder: RunFolder
    request: RunRequest
    place: Workplace
    control: Control
    signals: StopSignals
    tell: Callable[[Event], None]
    system: System
    # One for all batches: their rounds see the same host.
    noise: NoiseMonitor
    # Running threads of other programs per processor, counted once the run has the host and before it has a worker.
    competing: float = 0.0
    # What tells this part of the run from the others; empty for the only one.
    part: str = ""
    # What the parts of the run have read, to be read once.
    graphs: KnownGraphs = field(default_factory=dict)
    early: EarlyWorker = field(default_factory=EarlyWorker)
    # Takes the versions in each worker, before it times anything.
    take_versions: Callable[[Described], None] = _ignore

    @property
    def conditions(self) -> Conditions:
        return conditions_of(self.system.id, self.request.runtime, self.request.method)

    @property
    def batch_limits(self) -> BatchLimits:
        """The limits of the place, with the memory of the host: programs of one batch are comparable."""
        usual = self.place.limits
        wanted = max(usual.memory_bytes, self.memory_limit_bytes // _MEMORY_DIVISOR)
        return replace(usual, memory_bytes=min(wanted, self.system.memory_bytes // _MEMORY_DIVISOR))

    @property
    def memory_limit_bytes(self) -> int:
        return self.request.memory_limit_bytes or self.system.memory_bytes

    def start_early(self) -> None:
        """Start the worker that times first."""
        runtime = self.request.first_runtime(self.system.memory_bytes)
        self.early.start(runtime, self.folder.worker_log, self.place.worker_program)

    @contextmanager
    def worker(self, runtime: Runtime) -> Iterator[SupervisedWorker]:
        """Start a worker of a runtime; leaving the block ends it."""

        def tell_replaced(message: str) -> None:
            self.tell(WorkerReplaced(message=message))

        program, log, limits = self.place.worker_program, self.folder.worker_log, self.request.time_limits
        with open_worker(
            runtime, program, log, self.signals.waiting, tell_replaced, self.memory_limit_bytes, limits, self.early
        ) as worker:
            self.take_versions(worker.describe())
            yield worker


@contextmanager
def open_worker(
    runtime: Runtime,
    program: Path,
    log: Path,
    waiting: Callable[[], AbstractContextManager[None]],
    tell_replaced: Callable[[str], None],
    memory_limit_bytes: int,
    limits: TimeLimits,
    early: EarlyWorker | None = None,
) -> Iterator[SupervisedWorker]:
    """Start a worker of a runtime; leaving the block ends it. Refuse a framework of another version than registered."""
    limited = runtime.limited_to(memory_limit_bytes)

    def started() -> Worker:
        return (None if early is None else early.take(limited)) or Worker(limited, log, program)

    with SupervisedWorker(started, waiting, tell_replaced, limits, memory_limit_bytes) as worker:
        version = worker.describe().version
        if version != runtime.version:
            raise JobError(
                f"runtime {runtime.name} has {runtime.framework} {version} now, but had {runtime.version} when "
                f"the run was requested; `dlbricks runtimes check {runtime.name}`, then start a new run"
            )
        yield worker


def _measure_alone(session: RunSession, jobs: Sequence[Job], results: ResultSink) -> None:
    """Time each job as a separate program, in a new worker."""
    runtime = session.request.runtime
    with session.worker(runtime) as worker:
        alone = Alone(
            worker=worker,
            results=results,
            control=session.control,
            rule=session.request.rule,
            tell=session.tell,
            reference=reference_program(runtime.traits.format),
            side_by_side=runtime.at_once > 1,
            noise=session.noise,
            others=session.competing,
            clock=session.place.clock,
        )
        alone.measure(jobs, session.batch_limits)


def measure(session: RunSession, models: Sequence[CutModel], jobs: Sequence[Job], store: ResultsDatabase) -> None:
    """Measure the jobs of a plan. If the run is stopped, the results until then are in the store."""
    request = session.request

    def take_versions(described: Described) -> None:
        keep_provenance(store, _provenance(session, models, described))

    session = replace(session, take_versions=take_versions)
    # The networks of a suite are not models of a user.
    told = () if request.suite is not None else models
    predictors = None if request.measured_only else Predictors(store, session.place.data.cache)
    estimates = LiveEstimates(told, store, session.conditions, predictors)
    recorder = Recorder(session.folder.run, session.conditions)
    results = RunResults(store, recorder, estimates, session.tell, session.control.save_counts)
    state = State.INTERRUPTED
    results.tell_estimates(dict)
    try:
        if jobs and request.method is Method.INSIDE:
            _measure_inside(session, models, jobs, results, store)
        elif jobs:
            _measure_alone(session, jobs, results)
        state = State.FINISHED
    except JobStopped as stopped:
        state = stopped.state
        raise
    finally:
        results.save_counts()
        store.add(_record(session, state))
        results.tell_estimates()


def find_onednn(session: RunSession, store: ResultsDatabase) -> None:
    """Add the version of oneDNN to where the results of a part come from, if the first run of a framework lacks it."""
    runtime, place = session.request.runtime, session.place
    found = store.provenance_of(session.folder.run, runtime.identity)
    if found is None:
        return
    with session.signals.waiting():
        known = with_onednn(found, runtime, place.data.cache, session.folder.worker_log, place.worker_program)
    if known != found:
        store.add(replace(known, uuid=new_uuid()))
        store.delete([found.uuid])


def learn_onednn(session: RunSession, explainer: EarlyWorker) -> None:
    """Keep the version in the cache, and end the worker that tells it: nothing may compute during a measurement."""
    runtime, place, log = session.request.runtime, session.place, session.folder.worker_log
    worker = explainer.take(explaining(runtime))
    if worker is not None:
        with suppress(WorkerError), worker:
            described = worker.ask(Describe(), START_SECONDS)
            found = provenance(session.folder.run, session.system, runtime, described, ())
            with_onednn(found, runtime, place.data.cache, log, place.worker_program, worker)


def _measure_inside(
    session: RunSession, models: Sequence[CutModel], jobs: Sequence[Job], results: RunResults, store: ResultsDatabase
) -> None:
    """Time whole models, then carriers, and at last alone the bricks that no carrier holds."""
    request = session.request
    if not isinstance(request.rule, Adaptive):
        raise JobError("a fixed number of runs applies to bricks that are timed alone: use --method alone")
    rule, reference = request.rule, reference_program(request.runtime.traits.format)
    conditions = session.conditions
    usual_ms = host_speed(store, conditions.system, conditions.runtime, conditions.protocol).usual_ms

    wholes = [job for job in jobs if job.whole]
    bricks = {job.key.brick: job for job in jobs if not job.whole}
    carriers, most_bytes = carrier_jobs(models, bricks), session.batch_limits.memory_bytes
    together = list(groups(carriers, most_bytes))
    agenda = Agenda(stages(wholes, together), session.competing, END_SECONDS)

    def inside(worker: SupervisedWorker) -> Inside:
        control, tell, noise = session.control, session.tell, session.noise
        return Inside(worker, results, control, rule, tell, reference, noise, usual_ms, agenda=agenda)

    profiled, timed = request.runtime.for_profiling(), request.runtime.as_timed()
    # Carriers need the engine of the profiler, and whole models the one that the runtime names.
    if wholes and timed.identity != profiled.identity:
        with session.worker(timed) as worker:
            inside(worker).time_models(wholes)
        wholes = []
    kept: Collection[Job] = ()
    reasons: dict[Job, Loss] = {}
    if wholes or bricks:
        with session.worker(profiled) as worker:
            timing = inside(worker)
            timing.time_models(wholes, before_carriers=bool(bricks))
            for group in together:
                timing.time_carriers(group, len(carriers), most_bytes)
        kept = timing.kept
        lost = {name.partition(",")[0]: loss for name, loss in worker.reasons.items()}
        reasons = {job: lost[it.name] for it in carriers if it.name in lost for job in it.bricks.values()}
    left = [job for job in bricks.values() if job not in kept]
    for job in left:
        if not can_be_alone(request.runtime, job.graph.level):
            why = reasons.get(job)
            told = f", and {request.runtime.traits.title} fuses it anew alone" if why is None else f": {why.message}"
            results.fail(job, why.reason if why else Reason.UNBUILDABLE.value, f"no carrier of it runs{told}")
    left = [job for job in left if can_be_alone(request.runtime, job.graph.level)]
    if left:
        _measure_alone(session, left, results)


def _provenance(session: RunSession, models: Sequence[CutModel], described: Described) -> Provenance:
    request = session.request
    paths = {choice.name: choice.path for choice in request.models}
    named = [(model.key, model.decomposition.graph.name) for model in models]
    digests = model_digests((key, paths[name]) for key, name in named if name in paths)
    found = provenance(
        session.folder.run,
        session.system,
        request.runtime,
        described,
        digests,
        protocol=session.conditions.protocol,
        evaluation=request.evaluation,
        unmet=request.unmet,
    )
    return with_known_onednn(found, request.runtime, session.place.data.cache)


def _record(session: RunSession, state: State) -> Run:
    request, bricks = session.request, session.control.state.bricks
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
