"""The classes of layouts that convolutions give their results, as far as they follow from a model."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from dlbricks_tui.bricks.identity import operators_inside
from dlbricks_tui.models.graph import Layer, Operator, Shape

# The operators that set a layout, and its class if no shapes are known.
_SET = {"conv": "conv", "conv_transpose": "deconv"}

# The blocks into which oneDNN groups channels. At most this few channels, as of an image, are read in the plain layout.
_LARGE_BLOCK, _SMALL_BLOCK, _FEW = 16, 8, 4
# The largest padding that its special kernels support on processors without AVX-512.
_FAR = 3

# Separates a layout class from its details, as in `conv~far`.
MARK = "~"


def first_part(operator: Operator) -> str:
    """Return the operator that decides about a fused one: the first in it; the others change its result in place."""
    return operator.parts[0] if operator.parts else operator.op


def is_convolution(operator: Operator) -> bool:
    """True if an operator sets a layout, whatever it is fused with."""
    return first_part(operator) in _SET


def convolves_an_image(layer: Layer) -> bool:
    """True if a layer convolves a tensor with as few channels as an image."""
    read = [wire for operator in layer.operators if is_convolution(operator) for wire in operator.inputs[:1]]
    shapes = [layer.type_of(wire).shape for wire in read]
    return any(_has_channels(shape) and shape[1] <= _FEW for shape in shapes)


def layout_set_by(operator: Operator, read: Sequence[Shape | None]) -> str:
    """Return the class of the result of a convolution that reads data and a weight of these shapes."""
    op = first_part(operator)
    data, weight = read if len(read) > 1 else (None, None)
    # A model file or a framework may give no types.
    result = operator.outputs[0].shape if operator.outputs else None
    if not (_has_channels(data) and _has_channels(weight) and _has_channels(result)):
        return _SET[op]
    far = f"{MARK}far" if _reaches_far(operator) else ""
    return f"{_by_sizes(op, data, weight, result)}{far}"


def fewest_channels(operator: Operator, data: Shape | None, weight: Shape | None) -> int | None:
    """Return the fewest input channels with which a convolution gives the same layout; None for other operators.

    The class of an ungrouped convolution of more than one pixel does not depend on how many whole blocks it reads.
    """
    if first_part(operator) != "conv" or not (_has_channels(data) and _has_channels(weight)):
        return None
    read = weight[1]
    one_by_one = all(size == 1 for size in weight[2:])
    if read != data[1] or one_by_one or read < 2 * _LARGE_BLOCK:
        return None
    return _LARGE_BLOCK + read % _LARGE_BLOCK


def _has_channels(shape: Shape | None) -> TypeGuard[Shape]:
    """Return whether a shape is known, and that of a tensor that can be convolved: a damaged file may give others."""
    return shape is not None and len(shape) > 1


def _by_sizes(op: str, data: Shape, weight: Shape, result: Shape) -> str:
    put_out, depth = _partly(result[1], "/"), weight[1]
    if op == "conv_transpose":
        return f"{_SET[op]}{put_out}"
    if depth < data[1]:
        return f"{'depthwise' if depth == 1 else f'grouped{depth}'}{put_out}"
    if any(size > 1 for size in weight[2:]):
        return f"{_SET[op]}{put_out}{_partly(depth, MARK) if depth > _FEW else ''}"
    # oneDNN chooses kernels of different layouts by the sizes; the channels read count to a power of two only.
    channels = 1 << (data[1].bit_length() - 1)
    return f"conv1x1:{_sizes(channels, data)}:{_sizes(result[1], result)}{_partly(data[1], MARK)}"


def _partly(channels: int, sign: str) -> str:
    """Return the size of the blocks that these channels fill; empty for large blocks."""
    if channels % _LARGE_BLOCK == 0:
        return ""
    return f"{sign}{_SMALL_BLOCK if channels % _SMALL_BLOCK == 0 else 1}"


def _sizes(channels: int, shape: Shape) -> str:
    return "x".join(str(size) for size in (channels, *shape[2:]))


def _reaches_far(operator: Operator) -> bool:
    pads = _parameters(operator).get("pads", 0)
    return any(pad > _FAR for pad in (pads if isinstance(pads, Sequence) else [pads]) if isinstance(pad, int))


def _parameters(operator: Operator) -> Mapping[str, Any]:
    """Return the parameters of a convolution, or of the convolution inside of a fused operator."""
    if operator.op in _SET:
        return dict(operator.params)
    inside = (found for graph in operator.inner for found in operators_inside(graph))
    return next((params for op, params in inside if op in _SET), {})
