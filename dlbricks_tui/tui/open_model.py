"""Models in view: which one is wanted, what was read of it, and the shapes given for its inputs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from dlbricks_tui.bricks.decomposition import Cutting, Decomposition
    from dlbricks_tui.models.graph import LayerGraph, Level, Shape
    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.tui.choices import Choices
    from dlbricks_tui.tui.workbench.nesting import Nesting


class ModelId(NamedTuple):
    """The identity of a model: models of Table 1 may share a file, and files may share a name."""

    path: Path
    name: str


def id_of(source: ModelSource) -> ModelId:
    return ModelId(source.path, source.name)


class AskedShape(NamedTuple):
    """The known shape of an input, and an example of how to write one."""

    known: Shape | None
    example: Shape | None


@dataclass(frozen=True, slots=True, eq=False)
class ModelSpec:
    """A model and how to read and cut it; compared by identity, so that outdated answers are recognised."""

    source: ModelSource
    level: Level
    cutting: Cutting
    shapes: Mapping[str, Shape] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class OpenModel:
    """A model that has been read, cut and divided into regions."""

    spec: ModelSpec
    graph: LayerGraph
    decomposition: Decomposition
    nesting: Nesting


def input_shapes(graph: LayerGraph) -> dict[str, Shape | None]:
    """Return the shapes of a model's inputs by name; None where they are unknown."""
    return {it.name: it.type.shape for it in graph.inputs}


class ListedModels:
    """The models of the library with the shapes that the user has given."""

    def __init__(self) -> None:
        self._library: tuple[ModelSource, ...] = ()
        self._shapes: dict[ModelId, Mapping[str, Shape]] = {}

    @property
    def sources(self) -> tuple[ModelSource, ...]:
        return self._library

    @property
    def shapes(self) -> Mapping[ModelId, Mapping[str, Shape]]:
        """The shapes that the user has given."""
        return self._shapes

    def replace(self, library: tuple[ModelSource, ...]) -> None:
        self._library = library

    def give_shapes(self, source: ModelSource, shapes: Mapping[str, Shape]) -> None:
        self._shapes[id_of(source)] = shapes

    def shapes_of(self, source: ModelSource) -> Mapping[str, Shape]:
        """Return the known shapes of a model's inputs."""
        return {**source.inputs, **self._shapes.get(id_of(source), {})}

    def named(self, name: str) -> ModelSource | None:
        """Return the model of that name."""
        return next((source for source in self.sources if source.name == name), None)

    def spec(self, source: ModelSource, choices: Choices) -> ModelSpec:
        """Return the spec of a model under the current settings."""
        return ModelSpec(source, choices.level, choices.cutting, self._shapes.get(id_of(source), {}))

    def specs(self, choices: Choices) -> list[ModelSpec]:
        """Return the specs of all models."""
        return [self.spec(source, choices) for source in self.sources]
