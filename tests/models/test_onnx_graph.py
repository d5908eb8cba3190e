"""The layers of an ONNX model, and the branch of an `If` that runs, in place of the `If`."""

from base64 import b64decode
from collections.abc import Sequence
from pathlib import Path

import pytest
from onnx import GraphProto, ModelProto, NodeProto, TensorProto
from onnx.helper import make_graph, make_node, make_tensor, make_tensor_value_info

from benchmarks.onnx_models import USUAL, encoder
from dlbricks_tui.bricks.decomposition import Cutting, decompose
from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.bricks.programs import model_program
from dlbricks_tui.estimate.features import features_of
from dlbricks_tui.models.errors import UnreadableModelError
from dlbricks_tui.models.graph import Feed, LayerGraph, Level, TensorType
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.models.onnx_file import DEEPEST_NESTING
from tests.models.onnx_models import (
    LIGHT,
    branch,
    floats,
    integers,
    loaded,
    model,
    saved,
    small,
    with_everything,
    written,
)
from tests.models.table_framework import TableFramework


def ops(graph: LayerGraph) -> list[str]:
    return [layer.op for layer in graph.layers]


def names(graph: LayerGraph) -> list[str]:
    return [layer.name for layer in graph.layers]


def test_each_node_is_a_layer_with_its_shapes(tmp_path: Path) -> None:
    graph = loaded(tmp_path, small())
    assert ops(graph) == ["conv", "relu", "global_mean_pool", "reshape", "linear"]
    assert [layer.kind for layer in graph.layers][::4] == [Kind.CONVOLUTION, Kind.LINEAR]
    assert [layer.outputs[0].shape for layer in graph.layers] == [(1, 8, 16, 16)] * 2 + [(1, 8, 1, 1), (1, 8), (1, 10)]
    assert graph.edges == ((0, 1), (1, 2), (2, 3), (3, 4))
    assert graph.level is Level.WRITTEN


def test_results_of_weights_and_shapes_alone_are_not_layers(tmp_path: Path) -> None:
    nodes = [
        make_node("ConstantOfShape", ["sizes"], ["w"], value=make_tensor("v", TensorProto.FLOAT, (1,), (0.5,))),
        make_node("Unsqueeze", ["bias", "axes"], ["wide"]),
        make_node("Conv", ["x", "w"], ["c"], name="conv"),
        make_node("Add", ["c", "wide"], ["a"], name="add"),
        make_node("Shape", ["a"], ["shape"]),
        make_node("Gather", ["shape", "first"], ["batch"], axis=0),
        make_node("Concat", ["batch", "rest"], ["target"], axis=0),
        make_node("Reshape", ["a", "target"], ["y"], name="flat"),
    ]
    values = {"sizes": (8, 3, 1, 1), "axes": (1, 2), "first": (0,), "rest": (-1,)}
    weights = [floats("bias", (8,)), *(integers(name, numbers) for name, numbers in values.items())]
    graph = loaded(tmp_path, model(nodes, {"x": (2, 3, 4, 4)}, ["y"], weights))
    assert names(graph) == ["conv", "add", "flat"]
    conv, add, flat = graph.layers
    assert conv.weights[0].shape == (8, 3, 1, 1)
    assert add.weights[0].shape == (8, 1, 1)
    assert (flat.op, flat.outputs[0].shape, flat.weights) == ("reshape", (2, 128), ())


