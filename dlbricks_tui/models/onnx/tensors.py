"""Types and values of the tensors in ONNX files."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from dlbricks_tui.models.graph import UNKNOWN_DTYPE, UNKNOWN_TYPE, ParamValue, TensorType
from dlbricks_tui.models.literals import single_precision

if TYPE_CHECKING:
    from onnx import AttributeProto, NodeProto, TensorProto, TypeProto


# More than any machine can hold: such sizes mean damage or an attack.
MOST_ELEMENTS = 2**36 - 1


def type_of_weight(tensor: "TensorProto") -> TensorType:
    """Return the type of a stored array."""
    shape = tuple(tensor.dims)
    return TensorType(shape if all(size >= 0 for size in shape) else None, dtype_name(tensor.data_type))


def type_of_value(declared: "TypeProto") -> TensorType:
    """Return the declared type of a single tensor, if it is complete."""
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
    """Return numpy's name for a data type of ONNX."""
    from onnx import TensorProto

    known: dict[int, str] = {value: name.lower() for name, value in TensorProto.DataType.items()}
    return _AS_NUMPY_SAYS.get(known.get(number, ""), known.get(number, UNKNOWN_DTYPE))


def dtype_number(name: str) -> int:
    """Return ONNX's number for a data type."""
    from onnx import TensorProto

    return int(TensorProto.DataType.Value(_AS_ONNX_SAYS.get(name, name).upper()))


def declared(found: TensorType) -> "TypeProto":
    """Return a type in ONNX's form."""
    from onnx.helper import make_tensor_type_proto

    return make_tensor_type_proto(dtype_number(found.dtype), found.shape)


def inferred(
    node: "NodeProto",
    types: Mapping[str, "TypeProto"],
    values: Iterable["TensorProto"],
    opsets: Mapping[str, int],
) -> dict[str, "TypeProto"]:
    """Return the types of a node's outputs as far as they follow from the types and values of its inputs.

    One node at a time and without onnx's own data propagation, which creates an object for each element of a vector,
    even if the file only claims its length.
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
        # A node that contradicts itself has no types, and its layer says so.
        return {}
    return {it.name: it.type for it in found}


def _never_ends(node: "NodeProto") -> bool:
    """Return true if this faulty node would make onnx loop or fill the memory."""
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


_LONGEST_VALUE = 64


class DamagedValueError(Exception):
    """An array does not hold the declared numbers. The caller adds the model's name."""


def is_external(tensor: "TensorProto") -> bool:
    """Return true if the numbers are in another file."""
    return bool(tensor.data_location == tensor.EXTERNAL or tensor.external_data)


def is_whole(tensor: "TensorProto") -> bool:
    """Return true if the array holds as many numbers as declared."""
    try:
        array_of(tensor)
    except DamagedValueError:
        return False
    return True


def array_of(tensor: "TensorProto") -> Any:
    """Return the numbers as a numpy array; raise DamagedValueError if they are missing or invalid."""
    from onnx.numpy_helper import to_array

    if is_external(tensor):
        raise DamagedValueError("its numbers are in another file")
    try:
        return to_array(tensor)
    except (LookupError, TypeError, ValueError) as error:
        raise DamagedValueError("its number of values differs from its type") from error


def value_of(tensor: "TensorProto") -> ParamValue:
    """Return the numbers of an array as a parameter; for a long one, a hash."""
    if is_external(tensor):
        # Only large arrays are stored elsewhere, and those are weights.
        return f"{dtype_name(tensor.data_type)} {'x'.join(map(str, tensor.dims))} elsewhere"
    array = array_of(tensor)
    if array.size > _LONGEST_VALUE:
        shape = "x".join(map(str, array.shape))
        return f"{array.dtype} {shape} sha256:{sha256(array.tobytes()).hexdigest()}"
    items = [_plain(item) for item in array.flatten().tolist()]
    return tuple(items) if array.ndim else items[0]


def attribute_value(attribute: "AttributeProto") -> ParamValue:
    """Return the value of an attribute."""
    from onnx import AttributeProto

    kinds = AttributeProto.AttributeType
    if attribute.type == kinds.Value("TENSOR"):
        return value_of(attribute.t)
    if attribute.type == kinds.Value("INT"):
        return attribute.i
    if attribute.type == kinds.Value("FLOAT"):
        return single_precision(attribute.f)
    if attribute.type == kinds.Value("STRING"):
        return attribute.s.decode(errors="replace")
    if attribute.type == kinds.Value("INTS"):
        return tuple(attribute.ints)
    if attribute.type == kinds.Value("FLOATS"):
        return tuple([single_precision(item) for item in attribute.floats])
    if attribute.type == kinds.Value("STRINGS"):
        return tuple([item.decode(errors="replace") for item in attribute.strings])
    return bytes(attribute.SerializeToString(deterministic=True)).hex()


def _plain(item: object) -> ParamValue:
    if isinstance(item, float):
        return single_precision(item)
    return item if isinstance(item, (bool, int)) else str(item)
