"""Check a network in an untrusted ONNX file before any runtime opens it."""

import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from math import prod
from typing import TYPE_CHECKING

from dlbricks_tui.models.content import GZIP_MAGIC
from dlbricks_tui.models.errors import FlawError, ModelError
from dlbricks_tui.models.graph import GraphInput, TensorType
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.models.onnx_arrays import dtype_name
from dlbricks_tui.models.onnx_constants import INDEX_DTYPES
from dlbricks_tui.models.onnx_file import graphs_inside, parse_onnx, refuse_too_many_parts
from dlbricks_tui.models.onnx_inputs import KEY, stated_inputs
from dlbricks_tui.share.errors import UnsuitableLayersError, refuse_too_large
from dlbricks_tui.share.onnx_network import (
    ANNOTATIONS,
    DOMAINS,
    LONGEST_LIST,
    MOST_INDICES,
    onnx_network,
    types_inside,
)

if TYPE_CHECKING:
    from google.protobuf.message import Message
    from onnx import GraphProto, NodeProto, TensorProto, TypeProto

# An excerpt has some tens of nodes; those of a long function may be written out.
_MOST_NODES = 20_000
_MOST_UNPACKED_BYTES = 96 << 20
_TENSOR = re.compile(r"(input|weight|inside)[0-9]{1,6}(_sizes|_value)?|t[0-9]{1,6}_[0-9]{1,4}|", re.ASCII)
_NODE = re.compile(r"(node|inside|weight)[0-9]{1,6}", re.ASCII)
_AXIS = re.compile(r"((batch|length|axis)[0-9]{1,6})?", re.ASCII)
_ANNOTATION = re.compile(r"(layer)?[0-9]{1,9}|" + "|".join(kind.value for kind in Kind), re.ASCII)
_WHAT_IT_IS = "its file"
_ITEM_BYTES = 8
# Operators whose last input is the size of what they fill.
_FILLING = frozenset({"ConstantOfShape", "Tile", "Expand", "RandomNormal", "RandomUniform"})
# Loops over the steps of a sequence have some hundreds.
_MOST_STEPS = 100_000
# The fields of each message that `onnx_network` writes. Others may be there without a value.
_FIELDS: Mapping[str, frozenset[str]] = {
    "ModelProto": frozenset({"ir_version", "opset_import", "graph", "metadata_props"}),
    "GraphProto": frozenset({"node", "name", "initializer", "input", "output"}),
    "NodeProto": frozenset({"input", "output", "name", "op_type", "domain", "attribute", "metadata_props"}),
    "AttributeProto": frozenset(
        ["name", "type", "f", "i", "s", "t", "g", "tp", "floats", "ints", "strings", "graphs", "type_protos"]
    ),
    "TensorProto": frozenset({"dims", "data_type", "name", "raw_data"}),
    "ValueInfoProto": frozenset({"name", "type"}),
    "TypeProto": frozenset({"tensor_type", "sequence_type", "map_type", "optional_type"}),
    "Dimension": frozenset({"dim_value", "dim_param"}),
}
_NOTHING = ("", b"", 0)


def check_network(content: bytes, most_bytes: int) -> None:
    """Refuse everything that `onnx_network` does not write, and sizes that take more than this memory."""
    try:
        plain = _unpacked(content)
        refuse_too_many_parts(plain, _WHAT_IT_IS)
        file = parse_onnx(plain, _WHAT_IT_IS)
        stated = stated_inputs(file.metadata)
    except (ModelError, FlawError) as error:
        raise UnsuitableLayersError(f"cannot be read: {error}") from None
    _check_model(plain)
    given = {it.name for it in file.inputs}
    if not stated.shapes.keys() | stated.values.keys() <= given:
        raise UnsuitableLayersError("states shapes of inputs that it does not have")
    sizes = [*map(prod, stated.shapes.values()), *_sizes(file.nodes, file.weights)]
    refuse_too_large(sum(sizes) * _ITEM_BYTES, most_bytes)
    # It refuses unknown operators, attributes and texts.
    onnx_network(file, {name: GraphInput(name, TensorType(shape)) for name, shape in stated.shapes.items()})


def _unpacked(content: bytes) -> bytes:
    if not content.startswith(GZIP_MAGIC):
        return content
    try:
        with gzip.open(BytesIO(content)) as packed:
            plain = packed.read(_MOST_UNPACKED_BYTES + 1)
    except (OSError, EOFError, zlib.error):
        raise UnsuitableLayersError("is packed and damaged") from None
    if len(plain) > _MOST_UNPACKED_BYTES:
        raise UnsuitableLayersError(f"unpacks to more than {_MOST_UNPACKED_BYTES >> 20} MiB")
    return plain


