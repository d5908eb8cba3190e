"""The work of a fleet: the models as they are cut at home, and what travels for them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from dlbricks_tui.errors import UserError
from dlbricks_tui.fleet.errors import FleetError
from dlbricks_tui.fleet.events import ModelLeftOut
from dlbricks_tui.fleet.messages import Parcel
from dlbricks_tui.fleet.parcels import parcel_of
from dlbricks_tui.fleet.validation import Wanted
from dlbricks_tui.measure.events import Event
from dlbricks_tui.measure.jobs import CutModel
from dlbricks_tui.measure.plan import is_run
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import Library
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runs import events
from dlbricks_tui.runs.planning import cut_models
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.store.labels import label_of


@dataclass(frozen=True)
class TravellingModel:
    """A model as it is cut at home, the parcel that holds its bricks, and their keys."""

    model: CutModel
    parcel: Parcel

    @cached_property
    def bricks(self) -> Mapping[str, Wanted]:
        """The bricks that hosts measure, by key."""
        graph = self.model.decomposition.graph
        return {
            it.brick.key: Wanted(it.brick.canonical, graph.level, label_of(it.brick.canonical))
            for it in self.model.decomposition.occurrences
            if is_run(graph, it)
        }


@dataclass(frozen=True)
class Part:
    """The models of one runtime in one variant."""

    request: RunRequest
    models: tuple[TravellingModel, ...]

    @cached_property
    def bricks(self) -> Mapping[str, Wanted]:
        """The bricks of all models, by key."""
        return {key: wanted for it in self.models for key, wanted in it.bricks.items()}

    @cached_property
    def parcels(self) -> Mapping[str, Parcel]:
        """The parcels of all models, by hash: models of equal layers share one."""
        return {it.parcel.sha256: it.parcel for it in self.models}

    def parcels_for(self, bricks: Sequence[str]) -> tuple[str, ...]:
        """Return few parcels that hold these bricks: each next one holds most of those that are left."""
        left, found = set(bricks), list[str]()
        holding = {it.parcel.sha256: it.bricks.keys() for it in self.models}
        while left and holding:
            best = max(holding, key=lambda it: len(left & holding[it]))
            if not left & holding[best]:
                break
            left -= holding.pop(best)
            found.append(best)
        return tuple(found)


@dataclass(frozen=True)
class Workload:
    """Everything that a fleet run measures."""

    parts: tuple[Part, ...] = ()
    left_out: tuple[ModelLeftOut, ...] = field(default=())

    @cached_property
    def parcels(self) -> Mapping[str, Parcel]:
        return {sha: parcel for part in self.parts for sha, parcel in part.parcels.items()}


def read_workload(
    request: RunRequest, samples: Path, data: Path, cache: Path, log: Path, tell: Callable[[Event], None]
) -> Workload:
    """Cut the models of each part, and pack what travels; models that cannot travel are left out, with the reason.

    Raise FleetError if no model is left.
    """
    parts, left_out = [], list[ModelLeftOut]()

    def take(event: Event) -> None:
        if isinstance(event, events.ModelLeftOut):
            left_out.append(ModelLeftOut(model=event.model, reason=event.reason))

    for each in request.parts:
        library = Library(samples, data, each.runtime.traits.format)
        try:
            models = cut_models(each, library, cache, log, take, request.part_label(each))
            parts.append(Part(each, _travelling(each, library, models, cache, log, left_out)))
        except UserError as error:
            # Every model was left out, and is named if its own reason is known.
            if not left_out:
                raise
            last = error
    for told in left_out:
        tell(told)
    found = tuple(part for part in parts if part.models)
    if not found:
        raise FleetError(f"no model can be measured on other hosts: {left_out[0].reason if left_out else last}")
    return Workload(found, tuple(left_out))


def _travelling(
    request: RunRequest,
    library: Library,
    models: Sequence[CutModel],
    cache: Path,
    log: Path,
    left_out: list[ModelLeftOut],
) -> tuple[TravellingModel, ...]:
    sources = {source.name: source for source in request.sources(library)}
    inputs, values = dict(request.inputs), dict(request.values)
    found = []
    with WorkerFramework(request.runtime, log) as framework:
        loader = Loader(cache, framework, framework)
        for model in models:
            graph = model.decomposition.graph
            keys = frozenset(model.decomposition.bricks)
            try:
                batch = graph.batch_size if request.batch_sizes else None
                written = loader.load(sources[graph.name], Level.WRITTEN, inputs, values, batch)
                found.append(TravellingModel(model, parcel_of(written, keys)))
            except UserError as error:
                left_out.append(ModelLeftOut(model=model.name, reason=str(error)))
    return tuple(found)
