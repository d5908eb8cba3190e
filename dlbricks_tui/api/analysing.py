"""The analysis of models: bounds, what-ifs and the gap, what it lacks, what to prove, and the kernels."""

import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.analysis.bounds import (
    BestMeasured,
    LayerPoint,
    Roof,
    applies_to,
    best_measured,
    gap_of,
    over_best,
    points_of,
    roof_of,
    roofline_ms,
    works_of,
)
from dlbricks_tui.analysis.groups import MeasuredExecution, groups_of
from dlbricks_tui.analysis.kernels import KernelsError, explain
from dlbricks_tui.analysis.proving import PROOF, ProofDone, carry_out_proofs, measure_peaks_of_host
from dlbricks_tui.analysis.proving import ProofOrder as ProofOrder
from dlbricks_tui.analysis.what_if import Execution, WhatIf, WhatIfKind, corrected, measured_gain, newest_proofs
from dlbricks_tui.analysis.what_ifs import Host, Lack, expected_seconds, lacks_of, what_ifs_of
from dlbricks_tui.api.analyses import Analysis, MissingPart, ModelKernel
from dlbricks_tui.api.documents import taken
from dlbricks_tui.api.estimating import Answer, Estimator
from dlbricks_tui.api.measuring import MeasureOptions, measured_batch_sizes, request_by
from dlbricks_tui.api.opening import loader_from_cache, reference_to, run_command
from dlbricks_tui.api.scope import MeasuredRuntimes, MeasurementScope
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.bricks.identity import end_to_end_keys
from dlbricks_tui.errors import UserError
from dlbricks_tui.estimate.explanation import layer_latencies
from dlbricks_tui.estimate.inquiry import Inquiry
from dlbricks_tui.estimate.knowledge import Latency
from dlbricks_tui.estimate.lookup import end_to_end
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint, instruction_sets
from dlbricks_tui.host.peaks import PEAKS_SECONDS, PeaksError
from dlbricks_tui.host.queue import NAP_SECONDS, WorkKind, host_queue, queued
from dlbricks_tui.host_files import HostFiles
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.jobs.folder import JobState
from dlbricks_tui.jobs.process import work_on
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.content import without_cycle_search
from dlbricks_tui.models.errors import MissingShapeError, ModelError, NotInCacheError
from dlbricks_tui.models.graph import LayerGraph, Level, Shape
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.models.loading import UNLOADABLE, Loader
from dlbricks_tui.models.networks import ProgramError
from dlbricks_tui.recorded_host import NOTHING_IS_MEASURED, recorded_host
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.runtime.errors import FrameworkMissingError, WorkerError
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.runtime.variant import InstructionSet, Precision
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.selections import by_id
from dlbricks_tui.wording.numbers import counted, names_of

if TYPE_CHECKING:
    from dlbricks_tui.api.followed_jobs import ProofJob


class _Reading(NamedTuple):
    """A model as a runtime reads it: the file, the runtime, the level and the batch size."""

    form: Format
    # None: the usual one of the format.
    runtime: Runtime | None
    level: Level
    batch: int | None


class _Limits(NamedTuple):
    """The roofs of a system, the least latency and the layers below them, and the peaks to measure anew, if any."""

    roof: Roof | None = None
    least_ms: float | None = None
    points: tuple[LayerPoint, ...] = ()
    doubt: str = ""


# Layers that reach this many times the stored arithmetic show that the peaks were measured on a busy host. A smaller
# excess is the noise of both.
_DOUBTED_ABOVE = 1.05


