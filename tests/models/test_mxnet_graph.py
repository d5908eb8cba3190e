from collections.abc import Mapping, Sequence

import pytest

from dlbricks_tui.models.errors import ModelError, UnreadableModelError
from dlbricks_tui.models.graph import (
    UNKNOWN_TYPE,
    Feed,
    GraphInput,
    LayerGraph,
    Level,
    NativeNode,
    Origin,
    Shape,
    TensorType,
    Wire,
)
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.models.mxnet.layer_graph import InferredFile, build_graph
from dlbricks_tui.models.mxnet.symbol_file import parse_symbol
from dlbricks_tui.models.mxnet.variables import variable_roles
from tests.models.symbols import Node, content, document, node, small_network, variable
from tests.models.table_framework import TableFramework

IMAGE = (1, 3, 32, 32)


def graph_of(
    nodes: Sequence[Node], *heads: int | tuple[int, int], shapes: Mapping[str, Shape] | None = None
) -> LayerGraph:
    """Return the graph with the types that the table infers; `shapes` are by node name, `data` defaults to an image."""
    file = parse_symbol(content(nodes, *heads), "net")
    given = {"data": IMAGE} if shapes is None else shapes
    by_number = {f"n{number}": given[it.name] for number, it in enumerate(file.nodes) if it.name in given}
    answer = TableFramework().infer(file.render(), by_number)
    return build_graph(InferredFile(file, variable_roles(file, given), answer.types, answer.unknown), "net")


def test_every_operator_is_a_layer_with_its_shapes() -> None:
    graph = graph_of(small_network())
    assert (graph.name, graph.level) == ("net", Level.WRITTEN)
    assert [(it.index, it.name, it.op, it.kind) for it in graph.layers] == [
        (0, "conv0", "conv", Kind.CONVOLUTION),
        (1, "bn0", "batch_norm", Kind.BATCHNORM),
        (2, "relu0", "relu", Kind.ELEMENTWISE),
        (3, "sum0", "add", Kind.COMBINE),
        (4, "pool0", "max_pool", Kind.POOLING),
        (5, "flat0", "flatten", Kind.FLATTEN),
        (6, "fc0", "linear", Kind.LINEAR),
        (7, "softmax", "mxnet.SoftmaxOutput", Kind.LOSS),
    ]
    conv = graph.layers[0]
    assert conv.data == (TensorType(IMAGE),)
    assert conv.weights == (TensorType((8, 3, 3, 3)), TensorType((8,)))
    assert conv.outputs == (TensorType((1, 8, 32, 32)),)
    assert conv.operators[0].inputs == (Wire(Origin.DATA, 0), Wire(Origin.WEIGHT, 0), Wire(Origin.WEIGHT, 1))
    assert graph.inputs == (GraphInput("data", TensorType(IMAGE)),)
    assert graph.heads == (Feed(7, 0),)
    assert graph.edges == ((0, 1), (1, 2), (2, 3), (0, 3), (3, 4), (4, 5), (5, 6), (6, 7))


def test_a_label_is_bound_once_like_a_weight() -> None:
    loss = graph_of(small_network()).layers[7]
    assert loss.weights == (TensorType((1,)),)
    assert loss.feeds == (Feed(6, 0),)


def test_a_layer_keeps_its_native_spelling() -> None:
    nodes = [variable("data"), node("Flatten", "f", 0, axis="1", __layer__="x", __profile__="y")]
    assert graph_of(nodes).layers[0].operators[0].native == NativeNode("Flatten", (("axis", "1"),))


def test_layers_with_equal_names_are_distinguished() -> None:
    graph = graph_of([variable("data"), node("relu", "x", 0), node("relu", "x", 1), node("relu", "", 2)])
    assert [it.name for it in graph.layers] == ["x", "x", "relu3"]
    assert graph.edges == ((0, 1), (1, 2))


def test_edges_carry_any_output_of_a_layer() -> None:
    nodes = [
        variable("data"),
        node("SliceChannel", "parts", 0, num_outputs="2"),
        node("relu", "second", (1, 1)),
        node("elemwise_add", "sum", (1, 1), 2),
    ]
    graph = graph_of(nodes, 3, (1, 0), shapes={"data": (1, 4, 5)})
    # Unread outputs stay in the layer. The others are numbered among themselves.
    assert graph.layers[0].results == (Wire(Origin.OPERATOR, 0, 0), Wire(Origin.OPERATOR, 0, 1))
    assert graph.layers[0].outputs == (TensorType((1, 2, 5)),) * 2
    assert graph.layers[1].feeds == (Feed(0, 1),)
    assert graph.heads == (Feed(2, 0), Feed(0, 0))
    assert graph_of(nodes, shapes={"data": (1, 4, 5)}).layers[1].feeds == (Feed(0, 0),)


def test_a_tensor_that_is_read_twice_is_one_input() -> None:
    doubled = graph_of([variable("data"), node("elemwise_add", "twice", 0, 0)]).layers[0]
    assert (doubled.feeds, doubled.data) == ((Feed(None, 0),), (TensorType(IMAGE),))
    assert doubled.operators[0].inputs == (Wire(Origin.DATA, 0), Wire(Origin.DATA, 0))


