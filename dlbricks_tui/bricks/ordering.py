"""In which order a model's layers are cut: as the file has them, or branch by branch."""

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum

from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.models.graph import Layer, LayerGraph

# Layers and what lies between them are compared by outlines: numbers below this prime (the largest of 61 bits). A path
# is a polynomial over them, so that the outline of a piece of it is a subtraction, however long the piece is.
_PRIME = (1 << 61) - 1
_BASE = 0x1C6E_F372_FE94_F82B % _PRIME


class Order(str, Enum):
    """`paper`: the topological order of the file; `branch`: one that keeps each branch together."""

    PAPER = "paper"
    BRANCH = "branch"


def layer_order(graph: LayerGraph, order: Order) -> tuple[int, ...]:
    """The indices of all layers in a topological order."""
    return branch_order(graph) if order is Order.BRANCH else tuple(range(len(graph.layers)))


def continues_chain(layer: Layer, before: Layer) -> bool:
    """Whether the layer takes exactly one data input, the output of the layer before it, and both can be run."""
    return (
        len(layer.feeds) == 1
        and layer.feeds[0].layer == before.index
        and layer.unmeasurable is None
        and before.unmeasurable is None
    )


def branch_order(graph: LayerGraph) -> tuple[int, ...]:
    """A topological order that keeps chains whole, so that windows fill up, and puts a join right after its branches.

    At a fork the longest chain goes on. The branches of a join come one after another, the long ones first. Among
    equally long ones what they hold decides, and only then which input of the join they are. Names and the order in
    which the file lists the layers have no say.
    """
    sources = _ranked_sources(graph)
    canonical = _by_need(sources, [(layer.index,) for layer in graph.layers])
    return _by_need(sources, _longest_chains(graph, canonical))


def _by_need(sources: Sequence[Sequence[int]], chains: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """All layers, chain by chain, from the end of the model backwards: each chain stands where it is first needed.

    So a constant stands right before its reader, and a recurrent network goes on step by step.
    """
    end = len(sources) - 1
    chain_of = {layer: number for number, chain in enumerate(chains) for layer in chain}
    found: list[int] = []
    seen = [False] * len(chains)
    path: list[tuple[tuple[int, ...], Iterator[int]]] = [((), iter(sources[end]))]
    while path:
        chain, needs = path[-1]
        for source in needs:
            number = chain_of[source]
            if not seen[number]:
                seen[number] = True
                # Only the first layer of a chain reads any other than the chain's own.
                path.append((chains[number], iter(sources[chains[number][0]])))
                break
        else:
            found += chain
            path.pop()
    return tuple(found)


def _longest_chains(graph: LayerGraph, canonical: Sequence[int]) -> list[tuple[int, ...]]:
    """All layers in chains: a fork continues the longest one, of equally long ones the first in the canonical order."""
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
    """For each layer, and last for the end of the model, the layers it reads, ranked by what their branches hold.

    A branch is compared as far up as all branches of the join meet: equal modules compare equally wherever they stand.
    """
    end = len(graph.layers)
    tree = DominatorTree(end + 1)
    trails = [0] * (end + 2)
    ranked: list[Sequence[int]] = []
    for vertex, sources in enumerate((*graph.predecessors, _ends(graph))):
        dominator = tree.add(vertex, sources)
        trail, depth = trails[dominator], tree.depth[dominator]
        held = {it: (trails[it] - trail * pow(_BASE, tree.depth[it] - depth, _PRIME)) % _PRIME for it in sources}
        # Long branches first, so that what little a join needs besides stands beside it. The sort is stable: where
        # branches hold the same, the order of the inputs stays.
        ranked.append(sorted(sources, key=lambda it: (-tree.depth[it], held[it])))
        if vertex < end:
            outline = _mix(_own_outline(graph, vertex), sum([_mix(held[it], 0) for it in sources]))
            trails[vertex] = (outline + _BASE * trail) % _PRIME
    return ranked


def _ends(graph: LayerGraph) -> tuple[int, ...]:
    """The layers that no other reads: first the model's heads, in their order."""
    heads = [head.layer for head in graph.heads if head.layer is not None]
    everything = dict.fromkeys((*heads, *range(len(graph.layers))))
    return tuple([layer for layer in everything if not graph.successors[layer]])


def _own_outline(graph: LayerGraph, layer: int) -> int:
    # From the brick's key, as `hash` gives other numbers in every process.
    return int(brick_of(graph, (layer,)).key[:16], 16)


def _mix(one: int, other: int) -> int:
    # Cubed, so that different branches do not add up to the same, as sums of products would.
    return pow(one * 0x1E37_79B9_7F4A_7C15 + other * 0x0F58_476D_1CE4_E5B9 + 0x94D0_49BB, 3, _PRIME)


class DominatorTree:
    """Grows leaf by leaf, in topological order; vertices are 0 to `count` - 1 and the root is vertex `count`.

    Jump pointers find a common dominator in logarithmic time: walking up parent by parent is quadratic where, as in
    an unrolled recurrent network, a late layer reads many early ones.
    """

    def __init__(self, count: int) -> None:
        self.root = count
        self.depth = [0] * (count + 1)
        self._parent = [count] * (count + 1)
        self._jump = [count] * (count + 1)

    def add(self, vertex: int, sources: Iterable[int]) -> int:
        """Hangs a vertex below its immediate dominator, which is returned: the root if it has no sources."""
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
