"""The arrays that an ONNX file stores: checked against the bytes that exist, read, and written."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dlbricks_tui.files import open_regular
from dlbricks_tui.models.errors import FlawError, UnreadableModelError
from dlbricks_tui.models.graph import UNKNOWN_DTYPE, UNKNOWN_TYPE, ParamValue, TensorType
from dlbricks_tui.models.input_shapes import MOST_AXES, short_shape
from dlbricks_tui.models.neutral import single_precision
from dlbricks_tui.models.onnx_file import OnnxFile, parse_onnx, read_onnx, refuse_too_many_parts, with_subgraphs

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto

# More than any machine can hold: such sizes mean damage or an attack.
MOST_ELEMENTS = 2**36 - 1


def type_of_weight(tensor: "TensorProto") -> TensorType:
    """Return the type of a stored array."""
    shape = tuple(tensor.dims)
    return TensorType(shape if all(size >= 0 for size in shape) else None, dtype_name(tensor.data_type))


def type_of_value(declared: "TypeProto") -> TensorType:
    """Return the declared type of a single tensor, if it is complete."""
    if not declared.HasField("tensor_type"):
        return UNKNOWN_TYPE
    tensor = declared.tensor_type
    dtype = dtype_name(tensor.elem_type)
    if not tensor.HasField("shape"):
        return TensorType(None, dtype)
    sizes = [axis.dim_value if axis.HasField("dim_value") else -1 for axis in tensor.shape.dim]
    return TensorType(tuple(sizes) if all(size >= 0 for size in sizes) else None, dtype)


@cache
def dtype_name(number: int) -> str:
    """Return numpy's name for a data type of ONNX."""
    from onnx import TensorProto

    known: dict[int, str] = {value: name.lower() for name, value in TensorProto.DataType.items()}
    return _AS_NUMPY_SAYS.get(known.get(number, ""), known.get(number, UNKNOWN_DTYPE))


def dtype_number(name: str) -> int:
    """Return ONNX's number for a data type."""
    from onnx import TensorProto

    return int(TensorProto.DataType.Value(_AS_ONNX_SAYS.get(name, name).upper()))


def declared(found: TensorType) -> "TypeProto":
    """Return a type in ONNX's form."""
    from onnx.helper import make_tensor_type_proto

    return make_tensor_type_proto(dtype_number(found.dtype), found.shape)


def small_model(graph: "GraphProto", opsets: Mapping[str, int]) -> "ModelProto":
    """Return a model of a version that all current runtimes read."""
    from onnx import ModelProto
    from onnx.helper import make_operatorsetid

    return ModelProto(ir_version=8, graph=graph, opset_import=[make_operatorsetid(*it) for it in opsets.items()])


def inferred(
    node: "NodeProto",
    types: Mapping[str, "TypeProto"],
    values: Iterable["TensorProto"],
    opsets: Mapping[str, int],
) -> dict[str, "TypeProto"]:
    """Return the types of a node's outputs as far as they follow from the types and values of its inputs.

    One node at a time and without onnx's own data propagation, which creates an object for each element of a vector,
    even if the file only claims its length.
    """
    from onnx import GraphProto, ValueInfoProto
    from onnx.shape_inference import InferenceError, infer_shapes

    if _never_ends(node):
        return {}
    inputs = [ValueInfoProto(name=name, type=found) for name, found in types.items()]
    graph = GraphProto(name="inferred", node=[node], input=inputs, initializer=values)
    try:
        found = infer_shapes(small_model(graph, opsets)).graph.value_info
    except (InferenceError, MemoryError, RuntimeError, ValueError):
        # A node that contradicts itself has no types, and its layer says so.
        return {}
    return {it.name: it.type for it in found}


def _never_ends(node: "NodeProto") -> bool:
    """Return true if this faulty node would make onnx loop or fill the memory."""
    found = {it.name: it for it in node.attribute}
    if node.op_type == "Einsum" and "equation" in found:
        equation = found["equation"].s.decode(errors="replace").replace(" ", "")
        read, _, _ = equation.partition("->")
        return not _EQUATION.fullmatch(equation) or read.count(",") + 1 != len(node.input)
    if node.op_type == "Split" and "num_outputs" in found:
        return bool(found["num_outputs"].i > len(node.output))
    return False


_TERM = r"[A-Za-z]*(\.\.\.)?[A-Za-z]*"
_EQUATION = re.compile(rf"{_TERM}(,{_TERM})*(->{_TERM})?")
_AS_NUMPY_SAYS = {"float": "float32", "double": "float64", "string": "object", "undefined": UNKNOWN_DTYPE}
_AS_ONNX_SAYS = {numpys: onnxs for onnxs, numpys in _AS_NUMPY_SAYS.items()}

