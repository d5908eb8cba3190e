"""Writes layers as an ONNX model whose weights have types and no values: whoever runs it makes them."""

from base64 import b64encode
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dlbricks_tui.models.graph import Feed, LayerGraph, NativeNode, Origin, TensorType
from dlbricks_tui.models.onnx.model_file import OnnxFile
from dlbricks_tui.models.onnx.native import NodeInPlace
from dlbricks_tui.models.onnx.tensor_types import dtype_number
from dlbricks_tui.models.onnx.values import is_elsewhere

if TYPE_CHECKING:
    from onnx import ModelProto

# Of the versions that any runtime of today reads, and enough for nodes that do not say theirs.
_IR_VERSION, _USUAL_OPSET = 8, 13
# They do not touch their tensor: inside of a model the result is the same memory by another shape.
_HAND_ON = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
# Where the values of a weight are said to be.
MADE_UP = "made up by the worker"


class OnnxSheet:
    """Collects nodes and variables, known by number, and renders them."""

    def __init__(self) -> None:
        from onnx import GraphProto

        self._graph = GraphProto(name="layers")
        self._names: list[str] = []
        self._opsets: dict[str, int] = {}
        # What nodes read that hand on the memory of their input.
        self._handed_on: dict[int, tuple[int, int]] = {}

    def fresh(self, name: str) -> str:
        """The name itself: nodes are called otherwise."""
        return name

    def variable(self, name: str, found: TensorType, *, learned: bool) -> int:
        """An array of that name, a weight or an input."""
        from onnx import StringStringEntryProto, TensorProto
        from onnx.helper import make_tensor_value_info

        number = dtype_number(found.dtype)
        if learned:
            where = StringStringEntryProto(key="location", value=MADE_UP)
            location = TensorProto.EXTERNAL
            self._graph.initializer.append(
                TensorProto(
                    name=name, dims=found.shape, data_type=number, data_location=location, external_data=[where]
                )
            )
        else:
            self._graph.input.append(make_tensor_value_info(name, number, found.shape))
        self._names.append(name)
        return len(self._names) - 1

    def operator(self, native: NativeNode, name: str, inputs: Sequence[tuple[int, int]]) -> int:
        """A node that reads these outputs of others."""
        kept = NodeInPlace(native)
        number = len(self._names)
        self._names.append("")
        results = [self._name(number, output) for output in range(kept.results)]
        node, values = kept.written(f"node{number}", [self._name(*entry) for entry in inputs], results)
        self._graph.node.append(node)
        self._graph.initializer.extend(values)
        if kept.version is not None:
            self._opsets[kept.domain] = kept.version
        if not kept.domain and kept.op in _HAND_ON:
            self._handed_on[number] = inputs[0]
        return number

    def in_passing(self, entry: tuple[int, int]) -> list[tuple[int, int]]:
        """What to put out so that an output is made as inside of a model.

        A runtime has arrays of their own for what a graph puts out, into which what is only handed on would be copied.
        """
        from onnx import NodeProto

        source = self._handed_on.get(entry[0])
        if source is None:
            return [entry] if not self._names[entry[0]] else []
        number = len(self._names)
        self._names.append("")
        node = NodeProto(
            op_type="Shape", name=f"node{number}", input=[self._name(*entry)], output=[self._name(number, 0)]
        )
        self._graph.node.append(node)
        return [*self.in_passing(source), (number, 0)]

    def text(self, heads: Sequence[tuple[int, int]]) -> str:
        """The model that puts these out, as text."""
        from onnx import ModelProto, NodeProto, ValueInfoProto
        from onnx.helper import make_operatorsetid

        for place, entry in enumerate(heads):
            name = self._name(*entry)
            if self._names[entry[0]] or entry in heads[:place]:
                # A runtime takes an input, or the same tensor twice, for no output of a graph.
                name, again = f"head{place}", name
                self._graph.node.append(NodeProto(op_type="Identity", name=name, input=[again], output=[name]))
            self._graph.output.append(ValueInfoProto(name=name))
        opsets = {"": _USUAL_OPSET, **self._opsets}
        model = ModelProto(
            ir_version=_IR_VERSION, graph=self._graph, opset_import=[make_operatorsetid(*it) for it in opsets.items()]
        )
        return _text(model)

    def _name(self, node: int, output: int) -> str:
        return self._names[node] or tensor_name(node, output)


def tensor_name(node: int, output: int) -> str:
    """What an output of a node is called."""
    return f"t{node}_{output}"


@dataclass(frozen=True, slots=True)
class WholeModel:
    """All layers of a model as text, the types of its weights by name, and which layer each node is of."""

    text: str
    weights: Mapping[str, TensorType]
    owners: Mapping[int, int]


def whole_model(graph: LayerGraph) -> WholeModel:
    """A model as one graph."""
    sheet = OnnxSheet()
    owners: dict[int, int] = {}
    weights: dict[str, TensorType] = {}
    stored: dict[Hashable, tuple[int, int]] = {}
    entries: dict[Feed, tuple[int, int]] = {}
    for number, given in enumerate(graph.inputs):
        entries[Feed(None, number)] = (sheet.variable(f"data{number}", given.type, learned=False), 0)
    for layer in graph.layers:
        (operator,) = layer.operators
        arrays = [layer.array(number) for number in range(len(layer.weights))]
        for array, found in zip(arrays, layer.weights, strict=True):
            if array not in stored:
                name = f"weight{len(weights)}"
                weights[name] = found
                stored[array] = (sheet.variable(name, found, learned=True), 0)
        read = [
            entries[layer.feeds[wire.number]] if wire.origin is Origin.DATA else stored[arrays[wire.number]]
            for wire in operator.inputs
        ]
        node = sheet.operator(operator.native, layer.name, read)
        owners[node] = layer.index
        entries.update({Feed(layer.index, place): (node, wire.output) for place, wire in enumerate(layer.results)})
    return WholeModel(sheet.text([entries[head] for head in graph.heads]), weights, owners)


def typed_outputs(file: OnnxFile) -> tuple[str, list[int]]:
    """A model that puts out all that is written in a graph, in order, and how many tensors each node writes."""
    from onnx import GraphProto, ModelProto, ValueInfoProto
    from onnx.helper import make_operatorsetid, make_tensor_value_info

    large = [weight for weight in file.weights if is_elsewhere(weight)]
    written = [list(filter(None, node.output)) for node in file.nodes]
    graph = GraphProto(
        name="types",
        node=file.nodes,
        initializer=[weight for weight in file.weights if not is_elsewhere(weight)],
        # Only the types of the large ones count here, and an input needs no values.
        input=[*file.inputs, *(make_tensor_value_info(it.name, it.data_type, list(it.dims)) for it in large)],
        output=[ValueInfoProto(name=name) for names in written for name in names],
    )
    opsets = [make_operatorsetid(*it) for it in file.opsets.items()]
    return _text(ModelProto(ir_version=_IR_VERSION, graph=graph, opset_import=opsets)), [len(it) for it in written]


def _text(model: "ModelProto") -> str:
    return b64encode(model.SerializeToString(deterministic=True)).decode()
