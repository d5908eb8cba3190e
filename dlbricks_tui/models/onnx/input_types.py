"""The types of a model's inputs: from the file, from the shapes that users and manifests give, and at a batch size."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import Numbers, Shape, TensorType
from dlbricks_tui.models.input_shapes import listed, missing_shapes, refuse_too_large, short_shape
from dlbricks_tui.models.input_values import refuse_unknown_inputs
from dlbricks_tui.models.onnx.inputs import (
    Axes,
    axes_of,
    batch_axes,
    counts_images,
    named_sizes,
    resized,
    shape_of_value,
    shapes_to_ask,
    sized,
)
from dlbricks_tui.models.onnx.stored_arrays import MOST_ELEMENTS, dtype_name

if TYPE_CHECKING:
    from onnx import ValueInfoProto


# Types of inputs that no runtime is fed here.
_NO_TENSORS = {
    "sequence_type": "a sequence",
    "optional_type": "optional",
    "map_type": "a map",
    "sparse_tensor_type": "a sparse tensor",
}


class InputTypes(NamedTuple):
    """The type of each input by name, and the batch size that they amount to."""

    types: Mapping[str, TensorType]
    batch_size: int
    # The names of axes of one element, by input, where the name is not that of a batch and nothing says the size.
    assumed: Mapping[str, tuple[str, ...]]


def input_types(
    inputs: Sequence["ValueInfoProto"],
    given: Mapping[str, Shape],
    known: Mapping[str, Shape],
    values: Mapping[str, Numbers],
    batch_size: int | None,
    where: str,
) -> InputTypes:
    """Return the types of inputs, by the shapes that the user has given and those known from elsewhere.

    An open axis has the size that is given for its name in any input. Otherwise a first axis, or one named batch, means
    one image. A batch size replaces the sizes of all open batch axes.
    """
    for it in inputs:
        kind = _NO_TENSORS.get(it.type.WhichOneof("value") or "")
        if kind:
            raise ModelError(
                f"{where}: input {it.name[:80]!r} is {kind}, and values are made up for tensors only: export the model "
                "with an input of a tensor for each part"
            )
    names = [it.name for it in inputs]
    for name in given:
        if name not in names:
            raise ModelError(f"{where} has no input {name[:80]!r}; its inputs are: {listed(names) or 'none'}")
    refuse_unknown_inputs(values, names, where)
    axes = {it.name: axes_of(it) for it in inputs}
    _refuse_other_ranks(axes, {**known, **given}, where)
    by_user = _sizes(axes, given)
    sizes = {**_sizes(axes, known), **by_user}
    # The user may have given another size for an axis of a shape that is known from elsewhere.
    stated = {**{name: resized(axes.get(name), shape, by_user) for name, shape in known.items()}, **given}
    shapes = {
        name: stated.get(name, shape_of_value(its, values.get(name, ())) or sized(its, sizes))
        for name, its in axes.items()
    }
    # Inputs with given values are settings, and not images.
    places = batch_axes({name: its for name, its in axes.items() if name not in values})
    if batch_size is not None:
        _refuse_fixed_batch(axes, places, batch_size, where)
        for name, place in places.items():
            shape = shapes[name]
            if shape:
                shapes[name] = (*shape[:place], batch_size, *shape[place + 1 :])
    missing = {name: axes[name] for name, shape in shapes.items() if shape is None}
    if missing:
        raise missing_shapes(shapes_to_ask(missing, sizes), where)
    found = {name: shape for name, shape in shapes.items() if shape is not None}
    refuse_too_large(found, MOST_ELEMENTS, "ONNX Runtime", where)
    types = {it.name: TensorType(found[it.name], dtype_name(it.type.tensor_type.elem_type)) for it in inputs}
    assumed = (
        {}
        if batch_size is not None
        else {
            name: tuple(
                [axis for axis in its if isinstance(axis, str) and axis not in sizes and not counts_images(axis)]
            )
            for name, its in axes.items()
            if its is not None and name not in stated and name not in values
        }
    )
    return InputTypes(types, _batch_size(found, places), assumed)


def _refuse_other_ranks(axes: Mapping[str, Axes | None], stated: Mapping[str, Shape], where: str) -> None:
    """Raise ModelError for a shape with another number of axes than its input has."""
    for name, its in axes.items():
        if its is not None and name in stated and len(its) != len(stated[name]):
            shown = short_shape(stated[name])
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


def _batch_size(shapes: Mapping[str, Shape], places: Mapping[str, int]) -> int:
    """Return the size of the batch axis, or else of the first axis of the first input."""
    for name, shape in shapes.items():
        if shape and (name in places or not places):
            return shape[places.get(name, 0)]
    return 1