_LONGEST_VALUE, _LONGEST_LIST = 64, 2**12


def is_external(tensor: "TensorProto") -> bool:
    """Return true if the numbers are in another file."""
    return bool(tensor.data_location == tensor.EXTERNAL or tensor.external_data)


def is_whole(tensor: "TensorProto") -> bool:
    """Return true if the array holds as many numbers as declared."""
    try:
        array_of(tensor)
    except FlawError:
        return False
    return True


def array_of(tensor: "TensorProto") -> Any:
    """Return the numbers as a numpy array; raise FlawError if they are missing or invalid."""
    from onnx.numpy_helper import to_array

    if is_external(tensor):
        raise FlawError("its numbers are in another file")
    try:
        return to_array(tensor)
    except (LookupError, TypeError, ValueError) as error:
        raise FlawError("its number of values differs from its type") from error


def value_of(tensor: "TensorProto") -> ParamValue:
    """Return the numbers of an array as a parameter; for a long one, a hash."""
    if is_external(tensor):
        # Only large arrays are stored elsewhere, and those are weights.
        return f"{dtype_name(tensor.data_type)} {'x'.join(map(str, tensor.dims))} elsewhere"
    array = array_of(tensor)
    if array.size > _LONGEST_VALUE:
        shape = "x".join(map(str, array.shape))
        return f"{array.dtype} {shape} sha256:{sha256(array.tobytes()).hexdigest()}"
    items = [
        single_precision(it) if isinstance(it, float) else it if isinstance(it, (bool, int)) else str(it)
        for it in array.flatten().tolist()
    ]
    return tuple(items) if array.ndim else items[0]


def attribute_value(attribute: "AttributeProto") -> ParamValue:
    """Return the value of an attribute; for a long list, a hash."""
    from onnx import AttributeProto

    count = len(attribute.ints) + len(attribute.floats) + len(attribute.strings)
    if count > _LONGEST_LIST:
        return f"{count} sha256:{sha256(attribute.SerializeToString(deterministic=True)).hexdigest()}"
    if attribute.type == AttributeProto.TENSOR:
        return value_of(attribute.t)
    if attribute.type == AttributeProto.INT:
        return attribute.i
    if attribute.type == AttributeProto.FLOAT:
        return single_precision(attribute.f)
    if attribute.type == AttributeProto.STRING:
        return attribute.s.decode(errors="replace")
    if attribute.type == AttributeProto.INTS:
        return tuple(attribute.ints)
    if attribute.type == AttributeProto.FLOATS:
        return tuple([single_precision(item) for item in attribute.floats])
    if attribute.type == AttributeProto.STRINGS:
        return tuple([item.decode(errors="replace") for item in attribute.strings])
    return bytes(attribute.SerializeToString(deterministic=True)).hex()


# Data types with several elements per byte.
_BITS = {"UINT4": 4, "INT4": 4, "FLOAT4E2M1": 4, "UINT2": 2, "INT2": 2}


def checked_array_file_sizes(file: OnnxFile, path: Path, where: str) -> dict[str, int]:
    """Check all stored arrays; return the sizes of the files beside the model that hold arrays, by name.

    Raise UnreadableModelError for an array whose bytes do not match its type: later code trusts the sizes of arrays.
    """
    beside: dict[str, int] = {}
    for called, stored in _stored(file):
        label = f"{where}: {called}"
        if len(stored.dims) > MOST_AXES:
            raise UnreadableModelError(f"{label} has {len(stored.dims):,} axes; the limit is {MOST_AXES}")
        if any(size < 0 for size in stored.dims):
            raise UnreadableModelError(f"{label} has a size below zero: {short_shape(tuple(stored.dims))}")
        if is_external(stored):
            _refuse_missing_beside(stored, label, path, beside)
        else:
            _refuse_missing_bytes(stored, label)
    return beside


def stored_bytes(file: OnnxFile) -> int:
    """Return the size of all arrays of a file."""
    return sum(_needed_bytes(stored) or 0 for _, stored in _stored(file))


