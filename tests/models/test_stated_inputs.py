"""Shapes and values of inputs in the metadata of ONNX files."""

from pathlib import Path

import pytest
from onnx import ModelProto
from onnx.helper import make_node

from dlbricks_tui.models.errors import UnreadableModelError
from dlbricks_tui.models.graph import GraphInput, TensorType
from dlbricks_tui.models.onnx.inputs import KEY, stated_inputs, stating
from tests.models.onnx_models import loaded, model

INPUTS = {
    "input0": GraphInput("x", TensorType((4, 8))),
    "input1": GraphInput("rate", TensorType((1,), "int64"), (16000,)),
}


def stated(text: str) -> ModelProto:
    made = model([make_node("Relu", ["x"], ["y"])], {"x": ("batch", "length")}, ["y"])
    made.metadata_props.add(key=KEY, value=text)
    return made


def test_what_is_written_is_read() -> None:
    found = stated_inputs({KEY: stating(INPUTS)})
    assert found.shapes == {"input0": (4, 8), "input1": (1,)}
    assert found.values == {"input1": (16000,)}
    assert stated_inputs({"author": "ada"}) == ({}, {})


def test_a_file_may_state_the_sizes_of_its_open_axes(tmp_path: Path) -> None:
    graph = loaded(tmp_path, stated('{"x": {"shape": [4, 8]}}'))
    assert graph.inputs[0].type.shape == (4, 8)
    assert graph.batch_size == 4


def test_a_given_shape_counts_more_than_a_stated_one(tmp_path: Path) -> None:
    graph = loaded(tmp_path, stated('{"x": {"shape": [4, 8]}}'), {"x": (2, 3)})
    assert graph.inputs[0].type.shape == (2, 3)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "no JSON",
        '{"x": 1}',
        '{"x": {"shape": "4x8"}}',
        '{"x": {"shape": [4, true]}}',
        '{"x": {"shape": [4, -1]}}',
        '{"x": {"shape": [4, 1e9]}}',
        '{"x": {"value": []}}',
        '{"x": {"value": ["1"]}}',
        '{"x": {"value": [' + "1," * 2000 + "1]}}",
        "[" * 100_000,
        '{"x": {"shape": [' + "9" * 2_000_000 + "]}}",
    ],
)
def test_metadata_in_another_form_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(UnreadableModelError, match="does not state shapes and values"):
        loaded(tmp_path, stated(text))
