"""Bricks that must be fed values as they are in their model."""

from dataclasses import replace

import pytest

from dlbricks_tui.bricks.contexts import context_key
from dlbricks_tui.bricks.excerpts import excerpt
from dlbricks_tui.bricks.layouts import output_layouts
from dlbricks_tui.bricks.programs import sequence_program
from dlbricks_tui.bricks.values import varied_feeds
from dlbricks_tui.models.graph import Feed, LayerGraph, TensorType
from dlbricks_tui.runtime.traits import ONNX_RUNTIME
from tests.bricks.convolutions import convolving, named, with_layer
from tests.bricks.graphs import DATA, Spec, after, built, chain
from tests.bricks.test_programs import nodes_of

# A convolution of an image, what pads it and so makes it plain, and what pools it.
OPS = ("conv", "mxnet.Pad", "max_pool", "conv", "mxnet.Pad", "max_pool")


def pooling(channels: int = 3, *ops: str) -> LayerGraph:
    """Pooling behind a convolution that reads so many channels, and once more behind another one that reads more."""
    graph = named(chain("conv", "relu", "pool", "conv", "relu", "pool"), *(ops or OPS))
    shape = (1, 16, 8, 8)
    graph = convolving(graph, 0, (1, channels, 8, 8), (16, channels, 3, 3), shape)
    return convolving(graph, 3, shape, (16, 16, 3, 3), shape)


def varied(graph: LayerGraph, *layers: int) -> frozenset[Feed]:
    return varied_feeds(graph, layers, output_layouts(graph))


def context(graph: LayerGraph, *layers: int) -> str:
    return context_key(graph, layers, output_layouts(graph))


def test_pooling_meets_values_that_vary_behind_the_convolution_of_an_image() -> None:
    graph = pooling()
    assert varied(graph, 2) == {Feed(1, 0)}
    assert [context(graph, layer) for layer in range(6)] == ["plain", "conv", "plain:varied", "plain", "conv", "plain"]


def test_a_convolution_of_many_channels_makes_them_alike() -> None:
    graph = pooling()
    assert not varied(graph, 5)
    assert not varied(pooling(channels=5), 2)
    assert varied(pooling(channels=4), 2)


def test_what_nobody_knows_the_channels_of_is_no_image() -> None:
    graph = pooling()
    convolution = replace(graph.layers[0], data=(TensorType(None),))
    assert not varied(with_layer(graph, convolution), 2)


@pytest.mark.parametrize("op", ["mean_pool", "relu", "lrn"])
def test_nothing_else_is_quicker_with_values_that_are_alike(op: str) -> None:
    assert not varied(pooling(3, "conv", "mxnet.Pad", op, "conv", "relu", "relu"), 2)


def test_in_a_layout_of_onednn_pooling_compares_several_values_at_once() -> None:
    graph = pooling(3, "conv", "relu", "max_pool", "conv", "relu", "max_pool")
    assert context(graph, 2) == "conv"


def test_what_a_network_is_fed_is_of_no_convolution() -> None:
    assert not varied(named(chain("pool"), "max_pool"), 0)


def test_a_sequence_meets_them_wherever_in_it_the_pooling_stands() -> None:
    graph = named(chain("conv", "relu", "relu", "pool"), "conv", "mxnet.Pad", "relu", "max_pool")
    graph = convolving(graph, 0, (1, 3, 8, 8), (16, 3, 3, 3), (1, 16, 8, 8))
    assert varied(graph, 2, 3) == {Feed(1, 0)}
    # Where its input has a layout of its own, what makes that makes the values, too.
    assert context(graph, 1, 2, 3) == "conv"
    assert varied(pooling(), 2, 3, 4, 5) == {Feed(1, 0)}


def test_of_several_inputs_only_those_vary_that_are_pooled() -> None:
    specs = [Spec("conv", DATA), Spec("relu", after(0)), Spec("pool", after(1)), Spec("concat", after(2, 1))]
    graph = named(built(specs), "conv", "mxnet.Pad", "mean_pool", "concat")
    graph = convolving(graph, 0, (1, 3, 8, 8), (16, 3, 3, 3), (1, 16, 8, 8))
    assert not varied(graph, 3)
    graph = named(graph, "conv", "mxnet.Pad", "max_pool", "concat")
    graph = convolving(graph, 0, (1, 3, 8, 8), (16, 3, 3, 3), (1, 16, 8, 8))
    assert context(graph, 2, 3) == "plain:varied"
    assert context(graph, 3) == "plain+plain"


def test_onnx_runtime_compares_several_values_at_once() -> None:
    assert not varied(replace(pooling(), traits=ONNX_RUNTIME), 2)


def test_the_convolution_makes_them() -> None:
    program = sequence_program(pooling(), [2])
    assert program.producer is not None
    made_by = [node["op"] for node in nodes_of(program.producer) if node["op"] != "null"]
    assert made_by == ["conv", "relu"]
    assert sequence_program(pooling(), [5]).producer is None


def test_an_excerpt_has_what_makes_them() -> None:
    graph = pooling()
    taken = excerpt(graph, [2], output_layouts(graph))
    assert [layer.operators[0].op for layer in taken.graph.layers] == ["conv", "mxnet.Pad", "max_pool"]
    assert taken.context == "plain:varied"
