"""Writes layers as a symbol file for a worker, by their native nodes."""

import json
from collections.abc import Sequence
from typing import Any

from dlbricks_tui.models.graph import NativeNode, TensorType
from dlbricks_tui.models.mxnet.symbol_document import VARIABLE, FreshNames, symbol_document


class SymbolSheet:
    """A symbol file of MXNet."""

    def __init__(self) -> None:
        self._nodes: list[dict[str, Any]] = []
        self._names = FreshNames()

    def variable(self, name: str, found: TensorType, *, learned: bool) -> int:
        """An array of that name, of whatever type."""
        self._nodes.append({"op": VARIABLE, "name": name, "inputs": []})
        return len(self._nodes) - 1

    def operator(self, native: NativeNode, name: str, inputs: Sequence[tuple[int, int]]) -> int:
        """An operator that reads these outputs."""
        node: dict[str, Any] = {"op": native.op, "name": self.fresh(name)}
        if native.attributes:
            node["attrs"] = dict(native.attributes)
        node["inputs"] = [[*entry, 0] for entry in inputs]
        if native.subgraphs:
            node["subgraphs"] = [json.loads(text) for text in native.subgraphs]
        self._nodes.append(node)
        return len(self._nodes) - 1

    def in_passing(self, entry: tuple[int, int]) -> Sequence[tuple[int, int]]:
        """The output itself: an executor shares memory between what it puts out and what it reads."""
        return (entry,)

    def text(self, heads: Sequence[tuple[int, int]]) -> str:
        """The symbol file."""
        return json.dumps(symbol_document(self._nodes, heads), separators=(",", ":"))

    def fresh(self, name: str) -> str:
        """The name, or one like it where something is called so already."""
        return self._names.take(name)
