"""Shapes and data types in ONNX files, as inference by the `onnx` package finds them."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from dlbricks_tui.models.graph import UNKNOWN_DTYPE, UNKNOWN_TYPE, TensorType

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto, TypeProto, ValueInfoProto


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


def inferred(
    nodes: Sequence["NodeProto"],
    given: Mapping[str, TensorType],
    values: Iterable["TensorProto"],
    opsets: Mapping[str, int],
) -> dict[str, TensorType]:
    """The types of what nodes write, as far as they follow from the types of what is given and from some values."""
    from onnx import GraphProto, ModelProto
    from onnx.helper import make_operatorsetid, make_tensor_value_info
    from onnx.shape_inference import InferenceError, infer_shapes

    graph = GraphProto(name="inferred", node=nodes, initializer=values)
    for name, known in given.items():
        if known.dtype != UNKNOWN_DTYPE:
            graph.input.append(make_tensor_value_info(name, dtype_number(known.dtype), known.shape))
    model = ModelProto(ir_version=8, graph=graph, opset_import=[make_operatorsetid(*it) for it in opsets.items()])
    try:
        found: Sequence[ValueInfoProto] = infer_shapes(model, data_prop=True).graph.value_info
    except (InferenceError, RuntimeError, ValueError):
        # Where it contradicts itself, nothing is known, and each layer says so.
        return {}
    return {it.name: type_of_value(it.type) for it in found}


_AS_NUMPY_SAYS = {"float": "float32", "double": "float64", "string": "object", "undefined": UNKNOWN_DTYPE}
_AS_ONNX_SAYS = {numpys: onnxs for onnxs, numpys in _AS_NUMPY_SAYS.items()}
