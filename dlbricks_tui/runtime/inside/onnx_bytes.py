"""ONNX models read and written byte by byte: the onnx package may be missing in this interpreter."""

from __future__ import annotations

import gzip
import zlib
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from dlbricks_tui.runtime.inside.backend import RefusalError
from dlbricks_tui.runtime.protocol import ArrayType, Network, Reason

# Operators that look up rows by number: inputs with the numbers, each with the input that has the table.
LOOK_UPS = {"Gather": ((1, 0),), "EmbedLayerNormalization": ((0, 2), (1, 4))}
# Operators whose output holds the same numbers as their first input.
_PASS_ON = ("Identity", "Cast", "Reshape", "Flatten", "Squeeze", "Unsqueeze")

_GZIP_MAGIC = b"\x1f\x8b"

# The wire types of fields, the last three bits of a tag.
_VARINT, _BYTES = 0, 2
_FIXED_BYTES = {1: 8, 5: 4}
# The field numbers of a model, a graph, a node, an attribute, an array and an operator set.
_GRAPH, _OPSETS, _NODE, _ARRAY, _RESULT = 7, 8, 1, 5, 12
_INPUT, _OUTPUT, _NODE_NAME, _OP, _ATTRIBUTE, _DOMAIN = 1, 2, 3, 4, 5, 7
_NAME, _INTEGER = 1, 3
_ARRAY_NAME, _EXTERNAL = 8, 13
_OPSET_DOMAIN = 1


def unpacked(path: str, reason: Reason) -> str | bytes:
    """Return the path of a model file, or the content of one that is gzipped."""
    try:
        with Path(path).open("rb") as file:
            if file.read(len(_GZIP_MAGIC)) != _GZIP_MAGIC:
                return path
            file.seek(0)
            return gzip.GzipFile(fileobj=file).read()
    except (OSError, EOFError, zlib.error) as error:
        raise RefusalError(reason, f"{path} cannot be read: {error}") from error


class Node(NamedTuple):
    """One node of a model."""

    name: str
    op: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    axis: int


class Stored(NamedTuple):
    """The place of a weight in a file beside the model."""

    file: str
    offset: int
    length: int


def rows_counted(model: bytes, weights: Mapping[str, ArrayType]) -> dict[str, int]:
    """Return the tensors that hold row numbers, each with the number of rows of the smallest table."""
    nodes = nodes_of(model)
    sources = {node.outputs[0]: node.inputs[0] for node in nodes if node.op in _PASS_ON and node.inputs}
    counted: dict[str, int] = {}
    for node in nodes:
        for numbers, table in LOOK_UPS.get(node.op, ()):
            found = weights.get(node.inputs[table]) if max(numbers, table) < len(node.inputs) else None
            if found is None or not -len(found.shape) <= node.axis < len(found.shape):
                continue
            name = node.inputs[numbers]
            while name in sources:
                name = sources[name]
            rows = found.shape[node.axis]
            counted[name] = min(rows, counted.get(name, rows))
    return counted


def nodes_of(model: bytes) -> list[Node]:
    """Return the nodes of a model in order."""
    return [_node(node) for graph in _parts(memoryview(model), _GRAPH) for node in _parts(graph, _NODE)]


def with_stored(model: bytes, stored: Mapping[str, Stored], left_out: str) -> bytes:
    """Return a model whose weights lie in a file, without the nodes of one domain, which pass on what they read."""
    passed_on = {node.outputs[0]: node.inputs[0] for node in nodes_of(model) if node.domain == left_out}
    found = []
    for field, value in _fields(memoryview(model)):
        if field == _GRAPH and isinstance(value, memoryview):
            found.append(_message(field, b"".join(_placed(value, stored, passed_on))))
        elif field != _OPSETS or not isinstance(value, memoryview) or _texts(value, _OPSET_DOMAIN) != (left_out,):
            found.append(_field(field, value))
    return b"".join(found)


def _placed(graph: memoryview, stored: Mapping[str, Stored], passed_on: Mapping[str, str]) -> Iterator[bytes]:
    outputs: set[str] = set()
    for field, value in _fields(graph):
        if field == _NODE and isinstance(value, memoryview):
            if not passed_on.keys() & set(_texts(value, _OUTPUT)):
                parts = [
                    _text(part, source_of(bytes(it).decode(), passed_on))
                    if part == _INPUT and isinstance(it, memoryview)
                    else _field(part, it)
                    for part, it in _fields(value)
                ]
                yield _message(field, b"".join(parts))
        elif field == _ARRAY and isinstance(value, memoryview):
            (name,) = _texts(value, _ARRAY_NAME)
            place, parts = stored.get(name), [bytes(value)]
            if place is not None:
                parts = [_field(part, it) for part, it in _fields(value) if part != _EXTERNAL]
                facts = {"location": place.file, "offset": str(place.offset), "length": str(place.length)}
                parts += [_message(_EXTERNAL, _text(1, key) + _text(2, fact)) for key, fact in facts.items()]
            yield _message(field, b"".join(parts))
        elif field == _RESULT and isinstance(value, memoryview):
            name = source_of("".join(_texts(value, _NAME)), passed_on)
            if name not in outputs:
                yield _message(field, _text(_NAME, name))
            outputs.add(name)
        else:
            yield _field(field, value)


