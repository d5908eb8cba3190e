"""Symbol files of MXNet: written, and those of all its versions parsed into the form of version 1.5.

MXNet would convert older files on loading, but we write them again in today's form.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from dlbricks_tui.files import read_bytes
from dlbricks_tui.models.cache import Cache, GraphAnswer, ReadModel
from dlbricks_tui.models.content import LONGEST_NAME, read_content, refuse_no_model, without_cycle_search
from dlbricks_tui.models.errors import FlawError, ModelError, UnreadableModelError
from dlbricks_tui.models.graph import Level, NativeNode, Shape, TensorType, needed_for, topological_order
from dlbricks_tui.models.input_shapes import StatedInputs
from dlbricks_tui.models.library import ModelSource

VARIABLE = "null"
# The oldest version with today's format. Newer versions read it without conversion.
FORMAT_VERSION = 10500


class FreshNames:
    """Unique names: MXNet binds arrays by name, so two nodes of one name would share an array."""

    def __init__(self) -> None:
        self._used: set[str] = set()

    def take(self, name: str) -> str:
        """Return the name, or a similar one if it is taken."""
        candidate, count = name, 1
        while candidate in self._used:
            count += 1
            candidate = f"{name}_{count}"
        self._used.add(candidate)
        return candidate


def _node_document(
    op: str, name: str, attributes: Mapping[str, str], inputs: Iterable[tuple[int, int]], subgraphs: Iterable[str]
) -> dict[str, Any]:
    node: dict[str, Any] = {"op": op, "name": name}
    if attributes:
        node["attrs"] = attributes
    node["inputs"] = [[*entry, 0] for entry in inputs]
    if texts := [*subgraphs]:
        node["subgraphs"] = [json.loads(text) for text in texts]
    return node


def symbol_document(nodes: Sequence[dict[str, Any]], heads: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """Return a symbol file with these nodes and these heads (node, output)."""
    return {
        "nodes": nodes,
        "arg_nodes": [number for number, node in enumerate(nodes) if node["op"] == VARIABLE],
        "node_row_ptr": list(range(len(nodes) + 1)),
        "heads": [[*head, 0] for head in heads],
        "attrs": {"mxnet_version": ["int", FORMAT_VERSION]},
    }


def symbol_file(document: Mapping[str, Any]) -> bytes:
    """Return a symbol file with one node per line, so that it is small and has readable diffs."""
    compact = {key: json.dumps(value, separators=(",", ":")) for key, value in document.items()}
    compact["nodes"] = "[\n" + ",\n".join(json.dumps(n, separators=(",", ":")) for n in document["nodes"]) + "\n]"
    body = ",\n".join(f'"{key}":{value}' for key, value in compact.items())
    return f"{{\n{body}\n}}\n".encode()


class SymbolSheet:
    """A symbol file of MXNet."""

    def __init__(self) -> None:
        self._nodes: list[dict[str, Any]] = []
        self._names = FreshNames()

    def variable(self, name: str, found: TensorType, *, learned: bool) -> int:
        """Write an array of that name."""
        self._nodes.append({"op": VARIABLE, "name": name, "inputs": []})
        return len(self._nodes) - 1

    def operator(self, native: NativeNode, name: str, inputs: Sequence[tuple[int, int]]) -> int:
        """Write an operator that reads these outputs."""
        attributes = dict(native.attributes)
        self._nodes.append(_node_document(native.op, self.fresh(name), attributes, inputs, native.subgraphs))
        return len(self._nodes) - 1

    def in_passing(self, entry: tuple[int, int]) -> Sequence[tuple[int, int]]:
        """Return the output itself: an executor shares memory between its outputs and inputs."""
        return (entry,)

    def text(self, heads: Sequence[tuple[int, int]]) -> str:
        """Return the symbol file."""
        return json.dumps(symbol_document(self._nodes, heads), separators=(",", ":"))

    def fresh(self, name: str) -> str:
        """Return the name, or a similar one if it is taken."""
        return self._names.take(name)


# Files from before 0.9 do not declare their version.
OLDEST_VERSION = 800
AXIS_MAY_BE_NONE = 905

# The keys of a node's parameters. Some files have two, one of them with annotations.
_ATTRIBUTE_KEYS = ("attr", "param", "attrs")
# Annotations for training, which once stood among the parameters without underscores around them.
_ANNOTATIONS = ("ctx_group", "lr_mult", "wd_mult", "force_mirroring", "mirror_stage", "profiler_scope")

# Inputs of operators with states, which files from before 0.9 left out.
_INPUTS_WITH_STATES = {
    "BatchNorm": ("data", "gamma", "beta", "moving_mean", "moving_var"),
    "BatchNorm_v1": ("data", "gamma", "beta", "moving_mean", "moving_var"),
}


def file_version(document: Any) -> int:
    """Return the version of MXNet that saved the file, as major * 10000 + minor * 100 + patch."""
    for key in _ATTRIBUTE_KEYS:
        facts = document.get(key) if isinstance(document, dict) else None
        declared = facts.get("mxnet_version") if isinstance(facts, dict) else None
        if isinstance(declared, list) and declared:
            declared = declared[-1]
        if isinstance(declared, int):
            return declared
    return OLDEST_VERSION


def node_attributes(raw: Mapping[str, Any], version: int) -> dict[str, str]:
    """Return the parameters and annotations of a node."""
    attributes: dict[str, str] = {}
    for key in _ATTRIBUTE_KEYS:
        found = raw.get(key)
        if not found:
            continue
        if not isinstance(found, dict):
            raise FlawError(f"has {key!r} that is not an object")
        for name, value in found.items():
            if name.endswith(_ANNOTATIONS):
                continue
            if not isinstance(value, (str, int, float)):
                raise FlawError(f"has a parameter {name[:40]!r} that is neither text nor a number")
            attributes[name] = value if type(value) is str else str(value)
    if version < AXIS_MAY_BE_NONE and raw["op"] in ("argmax", "argmin") and attributes.get("axis") == "-1":
        # The old value meant all axes together, which is the default now.
        del attributes["axis"]
    return attributes


# Subgraphs within subgraphs: real files have two levels.
DEEPEST_NESTING = 8
MOST_OUTPUTS = 2**16
# Keys and values take up to thirty times the memory of their text. A network of 100,000 nodes has fewer.
MOST_VALUES = 2_000_000
# Far more than any network has, and few enough to be read with little memory.
MOST_NODES = 200_000


class NodeOutput(NamedTuple):
    """One output of a node of a file or network."""

    node: int
    output: int


class Subgraph(NamedTuple):
    """A subgraph of an operator, as text and parsed.

    The text excludes deeper subgraphs.
    """

    text: str
    file: "SymbolFile"


class SymbolNode(NamedTuple):
    """One operator or variable of the file."""

    op: str
    name: str
    attributes: dict[str, str]
    inputs: tuple[NodeOutput, ...] = ()
    subgraphs: tuple[Subgraph, ...] = ()

    @property
    def is_variable(self) -> bool:
        return self.op == VARIABLE

    @property
    def params(self) -> dict[str, str]:
        """The parameters of the operator itself; names between underscores are annotations."""
        return {key: text for key, text in self.attributes.items() if not key.startswith("__")}


@dataclass(frozen=True, slots=True)
class SymbolFile:
    """A symbol file: nodes in topological order, all of them needed by the heads."""

    nodes: tuple[SymbolNode, ...]
    heads: tuple[NodeOutput, ...]

    def render(self) -> str:
        """Return a symbol file of today's format in which node i is called `n<i>`.

        Real files repeat node names, and MXNet binds and infers by name.
        """
        nodes = [
            _node_document(it.op, unique_name(number), it.attributes, it.inputs, [inner.text for inner in it.subgraphs])
            for number, it in enumerate(self.nodes)
        ]
        return json.dumps(symbol_document(nodes, self.heads), separators=(",", ":"))


def unique_name(number: int) -> str:
    """Return the name of a node in all graphs for MXNet."""
    return f"n{number}"


@without_cycle_search()
def parse_symbol(content: bytes | str, where: str) -> SymbolFile:
    """Return the parsed symbol file; `where` names it in messages."""
    refuse_no_model(content, where)
    if isinstance(content, bytes) and sum(content.count(sign) for sign in (b",", b"[", b"{", b":")) > MOST_VALUES:
        raise UnreadableModelError(f"{where} holds more than {MOST_VALUES:,} values: not a symbol file")
    try:
        document = json.loads(content)
    except RecursionError:
        raise UnreadableModelError(f"{where} nests too deep: not a symbol file") from None
    except UnicodeDecodeError:
        raise UnreadableModelError(f"{where} is no symbol file, which is JSON; ONNX files end in .onnx") from None
    except json.JSONDecodeError as error:
        raise UnreadableModelError(f"{where} is not JSON: {error}") from None
    except ValueError:
        # Python limits the digits of a number, as reading them takes quadratic time.
        raise UnreadableModelError(f"{where} holds a number of thousands of digits: not a symbol file") from None
    try:
        return _symbol(document, file_version(document), DEEPEST_NESTING)
    except FlawError as flaw:
        raise UnreadableModelError(f"{where}: {flaw}") from None


def _symbol(document: Any, version: int, nesting: int) -> SymbolFile:
    raw_nodes = document.get("nodes") if isinstance(document, dict) else None
    if not isinstance(raw_nodes, list) or not raw_nodes:
        raise FlawError("there is no list of nodes: not an MXNet symbol file")
    count = len(raw_nodes)
    if count > MOST_NODES:
        raise FlawError(f"it has {count:,} nodes: at most {MOST_NODES:,} are read")
    nodes = []
    for number, raw in enumerate(raw_nodes):
        try:
            nodes.append(_node(raw, count, version, nesting))
        except FlawError as flaw:
            raise FlawError(f"{_label(number, raw)} {flaw}") from None
    raw_heads = document.get("heads", [])
    if not isinstance(raw_heads, list) or not raw_heads:
        raise FlawError("there is no list of heads")
    try:
        heads = _entries(raw_heads, count)
    except FlawError as flaw:
        raise FlawError(f"the list of heads {flaw}") from None
    return _in_order(nodes, heads)


def _node(raw: Any, count: int, version: int, nesting: int) -> SymbolNode:
    if not isinstance(raw, dict) or not isinstance(raw.get("op"), str):
        raise FlawError("is not an object with an 'op'")
    op, name = raw["op"], raw.get("name", "")
    if not isinstance(name, str):
        raise FlawError("has a name that is not text")
    if max(len(op), len(name)) > LONGEST_NAME:
        raise FlawError(f"has a name of {max(len(op), len(name)):,} characters; the limit is {LONGEST_NAME:,}")
    raw_inputs = raw.get("inputs", [])
    if not isinstance(raw_inputs, list):
        raise FlawError("has inputs that are not a list")
    inputs = _entries(raw_inputs, count)
    if inputs and op == VARIABLE:
        raise FlawError("is a variable, yet it has inputs")
    subgraphs = tuple(_subgraphs(raw["subgraphs"], version, nesting)) if "subgraphs" in raw else ()
    return SymbolNode(op, name, node_attributes(raw, version), inputs, subgraphs)


def _subgraphs(raw: Any, version: int, nesting: int) -> Iterable[Subgraph]:
    if not isinstance(raw, list):
        raise FlawError("has subgraphs that are not a list")
    if not nesting:
        raise FlawError(f"has graphs nested more than {DEEPEST_NESTING} deep")
    for document in raw:
        try:
            file = _symbol(document, version, nesting - 1)
            text = json.dumps(document, separators=(",", ":")) if nesting == DEEPEST_NESTING else ""
        except FlawError as flaw:
            raise FlawError(f"carries a broken graph: {flaw}") from None
        except RecursionError:
            raise FlawError("carries a graph that nests too deep") from None
        yield Subgraph(text, file)


def _entries(raw: list[Any], count: int) -> tuple[NodeOutput, ...]:
    entries = []
    for item in raw:
        # Before 0.9 an entry had no third number, the version of a state.
        if not isinstance(item, list) or not 2 <= len(item) <= 3:
            raise FlawError("has an entry that is not [node, output]")
        node, output = item[0], item[1]
        if type(node) is not int or type(output) is not int:
            raise FlawError("has an entry that is not [node, output]")
        if not 0 <= node < count:
            raise FlawError(f"reads node {node!s:.20}, but there are {count} nodes")
        if not 0 <= output < MOST_OUTPUTS:
            raise FlawError(f"reads output {output!s:.20} of node {node}, which is no output number")
        entries.append(NodeOutput(node, output))
    return tuple(entries)


def _in_order(nodes: list[SymbolNode], heads: tuple[NodeOutput, ...]) -> SymbolFile:
    """Remove nodes that no head needs, put producers before readers, and add the states that old files left out."""
    sources = [[entry.node for entry in node.inputs] for node in nodes]
    needed = needed_for((head.node for head in heads), sources)
    order = [number for number in topological_order(sources) if number in needed]
    if len(order) < len(needed):
        stuck = min(needed.difference(order))
        raise FlawError(f"{_label(stuck, nodes[stuck])} is part of a cycle, or depends on one")
    position: dict[int, int] = {}
    ordered: list[SymbolNode] = []
    for number in order:
        node = nodes[number]
        inputs = []
        for entry in node.inputs:
            if entry.output and nodes[entry.node].op == VARIABLE:
                raise FlawError(f"{_label(number, node)} reads output {entry.output} of a variable, which has but one")
            inputs.append(NodeOutput(position[entry.node], entry.output))
        for state in _INPUTS_WITH_STATES.get(node.op, ())[len(inputs) :] if inputs else ():
            inputs.append(NodeOutput(len(ordered), 0))
            ordered.append(SymbolNode(VARIABLE, f"{node.name}_{state}", {}))
        position[number] = len(ordered)
        ordered.append(SymbolNode(node.op, node.name, node.attributes, tuple(inputs), node.subgraphs))
    return SymbolFile(tuple(ordered), tuple([NodeOutput(position[head.node], head.output) for head in heads]))


def _label(number: int, node: Any) -> str:
    name = node.name if isinstance(node, SymbolNode) else node.get("name") if isinstance(node, dict) else None
    return f"node {number} ({name[:80]!r})" if isinstance(name, str) and name else f"node {number}"


class Framework(Protocol):
    """The interface of a framework that infers types and fuses graphs.

    Both methods may raise WorkerRefusedError.
    """

    @property
    def identity(self) -> str:
        """The framework with its version. The cache separates their answers."""

    def infer(self, symbol: str, shapes: Mapping[str, Shape]) -> GraphAnswer:
        """Return the types of all outputs, given the shapes of inputs by name."""

    def fuse(self, symbol: str, shapes: Mapping[str, Shape]) -> GraphAnswer:
        """Return the graph after the framework's optimiser, with its types."""


class MXNetLoader:
    """Loads symbol files at either level."""

    def __init__(self, cache: Cache, framework: Framework) -> None:
        self._cache = cache
        self._framework = framework

    def read(self, source: ModelSource) -> bytes:
        """Return the content of a model file."""
        return read_content(source.path)

    def facts(self, source: ModelSource, level: Level) -> tuple[object, ...]:
        """Return the facts beside the file and its shapes on which a layer graph depends."""
        delivered = b""
        if source.types is not None:
            with suppress(OSError):
                delivered = read_bytes(source.types)
        return self._framework.identity, hashlib.sha256(delivered).hexdigest()

    def load(
        self, source: ModelSource, content: bytes, level: Level, stated: StatedInputs, batch_size: int | None
    ) -> ReadModel:
        """Return the layer graph of a model file. Its inputs cannot have given values."""
        if stated.values:
            raise ModelError(f"{source.name}: only the inputs of ONNX models take a --value; leave it out")
        # Imported here, for models that are not in the cache only.
        from dlbricks_tui.models.mxnet_layers import InferredGraph

        return InferredGraph(source, content, self._cache, self._framework, stated.shapes, batch_size).at(level)
