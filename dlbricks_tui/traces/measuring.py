"""A trace, from its order to all of its levels.

1. Wait until no run measures on this host, and read the model.
2. For each level: start a worker with the settings of its instruments, and load the model.
3. In each round, run the model some times at each level, so that all levels see the same changes of the host's speed.
4. Relate the operators of the last round to layers, and primitives of oneDNN to operators.
5. Add the keys and the stored latencies of the layers' bricks.

Each level has the instruments of the levels below it and its own, so that the difference of their inferences is the
overhead of its own.
"""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from statistics import median

from dlbricks_tui.analysis.whole_models import executed_model, execution_worker, job_of, load_whole, turn_on_host
from dlbricks_tui.errors import UserError
from dlbricks_tui.estimate.lookup import BrickResults
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.queue import HostQueue, Ticket, WorkKind, arrival, host_queue, queued
from dlbricks_tui.jobs.control import StopSignals
from dlbricks_tui.jobs.events import Event, Waiting
from dlbricks_tui.jobs.process import JobAtWork, work_in_process
from dlbricks_tui.measure.jobs import CutModel, Job, untimed_runs
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.supervised_worker import SupervisedWorker, TimeLimits
from dlbricks_tui.models.networks import ProgramError, whole_network
from dlbricks_tui.runs.work import Workplace
from dlbricks_tui.runtime.protocol import Network, Program, TracedRuns
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import new_uuid, utc_now
from dlbricks_tui.store.selections import Way
from dlbricks_tui.traces.file import write_trace
from dlbricks_tui.traces.spans import Instruments, LevelRound, MeasuredLevel, TracedNetwork, level_trace
from dlbricks_tui.traces.threads import PerfEvents, ThreadWatch
from dlbricks_tui.traces.trace import (
    TRACE,
    LevelDone,
    LevelStarted,
    LevelTrace,
    MissingLevel,
    RoundStarted,
    Trace,
    TracedLayer,
    TraceDone,
    TraceError,
    TraceLevel,
    TraceOrder,
)

_LOG = "traces.log"
# The name of the model in a worker.
_PROGRAM = "model"
_NS_PER_MS = 1e6
# Before the traced inferences.
_MOST_UNTIMED = 50
# The workers of all levels take turns so many times.
_ROUNDS = 3
# A worker has a model at most twice, the second time for the profiler. All workers may take this share of the memory.
_MOST_COPIES, _MOST_MEMORY = 2, 0.9


@dataclass(frozen=True, slots=True)
class _Model:
    """A model to trace: as a whole, and as a network of its layers or else the reason why there is none."""

    cut: CutModel
    job: Job
    layers: tuple[Network, Mapping[int, int]] | None
    why_no_layers: str = ""

    @property
    def network(self) -> TracedNetwork:
        return TracedNetwork(self.cut.decomposition.graph, {} if self.layers is None else self.layers[1])


