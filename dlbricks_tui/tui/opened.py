"""A model as it stands on the bench, and what is said of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from dlbricks_tui.bricks.decomposition import Cutting, Decomposition
    from dlbricks_tui.models.graph import LayerGraph, Level, Shape
    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.tui.widgets.tree.nesting import Nesting


class ModelId(NamedTuple):
    """What tells models apart: two of Table 1 share a file, and two files may share a name."""

    path: Path
    name: str


def id_of(source: ModelSource) -> ModelId:
    """What a model is known by."""
    return ModelId(source.path, source.name)


class AskedShape(NamedTuple):
    """The shape of an input as far as it is known, and one that shows how to write it."""

    known: Shape | None
    example: Shape | None


@dataclass(frozen=True, slots=True, eq=False)
class Wish:
    """Which model is wanted, and how; an answer to a wish of yesterday is known by it."""

    source: ModelSource
    level: Level
    cutting: Cutting
    shapes: Mapping[str, Shape] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Opened:
    """A model that has been read, cut and taken apart into regions."""

    wish: Wish
    graph: LayerGraph
    decomposition: Decomposition
    nesting: Nesting


def input_shapes(graph: LayerGraph) -> dict[str, Shape | None]:
    """Return the shapes of a model's inputs by name, None where they are not known."""
    return {it.name: it.type.shape for it in graph.inputs}
