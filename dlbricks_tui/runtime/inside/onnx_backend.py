"""The common part of frameworks that run ONNX models: tiny networks, synthetic inputs, and runs that are recorded.

Models are read and written byte by byte: the onnx package may be missing in this interpreter. Values are also of the
data types that numpy lacks.
"""

from __future__ import annotations

import gzip
import zlib
from abc import abstractmethod
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, reduce
from operator import mul
from pathlib import Path
from typing import Any, NamedTuple

import numpy

from dlbricks_tui.runtime.inside.backend import ONE, SWEPT, Backend, BoundNetwork, RefusalError, rows_of
from dlbricks_tui.runtime.inside.values import data_values, given_values, repeated, row_numbers, sampled_values
from dlbricks_tui.runtime.protocol import ArrayType, Held, Network, Reason, Record, Recorded

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
_ARRAY_NAME, _EXTERNAL, _IS_EXTERNAL = 8, 13, 14
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
            name = source_of(node.inputs[numbers], sources)
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
                # An empty array has no place: OpenVINO takes a length of 0 for all that follows.
                facts = {"location": place.file, "offset": str(place.offset), "length": str(place.length)}
                moved = (_EXTERNAL,) if place.length else (_EXTERNAL, _IS_EXTERNAL)
                parts = [_field(part, it) for part, it in _fields(value) if part not in moved]
                for key, fact in facts.items() if place.length else ():
                    parts.append(_message(_EXTERNAL, _text(1, key) + _text(2, fact)))
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
_FLOAT, _STRING = 1, 8
# The field number of an attribute's type, and the number of a type.
_KIND, _TENSOR_KIND = 20, 4
_TEXT, _NUMBER = 2, 0


def one_operator(op: str, array: ArrayType) -> Network:
    """Return a network of one operator on an array of floats."""
    sizes = b"".join(_message(1, _number(1, size)) for size in array.shape)
    tensor = _number(1, _FLOAT) + _message(2, sizes)
    node = _message(1, _text(1, "data") + _text(2, "result") + _text(4, op))
    data = _message(11, _text(1, "data") + _message(2, _message(1, tensor)))
    model = _model(node + _text(2, "one operator") + data)
    return Network(b64encode(model).decode(), {"data": array}, {})


def text_array(texts: Sequence[str], shape: Sequence[int]) -> bytes:
    """Return a model without inputs that puts out these texts."""
    strings = b"".join(_text(6, it) for it in texts)
    tensor = b"".join(_number(1, size) for size in shape) + _number(2, _STRING) + strings
    value = _message(5, _text(1, "value") + _message(5, tensor) + _number(_KIND, _TENSOR_KIND))
    return _model(_message(1, _text(2, "result") + _text(4, "Constant") + value) + _text(2, "texts"))


def _model(graph: bytes) -> bytes:
    """Return a model with this graph, which puts out its result."""
    graph += _message(12, _text(1, "result"))
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


# Makes a numpy array of this shape and type.
Filling = Callable[[tuple[int, ...], str], Any]

TEXT = "object"
FLOATS = ("float16", "float32", "float64")
_NUMBERS = ("int64", "int32", "bool", "float32", "float64")
# More numbers than a shape or the arguments of an operator have.
_FEW_NUMBERS = 64


class OnnxOnly(NamedTuple):
    """A data type that numpy lacks: ONNX's number for it, how an array of it is made, and its elements per byte."""

    number: int
    packed: Callable[[tuple[int, ...], Filling], Any]
    per_byte: int = 1


def _upper_halves(shape: tuple[int, ...], filling: Filling) -> Any:
    """Return the upper halves of 32-bit floats, which are bfloat16."""
    halves = numpy.empty(shape, numpy.uint16)
    numpy.right_shift(filling(shape, "float32").view(numpy.uint32), 16, out=halves, casting="unsafe")
    return halves


def _bytes_of(byte: int) -> Callable[[tuple[int, ...], Filling], Any]:
    """Return a function that fills an array with one byte."""
    return lambda shape, filling: repeated(numpy.array([byte], numpy.uint8), shape)


# The number one in each type of eight bits; in types of four bits, twice in each byte.
ONNX_ONLY: Mapping[str, OnnxOnly] = {
    "bfloat16": OnnxOnly(16, _upper_halves),
    "float8e4m3fn": OnnxOnly(17, _bytes_of(0x38)),
    "float8e4m3fnuz": OnnxOnly(18, _bytes_of(0x40)),
    "float8e5m2": OnnxOnly(19, _bytes_of(0x3C)),
    "float8e5m2fnuz": OnnxOnly(20, _bytes_of(0x40)),
    "uint4": OnnxOnly(21, _bytes_of(0x11), 2),
    "int4": OnnxOnly(22, _bytes_of(0x11), 2),
}