def test_several_inputs_and_heads_are_kept() -> None:
    nodes = [variable("left"), variable("right"), node("relu", "a", 1), node("elemwise_add", "b", 0, 2)]
    graph = graph_of(nodes, 3, 2, 2, shapes={"left": IMAGE, "right": IMAGE})
    assert [it.name for it in graph.inputs] == ["left", "right"]
    assert graph.layers[0].feeds == (Feed(None, 1),)
    assert graph.heads == (Feed(1, 0), Feed(0, 0), Feed(0, 0))


def test_a_head_that_is_an_input_is_kept_and_one_that_is_a_weight_is_not_computed() -> None:
    nodes = [variable("data"), variable("w_weight"), node("relu", "r", 0)]
    assert graph_of(nodes, 2, 0, 1).heads == (Feed(0, 0), Feed(None, 0))


@pytest.mark.parametrize("name", ["data", "w_weight"])
def test_a_file_without_operators_is_refused(name: str) -> None:
    with pytest.raises(UnreadableModelError, match="net has no operators: there is nothing to run"):
        graph_of([variable(name)])


def test_an_unknown_operator_is_named_and_only_what_depends_on_its_shape_is_unmeasurable() -> None:
    nodes = [
        variable("data"),
        node("relu", "before", 0),
        node("NobodyHasThis", "unknown", 1, strength="7"),
        node("relu", "behind", 2),
        node("relu", "beside", 1),
    ]
    graph = graph_of(nodes, 3, 4)
    assert [(it.name, it.unmeasurable) for it in graph.layers] == [
        ("before", None),
        ("unknown", "operator NobodyHasThis is not known to the installed MXNet"),
        ("behind", "its shape depends on an operator that the installed MXNet does not know"),
        ("beside", None),
    ]
    assert graph.layers[1].op == "mxnet.NobodyHasThis"
    assert graph.layers[2].data == (UNKNOWN_TYPE,)
    assert graph.edges == ((0, 1), (1, 2), (0, 3))


def test_layers_of_unknown_types_are_unmeasurable() -> None:
    file = parse_symbol(content([variable("data"), node("relu", "r", 0)]), "net")
    for known in (TensorType((1, 8), "unknown"), TensorType(None)):
        graph = build_graph(InferredFile(file, variable_roles(file), [[TensorType((1, 8))], [known]]), "net")
        assert graph.layers[0].unmeasurable == "MXNet does not find out its shape"


def test_an_output_that_inference_does_not_have_is_unmeasurable() -> None:
    file = parse_symbol(content([variable("data"), node("relu", "r", 0), node("relu", "s", (1, 3))]), "net")
    graph = build_graph(InferredFile(file, variable_roles(file), [[TensorType((1, 8))]] * 3), "net")
    assert graph.layers[1].unmeasurable is not None


@pytest.mark.parametrize("shape", [(10**12,), (2**16, 2**16), (1,) * 40 + (2**31,)])
def test_a_shape_that_mxnet_cannot_hold_is_refused_with_its_node(shape: Shape) -> None:
    file = parse_symbol(content([variable("data"), node("relu", "r", 0)]), "net")
    with pytest.raises(ModelError) as caught:
        build_graph(InferredFile(file, variable_roles(file), [[TensorType((1, 8))], [TensorType(shape)]]), "net")
    shown = "x".join(map(str, shape))[:80]
    assert str(caught.value) == f"net: 'r' has a shape of {shown}: more than MXNet can hold"


def test_a_loop_is_one_layer_with_its_body_inside() -> None:
    body = document([variable("x"), node("relu", "r", 0), node("exp", "e", 1)])
    nodes = [variable("data"), node("_foreach", "loop", 0) | {"subgraphs": [body]}]
    loop = graph_of(nodes).layers[0]
    assert (loop.op, loop.kind) == ("mxnet._foreach", Kind.RECURRENT)
    assert len(loop.operators[0].inner) == 1
    assert "mxnet.relu" in loop.operators[0].inner[0]


def test_a_loop_body_is_identified_by_operators_and_not_by_names() -> None:
    def inner(*names: str, op: str = "relu") -> tuple[str, ...]:
        body = document([variable(names[0]), node(op, names[1], 0)])
        nodes = [variable("data"), node("_foreach", "loop", 0) | {"subgraphs": [body]}]
        return graph_of(nodes).layers[0].operators[0].inner

    assert inner("x", "y") == inner("a", "b")
    assert inner("x", "y") != inner("x", "y", op="exp")


def test_a_deep_network_meets_no_recursion_limit() -> None:
    nodes = [variable("data"), *(node("relu", f"r{number}", number) for number in range(3_000))]
    file = parse_symbol(content(nodes), "net")
    graph = build_graph(InferredFile(file, variable_roles(file), [[TensorType((1, 8))]] * 3_001), "net")
    assert graph.edges[-1] == (2_998, 2_999)
