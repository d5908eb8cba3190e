"""The evaluation that repeats a run: its models by content, its runtimes and variants, and its results."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path

from dlbricks_tui.answers.evaluations.recorded_results import found_result
from dlbricks_tui.evaluations.errors import EvaluationError
from dlbricks_tui.evaluations.evaluation import (
    EvaluatedModel,
    EvaluatedRuntime,
    Evaluation,
    Measuring,
    RecordedResult,
    Requirements,
)
from dlbricks_tui.evaluations.matching import HostState, exact_constraint, host_state
from dlbricks_tui.evaluations.recorded_facts import tuning_variables
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.host import processor
from dlbricks_tui.host.fingerprint import UNKNOWN, fingerprint
from dlbricks_tui.host.host_files import HostFiles
from dlbricks_tui.measure.events import Event
from dlbricks_tui.measure.jobs import CutModel
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.stopping import Adaptive, FixedRuns
from dlbricks_tui.models.content import content_sha256
from dlbricks_tui.models.graph import Shape
from dlbricks_tui.models.input_shapes import ShapeMemory
from dlbricks_tui.models.library import Library, ModelSource
from dlbricks_tui.runs.planning import cut_models
from dlbricks_tui.runs.request import RunRequest, read_request
from dlbricks_tui.runs.run_folder import RunFolders, RunState
from dlbricks_tui.runs.work import KnownGraphs
from dlbricks_tui.runtime.runtime import NEWER_INSTRUCTIONS_VARIABLE, Runtime
from dlbricks_tui.runtime.variant import InstructionSet
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Fact, System
from dlbricks_tui.store.selections import by_id

_LOG = "evaluations.log"
# Such processors compute with other kernels than the others.
_TELLING_SETS = (InstructionSet.AVX2, InstructionSet.AVX512_CORE, InstructionSet.AVX512_CORE_BF16)


def evaluation_of_run(wanted: str, file: Path, data: DataFolder) -> Evaluation:
    """Return the evaluation that repeats a finished run, to be written to a file, which gives it its name."""
    folder = RunFolders(data.runs).find(wanted)
    state = folder.state()
    if state.active:
        raise EvaluationError(f"run {state.run} is {state.state.value}: wait for its end (`dlbricks runs watch`)")
    request = read_request(folder.request_file)
    if request.suite is not None:
        raise EvaluationError(
            f"run {state.run} measured a suite of private models, whose files are not here: choose a run of models"
        )
    if not state.bricks.total and not state.whole_models.total:
        raise EvaluationError(f"run {state.run} ended before it had read its models: choose another run")
    known: KnownGraphs = {}
    parts = [_ReadPart(part, _sources(part, data), _cut(part, data, known)) for part in request.parts]
    models = {
        source.path: _model(source, part.shapes_of(source), request, file, data)
        for part in parts
        for source in part.sources
    }
    system = _system_of(state, data)
    results = tuple(_results(parts, models, state, system, data))
    return Evaluation(
        name=file.name.removesuffix(".toml"),
        models=tuple(models.values()),
        runtimes=tuple(_runtimes(request)),
        measuring=_measuring(request),
        system=_requirements(request, host_state(system, processor.instruction_sets(HostFiles()))),
        results=results,
    )


@dataclass(frozen=True, slots=True)
class _ReadPart:
    """A part of a run, and its models as they are now."""

    request: RunRequest
    sources: tuple[ModelSource, ...]
    models: tuple[CutModel, ...]

    def shapes_of(self, source: ModelSource) -> Mapping[str, Shape]:
        """Return the shapes of the inputs of a model; none if it cannot be read any more."""
        graphs = (it.decomposition.graph for it in self.models if it.decomposition.graph.name == source.name)
        return {it.name: it.type.shape for graph in graphs for it in graph.inputs if it.type.shape is not None}


def _system_of(state: RunState, data: DataFolder) -> System:
    """Return the system as it was when a run measured: its settings may have changed since."""
    with ResultsDatabase(data.store) as store:
        run = by_id(store.runs()).get(state.run)
        known = None if run is None else by_id(store.systems()).get(run.system)
    return known or fingerprint()


def _sources(part: RunRequest, data: DataFolder) -> tuple[ModelSource, ...]:
    return part.sources(Library(SAMPLE_MODELS, data.path, part.runtime.traits.format))


def _model(
    source: ModelSource, shapes: Mapping[str, Shape], request: RunRequest, file: Path, data: DataFolder
) -> EvaluatedModel:
    """Return a model by its content now, with all that a stranger has to know of its inputs."""
    memory = ShapeMemory(data.path)
    # Remembered shapes count only where the file does not say them.
    recalled = memory.recall_shapes(source).items()
    remembered = {name: shape for name, shape in recalled if shapes.get(name, ())[1:] == shape[1:]}
    # A run has the same shapes for all of its models.
    given = {it.name: it.shape for it in request.inputs if it.name in shapes or not shapes}
    return EvaluatedModel(
        name=source.name,
        sha256=content_sha256(source.path),
        path=_path(source.path, file),
        inputs={**source.inputs, **remembered, **given},
        values={
            **source.values,
            **memory.recall_values(source),
            **{it.name: it.value for it in request.values},
        },
    )


def _path(model: Path, file: Path) -> str:
    """Return where a stranger finds a model: beside the file, or in the library; else where it is here."""
    if model.is_relative_to(SAMPLE_MODELS):
        return ""
    folder = file.absolute().parent
    return str(model.relative_to(folder)) if model.is_relative_to(folder) else str(model)


def _runtimes(request: RunRequest) -> Iterator[EvaluatedRuntime]:
    """Yield each runtime of a run with the values of its variants.

    It is there once if the run has each combination of the values, and else once for each variant.
    """
    alike: dict[tuple[object, ...], list[Runtime]] = {}
    for part in request.parts:
        runtime = part.runtime
        variables = tuple(sorted(tuning_variables(dict(runtime.settings.environment)).items()))
        alike.setdefault((runtime.name, runtime.framework, runtime.version, variables), []).append(runtime)
    for variants in alike.values():
        together = _stated(variants, request)
        values = (together.threads, together.precision, together.instructions, together.optimisation)
        is_product = prod(len(it) or 1 for it in values) == len(variants)
        yield from [together] if is_product else [_stated([it], request) for it in variants]


def _stated(variants: Sequence[Runtime], request: RunRequest) -> EvaluatedRuntime:
    """Return a runtime with the values of these variants of it."""
    first = variants[0]
    kernels, variables = [it.kernels for it in variants], tuning_variables(dict(first.settings.environment))
    # A limit by the newer name of oneDNN stays a variable: a stated limit would replace it.
    has_limits = len(first.traits.instruction_sets) > 1 and NEWER_INSTRUCTIONS_VARIABLE not in variables
    has_levels = len(first.traits.optimisations) > 1
    return EvaluatedRuntime(
        framework=first.framework,
        version=exact_constraint(first.version),
        threads=tuple(dict.fromkeys(it.settings.threads for it in variants if it.settings.threads)),
        batch=request.batch_sizes,
        precision=tuple(dict.fromkeys(it.settings.precision for it in variants)),
        instructions=tuple(dict.fromkeys(it.instructions for it in kernels)) if has_limits else (),
        optimisation=tuple(dict.fromkeys(it.optimisation for it in kernels)) if has_levels else (),
        variables=variables,
    )


def _measuring(request: RunRequest) -> Measuring:
    methods: set[Method] = {part.method for part in request.parts}
    rule = request.rule
    return Measuring(
        level=request.level,
        granularity=request.cutting.granularity,
        cut=request.cutting.cut,
        order=request.cutting.order,
        # Runtimes that need different methods choose them again.
        method=methods.pop() if len(methods) == 1 else None,
        bricks=request.bricks,
        end_to_end=request.end_to_end,
        target_interval=rule.target if isinstance(rule, Adaptive) else None,
        fixed_runs=rule.runs if isinstance(rule, FixedRuns) else None,
    )


def _requirements(request: RunRequest, host: HostState) -> Requirements:
    """Return what another host needs to give comparable results, as far as this host tells.

    The name of the processor is left out, so that others can repeat the evaluation. A comparison names it.
    """
    most = max(part.runtime.settings.threads or 1 for part in request.parts)
    return Requirements(
        cores=f">={min(most, host.cores)}",
        instructions=tuple([it for it in _TELLING_SETS if it in host.instructions]),
        governor="" if host.governor == UNKNOWN else host.governor,
        turbo=host.turbo,
        hyper_threading=host.hyper_threading,
    )


def _results(
    parts: Sequence[_ReadPart],
    models: Mapping[Path, EvaluatedModel],
    state: RunState,
    system: System,
    data: DataFolder,
) -> Iterator[RecordedResult]:
    """Yield what the store has of each model in each combination, up to the end of the run."""
    for part in parts:
        by_name = {source.name: models[source.path] for source in part.sources}
        for model in part.models:
            wanted = by_name[model.decomposition.graph.name]
            with ResultsDatabase(data.store) as store:
                found = found_result(
                    store, part.request, model, wanted.name, wanted.sha256, system, until=state.changed
                )
            if found.timed is not None and found.provenance is not None:
                _refuse_changed(dict(found.provenance.models).get(model.key), wanted, state)
            if found.recorded.measured_ms is not None or found.recorded.estimate_ms is not None:
                yield replace(found.recorded, when=found.recorded.when or state.changed)


def _cut(part: RunRequest, data: DataFolder, known: KnownGraphs) -> tuple[CutModel, ...]:
    library = Library(SAMPLE_MODELS, data.path, part.runtime.traits.format)
    return cut_models(part, library, data.cache, data.log / _LOG, _ignore, known=known)


def _ignore(_: Event) -> None:
    """Ignore the events of reading: the run has told them."""


def _refuse_changed(then: Fact, model: EvaluatedModel, state: RunState) -> None:
    if then and then != model.sha256:
        raise EvaluationError(
            f"the file of {model.name} has changed since run {state.run}: measure it again, and write the evaluation "
            "of that run"
        )
