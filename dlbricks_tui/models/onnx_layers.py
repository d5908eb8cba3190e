"""The layer graph of an ONNX graph with types: each node is a layer.

The fused graph of a framework that tells the nodes that it executes, and not an optimised model, follows from the
written layers: those behind an executed node are one fused layer. It is written as their operators, which the framework
fuses again. A conversion of a layout is a layer of its own.
"""

import json
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from dlbricks_tui.models.composites import joined_groups
from dlbricks_tui.models.errors import FusionRefusedError, UnreadableModelError
from dlbricks_tui.models.graph import (
    UNKNOWN_DTYPE,
    UNKNOWN_TYPE,
    Feed,
    GraphInput,
    Layer,
    LayerGraph,
    LayerReads,
    Level,
    Operator,
    Origin,
    ParamValue,
    TensorType,
    Wire,
    digraph_of,
    topological_order,
    type_of,
)
from dlbricks_tui.models.kinds import Kind, kind_of
from dlbricks_tui.models.neutral import InnerForms
from dlbricks_tui.models.onnx_arrays import array_of, dtype_name, value_of
from dlbricks_tui.models.onnx_constants import INDEX_DTYPES, ZERO_POINTS, ConstantAnalysis, is_matrix
from dlbricks_tui.models.onnx_file import OnnxFile, graphs_inside, outer_tensors, reads
from dlbricks_tui.models.onnx_inputs import set_shapes
from dlbricks_tui.models.onnx_operators import REPLACEABLE, OnnxSite, native_node, neutral_onnx, plain_native, text_of
from dlbricks_tui.runtime.traits import Traits

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto, TensorProto


# Float inputs whose values set the shape of the result, by operator and place.
SHAPE_FLOATS: Mapping[str, frozenset[int]] = {
    "Clip": frozenset({1, 2}),
    "Dropout": frozenset({1}),
    "NonMaxSuppression": frozenset({3, 4}),
    "OneHot": frozenset({2}),
    "Pad": frozenset({2}),
    "Pow": frozenset({1}),
    "Range": frozenset({0, 1, 2}),
    "Resize": frozenset({1, 2}),
    "Upsample": frozenset({1}),
}
# Single numbers that these operators read are kept, as runtimes treat some of them specially. They are not part of
# keys.
BESIDE_SCALARS = frozenset(
    ["Add", "Sub", "Mul", "Div", "Max", "Min", "Where", "Greater", "Less", "Equal", "GreaterOrEqual", "LessOrEqual"]
)
# Operators on quantised numbers. Their integer inputs are weights, except for zero points: kernels for zero points of
# zero are faster, and some kernels require equal ones.
QUANTISED = re.compile(r"Q[A-Z]|.*(Integer|[Qq]uantize)")
# Operators that make sequences or maps, which have no shape, and those that read some.
_MAKE_SEQUENCES = frozenset(["SequenceConstruct", "SequenceEmpty", "SplitToSequence", "ZipMap"])
_READ_SEQUENCES = frozenset(
    ["CastMap", "ConcatFromSequence", "DictVectorizer", "SequenceAt", "SequenceErase", "SequenceInsert"]
).union(["SequenceLength", "SequenceMap"])


@dataclass(frozen=True, slots=True)
class OnnxGraph:
    """Nodes and constants, and the nodes of the file behind each node."""

    analysis: ConstantAnalysis
    inputs: Mapping[str, TensorType]
    # Its nodes, with the branch that runs in place of each `If`.
    file: OnnxFile
    names: Sequence[str]
    parts: Sequence[tuple[int, ...]]
    traits: Traits


