"""The smallest ONNX models, written byte by byte, as the onnx package may be missing in this interpreter."""

from __future__ import annotations

from base64 import b64encode

from dlbricks_tui.runtime.protocol import ArrayType, Network

_IR_VERSION, _OPSET, _FLOAT = 8, 13, 1
_TEXT, _NUMBER = 2, 0


def one_operator(op: str, array: ArrayType) -> Network:
    """Return a network of one operator on an array of floats."""
    sizes = b"".join(_message(1, _number(1, size)) for size in array.shape)
    node = _message(1, _text(1, "data") + _text(2, "result") + _text(4, op))
    tensor = _message(2, _message(1, _number(1, _FLOAT) + _message(2, sizes)))
    graph = node + _text(2, "one operator") + _message(11, _text(1, "data") + tensor) + _message(12, _text(1, "result"))
    model = _number(1, _IR_VERSION) + _message(7, graph) + _message(8, _number(2, _OPSET))
    return Network(b64encode(model).decode(), {"data": array}, {})


def _message(field: int, content: bytes) -> bytes:
    return bytes([field << 3 | _TEXT]) + _varint(len(content)) + content


def _text(field: int, text: str) -> bytes:
    return _message(field, text.encode())


def _number(field: int, value: int) -> bytes:
    return bytes([field << 3 | _NUMBER]) + _varint(value)


def _varint(value: int) -> bytes:
    groups = []
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*groups, value])
