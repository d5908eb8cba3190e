"""The settings of a run, and the request that follows from them."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from dlbricks_tui.answers.measuring import MOST_MODELS_END_TO_END, MeasureOptions, run_request
from dlbricks_tui.answers.probing import ProbeOptions, probe_request
from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.config.config import Config
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host import processor
from dlbricks_tui.host.host_files import HostFiles
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.graph import Level, Shape
from dlbricks_tui.models.library import ModelSource, shared_formats
from dlbricks_tui.runs.errors import RunError
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.runtime.errors import RegistryError
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import MOST_THREADS
from dlbricks_tui.runtime.variant import (
    CHOSEN_PRECISIONS,
    MOST_IN_A_BATCH,
    USUAL_KERNELS,
    InstructionSet,
    Optimisation,
    Precision,
    stated_threads,
)
from dlbricks_tui.tui.choices import BATCH_SIZES, Choices, next_of, with_own
from dlbricks_tui.tui.open_model import ModelId, id_of
from dlbricks_tui.wording.numbers import duration, percent

TARGETS = (0.005, 0.01, 0.02, 0.05)
# Each alone, and the usual one beside each of the others.
PRECISIONS = (
    *((each,) for each in CHOSEN_PRECISIONS),
    *((Precision.F32, each) for each in CHOSEN_PRECISIONS if each is not Precision.F32),
)
# No limit, each level, and all of them together.
OPTIMISATIONS = ((), *((each,) for each in Optimisation if each is not Optimisation.ALL), tuple(Optimisation))
_CORES = os.cpu_count() or 1
PROBES_SECONDS = (20.0, 60.0)
BUDGETS_SECONDS = (60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 14400.0)


@dataclass(frozen=True, slots=True)
class RunSettings:
    """The settings of a run."""

    choices: Choices
    # The names of the runtimes that measure, one after another, and those to choose from.
    chosen: tuple[str, ...]
    runtimes: tuple[str, ...]
    # None is the default method.
    method: Method | None = None
    end_to_end: bool = False
    target: float = 0.01
    budget_seconds: float | None = None
    # The time of a probe, which measures only the bricks that tell most; None: an ordinary run.
    probe_seconds: float | None = None
    threads: tuple[int, ...] = ()
    batch_sizes: tuple[int, ...] = ()
    precisions: tuple[Precision, ...] = (Precision.F32,)
    # The limits on the kernels; none: without a limit.
    instructions: tuple[InstructionSet, ...] = ()
    optimisations: tuple[Optimisation, ...] = ()
    retry_failed: bool = False
    again: bool = False

    def stepped(self, name: str, values: Sequence[Any], step: int) -> "RunSettings":
        """Return the settings with one of them at the next of its values."""
        return self.with_value(name, next_of(tuple(values), getattr(self, name), step))

    def with_value(self, name: str, value: Any) -> "RunSettings":
        """Return the settings with another value of one of them."""
        return replace(self, **{name: value})

    def with_choices(self, **changed: Any) -> "RunSettings":
        """Return the settings with other choices."""
        return replace(self, choices=replace(self.choices, **changed))


class RunSetting(Enum):
    """A setting by the name of its row: its meaning, its value as text, and a step to its next or previous value."""

    LEVEL = (
        "level",
        "fused layers, or those of the file",
        lambda it: it.choices.level.value,
        lambda it, step: it.with_choices(level=next_of(tuple(Level), it.choices.level, step)),
    )
    GRANULARITY = (
        "granularity",
        "the most layers of a brick",
        lambda it: f"{it.choices.granularity}",
        lambda it, step: replace(it, choices=it.choices.with_granularity(it.choices.granularity + step)),
    )
    CUT = (
        "cut",
        "windows of layers that are bricks",
        lambda it: it.choices.cut.value,
        lambda it, step: it.with_choices(cut=next_of(tuple(Cut), it.choices.cut, step)),
    )
    METHOD = (
        "method",
        "bricks inside of networks, or alone",
        lambda it: "usual" if it.method is None else it.method.value,
        lambda it, step: it.stepped("method", (None, *Method), step),
    )
    END_TO_END = (
        "end to end",
        "whole models too, as a check",
        lambda it: "yes" if it.end_to_end else "no",
        lambda it, _: replace(it, end_to_end=not it.end_to_end),
    )
    TARGET = (
        "target interval",
        "interval at which a brick is done",
        lambda it: f"±{percent(it.target, 1)}",
        lambda it, step: it.stepped("target", with_own(TARGETS, it.target), step),
    )
    BUDGET = (
        "time budget",
        "stop after this time",
        lambda it: "none" if it.budget_seconds is None else duration(it.budget_seconds),
        lambda it, step: it.stepped("budget_seconds", (None, *with_own(BUDGETS_SECONDS, it.budget_seconds)), step),
    )
    PROBE = (
        "probe",
        "few bricks; the others are predicted",
        lambda it: "no" if it.probe_seconds is None else duration(it.probe_seconds),
        lambda it, step: it.stepped("probe_seconds", (None, *PROBES_SECONDS), step),
    )
    RUNTIME = (
        "runtime",
        "the runtime that runs the bricks",
        lambda it: ",".join(it.chosen),
        lambda it, step: it.stepped("chosen", _each_and_all(it.runtimes), step),
    )
    THREADS = (
        "threads",
        "the threads of the framework",
        lambda it: _listed(it.threads) or "default",
        lambda it, step: it.stepped("threads", _threads(it.threads), step),
        ("threads", MOST_THREADS),
    )
    BATCH = (
        "batch size",
        "images or sentences in an inference",
        lambda it: _listed(it.batch_sizes) or "of the file",
        lambda it, step: it.stepped("batch_sizes", _batches(it.batch_sizes), step),
        ("batch_sizes", MOST_IN_A_BATCH),
    )
    PRECISION = (
        "precision",
        "int8 quantises a copy of the model",
        lambda it: ",".join(each.value for each in it.precisions),
        lambda it, step: it.stepped("precisions", PRECISIONS, step),
    )
    INSTRUCTIONS = (
        "instructions",
        "widest vectors of MXNet, OpenVINO",
        lambda it: _listed_values(it.instructions),
        lambda it, step: it.stepped("instructions", _instruction_sets(), step),
    )
    OPTIMISATION = (
        "optimisation",
        "of graphs in ONNX Runtime",
        lambda it: _listed_values(it.optimisations),
        lambda it, step: it.stepped("optimisations", OPTIMISATIONS, step),
    )
    KNOWN = (
        "known before",
        "bricks that were measured before",
        lambda it: "run again" if it.again else "leave out",
        lambda it, _: replace(it, again=not it.again),
    )
    RETRY = (
        "failed before",
        "bricks that failed in an earlier run",
        lambda it: "try again" if it.retry_failed else "leave out",
        lambda it, _: replace(it, retry_failed=not it.retry_failed),
    )

    def __init__(
        self,
        label: str,
        meaning: str,
        shown: Callable[[RunSettings], str],
        changed: Callable[[RunSettings, int], RunSettings],
        numbers: tuple[str, int] | None = None,
    ) -> None:
        self.label = label
        self.meaning = meaning
        self.shown = shown
        self.changed = changed
        # The field of a setting that takes several numbers, and the largest of them.
        self.numbers = numbers


def _listed_values(limits: Sequence[InstructionSet | Optimisation]) -> str:
    return ",".join(each.value for each in limits) or InstructionSet.ALL.value


def _instruction_sets() -> tuple[tuple[InstructionSet, ...], ...]:
    """Return no limit, each set of this processor, and the widths of its vectors together."""
    found = [it for it in processor.instruction_sets(HostFiles()) if it is not InstructionSet.ALL]
    widths = tuple([it for it in (InstructionSet.AVX2, InstructionSet.AVX512_CORE) if it in found])
    together = ((*widths, InstructionSet.ALL),) if widths else ()
    return ((), *((each,) for each in found), *together)


def _listed(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers))


def _each_and_all(names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    every = tuple((name,) for name in names)
    return (*every, tuple(names)) if len(names) > 1 else every


def _threads(own: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Return the default, each number of threads up to the cores, and powers of two together, with the user's own."""
    doubled = tuple(2**power for power in range(_CORES.bit_length()))
    return _offered(range(1, _CORES + 1), (doubled,) if len(doubled) > 1 else (), own)


