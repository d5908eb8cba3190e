"""Values that an ONNX file holds itself, as parameters of operators."""

from hashlib import sha256
from typing import TYPE_CHECKING, Any

from dlbricks_tui.models.graph import ParamValue
from dlbricks_tui.models.literals import single_precision
from dlbricks_tui.models.onnx.tensor_types import dtype_name

if TYPE_CHECKING:
    from onnx import AttributeProto, TensorProto

_LONGEST_VALUE = 64


class DamagedValueError(Exception):
    """An array that does not hold the numbers that it says; who knows the model names it."""


def is_elsewhere(tensor: "TensorProto") -> bool:
    """Whether its numbers are in another file."""
    return bool(tensor.data_location == tensor.EXTERNAL or tensor.external_data)


def is_whole(tensor: "TensorProto") -> bool:
    """Whether it holds as many numbers as it says."""
    try:
        array_of(tensor)
    except DamagedValueError:
        return False
    return True


def array_of(tensor: "TensorProto") -> Any:
    """Its numbers as an array of numpy; raises DamagedValueError where they are not there, or no numbers."""
    from onnx.numpy_helper import to_array

    if is_elsewhere(tensor):
        raise DamagedValueError("its numbers are in another file")
    try:
        return to_array(tensor)
    except (LookupError, TypeError, ValueError) as error:
        raise DamagedValueError("it does not hold as many numbers as it says") from error


def value_of(tensor: "TensorProto") -> ParamValue:
    """The numbers of an array as a parameter; of a long one what tells it from others."""
    if is_elsewhere(tensor):
        # Only large arrays are kept elsewhere, and the values of those are of weights.
        return f"{dtype_name(tensor.data_type)} {'x'.join(map(str, tensor.dims))} elsewhere"
    array = array_of(tensor)
    if array.size > _LONGEST_VALUE:
        shape = "x".join(map(str, array.shape))
        return f"{array.dtype} {shape} sha256:{sha256(array.tobytes()).hexdigest()}"
    items = [_plain(item) for item in array.flatten().tolist()]
    return tuple(items) if array.ndim else items[0]


def attribute_value(attribute: "AttributeProto") -> ParamValue:
    """What an attribute says."""
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
