"""Open models with latencies."""

from dataclasses import replace

from dlbricks_tui.bricks.decomposition import Cutting, decompose
from dlbricks_tui.estimate.estimate import estimate
from dlbricks_tui.estimate.knowledge import NOTHING_KNOWN, Knowledge
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.tui.open_model import ModelSpec, OpenModel
from dlbricks_tui.tui.workbench.nesting import Nesting
from dlbricks_tui.tui.workbench.parts import PartLatencies
from tests.tui.results import graph_of, source_called

ANY_SOURCE = "alexnet"


def open_model(graph: LayerGraph, cutting: Cutting | None = None, name: str = ANY_SOURCE) -> OpenModel:
    """Open a graph, cut into sequences."""
    decomposition = decompose(graph, cutting or Cutting())
    wish = ModelSpec(source_called(name), graph.level, decomposition.cutting)
    return OpenModel(wish, graph, decomposition, Nesting(decomposition.regions))


def sample(name: str, granularity: int = 1) -> OpenModel:
    """Open a sample model, cut into sequences."""
    return open_model(graph_of(name), Cutting(granularity), name)


def estimated(opened: OpenModel, knowledge: Knowledge = NOTHING_KNOWN) -> PartLatencies:
    """Return the latencies of its parts."""
    return PartLatencies(opened, estimate(opened.decomposition, knowledge))


def unable(graph: LayerGraph, layer: int, reason: str = "no runtime knows it") -> LayerGraph:
    """Return the graph with a layer that cannot be run."""
    layers = list(graph.layers)
    layers[layer] = replace(layers[layer], unmeasurable=reason)
    return replace(graph, layers=tuple(layers))
