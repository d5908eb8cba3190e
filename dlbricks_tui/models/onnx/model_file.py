"""ONNX files: read, found to be whole, and their nodes put in order."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dlbricks_tui.models.errors import UnreadableModelError
from dlbricks_tui.models.onnx.values import is_elsewhere
from dlbricks_tui.models.topology import topological_order

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

# What one protobuf message can hold: whoever has more weights keeps them beside the file.
MOST_BYTES = 2**31 - 1
# Before version 3 a file did not say which operators it uses.
_OLDEST_WITH_OPSETS = 3
_NAMES_OF_ONNX = ("", "ai.onnx")


class OnnxMissingError(UnreadableModelError):
    """The package that reads ONNX files is not installed."""


@dataclass(frozen=True, slots=True)
class OnnxFile:
    """The main graph of a file: nodes that some output needs, each behind those that it reads."""

    nodes: tuple["NodeProto", ...]
    inputs: tuple["ValueInfoProto", ...]
    weights: tuple["TensorProto", ...]
    outputs: tuple[str, ...]
    # The version of each set of operators, by domain; ONNX's own is "".
    opsets: Mapping[str, int]


def parse_onnx(content: bytes, where: str) -> OnnxFile:
    """The graph of an ONNX file; `where` names it in messages."""
    model = _parsed(content, where)
    try:
        opsets = _opsets(model)
        if model.functions:
            model = _without_functions(model)
        return _graph(model.graph, opsets)
    except _FlawError as flaw:
        raise UnreadableModelError(f"{where}: {flaw}") from None


def refuse_missing_weights(file: OnnxFile, folder: Path, where: str) -> None:
    """Objects where weights are said to be in files that are not beside the model, or end too early."""
    sizes: dict[str, int | None] = {}
    for called, stored in _stored(file):
        if not is_elsewhere(stored):
            continue
        facts = {entry.key: str(entry.value) for entry in stored.external_data}
        location = facts.get("location", "")
        if location not in sizes:
            sizes[location] = _size_beside(folder, location)
        size, label = sizes[location], f"{where}: {called} is kept in {location[:80]!r}"
        if size is None:
            raise UnreadableModelError(f"{label}, which is no file beside the model; put it there")
        numbers = [facts.get(key) or "0" for key in ("offset", "length")]
        if not all(number.isdecimal() and len(number) < 19 for number in numbers) or sum(map(int, numbers)) > size:
            raise UnreadableModelError(f"{label}, which ends before it; copy that file anew")


def reads(node: "NodeProto") -> tuple[str, ...]:
    """What a node reads, then what the graphs inside it read from around it; each of those once."""
    return (*node.input, *captured(node))


def captured(node: "NodeProto") -> tuple[str, ...]:
    """What the graphs inside a node read from around it, each once."""
    found: dict[str, None] = {}
    for graph in graphs_inside(node):
        found.update(dict.fromkeys(_read_from_outside(graph)))
    return tuple(found)


def graphs_inside(node: "NodeProto") -> Iterator["GraphProto"]:
    """The graphs that a node carries, not those within them."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


class _FlawError(Exception):
    """What is wrong with a part of a file; who knows where the part stands says so."""


def _parsed(content: bytes, where: str) -> "ModelProto":
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError as error:
        raise OnnxMissingError(f"{where}: reading it needs more ({error}): pip install 'dlbricks-tui[onnx]'") from None
    if not content:
        raise UnreadableModelError(f"{where} is empty")
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except DecodeError:
        raise UnreadableModelError(
            f"{where} is no ONNX file, or not all of it: its bytes do not fit together"
        ) from None
    newest = int(onnx.IR_VERSION)
    if not 1 <= model.ir_version <= newest:
        said = f"version {model.ir_version}" if model.ir_version else "no version"
        raise UnreadableModelError(
            f"{where} says that it is of {said} of the ONNX format; onnx {onnx.__version__} reads 1 to {newest}"
        )
    return model


def _opsets(model: "ModelProto") -> dict[str, int]:
    from onnx.defs import onnx_opset_version

    opsets = {"" if it.domain in _NAMES_OF_ONNX else it.domain: it.version for it in model.opset_import}
    if model.ir_version < _OLDEST_WITH_OPSETS:
        opsets.setdefault("", 1)
    newest = onnx_opset_version()
    if not 1 <= opsets.get("", 1) <= newest:
        raise _FlawError(f"it uses version {opsets['']} of ONNX's operators; the installed onnx knows 1 to {newest}")
    return opsets


def _without_functions(model: "ModelProto") -> "ModelProto":
    from onnx.inliner import inline_local_functions

    try:
        return inline_local_functions(model)
    except (RuntimeError, ValueError) as error:
        raise _FlawError(f"its functions cannot be written out: {_first_line(error)}") from None


