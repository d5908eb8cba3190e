from dataclasses import replace

import pytest

from dlbricks_tui.bricks.contexts import context_key, layers_behind, output_layouts
from dlbricks_tui.models.graph import Feed, Layer, LayerGraph, Operator, Origin, Shape, TensorType, Wire
from tests.bricks.graphs import DATA, Spec, after, built, chain


def layouts(graph: LayerGraph) -> list[str]:
    return [outputs[0] for outputs in output_layouts(graph)]


def context(graph: LayerGraph, *layers: int) -> str:
    return context_key(graph, layers, output_layouts(graph))


def with_layer(graph: LayerGraph, layer: Layer) -> LayerGraph:
    return replace(graph, layers=(*graph.layers[: layer.index], layer, *graph.layers[layer.index + 1 :]))


def named(graph: LayerGraph, *ops: str) -> LayerGraph:
    """The graph with other operators in its layers."""
    for layer, op in zip(graph.layers, ops, strict=True):
        graph = with_layer(graph, replace(layer, operators=tuple(replace(part, op=op) for part in layer.operators)))
    return graph


def convolving(
    graph: LayerGraph, index: int, data: Shape, weight: Shape, result: Shape, op: str = "conv", parts: str = ""
) -> LayerGraph:
    """The graph with a convolution of these shapes in the place of a layer; with parts it is a fused one."""
    layer = graph.layers[index]
    more = range(1, len(layer.feeds))
    reads = (Wire(Origin.DATA, 0), Wire(Origin.WEIGHT, 0), *(Wire(Origin.DATA, number) for number in more))
    found = replace(
        layer.operators[0],
        op="mxnet._sg_mkldnn_conv" if parts else op,
        inputs=reads,
        outputs=(TensorType(result),),
        inner=("{}",) if parts else (),
        parts=tuple(parts.split()),
    )
    types = (TensorType(data), *(TensorType(result) for _ in more))
    return with_layer(graph, replace(layer, operators=(found,), data=types, weights=(TensorType(weight),)))


def set_by(data: Shape, weight: Shape, result: Shape, op: str = "conv", parts: str = "") -> str:
    return layouts(convolving(chain("conv"), 0, data, weight, result, op, parts))[0]


def test_what_enters_a_model_is_plain() -> None:
    assert context(chain("relu"), 0) == "plain"


def test_a_convolution_sets_a_layout_and_others_pass_it_on() -> None:
    graph = named(chain("relu", "conv", "pool", "relu"), "relu", "conv", "max_pool", "batch_norm")
    assert layouts(graph) == ["plain", "conv", "conv", "conv"]


@pytest.mark.parametrize("op", ["flatten", "softmax", "linear", "reshape", "dropout", "clip", "mxnet.NobodyHasThis"])
def test_all_others_give_back_a_plain_one(op: str) -> None:
    assert layouts(named(chain("conv", "relu", "relu"), "conv", op, "relu")) == ["conv", "plain", "plain"]


@pytest.mark.parametrize(
    ("data", "weight", "result", "expected"),
    [
        ((1, 3, 224, 224), (64, 3, 7, 7), (1, 64, 112, 112), "conv"),
        ((1, 64, 56, 56), (64, 64, 3, 3), (1, 64, 56, 56), "conv"),
        ((1, 64, 56, 56), (24, 64, 3, 3), (1, 24, 56, 56), "conv/8"),
        ((1, 64, 56, 56), (5, 64, 3, 3), (1, 5, 56, 56), "conv/1"),
        ((1, 32, 14, 14), (32, 1, 3, 3), (1, 32, 14, 14), "depthwise"),
        ((1, 24, 14, 14), (24, 1, 3, 3), (1, 24, 7, 7), "depthwise/8"),
        ((1, 128, 14, 14), (128, 4, 3, 3), (1, 128, 14, 14), "grouped4"),
        ((1, 256, 14, 14), (64, 256, 1, 1), (1, 64, 14, 14), "conv1x1:256x14x14:64x14x14"),
        ((1, 256, 14, 14), (64, 256, 1, 1), (1, 64, 7, 7), "conv1x1:256x14x14:64x7x7"),
        ((8, 256, 14), (64, 256, 1), (8, 64, 14), "conv1x1:256x14:64x14"),
    ],
)
def test_convolutions_whose_layouts_may_differ_are_of_different_classes(
    data: Shape, weight: Shape, result: Shape, expected: str
) -> None:
    assert set_by(data, weight, result) == expected
    assert set_by(data, weight, result, parts="conv batch_norm relu") == expected


