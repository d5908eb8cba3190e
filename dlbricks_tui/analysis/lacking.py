"""The executions that the what-ifs of a model compare, and the runs that measure those without results."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from dlbricks_tui.analysis.what_if import Execution, WhatIfKind
from dlbricks_tui.measure.stopping import Adaptive
from dlbricks_tui.measure.time_left import PLAIN_SECONDS, WORKER_START_SECONDS, most_seconds_per_carrier
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runs.request import RunRequest, RuntimeChoice, chosen, usual_method
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
    known = {_key(it) for it in measured}
    found: dict[object, Lack] = {}
    for lack in (Lack(baseline, None), *_compared(source, baseline, host)):
        if _key(lack.execution) not in known and (lack.kind is None or lack.kind in kinds):
            found.setdefault(_key(lack.execution), lack)
    return tuple(found.values())


def _key(execution: Execution) -> tuple[str, Level, int | None]:
    return execution.runtime.identity, execution.level, execution.batch_size


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
    for other in _others(source, baseline, host.runtimes):
        yield by(other.with_threads(threads), WhatIfKind.RUNTIME)
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
    for number in _numbers_of_threads(host.cores):
        if number != threads:
            yield by(runtime.with_threads(number), WhatIfKind.THREADS)
    for size in _BATCH_SIZES:
        yield Lack(replace(baseline, batch_size=size), WhatIfKind.BATCH)


def _others(source: ModelSource, baseline: Execution, runtimes: Iterable[Runtime]) -> Iterator[Runtime]:
    """Yield the first runtime of each other framework that has a file of the model and its precision."""
    seen, precision = {baseline.runtime.framework}, baseline.runtime.settings.precision
    for other in runtimes:
        fits = other.traits.format in source.formats and other.computes_in(precision)
        # It cannot run written layers of its own.
        fits = fits and not (baseline.level is Level.WRITTEN and other.traits.always_fuses)
        if other.framework not in seen and fits:
            seen.add(other.framework)
            yield other.with_precision(precision)


def _numbers_of_threads(cores: int) -> tuple[int, ...]:
    powers = [1 << power for power in range(cores.bit_length())]
    return tuple(dict.fromkeys([*powers, cores]))


def expected_seconds(lack: Lack, baseline_ms: float) -> float:
    """Return about how long it takes to measure an execution, given the latency of the baseline; 0: not known."""
    latency_ms = baseline_ms * (lack.execution.batch_size or 1)
    timing = max(most_seconds_per_carrier(1), _RUNS_OF_A_SLOW_MODEL * latency_ms / 1000) if lack.bricks else 0.0
    # One worker reads the model, another one runs it.
    return 2 * WORKER_START_SECONDS + PLAIN_SECONDS + timing


def requests_for(source: ModelSource, lacks: Sequence[Lack]) -> tuple[RunRequest, ...]:
    """Return the runs that measure these executions.

    A run measures one level; several batch sizes of one runtime are measured in one run.
    """
    groups: dict[tuple[Level, str, bool], list[Execution]] = {}
    for lack in lacks:
        execution = lack.execution
        at_size = "" if execution.batch_size is None else execution.runtime.identity
        groups.setdefault((execution.level, at_size, lack.bricks), []).append(execution)
    return tuple(_request(source, group, bricks=bricks) for (_, _, bricks), group in groups.items())


def _request(source: ModelSource, group: Sequence[Execution], *, bricks: bool) -> RunRequest:
    level, rule = group[0].level, Adaptive()
    runtimes = {it.runtime.identity: it.runtime for it in group}.values()
    first, *others = (
        RuntimeChoice(it, chosen([source.in_format(it.traits.format)]), usual_method(rule, it, level))
        for it in runtimes
    )
    return RunRequest(
        models=first.models,
        runtime=first.runtime,
        others=tuple(others),
        method=first.method,
        batch_sizes=tuple(dict.fromkeys(it.batch_size for it in group if it.batch_size is not None)),
        level=level,
        rule=rule,
        end_to_end=True,
        bricks=bricks,
    )
