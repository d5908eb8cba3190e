"""Reads ONNX files, checks them, and orders their nodes.

Oversized files are refused. Large arrays stay on disk: they become external data, as ONNX defines it, in the model file
itself.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from dlbricks_tui.models.content import GZIP_MAGIC, LONGEST_NAME, open_model_file, read_content, refuse_no_model
from dlbricks_tui.models.errors import FlawError, UnreadableModelError
from dlbricks_tui.models.graph import needed_for, topological_order

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

# The limit of protobuf.
_MOST_IN_ALL = 2**31 - 1
# Names, operators and small arrays of a network of 100,000 layers take half of it.
_MOST_BYTES = 64 * 2**20
# Messages and names, each of which takes up to a hundred times the memory of its bytes. Numbers take an eighth of it.
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
# Lists of numbers and texts in AttributeProto.
_LISTS = (7, 8, 9)
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
                if field.kind == _BYTES:
                    # Packed numbers take a byte each in the file, and eight in memory.
                    count += 8 + (field.end - field.value if field.number in numbers else 0)
                else:
                    # A number, of which a forest of decision trees has millions.
                    count += 1
                if count > 8 * _MOST_PARTS:
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
        return (self._message(it, written) for it in self._fields(graph.value, graph.end))

    def _node(self, deepest: int, node: _Field) -> Iterator[bytes]:
        fields = self._fields(node.value, node.end)
        is_constant = any(self._read(it.value, it.end) == b"Constant" for it in fields if it.number == _OP_TYPE)
        inside: dict[int, _Writer] = {_INNER_GRAPH: partial(self._graph, deepest - 1)}
        if is_constant:
            inside[_TENSOR] = self._array

        def attribute(found: _Field) -> Iterator[bytes]:
            for it in self._fields(found.value, found.end):
                if it.number in _LISTS:
                    # Of a forest of decision trees, millions of numbers. No array is behind them.
                    yield self._copy(it._replace(end=found.end))
                    return
                yield self._message(it, inside)

        return (self._message(it, {_ATTRIBUTE: attribute}) for it in self._fields(node.value, node.end))

    def _array(self, array: _Field) -> Iterator[bytes]:
        for it in self._fields(array.value, array.end):
            is_array = it.number in (_FLOAT_DATA, _RAW_DATA, _DOUBLE_DATA)
            if is_array and it.kind == _BYTES and it.end - it.value > _LARGE_ARRAY:
                place = {"location": self._name, "offset": it.value, "length": it.end - it.value}
                for key, value in place.items():
                    yield _text(_EXTERNAL_DATA, _text(1, key.encode()) + _text(2, str(value).encode()))
                yield bytes([_DATA_LOCATION << 3 | _VARINT, _EXTERNAL])
            else:
                yield self._copy(it)

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
    return UnreadableModelError(f"{where} holds more than {_MOST_PARTS:,} names, or eight times as many numbers")


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


# Before version 3 files did not declare their operator sets, and before version 4 every weight was an input as well.
_OLDEST_WITH_OPSETS, _OLDEST_WITH_CONSTANTS = 3, 4
# Subgraphs within subgraphs: real files have three levels.
DEEPEST_NESTING = 8
# All nodes after functions are expanded. Functions that call functions multiply them.
_MOST_NODES = 200_000
_DEEPEST_CALLS = 64
NAMES_OF_ONNX = ("", "ai.onnx")


@dataclass(frozen=True, slots=True)
class OnnxFile:
    """The main graph of a file: the nodes that some output needs, in topological order."""

    nodes: tuple["NodeProto", ...]
    inputs: tuple["ValueInfoProto", ...]
    weights: tuple["TensorProto", ...]
    outputs: tuple[str, ...]
    # The version of each operator set by domain; ONNX's own domain is "".
    opsets: Mapping[str, int]
    # Texts by name.
    metadata: Mapping[str, str] = field(default_factory=dict)
    # The functions, by domain and name, that stay nodes: onnx cannot convert them to the versions of these operators.
    functions: frozenset[tuple[str, str]] = frozenset()
    # The weights that are inputs as well: a caller may replace them, so runtimes do not prepare them for their kernels.
    replaceable: frozenset[str] = frozenset()


def parse_onnx(content: bytes, where: str) -> OnnxFile:
    """Return the graph of an ONNX file; `where` names it in messages."""
    model = _parsed(content, where)
    try:
        opsets = _opsets(model)
        if model.functions:
            model = _without_functions(model)
        metadata = {it.key: it.value for it in model.metadata_props}
        found = replace(_graph(model.graph, opsets), metadata=metadata, functions=_functions_left(model))
    except FlawError as flaw:
        raise UnreadableModelError(f"{where}: {flaw}") from None
    if model.ir_version < _OLDEST_WITH_CONSTANTS:
        return found
    inputs = {it.name for it in model.graph.input}
    return replace(found, replaceable=frozenset(it.name for it in found.weights if it.name in inputs))


def reads(node: "NodeProto") -> tuple[str, ...]:
    """Return the inputs of a node, then the outer tensors that its subgraphs read, each once."""
    return (*node.input, *outer_tensors(node))


def outer_tensors(node: "NodeProto") -> tuple[str, ...]:
    """Return the outer tensors that the subgraphs of a node read, each once."""
    found: dict[str, None] = {}
    for graph in graphs_inside(node):
        found.update(dict.fromkeys(_read_from_outside(graph)))
    return tuple(found)


def graphs_inside(node: "NodeProto") -> Iterator["GraphProto"]:
    """Return the direct subgraphs of a node."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def nested_graphs(nodes: Iterable["NodeProto"]) -> Iterator["GraphProto"]:
    """Return all subgraphs of nodes, also those inside of others."""
    for node in nodes:
        for graph in graphs_inside(node):
            yield graph
            yield from nested_graphs(graph.node)


