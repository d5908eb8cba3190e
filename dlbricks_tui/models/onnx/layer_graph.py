"""From an ONNX graph with types to a layer graph: each node is a layer."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
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


def build_onnx_graph(found: OnnxGraph, name: str, level: Level) -> LayerGraph:
    """Return the layers of a model."""
    return _Builder(found, name, level).graph()


class _Reads:
    """The inputs of a layer, each once and numbered."""

    def __init__(self) -> None:
        self.feeds: dict[Feed, int] = {}
        self.data: list[TensorType] = []
        self.weights: dict[str, int] = {}
        self.weight_types: list[TensorType] = []

    def feed(self, feed: Feed, found: TensorType) -> Wire:
        """Return the wire from an input of the model or from another layer."""
        if feed not in self.feeds:
            self.feeds[feed] = len(self.data)
            self.data.append(found)
        return Wire(Origin.DATA, self.feeds[feed])

    def weight(self, name: str, found: TensorType) -> Wire:
        """Return the wire from a stored array."""
        if name not in self.weights:
            self.weights[name] = len(self.weight_types)
            self.weight_types.append(found)
        return Wire(Origin.WEIGHT, self.weights[name])


class _Builder:
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
        taken = _Reads()
        operator = self._operator(node, taken)
        results = self._results[index]
        outputs = tuple([operator.outputs[output] for output in results])
        data, weights = tuple(taken.data), tuple(taken.weight_types)
        written = [name for name in node.output if name]
        numbers = tuple([self._analysis.numbers.get(written[output], ()) for output in results])
        return Layer(
            index=index,
            name=self._found.names[index],
            op=operator.op,
            kind=_kind(node, operator.op, self._analysis),
            operators=(operator,),
            feeds=tuple(taken.feeds),
            data=data,
            weights=weights,
            results=tuple([Wire(Origin.OPERATOR, 0, output) for output in results]),
            outputs=outputs,
            unmeasurable=self._why_unmeasurable(node, (*data, *weights), outputs),
            nodes=self._found.parts[index],
            arrays=tuple([self._arrays.setdefault(name, len(self._arrays)) for name in taken.weights]),
            numbers=numbers if any(numbers) else (),
            is_recorded=not self._analysis.recorded.isdisjoint(node.output),
        )

    def _operator(self, node: "NodeProto", taken: _Reads) -> Operator:
        stored: dict[int, str] = {}
        facts: dict[int, ParamValue] = {}
        wires: list[Wire] = []
        for place, name in enumerate(reads(node)):
            value = self._analysis.values.get(name)
            if not name:
                continue
            if value is not None and (fact := self._fact(node, place, name, value)) is not None:
                # Layers that read the same value share its text.
                if name not in self._texts:
                    self._texts[name] = text_of(value)
                stored[place], facts[place] = self._texts[name], fact
            else:
                wires.append(self._wire(name, taken))
        version = self._found.file.opsets[node.domain]
        outputs = tuple([self._analysis.type_of(name) for name in node.output if name])
        inputs = [self._analysis.type_of(name) for place, name in enumerate(node.input) if name and place not in stored]
        neutral = neutral_onnx(node, OnnxSite(tuple(inputs), outputs, version, facts, len(outputs)))
        params = (*neutral.params, *self._sizes(node, stored))
        inner = tuple([_canonical(graph, outer_tensors(node), self._forms) for graph in graphs_inside(node)])
        native = native_node(node, stored, version)
        return Operator(neutral.op, params, tuple(wires), outputs, native, inner, (neutral.op,))

    def _sizes(self, node: "NodeProto", stored: Collection[int]) -> Iterator[tuple[str, ParamValue]]:
        """Return the numbers of computed inputs that set the shape of a result: they define the operation, too."""
        for place in sorted(shape_places(node.op_type)):
            if place < len(node.input) and place not in stored:
                numbers = self._analysis.numbers.get(node.input[place])
                if numbers:
                    yield f"computed{place}", numbers

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

    def _wire(self, name: str, taken: _Reads) -> Wire:
        found = self._analysis.type_of(name)
        return taken.weight(name, found) if name in self._analysis.constants else taken.feed(self._feed(name), found)

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
        if not _is_known_operator(node, self._found.file.opsets[node.domain]):
            domain = f" of {node.domain}" if node.domain else ""
            return f"operator {node.op_type}{domain} is not known to the installed onnx"
        return "its shapes follow from values, which only the whole model knows, or from an operator that onnx lacks"


def _kind(node: "NodeProto", op: str, analysis: ConstantAnalysis) -> Kind:
    """Return the kind by name; a look-up in a stored table is an embedding."""
    if node.op_type == "Gather" and node.input and node.input[0] in analysis.constants:
        return Kind.EMBEDDING
    return kind_of(op)


def _is_known_operator(node: "NodeProto", version: int) -> bool:
    from onnx import defs

    try:
        defs.get_schema(node.op_type, version, node.domain)
    except defs.SchemaError:
        return False
    return True


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