def _batches(own: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Return the batch size of the file, single ones, and several together, with the user's own."""
    return _offered(BATCH_SIZES, (BATCH_SIZES[:4], BATCH_SIZES), own)


def _offered(
    single: Iterable[int], together: tuple[tuple[int, ...], ...], own: tuple[int, ...]
) -> tuple[tuple[int, ...], ...]:
    numbers = with_own(single, own[0] if len(own) == 1 else None)
    lists = (*together, own) if len(own) > 1 and own not in together else together
    return ((), *((number,) for number in numbers), *lists)


def settings_for(
    choices: Choices, sources: Sequence[ModelSource], data: DataFolder, config: Config, last: RunSettings | None = None
) -> RunSettings:
    """Return the initial settings: those of the last run, or of the config.

    Many models are not timed end to end, which would take too long. The runtime has to match the format of the models.
    """
    registry = Registry(data.path)
    runtimes = runtimes_for(registry, sources)
    before = last or _first(choices, registry, runtimes, config)
    # Of several runtimes of the last run, those count that run these models.
    kept_runtimes = tuple(name for name in before.chosen if name in runtimes)
    chosen = kept_runtimes or (next(name for name in (config.runtime, *runtimes) if name in runtimes),)
    few = len(sources) <= MOST_MODELS_END_TO_END
    # Repeating known measurements, or a probe, applies to one run only.
    kept = replace(before, end_to_end=few and before.end_to_end, again=False, probe_seconds=None)
    return _in_view(replace(kept, choices=choices, chosen=chosen, runtimes=runtimes))


def _in_view(settings: RunSettings) -> RunSettings:
    """Return the settings with the variant in view, unless they have it among others."""
    batch, threads, precision = settings.choices.batch, settings.choices.threads, settings.choices.precision
    if precision not in settings.precisions:
        settings = replace(settings, precisions=(precision,))
    if threads is not None and threads not in settings.threads:
        settings = replace(settings, threads=(threads,))
    if batch not in (settings.batch_sizes or (None,)):
        settings = replace(settings, batch_sizes=() if batch is None else (batch,))
    kernels = settings.choices.kernels
    instructions, optimisation = kernels.instructions, kernels.optimisation
    if instructions not in (settings.instructions or (USUAL_KERNELS.instructions,)):
        limits = () if instructions is USUAL_KERNELS.instructions else (instructions,)
        settings = replace(settings, instructions=limits)
    if optimisation not in (settings.optimisations or (USUAL_KERNELS.optimisation,)):
        levels = () if optimisation is USUAL_KERNELS.optimisation else (optimisation,)
        settings = replace(settings, optimisations=levels)
    return settings


def choices_after(settings: RunSettings, data: DataFolder) -> Choices:
    """Return the choices of a run that show what it measures: the files, a batch size and a number of threads."""
    registry, shown = Registry(data.path), settings.choices
    measured = registry.find(settings.chosen[0]).traits.format
    if measured is not (shown.format or registry.preferred_format):
        shown = replace(shown, runtime=None, format=measured)
    sizes, threads = settings.batch_sizes or (None,), settings.threads or (None,)
    if shown.precision not in settings.precisions:
        shown = shown.of_precision(settings.precisions[0])
    if shown.batch not in sizes:
        shown = replace(shown, batch=sizes[0])
    of_runtime = shown.threads if shown.runtime is None else stated_threads(shown.runtime)
    if of_runtime not in threads:
        shown = replace(shown, threads=threads[0], runtime=None)
    return _with_kernels(shown, settings, registry)


def _with_kernels(shown: Choices, settings: RunSettings, registry: Registry) -> Choices:
    """Return choices with the first limits on kernels that a run measures, unless they have some of these limits."""
    instructions = settings.instructions or (USUAL_KERNELS.instructions,)
    optimisations = settings.optimisations or (USUAL_KERNELS.optimisation,)
    kernels = shown.kernels
    if kernels.instructions in instructions and kernels.optimisation in optimisations:
        return shown
    limits = settings.instructions[:1] or (None,), settings.optimisations[:1] or (None,)
    # The run itself refuses what its runtime lacks.
    with suppress(RegistryError):
        usual = registry.find(settings.chosen[0]).with_precision(shown.precision).with_threads(shown.threads)
        runtime = usual.with_kernels(limits[0][0], limits[1][0])
        shown = replace(shown, runtime=runtime.identity, threads=None, format=runtime.traits.format)
    return shown


def request_for(
    sources: Sequence[ModelSource],
    shapes: Mapping[ModelId, Mapping[str, Shape]],
    settings: RunSettings,
    data: DataFolder,
) -> RunRequest:
    """Return the request of a run; `shapes` are the given input shapes."""
    if settings.probe_seconds is not None:
        return _probe_request(sources, shapes, settings, settings.probe_seconds, data)
    choices = settings.choices
    options = MeasureOptions(
        granularity=choices.granularity,
        level=choices.level,
        cut=choices.cut,
        order=choices.order,
        inputs=_inputs(sources, shapes),
        end_to_end=settings.end_to_end,
        runtime=settings.chosen,
        threads=settings.threads,
        batch=settings.batch_sizes,
        precision=settings.precisions,
        instructions=settings.instructions,
        optimisation=settings.optimisations,
        target_interval=settings.target,
        time_budget_seconds=settings.budget_seconds,
        retry_failed=settings.retry_failed,
        again=settings.again,
    )
    request = run_request(options, sources, data)
    if settings.method is not Method.ALONE:
        # Programs that cannot be timed inside of networks are timed alone.
        return request
    others = tuple(it._replace(method=Method.ALONE) for it in request.others)
    return replace(request, method=Method.ALONE, others=others)


def _probe_request(
    sources: Sequence[ModelSource],
    shapes: Mapping[ModelId, Mapping[str, Shape]],
    settings: RunSettings,
    seconds: float,
    data: DataFolder,
) -> RunRequest:
    choices = settings.choices
    if choices.granularity > 1:
        raise RunError("a probe measures single layers: choose granularity 1")
    axes = (settings.chosen, settings.threads, settings.batch_sizes, settings.precisions)
    if any(len(values) > 1 for values in (*axes, settings.instructions, settings.optimisations)):
        raise RunError(
            "a probe measures one combination: choose one runtime, threads, batch size, precision, instructions and "
            "optimisation"
        )
    options = ProbeOptions(
        seconds=seconds,
        level=choices.level,
        method=settings.method,
        runtime=settings.chosen[0],
        threads=next(iter(settings.threads), None),
        batch=next(iter(settings.batch_sizes), None),
        precision=settings.precisions[0],
        instructions=next(iter(settings.instructions), None),
        optimisation=next(iter(settings.optimisations), None),
        inputs=_inputs(sources, shapes),
    )
    return probe_request(options, sources, data)


def runtimes_for(registry: Registry, sources: Sequence[ModelSource]) -> tuple[str, ...]:
    """Return the runtimes that run all these models, the default first."""
    formats = shared_formats(sources)
    usual = registry.runtime_for(formats)
    others = [it.name for it in registry.all() if it.traits.format in formats and it.name != usual.name]
    return (usual.name, *others)


def _first(choices: Choices, registry: Registry, runtimes: tuple[str, ...], config: Config) -> RunSettings:
    # An unknown runtime in the config is an error.
    runtime = runtimes[0] if config.runtime is None else registry.find(config.runtime).name
    return RunSettings(
        choices,
        (runtime,),
        runtimes,
        end_to_end=True,
        target=config.target_ci,
        budget_seconds=config.time_budget,
        threads=() if config.threads is None else (config.threads,),
    )


def _inputs(sources: Sequence[ModelSource], shapes: Mapping[ModelId, Mapping[str, Shape]]) -> Mapping[str, Shape]:
    given = {source.name: dict(shapes.get(id_of(source), {})) for source in sources}
    first = next(iter(given.values()), {})
    apart = [name for name, its in given.items() if its and any(its != other for other in given.values())]
    if apart:
        # The inputs of a run apply to all its models: the names of their inputs are mostly the same.
        raise RunError(f"{apart[0]} has other input shapes: run it without other models")
    return first
