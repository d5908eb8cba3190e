"""Shapes and data types in ONNX files, as inference by the `onnx` package finds them."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING

from dlbricks_tui.models.graph import UNKNOWN_DTYPE, UNKNOWN_TYPE, TensorType

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto, TypeProto


# More than any machine holds; sizes that large are damage, or meant to do some.
MOST_ELEMENTS = 2**36 - 1


def type_of_weight(tensor: "TensorProto") -> TensorType:
    """What a stored array is."""
    shape = tuple(tensor.dims)
    return TensorType(shape if all(size >= 0 for size in shape) else None, dtype_name(tensor.data_type))


def type_of_value(declared: "TypeProto") -> TensorType:
    """What a declaration says, if it says it of a single tensor and completely."""
    if not declared.HasField("tensor_type"):
        return UNKNOWN_TYPE
    tensor = declared.tensor_type
    dtype = dtype_name(tensor.elem_type)
    if not tensor.HasField("shape"):
        return TensorType(None, dtype)
    sizes = [axis.dim_value if axis.HasField("dim_value") else -1 for axis in tensor.shape.dim]
    return TensorType(tuple(sizes) if all(size >= 0 for size in sizes) else None, dtype)


@cache
def dtype_name(number: int) -> str:
    """A data type as numpy calls it, by its number in ONNX."""
    from onnx import TensorProto

    known: dict[int, str] = {value: name.lower() for name, value in TensorProto.DataType.items()}
    return _AS_NUMPY_SAYS.get(known.get(number, ""), known.get(number, UNKNOWN_DTYPE))


def dtype_number(name: str) -> int:
    """The number in ONNX of a data type."""
    from onnx import TensorProto

    return int(TensorProto.DataType.Value(_AS_ONNX_SAYS.get(name, name).upper()))


def declared(found: TensorType) -> "TypeProto":
    """A type as ONNX writes it."""
    from onnx.helper import make_tensor_type_proto

    return make_tensor_type_proto(dtype_number(found.dtype), found.shape)


def inferred(
    node: "NodeProto",
    types: Mapping[str, "TypeProto"],
    values: Iterable["TensorProto"],
    opsets: Mapping[str, int],
) -> dict[str, "TypeProto"]:
    """The types of what one node writes, as far as they follow from the types and the values of what it reads.

    One node at a time, and without onnx's own propagation of data: that makes an object for each element of a vector,
    and of vectors whose length the file only claims, too.
    """
    from onnx import GraphProto, ModelProto, ValueInfoProto
    from onnx.helper import make_operatorsetid
    from onnx.shape_inference import InferenceError, infer_shapes

    if _never_ends(node):
        return {}
    inputs = [ValueInfoProto(name=name, type=found) for name, found in types.items()]
    graph = GraphProto(name="inferred", node=[node], input=inputs, initializer=values)
    model = ModelProto(ir_version=8, graph=graph, opset_import=[make_operatorsetid(*it) for it in opsets.items()])
    try:
        found = infer_shapes(model).graph.value_info
    except (InferenceError, MemoryError, RuntimeError, ValueError):
        # A node that contradicts itself has no types, and the layer says so.
        return {}
    return {it.name: it.type for it in found}


def _never_ends(node: "NodeProto") -> bool:
    """Whether onnx would loop or fill the memory over a node that is wrong."""
    found = {it.name: it for it in node.attribute}
    if node.op_type == "Einsum" and "equation" in found:
        equation = found["equation"].s.decode(errors="replace").replace(" ", "")
        read, _, _ = equation.partition("->")
        return not _EQUATION.fullmatch(equation) or read.count(",") + 1 != len(node.input)
    if node.op_type == "Split" and "num_outputs" in found:
        return bool(found["num_outputs"].i > len(node.output))
    return False


_TERM = r"[A-Za-z]*(\.\.\.)?[A-Za-z]*"
_EQUATION = re.compile(rf"{_TERM}(,{_TERM})*(->{_TERM})?")
_AS_NUMPY_SAYS = {"float": "float32", "double": "float64", "string": "object", "undefined": UNKNOWN_DTYPE}
_AS_ONNX_SAYS = {numpys: onnxs for onnxs, numpys in _AS_NUMPY_SAYS.items()}
