"""Writes symbol files of MXNet, without MXNet."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dlbricks_tui.models.graph import NativeNode, TensorType

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


def symbol_document(nodes: Sequence[dict[str, Any]], heads: Sequence[tuple[int, int]]) -> dict[str, Any]:
    """Return a symbol file with these nodes and these heads (node, output)."""
    return {
        "nodes": nodes,
        "arg_nodes": [number for number, node in enumerate(nodes) if node["op"] == VARIABLE],
        "node_row_ptr": list(range(len(nodes) + 1)),
        "heads": [[*head, 0] for head in heads],
        "attrs": {"mxnet_version": ["int", FORMAT_VERSION]},
    }


# The weights that an operator expects after its data, in MXNet's order.
LEARNED_INPUTS: Mapping[str, tuple[str, ...]] = {
    "Convolution": ("weight", "bias"),
    "Deconvolution": ("weight", "bias"),
    "FullyConnected": ("weight", "bias"),
    "BatchNorm": ("gamma", "beta", "moving_mean", "moving_var"),
    "InstanceNorm": ("gamma", "beta"),
    "LayerNorm": ("gamma", "beta"),
    "Embedding": ("weight",),
}
BIAS_IS_LEFT_OUT_BY_DEFAULT = frozenset({"Deconvolution"})

ParamValue = bool | int | float | str | Sequence[int]


@dataclass(frozen=True, slots=True)
class Output:
    """One output of an operator or of a variable."""

    node: int
    index: int = 0


@dataclass(frozen=True, slots=True)
class _LayerScope:
    name: str
    kind: str
    times: int


class SymbolWriter:
    """Collects the nodes of one network and renders them as a symbol file."""

    def __init__(self) -> None:
        self._nodes: list[dict[str, object]] = []
        self._scope: _LayerScope | None = None
        self._names = FreshNames()

    def input(self, name: str, shape: Sequence[int]) -> Output:
        """Write a data input with its shape, batch first."""
        return self.variable(name, shape)

    def variable(self, name: str, shape: Sequence[int] | None = None) -> Output:
        """Write a weight or an input; inside a `layer` block it becomes a layer."""
        attributes = dict(self._layer_attributes())
        if shape is not None:
            attributes["__shape__"] = _literal(tuple(shape))
        return self._node(VARIABLE, name, (), attributes)

    def learned(self, role: str, shape: Sequence[int]) -> Output:
        """Write a weight of the next operator, named for its role in the current layer. It is never a layer."""
        name = f"{self._scope.name}_{role}" if self._scope else role
        return self._node(VARIABLE, name, (), {"__shape__": _literal(tuple(shape))})

    def op(self, op: str, *inputs: Output, **params: ParamValue) -> Output:
        """Write an operator with its weights and return its first output."""
        name = self._names.take(self._scope.name if self._scope else op.lower())
        learned = LEARNED_INPUTS.get(op, ())
        if params.get("no_bias", op in BIAS_IS_LEFT_OUT_BY_DEFAULT):
            learned = tuple(role for role in learned if role != "bias")
        weights = [self._node(VARIABLE, f"{name}_{role}", (), {}) for role in learned]
        attributes = {key: _literal(value) for key, value in params.items()}
        return self._node(op, name, (*inputs, *weights), attributes | self._layer_attributes())

    @contextmanager
    def layer(self, name: str, kind: str, times: int = 1) -> Iterator[None]:
        """Let all operators within the block belong to one layer of that name and kind."""
        outer, self._scope = self._scope, _LayerScope(name, kind, times)
        try:
            yield
        finally:
            self._scope = outer

    def render(self, *heads: Output) -> bytes:
        """Return the symbol file; equal calls give equal bytes."""
        return symbol_file(symbol_document(self._nodes, [(head.node, head.index) for head in heads]))

    def _layer_attributes(self) -> dict[str, str]:
        if self._scope is None:
            return {}
        attributes = {"__layer__": self._scope.name, "__kind__": self._scope.kind}
        if self._scope.times > 1:
            attributes["__times__"] = str(self._scope.times)
        return attributes

    def _node(self, op: str, name: str, inputs: Sequence[Output], attributes: Mapping[str, str]) -> Output:
        node: dict[str, object] = {"op": op, "name": self._names.take(name) if op == VARIABLE else name}
        if attributes:
            node["attrs"] = dict(attributes)
        node["inputs"] = [[source.node, source.index, 0] for source in inputs]
        self._nodes.append(node)
        return Output(len(self._nodes) - 1)


def symbol_file(document: Mapping[str, Any]) -> bytes:
    """Return a symbol file with one node per line, so that it is small and has readable diffs."""
    compact = {key: json.dumps(value, separators=(",", ":")) for key, value in document.items()}
    compact["nodes"] = "[\n" + ",\n".join(json.dumps(n, separators=(",", ":")) for n in document["nodes"]) + "\n]"
    body = ",\n".join(f'"{key}":{value}' for key, value in compact.items())
    return f"{{\n{body}\n}}\n".encode()


def _literal(value: ParamValue) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, int, float)):
        return repr(value)
    items = [repr(item) for item in value]
    return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"


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
        node: dict[str, Any] = {"op": native.op, "name": self.fresh(name)}
        if native.attributes:
            node["attrs"] = dict(native.attributes)
        node["inputs"] = [[*entry, 0] for entry in inputs]
        if native.subgraphs:
            node["subgraphs"] = [json.loads(text) for text in native.subgraphs]
        self._nodes.append(node)
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