class Analyser:
    """Analyses models from one store, and reads each model once for each runtime; nothing is measured."""

    def __init__(self, estimator: Estimator, named: Sequence[str] = ()) -> None:
        self._estimator = estimator
        self._named = named
        self._usual_sizes: dict[object, int] = {}

    def analyses(self, sources: Sequence[ModelSource]) -> Iterator[Analysis]:
        """Yield the analysis of each model."""
        scope = self._estimator.scope_of(sources)
        runtimes = MeasuredRuntimes(self._estimator.data, self._estimator.store, scope.system)
        for answer in self._estimator.answers(sources, scope):
            with without_cycle_search():
                found = self._analysis(answer, scope, runtimes)
            yield found

    def _analysis(self, answer: Answer, scope: MeasurementScope, runtimes: MeasuredRuntimes) -> Analysis:
        graph, found = answer.decomposition.graph, answer.found
        options = self._estimator.options
        execution = Execution(runtimes.of(found.way.runtime), graph.level, options.batch)
        baseline = MeasuredExecution(execution, graph, found)
        if graph.level is Level.WRITTEN:
            written: LayerGraph | None = graph
        else:
            # At the batch size of the baseline, which may be that of the file.
            written = self._graph(answer.source, _Reading(graph.format, None, Level.WRITTEN, options.batch))
            written = None if written is None else written.named(answer.source.name)
        baseline = replace(baseline, written=written)
        found_others = self._others(answer.source, runtimes, baseline)
        place = found.way, graph.batch_size, baseline.file
        others = [it for it in found_others if (it.found.way, it.graph.batch_size, it.file) != place]
        composed = found.estimate.composed
        # Predictions of all layers tell nothing about what could be better.
        is_known = any(part.measured is not None for part in baseline.parts)
        complete = composed is not None and not found.estimate.is_partial and is_known
        # Those that compute the same, with the same batch.
        alike = graph.batch_size, found.variant.precision
        measured = [it for it in others if it.is_measured and it.execution.runtime.at_once == 1]
        competing = [baseline, *(it for it in measured if (it.graph.batch_size, it.found.variant.precision) == alike)]
        best = best_measured(competing) if complete else None
        threads = max(it.found.variant.threads or 1 for it in competing)
        limits = self._limits(baseline, written, competing, best, scope.system, threads)
        lacking = _lacking_instructions() if scope.is_host else {}
        by_default = self._by_default(baseline)
        proofs = self._estimator.store.proofs_on(scope.system) if is_known else ()
        own = set(end_to_end_keys(graph).values())
        of_others = [it for it in proofs if it.model not in own]
        what_ifs = what_ifs_of(baseline, others, lacking, by_default) if is_known else ()
        newest = {it.id: newest_proofs([each for each in proofs if each.model in own], it) for it in what_ifs}
        return Analysis(
            source=answer.source,
            system=scope.system,
            baseline=baseline,
            executions=(baseline, *others),
            best=best,
            over_best=None if best is None else over_best(baseline, best),
            gap=None if best is None else gap_of(baseline, best),
            roof=limits.roof,
            roofline_ms=limits.least_ms,
            points=limits.points,
            what_ifs=tuple(corrected(it, of_others) for it in what_ifs),
            written=written,
            missing=tuple(self._missing(answer, baseline, threads, limits.doubt)),
            proofs={
                name: measured_gain(max(held.values(), key=lambda it: it.when)) for name, held in newest.items() if held
            },
            threads=threads,
            lacks_peaks=bool(limits.doubt),
        )

    def _limits(
        self,
        baseline: MeasuredExecution,
        written: LayerGraph | None,
        competing: Sequence[MeasuredExecution],
        best: BestMeasured | None,
        system: str,
        threads: int,
    ) -> _Limits:
        """Return the limits of the hardware; peaks that the measurements contradict give way to what layers reach."""
        if not applies_to(baseline.found):
            return _Limits()
        known = by_id(self._estimator.store.systems()).get(system)
        stored = None if known is None or written is None else roof_of(self._estimator.store.peaks(), known, threads)
        if stored is None or written is None:
            return _Limits(doubt="the peaks")
        roof, best_ms = _reached(stored, competing), math.inf if best is None else best.latency_ms
        by_stored_ms = None if best is None else _roofline_ms(best, stored)
        contradicted = by_stored_ms is not None and by_stored_ms > best_ms
        least_ms = None if best is None else _roofline_ms(best, roof)
        return _Limits(
            roof,
            # Bandwidths that are too low could still contradict the measurements.
            None if least_ms is None else min(least_ms, best_ms),
            points_of(baseline, works_of(baseline, written), roof),
            "peaks of a quiet host (layers reach more than the stored ones)"
            if contradicted or roof.highest > _DOUBTED_ABOVE * stored.highest
            else "",
        )

    def _others(
        self, source: ModelSource, runtimes: MeasuredRuntimes, baseline: MeasuredExecution
    ) -> Iterator[MeasuredExecution]:
        """Yield the model in each other execution with results of its bricks.

        Batch sizes are those of the file and of the options. For the runtime and the level of the baseline, those at
        which its bricks were measured, or the model was timed end to end, come on top.
        """
        usual = [None, self._estimator.options.batch]
        way, size = baseline.found.way, baseline.graph.batch_size
        measured = measured_batch_sizes(self._estimator.store, way, baseline.parts, size)
        others = [*runtimes.batch_sizes(source.name), *measured]
        inquiries: dict[_Reading, Inquiry | None] = {}
        written: dict[_Reading, LayerGraph | None] = {}
        for identity in runtimes.measured:
            runtime = runtimes.of(identity)
            if runtime.traits.format not in source.formats:
                continue
            batches = [(level, batch) for level in runtimes.levels(identity) for batch in usual]
            batches += [(way.level, batch) for batch in others] if identity == way.runtime else []
            for level, batch in dict.fromkeys(batches):
                if (identity, level, batch) == (way.runtime, baseline.graph.level, baseline.execution.batch_size):
                    continue
                key = _Reading(runtime.traits.format, runtimes.loading(runtime), level, batch)
                if key not in inquiries:
                    inquiries[key] = self._inquiry(source, key)
                inquiry = inquiries[key]
                found = None if inquiry is None else inquiry.on(runtimes.system, identity)
                if inquiry is not None and found is not None and any(it.measured for it in found.estimate.parts):
                    graph = inquiry.decomposition.graph
                    # Layers at other batch sizes are compared within one file only.
                    if graph.batch_size == size and key not in written:
                        is_other, as_written = graph.file != baseline.file, key._replace(level=Level.WRITTEN)
                        written[key] = self._graph(source, as_written) if is_other else baseline.written
                    yield MeasuredExecution(Execution(runtime, level, batch), graph, found, written.get(key))

    def _inquiry(self, source: ModelSource, reading: _Reading) -> Inquiry | None:
        """Return the results of a model as a runtime has it; None if it cannot be read so, or not at this size."""
        usual = source.path, *source.inputs.items(), reading._replace(batch=None)
        if reading.batch is not None and usual not in self._usual_sizes:
            plain = self._graph(source, reading._replace(batch=None))
            self._usual_sizes[usual] = 0 if plain is None else plain.batch_size
        if reading.batch is not None and self._usual_sizes[usual] in (0, reading.batch):
            return None
        graph, estimator = self._graph(source, reading), self._estimator
        if graph is None:
            return None
        if reading.batch is None:
            self._usual_sizes[usual] = graph.batch_size
        cache = estimator.readers.loader(reading.runtime).cache
        decomposition = decompose(graph.named(source.name), estimator.options.cutting, cache)
        return Inquiry(estimator.store, decomposition, estimator.compositions._replace(measured_only=True))

    def _graph(self, source: ModelSource, reading: _Reading) -> LayerGraph | None:
        """Return the layers of a model as a runtime has them; None if it cannot be read so."""
        form, runtime, level, batch = reading
        options = self._estimator.options
        with suppress(*UNLOADABLE):
            return self._estimator.readers.loader(runtime).load(
                source.in_format(form), level, options.inputs, options.values, batch
            )
        return None

    def _by_default(self, baseline: MeasuredExecution) -> tuple[Execution, Latency] | None:
        """Return the whole model with the engine that programs get by default; None if it was not timed so."""
        way = baseline.found.way
        # The method alone times whole models with that engine anyway.
        runtime = baseline.execution.runtime.with_default_engine() if way.protocol == Method.INSIDE.id else None
        if runtime is None:
            return None
        keys = end_to_end_keys(baseline.graph)
        way = way._replace(runtime=runtime.identity)
        timed = end_to_end(self._estimator.store, keys, baseline.graph.name, way)
        if timed is None:
            return None
        latency = Latency(timed.trimmed_mean_ms, timed.low_ms, timed.high_ms)
        return replace(baseline.execution, runtime=runtime), latency

    def _missing(self, answer: Answer, baseline: MeasuredExecution, threads: int, peaks: str) -> Iterator[MissingPart]:
        """Yield what the analysis lacks, on this host, with the commands that measure it."""
        execution, missing = baseline.execution, baseline.estimate.coverage.missing
        named = reference_to(answer.source, has_name=not self._named or answer.source.name in self._named)
        measured = named, execution.runtime, baseline.graph.level, execution.batch_size
        if missing:
            yield MissingPart(counted(missing, "layer"), run_command(*measured, self._estimator.options))
        if baseline.found.end_to_end is None:
            command = run_command(*measured, self._estimator.options, "--end-to-end")
            yield MissingPart("the end-to-end latency", command)
        if peaks:
            command = f"dlbricks doctor --peaks --threads {threads}"
            yield MissingPart(f"{peaks} with {counted(threads, 'thread')}", command)