def _check_model(plain: bytes) -> None:
    from onnx import ModelProto

    model = ModelProto.FromString(plain)
    model.DiscardUnknownFields()
    if model.SerializeToString(deterministic=True) != plain:
        raise UnsuitableLayersError("has unknown parts, or is written in another way than ours")
    _refuse_other_fields(model)
    if not {it.domain for it in model.opset_import} <= DOMAINS:
        raise UnsuitableLayersError("has operators of other domains than ONNX and ONNX Runtime")
    if [it.key for it in model.metadata_props] != [KEY]:
        raise UnsuitableLayersError(f"has other metadata than {KEY}")
    # Anything could be written between the numbers of a text, and would tell suites apart.
    text = model.metadata_props[0].value
    if json.dumps(json.loads(text), separators=(",", ":")) != text:
        raise UnsuitableLayersError("has metadata in another spelling than ours")
    _check_graph(model.graph, "layers")


def _refuse_other_fields(message: "Message") -> None:
    """Refuse fields that `onnx_network` does not write: comments, names, functions, external data and others."""
    allowed = _FIELDS.get(message.DESCRIPTOR.name)
    for field, value in message.ListFields():
        if allowed is not None and field.name not in allowed and value not in _NOTHING:
            if field.name in ("external_data", "data_location"):
                raise UnsuitableLayersError("has an array in another file")
            raise UnsuitableLayersError(f"has {field.name} in its {message.DESCRIPTOR.name}, which no network needs")
        if field.message_type is not None:
            for inner in [value] if hasattr(value, "ListFields") else value:
                _refuse_other_fields(inner)


def _check_graph(graph: "GraphProto", name: str) -> None:
    if graph.name != name:
        raise UnsuitableLayersError("has names or comments in its graph")
    if len(graph.node) > _MOST_NODES:
        raise UnsuitableLayersError(f"has more than {_MOST_NODES:,} nodes")
    for value in (*graph.input, *graph.output):
        if not _TENSOR.fullmatch(value.name):
            raise UnsuitableLayersError(f"has a tensor called {value.name[:40]!r}")
        _check_type(value.type)
    for array in graph.initializer:
        _check_array(array)
    for node in graph.node:
        _check_node(node)


def _check_type(found: "TypeProto") -> None:
    for axis in (axis for it in types_inside(found) for axis in it.tensor_type.shape.dim):
        if not _AXIS.fullmatch(axis.dim_param):
            raise UnsuitableLayersError(f"has an axis called {axis.dim_param[:40]!r}")


def _check_array(array: "TensorProto") -> None:
    """Refuse an array of different numbers, unless these are few or may be indices."""
    from onnx.numpy_helper import to_array

    if not _TENSOR.fullmatch(array.name):
        raise UnsuitableLayersError(f"has an array called {array.name[:40]!r}")
    dtype = dtype_name(array.data_type)
    if dtype == "object":
        raise UnsuitableLayersError("has an array of texts")
    try:
        numbers = to_array(array).reshape(-1)
    except (TypeError, ValueError, KeyError, OverflowError):
        raise UnsuitableLayersError("has an array that has another size than it says") from None
    most = MOST_INDICES if dtype in INDEX_DTYPES else LONGEST_LIST
    if len(numbers) > most and not (numbers == numbers[0]).all():
        raise UnsuitableLayersError("has an array of different numbers: weights do not travel")


def _check_node(node: "NodeProto") -> None:
    names = (*node.input, *node.output)
    if not all(map(_TENSOR.fullmatch, names)) or not _NODE.fullmatch(node.name):
        raise UnsuitableLayersError(f"has a node called {node.name[:40]!r}, or one that reads names of a model")
    for said in node.metadata_props:
        if said.key not in ANNOTATIONS or not _ANNOTATION.fullmatch(said.value):
            raise UnsuitableLayersError(f"has a {node.op_type[:40]} with metadata")
    for attribute in node.attribute:
        if attribute.HasField("t"):
            _check_array(attribute.t)
    for inside in graphs_inside(node):
        _check_graph(inside, "inside")


def _sizes(nodes: "Iterable[NodeProto]", weights: "Iterable[TensorProto]") -> Iterator[int]:
    """Yield the number of elements of each weight: those that nodes fill, and those in the file.

    Refuse loops without a limit, or with a stated one that no network needs; a worker ends after a time limit.
    """
    arrays = {array.name: array for array in weights}
    yield from (prod(array.dims) for array in arrays.values())
    for node in nodes:
        if node.op_type in _FILLING and node.input and node.input[-1] in arrays:
            sizes = _whole_numbers(arrays[node.input[-1]])
            if any(size < 0 for size in sizes):
                raise UnsuitableLayersError("fills an array of a negative size")
            yield prod(sizes)
        if node.op_type == "Loop":
            limit = node.input[0] if node.input else ""
            if not limit or (limit in arrays and any(it > _MOST_STEPS for it in _whole_numbers(arrays[limit]))):
                raise UnsuitableLayersError(f"has a loop of more than {_MOST_STEPS:,} steps, or without a limit")
        for inside in graphs_inside(node):
            yield from _sizes(inside.node, inside.initializer)


def _whole_numbers(array: "TensorProto") -> list[int]:
    from onnx.numpy_helper import to_array

    numbers: list[int] = to_array(array).reshape(-1).tolist()
    if not all(isinstance(number, int) for number in numbers):
        raise UnsuitableLayersError("fills an array of a size that is no whole number")
    return numbers
