"""The order in which the layers of a model are cut: as in the file, or branch by branch."""

from collections.abc import Iterable, Sequence
from enum import Enum

from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.models.digraphs import depth_first
from dlbricks_tui.models.graph import Layer, LayerGraph

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
