"""Operators that share a `__layer__`, repetitions, and arrays that are layers."""

from collections.abc import Mapping, Sequence

import pytest

from dlbricks_tui.models.graph import Feed, LayerGraph, Origin, TensorType, Wire
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.models.mxnet.layer_graph import InferredFile, build_graph, variable_roles
from dlbricks_tui.models.mxnet.symbol_file import parse_symbol
from tests.models.symbols import Node, content, node, refusal, variable


def graph_of(nodes: Sequence[Node], *heads: int) -> LayerGraph:
    file = parse_symbol(content(nodes, *heads), "net")
    types = [[TensorType((1, 8))] * 2 for _ in file.nodes]
    return build_graph(InferredFile(file, variable_roles(file), types), "net")


def layer(name: str, kind: str | None = None, times: str | None = None) -> Mapping[str, str]:
    found = {"__layer__": name, "__kind__": kind, "__times__": times}
    return {key: value for key, value in found.items() if value is not None}


def test_operators_with_one_layer_name_form_one_layer() -> None:
    said = layer("squash", "elementwise")
    added = node("_plus_scalar", "b", 0, scalar="1", **said)
    nodes = [variable("data"), node("sqrt", "a", 0, **said), added, node("elemwise_div", "c", 1, 2, **said)]
    graph = graph_of([*nodes, node("Flatten", "after", 3)])
    squash, after = graph.layers
    assert (squash.name, squash.kind, squash.op) == ("squash", Kind.ELEMENTWISE, "sqrt+mxnet._plus_scalar+div")
    assert squash.feeds == (Feed(None, 0),)
    assert [it.inputs for it in squash.operators] == [
        (Wire(Origin.DATA, 0),),
        (Wire(Origin.DATA, 0),),
        (Wire(Origin.OPERATOR, 0), Wire(Origin.OPERATOR, 1)),
    ]
    assert squash.results == (Wire(Origin.OPERATOR, 2),)
    assert squash.nodes == (1, 2, 3)
    assert after.feeds == (Feed(0, 0),)


def test_every_output_that_leaves_a_layer_is_a_result_of_it() -> None:
    split = node("SliceChannel", "s", 0, num_outputs="2", **layer("x"))
    nodes = [variable("data"), split, node("relu", "r", (1, 1), **layer("x")), node("elemwise_add", "out", (1, 0), 2)]
    graph = graph_of(nodes, 3, 2)
    assert graph.layers[0].results == (Wire(Origin.OPERATOR, 0, 0), Wire(Origin.OPERATOR, 1, 0))
    assert graph.layers[1].feeds == (Feed(0, 0), Feed(0, 1))
    assert graph.heads == (Feed(1, 0), Feed(0, 1))


# Repetitions.


def routing(times: str = "2") -> list[Node]:
    """Return a step that is written twice: the second reads the first, and the next layer reads both."""
    inside = layer("step/add", "combine", times), layer("step/relu", "elementwise", times)
    return [
        variable("data"),
        variable("start_bias"),
        node("elemwise_add", "add", 1, 0, **inside[0]),
        node("relu", "relu", 2, **inside[1]),
        node("elemwise_add", "add", 3, 0, **inside[0]),
        node("relu", "relu", 4, **inside[1]),
        node("Concat", "joined", 3, 5, num_args="2"),
    ]


def test_a_repeated_layer_is_counted_once_and_paid_several_times() -> None:
    graph = graph_of(routing())
    assert [(it.name, it.times) for it in graph.layers] == [("step/add", 2), ("step/relu", 2), ("joined", 1)]
    assert graph.layers[0].nodes == (2, 4)
    # Edges between repetitions are dropped: the first one stands for all, and starts from the weight.
    assert graph.predecessors == ((), (0,), (1,))
    assert [it.inputs for it in graph.layers[0].operators] == [(Wire(Origin.WEIGHT, 0), Wire(Origin.DATA, 0))]
    # A reader of several repetitions reads one layer.
    joined = graph.layers[2]
    assert joined.feeds == (Feed(1, 0),)
    assert joined.operators[0].inputs == (Wire(Origin.DATA, 0), Wire(Origin.DATA, 0))


@pytest.mark.parametrize("times", ["0", "-2", "2.0", "two", "", "²", "٢", "1000001", "9" * 5_000, "2\n"])
def test_an_impossible_number_of_repetitions_is_refused(times: str) -> None:
    nodes = [variable("data"), node("relu", "r", 0, **layer("step", None, times))]
    assert (
        refusal(lambda: graph_of(nodes))
        == f"net: layer 'step' has __times__ {times[:20]!r}; give a number from 1 to 1000000"
    )


# What else is refused.


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ({"__times__": "2"}, {}, "net: node 1 ('a') has __times__ but no __layer__ to repeat"),
        (layer("x", None, "2"), layer("x", None, "2"), "layer 'x' is repeated 2 times, but its repetitions differ"),
        (layer("x", None, "3"), layer("x", None, "3"), "has 2 operators, which is not 3 times the same"),
        (layer("x", "fancy"), {}, "layer 'x' has __kind__ 'fancy'; it must be one of convolution, deconvolution, "),
        (layer("x", "reduce"), layer("x", "pad"), "has operators of different __kind__: 'pad' and 'reduce'"),
        (layer("x", None, "2"), layer("x", "pad", "1"), "has operators of different __times__: '1' and '2'"),
        # The layer around another one depends on itself.
        (layer("around"), {}, "net: layer 'around' is part of a cycle of layers, or depends on one"),
    ],
)
def test_annotations_that_contradict_themselves_are_refused(
    one: Mapping[str, str], other: Mapping[str, str], said: str
) -> None:
    last = layer("around") if one == layer("around") else {}
    nodes = [variable("data"), node("relu", "a", 0, **one), node("exp", "b", 1, **other), node("sqrt", "c", 2, **last)]
    assert said in refusal(lambda: graph_of(nodes))


# Arrays that are layers.


def test_an_array_with_a_layer_of_its_own_is_a_constant_layer() -> None:
    grid = variable("grid", __shape__="(1, 8)", **layer("Grid", "constant"))
    graph = graph_of([variable("data"), grid, node("broadcast_add", "placed", 0, 1)])
    constant, placed = graph.layers
    assert (constant.name, constant.kind, constant.op, constant.operators) == ("Grid", Kind.CONSTANT, "constant", ())
    assert (constant.weights, constant.outputs) == ((TensorType((1, 8)),), (TensorType((1, 8)),))
    assert constant.results == (Wire(Origin.WEIGHT, 0),)
    assert placed.feeds == (Feed(None, 0), Feed(0, 0))
    assert [it.name for it in graph.inputs] == ["data"]


def test_arrays_that_share_a_layer_are_one_constant_layer() -> None:
    nodes = [variable("w", **layer("x")), variable("v", **layer("x")), node("broadcast_mul", "m", 1, 0)]
    constant, product = graph_of(nodes).layers
    assert constant.results == (Wire(Origin.WEIGHT, 0), Wire(Origin.WEIGHT, 1))
    assert product.feeds == (Feed(0, 1), Feed(0, 0))
