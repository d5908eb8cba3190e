"""The arrays that an ONNX file stores: checked against the bytes that exist, and read."""

from collections.abc import Iterator
from functools import cache
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dlbricks_tui.models.errors import UnreadableModelError
from dlbricks_tui.models.input_shapes import MOST_AXES, short_shape
from dlbricks_tui.models.onnx.model_file import OnnxFile, graphs_inside, parse_onnx
from dlbricks_tui.models.onnx.reading import read_onnx, refuse_too_many_parts
from dlbricks_tui.models.onnx.tensors import DamagedValueError, array_of, dtype_name, is_external
from dlbricks_tui.regular_files import open_regular

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto


# Data types with several elements per byte.
_BITS = {"UINT4": 4, "INT4": 4, "FLOAT4E2M1": 4, "UINT2": 2, "INT2": 2}


def checked_array_file_sizes(file: OnnxFile, path: Path, where: str) -> dict[str, int]:
    """Check all stored arrays; return the sizes of the files beside the model that hold arrays, by name.

    Raise UnreadableModelError for an array whose bytes do not match its type: later code trusts the sizes of arrays.
    """
    beside = _ExternalFiles(path)
    for called, stored in _stored(file):
        label = f"{where}: {called}"
        _refuse_impossible_shape(stored, label)
        if is_external(stored):
            beside.refuse_missing(stored, label)
        else:
            _refuse_missing_bytes(stored, label)
    return beside.sizes


def stored_bytes(file: OnnxFile) -> int:
    """Return the size of all arrays of a file."""
    return sum(_needed_bytes(stored) or 0 for _, stored in _stored(file))


class _ExternalFiles:
    """The files beside a model that hold its large arrays."""

    def __init__(self, path: Path) -> None:
        self._folder = path.parent
        # If the model is a link, as in a download cache, its arrays may be beside the target of the link.
        self._trusted = [self._folder.resolve(), path.resolve().parent]
        self.sizes: dict[str, int] = {}

    def refuse_missing(self, stored: "TensorProto", label: str) -> None:
        """Raise UnreadableModelError if the file beside the model is missing, forbidden or too short."""
        facts = {entry.key: str(entry.value) for entry in stored.external_data}
        location = facts.get("location", "")
        label = f"{label} is kept in {location[:80]!r}"
        if location not in self.sizes:
            self.sizes[location] = self._size(location, label)
        numbers = [facts.get(key) or "0" for key in ("offset", "length")]
        if not all(number.isdecimal() and len(number) < 19 for number in numbers):
            raise UnreadableModelError(f"{label} at an invalid offset; copy the model again")
        offset, length = map(int, numbers)
        needed = _needed_bytes(stored)
        if needed is not None and length not in (0, needed):
            raise UnreadableModelError(f"{label}: {length:,} bytes, but {_described(stored)} takes {needed:,}")
        if offset + max(length, needed or 0) > self.sizes[location]:
            raise UnreadableModelError(f"{label}, which is too short; copy that file again")

    def _size(self, location: str, label: str) -> int:
        inside = Path(location)
        missing = UnreadableModelError(f"{label}, which is not beside the model; put it there")
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
        raise UnreadableModelError(f"{label} has {len(stored.dims):,} axes; the limit is {MOST_AXES}")
    if any(size < 0 for size in stored.dims):
        raise UnreadableModelError(f"{label} has a size below zero: {short_shape(tuple(stored.dims))}")


def _refuse_missing_bytes(stored: "TensorProto", label: str) -> None:
    needed = _needed_bytes(stored)
    if stored.HasField("raw_data"):
        if needed is not None and needed != len(stored.raw_data):
            there = f"there are {len(stored.raw_data):,}"
            raise UnreadableModelError(f"{label}: {_described(stored)} takes {needed:,} bytes, but {there}")
        return
    found = _typed_numbers(stored)
    if found is None:
        return
    expected, held = found
    if expected != held:
        raise UnreadableModelError(f"{label}: {_described(stored)} takes {expected:,} numbers, but there are {held:,}")


def _described(stored: "TensorProto") -> str:
    return f"{dtype_name(stored.data_type)} {short_shape(tuple(stored.dims)) or 'scalar'}"


def _needed_bytes(stored: "TensorProto") -> int | None:
    """Return the size of the elements; None for texts and for types that the installed onnx lacks."""
    bits = _element_bits(stored.data_type)
    return None if bits is None else -(-prod(stored.dims) * bits // 8)


def _typed_numbers(stored: "TensorProto") -> tuple[int, int] | None:
    """Return the expected and the actual count of numbers in the field of the array's data type."""
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
    """Return all arrays of a file, including those in nodes and subgraphs, with a label for messages."""
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


_CHUNK_VALUES = 1 << 20


def onnx_weights(path: Path) -> Iterator[tuple[str, Iterator[Any]]]:
    """Return each weight by its name, with its values as numpy arrays: in pieces if it is in a separate file."""
    where = str(path)
    content = read_onnx(path, where)
    refuse_too_many_parts(content, where)
    file = parse_onnx(content, where)
    checked_array_file_sizes(file, path, where)
    for weight in file.weights:
        yield weight.name, _values(path, weight)


def _values(path: Path, weight: "TensorProto") -> Iterator[Any]:
    try:
        if is_external(weight):
            yield from _from_beside(path.parent, weight)
        else:
            yield array_of(weight)
    except (DamagedValueError, LookupError, OSError) as damaged:
        raise UnreadableModelError(f"{path}: the weight {weight.name[:80]!r} cannot be read: {damaged}") from None


def _from_beside(folder: Path, weight: "TensorProto") -> Iterator[Any]:
    from math import prod

    import numpy
    from onnx.helper import tensor_dtype_to_np_dtype

    facts = {entry.key: entry.value for entry in weight.external_data}
    dtype, left = tensor_dtype_to_np_dtype(weight.data_type), prod(weight.dims)
    with open_regular(folder / facts["location"]) as file:
        file.seek(int(facts.get("offset") or 0))
        while left > 0:
            found = numpy.fromfile(file, dtype, min(left, _CHUNK_VALUES))
            if not found.size:
                raise DamagedValueError("its numbers end too early")
            left -= found.size
            yield found