@dataclass
class Tracing:
    """A trace in the making, level by level."""

    order: TraceOrder
    place: Workplace
    signals: StopSignals
    write: Callable[[Event], None]
    limits: TimeLimits = field(default_factory=TimeLimits)

    def __post_init__(self) -> None:
        self._runtime, self._log = self.order.execution.runtime, self.place.data.log / _LOG
        self._system = fingerprint()
        self._found: list[LevelTrace] = []
        # The level that was traced last.
        self._below: MeasuredLevel | None = None
        self._missing: dict[TraceLevel, str] = {}

    def trace(self, queue: HostQueue) -> Trace:
        """Read the model, and trace each level once it is its turn on this host.

        Raise a UserError if it cannot be traced at any level. `JobStopped` ends it.
        """
        if self.order.inferences < 1:
            raise TraceError(f"{self.order.inferences} inferences cannot be traced: ask for at least 1")
        arrived = arrival()
        # Before the turn: models and inputs that are no good are refused at once.
        with self.signals.waiting():
            model = self._read()
        task = queued(WorkKind.TRACE, [self.order.source.name], self.place.data.path)
        with turn_on_host(queue, task, self.signals, lambda it: self.write(Waiting(holder=it)), arrived) as ticket:
            return self._trace(model, ticket)

    def _trace(self, model: _Model, ticket: Ticket) -> Trace:
        """Trace each level, and return all of them."""
        levels = [level for level in TraceLevel if level in self.order.levels]
        if _MOST_COPIES * len(levels) * model.job.memory_bytes <= _MOST_MEMORY * self._system.memory_bytes:
            self._trace_in_rounds(levels, model, ticket)
        else:
            for level in levels:
                self._trace_in_rounds([level], model, ticket)
        if not self._found:
            raise TraceError(next(iter(self._missing.values()), "no level is asked for"))
        graph = model.cut.decomposition.graph
        return Trace(
            id=new_uuid(),
            when=utc_now(),
            model=graph.name,
            model_key=model.cut.key,
            system=self._system.id,
            runtime=self._runtime.identity,
            graph_level=graph.level,
            batch_size=graph.batch_size,
            layers=self._layers(model.cut),
            levels=tuple(self._found),
            missing=tuple(MissingLevel(level=level, reason=reason) for level, reason in self._missing.items()),
        )

    def _read(self) -> _Model:
        order, runtime, reason = self.order, self._runtime, ""
        cut = executed_model(order.source, order.execution, self.place, self._log, order.inputs, order.values)
        graph = cut.decomposition.graph
        unmeasurable = next((layer for layer in graph.layers if layer.unmeasurable is not None), None)
        from_file, title = "it runs from its file only", runtime.traits.title
        if runtime.at_once > 1:
            reason = "operators that run at the same time cannot be profiled one by one"
        elif cut.whole.level is not graph.level:
            reason = f"{from_file}: {title} does not tell into which layers it fuses the file"
        elif unmeasurable is not None:
            reason = f"{from_file}: layer {unmeasurable.name} cannot be run apart: {unmeasurable.unmeasurable}"
        else:
            try:
                return _Model(cut, job_of(cut), whole_network(graph))
            except ProgramError as error:
                reason = str(error)
        return _Model(cut, job_of(cut), None, reason)

    def _trace_in_rounds(self, levels: Sequence[TraceLevel], model: _Model, ticket: Ticket) -> None:
        """Trace levels whose workers are loaded at the same time."""
        with ExitStack() as workers:
            started: list[tuple[MeasuredLevel, SupervisedWorker]] = []
            for level in levels:
                with self._noting_failure(level):
                    self.write(LevelStarted(level=level))
                    started.append(self._started(level, model, workers))
            self._run_rounds(started, ticket)
        for measured in (it for it, _ in started if it.level not in self._missing):
            title, has_file = self._runtime.traits.title, model.job.file is not None
            found = level_trace(measured, self._below, model.network, title, has_file=has_file)
            self._below = measured
            self._found.append(found)
            inference_ms = median(found.inference_ms)
            self.write(LevelDone(level=found.level, inference_ms=inference_ms, overhead_ms=found.overhead_ms))

    def _run_rounds(self, started: Sequence[tuple[MeasuredLevel, SupervisedWorker]], ticket: Ticket) -> None:
        rounds = _ROUNDS if len(started) > 1 else len(started)
        for number in range(1, rounds + 1):
            self.write(RoundStarted(number=number, rounds=rounds))
            ticket.progress((number - 1) / rounds, None)
            for measured, worker in started:
                if measured.level not in self._missing:
                    with self._noting_failure(measured.level):
                        measured.rounds.append(self._round(measured, worker))

    @contextmanager
    def _noting_failure(self, level: TraceLevel) -> Iterator[None]:
        """Note the reason why a level cannot be traced. A model that does not run as a whole is an error."""
        self.signals.check()
        try:
            yield
        except UserError as error:
            if level is TraceLevel.MODEL:
                raise
            self._missing[level] = str(error)
            self.write(LevelDone(level=level, inference_ms=None, overhead_ms=None, missing=str(error)))

    def _started(self, level: TraceLevel, model: _Model, workers: ExitStack) -> tuple[MeasuredLevel, SupervisedWorker]:
        """Start the worker of a level, load the model, and run it once under the instruments."""
        instruments = self._instruments(level, model)
        worker = workers.enter_context(self._worker(instruments))
        self._load(worker, model, instruments)
        (first,) = _traced(worker, instruments, 0, 1).runs
        worker.wait_until_idle()
        untimed = min(_MOST_UNTIMED, untimed_runs(first.duration_ns / _NS_PER_MS, whole=True))
        return MeasuredLevel(level, instruments, untimed), worker

    def _round(self, measured: MeasuredLevel, worker: SupervisedWorker) -> LevelRound:
        """Run the model under the instruments of a level."""
        instruments, untimed, inferences = measured.instruments, measured.untimed, self.order.inferences
        plain_ms: tuple[float, ...] = ()
        if measured.level is TraceLevel.LAYER:
            sampled = worker.sample([_PROGRAM], untimed, inferences)
            if _PROGRAM not in sampled:
                raise TraceError(_loss(worker))
            plain_ms = sampled[_PROGRAM]
        with ExitStack() as watching:
            threads = events = None
            if instruments.threads and worker.pid is not None:
                threads = watching.enter_context(ThreadWatch(worker.pid))
                events = watching.enter_context(PerfEvents(worker.pid))
            runs = _traced(worker, instruments, untimed, inferences)
        # Threads that still spin would take the processors from the next level.
        worker.wait_until_idle()
        if threads is None or events is None:
            return LevelRound(runs, plain_ms)
        first, last = runs.runs[0], runs.runs[-1]
        activity = threads.activity(first.start_ns, last.start_ns + last.duration_ns)
        return LevelRound(runs, plain_ms, *activity, *events.totals)

    def _instruments(self, level: TraceLevel, model: _Model) -> Instruments:
        """Return the instruments of a level; raise TraceError if its own is not there."""
        traits = self._runtime.traits
        if level is TraceLevel.MODEL:
            return Instruments()
        if level is TraceLevel.LAYER and model.layers is None:
            raise TraceError(model.why_no_layers)
        profiler = model.layers is not None and TraceLevel.LAYER not in self._missing
        if level is TraceLevel.LAYER:
            return Instruments(profiler)
        why_no_lines = ""
        if not traits.printing_settings:
            why_no_lines = f"{traits.title} computes with kernels of its own, and not with oneDNN"
        elif self._runtime.at_once > 1:
            why_no_lines = "primitives that run at the same time cannot be told apart"
        if level is TraceLevel.PRIMITIVE and why_no_lines:
            raise TraceError(why_no_lines)
        lines = not why_no_lines and TraceLevel.PRIMITIVE not in self._missing
        return Instruments(profiler, lines, level is TraceLevel.THREAD)

    def _worker(self, instruments: Instruments) -> AbstractContextManager[SupervisedWorker]:
        """Start a worker with the settings of the instruments."""
        runtime = self._runtime
        if instruments.profiler:
            runtime = runtime.for_profiling()
        if instruments.lines:
            runtime = runtime.for_printing()
        execution, waiting = replace(self.order.execution, runtime=runtime), self.signals.waiting
        return execution_worker(execution, self.place, self._log, waiting, self._system.memory_bytes, self.limits)

    def _load(self, worker: SupervisedWorker, model: _Model, instruments: Instruments) -> None:
        """Load the layers for the profiler, and otherwise the model as an end-to-end measurement runs it."""

        def load(program: Program) -> None:
            if worker.load(_PROGRAM, program, model.job.expected_ms) is None:
                raise TraceError(_loss(worker))

        if instruments.profiler and model.layers is not None:
            load(Program(model.layers[0]))
        else:
            load_whole(model.job, self.order.execution, load)

    def _layers(self, model: CutModel) -> tuple[TracedLayer, ...]:
        """Return the layers of the graph, with what the store knows of their bricks under the same conditions."""
        decomposition = model.decomposition
        graph = decomposition.graph
        way = Way(self._system.id, self._runtime.identity, graph.level, Method.INSIDE.id)
        with ResultsDatabase(self.place.data.store) as store:
            measured = BrickResults(store, decomposition).knowledge(way).measured
        found = []
        for it in decomposition.occurrences:
            (layer,) = (graph.layers[index] for index in it.sequence.layers)
            known = measured.get((it.brick.key, it.context))
            brick_ms = None if known is None else known.latency.value_ms * layer.times
            kind, brick = layer.kind.value, it.brick.key
            found.append(
                TracedLayer(
                    index=layer.index, name=layer.name, kind=kind, brick=brick, context=it.context, brick_ms=brick_ms
                )
            )
        return tuple(sorted(found, key=lambda layer: layer.index))


def _traced(worker: SupervisedWorker, instruments: Instruments, untimed: int, timed: int) -> TracedRuns:
    runs = worker.trace(_PROGRAM, untimed, timed, operators=instruments.profiler, lines=instruments.lines)
    if runs is None:
        raise TraceError(_loss(worker))
    return runs


def _loss(worker: SupervisedWorker) -> str:
    """Return why the model was unloaded."""
    return next((loss.message for loss in worker.take_losses().values()), "the worker was lost")


def main(folder: str, data: str) -> None:
    """Trace the model of the order, and write the trace to its file; the entry point of the process."""

    def work(job: JobAtWork[TraceOrder]) -> None:
        trace = Tracing(job.request, Workplace(job.data), job.signals, job.tell).trace(host_queue())
        write_trace(trace, job.data.traces / f"{trace.id}.json.gz")
        job.tell(TraceDone(id=trace.id))

    sys.exit(work_in_process(TRACE, folder, data, work))
