"""The inputs of ONNX models: their types by the file and by what users give.

For what a file leaves open, shapes are suggested by the operators that read an input, and several to try.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from math import prod
from typing import TYPE_CHECKING, Any

from dlbricks_tui.models.errors import FlawError, ModelError
from dlbricks_tui.models.graph import GraphInput, Numbers, Shape, TensorType
from dlbricks_tui.models.input_shapes import (
    MOST_AXES,
    StatedInputs,
    example_shape,
    listed,
    missing_shapes,
    names_a_batch,
    names_a_length,
    refuse_too_large,
    short_shape,
)
from dlbricks_tui.models.neutral import MOST_NUMBERS, numbers_of
from dlbricks_tui.models.onnx_arrays import MOST_ELEMENTS, array_of, dtype_name, dtype_number, is_external
from dlbricks_tui.models.onnx_constants import INDEX_DTYPES, declared_types, is_if
from dlbricks_tui.models.onnx_file import OnnxFile, reads, with_subgraphs

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto, TypeProto, ValueInfoProto

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
    behind = {
        name: name
        for name, (shape, dtype) in inputs.items()
        if shape is not None and prod(shape) == 1 and dtype in _WHOLE_NUMBERS
    }
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
            for one, other in (node.input, node.input[::-1]):
                if one in behind and (number := _whole_number(stored.get(other))) is not None:
                    found.setdefault(behind[one], (number,))
    return found


def _whole_number(value: "TensorProto | None") -> int | None:
    """Return the number in a stored array; None if it is not a single whole one."""
    if value is not None and not is_external(value) and prod(value.dims) == 1:
        with suppress(FlawError, ValueError):
            (number,) = array_of(value).reshape(-1).tolist()
            return number if type(number) is int else None
    return None


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


def whole_settings(values: Mapping[str, Numbers], inputs: Mapping[str, TensorType]) -> dict[str, Numbers]:
    """Return the values of short inputs of whole numbers, such as the trips of a loop: they define what reads them."""
    short = {
        name for name, (shape, dtype) in inputs.items() if prod(shape or ()) <= _MOST_ELEMENTS and dtype in INDEX_DTYPES
    }
    return {name: numbers for name, numbers in values.items() if name in short}


KEY = "dlbricks.inputs"
_LONGEST_TEXT, _LARGEST_AXIS = 1 << 20, 2**31 - 1


def stated_inputs(metadata: Mapping[str, str]) -> StatedInputs:
    """Return what the metadata of a file states; raise FlawError if it has another form."""
    text = metadata.get(KEY)
    if text is None:
        return StatedInputs({}, {})
    try:
        if len(text) > _LONGEST_TEXT:
            raise ValueError
        document = json.loads(text)
        shapes = {name: said["shape"] for name, said in document.items() if "shape" in said}
        values = {name: said["value"] for name, said in document.items() if "value" in said}
        for shape in shapes.values():
            if not isinstance(shape, list) or len(shape) > MOST_AXES:
                raise ValueError
            if not all(type(size) is int and 0 <= size <= _LARGEST_AXIS for size in shape):
                raise ValueError
        for numbers in values.values():
            if not isinstance(numbers, list) or any(isinstance(it, str) for it in numbers_of(numbers)):
                raise ValueError
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise FlawError(f"its metadata {KEY} does not state shapes and values of inputs") from None
    return StatedInputs(*({name: tuple(it) for name, it in them.items()} for them in (shapes, values)))


def stating(inputs: Mapping[str, GraphInput]) -> str:
    """Return the metadata that states the shapes and values of inputs, by the names that they have in the file."""
    said: dict[str, dict[str, Any]] = {}
    for name, given in inputs.items():
        said[name] = {} if given.type.shape is None else {"shape": given.type.shape}
        # Texts do not travel.
        if given.value and len(given.value) <= MOST_NUMBERS and not any(isinstance(it, str) for it in given.value):
            said[name]["value"] = given.value
    return json.dumps(said, separators=(",", ":"))


# The operators by these places.
_OPS_BY_PLACES: Mapping[tuple[int, ...], str] = {
    (0,): "BlackmanWindow ConstantOfShape HammingWindow HannWindow If",
    (0, 1): "Loop MelWeightMatrix",
    (0, 1, 2): "Range",
    (1,): "AffineGrid CenterCropPad Compress Expand OneHot Reshape Split SplitToSequence Squeeze TopK "
    "Unsqueeze Upsample",
    (1, 2): "Col2Im DFT Tile",
    (1, 2, 3): "Resize",
    (1, 2, 3, 4): "Slice",
    (1, 3): "Pad STFT",
    (2,): "MaxUnpool NonMaxSuppression",
    (5, 6): "GroupQueryAttention",
}
_PLACES = {op: frozenset(places) for places, ops in _OPS_BY_PLACES.items() for op in ops.split()}
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


def axes_of(declared: "TypeProto") -> Axes | None:
    """Return the axes of a tensor; None if it is not said how many it has."""
    tensor = declared.tensor_type
    if not declared.HasField("tensor_type") or not tensor.HasField("shape"):
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
        or {
            str(axes[1])
            for axes in declared.values()
            if axes and len(axes) > 1 and names_a_length(str(axes[0])) and str(axes[1]).lower() in _BATCH_LETTERS
        }
    )
    found: dict[str, int] = {}
    for name, place, axis in open_axes:
        if axis in names or (place == 0 and not axis):
            found.setdefault(name, place)
    return found


def counts_images(axis: str) -> bool:
    """Return whether an open axis has no name, or one that says that it counts images or sentences."""
    return not axis or names_a_batch(axis) or axis.lower() in _BATCH_LETTERS or "+" in axis


def _size(axis: int | str, place: int, sizes: Mapping[str, int]) -> int:
    """Return the size of an axis, 0 if it is open."""
    if isinstance(axis, int):
        return axis
    if axis in sizes:
        return sizes[axis]
    if place == 0 or names_a_batch(axis):
        return 1
    terms = [term.strip() for term in axis.split("+")]
    found = [int(term) if _NUMBER.fullmatch(term) else sizes.get(term, 0) for term in terms]
    return sum(found) if all(found) and len(terms) > 1 else 0


# Types of inputs that no runtime is fed here.
_NO_TENSORS = {
    "sequence_type": "a sequence",
    "optional_type": "optional",
    "map_type": "a map",
    "sparse_tensor_type": "a sparse tensor",
}


def input_types(
    inputs: Sequence["ValueInfoProto"],
    stated: StatedInputs,
    known: Mapping[str, Shape],
    batch_size: int | None,
    where: str,
) -> tuple[dict[str, TensorType], int, dict[str, tuple[str, ...]]]:
    """Return the types of inputs, by the shapes that the user has stated and those known from elsewhere.

    Also return the batch size that they amount to, and by input the names of axes of one element, where the name is not
    that of a batch and nothing says the size.

    An open axis has the size that is given for its name in any input. Otherwise a first axis, or one named batch, means
    one image. A batch size replaces the sizes of all open batch axes.
    """
    given, values = stated
    axes = {it.name: axes_of(it.type) for it in inputs}
    _refuse_odd_inputs(inputs, axes, stated, known, where)
    by_user = _sizes(axes, given)
    sizes = {**_sizes(axes, known), **by_user}
    # The user may have given another size for an axis of a shape that is known from elsewhere.
    told = {**{name: resized(axes.get(name), shape, by_user) for name, shape in known.items()}, **given}
    shapes: dict[str, Shape | None] = {}
    for name, its in axes.items():
        value = values.get(name)
        # The numbers that are given for a vector of open size tell it.
        is_vector = its is not None and len(its) == 1 and isinstance(its[0], str)
        shapes[name] = told.get(name, (len(value),) if value and is_vector else sized(its, sizes))
    # Inputs with given values are settings, and not images.
    places = batch_axes({name: its for name, its in axes.items() if name not in values})
    if batch_size is not None:
        _refuse_fixed_batch(axes, places, batch_size, where)
        for name, place in places.items():
            if shape := shapes[name]:
                shapes[name] = (*shape[:place], batch_size, *shape[place + 1 :])
    missing = {name: axes[name] for name, shape in shapes.items() if shape is None}
    if missing:
        raise missing_shapes(shapes_to_ask(missing, sizes), where)
    found = {name: shape for name, shape in shapes.items() if shape is not None}
    refuse_too_large(found, MOST_ELEMENTS, "ONNX Runtime", where)
    types = {it.name: TensorType(found[it.name], dtype_name(it.type.tensor_type.elem_type)) for it in inputs}
    # The batch axis, or else the first axis of the first input.
    batch = [shape[places.get(name, 0)] for name, shape in found.items() if shape and (name in places or not places)]
    assumed = {
        name: tuple([axis for axis in its if isinstance(axis, str) and axis not in sizes and not counts_images(axis)])
        for name, its in axes.items()
        if its is not None and name not in told and name not in values and batch_size is None
    }
    return types, batch[0] if batch else 1, assumed


def _refuse_odd_inputs(
    inputs: Sequence["ValueInfoProto"],
    axes: Mapping[str, Axes | None],
    stated: StatedInputs,
    known: Mapping[str, Shape],
    where: str,
) -> None:
    """Refuse inputs that are no tensors, shapes and values of other inputs, and shapes of another number of axes."""
    for it in inputs:
        kind = _NO_TENSORS.get(it.type.WhichOneof("value") or "")
        if kind:
            raise ModelError(
                f"{where}: input {it.name[:80]!r} is {kind}, and values are made up for tensors only: export the model "
                "with an input of a tensor for each part"
            )
    for name in (*stated.shapes, *stated.values):
        if name not in axes:
            raise ModelError(f"{where} has no input {name[:80]!r}; its inputs are: {listed([*axes]) or 'none'}")
    for name, its in axes.items():
        shape = stated.shapes.get(name, known.get(name))
        if its is not None and shape is not None and len(its) != len(shape):
            shown = short_shape(shape)
            raise ModelError(f"{where}: input {name[:80]!r} has {len(its)} axes; the given shape {shown} does not")


def _sizes(axes: Mapping[str, Axes | None], stated: Mapping[str, Shape]) -> dict[str, int]:
    """Return the sizes that shapes give to the names of open axes."""
    found: dict[str, int] = {}
    for name, its in axes.items():
        if its is not None and name in stated:
            found.update(named_sizes(its, stated[name]))
    return found


def _refuse_fixed_batch(
    axes: Mapping[str, Axes | None], places: Mapping[str, int], batch_size: int, where: str
) -> None:
    """Raise ModelError if no input has an open batch axis, unless the file itself says this batch size."""
    if places:
        return
    fixed = {name: its[0] for name, its in axes.items() if its and isinstance(its[0], int)}
    if not fixed:
        raise ModelError(f"{where} has no input with a batch axis: keep the batch size of the file")
    for name, size in fixed.items():
        if size != batch_size:
            raise ModelError(
                f"{where}: its file fixes the first axis of input {name[:80]!r} at {size}, so its batch size cannot be "
                f"{batch_size}: keep the batch size of the file, or export the model with an open batch axis"
            )


# The name that is given to an axis that an operator reads as the batch.
_BATCH = "batch"
# The lengths of sequences and the sides of images that are tried one after another, likely ones first.
_SIZES = (
    *((128, 224), (256, 256), (512, 320), (1024, 512), (2048, 640)),
    *((16_000, 28), (64, 64), (32, 32), (8, 16), (1, 1)),
)
# The axes that an input of unknown rank may have.
_RANKS: Sequence[Axes] = (["", "", "", ""], ["", ""], ["", "", ""], [""], [])
_RECURRENT = frozenset({"LSTM", "GRU", "RNN"})
_BROADCASTING = frozenset({"Add", "Sub", "Mul", "Div"})


def candidates(asked: Mapping[str, Axes | None]) -> Iterator[dict[str, Shape]]:
    """Yield shapes for these inputs. The middle one of three axes has the same length as others, or one element."""
    ranks = _RANKS if None in asked.values() else _RANKS[:1]
    tried: list[dict[str, Shape]] = []
    for rank in ranks:
        for length, side in _SIZES:
            for inner in ("", _BATCH):
                found = {}
                for name, axes in asked.items():
                    known = rank if axes is None else axes
                    named = [known[0], known[1] or inner, known[2]] if len(known) == 3 else known
                    found[name] = example_shape(named, length, side)
                if found not in tried:
                    tried.append(found)
                    yield found


def implied_axes(file: OnnxFile) -> dict[str, Axes | None]:
    """Return the axes of inputs, with the sizes of nameless ones that follow from the weights of their operators."""
    axes = {it.name: axes_of(it.type) for it in file.inputs}
    before = len(axes) + 1
    # When the number of axes of an input is found, more may follow.
    while (unknown := [*axes.values()].count(None)) < before:
        before = unknown
        found = _Implied(file, axes)
        for node in with_subgraphs(file)[1]:
            found.take(node)
    return axes


class _Implied:
    """Adds what follows from the nodes that read the inputs of a graph. Inference hands on the names of axes."""

    def __init__(self, file: OnnxFile, axes: dict[str, Axes | None]) -> None:
        from onnx.helper import make_tensor_type_proto

        self._axes = axes
        # The input and the place of each axis without a name, by the name that it gets here.
        self._nameless: dict[int | str, tuple[Axes, int]] = {}
        types = {}
        for it in file.inputs:
            its = axes[it.name]
            if its is not None:
                names = [axis or f"axis {place} of {it.name}" for place, axis in enumerate(its)]
                self._nameless |= {names[place]: (its, place) for place, axis in enumerate(its) if axis == ""}
                types[it.name] = make_tensor_type_proto(it.type.tensor_type.elem_type, names)
        self._read = {name: axes_of(found) for name, found in declared_types(file, types).items()}

    def take(self, node: "NodeProto") -> None:
        """Note the sizes that a node needs."""
        if node.domain:
            return
        op, dims = node.op_type, [self._dims(name) for name in node.input]
        weight = dims[1] if len(dims) > 1 else None
        if op in _RECURRENT and weight and len(weight) == 3 and len(dims) > 2 and dims[2] and len(dims[2]) == 3:
            batch_first = _attribute(node, "layout", 0)
            state: Axes = [dims[2][0], _BATCH, dims[2][2]]
            data: Axes = ["", _BATCH, weight[2]]
            for place, axes in ((0, data), (5, state), (6, state)):
                self._imply(node, place, [axes[1], axes[0], axes[2]] if batch_first else axes)
        elif op in ("Conv", "ConvTranspose") and weight and len(weight) > 2:
            channels = weight[1] * _attribute(node, "group", 1) if op == "Conv" else weight[0]
            self._imply(node, 0, [_BATCH, channels, *([""] * (len(weight) - 2))])
        elif op == "Gemm" and weight and len(weight) == 2 and not _attribute(node, "transA", 0):
            self._imply(node, 0, [_BATCH, weight[1 if _attribute(node, "transB", 0) else 0]])
        elif op == "MatMul" and weight and len(weight) == 2:
            self._imply_last(node, 0, weight[:1])
        elif op == "LayerNormalization" and weight:
            self._imply_last(node, 0, weight)
        elif op in _BROADCASTING and len(dims) == 2:
            for place in (0, 1):
                self._imply_last(node, place, dims[1 - place] or ())

    def _imply(self, node: "NodeProto", place: int, axes: Axes) -> None:
        """Note the axes of an input of a node; "" is an open one."""
        name = node.input[place] if place < len(node.input) else ""
        if name in self._axes and self._axes[name] is None:
            self._axes[name] = [*axes]
        read = self._read.get(name)
        if read is not None and len(read) == len(axes):
            for axis, size in zip(read, axes, strict=True):
                if size and axis in self._nameless:
                    its, at = self._nameless.pop(axis)
                    its[at] = size

    def _imply_last(self, node: "NodeProto", place: int, sizes: Sequence[int]) -> None:
        """Note the sizes of the last axes of an input; those of one element fit any size."""
        read = self._read.get(node.input[place])
        if read is not None and len(sizes) <= len(read):
            kept = [size if size > 1 else "" for size in sizes]
            self._imply(node, place, [*([""] * (len(read) - len(sizes))), *kept])

    def _dims(self, name: str) -> tuple[int, ...] | None:
        """Return the sizes of a tensor that does not depend on open axes."""
        read = self._read.get(name)
        sizes = tuple([axis for axis in read or () if isinstance(axis, int)])
        return None if read is None or len(sizes) < len(read) else sizes


def _attribute(node: "NodeProto", name: str, default: int) -> int:
    """Return a whole number that a node has as an attribute."""
    return next((it.i for it in node.attribute if it.name == name), default)
