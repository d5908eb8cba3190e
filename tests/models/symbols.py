"""Symbol files written by hand, in the form of any version."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import LayerGraph

Node = dict[str, Any]
Document = dict[str, Any]


def node(op: str, name: str, *inputs: int | tuple[int, int], **attributes: str) -> Node:
    """Return a node of today's format; an input is a node, or a node and the number of an output."""
    entries = [[source, 0, 0] if isinstance(source, int) else [*source, 0] for source in inputs]
    made: Node = {"op": op, "name": name, "inputs": entries}
    return made | {"attrs": attributes} if attributes else made


def refusal(read: Callable[[], object]) -> str:
    """Return the line with which a model is refused."""
    with pytest.raises(ModelError) as refused:
        read()
    message = str(refused.value)
    assert "\n" not in message
    assert 0 < len(message) < 1_000
    return message


def variable(name: str, **attributes: str) -> Node:
    """Return an input or a weight."""
    return node("null", name, **attributes)


def document(nodes: Sequence[Node], *heads: int | tuple[int, int], version: int | None = 10901) -> Document:
    """Return a file of these nodes; without heads, the last node is the head."""
    entries = [[head, 0, 0] if isinstance(head, int) else [*head, 0] for head in heads or (len(nodes) - 1,)]
    made: Document = {
        "nodes": list(nodes),
        "arg_nodes": [number for number, it in enumerate(nodes) if isinstance(it, dict) and it.get("op") == "null"],
        "heads": entries,
    }
    return made if version is None else made | {"attrs": {"mxnet_version": ["int", version]}}


def content(nodes: Sequence[Node], *heads: int | tuple[int, int], version: int | None = 10901) -> bytes:
    """Return the bytes of that file."""
    return json.dumps(document(nodes, *heads, version=version)).encode()


def shared_layers(one: LayerGraph, other: LayerGraph) -> tuple[tuple[int, ...], ...]:
    """Return for each layer of `one` the layers of `other` that stand for some of the same nodes."""
    owner = {node: layer.index for layer in other.layers for node in layer.nodes}
    return tuple(tuple(sorted({owner[node] for node in layer.nodes if node in owner})) for layer in one.layers)


def small_network(data: str = "data", prefix: str = "") -> list[Node]:
    """Return convolution, batch norm, relu, a residual sum, pooling, a classifier and its loss, as MXNet 1.x writes
    them.
    """
    return [
        variable(data),
        variable(f"{prefix}conv0_weight"),
        variable(f"{prefix}conv0_bias"),
        node("Convolution", f"{prefix}conv0", 0, 1, 2, kernel="(3, 3)", num_filter="8", pad="(1, 1)", stride="(1, 1)"),
        variable(f"{prefix}bn0_gamma"),
        variable(f"{prefix}bn0_beta"),
        variable(f"{prefix}bn0_moving_mean"),
        variable(f"{prefix}bn0_moving_var"),
        node("BatchNorm", f"{prefix}bn0", 3, 4, 5, 6, 7, eps="0.001", fix_gamma="False"),
        node("Activation", f"{prefix}relu0", 8, act_type="relu"),
        node("elemwise_add", f"{prefix}sum0", 9, 3),
        node("Pooling", f"{prefix}pool0", 10, kernel="(2, 2)", stride="(2, 2)", pool_type="max"),
        node("Flatten", f"{prefix}flat0", 11),
        variable(f"{prefix}fc0_weight"),
        variable(f"{prefix}fc0_bias"),
        node("FullyConnected", f"{prefix}fc0", 12, 13, 14, num_hidden="10"),
        variable(f"{prefix}softmax_label"),
        node("SoftmaxOutput", f"{prefix}softmax", 15, 16),
    ]
