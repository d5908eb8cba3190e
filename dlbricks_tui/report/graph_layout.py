"""The layout of a model's graph in a drawing: from left to right in the order of execution, wrapped like text.

The longest path is a straight line, the *spine*. Other layers are in lanes above and below it. An edge that passes
layers has a separate lane, so that it never crosses a layer.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, pairwise

import networkx as nx

from dlbricks_tui.models.digraphs import digraph_of


@dataclass(frozen=True, slots=True)
class DrawnEdge:
    """An edge as a polyline of (rank, lane) points, from left to right."""

    source: int
    reader: int
    points: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class GraphLayout:
    """A rank (how far to the right) and a lane (0 is the spine) for each layer; `breaks` are the lines' first ranks."""

    ranks: tuple[int, ...]
    lanes: tuple[int, ...]
    wires: tuple[DrawnEdge, ...]
    breaks: tuple[int, ...]


def lay_out(predecessors: Sequence[Sequence[int]], spine: Collection[int] = (), line: int = 48) -> GraphLayout:
    """Lay out a topologically sorted graph, with lines of at most `line` ranks."""
    digraph = digraph_of(predecessors)
    readers = [list(digraph[layer]) for layer in digraph]
    ranks = _ranks(predecessors, readers, digraph)
    chains = _chains(predecessors, set(spine or nx.dag_longest_path(digraph)))
    following = {source: reader for chain in chains for source, reader in pairwise(chain)}
    lanes, passing = _lanes(chains, following, readers, ranks)
    wires = tuple(
        _wire(source, reader, ranks, lanes, lanes[source] if following.get(source) == reader else passing[source])
        for reader, found in enumerate(predecessors)
        for source in found
    )
    return GraphLayout(tuple(ranks), tuple(lanes), wires, tuple(_breaks(wires, max(ranks, default=0) + 1, line)))


def _ranks(predecessors: Sequence[Sequence[int]], readers: Sequence[Sequence[int]], digraph: nx.DiGraph) -> list[int]:
    ranks = [0] * len(predecessors)
    for rank, layers in enumerate(nx.topological_generations(digraph)):
        for layer in layers:
            ranks[layer] = rank
    for layer, sources in enumerate(predecessors):
        # A stored array is placed next to its reader.
        if not sources and readers[layer]:
            ranks[layer] = max(0, min(ranks[reader] for reader in readers[layer]) - 1)
    return ranks


def _lanes(
    chains: Sequence[Sequence[int]],
    following: Mapping[int, int],
    readers: Sequence[Sequence[int]],
    ranks: Sequence[int],
) -> tuple[list[int], list[int]]:
    """Return the lane of each layer, and the lane of its edges that pass other layers."""
    # The first and last rank of each that needs a lane: chains by number, passing edges by -1 - layer.
    wanted: list[tuple[int, int, int]] = []
    for number, chain in enumerate(chains):
        last = max([ranks[chain[-1]], *(ranks[reader] - 1 for reader in readers[chain[-1]])])
        wanted.append((ranks[chain[0]], last, number))
    for layer, found in enumerate(readers):
        far = [ranks[it] - 1 for it in found if it != following.get(layer) and ranks[it] > ranks[layer] + 1]
        # When a chain has ended, its lane is free for the edges of its last layer.
        if far and layer in following:
            wanted.append((ranks[layer] + 1, max(far), -1 - layer))
    given = dict(_fit(wanted))
    lanes = [0] * len(ranks)
    for number, chain in enumerate(chains):
        for layer in chain:
            lanes[layer] = given[number]
    return lanes, [given.get(-1 - layer, lane) for layer, lane in enumerate(lanes)]


def _chains(predecessors: Sequence[Sequence[int]], spine: set[int]) -> list[list[int]]:
    """Return chains of layers that each read the one before; every layer is in one, and the spine is first."""
    chains: list[list[int]] = [[]]
    open_end: dict[int, list[int]] = {}
    for layer, sources in enumerate(predecessors):
        if layer in spine:
            chains[0].append(layer)
            continue
        before = next((it for it in sources if it in open_end), None)
        chain = [] if before is None else open_end.pop(before)
        if not chain:
            chains.append(chain)
        chain.append(layer)
        open_end[layer] = chain
    return chains if chains[0] else chains[1:]


def _fit(wanted: Iterable[tuple[int, int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the free lane nearest to the spine for each, the shortest first, so that nested ones are inside."""
    taken: dict[int, list[tuple[int, int]]] = {}
    for first, last, number in sorted(wanted, key=lambda it: (it[2] != 0, it[1] - it[0], it[0], it[2])):
        for lane in [0] if number == 0 else (side * lane for lane in count(1) for side in (1, -1)):
            held = taken.setdefault(lane, [])
            if all(last < begin or end < first for begin, end in held):
                held.append((first, last))
                yield number, lane
                break


def _wire(source: int, reader: int, ranks: Sequence[int], lanes: Sequence[int], passing: int) -> DrawnEdge:
    begin, end = ranks[source], ranks[reader]
    points = [(begin, lanes[source]), (begin + 1, passing), (end - 1, passing), (end, lanes[reader])]
    return DrawnEdge(source, reader, tuple(points if end > begin + 1 else (points[0], points[-1])))


def _breaks(wires: Iterable[DrawnEdge], ranks: int, line: int) -> Iterator[int]:
    """Yield the first rank of each line; a line ends where it cuts few edges, in its last quarter."""
    crossing = [0] * (ranks + 1)
    for wire in wires:
        for rank in range(wire.points[0][0] + 1, wire.points[-1][0] + 1):
            crossing[rank] += 1
    begin = 0
    while True:
        yield begin
        if ranks - begin <= line:
            return
        begin = min(range(begin + line, begin + line - line // 4, -1), key=crossing.__getitem__)
