"""The cutting of a layer graph into layer sequences (Algorithms 1 and 2 of the DLBricks paper).

Layers are cut in the order of the file, or branch by branch.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.errors import UserError
from dlbricks_tui.models.graph import Layer, LayerGraph, depth_first

# Layers and paths are compared by hashes below this prime (the largest of 61 bits). The hash of a path is a polynomial
# over its layers, so that the hash of a part of it takes one subtraction, however long the part is.
_PRIME = (1 << 61) - 1
_BASE = 0x1C6E_F372_FE94_F82B % _PRIME


class LayerOrder(str, Enum):
    """`paper`: the topological order of the file; `branch`: one that keeps each branch together."""

    PAPER = "paper"
    BRANCH = "branch"


def layer_order(graph: LayerGraph, order: LayerOrder) -> tuple[int, ...]:
    """Return the indices of all layers in a topological order."""
    return branch_order(graph) if order is LayerOrder.BRANCH else tuple(range(len(graph.layers)))


def continues_chain(layer: Layer, before: Layer) -> bool:
    """True if a layer has one data input, which is the output of the layer before it, and both can be run."""
    return (
        len(layer.feeds) == 1
        and layer.feeds[0].layer == before.index
        and layer.unmeasurable is None
        and before.unmeasurable is None
    )


def branch_order(graph: LayerGraph) -> tuple[int, ...]:
    """Return a topological order that keeps chains whole, so that windows fill up, and puts a join after its branches.

    At a fork the longest chain continues. The branches of a join come one after another, long ones first. Branches of
    one length are ordered by their layers, and equal branches by the inputs of the join. Names and the order of the
    file make no difference.
    """
    sources = _ranked_sources(graph)
    canonical = _by_need(sources, [(layer.index,) for layer in graph.layers])
    return _by_need(sources, _longest_chains(graph, canonical))


def _by_need(sources: Sequence[Sequence[int]], chains: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return all layers, chain by chain, with each chain where it is first needed.

    So a constant comes right before its reader, and a recurrent network proceeds step by step.
    """
    chain_of = {layer: number for number, chain in enumerate(chains) for layer in chain}
    # Only the first layer of a chain reads layers outside of it.
    reads = [sources[chain[0]] for chain in chains]
    *order, _ = depth_first([[chain_of[source] for source in read] for read in (*reads, sources[-1])])
    return tuple([layer for number in order for layer in chains[number]])


def _longest_chains(graph: LayerGraph, canonical: Sequence[int]) -> list[tuple[int, ...]]:
    """Return all layers in chains: a fork continues the longest one, of equally long ones the first canonical one."""
    layers = graph.layers
    lengths = [1] * len(layers)
    following: dict[int, int] = {}
    place = {layer: position for position, layer in enumerate(canonical)}
    for layer in reversed(canonical):
        candidates = [it for it in graph.successors[layer] if continues_chain(layers[it], layers[layer])]
        if candidates:
            following[layer] = min(candidates, key=lambda it: (-lengths[it], place[it]))
            lengths[layer] += lengths[following[layer]]
    chains = []
    for layer in set(canonical).difference(following.values()):
        chain = [layer]
        while chain[-1] in following:
            chain.append(following[chain[-1]])
        chains.append(tuple(chain))
    return chains


def _ranked_sources(graph: LayerGraph) -> list[Sequence[int]]:
    """Return for each layer, and last for the end of the model, the layers that it reads, ranked by their branches.

    Branches are compared up to the layer where all branches of the join meet: equal modules rank equally everywhere.
    """
    end = len(graph.layers)
    tree = DominatorTree(end + 1)
    trails = [0] * (end + 2)
    ranked: list[Sequence[int]] = []
    # The layers that no other layer reads: first the outputs of the model, in their order.
    heads = [head.layer for head in graph.heads if head.layer is not None]
    ends = tuple([layer for layer in dict.fromkeys((*heads, *range(end))) if not graph.successors[layer]])
    for vertex, sources in enumerate((*graph.predecessors, ends)):
        dominator = tree.add(vertex, sources)
        trail, depth = trails[dominator], tree.depth[dominator]
        held = {it: (trails[it] - trail * pow(_BASE, tree.depth[it] - depth, _PRIME)) % _PRIME for it in sources}
        # Long branches first, so that the short ones of a join stand next to it. The sort is stable: equal branches
        # keep the order of the inputs.
        ranked.append(sorted(sources, key=lambda it: (-tree.depth[it], held[it])))
        if vertex < end:
            # From the key of the brick, since `hash` differs from process to process.
            own = int(brick_of(graph, (vertex,)).key[:16], 16)
            mixed = _mix(own, sum([_mix(held[it], 0) for it in sources]))
            trails[vertex] = (mixed + _BASE * trail) % _PRIME
    return ranked


def _mix(one: int, other: int) -> int:
    # Cubed, so that sums over different branches differ.
    return pow(one * 0x1E37_79B9_7F4A_7C15 + other * 0x0F58_476D_1CE4_E5B9 + 0x94D0_49BB, 3, _PRIME)


class DominatorTree:
    """The dominator tree of a graph with vertices 0 to `count` - 1 and the root `count`, grown in topological order.

    Jump pointers find a common dominator in logarithmic time. Walking up parent by parent takes quadratic time in
    unrolled recurrent networks, where a late layer reads many early ones.
    """

    def __init__(self, count: int) -> None:
        self.root = count
        self.depth = [0] * (count + 1)
        self._parent = [count] * (count + 1)
        self._jump = [count] * (count + 1)

    def add(self, vertex: int, sources: Iterable[int]) -> int:
        """Add a vertex below its immediate dominator, and return that: the root for a vertex without sources."""
        dominator = -1
        for source in sources:
            dominator = source if dominator < 0 else self._common(dominator, source)
        if dominator < 0:
            dominator = self.root
        depth, jump = self.depth, self._jump
        hop = jump[dominator]
        equal_hops = depth[dominator] - depth[hop] == depth[hop] - depth[jump[hop]]
        self._parent[vertex] = dominator
        depth[vertex] = depth[dominator] + 1
        jump[vertex] = jump[hop] if equal_hops else dominator
        return dominator

    def _common(self, one: int, other: int) -> int:
        depth, jump, parent = self.depth, self._jump, self._parent
        if depth[one] < depth[other]:
            one, other = other, one
        while depth[one] > depth[other]:
            one = jump[one] if depth[jump[one]] >= depth[other] else parent[one]
        while one != other:
            # Vertices of one depth have jumps of one length.
            if jump[one] != jump[other]:
                one, other = jump[one], jump[other]
            else:
                one, other = parent[one], parent[other]
        return one


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
        raise UserError(f"granularity {granularity} is too small: it is the most layers of a sequence, 1 or more")
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
