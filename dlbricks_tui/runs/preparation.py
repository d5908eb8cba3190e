"""The models of a run, read and cut."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.errors import UserError
from dlbricks_tui.measure.events import Event
from dlbricks_tui.measure.jobs import Job, Subject, subject_of
from dlbricks_tui.measure.supervised_worker import LOST_WORKER
from dlbricks_tui.models.errors import FusionRefusedError, ModelError, WrongRuntimeError
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.graph import LayerGraph, Level, Shape
from dlbricks_tui.models.input_shapes import ShapeMemory, spelled
from dlbricks_tui.models.library import Library, ModelSource
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runs.events import LevelLowered, ModelLeftOut, ModelLoading, ShapesRemembered
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.runs.run_folder import RunFolder


@dataclass(frozen=True, slots=True)
class Workload:
    """The models that a run estimates, and bricks of private models."""

    models: tuple[Subject, ...] = ()
    bricks: tuple[Job, ...] = ()


# Returns the workload of a run once it holds the host, and tells its progress.
Preparation = Callable[[RunRequest, RunFolder, Callable[[Event], None]], Workload]


def prepare(
    request: RunRequest, library: Library, cache: Path, log: Path, tell: Callable[[Event], None]
) -> tuple[Subject, ...]:
    """Return the models at the requested level, or at `written` where the runtime cannot fuse them.

    Models that cannot be read are left out; if none can, raise the error of the first.
    """
    sources = request.sources(library)
    subjects: list[Subject] = []
    refusals: list[UserError] = []
    # Some models of Table 1 are the same network, in one file.
    known: dict[object, LayerGraph] = {}
    with WorkerFramework(request.runtime, log) as framework:
        loader = Loader(cache, framework, framework, ShapeMemory(library.data, _telling(tell)))
        for number, source in enumerate(sources, start=1):
            tell(ModelLoading(model=source.name, number=number, of=len(sources)))
            network = (source.path, *source.inputs.items())
            try:
                graph = known.get(network) or _graph(loader, source, request, tell)
            except (ModelError, *LOST_WORKER) as refusal:
                refusals.append(refusal)
                tell(ModelLeftOut(model=source.name, reason=str(refusal)))
                continue
            known[network] = graph
            decomposition = decompose(replace(graph, name=source.name), request.cutting)
            file = source.path if request.runtime.traits.runs_model_files else None
            subjects.append(subject_of(decomposition, file, lowered=graph.level is not request.level))
    if refusals and not subjects:
        raise refusals[0]
    return tuple(subjects)


def _telling(tell: Callable[[Event], None]) -> Callable[[ModelSource, Mapping[str, Shape]], None]:
    return lambda source, shapes: tell(ShapesRemembered(model=source.name, shapes=spelled(shapes)))


def _graph(loader: Loader, source: ModelSource, request: RunRequest, tell: Callable[[Event], None]) -> LayerGraph:
    try:
        return _loaded(loader, source, request.level, request)
    except FusionRefusedError as refused:
        tell(LevelLowered(model=source.name, reason=str(refused)))
        return _loaded(loader, source, Level.WRITTEN, request)


def _loaded(loader: Loader, source: ModelSource, level: Level, request: RunRequest) -> LayerGraph:
    runtime = request.runtime
    if source.format is not runtime.traits.format:
        raise WrongRuntimeError(
            f"{source.name} is an {source.format.value} model, and runtime {runtime.name} runs those of "
            f"{runtime.traits.format.value}; choose another runtime, or none"
        )
    given = dict(request.inputs)
    try:
        return loader.load(source, level, given)
    except LOST_WORKER:
        # The loss may have had another cause; a model that takes down a second worker is at fault.
        return loader.load(source, level, given)
