"""The fused graph of a framework that tells the nodes that it executes, and not an optimised model.

The written layers behind an executed node are one fused layer. It is written as their operators, which the framework
fuses again. A conversion of a layout is a layer of its own.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from dlbricks_tui.models.composites import joined_layer
from dlbricks_tui.models.digraphs import digraph_of, topological_order
from dlbricks_tui.models.errors import FusionRefusedError
from dlbricks_tui.models.graph import Feed, Layer, LayerGraph, Level, Operator, Origin, Wire, type_of
from dlbricks_tui.models.kinds import kind_of
from dlbricks_tui.models.onnx.model_file import OnnxFile
from dlbricks_tui.models.onnx.neutral import plain_native

if TYPE_CHECKING:
    from onnx import NodeProto

# A conversion of a layout as an operator; its domain tells the worker that the framework inserts it by itself.
CONVERSION, _DOMAIN = "Reorder", "openvino"
# Inputs of a model have the plain layout.
_INPUT = "plain"
# The parameter with the kernels and the layouts of a fused layer.
COMPILED = "compiled"


@dataclass(frozen=True, slots=True)
class _Executed:
    """An executed node; `reads` are the places of others, None for an input, and `layers` the written layers."""

    kind: str
    kernel: str
    layout: str
    dtype: str
    reads: tuple[int | None, ...]
    leaves: bool
    layers: tuple[int, ...]


class _Conversion(NamedTuple):
    """The conversion of a tensor into another layout, for readers among the groups, or for the output of the model."""

    executed: int
    tensor: Feed
    readers: frozenset[int]
    leaves: bool


def executed_graph(written: LayerGraph, owners: Mapping[int, int], text: str) -> LayerGraph:
    """Return the fused graph; `owners` are the written layers by the numbers of the nodes in the answer `text`."""
    try:
        executed = [_parsed(it, number, owners) for number, it in enumerate(json.loads(text))]
    except (ValueError, LookupError, TypeError) as error:
        raise FusionRefusedError(
            f"{written.name}: the runtime's list of executed nodes is damaged: {error!r}"
        ) from None
    groups = _groups(written, executed)
    return _Builder(written, executed, groups, _conversions(written, executed, groups)).graph()


def _parsed(document: Mapping[str, Any], place: int, owners: Mapping[int, int]) -> _Executed:
    facts = [str(document[key]) for key in ("kind", "kernel", "layout", "dtype")]
    layers = tuple(sorted({owners[number] for number in document["numbers"] if number in owners}))
    reads = tuple(document["reads"])
    if not all(it is None or 0 <= it < place for it in reads):
        raise ValueError("a node reads one that does not run before it")
    kind, kernel, layout, dtype = facts
    return _Executed(kind, kernel, layout, dtype, reads, bool(document["leaves"]), layers)


def _groups(written: LayerGraph, executed: Sequence[_Executed]) -> list[list[int]]:
    """Return the written layers in groups without cycles between them; those behind one executed node stay together."""
    import networkx as nx

    together = nx.Graph()
    together.add_nodes_from(range(len(written.layers)))
    for it in executed:
        together.add_edges_from(pairwise(it.layers))
    parts = [sorted(part) for part in nx.connected_components(together)]
    owner = _places(parts)
    sources = [{owner[it] for layer in part for it in written.predecessors[layer]} for part in parts]
    cycles = nx.strongly_connected_components(digraph_of(sources))
    return sorted(sorted(layer for number in cycle for layer in parts[number]) for cycle in cycles)


def _places(groups: Sequence[Sequence[int]]) -> dict[int, int]:
    return {layer: number for number, group in enumerate(groups) for layer in group}


def _conversions(
    written: LayerGraph, executed: Sequence[_Executed], groups: Sequence[Sequence[int]]
) -> list[_Conversion]:
    """Return the conversions between groups, each of the tensor that its readers read from the group before."""
    place = _places(groups)
    readers: list[set[int]] = [set() for _ in executed]
    for it in executed:
        for source in it.reads:
            if source is not None and it.layers:
                readers[source].add(place[it.layers[0]])
    found: list[_Conversion] = []
    taken: set[tuple[Feed, int]] = set()
    for number, it in enumerate(executed):
        before = it.reads[0] if it.reads else None
        if it.kind != CONVERSION or it.layers or (before is not None and not executed[before].layers):
            continue
        source = None if before is None else place[executed[before].layers[0]]
        behind = readers[number] - {source}
        # The first tensor that passes from the group, or from the inputs, to one of the readers or out.
        read = [feed for reader in behind for layer in groups[reader] for feed in written.layers[layer].feeds]
        read += written.heads if it.leaves else ()
        makers = (None,) if source is None else groups[source]
        tensor = next((feed for feed in read if feed.layer in makers), None)
        if tensor is None:
            continue
        free = frozenset(reader for reader in behind if (tensor, reader) not in taken)
        if free or it.leaves:
            taken.update((tensor, reader) for reader in free)
            found.append(_Conversion(number, tensor, free, it.leaves))
    return found


class _Builder:
    """Units are numbered: the groups, then the conversions."""

    def __init__(
        self,
        written: LayerGraph,
        executed: Sequence[_Executed],
        groups: Sequence[Sequence[int]],
        conversions: Sequence[_Conversion],
    ) -> None:
        self._written = written
        self._executed = executed
        self._groups = groups
        self._conversions = conversions
        self._place = _places(groups)
        # The conversion that a unit reads a tensor from; None stands for the outputs of the model.
        self._converter: dict[tuple[Feed, int | None], int] = {}
        for number, conversion in enumerate(conversions, start=len(groups)):
            readers = [*conversion.readers, *([None] if conversion.leaves else [])]
            self._converter |= {(conversion.tensor, reader): number for reader in readers}
        self._order = self._in_order()
        self._index = {unit: index for index, unit in enumerate(self._order)}
        # The tensors of each group that others read, or that are outputs.
        leaving: list[set[Feed]] = [set() for _ in groups]
        read = [(tensor, self._place[layer.index]) for layer in written.layers for tensor in layer.feeds]
        for tensor, reader in (*read, *((head, -1) for head in written.heads)):
            if tensor.layer is not None and self._place[tensor.layer] != reader:
                leaving[self._place[tensor.layer]].add(tensor)
        self._results = [sorted(tensors) for tensors in leaving]
        # What was compiled of each group.
        self._compiled: list[list[str]] = [[] for _ in groups]
        for it in executed:
            if it.layers:
                self._compiled[self._place[it.layers[0]]].append(self._compiled_form(it))

    def graph(self) -> LayerGraph:
        first = len(self._groups)
        layers = [
            self._group(unit) if unit < first else self._conversion(self._conversions[unit - first], self._index[unit])
            for unit in self._order
        ]
        heads = tuple([self._feed(feed, None) for feed in self._written.heads])
        return replace(self._written, level=Level.FUSED, layers=tuple(layers), heads=heads)

    def _maker(self, tensor: Feed, reader: int | None) -> int | None:
        """Return the unit that a unit reads a tensor from; None for an input of the model."""
        maker = None if tensor.layer is None else self._place[tensor.layer]
        return self._converter.get((tensor, reader), maker)

    def _feed(self, tensor: Feed, reader: int | None) -> Feed:
        """Return a tensor of the written graph as a unit reads it."""
        maker = self._maker(tensor, reader)
        return tensor if maker is None else self._made_by(maker, tensor)

    def _made_by(self, maker: int, tensor: Feed) -> Feed:
        output = self._results[maker].index(tensor) if maker < len(self._groups) else 0
        return Feed(self._index[maker], output)

    def _in_order(self) -> list[int]:
        """Return the units in an order in which each follows what it reads, and otherwise in the order of the file."""
        units: list[tuple[tuple[float, int], int, set[int | None]]] = []
        for number, group in enumerate(self._groups):
            read = {self._maker(feed, number) for layer in group for feed in self._written.layers[layer].feeds}
            units.append(((group[0], 1), number, read - {number}))
        for number, it in enumerate(self._conversions, start=len(self._groups)):
            before = None if it.tensor.layer is None else self._place[it.tensor.layer]
            at = min((self._groups[reader][0] for reader in it.readers), default=len(self._written.layers))
            units.append(((at, 0), number, {before}))
        units.sort(key=lambda unit: unit[0])
        rank = {number: place for place, (_, number, _) in enumerate(units)}
        sources = [sorted(rank[it] for it in read if it is not None) for _, _, read in units]
        return [units[place][1] for place in topological_order(sources)]

    def _compiled_form(self, it: _Executed) -> str:
        """Return the kind and kernel of an executed node, the layouts that it reads, and the one that it writes."""
        read = [_INPUT if place is None else self._executed[place].layout for place in it.reads]
        return f"{it.kind} {it.kernel} {' '.join(read)} -> {it.layout} {it.dtype}"

    def _conversion(self, it: _Conversion, index: int) -> Layer:
        found = type_of(self._written, it.tensor)
        made = self._executed[it.executed]
        params = ((COMPILED, (self._compiled_form(made),)),)
        native = plain_native(CONVERSION, _DOMAIN)
        operator = Operator(native.op, params, (Wire(Origin.DATA, 0),), (found,), native, (), (native.op,))
        before = it.tensor.layer
        name = self._written.inputs[it.tensor.output].name if before is None else self._written.layers[before].name
        return Layer(
            index=index,
            name=f"{name} as {made.layout}",
            op=operator.op,
            kind=kind_of(operator.op),
            operators=(operator,),
            feeds=(it.tensor if before is None else self._made_by(self._place[before], it.tensor),),
            data=(found,),
            weights=(),
            results=(Wire(Origin.OPERATOR, 0),),
            outputs=(found,),
        )

    def _group(self, unit: int) -> Layer:
        members = [self._written.layers[layer] for layer in self._groups[unit]]
        found = joined_layer(members, self._results[unit], lambda feed: self._feed(feed, unit))
        operators = list(found.operators)
        if self._compiled[unit]:
            params = (*operators[0].params, (COMPILED, tuple(self._compiled[unit])))
            operators[0] = replace(operators[0], params=params)
        name = next(layer.name for layer in members if layer.kind is found.kind)
        return replace(found, index=self._index[unit], name=name, operators=tuple(operators))


# What ONNX Runtime appends to the name of a node or tensor for the node that replaces it.
_APPENDED = re.compile(r"(_nchwc|_token_\d+|/\w+Fusion/?)$")


def written_layers_behind(file: OnnxFile, written: LayerGraph, original: OnnxFile) -> list[list[int]]:
    """Return for each node the written layers behind it, with the one that names it last.

    ONNX Runtime keeps the names of tensors and nodes, or names a node after one: that gives the layer. Written layers
    before it that no node is named after were merged into it.
    """
    nodes = [(layer.index, original.nodes[number]) for layer in written.layers for number in layer.nodes]
    # The written layer of each tensor, and of each node whose name no tensor has.
    owners = {node.name: index for index, node in nodes if node.name}
    owners |= {name: index for index, node in nodes for name in node.output if name}
    named = [_named_for(node, owners) for node in file.nodes]
    taken = {index for index in named if index is not None}
    found: list[list[int]] = []
    for index in named:
        merged: list[int] = []
        waiting = [] if index is None else [*written.predecessors[index]]
        while waiting:
            before = waiting.pop()
            if before not in taken:
                taken.add(before)
                merged.append(before)
                waiting += written.predecessors[before]
        found.append([] if index is None else [*sorted(merged), index])
    return found


def _named_for(node: "NodeProto", owners: Mapping[str, int]) -> int | None:
    for name in (*node.output, node.name):
        before = ""
        while name and name != before:
            if name in owners:
                return owners[name]
            before, name = name, _APPENDED.sub("", name)
    return None
