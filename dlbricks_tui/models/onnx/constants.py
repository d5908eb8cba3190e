"""What of an ONNX model is there before it runs: stored arrays, and what follows from vectors and shapes alone.

That says how layers are set up, and is no layer: its result is a weight of those that read it. Work on a stored matrix
is a layer, which an optimiser may do away with.
"""

import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING

from dlbricks_tui.models.graph import UNKNOWN_TYPE, TensorType
from dlbricks_tui.models.onnx.model_file import OnnxFile, graphs_inside
from dlbricks_tui.models.onnx.tensor_types import inferred, type_of_weight
from dlbricks_tui.models.onnx.values import is_whole

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto

# Values of more elements say where data goes in no real model; they are of weights.
_MOST_WHOLE, _MOST_OTHERS = 2**16, 2**6
SAY_WHERE = frozenset({"int64", "int32", "bool", "object"})
# Each round finds the shapes that those of the round before were waiting for.
_MOST_ROUNDS = 16
_RANDOM = frozenset(
    {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Multinomial", "Bernoulli"}
)
_ONLY_THE_SHAPE = frozenset({"Shape", "Size"})
# What the reference evaluator answers where it lacks an operator, or is given what makes no sense: it is written in
# Python, and checks little.
_LACKS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    MemoryError,
    NameError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    re.error,
    struct.error,
)


@dataclass(slots=True)
class Settled:
    """The types of all tensors, those that are there before the model runs, and of small ones the values."""

    types: dict[str, TensorType]
    constants: set[str] = field(default_factory=set)
    values: dict[str, "TensorProto"] = field(default_factory=dict)
    layers: list["NodeProto"] = field(default_factory=list)

    def type_of(self, name: str) -> TensorType:
        """The type of a tensor, as far as anybody knows."""
        return self.types.get(name, UNKNOWN_TYPE)


def settle(file: OnnxFile, inputs: Mapping[str, TensorType]) -> Settled:
    """Tells layers from constants, and infers types until nothing more follows."""
    settled = Settled(dict(inputs), layers=list(file.nodes))
    for weight in file.weights:
        _note(settled, weight.name, weight)
    for _ in range(_MOST_ROUNDS):
        given = {name: settled.type_of(name) for name in (*inputs, *settled.constants) if name not in settled.values}
        settled.types.update(inferred(settled.layers, given, settled.values.values(), file.opsets))
        if not _fold(settled, file.opsets):
            break
    return settled


def _note(settled: Settled, name: str, value: "TensorProto") -> None:
    """Keeps of a stored array its type, and of a small one that is at hand the value."""
    settled.types[name] = type_of_weight(value)
    settled.constants.add(name)
    if _is_small(settled.types[name]) and is_whole(value):
        settled.values[name] = _named(value, name)


def _named(value: "TensorProto", name: str) -> "TensorProto":
    from onnx import TensorProto

    if value.name == name:
        return value
    copy = TensorProto()
    copy.CopyFrom(value)
    copy.name = name
    return copy


def _fold(settled: Settled, opsets: Mapping[str, int]) -> bool:
    """Takes out of the layers what is constant; says whether there was any."""
    left = []
    for node in settled.layers:
        if not _is_constant(node, settled):
            left.append(node)
            continue
        outputs = list(filter(None, node.output))
        settled.constants.update(outputs)
        for name, value in zip(outputs, _values(node, outputs, settled, opsets), strict=False):
            _note(settled, name, value)
    changed = len(left) < len(settled.layers)
    settled.layers = left
    return changed


def _is_constant(node: "NodeProto", settled: Settled) -> bool:
    if node.domain or node.op_type in _RANDOM or any(True for _ in graphs_inside(node)):
        return False
    if _is_of_known_shape(node, settled):
        return True
    read = [name for name in node.input if name]
    return all(name in settled.constants and not _is_matrix(settled.type_of(name)) for name in read)


def _is_of_known_shape(node: "NodeProto", settled: Settled) -> bool:
    """Whether it tells a shape or size that is known."""
    asks = node.op_type in _ONLY_THE_SHAPE and len(node.input) > 0
    return asks and settled.type_of(node.input[0]).shape is not None


def _values(
    node: "NodeProto", outputs: Sequence[str], settled: Settled, opsets: Mapping[str, int]
) -> Sequence["TensorProto"]:
    """What a constant node computes, where that is little; else nothing."""
    for attribute in node.attribute:
        if node.op_type == "Constant" and attribute.name == "value":
            return (attribute.t,)
    if _is_of_known_shape(node, settled):
        return (_shape_value(node, settled.type_of(node.input[0])),)
    small = all(_is_small(settled.type_of(name)) for name in outputs) or node.op_type == "Constant"
    if not small or any(name not in settled.values for name in node.input if name):
        return ()
    return _computed(node, [settled.values[name] for name in dict.fromkeys(node.input) if name], opsets)


def _shape_value(node: "NodeProto", found: TensorType) -> "TensorProto":
    from onnx import TensorProto
    from onnx.helper import make_tensor

    shape = found.shape or ()
    if node.op_type == "Size":
        return make_tensor("size", TensorProto.INT64, (), (prod(shape),))
    ends = {attribute.name: attribute.i for attribute in node.attribute}
    part = shape[ends.get("start") : ends.get("end")]
    return make_tensor("shape", TensorProto.INT64, (len(part),), part)


def _computed(node: "NodeProto", values: Sequence["TensorProto"], opsets: Mapping[str, int]) -> Sequence["TensorProto"]:
    import numpy
    from onnx import GraphProto, ModelProto, ValueInfoProto
    from onnx.helper import make_operatorsetid
    from onnx.numpy_helper import from_array, to_array
    from onnx.reference import ReferenceEvaluator

    names = list(dict.fromkeys(filter(None, node.input)))
    outputs = list(filter(None, node.output))
    graph = GraphProto(
        name="constant",
        node=[node],
        input=[ValueInfoProto(name=name) for name in names],
        output=[ValueInfoProto(name=name) for name in outputs],
    )
    model = ModelProto(ir_version=8, graph=graph, opset_import=[make_operatorsetid(*it) for it in opsets.items()])
    try:
        fed = {name: to_array(value) for name, value in zip(names, values, strict=True)}
        with numpy.errstate(all="ignore"):
            found = ReferenceEvaluator(model).run(None, fed)
        return [from_array(numpy.asarray(value)) for value in found]
    except _LACKS:
        # Then it is a weight like any other.
        return ()


def _is_matrix(found: TensorType) -> bool:
    return sum(size > 1 for size in found.shape or ()) > 1


def _is_small(found: TensorType) -> bool:
    most = _MOST_WHOLE if found.dtype in SAY_WHERE else _MOST_OTHERS
    return found.shape is not None and prod(found.shape) <= most
