"""Models in view: which one is wanted, what was read of it, and the shapes given for its inputs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.runtime.variant import USUAL_KERNELS, Kernels, Precision

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from dlbricks_tui.answers.estimating import ModelReading
    from dlbricks_tui.bricks.decomposition import Cutting, Decomposition
    from dlbricks_tui.documents.outline import Outline
    from dlbricks_tui.models.graph import LayerGraph, Level, Numbers, Shape
    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.runtime.runtime import Runtime
    from dlbricks_tui.tui.choices import Choices


class ModelId(NamedTuple):
    """The identity of a model: models of Table 1 may share a file, and files may share a name.

    The path is that of its first format.
    """

    path: Path
    name: str


def id_of(source: ModelSource) -> ModelId:
    return ModelId(source.in_format(source.formats[0]).path, source.name)


@dataclass(frozen=True, slots=True)
class LayerPlace:
    """A layer: its index in the layer graph of a level, and its name, as other runtimes have other graphs."""

    index: int
    name: str
    level: Level


def index_of(place: LayerPlace, names: Sequence[str]) -> int | None:
    """Return the index of a layer in a graph with layers of these names; None if the graph does not have it."""
    if place.index < len(names) and names[place.index] == place.name:
        return place.index
    return names.index(place.name) if place.name in names else None


class AskedShape(NamedTuple):
    """The known shape of an input, an example of how to write one, and its known value."""

    known: Shape | None
    example: Shape | None
    value: Numbers = ()

    @property
    def is_number(self) -> bool:
        """True for an input without axes, of which only the value can be chosen."""
        return () in (self.known, self.example)


class GivenInputs(NamedTuple):
    """The shapes and values that the user gives for the inputs of a model; without shapes, the remembered ones go."""

    shapes: Mapping[str, Shape]
    values: Mapping[str, Numbers]


@dataclass(frozen=True, slots=True, eq=False)
class ModelSpec:
    """A model and how to read and cut it; compared by identity, so that outdated answers are recognised."""

    source: ModelSource
    level: Level
    cutting: Cutting
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    # None: that of the file.
    batch_size: int | None = None
    precision: Precision = Precision.F32
    kernels: Kernels = USUAL_KERNELS
    # The runtime that fuses it; None: the usual one of the format.
    runtime: Runtime | None = None
    values: Mapping[str, Numbers] = field(default_factory=dict)

    def read_as(self, reading: ModelReading) -> ModelSpec:
        """Return how the model is read by a runtime."""
        source = self.source.in_format(reading.form)
        return replace(self, source=source, level=reading.level, runtime=reading.runtime)


@dataclass(frozen=True, slots=True, eq=False)
class OpenModel:
    """A model that has been read, cut and divided into regions."""

    spec: ModelSpec
    graph: LayerGraph
    decomposition: Decomposition
    outline: Outline


def asked_inputs(graph: LayerGraph) -> dict[str, AskedShape]:
    """Return what is known of a model's inputs by name."""
    return {it.name: AskedShape(it.type.shape, it.type.shape, it.value) for it in graph.inputs}


class ListedModels:
    """The models of the library with the shapes and values that the user has given."""

    def __init__(self) -> None:
        self.sources: tuple[ModelSource, ...] = ()
        self.shapes: dict[ModelId, Mapping[str, Shape]] = {}
        self.values: dict[ModelId, Mapping[str, Numbers]] = {}

    def shapes_of(self, source: ModelSource) -> Mapping[str, Shape]:
        """Return the known shapes of a model's inputs."""
        return {**source.inputs, **self.shapes.get(id_of(source), {})}

    def is_sample(self, model: ModelId) -> bool:
        """Return whether a model is one of the samples, so not in a file of the user's own."""
        return any(id_of(it) == model and it.task is not None for it in self.sources)

    def named(self, name: str) -> ModelSource | None:
        return next((source for source in self.sources if source.name == name), None)

    def listed(self, source: ModelSource) -> ModelSource:
        """Return a model as the library lists it, so with its file of the library's format."""
        return next((it for it in self.sources if id_of(it) == id_of(source)), source)

    def spec(self, source: ModelSource, choices: Choices) -> ModelSpec:
        file = source if choices.format is None else source.in_format(choices.format)
        shapes, values = self.shapes.get(id_of(source), {}), self.values.get(id_of(source), {})
        return ModelSpec(
            file,
            choices.level,
            choices.cutting,
            shapes,
            choices.batch,
            choices.precision,
            choices.kernels,
            values=values,
        )

    def take(self, source: ModelSource, given: GivenInputs) -> None:
        """Keep what the user gives for the inputs of a model, in place of earlier shapes and values."""
        self.shapes[id_of(source)], self.values[id_of(source)] = given

    def specs(self, choices: Choices) -> list[ModelSpec]:
        return [self.spec(source, choices) for source in self.sources]
