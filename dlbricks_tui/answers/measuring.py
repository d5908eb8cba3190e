"""Options of a run, its batch sizes, and the request that follows from them."""

import json
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from tinydb import where

from dlbricks_tui.answers.opening import CutOptions
from dlbricks_tui.bricks.identity import brick_in
from dlbricks_tui.estimate.parts import Part
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host import processor
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.host_files import HostFiles
from dlbricks_tui.host.queue import host_queue
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.jobs.folder import RunFolder, State
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.stopping import Adaptive, FixedRuns, StoppingRule
from dlbricks_tui.measure.supervised_worker import TimeLimits
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import ModelSource, shared_formats
from dlbricks_tui.runs.control import create_run
from dlbricks_tui.runs.request import (
    InputShape,
    InputValue,
    RunLimits,
    RunRequest,
    RuntimeChoice,
    can_be_alone,
    can_be_inside,
    chosen,
    read_request,
    usual_method,
    write_request,
)
from dlbricks_tui.runs.run import RunOutcome, read_outcome
from dlbricks_tui.runs.work import Workplace
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.runtime.variant import AskedVariant, AskedVariants, InstructionSet, Precision, remarks_on, several
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
from dlbricks_tui.wording.numbers import too_many_threads

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


@dataclass(frozen=True, slots=True)
class RunJob:
    """A run of a data folder, to carry out in this process or in one of its own."""

    folder: RunFolder
    request: RunRequest
    data: DataFolder

    @classmethod
    def create(cls, request: RunRequest, data: DataFolder) -> "RunJob":
        """Return a new run; refuse it where the store cannot be used."""
        return cls(create_run(request, data), request, data)

    def execute(self, take: Callable[[Event], None] | None, spent_seconds: float = 0.0) -> RunOutcome:
        """Carry it out in this process; so many seconds of its time budget are spent."""
        # Loaded here: other runs need no suites.
        from dlbricks_tui.share.suites.running import execute_any

        place = Workplace(self.data, spent_seconds=spent_seconds)
        return execute_any(self.folder, self.request, place, host_queue(), take)

    def start_detached(self) -> None:
        """Carry it out in a process of its own."""
        from dlbricks_tui.share.suites.running import start_detached

        start_detached(self.folder, self.data)


def resumed_run(folder: RunFolder, data: DataFolder, budget: float | None = None) -> RunJob | None:
    """Return a run that has ended early, to carry it out again; None after a paused one was told to go on.

    `budget` is another time budget in seconds, without an end if it is infinite. JobError is raised if nothing of the
    run is missing, or if another process works on it.
    """
    state = folder.state()
    if not state.active:
        request = read_request(folder.request_file)
        is_whole = state.state is State.FINISHED and state.bricks.is_complete and state.whole_models.is_complete
        # A run with a budget may have planned a part only.
        if is_whole and request.time_budget_seconds is None and budget is None:
            # Its tally is the record of what it has done.
            again = "`dlbricks run MODEL --again` measures anew"
            raise JobError(f"run {folder.run} is finished, and nothing of it is missing: {again}")
        if budget is not None:
            # Stored for a separate process, and for the next time.
            request = replace(request, time_budget_seconds=None if math.isinf(budget) else budget)
            write_request(folder.request_file, request)
        return RunJob(folder, request, data)
    if budget is not None:
        raise JobError(f"run {folder.run} is {state.state.value}: cancel it before you resume it with another budget")
    if state.state is State.PAUSED or folder.pause_file.exists():
        folder.unpause()
        return None
    raise JobError(f"run {folder.run} is {state.state.value} already; `dlbricks runs watch {folder.run}` shows it")


def outcome_of(folder: RunFolder, data: DataFolder) -> RunOutcome:
    """Return the outcome of a run that has ended: its models are read again."""
    return read_outcome(folder, data)


def remarks_on_run(request: RunRequest) -> list[str]:
    """Return what a user should know of the threads and precisions of a run."""
    settings = [part.runtime.settings for part in request.parts]
    return variant_remarks((it.threads for it in settings), (it.precision for it in settings))


def variant_remarks(threads: Iterable[int | None], precisions: Iterable[Precision] = ()) -> list[str]:
    """Return what a user should know before models run with these numbers of threads, in these precisions."""
    warning = too_many_threads(threads, fingerprint().cores)
    return [*([warning] if warning else []), *remarks_on(precisions)]


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
