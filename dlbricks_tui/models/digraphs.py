"""Layer graphs, and other graphs of numbered nodes, as directed graphs (*digraphs*) of networkx.

networkx is imported on first use, since a model that was cut before is looked up without it.
"""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from dlbricks_tui.models.graph import LayerGraph, TensorType

if TYPE_CHECKING:
    import networkx

_END = -1


def layer_digraph(graph: LayerGraph) -> "networkx.DiGraph":
    """Return a model as a digraph of networkx.

    A node is the index of a layer and has it as `layer`. An edge leads from a layer to its reader, and has the types of
    the tensors on this way as `tensors`, by the number of the output.
    """
    import networkx as nx

    found = nx.DiGraph(name=graph.name)
    found.add_nodes_from((layer.index, {"layer": layer}) for layer in graph.layers)
    for layer in graph.layers:
        tensors: dict[int, dict[int, TensorType]] = {}
        for feed, read in zip(layer.feeds, layer.data, strict=True):
            if feed.layer is not None:
                tensors.setdefault(feed.layer, {})[feed.output] = read
        found.add_edges_from((source, layer.index, {"tensors": passed}) for source, passed in tensors.items())
    return found


def digraph_of(sources: Sequence[Iterable[int]]) -> "networkx.DiGraph":
    """Return the digraph of numbered nodes, given the sources of each; edges lead from a source to its reader."""
    import networkx as nx

    found = nx.DiGraph()
    found.add_nodes_from(range(len(sources)))
    found.add_edges_from((source, reader) for reader, read in enumerate(sources) for source in read)
    return found


def topological_order(sources: Sequence[Iterable[int]]) -> list[int]:
    """Return each number after its sources, otherwise ascending; leave out cycles and all that depends on them."""
    if all(source < number for number, read in enumerate(sources) for source in read):
        return list(range(len(sources)))
    import networkx as nx

    order: list[int] = []
    with suppress(nx.NetworkXUnfeasible):
        for number in nx.lexicographical_topological_sort(digraph_of(sources)):
            order.append(number)
    return order


def depth_first(sources: Sequence[Iterable[int]]) -> list[int]:
    """Return the numbers that the last one depends on, then itself: each right after the last of its sources.

    The sources of a number come in their own order.
    """
    import networkx as nx

    reads = nx.DiGraph()
    end = len(sources) - 1
    reads.add_node(end)
    reads.add_edges_from((reader, source) for reader, read in enumerate(sources) for source in read)
    return list(nx.dfs_postorder_nodes(reads, end))


def needed_for(heads: Iterable[int], sources: Sequence[Iterable[int]]) -> set[int]:
    """Return the heads, and all numbers that they depend on."""
    import networkx as nx

    found = digraph_of(sources)
    found.add_edges_from((head, _END) for head in heads)
    return set(nx.ancestors(found, _END)) if _END in found else set()
