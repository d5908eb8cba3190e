"""The analysis of models from stored results: bounds, what-ifs and the gap."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

from dlbricks_tui.analysis.bounds import BestMeasured, Gap, Ratio, best_measured, gap_of, over_best
from dlbricks_tui.analysis.groups import MeasuredExecution, groups_of
from dlbricks_tui.analysis.roofline import LayerPoint, Roof, applies_to, points_of, roof_of, roofline_ms, works_of
from dlbricks_tui.analysis.what_if import Execution, MeasuredGain, WhatIf, corrected, measured_gain, newest_proofs
from dlbricks_tui.analysis.what_ifs import WholeModel, what_ifs_of
from dlbricks_tui.analysis.whole_models import WrittenTimes, written_times
from dlbricks_tui.answers.analysis.measured_executions import MeasuredExecutions
from dlbricks_tui.answers.estimating import Answer, Estimator
from dlbricks_tui.answers.opening import reference_to, run_command
from dlbricks_tui.answers.scope import MeasuredRuntimes, MeasurementScope
from dlbricks_tui.bricks.identity import end_to_end_keys
from dlbricks_tui.estimate.knowledge import Latency
from dlbricks_tui.estimate.lookup import end_to_end
from dlbricks_tui.host import processor
from dlbricks_tui.host.processor import HostFiles
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.content import without_cycle_search
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.models.loading import UNLOADABLE
from dlbricks_tui.runtime.variant import InstructionSet, Precision
from dlbricks_tui.store.selections import by_id
from dlbricks_tui.wording.numbers import counted

# Layers that reach this many times the stored arithmetic show that the peaks were measured on a busy host. A smaller
# excess is the noise of both.
_DOUBTED_ABOVE = 1.05


@dataclass(frozen=True, slots=True)
class MissingPart:
    """Something that an analysis lacks, and the command that measures it."""

    what: str
    command: str


@dataclass(frozen=True)
class Analysis:
    """How fast a model is in one execution, how fast it could be, and what changes would gain.

    The bounds and the gap are None if the estimate lacks layers.
    """

    source: ModelSource
    system: str
    baseline: MeasuredExecution
    # All executions of the model with results, the baseline first.
    executions: tuple[MeasuredExecution, ...]
    best: BestMeasured | None
    over_best: Ratio | None
    gap: Gap | None
    # None if the peaks of the system are not known at this number of threads, or do not apply.
    roof: Roof | None
    roofline_ms: float | None
    points: tuple[LayerPoint, ...]
    what_ifs: tuple[WhatIf, ...]
    # The layers of the file.
    written: LayerGraph | None
    # The commands that measure what is missing, each with what it brings.
    missing: tuple[MissingPart, ...]
    # The newest proof of each what-if, by its id.
    proofs: Mapping[str, MeasuredGain] = field(default_factory=dict)
    # The most threads of the executions that count for the best, and whether the peaks with so many are missing, or are
    # too low: then the roof has what layers have reached.
    threads: int = 1
    lacks_peaks: bool = False

    @cached_property
    def times(self) -> WrittenTimes | None:
        """The time of each layer of the file; None without the layers of the file, or of the baseline."""
        if self.written is None or self.best is None:
            return None
        return written_times(self.baseline, self.written, self._as_written, self.roof)

    @property
    def _as_written(self) -> MeasuredExecution | None:
        """The file measured as written by the same runtime, of several by one with the same number of threads."""
        runtime, threads = self.baseline.execution.runtime, self.baseline.found.variant.threads
        found = [
            it
            for it in self.executions
            if it.graph.level is Level.WRITTEN
            and (it.file, it.graph.batch_size) == (self.baseline.file, self.baseline.graph.batch_size)
            and it.execution.runtime.framework == runtime.framework
        ]
        return min(found, key=lambda it: it.found.variant.threads != threads, default=None)


class Analyser:
    """Analyses models from one store; nothing is measured."""

    def __init__(self, estimator: Estimator, named: Sequence[str] = ()) -> None:
        self._estimator = estimator
        self._named = named
        self._executions = MeasuredExecutions(estimator)

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
        written = self._written(answer.source, baseline)
        baseline = replace(baseline, written=written)
        found_others = self._executions.others(answer.source, runtimes, baseline)
        others = [it for it in found_others if not _is_same(it, baseline)]
        composed = found.estimate.composed
        # Predictions of all layers tell nothing about what could be better.
        is_known = any(part.measured is not None for part in baseline.parts)
        complete = composed is not None and not found.estimate.is_partial and is_known
        competing = [baseline, *(it for it in others if _competes(it, baseline))]
        best = best_measured(competing) if complete else None
        threads = max(it.found.variant.threads or 1 for it in competing)
        roof: Roof | None = None
        least_ms: float | None = None
        points: tuple[LayerPoint, ...] = ()
        if applies_to(found.way.runtime) and written is not None:
            roof = self._roof(scope.system, threads)
        doubt = "the peaks" if roof is None and applies_to(found.way.runtime) else ""
        if roof is not None and written is not None:
            stored, roof = roof, _reached(roof, competing)
            by_stored_ms = None if best is None else _roofline_ms(best, stored)
            contradicted = best is not None and by_stored_ms is not None and by_stored_ms > best.latency_ms
            if contradicted or roof.highest > _DOUBTED_ABOVE * stored.highest:
                doubt = "peaks of a quiet host (layers reach more than the stored ones)"
            points = points_of(baseline, works_of(baseline, written), roof)
            if best is not None and (least_ms := _roofline_ms(best, roof)) is not None:
                # Bandwidths that are too low could still contradict the measurements.
                least_ms = min(least_ms, best.latency_ms)
        lacking = _lacking_instructions() if scope.is_host else {}
        by_default = self._by_default(baseline)
        proofs = self._estimator.store.proofs_on(scope.system) if is_known else ()
        own = set(end_to_end_keys(graph).values())
        of_others = [it for it in proofs if it.model not in own]
        what_ifs = what_ifs_of(baseline, others, lacking, by_default) if is_known else ()
        newest = {it.id: newest_proofs([each for each in proofs if each.model in own], it) for it in what_ifs}
        return Analysis(
            answer.source,
            scope.system,
            baseline,
            (baseline, *others),
            best,
            None if best is None else over_best(baseline, best),
            None if best is None else gap_of(baseline, best),
            roof,
            least_ms,
            points,
            tuple(corrected(it, of_others) for it in what_ifs),
            written,
            tuple(self._missing(answer, baseline, threads, doubt)),
            {name: measured_gain(max(held.values(), key=lambda it: it.when)) for name, held in newest.items() if held},
            threads,
            bool(doubt),
        )

    def _by_default(self, baseline: MeasuredExecution) -> WholeModel | None:
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
        return WholeModel(replace(baseline.execution, runtime=runtime), latency)

    def _roof(self, system: str, threads: int) -> Roof | None:
        store = self._estimator.store
        known = by_id(store.systems()).get(system)
        return None if known is None else roof_of(store.peaks(), known, threads)

    def _written(self, source: ModelSource, baseline: MeasuredExecution) -> LayerGraph | None:
        """Return the layers of the file of the baseline; None if it cannot be read so."""
        if baseline.graph.level is Level.WRITTEN:
            return baseline.graph
        form, options = baseline.graph.format, self._estimator.options
        with suppress(*UNLOADABLE):
            # At the batch size of the baseline, which may be that of the file.
            found = self._estimator.loader.load(
                source.in_format(form), Level.WRITTEN, options.inputs, options.values, options.batch
            )
            return found.named(source.name)
        return None

    def _missing(self, answer: Answer, baseline: MeasuredExecution, threads: int, peaks: str) -> Iterator[MissingPart]:
        """Yield what the analysis lacks, on this host, with the commands that measure it."""
        execution, missing = baseline.execution, baseline.estimate.coverage.missing
        measured = self._reference(answer.source), execution.runtime, baseline.graph.level, execution.batch_size
        if missing:
            yield MissingPart(counted(missing, "layer"), run_command(*measured, self._estimator.options))
        if baseline.found.end_to_end is None:
            command = run_command(*measured, self._estimator.options, "--end-to-end")
            yield MissingPart("the end-to-end latency", command)
        if peaks:
            command = f"dlbricks doctor --peaks --threads {threads}"
            yield MissingPart(f"{peaks} with {counted(threads, 'thread')}", command)

    def _reference(self, source: ModelSource) -> str:
        return reference_to(source, has_name=not self._named or source.name in self._named)


def _lacking_instructions() -> Mapping[Precision, str]:
    """Return the instructions that the processor of this host lacks for each precision; none for an unknown one."""
    known = set(processor.instruction_sets(HostFiles())) - {InstructionSet.ALL}
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
        if it.as_written is not None and applies_to(it.found.way.runtime):
            roof = roof.reached_by(points_of(it, works_of(it, it.as_written), roof))
    return roof


def _is_same(one: MeasuredExecution, other: MeasuredExecution) -> bool:
    return (one.found.way, one.graph.batch_size) == (other.found.way, other.graph.batch_size) and one.file == other.file


def _competes(one: MeasuredExecution, baseline: MeasuredExecution) -> bool:
    """Return whether an execution counts for the best of another one: it computes the same, with the same batch."""
    return (
        one.is_measured
        and one.execution.runtime.at_once == 1
        and one.graph.batch_size == baseline.graph.batch_size
        and one.found.variant.precision is baseline.found.variant.precision
    )
