from dataclasses import replace

import pytest

from dlbricks_tui.bricks.contexts import Layout, context_key, output_layouts
from dlbricks_tui.models.graph import LayerGraph
from tests.bricks.graphs import DATA, Spec, after, built, chain


def layouts(graph: LayerGraph) -> list[str]:
    return [layout.value for layout in output_layouts(graph)]


def named(graph: LayerGraph, *ops: str) -> LayerGraph:
    """The graph with other operators in its layers."""
    layers = [
        replace(layer, operators=tuple(replace(part, op=op) for part in layer.operators))
        for layer, op in zip(graph.layers, ops, strict=True)
    ]
    return replace(graph, layers=tuple(layers))


def test_what_enters_a_model_is_plain() -> None:
    assert context_key(chain("relu"), [0], output_layouts(chain("relu"))) == "plain"


def test_a_convolution_sets_a_layout_and_others_pass_it_on() -> None:
    graph = named(chain("relu", "conv", "pool", "relu"), "relu", "conv", "max_pool", "batch_norm")
    assert layouts(graph) == ["plain", "blocked", "blocked", "blocked"]


@pytest.mark.parametrize("op", ["flatten", "softmax", "linear", "reshape", "mxnet.relu", "mxnet.NobodyHasThis"])
def test_all_others_give_back_a_plain_one(op: str) -> None:
    assert layouts(named(chain("conv", "relu", "relu"), "conv", op, "relu")) == ["blocked", "plain", "plain"]


def test_one_blocked_input_is_enough_for_a_sum() -> None:
    graph = built([Spec("conv", DATA), Spec("relu", DATA), Spec("add", after(1, 0)), Spec("add", after(1, 1))])
    assert layouts(graph) == ["blocked", "plain", "blocked", "plain"]


def test_a_fused_layer_does_what_its_first_part_does() -> None:
    graph = chain("relu", "relu")
    fused = replace(graph.layers[0].operators[0], op="mxnet._sg_mkldnn_conv", parts=("conv", "batch_norm", "softmax"))
    graph = replace(graph, layers=(replace(graph.layers[0], operators=(fused,)), graph.layers[1]))
    assert layouts(graph) == ["blocked", "blocked"]


def test_a_constant_is_plain() -> None:
    assert layouts(built([Spec("constant"), Spec("relu", after(0))])) == ["plain", "plain"]


def test_a_context_is_the_layouts_of_all_that_enters_a_sequence() -> None:
    graph = built([Spec("conv", DATA), Spec("relu", after(0)), Spec("concat", (*after(1, 0), *DATA)), Spec("constant")])
    found = output_layouts(graph)
    assert context_key(graph, [2], found) == "blocked+blocked+plain"
    assert context_key(graph, [1, 2], found) == "blocked+plain"
    assert context_key(graph, [0, 1, 2], found) == "plain"
    assert context_key(graph, [3], found) == "none"


def test_the_layouts_are_two() -> None:
    assert [layout.value for layout in Layout] == ["plain", "blocked"]
