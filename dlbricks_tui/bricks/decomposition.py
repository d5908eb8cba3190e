"""The decomposition of a model: its layer sequences, each with its brick and context."""

from dataclasses import dataclass
from functools import cached_property

from dlbricks_tui.bricks.contexts import context_key
from dlbricks_tui.bricks.cutting import Cut, LayerSequence, cut
from dlbricks_tui.bricks.identity import Brick, brick_of
from dlbricks_tui.bricks.layouts import Layouts, output_layouts
from dlbricks_tui.bricks.ordering import Order
from dlbricks_tui.models.content import without_cycle_search
from dlbricks_tui.models.graph import LayerGraph


@dataclass(frozen=True, slots=True)
class Cutting:
    """The way to cut a model: the most layers of a sequence, the windows, and the order of layers."""

    granularity: int = 1
    cut: Cut = Cut.CHAIN
    order: Order = Order.BRANCH


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A layer sequence of a model, with its brick and context."""

    sequence: LayerSequence
    brick: Brick
    context: str


@dataclass(frozen=True)
class Decomposition:
    """The sequences of a model, in order."""

    graph: LayerGraph
    cutting: Cutting
    occurrences: tuple[Occurrence, ...]

    @cached_property
    def bricks(self) -> frozenset[str]:
        """The keys of the unique sequences."""
        return frozenset(occurrence.brick.key for occurrence in self.occurrences)

    @cached_property
    def suite(self) -> frozenset[tuple[str, str]]:
        """The (brick, context) pairs that have to run."""
        return frozenset((occurrence.brick.key, occurrence.context) for occurrence in self.occurrences)


@without_cycle_search()
def decompose(graph: LayerGraph, cutting: Cutting | None = None) -> Decomposition:
    """Cut a model, and find the brick and context of each sequence."""
    cutting = cutting or Cutting()
    layouts = output_layouts(graph)
    sequences = cut(graph, cutting.granularity, cutting.cut, cutting.order)
    return Decomposition(graph, cutting, tuple([_occurrence(graph, it, layouts) for it in sequences]))


def _occurrence(graph: LayerGraph, sequence: LayerSequence, layouts: Layouts) -> Occurrence:
    layers = sequence.layers
    return Occurrence(sequence, brick_of(graph, layers), context_key(graph, layers, layouts))
