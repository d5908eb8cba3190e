"""Inputs that are settings: a few numbers that choose a branch or set a size. They count as constants of the model."""

from collections.abc import Iterable, Mapping
from math import prod
from typing import TYPE_CHECKING

from dlbricks_tui.models.graph import Numbers, TensorType
from dlbricks_tui.models.onnx.branches import is_if
from dlbricks_tui.models.onnx.model_file import OnnxFile
from dlbricks_tui.models.onnx.tensors import DamagedValueError, array_of, dtype_number, is_external

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto

# Longer inputs are data, whose numbers change no layer.
_MOST_ELEMENTS = 8
_WHOLE_NUMBERS = ("int64", "int32")
# Operators that only reshape, convert or select numbers.
_HAND_ON = frozenset({"Cast", "Gather", "Identity", "Reshape", "Squeeze", "Unsqueeze"})


def compared_numbers(file: OnnxFile, inputs: Mapping[str, TensorType]) -> dict[str, Numbers]:
    """Return the single whole numbers that a model with an `If` compares with a constant: a sampling rate.

    Other numbers would lead into a branch that real inputs never take.
    """
    if not any(map(is_if, file.nodes)):
        return {}
    # The input behind each tensor that only hands its number on.
    behind = {name: name for name, found in inputs.items() if _is_single_number(found)}
    stored = {weight.name: weight for weight in file.weights}
    found: dict[str, Numbers] = {}
    for node in file.nodes if behind else ():
        if node.domain:
            continue
        if node.op_type == "Constant":
            stored.update((node.output[0], it.t) for it in node.attribute if it.HasField("t") and node.output)
        elif node.op_type in _HAND_ON and node.input and node.output and node.input[0] in behind:
            behind[node.output[0]] = behind[node.input[0]]
        elif node.op_type == "Equal" and len(node.input) == 2:
            _note(node, behind, stored, found)
    return found


def _note(
    node: "NodeProto", behind: Mapping[str, str], stored: "Mapping[str, TensorProto]", found: dict[str, Numbers]
) -> None:
    for one, other in ((0, 1), (1, 0)):
        name, value = behind.get(node.input[one]), stored.get(node.input[other])
        if name is not None and value is not None and (number := _whole_number(value)) is not None:
            found.setdefault(name, (number,))


def _whole_number(value: "TensorProto") -> int | None:
    if is_external(value) or prod(value.dims) != 1:
        return None
    try:
        (number,) = array_of(value).reshape(-1).tolist()
    except (DamagedValueError, ValueError):
        return None
    return number if type(number) is int else None


def _is_single_number(found: TensorType) -> bool:
    return found.shape is not None and prod(found.shape) == 1 and found.dtype in _WHOLE_NUMBERS


def stored_settings(values: Mapping[str, Numbers], inputs: Mapping[str, TensorType]) -> "Iterable[TensorProto]":
    """Return the values of short inputs as arrays of the model; none if they are all of its inputs."""
    import numpy
    from onnx.helper import tensor_dtype_to_np_dtype
    from onnx.numpy_helper import from_array

    for name, numbers in values.items() if inputs.keys() > values.keys() else ():
        shape, dtype = inputs[name]
        if shape is not None and 0 < prod(shape) <= _MOST_ELEMENTS and dtype != "object":
            kind = tensor_dtype_to_np_dtype(dtype_number(dtype))
            yield from_array(numpy.resize(numpy.array(numbers, kind), shape), name)
