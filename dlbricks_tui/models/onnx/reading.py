"""Reads the bytes of an ONNX file. Large arrays stay on disk, and oversized files are refused.

A large array becomes external data, as ONNX defines it, in the model file itself.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
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
    """Raise UnreadableModelError for a file with so many names and numbers that they would fill the memory.

    They are counted before protobuf creates objects for them.
    """
    if len(content) <= 2 * _MOST_PARTS:
        return
    from onnx import ModelProto

    count = 0
    # The parts of messages that are still to be counted, and how deep they may nest.
    waiting = [(0, len(content), ModelProto.DESCRIPTOR, _DEEPEST)]
    try:
        while waiting:
            begin, end, kind, deepest = waiting.pop()
            if not deepest:
                raise _MalformedError
            messages, numbers = _fields_of(kind)
            while begin < end:
                field = _field(content, begin, end)
                count += 1
                if field.number in numbers and field.kind == _BYTES:
                    # Packed numbers take a byte each in the file, and eight in memory.
                    count += (field.end - field.value) // 8
                if count > _MOST_PARTS:
                    raise _too_many_parts(where)
                if field.number in messages and field.kind == _BYTES:
                    waiting.append((field.value, field.end, messages[field.number], deepest - 1))
                begin = field.end
    except _MalformedError:
        raise no_onnx_file(where) from None


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


# Returns a message in parts.
_Writer = Callable[[_Field], Iterator[bytes]]


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
            fields = self._fields(0, self._size)
            return b"".join([self._message(it, {_GRAPH: partial(self._graph, _DEEPEST_GRAPHS)}) for it in fields])
        except _MalformedError:
            raise no_onnx_file(self._where) from None

    def _graph(self, deepest: int, graph: _Field) -> Iterator[bytes]:
        written: dict[int, _Writer] = {_INITIALIZER: self._array}
        if deepest:
            written[_NODE] = partial(self._node, deepest)
        return (self._message(field, written) for field in self._fields(graph.value, graph.end))

    def _node(self, deepest: int, node: _Field) -> Iterator[bytes]:
        fields = self._fields(node.value, node.end)
        is_constant = any(self._read(it.value, it.end) == b"Constant" for it in fields if it.number == _OP_TYPE)
        inside: dict[int, _Writer] = {_INNER_GRAPH: partial(self._graph, deepest - 1)}
        if is_constant:
            inside[_TENSOR] = self._array

        def attribute(found: _Field) -> Iterator[bytes]:
            return (self._message(field, inside) for field in self._fields(found.value, found.end))

        return (self._message(field, {_ATTRIBUTE: attribute}) for field in self._fields(node.value, node.end))

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

    def _message(self, field: _Field, written: "Mapping[int, _Writer]") -> bytes:
        """Return a field: written anew if it is one of these messages and may hold a large array, else as it is."""
        if field.number in written and field.kind == _BYTES and field.end - field.value > _LARGE_ARRAY:
            return _text(field.number, b"".join(written[field.number](field)))
        return self._copy(field)

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


def _too_many_parts(where: str) -> UnreadableModelError:
    return UnreadableModelError(f"{where} holds more than {_MOST_PARTS:,} names and numbers: not an ONNX model")


@cache
def _fields_of(kind: "Descriptor") -> "tuple[dict[int, Descriptor], frozenset[int]]":
    """Return the messages in a kind of message, by the numbers of their fields, and the fields of whole numbers."""
    fields, whole = kind.fields_by_number, (1, 3, 4, 5, 13, 14, 17, 18)
    messages = {number: it.message_type for number, it in fields.items() if it.message_type is not None}
    return messages, frozenset(number for number, it in fields.items() if it.type in whole)


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
