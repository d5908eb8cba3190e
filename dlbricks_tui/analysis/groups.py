"""The comparison of executions of one model over the nodes of its files.

A group is the smallest set of nodes that every compared execution covers with whole layers.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from dlbricks_tui.analysis.what_if import Execution
from dlbricks_tui.estimate.estimate import Estimate
from dlbricks_tui.estimate.knowledge import Latency
from dlbricks_tui.estimate.parts import Part
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.models.graph import Layer, LayerGraph, Level
from dlbricks_tui.models.kinds import Kind

# The nodes that each part of an execution belongs to.
Cover = tuple[tuple[int, ...], ...]
# The beginning of the names of operators that convert layouts.
_CONVERSION = "Reorder"


@dataclass(frozen=True)
class MeasuredExecution:
    """A model in one execution: the layers that the runtime executes, and the estimate from measured bricks."""

    execution: Execution
    graph: LayerGraph
    found: SystemEstimate
    # The layers of the file that it runs, if they are compared by name with those of another file.
    written: LayerGraph | None = None

    @property
    def as_written(self) -> LayerGraph | None:
        """The layers of the file that it runs; None if they are not known."""
        return self.graph if self.written is None and self.graph.level is Level.WRITTEN else self.written

    @property
    def estimate(self) -> Estimate:
        """The estimate."""
        return self.found.estimate

    @property
    def file(self) -> Path | None:
        """The file that it runs. A model has files of several formats, and quantised copies."""
        return self.graph.file

    @property
    def parts(self) -> tuple[Part, ...]:
        """The layer sequences, each with its latency."""
        return self.found.estimate.parts

    @cached_property
    def paid_ps(self) -> tuple[int, ...]:
        """The time that each part takes in an inference."""
        return tuple([part.paid_ps for part in self.parts])

    @cached_property
    def nodes_of_parts(self) -> Cover:
        """The nodes that each part belongs to; none for conversions."""
        held = [[self.graph.layers[index] for index in part.layers] for part in self.parts]
        converts = [all(map(is_conversion, layers)) for layers in held]
        nodes = [tuple(node for layer in layers for node in layer.nodes) for layers in held]
        own = [() if converting else it for converting, it in zip(converts, nodes, strict=True)]
        return _filled(own, converts, self.estimate.edges)

    @property
    def is_measured(self) -> bool:
        """True if every layer that a runtime can run by itself was measured."""
        coverage = self.estimate.coverage
        return self.estimate.composed is not None and not coverage.missing and not self.estimate.is_partial


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes of the files, and for each execution the numbers of its parts that compute them."""

    nodes: tuple[int, ...]
    parts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Covers:
    """The covers of several executions. Nodes of different files have different numbers."""

    # The number of the file of each execution.
    files: tuple[int, ...]
    own: tuple[Cover, ...]
    # With a further node for each layer that the files have in common.
    across: tuple[Cover, ...]

    def among(self, executions: Collection[int]) -> tuple[Cover, ...]:
        """Return the covers in which these executions are compared."""
        return self.own if len({self.files[it] for it in executions}) == 1 else self.across


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of several executions in the order of the file, and the covers that they are made of."""

    groups: tuple[Group, ...]
    covers: Covers
    _refined: dict[tuple[int, frozenset[int]], list[tuple[frozenset[int], list[Group]]]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def refined(self, group: Group, among: frozenset[int]) -> list[tuple[frozenset[int], list[Group]]]:
        """Return what is left of a group without the executions that cover it alike, for each set of such executions.

        It is the other executions with their groups, and is kept: several times of the same parts are compared.
        """
        # A single execution takes as long over smaller sets of nodes.
        if len(among) <= 2:
            return []
        key = group.nodes[0], among
        if key not in self._refined:
            alike: dict[frozenset[Sequence[int]], set[int]] = {}
            for it in among:
                alike.setdefault(frozenset(self.covers.own[it][part] for part in group.parts[it]), set()).add(it)
            self._refined[key] = [
                (others, split({it: group.parts[it] for it in sorted(others)}, self.covers.among(others)))
                for others in (among - left_out for left_out in alike.values())
                if len(others) > 1
            ]
        return self._refined[key]


def is_conversion(layer: Layer) -> bool:
    """True for a layer that a runtime inserts to change the memory layout of a tensor."""
    return layer.kind is Kind.TRANSPOSE and layer.op.rpartition(".")[2].startswith(_CONVERSION)


def groups_of(executions: Sequence[MeasuredExecution]) -> Groups:
    """Return the groups of executions of one model.

    A layer that a runtime has inserted, and that converts no layout, belongs to the layer that reads it. Nodes that an
    execution has optimised away take no time in it. Nodes of several files are compared by the layers that the files
    have in common; without those, the executions of each file are one group.
    """
    covers = _covers_of(executions)
    held = covers.among(range(len(executions)))
    everything = {number: range(len(cover)) for number, cover in enumerate(held)}
    return Groups(tuple(split(everything, held)), covers)


def are_comparable(one: MeasuredExecution, other: MeasuredExecution) -> bool:
    """Return whether single layers of two executions are compared: those of one file, or of files with common ones."""
    if one.file == other.file:
        return True
    first, second = one.as_written, other.as_written
    if first is None or second is None:
        return False
    known = second.layers_by_name
    return any(_are_same(layer, known.get(name)) for name, layer in first.layers_by_name.items())


def _covers_of(executions: Sequence[MeasuredExecution]) -> Covers:
    own = [it.nodes_of_parts for it in executions]
    files = list(dict.fromkeys(it.file for it in executions))
    places = tuple([files.index(it.file) for it in executions])
    if len(files) == 1:
        return Covers(places, tuple(own), tuple(own))
    # For each file the numbers of the common layers that its nodes are compared with.
    written = [next((it.as_written for it in executions if it.file == file and it.as_written), None) for file in files]
    known = [it for it in written if it is not None]
    numbers: list[dict[int, tuple[int, ...]]] = [{} for _ in files]
    if len(known) == len(files):
        for held, graph, common in zip(numbers, known, common_layers(known), strict=True):
            held.update({node: it for layer, it in zip(graph.layers, common, strict=True) for node in layer.nodes})
    # The nodes of the files follow one another, then the common layers.
    size = 1 + max((node for cover in own for nodes in cover for node in nodes), default=0)
    shifted, across = [], []
    for one, cover, place in zip(executions, own, places, strict=True):
        moved = [tuple([place * size + node for node in nodes]) for nodes in cover] if place else list(cover)
        found = [tuple({it: None for node in nodes for it in numbers[place].get(node, ())}) for nodes in cover]
        filled = _filled(found, [not nodes for nodes in cover], one.estimate.edges)
        compared = [it or (0,) if nodes else () for it, nodes in zip(filled, cover, strict=True)]
        both = zip(moved, compared, strict=True)
        shifted.append(tuple(moved))
        across.append(tuple([(*nodes, *(len(files) * size + number for number in it)) for nodes, it in both]))
    return Covers(places, tuple(shifted), tuple(across))


def paid_ps(one: MeasuredExecution, parts: Iterable[int]) -> int:
    """Return the time that some parts take in an inference."""
    return sum([one.paid_ps[number] for number in parts])


def layer_names(one: MeasuredExecution, parts: Iterable[int]) -> tuple[str, ...]:
    """Return the names of the layers of some parts, each once."""
    layers = one.graph.layers
    return tuple(dict.fromkeys(layers[index].name for number in parts for index in one.parts[number].layers))


def latency_of(one: MeasuredExecution) -> Latency:
    """Return the sequential estimate with its interval; zeros without one."""
    return Latency(0.0, 0.0, 0.0) if one.estimate.composed is None else one.estimate.composed.latency


def split(held: Mapping[int, Sequence[int]], covers: Sequence[Sequence[Sequence[int]]]) -> list[Group]:
    """Return the groups of some parts of some covers, by the number of each cover.

    A cover has the nodes that each of its parts belongs to.
    """
    # Each node has the set that it is in; the smaller one of two sets joins the larger one.
    sets: dict[int, list[int]] = {}
    for number, parts in held.items():
        for part in parts:
            for node in (nodes := covers[number][part]):
                one, other = sets.setdefault(nodes[0], [nodes[0]]), sets.setdefault(node, [node])
                if one is not other:
                    small, large = sorted((one, other), key=len)
                    large += small
                    sets.update(dict.fromkeys(small, large))
    members = sorted(sorted(nodes) for nodes in {id(nodes): nodes for nodes in sets.values()}.values())
    places = {node: place for place, nodes in enumerate(members) for node in nodes}
    found: list[list[list[int]]] = [[[] for _ in covers] for _ in members]
    for number, parts in held.items():
        for part in parts:
            if covers[number][part]:
                found[places[covers[number][part][0]]][number].append(part)
    return [Group(tuple(nodes), tuple(map(tuple, each))) for nodes, each in zip(members, found, strict=True)]


def _filled(own: Sequence[tuple[int, ...]], converts: Sequence[bool], edges: Iterable[tuple[int, int]]) -> Cover:
    """Return the cover in which parts without nodes that convert nothing have those of the next part with any."""
    if all(nodes or converts[number] for number, nodes in enumerate(own)):
        return tuple(own)
    readers: list[list[int]] = [[] for _ in own]
    sources: list[list[int]] = [[] for _ in own]
    for source, reader in edges:
        readers[source].append(reader)
        sources[reader].append(source)
    behind, before = list(own), list(own)
    for number in reversed(range(len(own))):
        behind[number] = own[number] or next((behind[it] for it in readers[number] if behind[it]), ())
    for number in range(len(own)):
        before[number] = own[number] or next((before[it] for it in sources[number] if before[it]), ())
    return tuple(
        [nodes if nodes or converts[number] else behind[number] or before[number] for number, nodes in enumerate(own)]
    )


def common_layers(graphs: Sequence[LayerGraph]) -> list[list[tuple[int, ...]]]:
    """Return for each layer of each file the numbers of the common layers that it is compared with.

    A layer without counterparts is compared together with all layers that read it, or else with those that it reads.
    Without any common layer there is one number: the files are compared as a whole.
    """
    first, *others = [graph.layers_by_name for graph in graphs]
    names = [name for name, layer in first.items() if all(_are_same(layer, other.get(name)) for other in others)]
    numbers, numbered = {name: number for number, name in enumerate(names)}, []
    for graph in graphs:
        found: list[tuple[int, ...]] = [(numbers[it.name],) if it.name in numbers else () for it in graph.layers]
        lacking = [index for index, own in enumerate(found) if not own]
        for neighbours, order in ((graph.successors, reversed(lacking)), (graph.predecessors, iter(lacking))):
            for index in order:
                if not found[index]:
                    found[index] = tuple(sorted({number for it in neighbours[index] for number in found[it]}))
        numbered.append([own or (0,) for own in found])
    return numbered


def _are_same(one: Layer, other: Layer | None) -> bool:
    if other is None or one.kind is not other.kind:
        return False
    return [it.shape for it in one.outputs] == [it.shape for it in other.outputs]
