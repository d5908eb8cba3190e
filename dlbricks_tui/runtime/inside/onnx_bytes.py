"""ONNX models read and written byte by byte: the onnx package may be missing in this interpreter."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from dlbricks_tui.runtime.protocol import ArrayType, Network

# Operators that look up rows by number: inputs with the numbers, each with the input that has the table.
LOOK_UPS = {"Gather": ((1, 0),), "EmbedLayerNormalization": ((0, 2), (1, 4))}
# Operators whose output holds the same numbers as their first input.
_PASS_ON = ("Identity", "Cast", "Reshape", "Flatten", "Squeeze", "Unsqueeze")

# The wire types of fields, the last three bits of a tag.
_VARINT, _BYTES = 0, 2
_FIXED_BYTES = {1: 8, 5: 4}
# The field numbers of a model, a graph, a node and an attribute.
_GRAPH, _NODE = 7, 1
_INPUT, _OUTPUT, _OP, _ATTRIBUTE = 1, 2, 4, 5
_NAME, _INTEGER = 1, 3


class _Node(NamedTuple):
    op: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    axis: int


def rows_counted(model: bytes, weights: Mapping[str, ArrayType]) -> dict[str, int]:
    """Return the tensors that hold row numbers, each with the number of rows of the smallest table."""
    nodes = [_node(node) for graph in _parts(memoryview(model), _GRAPH) for node in _parts(graph, _NODE)]
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


def _node(content: memoryview) -> _Node:
    axis = 0
    for attribute in _parts(content, _ATTRIBUTE):
        if _texts(attribute, _NAME) == ("axis",):
            axis = next((value for field, value in _fields(attribute) if field == _INTEGER and type(value) is int), 0)
    return _Node("".join(_texts(content, _OP)), _texts(content, _INPUT), _texts(content, _OUTPUT), axis)


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
# The field numbers of an attribute's type, and the number of the type.
_KIND, _INT_KIND = 20, 2
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