def _lacking_instructions() -> Mapping[Precision, str]:
    """Return the instructions that the processor of this host lacks for each precision; none for an unknown one."""
    known = set(instruction_sets(HostFiles())) - {InstructionSet.ALL}
    if not known:
        return {}
    needed = {
        Precision.INT8: ("VNNI", {InstructionSet.AVX2_VNNI, InstructionSet.AVX512_CORE_VNNI}),
        Precision.BF16: ("bf16", {InstructionSet.AVX512_CORE_BF16}),
    }
    return {precision: name for precision, (name, sets) in needed.items() if not known & sets}


def _roofline_ms(best: BestMeasured, roof: Roof) -> float | None:
    """Return the roofline of the executions whose files can be read; None if none can."""
    known = [(it, it.as_written) for it in best.executions]
    held = [it for it, written in known if written is not None]
    works = [works_of(it, written) for it, written in known if written is not None]
    groups = best.groups if len(held) == len(known) else groups_of(held)
    return roofline_ms(held, groups, works, roof) if held else None


def _reached(roof: Roof, executions: Sequence[MeasuredExecution]) -> Roof:
    """Return the roof with the higher ones of the stored peaks and those that the layers of executions have reached."""
    for it in executions:
        if it.as_written is not None and applies_to(it.found):
            roof = roof.reached_by(points_of(it, works_of(it, it.as_written), roof))
    return roof