class OnnxGraphBuilder:
    """Makes the layers of a model."""

    def __init__(self, found: OnnxGraph, name: str, level: Level) -> None:
        self._found = found
        self._analysis = found.analysis
        self._nodes = found.analysis.layers
        self._name = name
        self._level = level
        self._inputs = {name: number for number, name in enumerate(found.inputs)}
        self._forms = InnerForms()
        # Numbers of stored arrays.
        self._arrays: dict[str, int] = {}
        # Values that are part of layers: as parameters and as text.
        self._values: dict[str, ParamValue] = {}
        self._texts: dict[str, str] = {}
        # The producer of each tensor by name, and for each node the numbers of the outputs that others read.
        read = {name for node in self._nodes for name in reads(node)}.union(found.file.outputs)
        self._made: dict[str, Feed] = {}
        self._results: list[list[int]] = []
        for index, node in enumerate(self._nodes):
            written = [output for output in node.output if output]
            leaving = [number for number, output in enumerate(written) if output in read]
            self._results.append(leaving)
            self._made.update((written[number], Feed(index, place)) for place, number in enumerate(leaving))

    def graph(self) -> LayerGraph:
        if not self._nodes:
            raise UnreadableModelError(f"{self._name} computes nothing that depends on its inputs: nothing to run")
        return LayerGraph(
            self._name,
            self._level,
            tuple([self._layer(index) for index in range(len(self._nodes))]),
            tuple([GraphInput(name, found) for name, found in self._found.inputs.items()]),
            tuple([self._feed(name) for name in self._found.file.outputs if name not in self._analysis.constants]),
            self._found.traits,
        )

    def _layer(self, index: int) -> Layer:
        node = self._nodes[index]
        taken = LayerReads()
        operator = self._operator(node, taken)
        results = self._results[index]
        outputs = tuple([operator.outputs[output] for output in results])
        data, weights = tuple(taken.data), tuple(taken.weights)
        written = [name for name in node.output if name]
        numbers = tuple([self._analysis.numbers.get(written[output], ()) for output in results])
        # A look-up in a stored table is an embedding.
        is_table = node.op_type == "Gather" and node.input and node.input[0] in self._analysis.constants
        return Layer(
            index=index,
            name=self._found.names[index],
            op=operator.op,
            kind=Kind.EMBEDDING if is_table else kind_of(operator.op),
            operators=(operator,),
            feeds=tuple(taken.feeds),
            data=data,
            weights=weights,
            results=tuple([Wire(Origin.OPERATOR, 0, output) for output in results]),
            outputs=outputs,
            unmeasurable=self._why_unmeasurable(node, (*data, *weights), outputs),
            nodes=self._found.parts[index],
            arrays=tuple([self._arrays.setdefault(name, len(self._arrays)) for name in taken.arrays]),
            numbers=numbers if any(numbers) else (),
            is_recorded=not self._analysis.recorded.isdisjoint(node.output),
        )

    def _operator(self, node: "NodeProto", taken: LayerReads) -> Operator:
        analysis = self._analysis
        stored: dict[int, str] = {}
        facts: dict[int, ParamValue] = {}
        wires: list[Wire] = []
        replaceable: list[int] = []
        for place, name in enumerate(reads(node)):
            value = analysis.values.get(name)
            if not name:
                continue
            if value is not None and (fact := self._fact(node, place, name, value)) is not None:
                # Layers that read the same value share its text.
                if name not in self._texts:
                    self._texts[name] = text_of(value)
                stored[place], facts[place] = self._texts[name], fact
            elif name in analysis.constants:
                wires.append(taken.weight(name, analysis.type_of(name)))
                if name in self._found.file.replaceable and place < len(node.input):
                    replaceable.append(place)
            else:
                wires.append(taken.tensor(self._feed(name), analysis.type_of(name)))
        version = self._found.file.opsets[node.domain]
        outputs = tuple([analysis.type_of(name) for name in node.output if name])
        inputs = [analysis.type_of(name) for place, name in enumerate(node.input) if name and place not in stored]
        neutral = neutral_onnx(node, OnnxSite(tuple(inputs), outputs, version, facts, len(outputs)))
        # The numbers of computed inputs that set the shape of a result define the operation, too, as do given numbers.
        sizes = set_shapes(node)
        computed = [
            (f"computed{place}", analysis.numbers.get(name))
            for place, name in enumerate(reads(node))
            if place not in stored and (name in sizes or name in self._inputs)
        ]
        params = (*neutral.params, *((name, numbers) for name, numbers in computed if numbers))
        if replaceable:
            params = (*params, (REPLACEABLE, tuple(replaceable)))
        inner = tuple([_canonical(graph, outer_tensors(node), self._forms) for graph in graphs_inside(node)])
        native = native_node(node, stored, version, replaceable)
        return Operator(neutral.op, params, tuple(wires), outputs, native, inner, (neutral.op,))

    def _fact(self, node: "NodeProto", place: int, name: str, value: "TensorProto") -> ParamValue:
        """Return the parameter that a stored value becomes; None for a weight."""
        found = self._analysis.type_of(name)
        says_where = found.dtype in INDEX_DTYPES and not QUANTISED.match(node.op_type)
        if says_where or place in SHAPE_FLOATS.get(node.op_type, ()):
            if name not in self._values:
                self._values[name] = value_of(value)
            return self._values[name]
        if found.dtype in ZERO_POINTS and not is_matrix(found) and QUANTISED.match(node.op_type):
            return f"{found.dtype} {found.shape}{'' if array_of(value).any() else ' of zeros'}"
        single = found.shape is not None and all(size == 1 for size in found.shape)
        return f"{found.dtype} {found.shape}" if single and node.op_type in BESIDE_SCALARS else None

    def _feed(self, name: str) -> Feed:
        return Feed(None, self._inputs[name]) if name in self._inputs else self._made[name]

    def _why_unmeasurable(
        self, node: "NodeProto", inputs: Collection[TensorType], outputs: Collection[TensorType]
    ) -> str | None:
        if all(found.is_known for found in (inputs if node.op_type in _MAKE_SEQUENCES else (*inputs, *outputs))):
            return None
        if node.op_type in _READ_SEQUENCES:
            return "it reads a sequence or a map, which only the whole model makes"
        if (node.domain, node.op_type) in self._found.file.functions:
            return "it is a function for other versions of operators than the model: export the model with one version"
        if self._analysis.failure:
            return f"its shapes are unknown, as {self._analysis.failure}"
        if self._level is Level.FUSED:
            return "ONNX Runtime does not say which shape its tensors have"
        from onnx import defs

        try:
            defs.get_schema(node.op_type, self._found.file.opsets[node.domain], node.domain)
        except defs.SchemaError:
            domain = f" of {node.domain}" if node.domain else ""
            return f"operator {node.op_type}{domain} is not known to the installed onnx"
        return "its shapes follow from values, which only the whole model knows, or from an operator that onnx lacks"


