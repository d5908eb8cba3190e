"""Excerpts of ONNX models hold a layer and its surroundings, and no names or weights."""

from itertools import islice
from pathlib import Path

import pytest
from onnx import ModelProto, TensorProto
from onnx.helper import make_graph, make_node, make_tensor_value_info

from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.share.errors import UnsuitableLayersError
from dlbricks_tui.share.suites.onnx_checks import check_network
from dlbricks_tui.share.suites.onnx_excerpts import MOST_HOPS, OnnxExcerpts
from tests.models.onnx_models import floats, loaded, model, small
from tests.models.table_framework import TableFramework

GIBIBYTE = 1 << 30


def chain(folder: Path, *ops: str, batch: int | str = 1) -> LayerGraph:
    """Return a chain of operators on one tensor."""
    names = ["x", *(f"y{number}" for number in range(len(ops)))]
    nodes = [make_node(op, [names[place]], [names[place + 1]]) for place, op in enumerate(ops)]
    return loaded(folder, model(nodes, {"x": (batch, 4)}, [names[-1]]))


def read(folder: Path, content: bytes) -> ModelProto:
    """Return the model in a file, which the other side accepts."""
    check_network(content, GIBIBYTE)
    made: ModelProto = ModelProto.FromString(content)
    return made


def ops_of(content: bytes) -> list[str]:
    return [node.op_type for node in ModelProto.FromString(content).graph.node]


def test_an_excerpt_reaches_one_layer_to_either_side_and_then_further(tmp_path: Path) -> None:
    graph = chain(tmp_path, "Relu", "Tanh", "Exp", "Sigmoid", "Sqrt")
    excerpts = OnnxExcerpts(graph, graph).around(2)
    assert [ops_of(each) for each in islice(excerpts, 2)] == [
        ["Tanh", "Exp", "Sigmoid"],
        ["Relu", "Tanh", "Exp", "Sigmoid", "Sqrt"],
    ]


def test_an_excerpt_reaches_at_most_four_layers_to_either_side(tmp_path: Path) -> None:
    graph = chain(tmp_path, *(["Relu", "Tanh"] * 10))
    contents = list(OnnxExcerpts(graph, graph).around(10))
    assert len(contents) == MOST_HOPS == 4
    assert len(ops_of(contents[-1])) == 9


def test_excerpts_have_the_shapes_of_the_model_and_the_layers_are_the_same(tmp_path: Path) -> None:
    graph = loaded(tmp_path, small())
    content = next(OnnxExcerpts(graph, graph).around(2))
    path = tmp_path / "excerpt.onnx"
    path.write_bytes(content)
    excerpt = Loader(tmp_path / "cache", TableFramework()).load(source_of(path), Level.WRITTEN)
    own = [layer for layer in excerpt.layers if layer.op != "constant"]
    assert [layer.outputs for layer in own] == [layer.outputs for layer in graph.layers[1:4]]


def test_tensors_that_others_read_stay_outputs(tmp_path: Path) -> None:
    nodes = [
        make_node("Relu", ["x"], ["a"]),
        make_node("Tanh", ["a"], ["b"]),
        make_node("Exp", ["b"], ["c"]),
        make_node("Add", ["a", "c"], ["y"]),
    ]
    graph = loaded(tmp_path, model(nodes, {"x": (1, 4)}, ["y"]))
    made = read(tmp_path, next(OnnxExcerpts(graph, graph).around(1)))
    # The relu is read by the addition too, which the excerpt lacks.
    assert [node.op_type for node in made.graph.node] == ["Relu", "Tanh", "Exp"]
    assert [output.name for output in made.graph.output] == [
        made.graph.node[0].output[0],
        made.graph.node[2].output[0],
    ]


def test_an_excerpt_of_a_model_with_open_axes_is_also_tried_with_open_axes(tmp_path: Path) -> None:
    graph = chain(tmp_path, "Relu", "Tanh", "Exp", batch="batch")
    fixed, opened = (ModelProto.FromString(each) for each in islice(OnnxExcerpts(graph, graph).around(1), 2))
    axes = [it.graph.input[0].type.tensor_type.shape.dim for it in (fixed, opened)]
    assert [axis.dim_value for axis in axes[0]] == [1, 4]
    assert all(axis.dim_param.startswith("axis") for axis in axes[1])


def test_a_model_with_a_branch_cannot_be_cut(tmp_path: Path) -> None:
    inside = make_graph(
        [make_node("Relu", ["x"], ["r"])], "i", [], [make_tensor_value_info("r", TensorProto.FLOAT, ())]
    )
    other = make_graph([make_node("Tanh", ["x"], ["t"])], "o", [], [make_tensor_value_info("t", TensorProto.FLOAT, ())])
    nodes = [
        make_node("ReduceSum", ["x"], ["s"], keepdims=0),
        make_node("Cast", ["s"], ["c"], to=TensorProto.BOOL),
        make_node("If", ["c"], ["y"], then_branch=inside, else_branch=other),
    ]
    graph = loaded(tmp_path, model(nodes, {"x": (1, 4)}, ["y"]))
    with pytest.raises(UnsuitableLayersError, match="branches"):
        OnnxExcerpts(graph, graph)


def test_weights_do_not_travel(tmp_path: Path) -> None:
    nodes = [make_node("Gemm", ["x", "w"], ["a"], transB=1), make_node("Relu", ["a"], ["y"])]
    graph = loaded(tmp_path, model(nodes, {"x": (1, 4)}, ["y"], [floats("w", (3, 4))]))
    made = read(tmp_path, next(OnnxExcerpts(graph, graph).around(0)))
    assert "ConstantOfShape" in [node.op_type for node in made.graph.node]
    assert not any(0.5 in list(array.float_data) for array in made.graph.initializer)
