"""MXNet symbol files of every vintage, read into one form."""

import gzip
import io
import json
import stat
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from dlbricks_tui.models.errors import UnreadableModelError

VARIABLE = "null"
FORMAT_VERSION = 10500

# Far above any real network; a file that unpacks to more is refused before it fills the memory.
MOST_BYTES = 256 * 2**20

# Before 0.9 a file left out the auxiliary states; MXNet itself adds them when it loads one.
_AUXILIARY_STATES = {"BatchNorm": ("gamma", "beta", "moving_mean", "moving_var")}


class Entry(NamedTuple):
    """One output of a node of the file."""

    node: int
    output: int


@dataclass(frozen=True, slots=True)
class SymbolNode:
    """One operator or variable of the file."""

    op: str
    name: str
    attributes: dict[str, str]
    inputs: tuple[Entry, ...]
    subgraphs: tuple[str, ...] = ()

    @property
    def is_variable(self) -> bool:
        return self.op == VARIABLE


@dataclass(frozen=True)
class SymbolFile:
    """A symbol file: nodes in an order in which each reads only earlier ones, all reachable from the heads."""

    nodes: tuple[SymbolNode, ...]
    heads: tuple[Entry, ...]
    version: int = FORMAT_VERSION
    attributes: dict[str, Any] = field(default_factory=dict)

    def render(self) -> str:
        """A symbol file of today's format in which node i is called `n<i>`.

        Real files repeat node names, and MXNet binds and infers by name.
        """
        nodes = []
        for number, node in enumerate(self.nodes):
            rendered: dict[str, Any] = {"op": node.op, "name": unique_name(number)}
            if node.attributes:
                rendered["attrs"] = node.attributes
            rendered["inputs"] = [[entry.node, entry.output, 0] for entry in node.inputs]
            if node.subgraphs:
                rendered["subgraphs"] = [json.loads(text) for text in node.subgraphs]
            nodes.append(rendered)
        document = {
            "nodes": nodes,
            "arg_nodes": [number for number, node in enumerate(self.nodes) if node.is_variable],
            "node_row_ptr": list(range(len(nodes) + 1)),
            "heads": [[head.node, head.output, 0] for head in self.heads],
            "attrs": {"mxnet_version": ["int", FORMAT_VERSION]},
        }
        return json.dumps(document, separators=(",", ":"))


def unique_name(number: int) -> str:
    """What node `number` is called wherever MXNet sees the graph."""
    return f"n{number}"


