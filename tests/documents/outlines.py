"""Outlines of models, and latencies of their parts."""

from dataclasses import replace

from dlbricks_tui.bricks.decomposition import Cutting, decompose
from dlbricks_tui.documents.outline import Outline, OutlineNode
from dlbricks_tui.documents.part_details import PartLatencies
from dlbricks_tui.estimate.estimate import estimate
from dlbricks_tui.estimate.knowledge import NOTHING_KNOWN, Knowledge
from dlbricks_tui.models.graph import LayerGraph
from tests.tui.results import graph_of


def outline_of(graph: LayerGraph, cutting: Cutting | None = None) -> Outline:
    """Return the outline of a graph, cut into sequences."""
    return Outline(decompose(graph, cutting))


def sample(name: str, granularity: int = 1) -> Outline:
    """Return the outline of a sample model, cut into sequences."""
    return outline_of(graph_of(name), Cutting(granularity))


def nodes_of(outline: Outline) -> list[OutlineNode]:
    """Return all parts of a model, outer ones first."""
    found = [outline.root]
    for node in found:
        found += node.inside
    return found


def leaf_of(outline: Outline, sequence: int) -> OutlineNode:
    """Return a sequence as a node."""
    return next(it for it in nodes_of(outline) if it.sequence == sequence)


def estimated(outline: Outline, knowledge: Knowledge = NOTHING_KNOWN) -> PartLatencies:
    """Return the latencies of the parts."""
    return PartLatencies(outline, estimate(outline.decomposition, knowledge))


def unable(graph: LayerGraph, layer: int, reason: str = "no runtime knows it") -> LayerGraph:
    """Return the graph with a layer that cannot be run."""
    layers = list(graph.layers)
    layers[layer] = replace(layers[layer], unmeasurable=reason)
    return replace(graph, layers=tuple(layers))
