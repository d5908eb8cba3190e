"""Matches the nodes of a fused graph with the layers of the model as written, by names."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.models.onnx.model_file import OnnxFile

if TYPE_CHECKING:
    from onnx import NodeProto

# What ONNX Runtime appends to the name of a node or tensor for the node that replaces it.
_APPENDED = re.compile(r"(_nchwc|_token_\d+|/\w+Fusion/?)$")


def written_layers_behind(file: OnnxFile, written: LayerGraph, original: OnnxFile) -> list[list[int]]:
    """Return for each node the written layers behind it, with the one that names it last.

    ONNX Runtime keeps the names of tensors and nodes, or names a node after one: that gives the layer. Written layers
    before it that no node is named after were merged into it.
    """
    owners = _owners(written, original)
    named = [_named_for(node, owners) for node in file.nodes]
    taken = {index for index in named if index is not None}
    found: list[list[int]] = []
    for index in named:
        merged: list[int] = []
        waiting = [] if index is None else [*written.predecessors[index]]
        while waiting:
            before = waiting.pop()
            if before not in taken:
                taken.add(before)
                merged.append(before)
                waiting += written.predecessors[before]
        found.append([] if index is None else [*sorted(merged), index])
    return found


def _owners(written: LayerGraph, original: OnnxFile) -> dict[str, int]:
    """Return the written layer of each tensor, and of each node whose name no tensor has."""
    nodes = [(layer.index, original.nodes[number]) for layer in written.layers for number in layer.nodes]
    names = {node.name: index for index, node in nodes if node.name}
    return names | {name: index for index, node in nodes for name in node.output if name}


def _named_for(node: "NodeProto", owners: Mapping[str, int]) -> int | None:
    for name in (*node.output, node.name):
        before = ""
        while name and name != before:
            if name in owners:
                return owners[name]
            before, name = name, _APPENDED.sub("", name)
    return None