def test_a_deconvolution_sets_a_layout_of_its_own() -> None:
    assert set_by((1, 64, 8, 8), (64, 32, 4, 4), (1, 32, 16, 16), "conv_transpose") == "deconv"
    assert set_by((1, 64, 8, 8), (64, 3, 4, 4), (1, 3, 16, 16), "conv_transpose") == "deconv/1"


def test_the_first_of_several_inputs_decides() -> None:
    shape: Shape = (1, 24, 8, 8)
    specs = [Spec("conv", DATA), Spec("conv", DATA), Spec("relu", DATA)]
    joins = [Spec("add", after(0, 1)), Spec("add", after(1, 0)), Spec("add", after(2, 0)), Spec("add", after(2, 2))]
    graph = convolving(built([*specs, *joins]), 1, (1, 3, 8, 8), (24, 3, 3, 3), shape)
    assert layouts(graph)[3:] == ["conv", "conv/8", "plain&conv", "plain"]


def test_inside_a_layer_the_layout_goes_from_operator_to_operator() -> None:
    graph = named(chain("conv", "relu"), "conv", "relu")
    (one,) = graph.layers[1].operators
    second = replace(one, inputs=(Wire(Origin.OPERATOR, 0),))
    third = replace(second, op="flatten")
    results = (Wire(Origin.OPERATOR, 1), Wire(Origin.OPERATOR, 2))
    layer = replace(graph.layers[1], operators=(one, second, third), results=results)
    assert output_layouts(with_layer(graph, layer))[1] == ("conv", "plain")


def test_a_constant_is_plain() -> None:
    assert layouts(built([Spec("constant"), Spec("relu", after(0))])) == ["plain", "plain"]


def test_a_context_is_the_classes_of_all_that_enters_a_sequence() -> None:
    graph = built([Spec("conv", DATA), Spec("relu", after(0)), Spec("concat", (*after(1, 0), *DATA)), Spec("constant")])
    assert context(graph, 2) == "conv+conv+plain"
    assert context(graph, 1, 2) == "conv+plain"
    assert context(graph, 0, 1, 2) == "plain"
    assert context(graph, 3) == "none"


# The tensor to which a fused convolution adds.


def residual(*behind: Spec) -> LayerGraph:
    """A convolution, another one with the first one's result added, and what stands behind them."""
    shape: Shape = (1, 64, 8, 8)
    specs = [Spec("conv", DATA), Spec("conv", DATA), Spec("conv", after(0, 1))]
    graph = built([*specs, *behind])
    return convolving(graph, 2, shape, (64, 64, 3, 3), shape, parts="conv batch_norm add relu")


def test_a_summand_that_nobody_needs_any_more_is_overwritten() -> None:
    assert context(residual(), 2) == "conv+conv"
    assert context(residual(Spec("relu", after(0))), 2) == "conv+conv"


def test_a_summand_that_is_needed_afterwards_is_kept() -> None:
    assert context(residual(Spec("relu", after(1))), 2) == "conv+conv:kept"
    assert context(replace(residual(), heads=after(1, 2)), 2) == "conv+conv:kept"


def test_a_summand_is_kept_for_those_who_know_it_by_another_name() -> None:
    shape: Shape = (1, 64, 8, 8)
    specs = [Spec("conv", DATA), Spec("conv", DATA), Spec("relu", after(1)), Spec("conv", after(0, 2))]

    def summed(*behind: Spec) -> LayerGraph:
        graph = built([*specs, *behind])
        alias: Operator = replace(graph.layers[2].operators[0], op="identity")
        graph = with_layer(graph, replace(graph.layers[2], operators=(alias,)))
        return convolving(graph, 3, shape, (64, 64, 3, 3), shape, parts="conv add")

    assert context(summed(), 3) == "conv+conv"
    assert context(summed(Spec("relu", after(1))), 3) == "conv+conv:kept"


# What has to run so that a tensor has its layout.


def behind(graph: LayerGraph, *feeds: Feed) -> tuple[int, ...]:
    return layers_behind(graph, feeds, output_layouts(graph))


def test_the_way_back_ends_where_the_layout_is_set() -> None:
    graph = named(chain("conv", "relu", "conv", "pool", "relu"), "conv", "relu", "conv", "max_pool", "relu")
    assert behind(graph, Feed(4, 0)) == (2, 3, 4)
    assert behind(graph, Feed(1, 0)) == (0, 1)
    assert behind(graph, Feed(None, 0)) == ()


def test_the_way_back_goes_through_all_inputs_that_are_not_plain() -> None:
    specs = [Spec("conv", DATA), Spec("conv", DATA), Spec("relu", DATA)]
    graph = built([*specs, Spec("concat", after(0, 2, 1)), Spec("relu", after(3))])
    assert behind(graph, Feed(4, 0), Feed(2, 0)) == (0, 1, 3, 4)