def source_of(name: str, passed_on: Mapping[str, str]) -> str:
    """Return the tensor that reaches a reader of `name` through nodes that pass it on."""
    while name in passed_on:
        name = passed_on[name]
    return name


def _field(field: int, value: int | memoryview) -> bytes:
    return _message(field, bytes(value)) if isinstance(value, memoryview) else _number(field, value)


def _node(content: memoryview) -> Node:
    axis = 0
    for attribute in _parts(content, _ATTRIBUTE):
        if _texts(attribute, _NAME) == ("axis",):
            axis = next((value for field, value in _fields(attribute) if field == _INTEGER and type(value) is int), 0)
    name, op, domain = ("".join(_texts(content, field)) for field in (_NODE_NAME, _OP, _DOMAIN))
    return Node(name, op, domain, _texts(content, _INPUT), _texts(content, _OUTPUT), axis)


def _texts(content: memoryview, wanted: int) -> tuple[str, ...]:
    return tuple([bytes(part).decode(errors="replace") for part in _parts(content, wanted)])


def _parts(content: memoryview, wanted: int) -> Iterator[memoryview]:
    """Return the texts and messages in a field."""
    for field, value in _fields(content):
        if field == wanted and isinstance(value, memoryview):
            yield value


def _fields(content: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    place = 0
    while place < len(content):
        tag, place = _varint(content, place)
        kind = tag & 7
        if kind == _VARINT:
            value, place = _varint(content, place)
            yield tag >> 3, value - (1 << 64) if value >> 63 else value
        elif kind == _BYTES:
            length, place = _varint(content, place)
            yield tag >> 3, content[place : place + length]
            place += length
        else:
            # Other wire types do not occur in ONNX.
            place += _FIXED_BYTES[kind]


def _varint(content: memoryview, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[place]
        place += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, place


_IR_VERSION, _OPSET = 8, 13
# Data types by ONNX's numbers.
_FLOAT, _INT64, _STRING = 1, 7, 8
# The field number of an attribute's type, and the numbers of two types.
_KIND, _INT_KIND, _TENSOR_KIND = 20, 2, 4
_TEXT, _NUMBER = 2, 0


def one_operator(op: str, array: ArrayType) -> Network:
    """Return a network of one operator on an array of floats."""
    sizes = b"".join(_message(1, _number(1, size)) for size in array.shape)
    model = _model(_text(4, op), _number(1, _FLOAT) + _message(2, sizes))
    return Network(b64encode(model).decode(), {"data": array}, {})


def as_texts() -> bytes:
    """Return a model that turns an array `data` of 64-bit integers into texts."""
    to = _message(5, _text(1, "to") + _number(3, _STRING) + _number(_KIND, _INT_KIND))
    return _model(_text(4, "Cast") + to, _number(1, _INT64))


def text_array(texts: Sequence[str], shape: Sequence[int]) -> bytes:
    """Return a model without inputs that puts out these texts."""
    strings = b"".join(_text(6, it) for it in texts)
    tensor = b"".join(_number(1, size) for size in shape) + _number(2, _STRING) + strings
    value = _message(5, _text(1, "value") + _message(5, tensor) + _number(_KIND, _TENSOR_KIND))
    node = _message(1, _text(2, "result") + _text(4, "Constant") + value)
    graph = node + _text(2, "texts") + _message(12, _text(1, "result"))
    return _number(1, _IR_VERSION) + _message(7, graph) + _message(8, _number(2, _OPSET))


def _model(op: bytes, tensor: bytes) -> bytes:
    """Return a model of one operator with the type of its input."""
    node = _message(1, _text(1, "data") + _text(2, "result") + op)
    data = _message(11, _text(1, "data") + _message(2, _message(1, tensor)))
    graph = node + _text(2, "one operator") + data + _message(12, _text(1, "result"))
    return _number(1, _IR_VERSION) + _message(7, graph) + _message(8, _number(2, _OPSET))


def _message(field: int, content: bytes) -> bytes:
    return bytes([field << 3 | _TEXT]) + _encoded(len(content)) + content


def _text(field: int, text: str) -> bytes:
    return _message(field, text.encode())


def _number(field: int, value: int) -> bytes:
    return _encoded(field << 3 | _NUMBER) + _encoded(value)


def _encoded(value: int) -> bytes:
    groups = []
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*groups, value])
