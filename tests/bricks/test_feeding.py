"""Bricks that must be fed values as they are in their model."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.bricks.contexts import context_key, feeding_layers, narrowed, varied_feeds
from dlbricks_tui.bricks.layouts import output_layouts
from dlbricks_tui.bricks.programs import sequence_program
from dlbricks_tui.models.graph import Feed, LayerGraph, Origin, Shape, TensorType, Wire
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


def test_pooling_after_the_convolution_of_an_image_has_varied_values() -> None:
    graph = pooling()
    assert varied(graph, 2) == {Feed(1, 0)}
    assert varied(pooling(4), 2)
    assert [context(graph, layer) for layer in range(6)] == ["plain", "conv", "plain:varied", "plain", "conv", "plain"]


IN_ONEDNN = ("conv", "relu", "max_pool", "conv", "relu", "max_pool")


@pytest.mark.parametrize(
    ("graph", "layer"),
    [
        # A convolution of many channels makes values alike, as does a layout of oneDNN.
        (pooling(), 5),
        (pooling(5), 2),
        (pooling(3, *IN_ONEDNN), 2),
        (with_layer(pooling(), replace(pooling().layers[0], data=(TensorType(None),))), 2),
        # Only pooling is faster with similar values, and only in MXNet.
        *((pooling(3, "conv", "mxnet.Pad", op, "conv", "relu", "relu"), 2) for op in ("mean_pool", "relu", "lrn")),
        (replace(pooling(), traits=ONNX_RUNTIME), 2),
        (named(chain("pool"), "max_pool"), 0),
    ],
)
def test_other_inputs_are_not_varied(graph: LayerGraph, layer: int) -> None:
    assert not varied(graph, layer)


def test_pooling_anywhere_in_a_sequence_makes_its_input_varied() -> None:
    graph = named(chain("conv", "relu", "relu", "pool"), "conv", "mxnet.Pad", "relu", "max_pool")
    graph = convolving(graph, 0, (1, 3, 8, 8), (16, 3, 3, 3), (1, 16, 8, 8))
    assert varied(graph, 2, 3) == {Feed(1, 0)}
    # Where its input has a layout of its own, what makes that makes the values, too.
    assert context(graph, 1, 2, 3) == "conv"
    assert varied(pooling(), 2, 3, 4, 5) == {Feed(1, 0)}


def test_the_producer_includes_the_convolution_of_varied_values() -> None:
    program = sequence_program(pooling(), [2])
    assert program.producer is not None
    assert feeding_layers(pooling(), [2], output_layouts(pooling())) == (0, 1)
    made_by = [node["op"] for node in nodes_of(program.producer) if node["op"] != "null"]
    assert made_by == ["conv", "relu"]
    assert sequence_program(pooling(), [5]).producer is None


PARTS = ("", "conv batch_norm relu", "conv sum relu")


def convolution(read: int, made: int = 64, window: int = 3, parts: str = "", groups: int = 1) -> LayerGraph:
    """One that reads so many channels, with a relu behind it."""
    weight = (made, read // groups, window, window)
    return convolving(chain("conv", "relu"), 0, (1, read, 14, 14), weight, (1, made, 14, 14), parts=parts)


def reads(graph: LayerGraph) -> tuple[Shape | None, Shape | None]:
    layer = graph.layers[0]
    return layer.data[0].shape, layer.weights[0].shape


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize(("read", "few"), [(512, 16), (32, 16), (33, 17), (40, 24), (1000, 24), (513, 17)])
def test_a_large_convolution_is_narrowed_to_equally_filled_blocks(read: int, few: int, parts: str) -> None:
    graph = convolution(read, parts=parts)
    found = narrowed(graph, [0])
    assert reads(found) == ((1, few, 14, 14), (64, few, 3, 3))
    assert found.layers[0].outputs == graph.layers[0].outputs
    assert found.layers[0].feeds[0] == Feed(None, 1)
    assert found.inputs[1].type == found.layers[0].data[0]


@given(st.integers(1, 600), st.integers(1, 100), st.sampled_from((1, 3, 7)), st.sampled_from(PARTS))
def test_a_narrowed_convolution_keeps_its_class(read: int, made: int, window: int, parts: str) -> None:
    graph = convolution(read, made, window, parts)
    assert output_layouts(narrowed(graph, [0])) == output_layouts(graph)


@pytest.mark.parametrize(
    "graph",
    [
        convolution(512, window=1),
        convolution(31),
        convolution(3),
        convolution(512, made=512, groups=512),
        convolution(512, made=64, groups=4),
        named(convolution(512), "conv_transpose", "relu"),
        named(convolution(512), "linear", "relu"),
        convolution(0),
        chain("conv"),
    ],
)
def test_convolutions_whose_layout_could_change_are_not_narrowed(graph: LayerGraph) -> None:
    assert narrowed(graph, [0]) == graph


def test_convolutions_of_unknown_shape_are_not_narrowed() -> None:
    graph = convolution(512)
    layer = graph.layers[0]
    unknown = TensorType(None)
    reading_twice = replace(
        layer.operators[0], inputs=(Wire(Origin.DATA, 0), Wire(Origin.WEIGHT, 0), Wire(Origin.DATA, 0))
    )
    making_its_own = replace(layer.operators[0], inputs=(Wire(Origin.DATA, 0), Wire(Origin.DATA, 0)))
    for other in (
        replace(layer, data=(unknown,)),
        replace(layer, weights=(unknown,)),
        replace(layer, operators=(reading_twice,)),
        replace(layer, operators=(making_its_own,)),
        replace(layer, operators=(*layer.operators, *layer.operators)),
        replace(layer, operators=()),
    ):
        changed = with_layer(graph, other)
        assert narrowed(changed, [0]) == changed


def test_only_the_requested_layers_are_narrowed() -> None:
    graph = built([Spec("conv", DATA), Spec("conv", DATA), Spec("relu", DATA)])
    for index in (0, 1):
        graph = convolving(graph, index, (1, 64, 14, 14), (64, 64, 3, 3), (1, 64, 14, 14))
    found = narrowed(graph, [1, 2])
    assert [layer.feeds for layer in found.layers] == [DATA, (Feed(None, 1),), DATA]
    assert found.layers[0] == graph.layers[0]
    assert found.layers[2] == graph.layers[2]
    both = narrowed(graph, [0, 1])
    assert [layer.feeds for layer in both.layers] == [(Feed(None, 1),), (Feed(None, 2),), DATA]


def test_layers_in_front_of_a_brick_are_narrowed_and_the_brick_is_not() -> None:
    graph = built([Spec("conv", DATA), Spec("conv", after(0)), Spec("relu", after(1))])
    shape = (1, 64, 14, 14)
    for index in (0, 1):
        graph = convolving(graph, index, shape, (64, 64, 3, 3), shape)
    fed = sequence_program(graph, [1])
    assert fed.producer is not None
    assert [shape for shape, _ in fed.producer.inputs.values()] == [(1, 16, 14, 14)]
    assert [shape for shape, _ in fed.producer.weights.values()] == [(64, 16, 3, 3)]
    assert (64, 64, 3, 3) in [shape for shape, _ in fed.network.weights.values()]


def test_layers_in_front_of_a_varied_input_are_not_narrowed() -> None:
    shape = (1, 64, 14, 14)
    specs = [Spec("conv", DATA), Spec("conv", DATA), Spec("add", after(0, 1)), Spec("relu", after(2))]
    graph = named(built([*specs, Spec("pool", after(3))]), "conv", "conv", "add", "mxnet.Pad", "max_pool")
    graph = convolving(graph, 0, (1, 3, 14, 14), (64, 3, 3, 3), shape)
    graph = convolving(graph, 1, shape, (64, 64, 3, 3), shape)
    varied = sequence_program(graph, [4])
    assert varied.producer is not None
    assert (64, 64, 3, 3) in [shape for shape, _ in varied.producer.weights.values()]
