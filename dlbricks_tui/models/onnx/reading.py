"""Reads the bytes of an ONNX file. Large arrays stay on disk, and oversized files are refused.

A large array becomes external data, as ONNX defines it, in the model file itself.
"""

import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from dlbricks_tui.models.content import GZIP_MAGIC, open_model_file, read_content
from dlbricks_tui.models.errors import UnreadableModelError

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

# The limit of protobuf.
_MOST_IN_ALL = 2**31 - 1
# Names, operators and small arrays of a network of 100,000 layers take half of it.
_MOST_BYTES = 64 * 2**20
# Messages, names and numbers. Each takes up to a hundred times the memory of its bytes.
_MOST_PARTS = 2_000_000
_DEEPEST = 100
# Graphs inside of graphs whose large arrays stay on disk, too.
_DEEPEST_GRAPHS = 8
# Weights of 8 bits, of which a quantised model may have thousands, take a quarter of those of 32 bits.
_LARGE_ARRAY = 2**18
# Smaller files are read as a whole.
_SMALL_FILE = 16 * 2**20

# The wire types of fields, the last three bits of a tag.
_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
# Field numbers in ModelProto, GraphProto, NodeProto, AttributeProto and TensorProto.
_GRAPH, _NODE, _INITIALIZER, _ATTRIBUTE, _TENSOR, _INNER_GRAPH = 7, 1, 5, 5, 5, 6
_OP_TYPE = 4
# Fields that hold the elements of an array as they are.
_FLOAT_DATA, _RAW_DATA, _DOUBLE_DATA = 4, 9, 10
_EXTERNAL_DATA, _DATA_LOCATION, _EXTERNAL = 13, 14, 1


def read_onnx(path: Path, where: str) -> bytes:
    """Return the content of an ONNX file without its large arrays; `where` names it in messages."""
    with open_model_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        packed = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
        if size > _SMALL_FILE and not packed:
            if size > _MOST_IN_ALL:
                raise UnreadableModelError(f"{where} holds more than {_MOST_IN_ALL // 2**20} MiB: not an ONNX file")
            content = _OnDisk(file, size, path.name, where).content()
        else:
            content = read_content(path, _MOST_BYTES, "an ONNX file")
    return content


def refuse_too_many_parts(content: bytes, where: str) -> None:
    """Raise UnreadableModelError for a file with so many names and numbers that they would fill the memory."""
    if len(content) > 2 * _MOST_PARTS:
        _Parts(content, where).refuse_too_many()


def no_onnx_file(where: str) -> UnreadableModelError:
    """Return the error for bytes that are not a protobuf message."""
    return UnreadableModelError(f"{where} is not an ONNX file, or is damaged")


class _Field(NamedTuple):
    """A field of a message: its begin, the begin of its value, and its end."""

    number: int
    kind: int
    begin: int
    value: int
    end: int


class _MalformedError(Exception):
    """The bytes are not a protobuf message."""


