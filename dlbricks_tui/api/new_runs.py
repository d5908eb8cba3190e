"""A run that the workbench starts: the settings that it begins with, its request, and a preview of its work."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any, NamedTuple

from dlbricks_tui.api.measuring import (
    MOST_MODELS_END_TO_END,
    MeasureOptions,
    ProbeOptions,
    probe_request,
    remarks_on_run,
    run_request,
)
from dlbricks_tui.api.open_models import Choices, ModelId, ModelSpec, id_of
from dlbricks_tui.api.session import WorkbenchSession
from dlbricks_tui.bricks.decomposition import Decomposition
from dlbricks_tui.config.config import Config
from dlbricks_tui.errors import UserError
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint, instruction_sets
from dlbricks_tui.host.noise import competing_threads
from dlbricks_tui.host.queue import host_queue, waiting_words
from dlbricks_tui.host_files import HostFiles
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.measure.jobs import Job, cut_model
from dlbricks_tui.measure.known import Known
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.plan import keys_of, plan
from dlbricks_tui.measure.results import conditions_of
from dlbricks_tui.measure.time_left import expected_seconds
from dlbricks_tui.models.graph import Level, Shape
from dlbricks_tui.models.library import ModelSource, shared_formats
from dlbricks_tui.recorded_host import recorded_host
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.runtime.errors import RegistryError
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.variant import (
    USUAL_KERNELS,
    InstructionSet,
    Optimisation,
    Precision,
    Variant,
    several,
    without_variant,
)
from dlbricks_tui.settings.cutting import CUTTING, LEVEL
from dlbricks_tui.settings.setting import fields_of
from dlbricks_tui.settings.variant import EXECUTION, PRECISION, USUAL_EXECUTION, VARIANT

# The settings that a session keeps from run to run; all others belong to the models of a run.
_GENERAL = ("method", "end_to_end", "target_interval", "time_budget_seconds", "retry_failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings(MeasureOptions):
    """The options of a run, with several values of a variant; an empty tuple is the usual value."""

    # The names of the runtimes that measure, one after another, and those to choose from.
    runtime: tuple[str, ...] = ()
    registered: tuple[str, ...] = ()
    precision: tuple[Precision, ...] = (Precision.F32,)
    end_to_end: bool = False
    target_interval: float = 0.02
    # The time of a probe, which measures only the bricks that tell most; None: an ordinary run.
    probe_seconds: float | None = None

    @property
    def offered_runtimes(self) -> tuple[tuple[str, ...], ...]:
        """Each runtime, and all of them together."""
        names = self.registered
        every = tuple((name,) for name in names)
        return (*every, names) if len(names) > 1 else every

    @property
    def offered_instructions(self) -> tuple[tuple[InstructionSet, ...], ...]:
        """Each set of this processor, and the widths of its vectors together."""
        found = [it for it in instruction_sets(HostFiles()) if it is not InstructionSet.ALL]
        widths = tuple([it for it in (InstructionSet.AVX2, InstructionSet.AVX512_CORE) if it in found])
        together = ((*widths, InstructionSet.ALL),) if widths else ()
        return (*((each,) for each in found), *together)


class WantedCombination(NamedTuple):
    """A combination to measure: a runtime by its identity or name, its variant, and the level of the layers."""

    runtime: str
    variant: Variant
    level: Level
    # True: its latency is known, and is measured again.
    again: bool = False


def exactly(settings: RunSettings, wanted: Sequence[WantedCombination], data: DataFolder) -> list[RunSettings]:
    """Return the settings of the fewest runs that measure these combinations and no others.

    Raise a RegistryError if one has no runtime on this host.
    """
    registered = {without_variant(it.identity): it.name for it in Registry(data.path).known()}
    rows: dict[WantedCombination, list[int]] = {}
    for it in wanted:
        name = registered.get(without_variant(it.runtime))
        if name is None:
            raise RegistryError(f"this host has no runtime {it.runtime}: `dlbricks runtimes` lists those it has")
        rows.setdefault(WantedCombination(name, replace(it.variant, batch=1), it.level, it.again), []).append(
            it.variant.batch
        )
    # Rows with the same batch sizes share a run; the usual number of threads has no others beside it.
    threads: dict[tuple[WantedCombination, tuple[int, ...], bool], list[int]] = {}
    for it, sizes in rows.items():
        number = it.variant.threads
        alike = it._replace(variant=replace(it.variant, threads=None))
        threads.setdefault((alike, tuple(sizes), number is None), []).extend([] if number is None else [number])
    # So do runtimes with the same rows.
    runtimes: dict[tuple[WantedCombination, tuple[int, ...], tuple[int, ...]], list[str]] = {}
    for (it, batch, _), numbers in threads.items():
        runtimes.setdefault((it._replace(runtime=""), batch, tuple(numbers)), []).append(it.runtime)
    found = []
    for (it, batch, several_threads), names in runtimes.items():
        precision, kernels = it.variant.precision, it.variant.kernels
        these = replace(
            settings,
            runtime=tuple(names),
            threads=several_threads,
            batch=batch,
            level=it.level,
            again=it.again,
            end_to_end=True,
            precision=(Precision.F32 if precision is Precision.FILE else precision,),
            instructions=() if kernels.instructions is InstructionSet.ALL else (kernels.instructions,),
            optimisation=() if kernels.optimisation is Optimisation.ALL else (kernels.optimisation,),
        )
        found.append(these)
    return found


def settings_for(
    choices: Choices,
    sources: Sequence[ModelSource],
    data: DataFolder,
    config: Config,
    last: RunSettings | None = None,
    of_session: RunSettings | None = None,
) -> RunSettings:
    """Return the initial settings: those of the last run of these models, or of the config.

    General settings are those of the session's last run. Many models are not timed end to end, which would take too
    long. The runtime has to match the format of the models.
    """
    registry = Registry(data.path)
    runtimes = runtimes_for(sources, data)
    # An unknown runtime in the config is an error.
    usual = runtimes[0] if config.runtime is None else registry.find(config.runtime).name
    before = last or RunSettings(
        runtime=(usual,),
        end_to_end=True,
        target_interval=config.target_ci,
        time_budget_seconds=config.time_budget,
        threads=() if config.threads is None else (config.threads,),
    )
    if (general := of_session or last) is not None:
        before = replace(before, **{name: getattr(general, name) for name in _GENERAL})
    # Of several runtimes of the last run, those count that run these models.
    kept_runtimes = tuple(name for name in before.runtime if name in runtimes)
    few = len(sources) <= MOST_MODELS_END_TO_END
    kept = replace(
        before,
        runtime=kept_runtimes or (next(name for name in (usual, *runtimes) if name in runtimes),),
        registered=runtimes,
        **fields_of(choices, (LEVEL, *CUTTING)),
        end_to_end=few and before.end_to_end,
        # Repeating known measurements, or a probe, applies to one run only.
        again=False,
        probe_seconds=None,
    )
    return _in_view(kept, choices, registry)


def _in_view(settings: RunSettings, choices: Choices, registry: Registry) -> RunSettings:
    """Return the settings with the variant in view, unless they have it among others."""
    threads = choices.threads
    chosen = None if choices.runtime is None else registry.with_identity(choices.runtime)
    if chosen is not None and chosen.name in settings.registered:
        threads = chosen.settings.threads if threads is None else threads
        if chosen.name not in settings.runtime:
            settings = replace(settings, runtime=(chosen.name,))
    if threads is not None and threads not in several(settings.threads):
        settings = replace(settings, threads=(threads,))
    seen: dict[str, Any] = {"batch": choices.batch, "precision": choices.precision, **asdict(choices.kernels)}
    for it in EXECUTION:
        value, usual = seen[it.field], USUAL_EXECUTION.get(it)
        if value not in (several(getattr(settings, it.field)) or (usual,)):
            # The row of the precision names the usual one.
            stated: Any = () if value is usual and it is not PRECISION else (value,)
            settings = replace(settings, **{it.field: stated})
    return settings


def registered_runtimes(data: DataFolder) -> tuple[str, ...]:
    """Return the names of all runtimes of this host."""
    return tuple([it.name for it in Registry(data.path).all()])


def runtimes_for(sources: Sequence[ModelSource], data: DataFolder) -> tuple[str, ...]:
    """Return the names of the runtimes that run all these models, the default first."""
    registry, formats = Registry(data.path), shared_formats(sources)
    usual = registry.runtime_for(formats)
    others = [it.name for it in registry.all() if it.traits.format in formats and it.name != usual.name]
    return (usual.name, *others)


def request_for(
    sources: Sequence[ModelSource],
    shapes: Mapping[ModelId, Mapping[str, Shape]],
    settings: RunSettings,
    data: DataFolder,
) -> RunRequest:
    """Return the request of a run; `shapes` are the given input shapes."""
    if settings.probe_seconds is not None:
        return _probe_request(sources, shapes, settings, settings.probe_seconds, data)
    # Without a method, programs that cannot be timed inside of networks are timed alone.
    method = Method.ALONE if settings.method is Method.ALONE else None
    return run_request(replace(settings, inputs=_inputs(sources, shapes), method=method), sources, data)


def _probe_request(
    sources: Sequence[ModelSource],
    shapes: Mapping[ModelId, Mapping[str, Shape]],
    settings: RunSettings,
    seconds: float,
    data: DataFolder,
) -> RunRequest:
    if settings.granularity > 1:
        raise JobError("a probe measures single layers: choose granularity 1")
    chosen_values = {field: several(values) for field, values in fields_of(settings, VARIANT).items()}
    if any(len(values) > 1 for values in chosen_values.values()):
        names = [it.name for it in VARIANT]
        raise JobError(f"a probe measures one combination: choose one {', '.join(names[:-1])} and {names[-1]}")
    one: dict[str, Any] = {field: next(iter(values), None) for field, values in chosen_values.items()}
    options = ProbeOptions(
        seconds=seconds,
        level=settings.level,
        method=settings.method,
        inputs=_inputs(sources, shapes),
        **one,
    )
    return probe_request(options, sources, data)


def _inputs(sources: Sequence[ModelSource], shapes: Mapping[ModelId, Mapping[str, Shape]]) -> Mapping[str, Shape]:
    given = {source.name: dict(shapes.get(id_of(source), {})) for source in sources}
    first = next(iter(given.values()), {})
    apart = [name for name, its in given.items() if its and any(its != other for other in given.values())]
    if apart:
        # The inputs of a run apply to all its models: the names of their inputs are mostly the same.
        raise JobError(f"{apart[0]} has other input shapes: run it without other models")
    return first


@dataclass(frozen=True, slots=True)
class RunPreview:
    """The work of a run, as far as its models were read before."""

    # The models of which nothing was read: the work for them is unknown.
    unread: tuple[str, ...] = ()
    # True if the work for some is taken from another format or batch size, without regard to the store.
    is_guess: bool = False
    bricks: int = 0
    whole_models: int = 0
    reused: int = 0
    failed_before: int = 0
    seconds: float = 0.0
    # The work that comes first on this host, for which it would wait.
    waits_for: str = ""
    # True if a probe chooses the bricks when it starts, so that `bricks` are the most.
    is_probe: bool = False
    # The reason why such a run cannot start.
    refusal: str = ""
    # More threads than cores, and precisions whose accuracy is not checked.
    warnings: tuple[str, ...] = ()


def preview_run(
    session: WorkbenchSession,
    sources: Sequence[ModelSource],
    shapes: Mapping[ModelId, Mapping[str, Shape]],
    settings: RunSettings,
) -> RunPreview:
    """Preview a run that would start now; models that only the framework could read are guessed, or else named."""
    try:
        request = request_for(sources, shapes, settings, session.data)
    except UserError as error:
        return RunPreview(refusal=str(error))
    ahead = () if recorded_host() is not None else host_queue().places()
    found = RunPreview(
        waits_for=waiting_words(ahead) if ahead else "",
        is_probe=request.probe_bricks is not None,
        warnings=tuple(remarks_on_run(request)),
    )
    for part in request.parts:
        form, precision, kernels = part.runtime.traits.format, part.runtime.settings.precision, part.runtime.kernels
        cutting = part.measured_cutting
        specs = [
            ModelSpec(it.in_format(form), settings.level, cutting, shapes.get(id_of(it), {}), size, precision, kernels)
            for it in sources
            for size in request.batch_sizes or (None,)
        ]
        found = _with_part(found, session, part, specs)
    budget = math.inf if request.time_budget_seconds is None else request.time_budget_seconds
    return replace(found, unread=tuple(dict.fromkeys(found.unread)), seconds=min(found.seconds, budget))


def _with_part(
    before: RunPreview, session: WorkbenchSession, request: RunRequest, specs: Sequence[ModelSpec]
) -> RunPreview:
    conditions = conditions_of(fingerprint().id, request.runtime, request.method)
    models, unread, is_guess = [], list(before.unread), before.is_guess
    jobs: list[Job] = []
    for spec in specs:
        label = f"{spec.source.name} {spec.batch_size}"
        decomposition = session.reader.decompose_cached(spec)
        if decomposition is not None:
            models.append(cut_model(decomposition, label=label))
        elif (other := _of_another_variant(session, spec)) is not None:
            is_guess = True
            larger = (spec.batch_size or other.graph.batch_size) / max(1, other.graph.batch_size)
            like_it = plan(
                [cut_model(other, label=label)], Known(), request.rule, request.end_to_end, method=request.method
            )
            jobs += [replace(job, expected_ms=larger * job.expected_ms) for job in like_it.jobs]
        else:
            unread.append(spec.source.name)
    # A run that measures everything again has no results yet.
    run = "" if request.again else None
    known = session.estimator.known(conditions, keys_of(models, request.end_to_end, request.method), run)
    if request.retry_failed:
        known = replace(known, failed={})
    found = plan(models, known, request.rule, request.end_to_end, method=request.method)
    jobs += found.jobs
    return replace(
        before,
        unread=tuple(unread),
        is_guess=is_guess,
        bricks=before.bricks + sum(not job.whole for job in jobs),
        whole_models=before.whole_models + sum(job.whole for job in jobs),
        reused=before.reused + len(found.reused),
        failed_before=before.failed_before + len(found.failed),
        seconds=before.seconds + expected_seconds(request.method, request.rule, jobs, competing_threads()),
    )


def _of_another_variant(session: WorkbenchSession, spec: ModelSpec) -> Decomposition | None:
    """Return a model in another batch size or format that was read before; None if there is none."""
    usual = replace(spec, precision=Precision.F32, kernels=USUAL_KERNELS)
    formats = (spec.source, *map(spec.source.in_format, spec.source.formats))
    for source, batch_size in product(formats, (spec.batch_size, None)):
        if (found := session.reader.decompose_cached(replace(usual, source=source, batch_size=batch_size))) is not None:
            return found
    return None