def _graph(graph: "GraphProto", opsets: Mapping[str, int]) -> OnnxFile:
    if not all(isinstance(text, str) for text in _texts(graph)):
        raise _FlawError("a name in it is no text: the file is damaged")
    if not graph.node:
        raise _FlawError("there are no nodes: not an ONNX model, or only the beginning of one")
    if not graph.output:
        raise _FlawError("nothing says what the network puts out")
    if graph.sparse_initializer:
        raise _FlawError("it has sparse weights, which are not supported")
    weights = {weight.name: weight for weight in graph.initializer}
    inputs = {it.name: it for it in graph.input if it.name not in weights}
    writers = _writers(graph.node, {*weights, *inputs})
    known = {*weights, *inputs, *writers}
    sources = []
    for number, node in enumerate(graph.node):
        if node.domain in _NAMES_OF_ONNX:
            node.domain = ""
        if node.domain not in opsets:
            of = f"the domain {node.domain[:80]!r}" if node.domain else "ONNX itself"
            raise _FlawError(f"{_label(number, node)} is an operator of {of}, of which the file says no version")
        for name in filter(None, reads(node)):
            if name not in known:
                raise _FlawError(f"{_label(number, node)} reads {name[:80]!r}, which nothing writes")
        sources.append({writers[name] for name in reads(node) if name in writers})
    for output in graph.output:
        if output.name not in known:
            raise _FlawError(f"it puts out {output.name[:80]!r}, which nothing writes")
    order = topological_order(sources)
    if len(order) < len(sources):
        stuck = min(set(range(len(sources))).difference(order))
        raise _FlawError(f"{_label(stuck, graph.node[stuck])} is in a cycle, or behind one")
    needed = _needed(sources, (writers[it.name] for it in graph.output if it.name in writers))
    outputs = tuple(dict.fromkeys(it.name for it in graph.output))
    nodes = tuple([graph.node[number] for number in order if number in needed])
    return OnnxFile(nodes, tuple(inputs.values()), tuple(weights.values()), outputs, opsets)


def _texts(graph: "GraphProto") -> Iterator[object]:
    """All that has to be text: protobuf gives bytes for what is none."""
    for node in graph.node:
        yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
        yield from (attribute.name for attribute in node.attribute)
        for inner in graphs_inside(node):
            yield from _texts(inner)
    for value in (*graph.input, *graph.output):
        yield value.name
        yield from (axis.dim_param for axis in value.type.tensor_type.shape.dim)
    yield from (weight.name for weight in graph.initializer)


def _writers(nodes: Iterable["NodeProto"], taken: set[str]) -> dict[str, int]:
    """Which node writes a tensor."""
    writers: dict[str, int] = {}
    for number, node in enumerate(nodes):
        for name in filter(None, node.output):
            if name in writers or name in taken:
                raise _FlawError(f"{_label(number, node)} writes {name[:80]!r}, which is there already")
            writers[name] = number
    return writers


def _needed(sources: Sequence[Iterable[int]], heads: Iterable[int]) -> set[int]:
    found = set(heads)
    waiting = list(found)
    while waiting:
        for source in sources[waiting.pop()]:
            if source not in found:
                found.add(source)
                waiting.append(source)
    return found


def _read_from_outside(graph: "GraphProto") -> Iterator[str]:
    own = {it.name for it in graph.input} | {it.name for it in graph.initializer}
    own |= {name for node in graph.node for name in node.output}
    for node in graph.node:
        yield from (name for name in reads(node) if name and name not in own)
    yield from (it.name for it in graph.output if it.name not in own)


def _stored(file: OnnxFile) -> Iterator[tuple[str, "TensorProto"]]:
    """All arrays of a file, those of nodes and of the graphs inside of them too, each as people know it."""
    yield from ((_weight(weight), weight) for weight in file.weights)
    for node in file.nodes:
        yield from _stored_in(node)


def _stored_in(node: "NodeProto") -> Iterator[tuple[str, "TensorProto"]]:
    for attribute in node.attribute:
        found = (*attribute.tensors, attribute.t) if attribute.HasField("t") else attribute.tensors
        yield from ((f"the value of {(node.name or node.op_type)[:80]!r}", value) for value in found)
    for graph in graphs_inside(node):
        yield from ((_weight(weight), weight) for weight in graph.initializer)
        for inner in graph.node:
            yield from _stored_in(inner)


def _weight(weight: "TensorProto") -> str:
    return f"the weight {weight.name[:80]!r}"


def _size_beside(folder: Path, location: str) -> int | None:
    path = Path(location)
    # A file that leads out of its folder is not to be trusted.
    if not location or "\0" in location or path.is_absolute() or ".." in path.parts:
        return None
    try:
        return (folder / path).stat().st_size if (folder / path).is_file() else None
    except OSError:
        return None


def _label(number: int, node: "NodeProto") -> str:
    return f"node {number} ({(node.name or node.op_type)[:80]!r})"


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)[:200]
