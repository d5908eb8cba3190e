"""Shapes that are suggested for inputs whose sizes a file leaves open."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from onnx import NodeProto, TensorProto
from onnx.helper import make_node

from dlbricks_tui.models.errors import MissingShapeError
from dlbricks_tui.models.onnx.inputs import Axes
from dlbricks_tui.models.onnx.model_file import parse_onnx
from dlbricks_tui.models.onnx.suggestions import candidates, implied_axes
from tests.models.onnx_models import floats, integers, loaded, model, of_a_detector

LSTM_WEIGHTS = [floats("w", (2, 32, 3)), floats("r", (2, 32, 8)), integers("zero", [0])]


def lstm(data: str, state: str, layout: int = 0) -> NodeProto:
    return make_node("LSTM", [data, "w", "r", "", "", state, state], ["y"], hidden_size=8, layout=layout)


def implied(
    nodes: Sequence[NodeProto], weights: Sequence[TensorProto], inputs: Mapping[str, Sequence[int | None] | None]
) -> dict[str, Axes | None]:
    made = model(nodes, {name: axes or () for name, axes in inputs.items()}, [nodes[-1].output[0]], weights)
    for declared in made.graph.input:
        if inputs[declared.name] is None:
            declared.type.tensor_type.ClearField("shape")
    return implied_axes(parse_onnx(made.SerializeToString(), "net"))


def test_a_recurrent_layer_tells_the_sizes_of_its_state() -> None:
    inputs = {"x": [None, None, None], "state": [None, None, None]}
    axes = {"x": ["", "batch", 3], "state": [2, "batch", 8]}
    assert implied([lstm("x", "state")], LSTM_WEIGHTS, inputs) == axes
    assert implied([lstm("x", "state")], LSTM_WEIGHTS, {"x": None, "state": None}) == axes
    found = implied([lstm("x", "state", layout=1)], LSTM_WEIGHTS, inputs)
    assert found == {"x": ["batch", "", 3], "state": ["batch", 2, 8]}


@pytest.mark.parametrize(
    ("before", "declared", "axes"),
    [
        ([make_node("Transpose", ["s"], ["state"], perm=[1, 0, 2])], [None] * 3, ["batch", 2, 8]),
        ([make_node("Gather", ["s", "first"], ["state"])], [4, None, None, None], [4, 2, "batch", 8]),
        ([make_node("Unsqueeze", ["s", "zero"], ["state"])], [None, None], ["batch", 8]),
        ([make_node("Squeeze", ["s", "zero"], ["state"])], [1, None, None, None], [1, 2, "batch", 8]),
        ([make_node("Split", ["s"], ["state", "other"], axis=2)], [2, None, 16], [2, "batch", 16]),
        ([make_node("Slice", ["s", "zero", "zero", "zero"], ["state"])], [None] * 3, ["", "batch", 8]),
        ([make_node("Cast", ["s"], ["state"], to=TensorProto.FLOAT)], [None] * 3, [2, "batch", 8]),
    ],
)
def test_sizes_are_followed_through_operators_that_move_axes(
    before: Sequence[NodeProto], declared: Sequence[int | None], axes: Axes
) -> None:
    first = floats("first", ())
    found = implied([*before, lstm("x", "state")], [*LSTM_WEIGHTS, first], {"x": [5, 1, 3], "s": declared})
    assert found["s"] == axes


@pytest.mark.parametrize(
    ("node", "weight", "declared", "axes"),
    [
        (make_node("Conv", ["x", "v"], ["y"], group=2), (8, 3, 5), None, ["batch", 6, ""]),
        (make_node("ConvTranspose", ["x", "v"], ["y"]), (8, 3, 5, 5), [None] * 4, ["batch", 8, "", ""]),
        (make_node("Gemm", ["x", "v"], ["y"], transB=1), (8, 3), None, ["batch", 3]),
        (make_node("MatMul", ["x", "v"], ["y"]), (8, 3), [None] * 3, ["", "", 8]),
        (make_node("Add", ["x", "v"], ["y"]), (1, 7, 3), [None] * 4, ["", "", 7, 3]),
        (make_node("MatMul", ["x", "v"], ["y"]), (8, 3), None, None),
    ],
)
def test_weights_tell_the_sizes_of_what_they_are_applied_to(
    node: NodeProto, weight: Sequence[int], declared: Sequence[int | None] | None, axes: Axes | None
) -> None:
    assert implied([node], [floats("v", weight)], {"x": declared}) == {"x": axes}


def test_declared_sizes_and_names_stay() -> None:
    axes = implied([make_node("MatMul", ["x", "v"], ["y"])], [floats("v", (8, 3))], {"x": [None, 5]})
    assert axes == {"x": ["", 5]}


def test_without_a_runtime_the_suggestions_come_from_the_graph(tmp_path: Path) -> None:
    with pytest.raises(MissingShapeError) as refusal:
        loaded(tmp_path, of_a_detector())
    assert refusal.value.examples == {"input": (1, 128), "state": (2, 1, 128)}
    assert not refusal.value.tried


def test_candidates_differ_and_keep_the_sizes_that_are_known() -> None:
    asked: dict[str, Axes | None] = {"x": ["", "", 80], "image": ["batch", 3, "", ""]}
    found = list(candidates(asked))
    assert found[:3] == [
        {"x": (1, 128, 80), "image": (1, 3, 224, 224)},
        {"x": (1, 1, 80), "image": (1, 3, 224, 224)},
        {"x": (1, 256, 80), "image": (1, 3, 256, 256)},
    ]
    assert len({repr(it) for it in found}) == len(found)
    assert {len(it["x"]) for it in candidates({"x": None})} == {0, 1, 2, 3, 4}
