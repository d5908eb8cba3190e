"""The what-ifs of a model, each predicted from stored results of bricks, and the runs that measure what is lacking."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from dlbricks_tui.analysis.bounds import (
    Saving,
    best_measured,
    by_layer_name,
    gain_between,
    latencies_per_item,
    savings,
    speed_difference,
)
from dlbricks_tui.analysis.groups import (
    MeasuredExecution,
    are_comparable,
    is_conversion,
    latency_of,
    layer_names,
    paid_ps,
)
from dlbricks_tui.analysis.what_if import Execution, WhatIf, WhatIfKind
from dlbricks_tui.estimate.compositions import SequenceTask, from_picoseconds, schedule
from dlbricks_tui.estimate.knowledge import Latency
from dlbricks_tui.measure.time_left import PLAIN, WORKER_START_SECONDS, most_seconds_per_carrier
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import runtime_title
from dlbricks_tui.runtime.variant import (
    USUAL_KERNELS,
    AskedVariant,
    InstructionSet,
    Optimisation,
    Precision,
    batch_in_words,
    threads_in_words,
)

# A what-if names at most so many layers.
MOST_LAYERS = 10
# Layers after which a runtime can compute others in the same pass over a tensor, and those others.
_FUSING = frozenset({Kind.CONVOLUTION, Kind.DECONVOLUTION, Kind.LINEAR, Kind.BATCHNORM})
_FUSED = frozenset({Kind.BATCHNORM, Kind.ELEMENTWISE})
_SUMS = frozenset({"add", "Add", "elemwise_add", "broadcast_add"})


class ExecutionChoices(NamedTuple):
    """The choices in which executions of a model differ."""

    framework: str
    version: str
    threads: int | None
    precision: Precision
    # Variables that choose kernels and optimisations.
    environment: frozenset[tuple[str, str]]
    level: Level
    batch_size: int


def choices_of(one: MeasuredExecution) -> ExecutionChoices:
    """Return the choices of an execution, with the number of threads that the framework starts."""
    runtime, variant, environment = one.execution.runtime, one.found.variant, one.execution.runtime.settings.environment
    chosen_there = variant.threads, variant.precision, frozenset(environment), one.graph.level, one.graph.batch_size
    return ExecutionChoices(runtime.framework, runtime.version, *chosen_there)


def what_ifs_of(
    baseline: MeasuredExecution,
    others: Iterable[MeasuredExecution],
    lacking: Mapping[Precision, str] | None = None,
    by_default: tuple[Execution, Latency] | None = None,
) -> tuple[WhatIf, ...]:
    """Return all changes of one choice whose latency the stored results tell, by kind.

    Only executions count in which every layer was measured. `lacking` has the instructions for each precision that the
    processor does not have. `by_default` is the baseline with the engine that programs get by default, and the
    latency of the whole model in it.
    """
    if baseline.estimate.composed is None or baseline.estimate.is_partial:
        return ()
    known = [it for it in others if it.is_measured and it.execution.runtime.at_once == 1]
    changes = _Changes(baseline, choices_of(baseline), [(choices_of(it), it) for it in known], lacking or {})
    found = [
        *changes.parallel(),
        *changes.kernels(),
        *changes.runtimes(),
        *([] if by_default is None else [changes.default_engine(*by_default)]),
        *changes.fusion(),
        *changes.precisions(),
        *changes.threads(),
        *changes.batches(),
    ]
    return tuple({it.id: it for it in found}.values())


@dataclass(frozen=True, slots=True)
class _Changes:
    """The executions that differ from the baseline in one choice."""

    baseline: MeasuredExecution
    choices: ExecutionChoices
    others: Sequence[tuple[ExecutionChoices, MeasuredExecution]]
    lacking: Mapping[Precision, str]

    def parallel(self) -> Iterator[WhatIf]:
        """Yield the list schedules of independent layers on k workers, each with its share of the same threads."""
        threads = self.choices.threads or 1
        for workers in (number for number in range(2, threads + 1) if threads % number == 0):
            narrow = self._one(self.choices._replace(threads=threads // workers))
            if narrow is not None:
                yield self._scheduled(workers, threads // workers, narrow)

    def _scheduled(self, workers: int, threads: int, narrow: MeasuredExecution) -> WhatIf:
        after: list[list[int]] = [[] for _ in narrow.parts]
        for source, reader in narrow.estimate.edges:
            after[reader].append(source)
        tasks = [SequenceTask(part.paid_ps, tuple(held)) for part, held in zip(narrow.parts, after, strict=True)]
        planned = schedule(tasks, workers)
        sequential = latency_of(narrow)
        scale = from_picoseconds(planned.latency_ps) / (sequential.value_ms or 1.0)
        runtime, traits = self.baseline.execution.runtime, self.baseline.execution.runtime.traits
        change, how = None, f"{traits.title} runs one operator after another, so it cannot be done"
        if traits.parallel_variable:
            change = replace(self.baseline.execution, runtime=runtime.with_threads(threads).side_by_side(workers))
            how = f"{traits.parallel_setting}={workers} {traits.threads_setting}={threads}"
        beside = _beside([(it.begin_ps, it.end_ps) for it in planned.placed])
        names = layer_names(narrow, sorted(beside, key=lambda number: -narrow.parts[number].paid_ps))
        latency = Latency(*(scale * each for each in sequential))
        return self._what_if(WhatIfKind.PARALLEL, str(workers), change, latency, names, how, narrow)

    def kernels(self) -> Iterator[WhatIf]:
        """Yield the same runtime with other instructions or optimisations."""
        for choices, other in self.others:
            if choices.environment != self.choices.environment and self._alike(
                choices, environment=choices.environment
            ):
                changed = sorted(choices.environment - self.choices.environment)
                name = "-".join(value.lower() for _, value in changed) or "default"
                how = " ".join(f"{variable}={value}" for variable, value in changed) or "no limit on kernels"
                yield self._to(WhatIfKind.KERNELS, name, other, how)

    def runtimes(self) -> Iterator[WhatIf]:
        """Yield the same model on other runtimes, and the best mix of all of them."""
        fitting: dict[str, tuple[ExecutionChoices, MeasuredExecution]] = {}
        # Written layers that no runtime fuses say little about another framework.
        wanted = {Level.FUSED, self.choices.level}
        for choices, other in self.others:
            changed = {"framework": choices.framework, "version": choices.version, "environment": frozenset()}
            # By default, frameworks start different numbers of threads.
            alike = self._alike(choices, **changed, threads=choices.threads)
            if choices.framework != self.choices.framework and choices.level in wanted and alike:
                kept = fitting.get(choices.framework)
                if kept is None or self._rank(choices, other) > self._rank(*kept):
                    fitting[choices.framework] = choices, other
        for framework, (choices, other) in fitting.items():
            runtime = other.execution.runtime
            how = f"run the {other.graph.format.value} file in {runtime.traits.title} {runtime.version}"
            if choices.threads != self.choices.threads:
                how += f" on {threads_in_words(choices.threads)}"
            if engine := _engine(choices, other):
                how += f" with {engine}"
            yield self._to(WhatIfKind.RUNTIME, framework, other, how)
        same_threads = [other for choices, other in fitting.values() if choices.threads == self.choices.threads]
        comparable = [it for it in same_threads if are_comparable(self.baseline, it)]
        if comparable:
            best = best_measured([self.baseline, *comparable])
            won = sorted((it for it in best.winners if it.execution), key=lambda it: -it.latency_ps)
            names = [name for it in won for name in layer_names(best.executions[it.execution], it.parts)]
            how = "each layer in its fastest runtime, without conversions between them, so no runtime can do it"
            yield self._what_if(WhatIfKind.RUNTIME, "mix", None, best.latency, names, how, comparable[0])

    def _rank(self, choices: ExecutionChoices, one: MeasuredExecution) -> tuple[bool, list[int], float]:
        """Return a key that is highest for the same number of threads, then the newest version, then the fastest."""
        same = choices.threads == self.choices.threads
        version = [int(word) for word in one.execution.runtime.version.split(".") if word.isdecimal()]
        return same, version, 0.0 if same else -latency_of(one).value_ms

    def default_engine(self, execution: Execution, latency: Latency) -> WhatIf:
        """Return what the engine of programs without settings costs: whole models tell it, and layers do not."""
        before = self.baseline.found.end_to_end or latency_of(self.baseline)
        traits = execution.runtime.traits
        settings = " ".join(f"{name}={value}" for name, value in traits.default_engine)
        how, name = f"{settings}, the default of {traits.title}", "default-engine"
        return self._what_if(WhatIfKind.RUNTIME, name, execution, latency, (), how, self.baseline, before)

    def fusion(self) -> Iterator[WhatIf]:
        """Yield what fusing layers saves, and what it would save where layers could have been fused and were not."""
        is_written = self.choices.level is Level.WRITTEN
        other = self._one(self.choices._replace(level=Level.FUSED if is_written else Level.WRITTEN))
        if other is not None and is_written:
            yield self._to(WhatIfKind.FUSION, "", other, "let the runtime fuse layers: --level fused")
        if not is_written:
            if left := unfused(self.baseline):
                latency = latency_of(self.baseline)
                kept = 1.0 - from_picoseconds(paid_ps(self.baseline, left)) / latency.value_ms
                ranked = sorted(left, key=lambda number: -self.baseline.parts[number].paid_ps)
                names = layer_names(self.baseline, ranked)
                how = "compute these layers in the pass of the layer before: the runtime does not"
                changed = Latency(*(kept * each for each in latency))
                yield self._what_if(WhatIfKind.FUSION, "", None, changed, names, how, self.baseline)
            if other is not None:
                yield self._to(WhatIfKind.FUSION, "off", other, "run the layers as written: --level written")

    def precisions(self) -> Iterator[WhatIf]:
        """Yield the same runtime in other precisions, with the conversions between them."""
        for choices, other in self.others:
            if choices.precision is not self.choices.precision and self._alike(choices, precision=choices.precision):
                traits = other.execution.runtime.traits
                setting = f"{traits.precision_setting}={choices.precision.value}"
                how = "quantise the model: --precision int8" if choices.precision is Precision.INT8 else setting
                found = by_layer_name(self.baseline, other)
                gaining = sum(it.saved_ms > 0 for it in found)
                # Nodes without names have other ones in a quantised copy.
                how += f"; {gaining} of {len(found)} layer{'s' * (len(found) != 1)} gain" if found else ""
                layers = other.graph.layers
                quantising = [
                    it for it in other.parts if all(layers[index].kind is Kind.QUANTIZE for index in it.layers)
                ]
                if converted_ps := sum(part.paid_ps for part in quantising):
                    how += f"; conversions take {from_picoseconds(converted_ps):.3g} ms"
                if choices.precision in self.lacking:
                    how = f"do not: this processor has no {self.lacking[choices.precision]} instructions; {how}"
                yield self._to(WhatIfKind.PRECISION, choices.precision.value, other, how, found)

    def threads(self) -> Iterator[WhatIf]:
        """Yield the best other number of threads."""
        alike = [(it, one) for it, one in self.others if it.threads and self._alike(it, threads=it.threads)]
        points = [(it, one) for it, one in alike if it.threads != self.choices.threads]
        best = min(points, key=lambda it: latency_of(it[1]).value_ms, default=None)
        if best is not None:
            choices, other = best
            setting = f"{other.execution.runtime.traits.threads_setting}={choices.threads}"
            setting = " ".join(filter(None, (setting, _engine(choices, other))))
            yield self._to(WhatIfKind.THREADS, str(choices.threads), other, setting)

    def batches(self) -> Iterator[WhatIf]:
        """Yield the best other batch size, by the time for each item."""
        alike = [one for it, one in self.others if self._alike(it, batch_size=it.batch_size)]
        points = [it for it in alike if it.graph.batch_size != self.choices.batch_size]
        best = min(points, key=lambda it: latency_of(it).value_ms / it.graph.batch_size, default=None)
        if best is not None:
            yield self._to(WhatIfKind.BATCH, str(best.graph.batch_size), best, batch_in_words(best.graph.batch_size))

    def _alike(self, choices: ExecutionChoices, **changed: Any) -> bool:
        return choices == self.choices._replace(**changed)

    def _one(self, choices: ExecutionChoices) -> MeasuredExecution | None:
        return next((other for found, other in self.others if found == choices), None)

    def _to(
        self, kind: WhatIfKind, name: str, other: MeasuredExecution, how: str, saved: Sequence[Saving] | None = None
    ) -> WhatIf:
        """Return the change to another measured execution, and what it saves in each group of layers."""
        found = savings(self.baseline, other) if saved is None else saved
        before, after = latencies_per_item(self.baseline, other)
        lost = after.value_ms > before.value_ms
        ranked = sorted(found, key=lambda it: it.saved_ms if lost else -it.saved_ms)
        names = [name for it in ranked if (it.saved_ms < 0) is lost and it.saved_ms for name in it.layers[:1]]
        return self._what_if(kind, name, other.execution, after, names, how, other, before)

    def _what_if(
        self,
        kind: WhatIfKind,
        name: str,
        change: Execution | None,
        latency: Latency,
        layers: Sequence[str],
        how: str,
        measured: MeasuredExecution,
        before: Latency | None = None,
    ) -> WhatIf:
        """Return a what-if; `before` is the latency that it is compared with, by default the estimate."""
        before = before or latency_of(self.baseline)
        return WhatIf(
            f"{kind.value}-{name}" if name else kind.value,
            kind,
            self.baseline.execution,
            change,
            latency.value_ms,
            gain_between(before, latency, speed_difference(self.baseline, measured)),
            tuple(dict.fromkeys(layers))[:MOST_LAYERS],
            how,
        )


def _engine(choices: ExecutionChoices, one: MeasuredExecution) -> str:
    """Return the settings of the measurements without which several threads are slower; empty if there are none."""
    settings = one.execution.runtime.traits.profiling_settings if choices.threads != 1 else ()
    return " ".join(f"{name}={value}" for name, value in settings)


def unfused(one: MeasuredExecution) -> tuple[int, ...]:
    """Return the parts that a runtime could have computed in the pass of the layer before them, and did not.

    These are normalisations, activations and sums behind a convolution, a matrix product or a normalisation that
    nothing else reads.
    """
    layers, readers = one.graph.layers, one.graph.successors
    heads = {feed.layer for feed in one.graph.heads}
    found = []
    # The layers whose pass goes on.
    passes = {layer.index for layer in layers if layer.kind in _FUSING}
    part_of = {part.layers[0]: number for number, part in enumerate(one.parts) if len(part.layers) == 1}
    for layer in layers:
        before = [it for it in one.graph.predecessors[layer.index] if it in passes and it not in heads]
        single = any(len(readers[it]) == 1 for it in before)
        is_sum = layer.kind is Kind.COMBINE and layer.op.rpartition(".")[2] in _SUMS and len(layer.data) == 2
        fits = layer.kind in _FUSED or is_sum
        if single and fits and not is_conversion(layer) and layer.index in part_of:
            passes.add(layer.index)
            found.append(part_of[layer.index])
    return tuple(number for number in found if one.parts[number].paid_ps)


def _beside(placed: Sequence[tuple[int, int]]) -> list[int]:
    """Return the tasks that run beside another one, by their begins and ends."""
    order = sorted((number for number, (begin, end) in enumerate(placed) if end > begin), key=lambda it: placed[it])
    found: set[int] = set()
    latest: int | None = None
    for number in order:
        if latest is not None and placed[number][0] < placed[latest][1]:
            found.update((number, latest))
        if latest is None or placed[number][1] > placed[latest][1]:
            latest = number
    return sorted(found)


_BATCH_SIZES = (2, 4, 8)
# Widths of vectors: sets in between have other instructions of the same width.
_WIDTHS = (InstructionSet.AVX2, InstructionSet.AVX512_CORE)
# Without NCHWc, and without fused layers that only ONNX Runtime has.
_LEVELS = tuple(AskedVariant(optimisation=it) for it in (Optimisation.EXTENDED, Optimisation.BASIC))
# A carrier of a slow model takes as long as about so many runs of it.
_RUNS_OF_A_SLOW_MODEL = 20


@dataclass(frozen=True, slots=True)
class Host:
    """The cores, the instruction sets and the runtimes of this host, which limit the executions that are possible."""

    cores: int
    # The narrowest first.
    instruction_sets: tuple[InstructionSet, ...]
    # Those that are installed.
    runtimes: tuple[Runtime, ...]


@dataclass(frozen=True, slots=True)
class Lack:
    """An execution of a model without results, and the kind of the what-ifs that compare it; None: the baseline."""

    execution: Execution
    kind: WhatIfKind | None
    # False: only the whole model is timed.
    bricks: bool = True

    @property
    def competes(self) -> bool:
        """True if the execution counts for the best once it is measured: it computes the same, with the same batch."""
        same = self.kind not in (WhatIfKind.PRECISION, WhatIfKind.BATCH)
        return same and self.execution.runtime.at_once == 1

    @property
    def in_words(self) -> str:
        """The execution as messages show it."""
        runtime, settings = self.execution.runtime, self.execution.runtime.settings
        words = [runtime_title(runtime.name), threads_in_words(settings.threads)]
        if settings.precision is not Precision.F32:
            words.append(settings.precision.value)
        words += runtime.kernels.words
        if not self.bricks:
            words.append("default engine")
        if self.execution.level is Level.WRITTEN:
            words.append("as written")
        if self.execution.batch_size is not None:
            words.append(batch_in_words(self.execution.batch_size))
        return ", ".join(words)


def lacks_of(
    source: ModelSource,
    baseline: Execution,
    measured: Collection[Execution],
    host: Host,
    kinds: Collection[WhatIfKind] = tuple(WhatIfKind),
) -> tuple[Lack, ...]:
    """Return the baseline and the executions for what-ifs of these kinds, as far as they have no results."""

    def key(it: Execution) -> tuple[str, Level, int | None]:
        return it.runtime.identity, it.level, it.batch_size

    known, found = set(map(key, measured)), dict[object, Lack]()
    for lack in (Lack(baseline, None), *_compared(source, baseline, host)):
        if key(lack.execution) not in known and (lack.kind is None or lack.kind in kinds):
            found.setdefault(key(lack.execution), lack)
    return tuple(found.values())


def _compared(source: ModelSource, baseline: Execution, host: Host) -> Iterator[Lack]:
    runtime, traits = baseline.runtime, baseline.runtime.traits
    threads = runtime.settings.threads or 1

    def by(other: Runtime, kind: WhatIfKind) -> Lack:
        return Lack(replace(baseline, runtime=other), kind)

    for workers in range(2, threads + 1):
        if threads % workers == 0:
            yield by(runtime.with_threads(threads // workers), WhatIfKind.PARALLEL)
    if runtime.kernels != USUAL_KERNELS:
        yield by(runtime.with_kernels(USUAL_KERNELS), WhatIfKind.KERNELS)
    # The widest set is the one without a limit.
    widths = [AskedVariant(instructions=it) for it in _WIDTHS if it in host.instruction_sets[:-1]]
    for limits in (*widths, *_LEVELS):
        if traits.has_kernels(limits):
            yield by(runtime.with_kernels(limits), WhatIfKind.KERNELS)
    # The first runtime of each other framework that has a file of the model and its precision.
    seen, own_precision = {runtime.framework}, runtime.settings.precision
    for other in host.runtimes:
        fits = other.traits.format in source.formats and other.computes_in(own_precision)
        # It cannot run written layers of its own.
        fits = fits and not (baseline.level is Level.WRITTEN and other.traits.always_fuses)
        if other.framework not in seen and fits:
            seen.add(other.framework)
            yield by(other.with_precision(own_precision).with_threads(threads), WhatIfKind.RUNTIME)
    # On one thread it is as fast as that of the measurements.
    engine = runtime.with_default_engine() if threads > 1 else None
    if engine is not None:
        yield Lack(replace(baseline, runtime=engine), WhatIfKind.RUNTIME, bricks=False)
    if not traits.always_fuses:
        level = Level.WRITTEN if baseline.level is Level.FUSED else Level.FUSED
        yield Lack(replace(baseline, level=level), WhatIfKind.FUSION)
    for precision in traits.precisions:
        if precision is not Precision.BF16 or InstructionSet.AVX512_CORE_BF16 in host.instruction_sets:
            yield by(runtime.with_precision(precision), WhatIfKind.PRECISION)
    for number in dict.fromkeys([*(1 << power for power in range(host.cores.bit_length())), host.cores]):
        if number != threads:
            yield by(runtime.with_threads(number), WhatIfKind.THREADS)
    for size in _BATCH_SIZES:
        yield Lack(replace(baseline, batch_size=size), WhatIfKind.BATCH)


def expected_seconds(lack: Lack, baseline_ms: float) -> float:
    """Return about how long it takes to measure an execution, given the latency of the baseline; 0: not known."""
    latency_ms = baseline_ms * (lack.execution.batch_size or 1)
    timing = max(most_seconds_per_carrier(1), _RUNS_OF_A_SLOW_MODEL * latency_ms / 1000) if lack.bricks else 0.0
    # One worker reads the model, another one runs it.
    return 2 * WORKER_START_SECONDS + PLAIN.seconds + timing
