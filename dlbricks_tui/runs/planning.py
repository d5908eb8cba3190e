"""The models of a run, read and cut, and its plan: the jobs that the store lacks, and the levels to calibrate."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.errors import UserError
from dlbricks_tui.measure.calibration_nets import NETWORKS
from dlbricks_tui.measure.events import Event
from dlbricks_tui.measure.jobs import CutModel, Job, JobKey, cut_model
from dlbricks_tui.measure.known import known_in, with_earlier
from dlbricks_tui.measure.plan import Plan, keys_of, plan
from dlbricks_tui.measure.results import runtime_record
from dlbricks_tui.measure.time_left import TimeLeft, expected_seconds
from dlbricks_tui.models.errors import FusionRefusedError, ModelError, WrongRuntimeError
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.graph import LayerGraph, Level, Numbers, unmeasurable_layers
from dlbricks_tui.models.input_shapes import ShapeMemory, listed, spelled
from dlbricks_tui.models.library import Library, ModelSource
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runs.calibration import levels_due
from dlbricks_tui.runs.events import (
    FailedBefore,
    LayerUnmeasurable,
    LevelLowered,
    ModelLeftOut,
    ModelLoading,
    Planned,
    ShapesRemembered,
)
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.runs.results import RunCounts
from dlbricks_tui.runs.run_folder import Tally
from dlbricks_tui.runs.work import RunSession
from dlbricks_tui.runtime.errors import WorkerLostError
from dlbricks_tui.store.database import ResultsDatabase


@dataclass(frozen=True, slots=True)
class Workload:
    """The models that a run estimates, and bricks of private models."""

    models: tuple[CutModel, ...] = ()
    bricks: tuple[Job, ...] = ()


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """The jobs of a run, the levels to calibrate for them, and the time left."""

    jobs: tuple[Job, ...]
    counts: RunCounts
    levels: tuple[Level, ...]
    time_left: TimeLeft


def read_models(session: RunSession) -> Workload:
    """Return the requested models, and tell how far reading them is."""
    place = session.place
    library = Library(place.samples, place.data.path, session.request.runtime.traits.format)
    return Workload(cut_models(session.request, library, place.data.cache, session.folder.worker_log, session.tell))


def cut_models(
    request: RunRequest, library: Library, cache: Path, log: Path, tell: Callable[[Event], None]
) -> tuple[CutModel, ...]:
    """Return the models at the requested level, or at `written` where the runtime cannot fuse them.

    Models that cannot be read are left out; if none can, raise the error of the first.
    """
    sources = request.sources(library)
    models: list[CutModel] = []
    refusals: list[UserError] = []
    # Some models of Table 1 are the same network, in one file.
    known: dict[object, LayerGraph] = {}

    def tell_given(source: ModelSource, given: Mapping[str, Numbers]) -> None:
        tell(ShapesRemembered(model=source.name, shapes=spelled(given)))

    with WorkerFramework(request.runtime, log) as framework:
        loader = Loader(cache, framework, framework, ShapeMemory(library.data, tell_given))
        for number, source in enumerate(sources, start=1):
            tell(ModelLoading(model=source.name, number=number, of=len(sources)))
            network = (source.path, *source.inputs.items())
            try:
                graph = known.get(network) or _graph(loader, source, request, tell)
            except (ModelError, WorkerLostError) as refusal:
                refusals.append(refusal)
                tell(ModelLeftOut(model=source.name, reason=str(refusal)))
                continue
            known[network] = graph
            decomposition = decompose(graph.named(source.name), request.cutting, loader.cache)
            file = source.path if request.runtime.traits.runs_model_files else None
            models.append(cut_model(decomposition, file, lowered=graph.level is not request.level))
    if refusals and not models:
        raise refusals[0]
    return tuple(models)


def _graph(loader: Loader, source: ModelSource, request: RunRequest, tell: Callable[[Event], None]) -> LayerGraph:
    runtime = request.runtime
    if source.format is not runtime.traits.format:
        raise WrongRuntimeError(
            f"{source.name} is an {source.format.value} model, and runtime {runtime.name} runs those of "
            f"{runtime.traits.format.value}; choose another runtime, or none"
        )
    try:
        return _loaded(loader, source, request, request.level)
    except FusionRefusedError as refused:
        tell(LevelLowered(model=source.name, reason=str(refused)))
        return _loaded(loader, source, request, Level.WRITTEN)


def _loaded(loader: Loader, source: ModelSource, request: RunRequest, level: Level) -> LayerGraph:
    inputs, values = dict(request.inputs), dict(request.values)
    try:
        return loader.load(source, level, inputs, values)
    except WorkerLostError:
        # Another cause may have ended the worker, so try once more; a second loss is the model's fault.
        return loader.load(source, level, inputs, values)


def plan_run(session: RunSession, workload: Workload, store: ResultsDatabase) -> PlannedRun:
    """Return the jobs of a workload that have no results in the store, and report the plan."""
    request, conditions = session.request, session.conditions
    keys = keys_of(workload.models, request.end_to_end, request.method) + tuple(job.key for job in workload.bricks)
    # A resumed run goes on from its own results.
    since = session.control.state.started if request.again else ""
    known = known_in(store, conditions, keys, since)
    if request.retry_failed:
        known = replace(known, failed={})
    found = plan(workload.models, known, request.rule, request.end_to_end, workload.bricks, request.method)
    jobs = with_earlier(found.jobs, store, conditions, known)
    seconds = expected_seconds(request.method, request.rule, jobs, session.competing)
    levels = levels_due(request, workload.models, jobs, conditions, store, seconds)
    networks = len(NETWORKS) * len(levels)
    time_left = TimeLeft(networks, lambda: session.control.seconds_left, session.place.clock, session.competing)
    counts = RunCounts(_tally(found, whole=False), _tally(found, whole=True))
    for model in workload.models:
        for reason, layers in unmeasurable_layers(model.decomposition.graph).items():
            named = listed([layer.name for layer in layers])
            session.tell(LayerUnmeasurable(model=model.name, layer=named, reason=reason))
    _tell_plan(session, found, counts, time_left.total(seconds))
    session.control.count(*counts)
    store.add(session.system, runtime_record(request.runtime, session.system))
    return PlannedRun(jobs, counts, levels, time_left)


def _tell_plan(session: RunSession, found: Plan, counts: RunCounts, seconds: float) -> None:
    for job, reason in found.failed.items():
        session.tell(FailedBefore(label=job.label, reason=reason, **job.key._asdict()))
    bricks, models = counts
    session.tell(
        Planned(
            system=session.conditions.system,
            runtime=session.conditions.runtime,
            bricks=bricks.total,
            bricks_reused=bricks.reused,
            bricks_failed_before=bricks.failed,
            models=models.total,
            models_reused=models.reused,
            models_failed_before=models.failed,
            expected_seconds=seconds,
        )
    )


def _tally(plan: Plan, *, whole: bool) -> Tally:
    def count(keys: Iterable[JobKey]) -> int:
        return sum(bool(key.brick) is not whole for key in keys)

    reused, failed = count(plan.reused), count(job.key for job in plan.failed)
    return Tally(count(job.key for job in plan.jobs) + reused + failed, 0, reused, failed)
