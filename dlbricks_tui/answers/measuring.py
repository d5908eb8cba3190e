"""Options of a run, its batch sizes, and the request that follows from them."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from tinydb import where

from dlbricks_tui.answers.opening import CutOptions
from dlbricks_tui.bricks.identity import brick_in
from dlbricks_tui.estimate.parts import Part
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host import processor
from dlbricks_tui.host.processor import HostFiles
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.stopping import Adaptive, FixedRuns, StoppingRule
from dlbricks_tui.measure.supervised_worker import TimeLimits
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import ModelSource, shared_formats
from dlbricks_tui.runs.request import (
    InputShape,
    InputValue,
    RunLimits,
    RunRequest,
    RuntimeChoice,
    can_be_alone,
    can_be_inside,
    chosen,
    usual_method,
)
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.runtime.variant import AskedVariant, AskedVariants, InstructionSet, several
from dlbricks_tui.settings.cutting import GRANULARITY
from dlbricks_tui.settings.measuring import (
    AGAIN,
    BRICK_TIMEOUT,
    ENOUGH,
    MEMORY_LIMIT,
    RETRY_FAILED,
    TARGET,
    TIME_BUDGET,
    HowMeasured,
)
from dlbricks_tui.settings.setting import fields_of, require_allowed
from dlbricks_tui.settings.variant import BATCH, THREADS
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.selections import Way, equal

# A run of more models times no whole models unless it is asked to.
MOST_MODELS_END_TO_END = 3
_MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureOptions(RunLimits, HowMeasured, AskedVariants, CutOptions):
    """Options of a run: cutting and measuring. None: the run decides."""

    # True: the whole models are timed, too.
    end_to_end: bool | None = None
    # A registered runtime by its name, or several, and that of the settings, which counts only for models that it runs.
    runtime: str | Sequence[str] | None = None
    usual_runtime: str | None = None
    brick_timeout_seconds: float | None = None
    memory_limit_mib: int | None = None

    def __post_init__(self) -> None:
        checked = (GRANULARITY, THREADS, BATCH, TARGET, *ENOUGH, TIME_BUDGET, BRICK_TIMEOUT, MEMORY_LIMIT)
        require_allowed(self, checked, JobError)


def run_request(options: MeasureOptions, sources: Sequence[ModelSource], data: DataFolder) -> RunRequest:
    """Return the request of a run that measures these models."""
    return request_by(_runtimes(options, shared_formats(sources), data), options, sources)


def request_by(runtimes: Sequence[Runtime], options: MeasureOptions, sources: Sequence[ModelSource]) -> RunRequest:
    """Return the request of a run that measures these models by these runtimes, whose variants are chosen already."""
    found = [
        RuntimeChoice(
            runtime,
            chosen([source.in_format(runtime.traits.format) for source in sources]),
            _method(options, runtime),
        )
        for runtime in runtimes
    ]
    end_to_end = options.end_to_end
    if end_to_end is None:
        end_to_end = found[0].method is Method.INSIDE and len(sources) <= MOST_MODELS_END_TO_END
    return request_of(options, found[0], *found[1:], end_to_end=end_to_end)


def request_of(
    options: MeasureOptions, first: RuntimeChoice, *others: RuntimeChoice, end_to_end: bool = False
) -> RunRequest:
    """Return the request of a run with these runtimes."""
    timeout, memory_mib = options.brick_timeout_seconds, options.memory_limit_mib
    return RunRequest(
        models=first.models,
        runtime=first.runtime,
        others=others,
        batch_sizes=tuple(dict.fromkeys(several(options.batch))),
        inputs=tuple(InputShape(name, shape) for name, shape in options.inputs.items()),
        values=tuple(InputValue(name, value) for name, value in options.values.items()),
        level=options.level,
        cutting=options.cutting,
        rule=_rule(options),
        end_to_end=end_to_end,
        **fields_of(options, (TIME_BUDGET, TARGET, RETRY_FAILED, AGAIN)),
        time_limits=TimeLimits() if timeout is None else TimeLimits(timeout, timeout),
        memory_limit_bytes=None if memory_mib is None else memory_mib * _MEBIBYTE,
        method=first.method,
    )


def _method(options: MeasureOptions, runtime: Runtime) -> Method:
    found = options.method or usual_method(_rule(options), runtime, options.level)
    if found is Method.ALONE and not can_be_alone(runtime, options.level):
        raise JobError(
            f"{runtime.traits.title} times fused layers by method inside only: leave out fixed runs, or choose level "
            "written"
        )
    if found is Method.INSIDE and not can_be_inside(_rule(options), runtime, options.level):
        if runtime.traits.always_fuses and options.level is Level.WRITTEN:
            raise JobError(
                f"{runtime.traits.title} fuses the layers of a network, so method inside cannot time them as written: "
                "choose level fused, or method alone"
            )
        raise JobError(
            "method inside times layers that run one after another, until their intervals are narrow: leave out fixed "
            "runs, and choose a runtime that runs one operator at a time, or use method alone"
        )
    return found


def _runtimes(options: MeasureOptions, formats: Collection[Format], data: DataFolder) -> tuple[Runtime, ...]:
    """Return each runtime with each precision, each limit on its kernels, and each number of threads."""
    for instructions in several(options.instructions):
        _refuse_missing_instructions(instructions)
    registry = Registry(data.path)
    named = [registry.find_installed(name) for name in several(options.runtime)]
    asked = replace(options, batch=None).each(AskedVariant())
    variants = (
        (runtime or _usual(options, formats, registry, each)).with_variant(each)
        for runtime in named or (None,)
        for each in asked
    )
    return tuple({each.identity: each for each in variants}.values())


def _refuse_missing_instructions(instructions: InstructionSet) -> None:
    available = processor.instruction_sets(HostFiles())
    if instructions not in available:
        known = ", ".join(it.value for it in available)
        raise JobError(f"this processor has no {instructions.value} instructions: choose from {known}")


def _usual(options: MeasureOptions, formats: Collection[Format], registry: Registry, asked: AskedVariant) -> Runtime:
    """Return the runtime of the settings, or else the usual one of those that have the precision and kernels."""
    if options.usual_runtime:
        usual = registry.find(options.usual_runtime)
        if usual.traits.format in formats and usual in registry.all() and usual.can_have(asked):
            return usual
    return (
        registry.first_for(formats, lambda it: it.can_have(asked))
        or registry.preferred_for(formats, asked.precision)
        or registry.runtime_for(formats)
    )


def _rule(options: MeasureOptions) -> StoppingRule:
    if options.fixed_runs is not None:
        return FixedRuns(options.fixed_runs)
    return Adaptive() if options.target_interval is None else Adaptive(target=options.target_interval)


# So many of the longest bricks are looked up at each size.
_LOOKED_UP = 16


def measured_batch_sizes(store: ResultsDatabase, way: Way, parts: Sequence[Part], batch_size: int) -> tuple[int, ...]:
    """Return the other batch sizes at which most of the longest bricks of a model have results of the same way.

    Bricks that state the batch size in their parameters are not found at another one.
    """
    of_way = equal(of="brick", good=True, system=way.system, runtime=way.runtime, level=way.level.value)
    sizes = {int(size) for size in set(store.select(of_way, order=()).numbers("batch_size").tolist())} - {batch_size}
    longest = sorted({it.brick: it.paid_ps for it in parts}.items(), key=lambda it: -it[1])
    sought = [brick.canonical for brick, _ in longest[:_LOOKED_UP]]
    keys = {size: {key_at(canonical, batch_size, size) for canonical in sought} for size in sorted(sizes)}
    wanted = [key for found in keys.values() for key in found]
    measured = store.select(where("brick").one_of(wanted) & of_way, order=()).distinct("brick") if wanted else set()
    return tuple([size for size, found in keys.items() if 2 * len(found & measured) > len(sought)])


def key_at(canonical: str, batch_size: int, wanted: int) -> str:
    """Return the key of a brick at another batch size, which is the first length of its inputs."""
    form = json.loads(canonical)
    for shape, _ in form["data"]:
        if shape and shape[0] == batch_size:
            shape[0] = wanted
    return brick_in(form).key
