"""A trace, from its order to all of its levels.

1. Wait until no run measures on this host, and read the model.
2. For each level: start a worker with the settings of its instruments, load the model, and run it some times.
3. Relate the operators that ran to layers, and primitives of oneDNN to operators.
4. Add the keys and the stored latencies of the layers' bricks.

Each level has the instruments of the levels below it and its own, so that the difference of their inferences is the
overhead of its own.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from statistics import median, quantiles

from dlbricks_tui.analysis.whole_models import executed_model, execution_worker, job_of, load_whole, turn_on_host
from dlbricks_tui.bricks.programs import CarrierProgram, ProgramError, carrier_program
from dlbricks_tui.errors import UserError
from dlbricks_tui.estimate.lookup import BrickResults
from dlbricks_tui.estimate.system_estimate import Way
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.host_lock import HostLock
from dlbricks_tui.measure.jobs import CutModel, Job, untimed_runs
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.supervised_worker import SupervisedWorker, TimeLimits
from dlbricks_tui.runs.control import StopSignals
from dlbricks_tui.runs.work import Workplace
from dlbricks_tui.runtime.protocol import Program, TracedRuns
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Facts, new_uuid, utc_now
from dlbricks_tui.traces.errors import TraceError
from dlbricks_tui.traces.messages import LevelDone, LevelStarted, TraceMessage, TraceOrder, TraceWaits
from dlbricks_tui.traces.perf_events import PerfEvents, PerfTotals
from dlbricks_tui.traces.spans import TracedNetwork, inference_track, layer_tracks, primitive_track, shown_runs
from dlbricks_tui.traces.thread_watch import ThreadActivity, ThreadWatch
from dlbricks_tui.traces.trace import LevelTrace, MissingLevel, Trace, TracedLayer, TraceLevel

_LOCKED_AS = "trace"
_LOG = "traces.log"
# The name of the model in a worker.
_PROGRAM = "model"
_NS_PER_MS = 1e6
# Before the traced inferences.
_MOST_UNTIMED = 50


def trace_model(
    order: TraceOrder,
    place: Workplace,
    signals: StopSignals,
    write: Callable[[TraceMessage], None],
    lock: HostLock,
    limits: TimeLimits | None = None,
) -> Trace:
    """Return the trace of a model; raise a UserError if it cannot be traced at any level. `RunStopped` ends it."""
    with turn_on_host(lock, _LOCKED_AS, place.data.path, signals, lambda holder: write(TraceWaits(holder=holder))):
        return _Tracing(order, place, signals, write, limits or TimeLimits()).trace()


@dataclass(frozen=True, slots=True)
class _Instruments:
    """The instruments of a level."""

    profiler: bool = False
    lines: bool = False
    threads: bool = False


@dataclass(frozen=True, slots=True)
class _Model:
    """A model to trace: as a whole, and as a network of its layers or else the reason why there is none."""

    cut: CutModel
    job: Job
    layers: CarrierProgram | None
    why_no_layers: str = ""

    @property
    def network(self) -> TracedNetwork:
        return TracedNetwork(self.cut.decomposition.graph, {} if self.layers is None else self.layers.owners)


@dataclass(frozen=True, slots=True)
class _Taken:
    """The traced runs of a level, and what its threads did meanwhile."""

    runs: TracedRuns
    threads: ThreadActivity | None = None
    events: PerfTotals | None = None


class _Tracing:
    """The levels of a trace, on a host that no other run uses."""

    def __init__(
        self,
        order: TraceOrder,
        place: Workplace,
        signals: StopSignals,
        write: Callable[[TraceMessage], None],
        limits: TimeLimits,
    ) -> None:
        self._order = order
        self._runtime = order.execution.runtime
        self._place = place
        self._signals = signals
        self._write = write
        self._limits = limits
        self._log = place.data.log / _LOG
        self._system = fingerprint()
        self._found: list[LevelTrace] = []
        self._missing: dict[TraceLevel, str] = {}

    def trace(self) -> Trace:
        """Trace each level, and return all of them."""
        if self._order.inferences < 1:
            raise TraceError(f"{self._order.inferences} inferences cannot be traced: ask for at least 1")
        with self._signals.waiting():
            model = self._read()
        for level in TraceLevel:
            if level in self._order.levels:
                self._signals.check()
                self._write(LevelStarted(level=level))
                self._write(self._tried(level, model))
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
        order = self._order
        cut = executed_model(order.source, order.execution, self._place, self._log, order.inputs, order.values)
        reason = _why_no_layers(cut, self._runtime)
        if not reason:
            try:
                return _Model(cut, job_of(cut), carrier_program(cut.decomposition.graph))
            except ProgramError as error:
                reason = str(error)
        return _Model(cut, job_of(cut), None, reason)

    def _tried(self, level: TraceLevel, model: _Model) -> LevelDone:
        """Trace a level, or note why that is not possible. A model that does not run as a whole is an error."""
        try:
            found = self._traced(level, model)
        except UserError as error:
            if level is TraceLevel.MODEL:
                raise
            self._missing[level] = str(error)
            return LevelDone(level=level, inference_ms=None, overhead_ms=None, missing=str(error))
        self._found.append(found)
        return LevelDone(level=level, inference_ms=median(found.inference_ms), overhead_ms=found.overhead_ms)

    def _traced(self, level: TraceLevel, model: _Model) -> LevelTrace:
        instruments = self._instruments(level, model)
        with self._worker(instruments) as worker:
            self._load(worker, model, instruments)
            untimed = self._untimed(worker)
            plain_ms: Sequence[float] = ()
            if level is TraceLevel.LAYER:
                plain_ms = worker.sample([_PROGRAM], untimed, self._order.inferences).get(_PROGRAM, ())
            taken = self._watched(worker, untimed, instruments)
        return self._level_trace(level, model, instruments, taken, plain_ms)

    def _watched(self, worker: SupervisedWorker, untimed: int, instruments: _Instruments) -> _Taken:
        """Run the model under the instruments."""
        with ExitStack() as watching:
            threads = events = None
            if instruments.threads and worker.pid is not None:
                threads = watching.enter_context(ThreadWatch(worker.pid))
                events = watching.enter_context(PerfEvents(worker.pid))
            runs = worker.trace(
                _PROGRAM,
                untimed,
                self._order.inferences,
                operators=instruments.profiler,
                lines=instruments.lines,
            )
        if runs is None:
            raise TraceError(_loss(worker))
        if threads is None or events is None:
            return _Taken(runs)
        first, last = runs.runs[0], runs.runs[-1]
        return _Taken(runs, threads.activity(first.start_ns, last.start_ns + last.duration_ns), events.totals)

    def _instruments(self, level: TraceLevel, model: _Model) -> _Instruments:
        """Return the instruments of a level; raise TraceError if its own is not there."""
        traits = self._runtime.traits
        if level is TraceLevel.MODEL:
            return _Instruments()
        if level is TraceLevel.LAYER and model.layers is None:
            raise TraceError(model.why_no_layers)
        profiler = model.layers is not None and TraceLevel.LAYER not in self._missing
        if level is TraceLevel.LAYER:
            return _Instruments(profiler)
        why_no_lines = ""
        if not traits.printing_settings:
            why_no_lines = f"{traits.title} computes with kernels of its own, and not with oneDNN"
        elif self._runtime.at_once > 1:
            why_no_lines = "primitives that run at the same time cannot be told apart"
        if level is TraceLevel.PRIMITIVE and why_no_lines:
            raise TraceError(why_no_lines)
        lines = not why_no_lines and TraceLevel.PRIMITIVE not in self._missing
        return _Instruments(profiler, lines, level is TraceLevel.THREAD)

    def _worker(self, instruments: _Instruments) -> AbstractContextManager[SupervisedWorker]:
        """Start a worker with the settings of the instruments."""
        runtime = self._runtime
        if instruments.profiler:
            runtime = runtime.for_profiling()
        if instruments.lines:
            runtime = runtime.for_printing()
        return execution_worker(
            replace(self._order.execution, runtime=runtime),
            self._place,
            self._log,
            self._signals.waiting,
            lambda _: None,
            self._system.memory_bytes,
            self._limits,
        )

    def _load(self, worker: SupervisedWorker, model: _Model, instruments: _Instruments) -> None:
        """Load the layers for the profiler, and otherwise the model as an end-to-end measurement runs it."""

        def load(program: Program) -> None:
            if worker.load(_PROGRAM, program, model.job.expected_ms) is None:
                raise TraceError(_loss(worker))

        if instruments.profiler and model.layers is not None:
            load(model.layers.program)
        else:
            load_whole(model.job, self._order.execution, load)

    def _untimed(self, worker: SupervisedWorker) -> int:
        """Return the number of inferences after which the model runs as fast as it does later."""
        taken_ms = worker.sample([_PROGRAM], 0, 1).get(_PROGRAM)
        if taken_ms is None:
            raise TraceError(_loss(worker))
        return min(_MOST_UNTIMED, untimed_runs(taken_ms[0], whole=True))

    def _level_trace(
        self, level: TraceLevel, model: _Model, instruments: _Instruments, taken: _Taken, plain_ms: Sequence[float]
    ) -> LevelTrace:
        runs, threads, below = taken.runs, taken.threads, self._found[-1] if self._found else None
        inference_ms = tuple(run.duration_ns / _NS_PER_MS for run in runs.runs)
        network = model.network if instruments.profiler else None
        tracks = [inference_track(runs)]
        if network is not None:
            tracks += layer_tracks(runs, network)
        if instruments.lines:
            tracks.append(primitive_track(runs, network))
        if threads is not None:
            tracks += threads.tracks
        totals: Facts = (("plain_ms", median(plain_ms)),) if plain_ms else ()
        return LevelTrace(
            level=level,
            inference_ms=inference_ms,
            overhead_ms=None if below is None else median(inference_ms) - median(below.inference_ms),
            tracks=tuple(tracks),
            counters=() if threads is None else threads.counters,
            totals=totals if taken.events is None else (*totals, *taken.events.totals),
            notes=(*_doubts(inference_ms, below), *self._notes(level, model, taken, plain_ms)),
        )

    def _notes(self, level: TraceLevel, model: _Model, taken: _Taken, plain_ms: Sequence[float]) -> Iterator[str]:
        runs, title = taken.runs, self._runtime.traits.title
        if level is TraceLevel.LAYER and plain_ms and model.job.file is not None:
            yield (
                f"the profiler needs the layers as a network of their own: it takes {median(plain_ms):.3f} ms without "
                "the profiler, and the level `model` runs the model file"
            )
        if not runs.has_starts:
            yield (
                f"{title} tells the mean time of each layer, and not when it starts: each inference shows these means "
                "one after another, in proportion to its own time"
            )
        shown = shown_runs(runs)
        if shown < len(runs.runs):
            yield f"layers and primitives are shown of the first {shown} inferences only, since there are so many"
        if taken.events is not None:
            if taken.events.totals:
                yield "perf events also count the inferences that warm up, and the preparation of the profiler"
            yield from taken.events.missing

    def _layers(self, model: CutModel) -> tuple[TracedLayer, ...]:
        """Return the layers of the graph, with what the store knows of their bricks under the same conditions."""
        decomposition = model.decomposition
        graph = decomposition.graph
        way = Way(self._system.id, self._runtime.identity, graph.level, Method.INSIDE.id)
        with ResultsDatabase(self._place.data.store) as store:
            measured = BrickResults(store, decomposition).knowledge(way).measured
        found = []
        for it in decomposition.occurrences:
            (layer,) = (graph.layers[index] for index in it.sequence.layers)
            known = measured.get((it.brick.key, it.context))
            found.append(
                TracedLayer(
                    index=layer.index,
                    name=layer.name,
                    kind=layer.kind.value,
                    brick=it.brick.key,
                    context=it.context,
                    brick_ms=None if known is None else known.latency.value_ms * layer.times,
                )
            )
        return tuple(sorted(found, key=lambda layer: layer.index))


def _doubts(inference_ms: Sequence[float], below: LevelTrace | None) -> Iterator[str]:
    """Yield a note if the inferences vary by more than the overhead."""
    if below is None or len(inference_ms) < 2:
        return
    spread_ms = max(high - low for low, _, high in (quantiles(it, n=4) for it in (inference_ms, below.inference_ms)))
    if spread_ms > abs(median(inference_ms) - median(below.inference_ms)):
        yield f"the overhead is uncertain: the middle half of the inferences spreads over {spread_ms:.3f} ms"


def _why_no_layers(model: CutModel, runtime: Runtime) -> str:
    """Return the reason why the profiler cannot tell the layers of a model; empty if it can."""
    if runtime.at_once > 1:
        return "operators that run at the same time cannot be profiled one by one"
    graph = model.decomposition.graph
    if model.whole.level is not graph.level:
        return f"it runs from its file only: {runtime.traits.title} does not tell into which layers it fuses the file"
    unmeasurable = next((layer for layer in graph.layers if layer.unmeasurable is not None), None)
    if unmeasurable is not None:
        return f"it runs from its file only: layer {unmeasurable.name} cannot be run apart: {unmeasurable.unmeasurable}"
    return ""


def _loss(worker: SupervisedWorker) -> str:
    """Return why the model was unloaded."""
    return next((loss.message for loss in worker.take_losses().values()), "the worker was lost")
