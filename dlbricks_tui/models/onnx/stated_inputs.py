"""Shapes and values of inputs that an ONNX file states in its metadata: sizes of open axes, and settings."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from dlbricks_tui.models.graph import GraphInput, Numbers, Shape
from dlbricks_tui.models.literals import MOST_NUMBERS
from dlbricks_tui.models.onnx.tensors import DamagedValueError

KEY = "dlbricks.inputs"
_LONGEST_TEXT, _MOST_AXES, _LARGEST_AXIS = 1 << 20, 32, 2**31 - 1


class StatedInputs(NamedTuple):
    """Shapes and values by the names of inputs."""

    shapes: Mapping[str, Shape]
    values: Mapping[str, Numbers]


def stated_inputs(metadata: Mapping[str, str]) -> StatedInputs:
    """Return what the metadata of a file states; raise DamagedValueError if it has another form."""
    text = metadata.get(KEY)
    if text is None:
        return StatedInputs({}, {})
    try:
        if len(text) > _LONGEST_TEXT:
            raise ValueError
        document = json.loads(text)
        shapes = {name: _shape(said["shape"]) for name, said in document.items() if "shape" in said}
        values = {name: _numbers(said["value"]) for name, said in document.items() if "value" in said}
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise DamagedValueError(f"its metadata {KEY} does not state shapes and values of inputs") from None
    return StatedInputs(shapes, values)


def stating(inputs: Mapping[str, GraphInput]) -> str:
    """Return the metadata that states the shapes and values of inputs, by the names that they have in the file."""
    said: dict[str, dict[str, Any]] = {}
    for name, given in inputs.items():
        said[name] = {} if given.type.shape is None else {"shape": given.type.shape}
        # Texts do not travel.
        if given.value and len(given.value) <= MOST_NUMBERS and not any(isinstance(it, str) for it in given.value):
            said[name]["value"] = given.value
    return json.dumps(said, separators=(",", ":"))


def _shape(found: Any) -> Shape:
    if not isinstance(found, list) or len(found) > _MOST_AXES:
        raise ValueError
    if not all(type(size) is int and 0 <= size <= _LARGEST_AXIS for size in found):
        raise ValueError
    return tuple(found)


def _numbers(found: Any) -> Numbers:
    if not isinstance(found, list) or not 0 < len(found) <= MOST_NUMBERS:
        raise ValueError
    if not all(type(number) in (int, float) for number in found):
        raise ValueError
    return tuple(found)