def test_subgraphs_have_the_same_form_in_each_format(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(bytes(16))
    graph = loaded(tmp_path, with_everything())
    features = features_of(brick_of(graph, (graph.layers[-1].index,)).canonical, "plain")
    assert features is not None
    assert {"with onnx.Mul", "with onnx.Constant"} <= features.traits and features.operator == "onnx.Add"


def test_only_values_that_set_shapes_are_part_of_a_brick(tmp_path: Path) -> None:
    def key(weight: float, axis: int) -> str:
        stored = make_tensor("w", TensorProto.FLOAT, (3,), [weight] * 3)
        nodes = [make_node("Add", ["x", "w"], ["a"]), make_node("Gather", ["a", "rows"], ["y"], axis=0)]
        graph = loaded(tmp_path, model(nodes, {"x": (4, 3)}, ["y"], [stored, integers("rows", (axis,))]))
        return brick_of(graph, (0, 1)).key

    assert key(0.5, 1) == key(7.0, 1)
    assert key(0.5, 1) != key(0.5, 2)


def test_a_weight_that_callers_may_replace_makes_another_brick_whose_network_prepares_no_weight_either(
    tmp_path: Path,
) -> None:
    made = small()
    constant = loaded(tmp_path, made)
    made.graph.input.append(make_tensor_value_info("v", TensorProto.FLOAT, (10, 8)))
    replaceable = loaded(tmp_path, made)
    keys, others = ([brick_of(graph, (layer,)).key for layer in range(5)] for graph in (constant, replaceable))
    assert keys[:4] == others[:4] and keys[4] != others[4]
    network = ModelProto.FromString(b64decode(model_program(replaceable).network.symbol))
    assert [it.name for it in network.graph.input] == ["data0", "weight2"]
    # Before version 4 of the format all weights were inputs, and none could be replaced.
    made.ir_version = 3
    assert loaded(tmp_path, made) == constant


def test_bounds_of_boxes_and_the_number_of_equal_parts_are_part_of_a_brick(tmp_path: Path) -> None:
    def key(graph: str) -> str:
        return brick_of(loaded(tmp_path, written(graph)), (0,)).key

    weak, strong = (
        f"""test (float[1,4,4] b, float[1,1,4] s) => (y)
        <int64 most = {{9}}, float iou = {{0.5}}, float least = {{{least}}}> {{
            y = NonMaxSuppression (b, s, most, iou, least)
        }}"""
        for least in (0.25, 0.75)
    )
    assert key(weak) != key(strong)
    two, three = (
        f"test (float[1,12] x) => (a, b{more}) {{ a, b{more} = Split <axis = 1> (x) }}" for more in ("", ", c")
    )
    assert key(two) != key(three)


def test_elements_of_any_type_have_the_size_that_their_name_tells() -> None:
    sizes = {"int4": 8, "bool": 16, "float8e4m3fn": 16, "int16": 32, "bfloat16": 32, "float32": 64, "complex128": 256}
    assert {dtype: TensorType((4, 4), dtype).size_bytes for dtype in sizes} == sizes
    assert TensorType((3,), "uint4").size_bytes == 2


# Published networks from the onnx package, without the values of their weights.

LAYERS = {"bvlc_alexnet": 24, "inception_v1": 144, "squeezenet": 66}


@pytest.mark.parametrize("name", LAYERS)
def test_a_published_network_has_as_many_layers_as_operators_that_depend_on_its_input(
    name: str, tmp_path: Path
) -> None:
    graph = Loader(tmp_path, TableFramework()).load(source_of(LIGHT / f"light_{name}.onnx"))
    assert len(graph.layers) == LAYERS[name]
    assert [layer.name for layer in graph.layers if layer.unmeasurable is not None or layer.kind is Kind.OTHER] == []
    assert graph.inputs[0].type.shape == (1, 3, 224, 224)


def test_an_encoder_of_a_transformer_has_few_unique_layers(tmp_path: Path) -> None:
    graph = Loader(tmp_path, TableFramework()).load(source_of(saved(tmp_path, encoder())))
    # Embeddings, their sum and its norm; then blocks of attention and its following layers.
    assert len(graph.layers) == 3 + 12 * (22 + 11)
    assert [layer.name for layer in graph.layers if layer.unmeasurable is not None or layer.kind is Kind.OTHER] == []
    assert graph.layers[0].kind is Kind.EMBEDDING
    assert graph.layers[-1].outputs[0].shape == (1, USUAL.tokens, USUAL.width)
    one, whole = (decompose(graph, Cutting(granularity)) for granularity in (1, 4))
    assert len(one.bricks) < 30
    assert len(whole.occurrences) < len(one.occurrences) == len(graph.layers)


# Nodes whose metadata calls them one layer; `test_mxnet_file.py` has the rules.


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
    assert (layer.nodes, after.feeds) == ((0, 1, 2), (Feed(0, 0),))
    # Both layers read the same array.
    assert layer.array(0) == after.array(0)


def test_an_operator_on_a_stored_vector_is_a_layer_if_the_file_calls_it_one(tmp_path: Path) -> None:
    def layers(**said: str) -> list[str]:
        nodes = [node("Reshape", ["vector", "shape"], "wide", **said), node("Add", ["data", "wide"], "sum")]
        made = model(nodes, {"data": (1, 8)}, ["sum"], [floats("vector", (8,)), integers("shape", (1, 8))])
        return names(loaded(tmp_path, made))

    assert layers() == ["sum"]
    assert layers(layer="widen") == ["widen", "sum"]


# Branches.


def inside(nodes: Sequence[NodeProto], output: str = "out", weights: Sequence[TensorProto] = ()) -> GraphProto:
    result = make_tensor_value_info(output, TensorProto.FLOAT, None)
    return make_graph(list(nodes), "inside", [], [result], list(weights))


def of(op: str, read: str = "r", name: str = "", **attributes: str) -> GraphProto:
    return inside([make_node(op, [read], ["out"], name=name or None, **attributes)])


def with_if(yes: GraphProto, condition: bool = True) -> ModelProto:
    nodes = [
        make_node("Relu", ["x"], ["r"], name="before"),
        branch("always", yes, of("Neg", name="negated"), "chosen"),
        make_node("Tanh", ["chosen"], ["y"], name="after"),
    ]
    return model(nodes, {"x": (1, 4)}, ["y"], [make_tensor("always", TensorProto.BOOL, (), [condition])])


def test_a_constant_condition_chooses_the_branch_whose_arrays_are_weights(tmp_path: Path) -> None:
    nodes = [make_node("Exp", ["r"], ["e"], name="first"), make_node("MatMul", ["e", "w"], ["out"], name="second")]
    yes = inside(nodes, weights=[floats("w", (4, 3))])
    graph = loaded(tmp_path, with_if(yes))
    assert names(graph) == ["before", "first", "second", "after"]
    assert [weight.shape for weight in graph.layers[2].weights] == [(4, 3)]
    assert graph.layers[2].outputs[0].shape == (1, 3)
    graph = loaded(tmp_path, with_if(yes, condition=False))
    assert names(graph) == ["before", "negated", "after"]
    assert [layer.outputs[0].shape for layer in graph.layers] == [(1, 4)] * 3
    assert graph.predecessors == ((), (0,), (1,))
    # A branch that returns an outer tensor copies it.
    assert ops(loaded(tmp_path, with_if(inside([], output="r")))) == ["relu", "identity", "tanh"]


@pytest.mark.parametrize(("width", "expected"), [(1, "squeeze"), (4, "keep")])
def test_a_condition_that_follows_from_fixed_shapes_chooses_the_branch(
    width: int, expected: str, tmp_path: Path
) -> None:
    squeeze = inside([make_node("Squeeze", ["x", "last"], ["out"], name="squeeze")])
    nodes = [
        make_node("Shape", ["x"], ["shape"]),
        make_node("Gather", ["shape", "last"], ["width"]),
        make_node("Equal", ["width", "one"], ["is_one"]),
        branch("is_one", squeeze, of("Relu", "x", "keep"), "y"),
    ]
    made = model(nodes, {"x": (1, width)}, ["y"], [integers("last", (1,)), integers("one", (1,))])
    assert names(loaded(tmp_path, made)) == [expected]


def test_branches_within_branches_are_chosen_down_to_the_innermost(tmp_path: Path) -> None:
    inner = of("Exp", name="innermost")
    for level in range(DEEPEST_NESTING - 1):
        inner = inside([branch("always", inner, inner, "out")])
        inner.node[0].name = f"level{level}"
    assert ops(loaded(tmp_path, with_if(inner))) == ["relu", "exp", "tanh"]


def test_an_unknown_condition_leaves_the_if_as_one_layer(tmp_path: Path) -> None:
    made = model([branch("open", of("Exp", "x"), of("Exp", "x"), "y")], {"x": (1, 4)}, ["y"])
    made.graph.input.append(make_tensor_value_info("open", TensorProto.BOOL, ()))
    (layer,) = loaded(tmp_path, made).layers
    assert (layer.op, layer.outputs[0].shape) == ("onnx.If", (1, 4))


CYCLE = [make_node("Add", ["r", "b"], ["a"]), make_node("Exp", ["a"], ["b"]), make_node("Neg", ["b"], ["out"])]
WITH_INPUTS = of("Exp", "z")
WITH_INPUTS.input.append(make_tensor_value_info("z", TensorProto.FLOAT, None))


@pytest.mark.parametrize(
    ("yes", "message"),
    [
        (inside(CYCLE), "a branch of 'choice' has a cycle"),
        (WITH_INPUTS, "a branch of 'choice' has inputs, which are not supported"),
        (
            inside([make_node(op, ["r"], ["out"]) for op in ("Exp", "Neg")]),
            "a branch of .choice. writes a tensor t",
        ),
        (of("Exp", domain="x.y"), "'Exp' is of the domain 'x.y', whose version .*"),
        (make_graph([], "empty", [], []), "a branch of 'choice' has another number of outputs than the node"),
        (None, "'choice' has no then_branch$"),
    ],
)
def test_a_damaged_branch_is_refused_in_one_line(yes: GraphProto | None, message: str, tmp_path: Path) -> None:
    made = with_if(yes or of("Exp"))
    if yes is None:
        del made.graph.node[1].attribute[:]
    with pytest.raises(UnreadableModelError, match=f"^net: {message}"):
        loaded(tmp_path, made)