def _refuse_missing_beside(stored: "TensorProto", label: str, model: Path, sizes: dict[str, int]) -> None:
    """Raise UnreadableModelError if the file beside the model is missing, forbidden or too short; note its size."""
    facts = {entry.key: str(entry.value) for entry in stored.external_data}
    location = facts.get("location", "")
    label = f"{label} is kept in {location[:80]!r}"
    if location not in sizes:
        inside = Path(location)
        missing = UnreadableModelError(f"{label}, which is not beside the model; put it there")
        if not location or "\0" in location or inside.is_absolute() or ".." in inside.parts:
            raise missing
        try:
            path = (model.parent / inside).resolve()
            if not path.is_file():
                raise missing
            sizes[location] = path.stat().st_size
        except (OSError, RuntimeError):
            raise missing from None
        # If the model is a link, as in a download cache, its arrays may be beside the target of the link.
        if not any(path.is_relative_to(folder) for folder in (model.parent.resolve(), model.resolve().parent)):
            raise UnreadableModelError(
                f"{label}, a link that leads out of the model's folder; put the file itself there"
            )
    numbers = [facts.get(key) or "0" for key in ("offset", "length")]
    if not all(number.isdecimal() and len(number) < 19 for number in numbers):
        raise UnreadableModelError(f"{label} at an invalid offset; copy the model again")
    offset, length = map(int, numbers)
    needed = _needed_bytes(stored)
    if needed is not None and length not in (0, needed):
        raise UnreadableModelError(f"{label}: {length:,} bytes, but {_described(stored)} takes {needed:,}")
    if offset + max(length, needed or 0) > sizes[location]:
        raise UnreadableModelError(f"{label}, which is too short; copy that file again")


def _refuse_missing_bytes(stored: "TensorProto", label: str) -> None:
    needed = _needed_bytes(stored)
    if stored.HasField("raw_data"):
        if needed is not None and needed != len(stored.raw_data):
            there = f"there are {len(stored.raw_data):,}"
            raise UnreadableModelError(f"{label}: {_described(stored)} takes {needed:,} bytes, but {there}")
        return
    from onnx import TensorProto
    from onnx.helper import tensor_dtype_to_field

    try:
        name = TensorProto.DataType.Name(stored.data_type)
        # The field with the numbers of the array's data type.
        held = len(getattr(stored, tensor_dtype_to_field(stored.data_type)))
    except (KeyError, ValueError):
        return
    expected = prod(stored.dims)
    if name in _BITS:
        expected = -(-expected * _BITS[name] // 8)
    elif name.startswith("COMPLEX"):
        expected *= 2
    if expected != held:
        raise UnreadableModelError(f"{label}: {_described(stored)} takes {expected:,} numbers, but there are {held:,}")


def _described(stored: "TensorProto") -> str:
    return f"{dtype_name(stored.data_type)} {short_shape(tuple(stored.dims)) or 'scalar'}"


def _needed_bytes(stored: "TensorProto") -> int | None:
    """Return the size of the elements; None for texts and for types that the installed onnx lacks."""
    bits = _element_bits(stored.data_type)
    return None if bits is None else -(-prod(stored.dims) * bits // 8)


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
    weights, nodes = with_subgraphs(file)
    yield from ((f"the weight {weight.name[:80]!r}", weight) for weight in weights)
    for node in nodes:
        label = f"the value of {(node.name or node.op_type)[:80]!r}"
        for attribute in node.attribute:
            found = [*attribute.tensors]
            if attribute.HasField("t"):
                found.append(attribute.t)
            for sparse in (*attribute.sparse_tensors, attribute.sparse_tensor):
                found += [it for it in (sparse.values, sparse.indices) if it.data_type]
            yield from ((label, value) for value in found)


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
    import numpy
    from onnx import TensorProto
    from onnx.helper import tensor_dtype_to_np_dtype

    try:
        if not is_external(weight):
            yield array_of(weight)
            return
        facts = {entry.key: entry.value for entry in weight.external_data}
        dtype, left = tensor_dtype_to_np_dtype(weight.data_type), prod(weight.dims)
        with open_regular(path.parent / facts["location"]) as file:
            file.seek(int(facts.get("offset") or 0))
            if (_element_bits(weight.data_type) or 8) < 8:
                # Several in a byte, which only onnx unpacks.
                held = file.read(_needed_bytes(weight) or 0)
                yield array_of(TensorProto(dims=weight.dims, data_type=weight.data_type, raw_data=held))
                return
            while left > 0:
                found = numpy.fromfile(file, dtype, min(left, _CHUNK_VALUES))
                if not found.size:
                    raise FlawError("its numbers end too early")
                left -= found.size
                yield found
    except (FlawError, LookupError, OSError) as damaged:
        raise UnreadableModelError(f"{path}: the weight {weight.name[:80]!r} cannot be read: {damaged}") from None
