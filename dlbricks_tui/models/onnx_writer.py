"""Writes layers as an ONNX model whose weights have types and no values. The worker creates the values."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dlbricks_tui.models.graph import NativeNode, TensorType
from dlbricks_tui.models.onnx_arrays import declared, dtype_number, is_external, small_model
from dlbricks_tui.models.onnx_file import OnnxFile, graphs_inside
from dlbricks_tui.models.onnx_operators import NodeInPlace, text_of

if TYPE_CHECKING:
    from onnx import GraphProto, TensorProto

# A version of the operators that all current runtimes read, for nodes that do not declare theirs.
_USUAL_OPSET = 13
# Operators that return the memory of their input with another shape.
_SAME_MEMORY = frozenset({"Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
# The location of external data for weights.
SYNTHETIC = "made up by the worker"


class OnnxSheet:
    """Collects nodes and variables, known by number, and renders them."""

    def __init__(self) -> None:
        from onnx import GraphProto

        self._graph = GraphProto(name="layers")
        self._names: list[str] = []
        self._opsets: dict[str, int] = {}
        self._replaceable: set[str] = set()
        # The inputs of nodes that return the memory of their input.
        self._same_memory: dict[int, tuple[int, int]] = {}

    def fresh(self, name: str) -> str:
        """Return the name itself: nodes have names of another form."""
        return name

    def variable(self, name: str, found: TensorType, *, learned: bool) -> int:
        """Write an array of that name, a weight or an input."""
        from onnx.helper import make_tensor_value_info

        number = dtype_number(found.dtype)
        if learned:
            self._graph.initializer.append(_without_values(name, number, found.shape or ()))
        else:
            self._graph.input.append(make_tensor_value_info(name, number, found.shape))
        self._names.append(name)
        return len(self._names) - 1

    def operator(self, native: NativeNode, name: str, inputs: Sequence[tuple[int, int]]) -> int:
        """Write a node that reads these outputs."""
        kept = NodeInPlace(native)
        number = len(self._names)
        self._names.append("")
        results = [self._name(number, output) for output in range(kept.results)]
        node, values = kept.written(f"node{number}", [self._name(*entry) for entry in inputs], results)
        self._graph.node.append(node)
        self._graph.initializer.extend(values)
        self._replaceable.update(node.input[place] for place in kept.replaceable)
        if kept.version is not None:
            self._opsets[node.domain] = kept.version
        # The memory may be that of an array that is stored with the node.
        if not node.domain and node.op_type in _SAME_MEMORY and inputs and node.input[0] == self._name(*inputs[0]):
            self._same_memory[number] = inputs[0]
        return number

    def in_passing(self, entry: tuple[int, int]) -> list[tuple[int, int]]:
        """Return the outputs to request so that `entry` is computed as in the middle of a model.

        A runtime has a separate array for each output of a graph, into which it would copy memory that a node only
        passes on.
        """
        from onnx import NodeProto

        source = self._same_memory.get(entry[0])
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
        """Return the model with these outputs, as text."""
        from onnx import NodeProto, ValueInfoProto
        from onnx.helper import make_tensor_value_info

        for place, entry in enumerate(heads):
            name = self._name(*entry)
            if self._names[entry[0]] or entry in heads[:place]:
                # A runtime rejects an input, or a tensor that occurs twice, as an output.
                name, again = f"head{place}", name
                self._graph.node.append(NodeProto(op_type="Identity", name=name, input=[again], output=[name]))
            self._graph.output.append(ValueInfoProto(name=name))
        if any(True for node in self._graph.node for _ in graphs_inside(node)):
            # A branch that does not run may contradict the shapes of the inputs, and a runtime would refuse the model.
            for read in self._graph.input:
                read.type.tensor_type.ClearField("shape")
        for it in self._graph.initializer:
            if it.name in self._replaceable:
                self._graph.input.append(make_tensor_value_info(it.name, it.data_type, list(it.dims)))
        return _text(self._graph, self._opsets)

    def _name(self, node: int, output: int) -> str:
        return self._names[node] or f"t{node}_{output}"


def large_arrays(file: OnnxFile) -> "dict[str, TensorProto]":
    """Return the arrays that are not in the graph but in a file, by name: weights, and values of constant nodes."""
    found = {weight.name: weight for weight in file.weights if is_external(weight)}
    for node in file.nodes:
        if node.op_type == "Constant":
            found.update((node.output[0], it.t) for it in node.attribute if is_external(it.t))
    return found


def model_text(
    file: OnnxFile, inputs: Mapping[str, TensorType], outputs: Sequence[str], *, weights_as_inputs: bool = False
) -> str:
    """Return a graph with these outputs as text.

    Inputs without a type here are as the file declares them. Large weights have types only: the worker creates their
    values, or they become inputs.
    """
    from onnx import GraphProto, ValueInfoProto
    from onnx.helper import make_tensor_value_info

    large = large_arrays(file)
    learned = [] if weights_as_inputs else [_without_values(it, large[it].data_type, large[it].dims) for it in large]
    fed = large if weights_as_inputs else {}
    graph = GraphProto(
        name="tensors",
        node=[it for it in file.nodes if not (it.op_type == "Constant" and it.output[0] in large)],
        initializer=[*(weight for weight in file.weights if not is_external(weight)), *learned],
        input=[
            *(
                ValueInfoProto(name=it.name, type=declared(inputs[it.name])) if it.name in inputs else it
                for it in file.inputs
            ),
            *(make_tensor_value_info(name, it.data_type, list(it.dims)) for name, it in fed.items()),
        ],
        output=[ValueInfoProto(name=name) for name in outputs],
    )
    return _text(graph, file.opsets)


def _without_values(name: str, number: int, shape: Sequence[int]) -> "TensorProto":
    """Return a weight whose values the worker creates."""
    from onnx import StringStringEntryProto, TensorProto

    where = StringStringEntryProto(key="location", value=SYNTHETIC)
    return TensorProto(
        name=name, dims=shape, data_type=number, data_location=TensorProto.EXTERNAL, external_data=[where]
    )


def _text(graph: "GraphProto", opsets: Mapping[str, int]) -> str:
    return text_of(small_model(graph, {"": _USUAL_OPSET, **opsets}))
