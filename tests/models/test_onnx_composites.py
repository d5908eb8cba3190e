"""ONNX nodes whose metadata calls them one layer."""

from pathlib import Path

import pytest
from onnx import NodeProto
from onnx.helper import make_node

from dlbricks_tui.models.errors import UnreadableModelError
from dlbricks_tui.models.graph import Feed, Origin, TensorType, Wire
from dlbricks_tui.models.kinds import Kind
from tests.models.onnx_models import floats, integers, loaded, model


def node(op: str, inputs: list[str], output: str, **said: str) -> NodeProto:
    """Return a node with metadata such as `__layer__`."""
    made = make_node(op, inputs, [output], output)
    for key, value in said.items():
        made.metadata_props.add(key=f"__{key}__", value=value)
    return made


def test_nodes_with_one_layer_name_form_one_layer(tmp_path: Path) -> None:
    squash = {"layer": "squash", "kind": "elementwise"}
    nodes = [
        node("Sqrt", ["data"], "a", **squash),
        node("Mul", ["data", "scale"], "b", **squash),
        node("Div", ["a", "b"], "c", **squash),
        node("Add", ["c", "scale"], "after"),
    ]
    graph = loaded(tmp_path, model(nodes, {"data": (1, 8)}, ["after"], [floats("scale", (1, 8))]))
    layer, after = graph.layers
    assert (layer.name, layer.kind, layer.op) == ("squash", Kind.ELEMENTWISE, "sqrt+mul+div")
    assert [it.inputs for it in layer.operators] == [
        (Wire(Origin.DATA, 0),),
        (Wire(Origin.DATA, 0), Wire(Origin.WEIGHT, 0)),
        (Wire(Origin.OPERATOR, 0), Wire(Origin.OPERATOR, 1)),
    ]
    assert (layer.feeds, layer.weights) == ((Feed(None, 0),), (TensorType((1, 8)),))
    assert (layer.results, layer.nodes) == ((Wire(Origin.OPERATOR, 2),), (0, 1, 2))
    assert (after.name, after.feeds, after.index) == ("after", (Feed(0, 0),), 1)
    # Both layers read the same array.
    assert layer.array(0) == after.array(0)


def test_a_repeated_layer_stands_for_all_repetitions(tmp_path: Path) -> None:
    twice = {"layer": "step", "times": "2"}
    nodes = [
        node("Exp", ["data"], "a", **twice),
        node("Relu", ["a"], "b", **twice),
        node("Exp", ["b"], "c", **twice),
        node("Relu", ["c"], "d", **twice),
        node("Sqrt", ["d"], "after"),
    ]
    step, after = loaded(tmp_path, model(nodes, {"data": (1, 8)}, ["after"])).layers
    assert (step.name, step.times, step.op, step.nodes) == ("step", 2, "exp+relu", (0, 1, 2, 3))
    assert after.feeds == (Feed(0, 0),)


def test_an_operator_on_a_stored_vector_is_a_layer_if_the_file_calls_it_one(tmp_path: Path) -> None:
    def layers(**said: str) -> list[str]:
        nodes = [node("Reshape", ["vector", "shape"], "wide", **said), node("Add", ["data", "wide"], "sum")]
        made = model(nodes, {"data": (1, 8)}, ["sum"], [floats("vector", (8,)), integers("shape", (1, 8))])
        return [layer.name for layer in loaded(tmp_path, made).layers]

    assert layers() == ["sum"]
    assert layers(layer="widen") == ["widen", "sum"]


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"layer": "x", "kind": "fast"}, "has __kind__ 'fast'; it must be one of convolution"),
        ({"layer": "x", "times": "3"}, "has 2 operators, which is not 3 times the same"),
        ({"layer": "x", "times": "2"}, "is repeated 2 times, but its repetitions differ"),
        ({"times": "2"}, "has __times__ but no __layer__ to repeat"),
    ],
)
def test_metadata_that_describes_no_layer_is_refused_in_one_line(
    said: dict[str, str], reason: str, tmp_path: Path
) -> None:
    nodes = [node("Exp", ["data"], "a", **said), node("Relu", ["a"], "b", **said)]
    with pytest.raises(UnreadableModelError) as caught:
        loaded(tmp_path, model(nodes, {"data": (1, 8)}, ["b"]))
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)


def test_layers_that_read_one_another_are_refused(tmp_path: Path) -> None:
    nodes = [
        node("Exp", ["data"], "a", layer="x"),
        node("Relu", ["a"], "b"),
        node("Sqrt", ["b"], "c", layer="x"),
    ]
    with pytest.raises(UnreadableModelError, match="is part of a cycle of layers"):
        loaded(tmp_path, model(nodes, {"data": (1, 8)}, ["c"]))