def _canonical(graph: "GraphProto", outer: Sequence[str], forms: InnerForms) -> str:
    """Return the canonical form of a subgraph, without names and without the values of weights.

    As in other formats, operators are lists of four items, all else is text, and the outputs come last.
    """
    numbers = {name: ["outer", number] for number, name in enumerate(outer)}
    numbers |= {it.name: ["input", number] for number, it in enumerate(graph.input)}
    form: list[object] = []
    for weight in graph.initializer:
        numbers[weight.name] = ["weight", len(form)]
        form.append(f"weight {dtype_name(weight.data_type)} {list(weight.dims)}")
    for node in graph.node:
        site = OnnxSite((UNKNOWN_TYPE,) * len(node.input), (), 0, {}, len(node.output))
        neutral = neutral_onnx(node, site)
        inner = [_canonical(found, [*outer, *outer_tensors(node)], forms) for found in graphs_inside(node)]
        for output, name in enumerate(node.output):
            numbers[name] = [len(form), output]
        read = [numbers.get(name, [UNKNOWN_DTYPE, 0]) for name in reads(node)]
        form.append([neutral.op, neutral.params, read, inner])
    form.append([numbers.get(it.name, [UNKNOWN_DTYPE, 0]) for it in graph.output])
    return forms.spell(form)


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

    executed: _Executed
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
    place = {layer: number for number, group in enumerate(groups) for layer in group}
    # The group behind each executed node, and what was compiled of each group.
    behind = [place[it.layers[0]] if it.layers else None for it in executed]
    compiled: list[list[str]] = [[] for _ in groups]
    for it, owner in zip(executed, behind, strict=True):
        if owner is not None:
            compiled[owner].append(_compiled_form(it, executed))
    graph, moved = joined_groups(written, [[group] for group in groups])
    layers = [
        _compiled(layer, [written.layers[it] for it in group], forms)
        for layer, group, forms in zip(graph.layers, groups, compiled, strict=True)
    ]
    conversions = _conversions(graph, executed, behind)
    tensors = {new: old for old, new in moved.items()}
    layers += [_conversion(it, written, tensors[it.tensor], executed) for it in conversions]
    fused = replace(graph, level=Level.FUSED, layers=tuple(layers))
    return _converted(fused, conversions, [group[0] for group in groups])


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
    owner = {layer: number for number, part in enumerate(parts) for layer in part}
    sources = [{owner[it] for layer in part for it in written.predecessors[layer]} for part in parts]
    cycles = nx.strongly_connected_components(digraph_of(sources))
    return sorted(sorted(layer for number in cycle for layer in parts[number]) for cycle in cycles)