def numpy_values(found: ArrayType, filling: Filling) -> Any:
    """Return an array of numpy. For a data type that numpy lacks, it has at least the bytes of all elements."""
    shape, dtype = found
    if dtype in ONNX_ONLY:
        return ONNX_ONLY[dtype].packed(shape, filling)
    try:
        known = numpy.dtype(dtype)
    except TypeError as error:
        raise RefusalError(Reason.UNBUILDABLE, f"there are no synthetic values of {dtype}") from error
    return filling(shape, known.name)


def fillings(network: Network, made_up: Filling | None = None) -> Iterator[tuple[ArrayType, Filling]]:
    """Return the type and the filling of each input of a network; `made_up` makes those without given numbers."""
    rows = rows_counted(b64decode(network.symbol), network.weights) if network.weights and not made_up else {}
    for name, found in network.inputs.items():
        filling = made_up or (sampled_values if network.file else data_values)
        if name in network.values:
            filling = partial(given_values, numbers=network.values[name])
        elif name in rows:
            filling = partial(row_numbers, rows=rows[name])
        yield found, filling


def held(found: ArrayType, numbers: Callable[[], Any]) -> Held:
    """Return the type of an output, and its numbers if they are few."""
    kept: tuple[float, ...] = ()
    if found.dtype in _NUMBERS and reduce(mul, found.shape, 1) <= _FEW_NUMBERS:
        array = numbers()
        # Adding 0 turns truth values into numbers.
        kept = tuple((array + 0).ravel().tolist()) if numpy.isfinite(array).all() else ()
    return Held(found.shape, found.dtype, kept)


class OnnxNetwork(BoundNetwork):
    """An ONNX model ready to run, as soon as it is fed."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.inputs: Sequence[Any] = ()
        self.outputs: Sequence[Any] = ()
        # The arrays of the outputs that are written in place.
        self.in_place: Mapping[int, Any] = {}

    def feed(self, arrays: Sequence[Any]) -> None:
        """Let the model read these arrays as its inputs, in order."""
        if len(arrays) != len(self.network.inputs):
            raise RefusalError(Reason.MALFORMED, f"{len(self.network.inputs)} inputs are fed {len(arrays)} arrays")
        self.inputs = list(arrays)
        places = {name: place for place, name in enumerate(self.network.inputs)}
        self.in_place = {output: self.inputs[places[name]] for name, output in self.network.in_place.items()}
        self._bind_arrays()

    def refuse_infinite_values(self) -> None:
        for place, found in enumerate(self._types()):
            # numpy cannot check bfloat16.
            if found is not None and found.dtype in FLOATS and not numpy.isfinite(self._numbers(place)).all():
                raise RefusalError(Reason.NOT_FINITE, f"output {place} holds values that are not finite")

    def held(self) -> tuple[Held | None, ...]:
        """Return the outputs of a run; None for one that is no tensor."""
        return tuple(
            None if found is None else held(found, partial(self._numbers, place))
            for place, found in enumerate(self._types())
        )

    @abstractmethod
    def _bind_arrays(self) -> None:
        """Let the framework read `inputs`, and write some outputs in place."""

    @abstractmethod
    def _types(self) -> Sequence[ArrayType | None]:
        """Return the types of the outputs after a run; None for one that is no tensor."""

    @abstractmethod
    def _numbers(self, place: int) -> Any:
        """Return an output as an array of numpy."""


class OnnxBackend(Backend):
    """A framework whose graphs are ONNX models in base64, without the values of weights."""

    nothing = one_operator("Identity", ONE)
    sweep = one_operator("Relu", SWEPT)

    def passing_over(self, size_bytes: int) -> Network:
        """Return a relu of an array of half the size."""
        return one_operator("Relu", rows_of(size_bytes // 2))

    def record(self, request: Record) -> Recorded:
        """Return the types of a network's outputs in one run, and the numbers of small ones."""
        bound = self.bind_to_record(request.network)
        refusals = []
        for made_up in (None, partial(given_values, numbers=(0,)), partial(given_values, numbers=(1,))):
            bound.feed(self.filled(request.network, made_up))
            try:
                bound.run()
            except RefusalError as refusal:
                refusals.append(refusal)
            else:
                return Recorded(bound.held())
        raise refusals[0]

    def filled(self, network: Network, made_up: Filling | None = None) -> list[Any]:
        """Return arrays for the inputs of a network; `made_up` makes those without given numbers."""
        return [self.array(found, filling) for found, filling in fillings(network, made_up)]

    @abstractmethod
    def array(self, found: ArrayType, filling: Filling) -> Any:
        """Return an array of the framework; `filling` makes its numbers."""

    @abstractmethod
    def bind_to_record(self, network: Network) -> OnnxNetwork:
        """Prepare a network for a run whose outputs are recorded."""