ALL = "all"


class ProvingError(UserError):
    """A what-if that does not exist, or whose model was analysed on another system."""


def refuse_other_system(found: Sequence[Analysis], cure: str = ": leave out --system") -> None:
    """Raise ProvingError if a model was analysed on another system than this host."""
    for each in found:
        if each.system != fingerprint().id:
            raise ProvingError(f"{each.source.name} was analysed on another system, and models run on this host{cure}")


class AskedProofs(NamedTuple):
    """The what-ifs of a model that are to be proved, and the ids that it does not have."""

    found: Analysis
    what_ifs: tuple[WhatIf, ...]
    unknown: tuple[str, ...]


def asked_what_ifs(
    found: Sequence[Analysis], ids: Collection[str], kinds: Collection[WhatIfKind]
) -> tuple[AskedProofs, ...]:
    """Return the what-ifs with these ids, or with `all` those that can be run; refuse an id that no model has."""
    asked: list[AskedProofs] = []
    for each in found:
        known = {it.id: it for it in each.what_ifs if it.kind in kinds}
        wanted = [it.id for it in known.values() if it.change is not None] if ALL in ids else list(dict.fromkeys(ids))
        chosen, unknown = [known[it] for it in wanted if it in known], [it for it in wanted if it not in known]
        asked.append(AskedProofs(each, tuple(chosen), tuple(unknown)))
    missing = set.intersection(*(set(each.unknown) for each in asked)) if asked else set()
    for each_id in (it for it in ids if it in missing):
        provable = (it for one in found for it in one.what_ifs if it.kind in kinds and it.change is not None)
        names = dict.fromkeys(it.id for it in provable)
        there = f"there are {', '.join(names)}" if names else "there are none: --measure measures what they lack"
        models = names_of(list(dict.fromkeys(it.source.name for it in found)))
        raise ProvingError(f"no what-if {each_id[:60]!r} of {models}; {there}")
    if not any(each.what_ifs for each in asked):
        raise ProvingError("there is no what-if to prove: --measure measures what they lack")
    return tuple(asked)


class EndedProofs(NamedTuple):
    """The end of a job that proves what-ifs, and the numbers of those that it has proved, and that failed."""

    state: JobState
    proved: int
    failed: int


