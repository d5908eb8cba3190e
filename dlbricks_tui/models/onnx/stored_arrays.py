"""The arrays that an ONNX file stores: each is checked against the bytes that are there."""

from collections.abc import Iterator
from functools import cache
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from dlbricks_tui.models.errors import UnreadableModelError
from dlbricks_tui.models.input_shapes import MOST_AXES, short_shape
from dlbricks_tui.models.onnx.model_file import OnnxFile, graphs_inside
from dlbricks_tui.models.onnx.tensor_types import dtype_name
from dlbricks_tui.models.onnx.values import is_elsewhere

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto

# The data types of which several elements share a byte.
_BITS = {"UINT4": 4, "INT4": 4, "FLOAT4E2M1": 4, "UINT2": 2, "INT2": 2}


def refuse_damaged_arrays(file: OnnxFile, path: Path, where: str) -> None:
    """Raise UnreadableModelError for an array that is not there as the file says; `path` is the model's file.

    Everything after this may take the sizes of stored arrays for true.
    """
    beside = _Beside(path)
    for called, stored in _stored(file):
        label = f"{where}: {called}"
        _refuse_impossible_shape(stored, label)
        if is_elsewhere(stored):
            beside.refuse_missing(stored, label)
        else:
            _refuse_missing_bytes(stored, label)


def stored_bytes(file: OnnxFile) -> int:
    """How many bytes all arrays of a file take."""
    return sum(_needed_bytes(stored) or 0 for _, stored in _stored(file))


class _Beside:
    """The files beside a model that hold its large arrays."""

    def __init__(self, path: Path) -> None:
        self._folder = path.parent
        # Where the model is a link, such as in a cache of downloads, its arrays may be beside the file it leads to.
        self._trusted = [self._folder.resolve(), path.resolve().parent]
        self._sizes: dict[str, int] = {}

    def refuse_missing(self, stored: "TensorProto", label: str) -> None:
        """Raise where the file beside the model is not there, may not be read or ends too early."""
        facts = {entry.key: str(entry.value) for entry in stored.external_data}
        location = facts.get("location", "")
        label = f"{label} is kept in {location[:80]!r}"
        if location not in self._sizes:
            self._sizes[location] = self._size(location, label)
        numbers = [facts.get(key) or "0" for key in ("offset", "length")]
        if not all(number.isdecimal() and len(number) < 19 for number in numbers):
            raise UnreadableModelError(f"{label}, of which it says no place; copy that file anew")
        offset, length = map(int, numbers)
        needed = _needed_bytes(stored)
        if needed is not None and length not in (0, needed):
            raise UnreadableModelError(f"{label}: {length:,} bytes, but {_said(stored)} takes {needed:,}")
        if offset + max(length, needed or 0) > self._sizes[location]:
            raise UnreadableModelError(f"{label}, which ends before it; copy that file anew")

    def _size(self, location: str, label: str) -> int:
        inside = Path(location)
        missing = UnreadableModelError(f"{label}, which is no file beside the model; put it there")
        if not location or "\0" in location or inside.is_absolute() or ".." in inside.parts:
            raise missing
        try:
            path = (self._folder / inside).resolve()
            if not path.is_file():
                raise missing
            size = path.stat().st_size
        except (OSError, RuntimeError):
            raise missing from None
        if not any(path.is_relative_to(folder) for folder in self._trusted):
            raise UnreadableModelError(
                f"{label}, a link that leads out of the model's folder; put the file itself there"
            )
        return size


def _refuse_impossible_shape(stored: "TensorProto", label: str) -> None:
    if len(stored.dims) > MOST_AXES:
        raise UnreadableModelError(f"{label} has {len(stored.dims):,} axes; {MOST_AXES} is the most there can be")
    if any(size < 0 for size in stored.dims):
        raise UnreadableModelError(f"{label} has a size below zero: {short_shape(tuple(stored.dims))}")


def _refuse_missing_bytes(stored: "TensorProto", label: str) -> None:
    needed = _needed_bytes(stored)
    if stored.HasField("raw_data"):
        if needed is not None and needed != len(stored.raw_data):
            there = f"there are {len(stored.raw_data):,}"
            raise UnreadableModelError(f"{label}: {_said(stored)} takes {needed:,} bytes, but {there}")
        return
    found = _typed_numbers(stored)
    if found is None:
        return
    expected, held = found
    if expected != held:
        raise UnreadableModelError(f"{label}: {_said(stored)} takes {expected:,} numbers, but there are {held:,}")


def _said(stored: "TensorProto") -> str:
    return f"{dtype_name(stored.data_type)} {short_shape(tuple(stored.dims)) or 'scalar'}"


def _needed_bytes(stored: "TensorProto") -> int | None:
    """How many bytes the elements take; None for texts and for types that the installed onnx lacks."""
    bits = _element_bits(stored.data_type)
    return None if bits is None else -(-prod(stored.dims) * bits // 8)


def _typed_numbers(stored: "TensorProto") -> tuple[int, int] | None:
    """How many numbers the field of the array's data type has to hold, and how many it holds."""
    from onnx import TensorProto
    from onnx.helper import tensor_dtype_to_field

    try:
        name = TensorProto.DataType.Name(stored.data_type)
        field = tensor_dtype_to_field(stored.data_type)
    except (KeyError, ValueError):
        return None
    elements = prod(stored.dims)
    if name in _BITS:
        elements = -(-elements * _BITS[name] // 8)
    elif name.startswith("COMPLEX"):
        elements *= 2
    return elements, len(getattr(stored, field))


@cache
def _element_bits(data_type: int) -> int | None:
    from onnx import TensorProto
    from onnx.helper import tensor_dtype_to_np_dtype

    try:
        name = TensorProto.DataType.Name(data_type)
        if name in ("STRING", "UNDEFINED"):
            return None
        return _BITS.get(name) or int(tensor_dtype_to_np_dtype(data_type).itemsize) * 8
    except (KeyError, ValueError):
        return None


def _stored(file: OnnxFile) -> Iterator[tuple[str, "TensorProto"]]:
    """All arrays of a file, with those of nodes and of the graphs inside them, each as people know it."""
    yield from ((_weight(weight), weight) for weight in file.weights)
    for node in file.nodes:
        yield from _stored_in(node)


def _stored_in(node: "NodeProto") -> Iterator[tuple[str, "TensorProto"]]:
    for attribute in node.attribute:
        label = f"the value of {(node.name or node.op_type)[:80]!r}"
        found = [*attribute.tensors]
        if attribute.HasField("t"):
            found.append(attribute.t)
        for sparse in (*attribute.sparse_tensors, attribute.sparse_tensor):
            found += [it for it in (sparse.values, sparse.indices) if it.data_type]
        yield from ((label, value) for value in found)
    for graph in graphs_inside(node):
        yield from ((_weight(weight), weight) for weight in graph.initializer)
        for inner in graph.node:
            yield from _stored_in(inner)


def _weight(weight: "TensorProto") -> str:
    return f"the weight {weight.name[:80]!r}"
