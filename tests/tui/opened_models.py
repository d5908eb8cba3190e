"""Models as they stand on the bench, with what may be known of them."""

from dataclasses import replace

from dlbricks_tui.bricks.decomposition import Cutting, decompose
from dlbricks_tui.bricks.regions import sequence_regions
from dlbricks_tui.estimate.estimate import Options, estimate
from dlbricks_tui.estimate.knowledge import NOTHING_KNOWN, Knowledge
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.tui.opened import Opened, Wish
from dlbricks_tui.tui.widgets.tree.nesting import Nesting
from dlbricks_tui.tui.widgets.tree.tally import Tallies
from tests.tui.results import graph_of, source_called

ANY_SOURCE = "alexnet"


def on_bench(graph: LayerGraph, cutting: Cutting | None = None, name: str = ANY_SOURCE) -> Opened:
    """A graph, cut."""
    decomposition = decompose(graph, cutting or Cutting())
    wish = Wish(source_called(name), graph.level, decomposition.cutting)
    return Opened(wish, graph, decomposition, Nesting(sequence_regions(decomposition)))


def sample(name: str, granularity: int = 1) -> Opened:
    """A sample model, cut."""
    return on_bench(graph_of(name), Cutting(granularity), name)


def judged(opened: Opened, knowledge: Knowledge = NOTHING_KNOWN, *, bridge: bool = False) -> Tallies:
    """What is known of it."""
    return Tallies(opened, estimate(opened.decomposition, knowledge, Options(bridge=bridge)))


def unable(graph: LayerGraph, layer: int, reason: str = "no runtime knows it") -> LayerGraph:
    """The graph with a layer that cannot be run."""
    layers = list(graph.layers)
    layers[layer] = replace(layers[layer], unmeasurable=reason)
    return replace(graph, layers=tuple(layers))