def proof_job(
    found: Analysis, source: ModelSource, what_ifs: tuple[WhatIf, ...], inputs: Mapping[str, Shape], data: DataFolder
) -> "ProofJob":
    """Return the job that proves what-ifs in a process of its own; raise ProvingError if they are of another system."""
    # Loaded here: commands follow no job.
    from dlbricks_tui.api.followed_jobs import ProofJob

    refuse_other_system([found], ".")
    return ProofJob(ProofOrder(source, what_ifs, inputs), data)


def prove_here(order: ProofOrder, data: DataFolder, take: Callable[[Event], None]) -> EndedProofs:
    """Prove what-ifs in this process; what is finished is kept if it is interrupted."""
    ended: list[ProofDone] = []

    def keep(event: Event) -> None:
        if isinstance(event, ProofDone):
            ended.append(event)
        take(event)

    job = PROOF.create(data, (order.source.name,), order)
    state = work_on(PROOF, job, data, carry_out_proofs, keep)
    proved = sum(it.gain is not None for it in ended)
    return EndedProofs(state, proved, len(ended) - proved)


@dataclass(frozen=True, slots=True)
class MeasuringPlan:
    """The executions and peaks that the analysis of a model lacks, and about how long it takes to measure them."""

    model: str
    lacks: tuple[Lack, ...]
    requests: tuple[RunRequest, ...]
    seconds: float
    # The number of threads whose peaks are missing; None if none are.
    peaks_threads: int | None = None

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to measure."""
        return not self.lacks and self.peaks_threads is None


def plan_of(found: Analysis, kinds: Collection[WhatIfKind], data: DataFolder, options: MeasureOptions) -> MeasuringPlan:
    """Return what the what-ifs of these kinds lack on this host, and with all kinds the peaks for the roofline.

    `options` say of the runs how long they take, and what the inputs of the model are.
    """
    baseline = found.baseline
    measured = [it.execution for it in found.executions if it.is_measured]
    measured += [it.change for it in found.what_ifs if it.change is not None]
    host = Host(fingerprint().cores_to_use, instruction_sets(HostFiles()), Registry(data.path).all())
    lacks = lacks_of(found.source, baseline.execution, measured, host, kinds)
    loader = loader_from_cache(data)
    lacks = tuple([it for it in lacks if not _is_refused(found, it, loader, options)])
    end_to_end, composed = baseline.found.end_to_end, baseline.estimate.composed
    latency_ms = end_to_end.value_ms if end_to_end is not None else composed.sequential_ms if composed else 0.0
    requests = requests_for(found.source, lacks, options)
    seconds = sum(expected_seconds(it, latency_ms) for it in lacks)
    if options.time_budget_seconds is not None:
        seconds = min(seconds, len(requests) * options.time_budget_seconds)
    threads = _peaks_threads(found, lacks, data) if set(kinds) == set(WhatIfKind) else None
    if threads is not None:
        seconds += PEAKS_SECONDS
    return MeasuringPlan(found.source.name, lacks, requests, seconds, threads)


def requests_for(source: ModelSource, lacks: Sequence[Lack], options: MeasureOptions) -> tuple[RunRequest, ...]:
    """Return the runs that measure these executions.

    A run measures one level; several batch sizes of one runtime are measured in one run.
    """
    groups: dict[tuple[Level, str, bool], list[Execution]] = {}
    for lack in lacks:
        execution = lack.execution
        at_size = "" if execution.batch_size is None else execution.runtime.identity
        groups.setdefault((execution.level, at_size, lack.bricks), []).append(execution)
    requests = []
    for (level, _, bricks), group in groups.items():
        runtimes = list({it.runtime.identity: it.runtime for it in group}.values())
        sizes = tuple([it.batch_size for it in group if it.batch_size is not None])
        how = replace(options, level=level, batch=sizes, end_to_end=True)
        requests.append(replace(request_by(runtimes, how, [source]), bricks=bricks))
    return tuple(requests)


def _is_refused(found: Analysis, lack: Lack, loader: Loader, options: MeasureOptions) -> bool:
    """Return whether a file runs in this way already, or cannot: most fix their batch size, and some are quantised."""
    execution, graph = lack.execution, found.baseline.graph
    if lack.kind is WhatIfKind.PRECISION and execution.runtime.settings.precision is Precision.INT8:
        return graph.is_quantised
    if lack.kind is not WhatIfKind.BATCH or execution.batch_size == graph.batch_size:
        return lack.kind is WhatIfKind.BATCH
    source = found.source.in_format(execution.runtime.traits.format)
    try:
        loader.load(source, Level.WRITTEN, options.inputs, options.values, execution.batch_size)
    except (MissingShapeError, NotInCacheError, FrameworkMissingError):
        # Only a run can tell.
        return False
    except ModelError:
        return True
    return False


def plan_here(found: Analysis, data: DataFolder, options: MeasureOptions) -> MeasuringPlan:
    """Return what all what-ifs of a model lack on this host; raise a UserError where nothing can be measured."""
    refuse_other_system([found], ".")
    return plan_of(found, tuple(WhatIfKind), data, options)


def _peaks_threads(found: Analysis, lacks: Sequence[Lack], data: DataFolder) -> int | None:
    """Return the number of threads whose peaks the roofline lacks once the executions are measured."""
    if not applies_to(found.baseline.found):
        return None
    competing = [it.execution.runtime for it in lacks if it.competes]
    threads = max([found.threads, *(it.settings.threads or 1 for it in competing)])
    if threads == found.threads:
        return threads if found.lacks_peaks else None
    with ResultsDatabase(data.store) as store:
        known = any((it.system, it.threads) == (found.system, threads) for it in store.peaks())
    return None if known else threads


def measure_peaks(plans: Sequence[MeasuringPlan], data: DataFolder, tell_waiting: Callable[[str], None]) -> list[str]:
    """Measure the peaks that plans lack, and return why some could not be measured."""
    refusals = []
    # Models have the same peaks.
    for threads in dict.fromkeys(plan.peaks_threads for plan in plans if plan.peaks_threads is not None):
        try:
            measure_peaks_of_host(threads, data, tell_waiting)
        except PeaksError as refusal:
            refusals.append(str(refusal))
    return refusals


def lacks_in_words(plan: MeasuringPlan) -> Iterator[tuple[str, str]]:
    """Yield what a plan measures: the kind of the what-ifs that compare it, and the execution or the peaks."""
    for lack in plan.lacks:
        yield "baseline" if lack.kind is None else lack.kind.value, lack.in_words
    if plan.peaks_threads is not None:
        yield "roofline", f"the peaks of this host with {counted(plan.peaks_threads, 'thread')}"


def kernels_of(
    found: Analysis,
    data: DataFolder,
    tell_waiting: Callable[[str], None],
    check: Callable[[], None] = lambda: None,
    started: Callable[[Worker], None] = lambda _: None,
) -> tuple[ModelKernel, ...]:
    """Return the kernel of each layer, with the time of the layer, once it is their turn on this host.

    `check` may raise to end the waiting. `started` takes the process that loads the model, and may interrupt it.
    """

    def nap() -> None:
        check()
        time.sleep(NAP_SECONDS)

    if recorded_host() is not None:
        raise KernelsError(f"the kernels were not recorded; {NOTHING_IS_MEASURED}")
    baseline, name = found.baseline, found.source.name
    runtime = baseline.execution.runtime
    if found.system != fingerprint().id:
        raise KernelsError(f"{name} was measured on {found.system}, and only that host tells its kernels")
    if not runtime.python:
        raise KernelsError(f"{name} was measured by {baseline.found.way.runtime}, which is not installed here any more")
    ticket = host_queue().join(queued(WorkKind.KERNELS, [name], data.path))
    ticket.wait(tell_waiting, nap)
    try:
        kernels = explain(baseline.graph, runtime, data.log / "kernels.log", started=started)
    finally:
        ticket.leave()
    times_ms, layers = layer_latencies(baseline.estimate), baseline.graph.layers
    named = [(it, layers[it.layer].name, times_ms.get(it.layer, 0.0)) for it in kernels]
    return tuple([taken(ModelKernel, it, layer=name, latency_ms=latency_ms) for it, name, latency_ms in named])


def kernels_or_none(
    found: Analysis, data: DataFolder, tell_waiting: Callable[[str], None], tell: Callable[[str], None]
) -> tuple[ModelKernel, ...]:
    """Return the kernels of a model's layers; none, with a remark, if the runtime does not tell them."""
    try:
        return kernels_of(found, data, tell_waiting)
    except (KernelsError, ProgramError, WorkerError) as error:
        tell(f"no kernels of {found.source.name}: {error}")
        return ()
