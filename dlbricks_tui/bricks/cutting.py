"""The cutting of a layer graph into layer sequences (Algorithms 1 and 2 of the DLBricks paper)."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from dlbricks_tui.bricks.ordering import LayerOrder, continues_chain, layer_order
from dlbricks_tui.errors import UserError
from dlbricks_tui.models.graph import LayerGraph


class CuttingError(UserError):
    """The layers cannot be cut as asked."""


class Cut(str, Enum):
    """The windows of layers that become sequences.

    `chain`: each layer but the first takes exactly one data input, the output of the layer before it.
    `runnable`: tensors of layers outside the window enter at its first layer only. Graph inputs may enter anywhere, and
    a layer without inputs may stand anywhere: neither needs another layer to run before the window.
    `overlap`: as many sequences as layers, for each layer the longest chain of at most G layers that begins there.
    """

    CHAIN = "chain"
    RUNNABLE = "runnable"
    OVERLAP = "overlap"


@dataclass(frozen=True, slots=True)
class LayerSequence:
    """Layers that can run by themselves: indices into the graph's layers, in the order in which they run."""

    index: int
    layers: tuple[int, ...]


def cut(
    graph: LayerGraph, granularity: int, cut: Cut = Cut.CHAIN, order: LayerOrder = LayerOrder.BRANCH
) -> tuple[LayerSequence, ...]:
    """Return the sequences of at most `granularity` layers, in the order of their first layers.

    An unmeasurable layer is always a separate sequence.
    """
    if granularity < 1:
        raise CuttingError(f"granularity {granularity} is too small: it is the most layers of a sequence, 1 or more")
    layers = layer_order(graph, order)
    if cut is Cut.RUNNABLE:
        ends = _runnable_ends(graph, layers)
    else:
        # For each position of the order the end of the longest chain that begins there.
        ends = list(range(1, len(layers) + 1))
        for position in range(len(layers) - 1, 0, -1):
            if continues_chain(graph.layers[layers[position]], graph.layers[layers[position - 1]]):
                ends[position - 1] = ends[position]
    windows = [(begin, min(begin + granularity, end)) for begin, end in enumerate(ends)]
    if cut is not Cut.OVERLAP:
        # Disjoint windows (FindModelSubgraphs of the paper, with SplitModel unrolled): one that cannot run becomes its
        # first layer alone, and the next one begins behind it.
        windows, begin = [], 0
        while begin < len(ends):
            end = min(begin + granularity, len(ends))
            windows.append((begin, end if end <= ends[begin] else begin + 1))
            begin = windows[-1][1]
    return tuple(LayerSequence(index, layers[begin:end]) for index, (begin, end) in enumerate(windows))


def sequence_edges(graph: LayerGraph, sequences: Sequence[LayerSequence]) -> tuple[tuple[int, int], ...]:
    """Return pairs of sequence indices, ascending: the second reads a layer of the first that it does not hold itself.

    Sequences are windows of a topological order and read only layers before their window, so there are no cycles.
    """
    holders: list[list[int]] = [[] for _ in graph.layers]
    for sequence in sequences:
        for layer in sequence.layers:
            holders[layer].append(sequence.index)
    edges: set[tuple[int, int]] = set()
    for sequence in sequences:
        held = set(sequence.layers)
        for layer in sequence.layers:
            for source in graph.predecessors[layer]:
                if source not in held:
                    edges.update((holder, sequence.index) for holder in holders[source])
    return tuple(sorted(edges))


def overlapping_edges(graph: LayerGraph, sequences: Sequence[LayerSequence]) -> tuple[tuple[int, int], ...]:
    """Return pairs of sequence indices, ascending, where a sequence begins at every layer: those of their layers."""
    beginning_at = {sequence.layers[0]: sequence.index for sequence in sequences}
    return tuple(sorted((beginning_at[source], beginning_at[reader]) for source, reader in graph.edges))


def _runnable_ends(graph: LayerGraph, order: Sequence[int]) -> list[int]:
    """Return for each position of the order the end of the longest runnable window that begins there."""
    count = len(order)
    position = [0] * count
    for place, layer in enumerate(order):
        position[layer] = place
    # A layer can stand behind the first place of a window only if the window begins at this position or later.
    earliest = [
        -1
        if graph.layers[layer].unmeasurable is not None
        else min((position[source] for source in graph.predecessors[layer]), default=count)
        for layer in order
    ]
    ends = [0] * count
    # Positions that end a window, the nearest last. A position that does not end a window beginning here ends none that
    # begins earlier, so each is visited once.
    stops: list[int] = []
    for begin in range(count - 1, -1, -1):
        while stops and earliest[stops[-1]] >= begin:
            stops.pop()
        alone = graph.layers[order[begin]].unmeasurable is not None
        ends[begin] = begin + 1 if alone else stops[-1] if stops else count
        stops.append(begin)
    return ends