class _OnDisk:
    """A large file that is read without its arrays."""

    def __init__(self, file: IO[bytes], size: int, name: str, where: str) -> None:
        self._file = file
        self._size = size
        self._name = name
        self._where = where
        self._block, self._block_begin = b"", 0
        self._parts = self._bytes = 0

    def content(self) -> bytes:
        """Return the file with its large arrays as external data."""
        try:
            return b"".join(self._model())
        except _MalformedError:
            raise no_onnx_file(self._where) from None

    def _model(self) -> Iterator[bytes]:
        for field in self._fields(0, self._size):
            yield self._message(field, self._graph(field)) if self._is_large(field, _GRAPH) else self._copy(field)

    def _graph(self, graph: _Field, deepest: int = _DEEPEST_GRAPHS) -> Iterator[bytes]:
        for field in self._fields(graph.value, graph.end):
            if self._is_large(field, _INITIALIZER):
                yield self._message(field, self._array(field))
            elif self._is_large(field, _NODE) and deepest:
                yield self._message(field, self._node(field, deepest))
            else:
                yield self._copy(field)

    def _node(self, node: _Field, deepest: int) -> Iterator[bytes]:
        is_constant = self._is_constant(node)
        for field in self._fields(node.value, node.end):
            if self._is_large(field, _ATTRIBUTE):
                yield self._message(field, self._attribute(field, is_constant, deepest))
            else:
                yield self._copy(field)

    def _is_constant(self, node: _Field) -> bool:
        fields = self._fields(node.value, node.end)
        return any(self._read(it.value, it.end) == b"Constant" for it in fields if it.number == _OP_TYPE)

    def _attribute(self, attribute: _Field, is_of_constant: bool, deepest: int) -> Iterator[bytes]:
        for field in self._fields(attribute.value, attribute.end):
            if is_of_constant and self._is_large(field, _TENSOR):
                yield self._message(field, self._array(field))
            elif self._is_large(field, _INNER_GRAPH):
                yield self._message(field, self._graph(field, deepest - 1))
            else:
                yield self._copy(field)

    def _array(self, array: _Field) -> Iterator[bytes]:
        for field in self._fields(array.value, array.end):
            is_array = field.number in (_FLOAT_DATA, _RAW_DATA, _DOUBLE_DATA)
            if is_array and field.kind == _BYTES and field.end - field.value > _LARGE_ARRAY:
                place = {"location": self._name, "offset": field.value, "length": field.end - field.value}
                for key, value in place.items():
                    yield _text(_EXTERNAL_DATA, _text(1, key.encode()) + _text(2, str(value).encode()))
                yield bytes([_DATA_LOCATION << 3 | _VARINT, _EXTERNAL])
            else:
                yield self._copy(field)

    def _is_large(self, field: _Field, number: int) -> bool:
        """Return true if a field is that message, and large enough to hold a large array."""
        return field.number == number and field.kind == _BYTES and field.end - field.value > _LARGE_ARRAY

    def _message(self, field: _Field, parts: Iterator[bytes]) -> bytes:
        return _text(field.number, b"".join(parts))

    def _copy(self, field: _Field) -> bytes:
        self._bytes += field.end - field.begin
        if self._bytes > _MOST_BYTES:
            raise UnreadableModelError(f"{self._where} holds more than {_MOST_BYTES // 2**20} MiB beside its arrays")
        return self._read(field.begin, field.end)

    def _fields(self, begin: int, end: int) -> Iterator[_Field]:
        while begin < end:
            self._parts += 1
            if self._parts > _MOST_PARTS:
                raise _too_many_parts(self._where)
            head = self._read(begin, min(begin + 20, end))
            field = _field(head, 0, end - begin)
            yield _Field(field.number, field.kind, begin, begin + field.value, begin + field.end)
            begin += field.end

    def _read(self, begin: int, end: int) -> bytes:
        start = begin - self._block_begin
        if not 0 <= start <= end - self._block_begin <= len(self._block):
            self._file.seek(begin)
            self._block, self._block_begin = self._file.read(max(end - begin, 2**16)), begin
            start = 0
        found = self._block[start : start + end - begin]
        if len(found) < end - begin:
            raise _MalformedError
        return found


class _Parts:
    """The messages, names and numbers of a file, counted before protobuf creates objects for them."""

    def __init__(self, content: bytes, where: str) -> None:
        self._content = content
        self._where = where
        self._count = 0

    def refuse_too_many(self) -> None:
        """Raise UnreadableModelError if there are too many, or the bytes are not a protobuf message."""
        from onnx import ModelProto

        try:
            self._take(0, len(self._content), ModelProto.DESCRIPTOR, _DEEPEST)
        except _MalformedError:
            raise no_onnx_file(self._where) from None

    def _take(self, begin: int, end: int, kind: "Descriptor", deepest: int) -> None:
        if not deepest:
            raise _MalformedError
        messages, numbers = _messages_in(kind), _numbers_in(kind)
        while begin < end:
            field = _field(self._content, begin, end)
            self._count += 1
            if field.number in numbers and field.kind == _BYTES:
                # Packed numbers take a byte each in the file, and eight in memory.
                self._count += (field.end - field.value) // 8
            if self._count > _MOST_PARTS:
                raise _too_many_parts(self._where)
            inner = messages.get(field.number)
            if inner is not None and field.kind == _BYTES:
                self._take(field.value, field.end, inner, deepest - 1)
            begin = field.end


def _too_many_parts(where: str) -> UnreadableModelError:
    return UnreadableModelError(f"{where} holds more than {_MOST_PARTS:,} names and numbers: not an ONNX model")


@cache
def _messages_in(kind: "Descriptor") -> dict[int, "Descriptor"]:
    return {number: it.message_type for number, it in kind.fields_by_number.items() if it.message_type is not None}


@cache
def _numbers_in(kind: "Descriptor") -> frozenset[int]:
    whole = (1, 3, 4, 5, 13, 14, 17, 18)
    return frozenset(number for number, it in kind.fields_by_number.items() if it.type in whole)


def _field(content: bytes, begin: int, end: int) -> _Field:
    tag, value = _varint(content, begin)
    kind = tag & 7
    if kind == _BYTES:
        length, value = _varint(content, value)
        last = value + length
    elif kind == _VARINT:
        _, last = _varint(content, value)
    elif kind in (_EIGHT_BYTES, _FOUR_BYTES):
        last = value + (8 if kind == _EIGHT_BYTES else 4)
    else:
        raise _MalformedError
    if not tag >> 3 or last > end:
        raise _MalformedError
    return _Field(tag >> 3, kind, begin, value, last)


def _varint(content: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if place >= len(content) or shift > 63:
            raise _MalformedError
        byte = content[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7


def _text(number: int, content: bytes) -> bytes:
    length, groups = len(content), []
    while length > 0x7F:
        groups.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes([number << 3 | _BYTES, *groups, length]) + content
