"""Fused layers from a list of executed nodes."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from onnx.helper import make_node

from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.models.errors import FusionRefusedError
from dlbricks_tui.models.graph import Feed, LayerGraph, Level
from dlbricks_tui.models.onnx.layer_graph import executed_graph
from dlbricks_tui.models.onnx.writer import whole_model
from tests.models.onnx_models import floats, loaded, model, small

PLAIN, CHANNELS_LAST = "abcd", "acdb"


def node(
    kind: str, layers: Sequence[int], *reads: int | None, layout: str = CHANNELS_LAST, leaves: bool = False
) -> dict[str, Any]:
    """Return an executed node; `layers` are written layers."""
    return {
        "kind": kind,
        "kernel": "jit",
        "layout": layout,
        "dtype": "f32",
        "reads": reads,
        "leaves": leaves,
        "layers": layers,
    }


def fused(written: LayerGraph, executed: Sequence[dict[str, Any]]) -> LayerGraph:
    owners = whole_model(written).owners
    numbers = {layer: number for number, layer in owners.items()}
    document = [{**it, "numbers": [numbers[layer] for layer in it["layers"]]} for it in executed]
    return executed_graph(written, owners, json.dumps(document))


SMALL = (
    node("Reorder", (), None),
    node("Convolution", (0, 1), 0),
    node("Reduce", (2,), 1),
    node("Reorder", (), 2, layout=PLAIN),
    node("Reshape", (3,), 3, layout="ab"),
    node("FullyConnected", (4,), 4, layout="ab", leaves=True),
)


def test_written_layers_behind_one_executed_node_are_one_layer(tmp_path: Path) -> None:
    written = loaded(tmp_path, small())
    found = fused(written, SMALL)
    assert [layer.op for layer in found.layers] == [
        "openvino.Reorder",
        "conv+relu",
        "global_mean_pool",
        "openvino.Reorder",
        "reshape",
        "linear",
    ]
    assert found.level is Level.FUSED
    assert [layer.name for layer in found.layers][:4] == ["x as acdb", "conv1", "pool", "pool as abcd"]
    assert [layer.nodes for layer in found.layers if layer.nodes] == [(0, 1), (2,), (3,), (4,)]
    assert [layer.feeds for layer in found.layers] == [
        (Feed(None, 0),),
        *[(Feed(before, 0),) for before in range(5)],
    ]
    assert found.heads == (Feed(5, 0),)
    assert found.inputs == written.inputs
    assert found.weight_bytes == written.weight_bytes


def test_layers_of_other_kernels_or_layouts_are_other_bricks(tmp_path: Path) -> None:
    written = loaded(tmp_path, small())
    found = fused(written, SMALL)
    other_layout = [node("Reorder", (), None, layout="aBcd16b"), *SMALL[1:]]
    other_kernel = [SMALL[0], {**SMALL[1], "kernel": "ref"}, *SMALL[2:]]
    key = brick_of(found, (1,)).key
    assert brick_of(fused(written, SMALL), (1,)).key == key
    assert brick_of(fused(written, other_layout), (1,)).key != key
    assert brick_of(fused(written, other_kernel), (1,)).key != key


def test_layers_that_an_executed_node_computes_in_turns_stay_one_layer(tmp_path: Path) -> None:
    """A group that reads its own result through another layer would be a cycle."""
    nodes = [make_node("Relu", ["x"], ["a"]), make_node("Sqrt", ["a"], ["b"]), make_node("Add", ["a", "b"], ["y"])]
    written = loaded(tmp_path, model(nodes, {"x": (1, 4)}, ["y"]))
    found = fused(written, [node("Eltwise", (0, 2), None, leaves=True), node("Eltwise", (1,), 0)])
    assert [layer.nodes for layer in found.layers] == [(0, 1, 2)]


def test_a_conversion_serves_only_its_readers(tmp_path: Path) -> None:
    nodes = [
        make_node("Conv", ["x", "w"], ["c"], name="conv"),
        make_node("Relu", ["c"], ["r"]),
        make_node("Sqrt", ["c"], ["s"]),
    ]
    written = loaded(tmp_path, model(nodes, {"x": (1, 3, 8, 8)}, ["r", "s", "c"], [floats("w", (4, 3, 1, 1))]))
    found = fused(
        written,
        [
            node("Convolution", (0,), None),
            node("Reorder", (), 0, layout=PLAIN, leaves=True),
            node("Eltwise", (1,), 1, layout=PLAIN, leaves=True),
            node("Eltwise", (2,), 0, leaves=True),
        ],
    )
    names = {layer.name: layer for layer in found.layers}
    conversion = names["conv as abcd"].index
    relu, root = (next(layer for layer in found.layers if layer.op == op) for op in ("relu", "sqrt"))
    assert relu.feeds == (Feed(conversion, 0),)
    assert root.feeds == (Feed(names["conv"].index, 0),)
    assert found.heads == (Feed(relu.index, 0), Feed(root.index, 0), Feed(conversion, 0))


# The first node reads the second.
AHEAD = json.dumps([{**node("Reorder", (), 1), "numbers": ()}])


@pytest.mark.parametrize("text", ["", "{", "[1]", '[{"kind": "Relu"}]', AHEAD, '{"a": 1}'])
def test_a_damaged_answer_is_refused_in_one_line(text: str, tmp_path: Path) -> None:
    written = loaded(tmp_path, small())
    with pytest.raises(FusionRefusedError, match="list of executed nodes is damaged"):
        executed_graph(written, whole_model(written).owners, text)
