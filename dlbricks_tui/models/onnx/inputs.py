"""The inputs of ONNX models that their files leave open: settings, shapes as inputs, and axes without a size."""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from dlbricks_tui.models.graph import GraphInput, Numbers, Shape, TensorType
from dlbricks_tui.models.input_shapes import MOST_AXES, example_shape, names_a_batch, names_a_length
from dlbricks_tui.models.literals import MOST_NUMBERS
from dlbricks_tui.models.onnx.branches import is_if
from dlbricks_tui.models.onnx.model_file import OnnxFile, reads
from dlbricks_tui.models.onnx.stored_arrays import DamagedValueError, array_of, dtype_number, is_external

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto, ValueInfoProto

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


# By operator and place.
_PLACES: Mapping[str, frozenset[int]] = {
    "AffineGrid": frozenset({1}),
    "BlackmanWindow": frozenset({0}),
    "CenterCropPad": frozenset({1}),
    "Col2Im": frozenset({1, 2}),
    "Compress": frozenset({1}),
    "ConstantOfShape": frozenset({0}),
    "DFT": frozenset({1, 2}),
    "Expand": frozenset({1}),
    "GroupQueryAttention": frozenset({5, 6}),
    "HammingWindow": frozenset({0}),
    "HannWindow": frozenset({0}),
    "If": frozenset({0}),
    "Loop": frozenset({0, 1}),
    "MaxUnpool": frozenset({2}),
    "MelWeightMatrix": frozenset({0, 1}),
    "NonMaxSuppression": frozenset({2}),
    "OneHot": frozenset({1}),
    "Pad": frozenset({1, 3}),
    "Range": frozenset({0, 1, 2}),
    "Reshape": frozenset({1}),
    "Resize": frozenset({1, 2, 3}),
    "STFT": frozenset({1, 3}),
    "Slice": frozenset({1, 2, 3, 4}),
    "Split": frozenset({1}),
    "SplitToSequence": frozenset({1}),
    "Squeeze": frozenset({1}),
    "Tile": frozenset({1, 2}),
    "TopK": frozenset({1}),
    "Unsqueeze": frozenset({1}),
    "Upsample": frozenset({1}),
}
_NONE: frozenset[int] = frozenset()
_REDUCTIONS = "Reduce"
# Operators whose results have as many elements as their data happens to have of a kind.
_COUNT_DATA = frozenset(
    {"BeamSearch", "Compress", "GreedySearch", "NonMaxSuppression", "NonZero", "StringSplit", "Unique"}
)
_READ_SHAPES = frozenset({"Shape", "Size"})
_RANDOM = frozenset({"Bernoulli", "Multinomial", "RandomNormalLike", "RandomUniformLike"})


def shape_places(op: str) -> frozenset[int]:
    """Return the places of inputs whose values set the shape of a result."""
    return frozenset({1}) if op.startswith(_REDUCTIONS) else _PLACES.get(op, _NONE)


def set_shapes(node: "NodeProto") -> list[str]:
    """Return the inputs of a node whose values set the shape of a result."""
    return [node.input[place] for place in shape_places(node.op_type) if place < len(node.input) and node.input[place]]


def depending_on_data(file: OnnxFile, uncertain: Collection[str], given: Iterable[str]) -> frozenset[str]:
    """Return those of some tensors whose shapes depend on data, and not only on the shapes of inputs.

    `given` are inputs with given values.
    """
    # Tensors whose values follow from shapes, stored arrays and given values.
    fixed = {*given, *(weight.name for weight in file.weights)}
    found: set[str] = set()
    for node in file.nodes:
        read, written = list(filter(None, reads(node))), list(filter(None, node.output))
        if node.op_type in _READ_SHAPES:
            fixed.update(written if found.isdisjoint(read) else ())
        elif fixed.issuperset(read) and node.op_type not in _RANDOM:
            fixed.update(written)
        if node.op_type in _COUNT_DATA or not found.isdisjoint(read) or not fixed.issuperset(set_shapes(node)):
            found.update(name for name in written if name in uncertain and name not in fixed)
    return frozenset(found)


# The size of each axis, or the name of an open one, which may be empty.
Axes = list[int | str]
_NUMBER = re.compile(r"[1-9][0-9]{0,9}")
# Short names of the batch axis of sequences.
_BATCH_LETTERS = ("n", "b", "bs")


