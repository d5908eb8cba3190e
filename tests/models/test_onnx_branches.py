"""The branch of an `If` that runs, in place of the `If`."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto
from onnx.helper import make_graph, make_node, make_tensor, make_tensor_value_info

from dlbricks_tui.models.errors import UnreadableModelError
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.models.onnx.model_file import DEEPEST_NESTING
from tests.models.onnx_models import branch, floats, integers, loaded, model


def flag(name: str, value: bool) -> TensorProto:
    return make_tensor(name, TensorProto.BOOL, (), [value])


def inside(nodes: Sequence[NodeProto], output: str = "out", weights: Sequence[TensorProto] = ()) -> GraphProto:
    result = make_tensor_value_info(output, TensorProto.FLOAT, None)
    return make_graph(list(nodes), "inside", [], [result], list(weights))


def with_if(yes: GraphProto, no: GraphProto | None = None, condition: bool = True) -> ModelProto:
    nodes = [
        make_node("Relu", ["x"], ["r"], name="before"),
        branch("always", yes, no or inside([make_node("Neg", ["r"], ["out"], name="negated")]), "chosen"),
        make_node("Tanh", ["chosen"], ["y"], name="after"),
    ]
    return model(nodes, {"x": (1, 4)}, ["y"], [flag("always", condition)])


def names(graph: LayerGraph) -> list[str]:
    return [layer.name for layer in graph.layers]


def test_a_constant_condition_chooses_the_branch(tmp_path: Path) -> None:
    yes = inside([make_node("Exp", ["r"], ["e"], name="first"), make_node("Neg", ["e"], ["out"], name="second")])
    assert names(loaded(tmp_path, with_if(yes))) == ["before", "first", "second", "after"]
    graph = loaded(tmp_path, with_if(yes, condition=False))
    assert names(graph) == ["before", "negated", "after"]
    assert [layer.outputs[0].shape for layer in graph.layers] == [(1, 4)] * 3
    assert graph.predecessors == ((), (0,), (1,))


def test_a_condition_that_follows_from_fixed_shapes_chooses_the_branch(tmp_path: Path) -> None:
    nodes = [
        make_node("Shape", ["x"], ["shape"]),
        make_node("Gather", ["shape", "last"], ["width"]),
        make_node("Equal", ["width", "one"], ["is_one"]),
        branch(
            "is_one",
            inside([make_node("Squeeze", ["x", "last"], ["out"], name="squeeze")]),
            inside([make_node("Relu", ["x"], ["out"], name="keep")]),
            "y",
        ),
    ]
    for width, expected in ((1, "squeeze"), (4, "keep")):
        made = model(nodes, {"x": (1, width)}, ["y"], [integers("last", (1,)), integers("one", (1,))])
        assert names(loaded(tmp_path, made)) == [expected]


def test_the_arrays_of_a_branch_are_weights_of_its_layers(tmp_path: Path) -> None:
    yes = inside([make_node("MatMul", ["r", "w"], ["out"], name="product")], weights=[floats("w", (4, 3))])
    product = loaded(tmp_path, with_if(yes)).layers[1]
    assert [weight.shape for weight in product.weights] == [(4, 3)]
    assert product.outputs[0].shape == (1, 3)


def test_a_branch_that_returns_an_outer_tensor_copies_it(tmp_path: Path) -> None:
    graph = loaded(tmp_path, with_if(inside([], output="r")))
    assert [layer.op for layer in graph.layers] == ["relu", "identity", "tanh"]


def nested(levels: int) -> GraphProto:
    nodes = [make_node("Exp", ["r"], ["out"], name="innermost")]
    for level in range(levels):
        inner = inside(nodes)
        nodes = [branch("always", inner, inner, "out")]
        nodes[0].name = f"level{level}"
    return inside(nodes)


def test_branches_within_branches_are_chosen_down_to_the_innermost(tmp_path: Path) -> None:
    graph = loaded(tmp_path, with_if(nested(DEEPEST_NESTING - 1)))
    assert [layer.op for layer in graph.layers] == ["relu", "exp", "tanh"]


def test_an_unknown_condition_leaves_the_if_as_one_layer(tmp_path: Path) -> None:
    same = inside([make_node("Exp", ["x"], ["out"])])
    made = model([branch("open", same, same, "y")], {"x": (1, 4)}, ["y"])
    made.graph.input.append(make_tensor_value_info("open", TensorProto.BOOL, ()))
    (layer,) = loaded(tmp_path, made).layers
    assert (layer.op, layer.outputs[0].shape) == ("onnx.If", (1, 4))


def cyclic() -> GraphProto:
    return inside(
        [make_node("Add", ["r", "b"], ["a"]), make_node("Exp", ["a"], ["b"]), make_node("Neg", ["b"], ["out"])]
    )


def with_inputs() -> GraphProto:
    found = inside([make_node("Exp", ["z"], ["out"])])
    found.input.append(make_tensor_value_info("z", TensorProto.FLOAT, None))
    return found


@pytest.mark.parametrize(
    ("yes", "message"),
    [
        (cyclic(), "a branch of 'choice' has a cycle"),
        (with_inputs(), "a branch of 'choice' has inputs, which are not supported"),
        (
            inside([make_node("Exp", ["r"], ["out"]), make_node("Neg", ["r"], ["out"])]),
            "a branch of 'choice' writes a tensor twice",
        ),
        (inside([make_node("Exp", ["r"], ["out"], domain="x.y")]), "'Exp' is of the domain 'x.y', whose version .*"),
        (make_graph([], "empty", [], []), "a branch of 'choice' has another number of outputs than the node"),
    ],
)
def test_a_damaged_branch_is_refused_in_one_line(yes: GraphProto, message: str, tmp_path: Path) -> None:
    with pytest.raises(UnreadableModelError, match=f"^net: {message}"):
        loaded(tmp_path, with_if(yes))


def test_an_if_without_the_branch_that_runs_is_refused(tmp_path: Path) -> None:
    made = with_if(inside([make_node("Exp", ["r"], ["out"])]))
    del made.graph.node[1].attribute[:]
    with pytest.raises(UnreadableModelError, match=r"^net: 'choice' has no then_branch$"):
        loaded(tmp_path, made)