def _conversions(graph: LayerGraph, executed: Sequence[_Executed], behind: Sequence[int | None]) -> list[_Conversion]:
    """Return the conversions between groups, each of the tensor that its readers read from the group before."""
    readers: list[set[int]] = [set() for _ in executed]
    for it, group in zip(executed, behind, strict=True):
        for source in it.reads:
            if source is not None and group is not None:
                readers[source].add(group)
    found: list[_Conversion] = []
    taken: set[tuple[Feed, int]] = set()
    for number, it in enumerate(executed):
        before = it.reads[0] if it.reads else None
        maker = None if before is None else behind[before]
        if it.kind != CONVERSION or it.layers or (before is not None and maker is None):
            continue
        after = readers[number] - {maker}
        # The first tensor that passes from the group, or from the inputs, to one of the readers or out.
        read = [feed for reader in after for feed in graph.layers[reader].feeds]
        read += graph.heads if it.leaves else ()
        tensor = next((feed for feed in read if feed.layer == maker), None)
        if tensor is None:
            continue
        free = frozenset(reader for reader in after if (tensor, reader) not in taken)
        if free or it.leaves:
            taken.update((tensor, reader) for reader in free)
            found.append(_Conversion(it, tensor, free, it.leaves))
    return found


def _compiled_form(it: _Executed, executed: Sequence[_Executed]) -> str:
    """Return the kind and kernel of an executed node, the layouts that it reads, and the one that it writes."""
    read = [_INPUT if place is None else executed[place].layout for place in it.reads]
    return f"{it.kind} {it.kernel} {' '.join(read)} -> {it.layout} {it.dtype}"


def _compiled(layer: Layer, members: Sequence[Layer], forms: Sequence[str]) -> Layer:
    """Return the layer of a group with what was compiled of it; it has the name of a member of its kind."""
    first, *others = layer.operators
    if forms:
        first = replace(first, params=(*first.params, (COMPILED, tuple(forms))))
    name = next(member.name for member in members if member.kind is layer.kind)
    return replace(layer, name=name, operators=(first, *others))


def _conversion(it: _Conversion, written: LayerGraph, tensor: Feed, executed: Sequence[_Executed]) -> Layer:
    """Return a conversion as a layer; `tensor` is what it reads, among the written layers."""
    found = type_of(written, tensor)
    params = ((COMPILED, (_compiled_form(it.executed, executed),)),)
    native = plain_native(CONVERSION, _DOMAIN)
    operator = Operator(native.op, params, (Wire(Origin.DATA, 0),), (found,), native, (), (native.op,))
    name = written.inputs[tensor.output].name if tensor.layer is None else written.layers[tensor.layer].name
    return Layer(
        index=0,
        name=f"{name} as {it.executed.layout}",
        op=operator.op,
        kind=kind_of(operator.op),
        operators=(operator,),
        feeds=(it.tensor,),
        data=(found,),
        weights=(),
        results=(Wire(Origin.OPERATOR, 0),),
        outputs=(found,),
    )


def _converted(graph: LayerGraph, conversions: Sequence[_Conversion], begins: Sequence[int]) -> LayerGraph:
    """Return a graph whose last layers are these conversions, with the conversions in front of their readers.

    Each layer follows those that it reads, otherwise they are in the order in which they begin in the file.
    """
    # What a layer reads instead of a tensor; None stands for the outputs of the model.
    instead: dict[tuple[Feed, int | None], Feed] = {}
    ranks = [(begin, 1) for begin in begins]
    for number, it in enumerate(conversions, start=len(begins)):
        readers = [*it.readers, *([None] if it.leaves else [])]
        instead |= {(it.tensor, reader): Feed(number, 0) for reader in readers}
        ranks.append((min((begins[reader] for reader in it.readers), default=sys.maxsize), 0))
    feeds = [[instead.get((feed, layer), feed) for feed in it.feeds] for layer, it in enumerate(graph.layers)]
    listed = sorted(range(len(feeds)), key=ranks.__getitem__)
    rank = {layer: place for place, layer in enumerate(listed)}
    sources = [[rank[feed.layer] for feed in feeds[layer] if feed.layer is not None] for layer in listed]
    order = [listed[place] for place in topological_order(sources)]
    index: dict[int | None, int | None] = {None: None, **{layer: place for place, layer in enumerate(order)}}
    layers = [
        replace(graph.layers[layer], index=place, feeds=tuple([Feed(index[it], output) for it, output in feeds[layer]]))
        for place, layer in enumerate(order)
    ]
    heads = [instead.get((head, None), head) for head in graph.heads]
    return replace(graph, layers=tuple(layers), heads=tuple([Feed(index[it], output) for it, output in heads]))


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