def with_subgraphs(file: OnnxFile) -> "tuple[list[TensorProto], list[NodeProto]]":
    """Return the weights and the nodes of a file and of all graphs inside of its nodes."""
    graphs = list(nested_graphs(file.nodes))
    weights = [*file.weights, *(weight for graph in graphs for weight in graph.initializer)]
    return weights, [*file.nodes, *(node for graph in graphs for node in graph.node)]


def _parsed(content: bytes, where: str) -> "ModelProto":
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError as error:
        raise UnreadableModelError(f"{where}: reading it needs the onnx package: pip install onnx ({error})") from None
    refuse_no_model(content, where)
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except DecodeError:
        raise no_onnx_file(where) from None
    newest = int(onnx.IR_VERSION)
    if not 1 <= model.ir_version <= newest:
        said = f"version {model.ir_version}" if model.ir_version else "no version"
        raise UnreadableModelError(
            f"{where} declares {said} of the ONNX format; onnx {onnx.__version__} reads 1 to {newest}"
        )
    return model


def _opsets(model: "ModelProto") -> dict[str, int]:
    from onnx.defs import onnx_opset_version

    # A function may use operators of a domain that the model itself does not.
    imports = (*(it for function in model.functions for it in function.opset_import), *model.opset_import)
    opsets = {"" if it.domain in NAMES_OF_ONNX else it.domain: it.version for it in imports}
    if model.ir_version < _OLDEST_WITH_OPSETS:
        opsets.setdefault("", 1)
    newest = onnx_opset_version()
    if not 1 <= opsets.get("", 1) <= newest:
        raise FlawError(f"it uses version {opsets['']} of ONNX's operators; the installed onnx knows 1 to {newest}")
    return opsets