def read_bytes(path: Path) -> bytes:
    """The content of a model file, unpacked where it is gzipped; anything but a readable file is refused."""
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            what = "a directory" if stat.S_ISDIR(mode) else "not a regular file"
            raise UnreadableModelError(f"{path} is {what}; give the path of a *-symbol.json file")
        if path.stat().st_size > MOST_BYTES:
            raise UnreadableModelError(f"{path} is larger than {MOST_BYTES // 2**20} MiB: not a symbol file")
        content = path.read_bytes()
        return _unpacked(path, content) if content[:2] == b"\x1f\x8b" else content
    except (OSError, EOFError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UnreadableModelError(f"{path}: {reason}") from None
    except ValueError as error:
        raise UnreadableModelError(f"{str(path)!r}: {error}") from None


def _unpacked(path: Path, packed: bytes) -> bytes:
    import zlib

    try:
        content = gzip.GzipFile(fileobj=io.BytesIO(packed)).read(MOST_BYTES + 1)
    except zlib.error as error:
        raise UnreadableModelError(f"{path}: broken gzip data ({error})") from None
    if len(content) > MOST_BYTES:
        raise UnreadableModelError(f"{path} unpacks to more than {MOST_BYTES // 2**20} MiB: not a symbol file")
    return content


def parse_symbol(content: bytes, where: str) -> SymbolFile:
    """The nodes of a symbol file; `where` names it in messages."""
    if not content.strip():
        raise UnreadableModelError(f"{where} is empty")
    try:
        document = json.loads(content)
        return _Parser(where).symbol(document)
    except RecursionError:
        raise UnreadableModelError(f"{where} nests too deep: not a symbol file") from None
    except ValueError as error:
        raise UnreadableModelError(f"{where} is not JSON: {error}") from None


class _Parser:
    """Checks each part of a symbol file as it is read; every complaint says where."""

    def __init__(self, where: str) -> None:
        self._where = where

    def symbol(self, document: Any) -> SymbolFile:
        if not isinstance(document, dict) or not isinstance(document.get("nodes"), list):
            raise self._wrong("has no list of nodes: not an MXNet symbol file")
        if not document["nodes"]:
            raise self._wrong("has no nodes")
        attributes = document.get("attrs") or document.get("attr") or {}
        version = self._version(attributes)
        count = len(document["nodes"])
        nodes = [self._node(raw, number, count) for number, raw in enumerate(document["nodes"])]
        heads = document.get("heads", [])
        if not isinstance(heads, list) or not heads:
            raise self._wrong("has no heads: nothing says what the network puts out")
        entries = [self._entry(raw, "a head", count) for raw in heads]
        return _in_order(nodes, entries, version, self._wrong)

    def _version(self, attributes: Any) -> int:
        declared = attributes.get("mxnet_version") if isinstance(attributes, dict) else None
        if isinstance(declared, list) and len(declared) == 2:
            declared = declared[1]
        # Files from before 0.9 carry none.
        return declared if isinstance(declared, int) else 800

    def _node(self, raw: Any, number: int, count: int) -> SymbolNode:
        if not isinstance(raw, dict) or not isinstance(raw.get("op"), str):
            raise self._wrong(f"node {number} is not an object with an 'op'")
        name = raw.get("name", "")
        if not isinstance(name, str):
            raise self._wrong(f"node {number} has a name that is not text")
        label = f"node {number} ({name[:80]!r})"
        inputs = raw.get("inputs", [])
        if not isinstance(inputs, list):
            raise self._wrong(f"{label} has inputs that are not a list")
        subgraphs = raw.get("subgraphs", [])
        if not isinstance(subgraphs, list):
            raise self._wrong(f"{label} has subgraphs that are not a list")
        return SymbolNode(
            raw["op"],
            name,
            self._attributes(raw, label),
            tuple([self._entry(entry, label, count) for entry in inputs]),
            tuple([json.dumps(subgraph, separators=(",", ":")) for subgraph in subgraphs]),
        )

    def _attributes(self, raw: dict[str, Any], label: str) -> dict[str, str]:
        merged: dict[str, str] = {}
        # Vintages differ in the key, and some files carry two: parameters in one, annotations in the other.
        for key in ("attr", "param", "attrs"):
            found = raw.get(key)
            if not found:
                continue
            if not isinstance(found, dict):
                raise self._wrong(f"{label} has {key!r} that is not an object")
            for name, value in found.items():
                if not isinstance(value, (str, int, float)):
                    raise self._wrong(f"{label} has a parameter {name[:40]!r} that is neither text nor a number")
                merged[name] = value if isinstance(value, str) else str(value)
        return merged

    def _entry(self, raw: Any, reader: str, count: int) -> Entry:
        if not isinstance(raw, list) or not 2 <= len(raw) <= 3 or not all(type(item) is int for item in raw):
            raise self._wrong(f"{reader} has an input that is not [node, output]")
        node, output = raw[0], raw[1]
        if not 0 <= node < count:
            raise self._wrong(f"{reader} reads node {node}, but the file has {count} nodes")
        if not 0 <= output < 2**16:
            raise self._wrong(f"{reader} reads output {output} of node {node}, which is no output number")
        return Entry(node, output)

    def _wrong(self, what: str) -> UnreadableModelError:
        return UnreadableModelError(f"{self._where}: {what}")


def _in_order(nodes: list[SymbolNode], heads: list[Entry], version: int, wrong: Any) -> SymbolFile:
    """Drops what no head needs, puts producers before readers, and adds the states that old files left out."""
    needed = _reachable(nodes, heads)
    position: dict[int, int] = {}
    ordered: list[SymbolNode] = []
    for number in _sorted(nodes, needed, wrong):
        node = nodes[number]
        if any(entry.output for entry in node.inputs if nodes[entry.node].is_variable):
            raise wrong(f"node {number} ({node.name[:80]!r}) reads a second output of a variable, which has one")
        if node.is_variable and node.inputs:
            raise wrong(f"node {number} ({node.name[:80]!r}) is a variable, yet it has inputs")
        inputs = [Entry(position[entry.node], entry.output) for entry in node.inputs]
        for role in _missing_states(node):
            ordered.append(SymbolNode(VARIABLE, f"{node.name}_{role}", {}, ()))
            inputs.append(Entry(len(ordered) - 1, 0))
        position[number] = len(ordered)
        ordered.append(SymbolNode(node.op, node.name, node.attributes, tuple(inputs), node.subgraphs))
    return SymbolFile(tuple(ordered), tuple(Entry(position[head.node], head.output) for head in heads), version)


def _missing_states(node: SymbolNode) -> Sequence[str]:
    states = _AUXILIARY_STATES.get(node.op, ())
    return states[len(node.inputs) - 1 :] if node.inputs else ()


def _reachable(nodes: Sequence[SymbolNode], heads: Sequence[Entry]) -> set[int]:
    found = {head.node for head in heads}
    waiting = list(found)
    while waiting:
        for entry in nodes[waiting.pop()].inputs:
            if entry.node not in found:
                found.add(entry.node)
                waiting.append(entry.node)
    return found


def _sorted(nodes: Sequence[SymbolNode], needed: set[int], wrong: Any) -> list[int]:
    numbers = sorted(needed)
    if all(entry.node < number for number in numbers for entry in nodes[number].inputs):
        return numbers
    readers: dict[int, list[int]] = {number: [] for number in numbers}
    for number in numbers:
        for source in {entry.node for entry in nodes[number].inputs}:
            readers[source].append(number)
    waits_for = {number: len({entry.node for entry in nodes[number].inputs}) for number in numbers}
    ready = deque(number for number in numbers if not waits_for[number])
    order: list[int] = []
    while ready:
        number = ready.popleft()
        order.append(number)
        for reader in readers[number]:
            waits_for[reader] -= 1
            if not waits_for[reader]:
                ready.append(reader)
    if len(order) < len(numbers):
        stuck = min(set(numbers) - set(order))
        raise wrong(f"node {stuck} ({nodes[stuck].name[:80]!r}) depends on itself: the graph has a cycle")
    return order
