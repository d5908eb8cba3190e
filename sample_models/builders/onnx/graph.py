"""Writes ONNX graphs in the way of today's exporters: named by scope, with shapes computed in the graph.

A weight is a `ConstantOfShape` node: its shape and one number. ONNX Runtime turns such nodes into stored arrays before
it fuses layers, so that a file without weights becomes the same graph as the file with them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

import numpy
from onnx import GraphProto, ModelProto, StringStringEntryProto
from onnx.helper import make_node, make_opsetid, make_tensor_value_info, np_dtype_to_tensor_dtype
from onnx.numpy_helper import from_array

_OPSET, _ML_OPSET = 17, 3
# The version of the format that exporters write with these operators, and the first in which nodes have metadata.
_IR_VERSION, _IR_VERSION_OF_METADATA = 8, 10
# An optional input that is left out.
LEFT_OUT = ""
# An axis of an input: its size, or its name if it is open.
Axis = int | str
# A size in the target of a reshape: a number, or the name of the scalar tensor that holds it.
Size = int | str
# The numbers of a small array.
Values = float | Sequence[float] | Sequence[Sequence[float]]


class Graph:
    """An ONNX graph under construction. Most methods add nodes and return the name of the output."""

    def __init__(self, label: str = "") -> None:
        """`label` tells the tensors of a subgraph from those around it."""
        self._label = label
        self._proto = GraphProto(name=label or "main_graph")
        self._scopes: list[str] = []
        self._taken: Counter[str] = Counter()
        self._stored: dict[str, str] = {}
        self._weights = 0
        self._domains: set[str] = set()

    @contextmanager
    def scope(self, *names: str) -> Iterator[None]:
        """Call the nodes written inside `/name/...`."""
        self._scopes += names
        try:
            yield
        finally:
            del self._scopes[-len(names) :]

    def input(self, name: str, dtype: str, *axes: Axis) -> str:
        """Declare an input."""
        self._proto.input.append(make_tensor_value_info(name, _number(dtype), axes))
        return name

    def output(self, tensor: str, name: str, dtype: str = "float32", *axes: Axis | None) -> None:
        """Declare a tensor as an output, and give it that name."""
        for node in self._proto.node:
            for names in (node.input, node.output):
                for place, read in enumerate(names):
                    if read == tensor:
                        names[place] = name
        self._proto.output.append(make_tensor_value_info(name, _number(dtype), axes or None))

    def results(self, tensors: Mapping[str, str]) -> None:
        """Declare the outputs of a subgraph, with their data types."""
        self._proto.output.extend(make_tensor_value_info(name, _number(it), None) for name, it in tensors.items())

    def weight(self, name: str, *shape: int, dtype: str = "float32", value: float | None = None) -> str:
        """Write a weight as its shape and the number that fills it.

        The number differs from weight to weight, unless a `value` is given: ONNX Runtime merges equal nodes, and with
        them the layers that read them.
        """
        self._weights += 1
        full = ".".join([*filter(None, [self._label]), *self._scopes, name])
        filling = _filling(shape, dtype, self._weights) if value is None else value
        filled = from_array(numpy.array([filling], dtype))
        self._proto.node.append(
            make_node("ConstantOfShape", [self.stored(shape, "int64")], [full], name=full, value=filled)
        )
        return full

    def stored(self, values: Values, dtype: str) -> str:
        """Store a small array; equal ones are stored once."""
        array = numpy.array(values, dtype)
        label = f"{self._label}stored_{dtype}_{'x'.join(map(str, array.shape))}_{array.tobytes().hex()}"
        if label not in self._stored:
            self._stored[label] = f"{self._label}stored_{len(self._stored)}"
            self._proto.initializer.append(from_array(array, self._stored[label]))
        return self._stored[label]

    def constant(self, values: Values, dtype: str) -> str:
        """Write a constant in a node of its own."""
        return self.op("Constant", value=from_array(numpy.array(values, dtype)))

    def ints(self, *values: int) -> str:
        """Write a constant vector of integers."""
        return self.constant(values, "int64")

    def number(self, value: float) -> str:
        """Write a constant float."""
        return self.constant(value, "float32")

    def op(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Write a node of one output."""
        (output,) = self.ops(op, 1, *inputs, **attributes)
        return output

    def ops(self, op: str, outputs: int, *inputs: str, **attributes: Any) -> list[str]:
        """Write a node of several outputs."""
        name = self._fresh(op)
        self._domains.add(attributes.get("domain", ""))
        results = [f"{name}_output_{place}" for place in range(outputs)]
        self._proto.node.append(make_node(op, inputs, results, name=name, **attributes))
        return results

    def named(
        self, name: str, op: str, inputs: Sequence[str], outputs: int, metadata: Mapping[str, str], **attributes: Any
    ) -> list[str]:
        """Write a node of that name, regardless of scopes."""
        results = [f"{name}_output_{place}" for place in range(outputs)]
        node = make_node(op, inputs, results, name=name, **attributes)
        node.metadata_props.extend(StringStringEntryProto(key=key, value=it) for key, it in metadata.items())
        self._proto.node.append(node)
        return results

    def size(self, tensor: str, axis: int) -> str:
        """Write the nodes that look up the size of an axis."""
        return self.op("Gather", self.op("Shape", tensor), self.constant(axis, "int64"), axis=0)

    def sizes(self, *sizes: Size) -> str:
        """Write a vector of sizes, some of which are known only when the model runs."""
        if all(isinstance(size, int) for size in sizes):
            return self.ints(*[int(size) for size in sizes])
        parts = [self.ints(it) if isinstance(it, int) else self.op("Unsqueeze", it, self.ints(0)) for it in sizes]
        return self.op("Concat", *parts, axis=0)

    def filled(self, value: float, *sizes: Size) -> str:
        """Write an array of one float, whose sizes may be known only when the model runs."""
        return self.op("ConstantOfShape", self.sizes(*sizes), value=from_array(numpy.array([value], "float32")))

    def reshape(self, tensor: str, *sizes: Size) -> str:
        """Write a reshape."""
        return self.op("Reshape", tensor, self.sizes(*sizes))

    def unsqueeze(self, tensor: str, *axes: int) -> str:
        """Write axes of size one."""
        return self.op("Unsqueeze", tensor, self.ints(*axes))

    def linear(self, data: str, inputs: int, outputs: int, *, bias: bool = True) -> str:
        """Write a linear layer on the last axis of a tensor of any rank."""
        product = self.op("MatMul", data, self.weight("weight", inputs, outputs))
        return self.op("Add", self.weight("bias", outputs), product) if bias else product

    def gemm(self, data: str, inputs: int, outputs: int) -> str:
        """Write a linear layer on a matrix."""
        weights = self.weight("weight", outputs, inputs), self.weight("bias", outputs)
        return self.op("Gemm", data, *weights, alpha=1.0, beta=1.0, transB=1)

    def branch(self, label: str) -> "Graph":
        """Return a graph to be written into a node of this one. It may read the tensors of this one."""
        return Graph(f"{self._label}{label}_")

    def choose(self, condition: str, *, yes: "Graph", no: "Graph", outputs: int) -> list[str]:
        """Write an `If`."""
        return self.ops("If", outputs, condition, then_branch=yes._proto, else_branch=no._proto)

    def rendered(self) -> bytes:
        """Return the file; equal calls give equal bytes."""
        opsets = [make_opsetid("", _OPSET)]
        opsets += [make_opsetid(domain, _ML_OPSET) for domain in sorted(self._domains - {""})]
        annotated = any(node.metadata_props for node in self._proto.node)
        version = _IR_VERSION_OF_METADATA if annotated else _IR_VERSION
        model = ModelProto(ir_version=version, producer_name="dlbricks", graph=self._proto, opset_import=opsets)
        return bytes(model.SerializeToString(deterministic=True))

    def _fresh(self, op: str) -> str:
        stem = "/".join([self._label, *self._scopes, op])
        self._taken[stem] += 1
        return stem if self._taken[stem] == 1 else f"{stem}_{self._taken[stem] - 1}"


def _number(dtype: str) -> int:
    return int(np_dtype_to_tensor_dtype(numpy.dtype(dtype)))


def _filling(shape: Sequence[int], dtype: str, count: int) -> float:
    """Return the number that fills a weight, such that activations keep a normal size from layer to layer."""
    if not dtype.startswith("float"):
        return 1 + count % 100
    return (1 / prod(shape[1:]) if len(shape) > 1 else 0.25) * (1 + count * 1e-5)
