"""The regions of a model as it was cut: what stands in them are its layer sequences."""

from dlbricks_tui.bricks.cutting import Cut, sequence_edges
from dlbricks_tui.bricks.decomposition import Decomposition
from dlbricks_tui.bricks.regions import RegionTree, regions_of


def sequence_regions(decomposition: Decomposition) -> RegionTree:
    """The regions of a cut model; a leaf is a sequence by its index, and sequences of one brick are equal."""
    return regions_of(_predecessors(decomposition), [it.brick.key for it in decomposition.occurrences])


def _predecessors(decomposition: Decomposition) -> list[list[int]]:
    graph = decomposition.graph
    sequences = [occurrence.sequence for occurrence in decomposition.occurrences]
    found: list[list[int]] = [[] for _ in sequences]
    if decomposition.cutting.cut is Cut.OVERLAP:
        # A sequence begins at every layer: they stand as those layers do.
        beginning_at = {sequence.layers[0]: sequence.index for sequence in sequences}
        for sequence in sequences:
            found[sequence.index] = [beginning_at[layer] for layer in graph.predecessors[sequence.layers[0]]]
        return found
    for source, reader in sequence_edges(graph, sequences):
        found[reader].append(source)
    return found