def _without_functions(model: "ModelProto") -> "ModelProto":
    from onnx.checker import ValidationError
    from onnx.inliner import inline_local_functions

    functions = {(it.domain, it.name): it for it in model.functions}
    # The nodes that each function expands to; None for a function that is being counted.
    known: dict[tuple[str, str], int | None] = {}

    def count(nodes: Iterable["NodeProto"]) -> int:
        return sum(map(count_of, nodes))

    def count_of(node: "NodeProto") -> int:
        called = node.domain, node.op_type
        if called not in functions:
            return 1 + sum(count(graph.node) for graph in graphs_inside(node))
        if called not in known:
            if sum(it is None for it in known.values()) >= _DEEPEST_CALLS:
                raise FlawError(f"its functions call each other more than {_DEEPEST_CALLS} deep")
            known[called] = None
            known[called] = count(functions[called].node)
        if (found := known[called]) is None:
            raise FlawError(f"its function {node.op_type[:80]!r} calls itself")
        return found

    if count(model.graph.node) > _MOST_NODES:
        raise FlawError(f"its functions stand for more than {_MOST_NODES:,} nodes")
    try:
        found = inline_local_functions(model)
        if _functions_left(found):
            # For other versions of the operators than the model: converted, if onnx can.
            with suppress(RuntimeError):
                found = inline_local_functions(found, convert_version=True)
        return found
    except (RuntimeError, ValueError, ValidationError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        first = (lines or [type(error).__name__])[0][:200]
        raise FlawError(f"its functions cannot be expanded: {first}") from None


def _functions_left(model: "ModelProto") -> frozenset[tuple[str, str]]:
    graphs = (model.graph, *nested_graphs(model.graph.node))
    called = {(node.domain, node.op_type) for graph in graphs for node in graph.node}
    return frozenset((it.domain, it.name) for it in model.functions) & called


def _graph(graph: "GraphProto", opsets: Mapping[str, int]) -> OnnxFile:
    if len(graph.node) > _MOST_NODES:
        raise FlawError(f"it has {len(graph.node):,} nodes; the limit is {_MOST_NODES:,}")
    if _nests_deeper(graph, DEEPEST_NESTING):
        raise FlawError(f"its graphs are nested more than {DEEPEST_NESTING} deep")
    for text in _texts(graph):
        if not isinstance(text, str):
            raise FlawError("a name in it is not text: the file is damaged")
        if len(text) > LONGEST_NAME:
            raise FlawError(f"a name in it has {len(text):,} characters; the limit is {LONGEST_NAME:,}")
    if not graph.node and not graph.output:
        raise FlawError("there are no nodes: not an ONNX model, or only the beginning of one")
    if not graph.output:
        raise FlawError("the file does not declare the outputs of the network")
    if graph.sparse_initializer:
        raise FlawError("it has sparse weights, which are not supported")
    weights = {weight.name: weight for weight in graph.initializer}
    inputs = {it.name: it for it in graph.input if it.name not in weights}
    writers: dict[str, int] = {}
    for number, node in enumerate(graph.node):
        for name in filter(None, node.output):
            if name in writers or name in weights or name in inputs:
                raise FlawError(f"{_label(number, node)} writes {name[:80]!r}, which is there already")
            writers[name] = number
    known = {*weights, *inputs, *writers}
    sources = []
    for number, node in enumerate(graph.node):
        if node.domain in NAMES_OF_ONNX:
            node.domain = ""
        if node.domain not in opsets:
            of = f"the domain {node.domain[:80]!r}" if node.domain else "ONNX itself"
            raise FlawError(f"{_label(number, node)} is an operator of {of}, whose version the file does not declare")
        for name in filter(None, reads(node)):
            if name not in known:
                raise FlawError(f"{_label(number, node)} reads {name[:80]!r}, which no node writes")
        sources.append({writers[name] for name in reads(node) if name in writers})
    for output in graph.output:
        if output.name not in known:
            raise FlawError(f"its output is {output.name[:80]!r}, which no node writes")
    order = topological_order(sources)
    if len(order) < len(sources):
        stuck = min(set(range(len(sources))).difference(order))
        raise FlawError(f"{_label(stuck, graph.node[stuck])} is part of a cycle, or depends on one")
    needed = needed_for((writers[it.name] for it in graph.output if it.name in writers), sources)
    outputs = tuple(dict.fromkeys(it.name for it in graph.output))
    nodes = tuple([graph.node[number] for number in order if number in needed])
    return OnnxFile(nodes, tuple(inputs.values()), tuple(weights.values()), outputs, opsets)


def _nests_deeper(graph: "GraphProto", levels: int) -> bool:
    inside = (inner for node in graph.node for inner in graphs_inside(node))
    return any(not levels or _nests_deeper(inner, levels - 1) for inner in inside)


def _texts(graph: "GraphProto") -> Iterator[object]:
    """Return all texts of the graph; protobuf gives bytes for invalid text."""
    for each in (graph, *nested_graphs(graph.node)):
        for node in each.node:
            yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
            yield from (attribute.name for attribute in node.attribute)
        for value in (*each.input, *each.output):
            yield value.name
            yield from (axis.dim_param for axis in value.type.tensor_type.shape.dim)
        yield from (weight.name for weight in each.initializer)


def _read_from_outside(graph: "GraphProto") -> Iterator[str]:
    own = {it.name for it in graph.input} | {it.name for it in graph.initializer}
    own |= {name for node in graph.node for name in node.output}
    for node in graph.node:
        yield from (name for name in reads(node) if name and name not in own)
    yield from (it.name for it in graph.output if it.name not in own)


def _label(number: int, node: "NodeProto") -> str:
    return f"node {number} ({(node.name or node.op_type)[:80]!r})"