def axes_of(declared: "ValueInfoProto") -> Axes | None:
    """Return the axes of an input; None if the file does not say how many it has."""
    tensor = declared.type.tensor_type
    if not declared.type.HasField("tensor_type") or not tensor.HasField("shape"):
        return None
    return [axis.dim_value if axis.dim_value > 0 else axis.dim_param for axis in tensor.shape.dim]


def named_sizes(axes: Axes, shape: Shape) -> dict[str, int]:
    """Return the sizes that a shape gives to the names of its open axes."""
    return {axis: size for axis, size in zip(axes, shape, strict=True) if isinstance(axis, str) and axis}


def sized(axes: Axes | None, sizes: Mapping[str, int]) -> Shape | None:
    """Return the shape of an input whose named axes have these sizes; None if an axis stays open."""
    if axes is None:
        return None
    found = [_size(axis, place, sizes) for place, axis in enumerate(axes)]
    return tuple(found) if all(found) else None


def shape_of_value(axes: Axes | None, value: Numbers) -> Shape | None:
    """Return the shape of a vector of open size by the numbers that are given for it."""
    return (len(value),) if axes is not None and len(axes) == 1 and isinstance(axes[0], str) and value else None


def shapes_to_ask(open_inputs: Mapping[str, Axes | None], sizes: Mapping[str, int]) -> dict[str, Axes | None]:
    """Return the inputs whose shapes a user has to give, after which those of all others follow."""
    asked: dict[str, Axes | None] = {}
    known = dict(sizes)
    for name, axes in open_inputs.items():
        if sized(axes, known) is None:
            asked[name] = axes
            if axes:
                known.update(named_sizes(axes[:MOST_AXES], example_shape(axes)))
    return asked


def resized(axes: Axes | None, shape: Shape, sizes: Mapping[str, int]) -> Shape:
    """Return a shape with these sizes of its named open axes."""
    if axes is None:
        return shape
    return tuple([sizes.get(str(axis), size) if axis else size for axis, size in zip(axes, shape, strict=True)])


def batch_axes(declared: Mapping[str, Axes | None]) -> dict[str, int]:
    """Return the place of the axis of each input that counts images, sentences or rows; inputs without one are absent.

    The first of these rules that finds a name decides, and all axes of that name count:

    1. axes named batch,
    2. open first axes, unless their name says that they are a length,
    3. axes named N or B right after a length.

    A first axis without a name counts too, and so does the first axis of an input whose axes the file leaves out.
    """
    open_axes = [
        (name, place, axis)
        for name, axes in declared.items()
        for place, axis in enumerate([""] if axes is None else axes)
        if isinstance(axis, str)
    ]
    names = (
        {axis for _, _, axis in open_axes if names_a_batch(axis)}
        or {axis for _, place, axis in open_axes if place == 0 and axis and not names_a_length(axis)}
        or {str(axes[1]) for axes in declared.values() if axes is not None and _is_batch_after_length(axes)}
    )
    found: dict[str, int] = {}
    for name, place, axis in open_axes:
        if axis in names or (place == 0 and not axis):
            found.setdefault(name, place)
    return found


def counts_images(axis: str) -> bool:
    """Return whether an open axis has no name, or one that says that it counts images or sentences."""
    return not axis or names_a_batch(axis) or axis.lower() in _BATCH_LETTERS or "+" in axis


def _is_batch_after_length(axes: Axes) -> bool:
    return len(axes) > 1 and names_a_length(str(axes[0])) and str(axes[1]).lower() in _BATCH_LETTERS


def _size(axis: int | str, place: int, sizes: Mapping[str, int]) -> int:
    """Return the size of an axis, 0 if it is open."""
    if isinstance(axis, int):
        return axis
    if axis in sizes:
        return sizes[axis]
    if place == 0 or names_a_batch(axis):
        return 1
    return _sum([term.strip() for term in axis.split("+")], sizes)


def _sum(terms: Sequence[str], sizes: Mapping[str, int]) -> int:
    found = [int(term) if _NUMBER.fullmatch(term) else sizes.get(term, 0) for term in terms]
    return sum(found) if all(found) and len(terms) > 1 else 0
