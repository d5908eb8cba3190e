"""The evaluation that repeats a run: its models by content, its runtimes and variants, and its results."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path
from typing import Any

from dlbricks_tui.api.documents import taken
from dlbricks_tui.bricks.identity import end_to_end_keys
from dlbricks_tui.estimate.estimate import Options
from dlbricks_tui.estimate.inquiry import Inquiry
from dlbricks_tui.estimate.lookup import whole_latency
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.evaluations.baseline import facts_of_host, is_told, package_facts, tuning_variables
from dlbricks_tui.evaluations.evaluation import (
    EvaluatedModel,
    EvaluatedRuntime,
    Evaluation,
    EvaluationError,
    Measuring,
    RecordedResult,
    Requirements,
)
from dlbricks_tui.evaluations.matching import exact_constraint, switch_in
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.host.fingerprint import fingerprint, instruction_sets
from dlbricks_tui.host_files import HostFiles
from dlbricks_tui.jobs.folder import JobState, RunFolders
from dlbricks_tui.measure.jobs import CutModel
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.results import conditions_of
from dlbricks_tui.measure.stopping import Adaptive, FixedRuns
from dlbricks_tui.models.content import content_sha256
from dlbricks_tui.models.graph import Shape
from dlbricks_tui.models.input_shapes import ShapeMemory
from dlbricks_tui.models.library import Library, ModelSource
from dlbricks_tui.runs.planning import Models, cut_models, read_parts
from dlbricks_tui.runs.request import RunRequest, read_request
from dlbricks_tui.runs.work import KnownGraphs
from dlbricks_tui.runtime.runtime import NEWER_INSTRUCTIONS_VARIABLE, Runtime
from dlbricks_tui.runtime.variant import AskedVariant, InstructionSet, Precision, stated_threads, stated_variant
from dlbricks_tui.settings.variant import INSTRUCTIONS, KERNELS, OPTIMISATION
from dlbricks_tui.store.columns import Summary
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Provenance, System
from dlbricks_tui.store.selections import LEAST_FIRST, Way, by_id, equal

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
    models: dict[Path, EvaluatedModel] = {}
    results: list[RecordedResult] = []
    with ResultsDatabase(data.store) as store:
        # The settings of the system may have changed since.
        run = by_id(store.runs()).get(state.run)
        system = (None if run is None else by_id(store.systems()).get(run.system)) or fingerprint()

    def library_of(part: RunRequest) -> Library:
        return Library(SAMPLE_MODELS, data.path, part.runtime.traits.format)

    def read(part: RunRequest) -> Models:
        return cut_models(part, library_of(part), data.cache, data.log / _LOG, lambda _: None, known=known)

    for part, cut in zip(request.parts, read_parts(request.parts, read), strict=True):
        graphs = {it.decomposition.graph.name: it.decomposition.graph for it in cut}
        sources = part.sources(library_of(part))
        for source in sources:
            # There are no shapes if it cannot be read any more.
            inputs = graphs[source.name].inputs if source.name in graphs else ()
            shapes = {it.name: it.type.shape for it in inputs if it.type.shape is not None}
            models[source.path] = _model(source, shapes, request, file, data)
        by_name = {source.name: models[source.path] for source in sources}
        results += _results(part, [(by_name[it.decomposition.graph.name], it) for it in cut], state, system, data)
    return Evaluation(
        name=file.name.removesuffix(".toml"),
        models=tuple(models.values()),
        runtimes=tuple(_runtimes(request)),
        measuring=_measuring(request),
        system=_requirements(request, system),
        results=tuple(results),
    )


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
        values={**source.values, **memory.recall_values(source), **{it.name: it.value for it in request.values}},
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
        is_product = len(replace(together, batch=None).each(AskedVariant())) == len(variants)
        yield from [together] if is_product else [_stated([it], request) for it in variants]


def _stated(variants: Sequence[Runtime], request: RunRequest) -> EvaluatedRuntime:
    """Return a runtime with the values of these variants of it."""
    first = variants[0]
    variables = tuning_variables(dict(first.settings.environment))
    stated = [stated_variant(it.identity).parts for it in variants]
    # A limit by the newer name of oneDNN stays a variable: a stated limit would replace it.
    has_limits = len(first.traits.instruction_sets) > 1 and NEWER_INSTRUCTIONS_VARIABLE not in variables
    has = {INSTRUCTIONS: has_limits, OPTIMISATION: len(first.traits.optimisations) > 1}
    values = {it.field: tuple(dict.fromkeys(each[it.field] for each in stated)) for it in KERNELS if has[it]}
    return EvaluatedRuntime(
        framework=first.framework,
        version=exact_constraint(first.version),
        threads=tuple(dict.fromkeys(it.settings.threads for it in variants if it.settings.threads)),
        batch=request.batch_sizes,
        precision=tuple(dict.fromkeys(it.settings.precision for it in variants)),
        variables=variables,
        **values,
    )


def _measuring(request: RunRequest) -> Measuring:
    methods: set[Method] = {part.method for part in request.parts}
    rule = request.rule
    return taken(
        Measuring,
        request,
        request.cutting,
        # Runtimes that need different methods choose them again.
        method=methods.pop() if len(methods) == 1 else None,
        target_interval=rule.target if isinstance(rule, Adaptive) else None,
        fixed_runs=rule.runs if isinstance(rule, FixedRuns) else None,
    )


def _requirements(request: RunRequest, system: System) -> Requirements:
    """Return what another host needs to give comparable results, as far as this host tells.

    The name of the processor is left out, so that others can repeat the evaluation. A comparison names it.
    """
    most = max(part.runtime.settings.threads or 1 for part in request.parts)
    facts, instructions = dict(system.facts), instruction_sets(HostFiles())
    governor = facts.get("governor")
    return Requirements(
        cores=f">={min(most, system.cores_to_use)}",
        instructions=tuple([it for it in _TELLING_SETS if it in instructions]),
        governor=str(governor) if is_told(governor) else "",
        turbo=switch_in(facts, "turbo"),
        hyper_threading=switch_in(facts, "hyper_threading"),
    )


def _results(
    part: RunRequest,
    models: Sequence[tuple[EvaluatedModel, CutModel]],
    state: JobState,
    system: System,
    data: DataFolder,
) -> Iterator[RecordedResult]:
    """Yield what the store has of each model in a combination, up to the end of the run."""
    for wanted, model in models:
        with ResultsDatabase(data.store) as store:
            found = found_result(store, part, model, wanted.name, wanted.sha256, system, until=state.changed)
        if found.timed is not None and found.provenance is not None:
            then = dict(found.provenance.models).get(model.key)
            if then and then != wanted.sha256:
                raise EvaluationError(
                    f"the file of {wanted.name} has changed since run {state.run}: measure it again, and write the "
                    "evaluation of that run"
                )
        if found.recorded.measured_ms is not None or found.recorded.estimate_ms is not None:
            yield replace(found.recorded, when=found.recorded.when or state.changed)


@dataclass(frozen=True, slots=True)
class FoundResult:
    """A model in one combination, as the store has it, and where the result comes from."""

    recorded: RecordedResult
    found: SystemEstimate
    # None if the whole model was not timed.
    timed: Summary | None
    # None if an older version measured it.
    provenance: Provenance | None


def found_result(
    store: ResultsDatabase,
    part: RunRequest,
    model: CutModel,
    name: str,
    sha256: str,
    system: System | None = None,
    until: str | None = None,
) -> FoundResult:
    """Return what the store has of a model by the runtime of a part of a run; the result gets the name.

    The results are those of this host, or of a system. The end-to-end result is the newest one, or the newest one up
    to a time.
    """
    system = system or fingerprint()
    conditions = conditions_of(system.id, part.runtime, part.method)
    way = conditions.at(model.decomposition.graph.level)
    inquiry = Inquiry(store, model.decomposition, Options(measured_only=True))
    found = inquiry.by(way)
    if until is None:
        timed = inquiry.timed(way)
    else:
        earlier = [it for it in timed_by(store, model, way) if it.when <= until]
        timed = max(earlier, key=attrgetter("precedence"), default=None)
    origin = _origin(store, way, None if timed is None else timed.run)
    estimated = found.estimate.composed if found.estimate.coverage.complete else None
    recorded = RecordedResult(
        model=name,
        framework=part.runtime.framework,
        version=part.runtime.version,
        variables=tuning_variables(dict(part.runtime.settings.environment)),
        **found.variant.parts | {"threads": stated_threads(part.runtime.identity)},
        when=timed.when if timed is not None else origin.when if origin is not None else "",
        **_latencies_of(store, timed),
        estimate_ms=None if estimated is None else estimated.sequential_ms,
        estimate_low_ms=None if estimated is None else estimated.latency.low_ms,
        estimate_high_ms=None if estimated is None else estimated.latency.high_ms,
        packages=package_facts(origin, way.protocol),
        host=facts_of_host(system, origin),
        sha256=sha256,
    )
    return FoundResult(recorded, found, timed, origin)


def results_in_other_variants(
    store: ResultsDatabase, model: CutModel, name: str, framework: str
) -> Iterator[RecordedResult]:
    """Yield the newest end-to-end result of a model by a framework in each variant, on this system or one like it.

    At other batch sizes a model has other keys, so it is also sought by its name in the library.
    """
    here, systems, runtimes = fingerprint(), by_id(store.systems()), by_id(store.runtimes())
    graph = model.decomposition.graph
    levels = {graph.level, model.whole.level}
    found: dict[tuple[str, str, int], Summary] = {}
    for subject in (*(equal(model=key) for key in end_to_end_keys(graph).values()), equal(name=graph.name)):
        for each in store.select(subject & equal(of="model", good=True), order=LEAST_FIRST).summaries():
            system = systems.get(each.system)
            # Another governor or number of cores makes another system of the same processor.
            is_alike = each.system == here.id or (system is not None and system.cpu == here.cpu)
            if is_alike and each.runtime.startswith(f"{framework}-") and each.level in levels:
                variant = (each.system, each.runtime, each.batch_size)
                found[variant] = max(each, found.get(variant, each), key=attrgetter("precedence"))
    for each in found.values():
        way = Way(each.system, each.runtime, each.level, each.protocol)
        origin, stored = _origin(store, way, each.run), runtimes.get(each.runtime)
        version = each.runtime.split(" ")[0].partition("-")[2] if stored is None else stored.version
        settings = {} if stored is None else dict(stored.settings)
        how = stated_variant(each.runtime, each.batch_size)
        if how.precision is Precision.F32 and graph.is_quantised:
            how = replace(how, precision=Precision.FILE)
        yield RecordedResult(
            model=name,
            framework=framework,
            version=version,
            variables=tuning_variables(settings),
            **how.parts,
            when=each.when,
            **_latencies_of(store, each),
            packages=package_facts(origin, each.protocol),
            host=facts_of_host(systems.get(each.system, here), origin),
            sha256="" if origin is None else str(dict(origin.models).get(each.model) or ""),
        )


def timed_by(store: ResultsDatabase, model: CutModel, way: Way) -> Iterator[Summary]:
    """Yield the good end-to-end results of a model."""
    of_way = equal(of="model", good=True, system=way.system, runtime=way.runtime, protocol=way.protocol)
    for level, key in end_to_end_keys(model.decomposition.graph).items():
        yield from store.select(of_way & equal(model=key, level=level.value), order=LEAST_FIRST).summaries()


def _latencies_of(store: ResultsDatabase, timed: Summary | None) -> dict[str, Any]:
    if timed is None:
        return {}
    measured_ms, low_ms, high_ms = whole_latency(timed)
    # Those behind the warm-up, of which the latency is.
    samples_ms = store.samples_ms(timed)[-timed.samples :]
    return {"measured_ms": measured_ms, "low_ms": low_ms, "high_ms": high_ms, "samples_ms": samples_ms}


def _origin(store: ResultsDatabase, way: Way, run: str | None) -> Provenance | None:
    """Return where a result comes from; without a run, where the newest results of the way come from."""
    if run is not None:
        return store.provenance_of(run, way.runtime)
    found = store.least_first(Provenance, equal(system=way.system, runtime=way.runtime, protocol=way.protocol))
    return next(reversed(found), None)
