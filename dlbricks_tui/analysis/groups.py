"""The comparison of executions of one model over the nodes of its file.

A group is the smallest set of nodes that every compared execution covers with whole layers.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dlbricks_tui.analysis.what_if import Execution
from dlbricks_tui.estimate.estimate import Estimate
from dlbricks_tui.estimate.parts import Part
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.models.graph import Layer, LayerGraph
from dlbricks_tui.models.kinds import Kind

# The beginning of the names of operators that convert layouts.
_CONVERSION = "Reorder"


@dataclass(frozen=True)
class MeasuredExecution:
    """A model in one execution: the layers that the runtime executes, and the estimate from measured bricks."""

    execution: Execution
    graph: LayerGraph
    found: SystemEstimate

    @property
    def estimate(self) -> Estimate:
        """The estimate."""
        return self.found.estimate

    @property
    def parts(self) -> tuple[Part, ...]:
        """The layer sequences, each with its latency."""
        return self.found.estimate.parts

    @property
    def is_measured(self) -> bool:
        """True if every layer that a runtime can run by itself was measured."""
        coverage = self.estimate.coverage
        return self.estimate.composed is not None and not coverage.missing and not self.estimate.is_partial


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes of the file, and for each execution the numbers of its parts that compute them."""

    nodes: tuple[int, ...]
    parts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups in the order of the file, and for each execution the numbers of the parts that convert layouts."""

    groups: tuple[Group, ...]
    conversions: tuple[tuple[int, ...], ...]


def is_conversion(layer: Layer) -> bool:
    """True for a layer that a runtime inserts to change the memory layout of a tensor."""
    return layer.kind is Kind.TRANSPOSE and layer.op.rpartition(".")[2].startswith(_CONVERSION)


def groups_of(executions: Sequence[MeasuredExecution]) -> Groups:
    """Return the groups of executions of one file.

    A layer that a runtime has inserted, and that converts no layout, belongs to the layer that reads it. Nodes that an
    execution has optimised away take no time in it.
    """
    covers = [_nodes_of_parts(it) for it in executions]
    union = _Union()
    for cover in covers:
        for nodes in cover:
            union.join(nodes)
    members = union.members()
    places = {node: place for place, nodes in enumerate(members) for node in nodes}
    parts: list[list[list[int]]] = [[[] for _ in executions] for _ in members]
    conversions: list[list[int]] = [[] for _ in executions]
    for number, cover in enumerate(covers):
        for part, nodes in enumerate(cover):
            (parts[places[nodes[0]]][number] if nodes else conversions[number]).append(part)
    groups = [Group(tuple(nodes), tuple(map(tuple, held))) for nodes, held in zip(members, parts, strict=True)]
    return Groups(tuple(groups), tuple(map(tuple, conversions)))


def paid_ps(one: MeasuredExecution, parts: Iterable[int]) -> int:
    """Return the time that some parts take in an inference."""
    return sum(one.parts[number].paid_ps for number in parts)


def _nodes_of_parts(one: MeasuredExecution) -> list[tuple[int, ...]]:
    """Return the nodes that each part belongs to; none for conversions."""
    layers = one.graph.layers
    converts = [all(is_conversion(layers[index]) for index in part.layers) for part in one.parts]
    own = [
        () if converts[number] else tuple(node for index in part.layers for node in layers[index].nodes)
        for number, part in enumerate(one.parts)
    ]
    if all(nodes or converts[number] for number, nodes in enumerate(own)):
        return own
    readers: list[list[int]] = [[] for _ in own]
    sources: list[list[int]] = [[] for _ in own]
    for source, reader in one.estimate.edges:
        readers[source].append(reader)
        sources[reader].append(source)
    behind, before = list(own), list(own)
    for number in reversed(range(len(own))):
        behind[number] = own[number] or next((behind[it] for it in readers[number] if behind[it]), ())
    for number in range(len(own)):
        before[number] = own[number] or next((before[it] for it in sources[number] if before[it]), ())
    return [
        nodes if nodes or converts[number] else behind[number] or before[number] for number, nodes in enumerate(own)
    ]


class _Union:
    """Sets of nodes that grow together (union-find)."""

    def __init__(self) -> None:
        self._parents: dict[int, int] = {}

    def join(self, nodes: Sequence[int]) -> None:
        """Put nodes into one set."""
        roots = [self._root(node) for node in nodes]
        for root in roots:
            self._parents[root] = min(roots)

    def members(self) -> list[list[int]]:
        """Return the sets, each sorted, in the order of their first nodes."""
        found: dict[int, list[int]] = {}
        for node in sorted(self._parents):
            found.setdefault(self._root(node), []).append(node)
        return list(found.values())

    def _root(self, node: int) -> int:
        parents = self._parents
        parents.setdefault(node, node)
        while parents[node] != node:
            parents[node] = parents[parents[node]]
            node = parents[node]
        return node
