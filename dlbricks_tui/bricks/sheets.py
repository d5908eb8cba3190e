"""What programs are written on: one implementation for each format of models."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from dlbricks_tui.models.graph import LayerGraph, NativeNode, TensorType
from dlbricks_tui.models.onnx.native import plain_native, version_among
from dlbricks_tui.models.onnx.writer import OnnxSheet
from dlbricks_tui.runtime.runtime import Format

# The oldest version of symbol files whose format is today's.
FORMAT_VERSION = 10500
VARIABLE = "null"
# The version of ONNX's operators that brought it.
_ERF_SINCE = 9


class Entry(NamedTuple):
    """One output of a node that has been written."""

    node: int
    output: int


class Sheet(Protocol):
    """Collects the nodes of one network; a node is known by its number."""

    def fresh(self, name: str) -> str:
        """The name, or one like it where something is called so already."""

    def variable(self, name: str, found: TensorType, *, learned: bool) -> int:
        """An array of that name."""

    def operator(self, native: NativeNode, name: str, inputs: Sequence[Entry]) -> int:
        """An operator that reads these outputs; `name` is what people call its layer."""

    def in_passing(self, entry: Entry) -> Sequence[tuple[int, int]]:
        """What to put out so that an output is made as inside of a model, where nobody takes it away."""

    def text(self, heads: Sequence[Entry]) -> str:
        """The network that puts these out, as a worker takes it."""


def sheet_for(form: Format) -> Sheet:
    """An empty sheet for native nodes of that format."""
    return OnnxSheet() if form is Format.ONNX else SymbolSheet()


def plain_copy(form: Format) -> NativeNode:
    """An operator that copies an array."""
    return plain_native("Identity") if form is Format.ONNX else NativeNode("_copy")


def copy_of(graph: LayerGraph, dtype: str) -> NativeNode:
    """An operator that copies an array whose values are all positive, with all cores and in its layout if it can."""
    if "float" not in dtype:
        return plain_copy(graph.format)
    if graph.format is Format.ONNX:
        return plain_native(_costly_operator(graph) if dtype == "float32" else "Relu")
    # MXNet's own copy gives a tensor the plain layout.
    return NativeNode("Activation", (("act_type", "relu"),))


def _costly_operator(graph: LayerGraph) -> str:
    """Quick operators leave small tensors to one core, and the others find nothing in their caches."""
    version = version_among(operator.native for layer in graph.layers for operator in layer.operators)
    # ONNX Runtime takes no other of the older ones to be so costly.
    return "Erf" if version is None or version >= _ERF_SINCE else "Elu"


class SymbolSheet:
    """A symbol file of MXNet."""

    def __init__(self) -> None:
        self._nodes: list[dict[str, Any]] = []
        self._names: set[str] = set()

    def variable(self, name: str, found: TensorType, *, learned: bool) -> int:
        """An array of that name, of whatever type."""
        self._nodes.append({"op": VARIABLE, "name": name, "inputs": []})
        return len(self._nodes) - 1

    def operator(self, native: NativeNode, name: str, inputs: Sequence[Entry]) -> int:
        """An operator that reads these outputs."""
        node: dict[str, Any] = {"op": native.op, "name": self.fresh(name)}
        if native.attributes:
            node["attrs"] = dict(native.attributes)
        node["inputs"] = [[*entry, 0] for entry in inputs]
        if native.subgraphs:
            node["subgraphs"] = [json.loads(text) for text in native.subgraphs]
        self._nodes.append(node)
        return len(self._nodes) - 1

    def in_passing(self, entry: Entry) -> Sequence[Entry]:
        """The output itself: an executor shares memory between what it puts out and what it reads."""
        return (entry,)

    def text(self, heads: Sequence[Entry]) -> str:
        """The symbol file."""
        document = {
            "nodes": self._nodes,
            "arg_nodes": [number for number, node in enumerate(self._nodes) if node["op"] == VARIABLE],
            "node_row_ptr": list(range(len(self._nodes) + 1)),
            "heads": [[*entry, 0] for entry in heads],
            "attrs": {"mxnet_version": ["int", FORMAT_VERSION]},
        }
        return json.dumps(document, separators=(",", ":"))

    def fresh(self, name: str) -> str:
        """The name, or one like it where something is called so already."""
        candidate, count = name, 1
        while candidate in self._names:
            count += 1
            candidate = f"{name}_{count}"
        self._names.add(candidate)
        return candidate
