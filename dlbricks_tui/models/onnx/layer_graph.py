"""From an ONNX graph with types to a layer graph: each node is a layer."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dlbricks_tui.models.errors import UnreadableModelError
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
)
from dlbricks_tui.models.kinds import Kind, kind_of
from dlbricks_tui.models.neutral import InnerForms
from dlbricks_tui.models.onnx.constants import INDEX_DTYPES, ZERO_POINTS, ConstantAnalysis, is_matrix
from dlbricks_tui.models.onnx.inputs import shape_places
from dlbricks_tui.models.onnx.model_file import OnnxFile, graphs_inside, outer_tensors, reads
from dlbricks_tui.models.onnx.neutral import OnnxSite, native_node, neutral_onnx, text_of
from dlbricks_tui.models.onnx.stored_arrays import array_of, dtype_name, value_of
from dlbricks_tui.runtime.traits import Traits

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto, TensorProto

# Float inputs whose values set the shape of the result, by operator and place.
SHAPE_FLOATS: Mapping[str, frozenset[int]] = {
    "Clip": frozenset({1, 2}),
    "Dropout": frozenset({1}),
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
            else:
                wires.append(taken.tensor(self._feed(name), analysis.type_of(name)))
        version = self._found.file.opsets[node.domain]
        outputs = tuple([analysis.type_of(name) for name in node.output if name])
        inputs = [analysis.type_of(name) for place, name in enumerate(node.input) if name and place not in stored]
        neutral = neutral_onnx(node, OnnxSite(tuple(inputs), outputs, version, facts, len(outputs)))
        # The numbers of computed inputs that set the shape of a result define the operation, too.
        places = [place for place in sorted(shape_places(node.op_type)) if place < len(node.input)]
        computed = [(f"computed{it}", analysis.numbers.get(node.input[it])) for it in places if it not in stored]
        params = (*neutral.params, *((name, numbers) for name, numbers in computed if numbers))
        inner = tuple([_canonical(graph, outer_tensors(node), self._forms) for graph in graphs_inside(node)])
        native = native_node(node, stored, version)
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
