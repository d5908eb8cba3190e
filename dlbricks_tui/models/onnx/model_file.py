"""Parses ONNX files, checks them, and orders their nodes."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dlbricks_tui.models.content import LONGEST_NAME, refuse_no_model
from dlbricks_tui.models.digraphs import needed_for, topological_order
from dlbricks_tui.models.errors import UnreadableModelError
from dlbricks_tui.models.onnx.reading import no_onnx_file

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

# Before version 3 files did not declare their operator sets.
_OLDEST_WITH_OPSETS = 3
# Subgraphs within subgraphs: real files have three levels.
DEEPEST_NESTING = 8
# All nodes after functions are expanded. Functions that call functions multiply them.
_MOST_NODES = 200_000
_DEEPEST_CALLS = 64
NAMES_OF_ONNX = ("", "ai.onnx")


class OnnxMissingError(UnreadableModelError):
    """The package that reads ONNX files is not installed."""


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


def parse_onnx(content: bytes, where: str) -> OnnxFile:
    """Return the graph of an ONNX file; `where` names it in messages."""
    model = _parsed(content, where)
    try:
        opsets = _opsets(model)
        if model.functions:
            model = _without_functions(model)
        metadata = {it.key: it.value for it in model.metadata_props}
        return replace(_graph(model.graph, opsets), metadata=metadata)
    except _FlawError as flaw:
        raise UnreadableModelError(f"{where}: {flaw}") from None


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


class _FlawError(Exception):
    """A fault in a part of a file. The caller adds the place."""


def _parsed(content: bytes, where: str) -> "ModelProto":
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError as error:
        raise OnnxMissingError(f"{where}: reading it needs the onnx package: pip install onnx ({error})") from None
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

    opsets = {"" if it.domain in NAMES_OF_ONNX else it.domain: it.version for it in model.opset_import}
    if model.ir_version < _OLDEST_WITH_OPSETS:
        opsets.setdefault("", 1)
    newest = onnx_opset_version()
    if not 1 <= opsets.get("", 1) <= newest:
        raise _FlawError(f"it uses version {opsets['']} of ONNX's operators; the installed onnx knows 1 to {newest}")
    return opsets


def _without_functions(model: "ModelProto") -> "ModelProto":
    from onnx.checker import ValidationError
    from onnx.inliner import inline_local_functions

    if _Expansion(model).nodes(model.graph.node) > _MOST_NODES:
        raise _FlawError(f"its functions stand for more than {_MOST_NODES:,} nodes")
    try:
        return inline_local_functions(model)
    except (RuntimeError, ValueError, ValidationError) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        first = (lines or [type(error).__name__])[0][:200]
        raise _FlawError(f"its functions cannot be expanded: {first}") from None


class _Expansion:
    """Counts the nodes of a model after its functions are expanded."""

    def __init__(self, model: "ModelProto") -> None:
        self._functions = {(it.domain, it.name): it for it in model.functions}
        # None for a function that is being counted.
        self._known: dict[tuple[str, str], int | None] = {}

    def nodes(self, nodes: Iterable["NodeProto"]) -> int:
        """Return the number of nodes that these expand to."""
        return sum(self._of(node) for node in nodes)

    def _of(self, node: "NodeProto") -> int:
        called = node.domain, node.op_type
        function = self._functions.get(called)
        if function is None:
            return 1 + sum(self.nodes(graph.node) for graph in graphs_inside(node))
        if called not in self._known:
            if sum(count is None for count in self._known.values()) >= _DEEPEST_CALLS:
                raise _FlawError(f"its functions call each other more than {_DEEPEST_CALLS} deep")
            self._known[called] = None
            self._known[called] = self.nodes(function.node)
        count = self._known[called]
        if count is None:
            raise _FlawError(f"its function {node.op_type[:80]!r} calls itself")
        return count


def _graph(graph: "GraphProto", opsets: Mapping[str, int]) -> OnnxFile:
    if len(graph.node) > _MOST_NODES:
        raise _FlawError(f"it has {len(graph.node):,} nodes; the limit is {_MOST_NODES:,}")
    if _nests_deeper(graph, DEEPEST_NESTING):
        raise _FlawError(f"its graphs are nested more than {DEEPEST_NESTING} deep")
    for text in _texts(graph):
        if not isinstance(text, str):
            raise _FlawError("a name in it is not text: the file is damaged")
        if len(text) > LONGEST_NAME:
            raise _FlawError(f"a name in it has {len(text):,} characters; the limit is {LONGEST_NAME:,}")
    if not graph.node:
        raise _FlawError("there are no nodes: not an ONNX model, or only the beginning of one")
    if not graph.output:
        raise _FlawError("the file does not declare the outputs of the network")
    if graph.sparse_initializer:
        raise _FlawError("it has sparse weights, which are not supported")
    weights = {weight.name: weight for weight in graph.initializer}
    inputs = {it.name: it for it in graph.input if it.name not in weights}
    writers: dict[str, int] = {}
    for number, node in enumerate(graph.node):
        for name in filter(None, node.output):
            if name in writers or name in weights or name in inputs:
                raise _FlawError(f"{_label(number, node)} writes {name[:80]!r}, which is there already")
            writers[name] = number
    known = {*weights, *inputs, *writers}
    sources = []
    for number, node in enumerate(graph.node):
        if node.domain in NAMES_OF_ONNX:
            node.domain = ""
        if node.domain not in opsets:
            of = f"the domain {node.domain[:80]!r}" if node.domain else "ONNX itself"
            raise _FlawError(f"{_label(number, node)} is an operator of {of}, whose version the file does not declare")
        for name in filter(None, reads(node)):
            if name not in known:
                raise _FlawError(f"{_label(number, node)} reads {name[:80]!r}, which no node writes")
        sources.append({writers[name] for name in reads(node) if name in writers})
    for output in graph.output:
        if output.name not in known:
            raise _FlawError(f"its output is {output.name[:80]!r}, which no node writes")
    order = topological_order(sources)
    if len(order) < len(sources):
        stuck = min(set(range(len(sources))).difference(order))
        raise _FlawError(f"{_label(stuck, graph.node[stuck])} is part of a cycle, or depends on one")
    needed = needed_for((writers[it.name] for it in graph.output if it.name in writers), sources)
    outputs = tuple(dict.fromkeys(it.name for it in graph.output))
    nodes = tuple([graph.node[number] for number in order if number in needed])
    return OnnxFile(nodes, tuple(inputs.values()), tuple(weights.values()), outputs, opsets)


def _nests_deeper(graph: "GraphProto", levels: int) -> bool:
    inside = (inner for node in graph.node for inner in graphs_inside(node))
    return any(not levels or _nests_deeper(inner, levels - 1) for inner in inside)


def _texts(graph: "GraphProto") -> Iterator[object]:
    """Return all texts of the graph; protobuf gives bytes for invalid text."""
    for node in graph.node:
        yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
        yield from (attribute.name for attribute in node.attribute)
        for inner in graphs_inside(node):
            yield from _texts(inner)
    for value in (*graph.input, *graph.output):
        yield value.name
        yield from (axis.dim_param for axis in value.type.tensor_type.shape.dim)
    yield from (weight.name for weight in graph.initializer)


def _read_from_outside(graph: "GraphProto") -> Iterator[str]:
    own = {it.name for it in graph.input} | {it.name for it in graph.initializer}
    own |= {name for node in graph.node for name in node.output}
    for node in graph.node:
        yield from (name for name in reads(node) if name and name not in own)
    yield from (it.name for it in graph.output if it.name not in own)


def _label(number: int, node: "NodeProto") -> str:
    return f"node {number} ({(node.name or node.op_type)[:80]!r})"
