"""Check a network in an untrusted ONNX file before any runtime opens it."""

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from io import BytesIO
from math import prod
from typing import TYPE_CHECKING

from dlbricks_tui.models.content import GZIP_MAGIC
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import GraphInput, TensorType
from dlbricks_tui.models.onnx.model_file import graphs_inside, parse_onnx
from dlbricks_tui.models.onnx.reading import refuse_too_many_parts
from dlbricks_tui.models.onnx.stated_inputs import KEY, stated_inputs
from dlbricks_tui.models.onnx.tensors import DamagedValueError, dtype_name, is_external
from dlbricks_tui.share.errors import UnsuitableLayersError
from dlbricks_tui.share.networks.onnx_network import onnx_network

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto

# An excerpt has some tens of nodes; those of a long function may be written out.
_MOST_NODES = 20_000
_MOST_UNPACKED_BYTES = 96 << 20
_TENSOR = re.compile(r"(input|weight|inside)[0-9]{1,6}(_sizes|_value)?|t[0-9]{1,6}_[0-9]{1,4}|", re.ASCII)
_NODE = re.compile(r"(node|inside|weight)[0-9]{1,6}", re.ASCII)
_WHAT_IT_IS = "its file"
_ITEM_BYTES = 8


def check_network(content: bytes, most_bytes: int) -> None:
    """Refuse everything that `onnx_network` does not write, and sizes that take more than this memory."""
    try:
        plain = _unpacked(content)
        refuse_too_many_parts(plain, _WHAT_IT_IS)
        file = parse_onnx(plain, _WHAT_IT_IS)
        stated = stated_inputs(file.metadata)
    except (ModelError, DamagedValueError) as error:
        raise UnsuitableLayersError(f"cannot be read: {error}") from None
    _check_model(plain)
    given = {it.name for it in file.inputs}
    if not stated.shapes.keys() | stated.values.keys() <= given:
        raise UnsuitableLayersError("states shapes of inputs that it does not have")
    sizes = [*map(prod, stated.shapes.values()), *_filled_sizes(file.nodes, file.weights)]
    if sum(sizes) * _ITEM_BYTES > most_bytes:
        raise UnsuitableLayersError(
            f"would take {sum(sizes) * _ITEM_BYTES / 2**30:.3g} GiB of memory, more than there is"
        )
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
    texts = (model.producer_name, model.producer_version, model.domain, model.doc_string)
    if any(texts) or model.functions or model.training_info or model.model_version:
        raise UnsuitableLayersError("has texts, functions or other parts that no network needs")
    if [it.key for it in model.metadata_props] != [KEY]:
        raise UnsuitableLayersError(f"has other metadata than {KEY}")
    _refuse_other_spelling(model)
    _check_graph(model.graph, "layers")


def _refuse_other_spelling(model: "ModelProto") -> None:
    """Refuse what would tell suites apart: anything could be written between the numbers of a text."""
    text = model.metadata_props[0].value
    if json.dumps(json.loads(text), separators=(",", ":")) != text:
        raise UnsuitableLayersError("has metadata in another spelling than ours")


def _check_graph(graph: "GraphProto", name: str) -> None:
    if graph.name != name or graph.doc_string or graph.value_info or graph.quantization_annotation:
        raise UnsuitableLayersError("has names or comments in its graph")
    if graph.sparse_initializer or graph.metadata_props:
        raise UnsuitableLayersError("has parts that no network needs")
    if len(graph.node) > _MOST_NODES:
        raise UnsuitableLayersError(f"has more than {_MOST_NODES:,} nodes")
    for value in (*graph.input, *graph.output):
        if not _TENSOR.fullmatch(value.name) or value.doc_string or value.metadata_props:
            raise UnsuitableLayersError(f"has a tensor called {value.name[:40]!r}, or with a comment")
    for array in graph.initializer:
        _check_array(array)
    for node in graph.node:
        _check_node(node)


def _check_array(array: "TensorProto") -> None:
    if is_external(array) or array.external_data:
        raise UnsuitableLayersError("has an array in another file")
    if not _TENSOR.fullmatch(array.name) or array.doc_string or array.metadata_props:
        raise UnsuitableLayersError(f"has an array called {array.name[:40]!r}, or with a comment")
    if dtype_name(array.data_type) == "float32" and prod(array.dims) > 1 and len(set(_floats(array))) > _MOST_NUMBERS:
        raise UnsuitableLayersError("has an array of different numbers: weights do not travel")


# Scales of a resize, sizes of pads and the like.
_MOST_NUMBERS = 64


def _floats(array: "TensorProto") -> Iterator[bytes]:
    raw = array.raw_data
    if raw:
        return (raw[place : place + 4] for place in range(0, len(raw), 4))
    return (repr(number).encode() for number in array.float_data)


def _check_node(node: "NodeProto") -> None:
    names = (*node.input, *node.output)
    if not all(map(_TENSOR.fullmatch, names)) or not _NODE.fullmatch(node.name):
        raise UnsuitableLayersError(f"has a node called {node.name[:40]!r}, or one that reads names of a model")
    if node.doc_string or node.overload:
        raise UnsuitableLayersError(f"has a {node.op_type[:40]} with a comment")
    for attribute in node.attribute:
        if attribute.doc_string or attribute.ref_attr_name:
            raise UnsuitableLayersError(f"has a {node.op_type[:40]} with a comment")
        if attribute.HasField("t") and (is_external(attribute.t) or attribute.t.external_data):
            raise UnsuitableLayersError("has an array in another file")
    for inside in graphs_inside(node):
        _check_graph(inside, "inside")


def _filled_sizes(nodes: "tuple[NodeProto, ...]", weights: "tuple[TensorProto, ...]") -> Iterator[int]:
    """Yield the number of elements of each weight: those that nodes fill, and those in the file."""
    from onnx.numpy_helper import to_array

    arrays = {array.name: array for array in weights}
    yield from (prod(array.dims) for array in weights)
    for node in nodes:
        if node.op_type in ("ConstantOfShape", "Tile") and node.input[-1] in arrays:
            sizes = to_array(arrays[node.input[-1]]).reshape(-1).tolist()
            if not all(isinstance(size, int) and size >= 0 for size in sizes):
                raise UnsuitableLayersError("fills an array of a negative size")
            yield prod(sizes)
