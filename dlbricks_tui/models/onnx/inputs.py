"""Which shape each data input of an ONNX model has: as told, or as the file says."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import Shape, TensorType
from dlbricks_tui.models.input_shapes import listed, missing_shapes, refuse_too_large, short_shape
from dlbricks_tui.models.onnx.tensor_types import MOST_ELEMENTS, dtype_name

if TYPE_CHECKING:
    from onnx import ValueInfoProto

Axes = list[int | str]


def input_types(
    inputs: Sequence["ValueInfoProto"], given: Mapping[str, Shape], known: Mapping[str, Shape], where: str
) -> dict[str, TensorType]:
    """The type of each input by name.

    An open first axis is one image. An axis that the file only names has the size that it has where it is given.
    """
    names = [it.name for it in inputs]
    for name in given:
        if name not in names:
            raise ModelError(f"{where} has no input {name[:80]!r}; its inputs are: {listed(names) or 'none'}")
    told = {**known, **given}
    sizes: dict[str, int] = {}
    for it in inputs:
        axes = _axes(it)
        if it.name in told and axes is not None:
            if len(axes) != len(told[it.name]):
                shown = short_shape(told[it.name])
                raise ModelError(f"{where}: input {it.name[:80]!r} has {len(axes)} axes, and {shown} has others")
            pairs = zip(axes, told[it.name], strict=True)
            sizes.update((axis, size) for axis, size in pairs if isinstance(axis, str) and axis)
    shapes = {it.name: told.get(it.name, _settled(_axes(it), sizes)) for it in inputs}
    missing = {it.name: _axes(it) for it in inputs if shapes[it.name] is None}
    if missing:
        raise missing_shapes(missing, where)
    refuse_too_large({name: shape for name, shape in shapes.items() if shape}, MOST_ELEMENTS, "ONNX Runtime", where)
    return {it.name: TensorType(shapes[it.name], dtype_name(it.type.tensor_type.elem_type)) for it in inputs}


def _axes(declared: "ValueInfoProto") -> Axes | None:
    """Sizes, and the names of those that are open; None where not even their number is said."""
    tensor = declared.type.tensor_type
    if not declared.type.HasField("tensor_type") or not tensor.HasField("shape"):
        return None
    return [axis.dim_value if axis.dim_value > 0 else axis.dim_param for axis in tensor.shape.dim]


def _settled(axes: Axes | None, sizes: Mapping[str, int]) -> Shape | None:
    if axes is None:
        return None
    found = [
        sizes.get(axis, 1 if place == 0 else 0) if isinstance(axis, str) else axis for place, axis in enumerate(axes)
    ]
    return tuple(found) if all(found) else None
