"""Finds the inputs of an ONNX model that hold row numbers. It reads the model's bytes, as the onnx package may be
missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from dlbricks_tui.runtime.protocol import ArrayType

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
