"""Axes of inputs whose size the file leaves open, and the sizes that follow from given shapes.

Exporters name open axes. Equal names mean equal sizes, and a name may be a sum of others: `past_length + length`.
"""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dlbricks_tui.models.graph import Numbers, Shape
from dlbricks_tui.models.input_shapes import MOST_AXES, example_shape, names_a_batch, names_a_length

if TYPE_CHECKING:
    from onnx import ValueInfoProto

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
