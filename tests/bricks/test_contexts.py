"""The contexts of bricks: layouts, what may be written over, streamed and cold inputs."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.bricks.contexts import (
    MEBIBYTE,
    context_key,
    feeding_layers,
    is_cold,
    is_cold_in,
    narrowed,
    varied_feeds,
)
from dlbricks_tui.bricks.layouts import output_layouts
from dlbricks_tui.bricks.programs import sequence_program
from dlbricks_tui.models.graph import Feed, LayerGraph, Origin, Shape, TensorType, Wire
from dlbricks_tui.runtime.traits import ONNX_RUNTIME
from tests.bricks.convolutions import convolving, named, with_layer
from tests.bricks.graphs import DATA, chain, of_weights, weighing, wired
from tests.bricks.test_programs import ops_of


def context(graph: LayerGraph, *layers: int) -> str:
    return context_key(graph, layers, output_layouts(graph))


def fused_sum(behind: str = "") -> LayerGraph:
    """A convolution, another one that adds the first one's result to its own, and what stands behind them."""
    shape: Shape = (1, 64, 8, 8)
    graph = wired(f"conv conv conv:0,1 {behind}")
    return convolving(graph, 2, shape, (64, 64, 3, 3), shape, parts="conv batch_norm add relu")


def forked(*ops: str) -> LayerGraph:
    """A first operator, and two that read its result."""
    return named(wired("conv relu:0 relu:0"), *ops)


SEVERAL = wired("conv relu:0 concat:1,0,i0 constant")
KEPT = named(wired("conv relu:0 add:0,1 relu:1"), "conv", "batch_norm", "add", "relu")
NORM = named(chain("conv", "relu", "relu", "pool"), "conv", "batch_norm", "relu", "pool")


@pytest.mark.parametrize(
    ("graph", "layers", "expected"),
    [
        # The layout classes of all inputs.
        (chain("relu"), [0], "plain"),
        (SEVERAL, [2], "conv+conv+plain"),
        (SEVERAL, [1, 2], "conv+plain"),
        (SEVERAL, [0, 1, 2], "plain"),
        (SEVERAL, [3], "none"),
        # A fused convolution adds to a tensor that has no later readers; what it reads itself may live on.
        (fused_sum(), [2], "conv+conv"),
        (fused_sum("relu:0"), [2], "conv+conv"),
        (fused_sum("relu:1"), [2], "conv+conv:kept"),
        # A plain sum may overwrite any input.
        (wired("relu relu add:0,1 relu:0"), [2], "plain:kept+plain"),
        (wired("relu relu add:0,1"), [2], "plain+plain"),
        (wired("add:i0,i1"), [0], "plain:kept+plain:kept"),
        # Other operators keep an input only if that changes the conversions.
        (forked("conv", "exp", "relu"), [1], "conv:kept"),
        (forked("conv", "relu", "relu"), [1], "conv"),
        (forked("conv", "clip", "relu"), [1], "conv"),
        (forked("relu", "exp", "relu"), [1], "plain"),
        # Results of batch norms in layouts of oneDNN are streamed, unless their parameters are computed.
        *((NORM, layers, it) for layers, it in (([0], "plain"), ([1], "conv"), ([2], "conv:streamed"), ([3], "conv"))),
        (NORM, [1, 2], "conv"),
        (named(chain("pool", "relu", "relu"), "pool", "batch_norm", "relu"), [2], "plain"),
        (named(wired("conv conv add:0,1 relu:2"), "conv", "conv", "batch_norm", "relu"), [3], "conv"),
        (
            named(wired("conv relu:0 add:0,1 relu:1"), "conv", "batch_norm", "add", "relu"),
            [2],
            "conv+conv:streamed:kept",
        ),
    ],
)
def test_a_context_lists_the_classes_of_all_inputs(graph: LayerGraph, layers: list[int], expected: str) -> None:
    assert context(graph, *layers) == expected


# Whether weights are still in a cache.


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        (weighing(weighing(chain("conv", "conv", "relu"), 0, 2), 1, 6), ["plain;cold", "conv;cold", "conv"]),
        # Those that fit into a cache stay there, unless much else is read in between.
        (weighing(chain("conv", "conv"), 0, 5), ["plain", "conv"]),
        (of_weights(1, 9), ["plain;cold", "conv"]),
        (of_weights(1, 9, 1), ["plain;cold", "conv;cold", "conv;cold"]),
    ],
)
def test_weights_of_a_model_larger_than_the_cache_are_cold(graph: LayerGraph, expected: list[str]) -> None:
    found = [context(graph, layer.index) for layer in graph.layers]
    assert found == expected
    assert [is_cold_in(it) for it in found] == [it.endswith("cold") for it in expected]


def test_each_repetition_of_a_layer_has_weights_of_its_own() -> None:
    graph = weighing(chain("conv", "conv"), 0, 1)
    assert context(graph, 0) == "plain"
    often = with_layer(graph, replace(graph.layers[0], times=7))
    assert context(often, 0) == "plain;cold"
    # All layers together are the model, which reads nothing else in between.
    assert context(often, 0, 1) == "plain"


def cold(graph: LayerGraph) -> list[bool]:
    return [is_cold(graph, (layer.index,)) for layer in graph.layers]


@pytest.mark.parametrize(
    ("graph", "mebibytes", "expected"),
    [
        # Weights of several layers count once.
        (of_weights(3, 3, 3), 9, [True, True, True]),
        (of_weights(3, 3, 3, shared=(0, 1, 2)), 3, [False, False, False]),
        # What was read recently is not cold: before the first step come the last layers of the inference before.
        (of_weights(2, 2, 2, 5, shared=(0, 1, 2)), 7, [True, False, False, True]),
        (of_weights(5, 2, 2, shared=(1, 2)), 7, [True, True, False]),
        # Nor is what is nearly all of a model.
        (of_weights(30, 1), 31, [False, True]),
        (of_weights(30, 1, 1), 32, [True, True, True]),
        # What was read long before is.
        (of_weights(2, 5, 2, 5, shared=(0, 2)), 12, [True, True, True, True]),
        (of_weights(2, 1, 1, 2, 5, shared=(0, 3)), 9, [True, True, True, False, True]),
    ],
)
def test_shared_weights_count_once_and_are_cold_if_they_were_read_long_before(
    graph: LayerGraph, mebibytes: int, expected: list[bool]
) -> None:
    assert graph.weight_bytes == mebibytes * MEBIBYTE
    assert cold(graph) == expected


def looking_up(graph: LayerGraph, op: str, rows: int) -> LayerGraph:
    """The graph whose first layer looks rows up in what it has learned."""
    (operator,) = graph.layers[0].operators
    inputs, outputs = (*operator.inputs, Wire(Origin.WEIGHT, 0)), (TensorType((rows, 1024)),)
    return with_layer(
        graph, replace(graph.layers[0], operators=(replace(operator, op=op, inputs=inputs, outputs=outputs),))
    )


def test_only_the_looked_up_rows_of_a_table_count_unless_another_layer_reads_it_whole() -> None:
    dense = of_weights(30, 2, 2)
    assert cold(dense) == [True, True, True]
    for op in ("embedding", "mxnet.take", "onnx.Gather"):
        graph = looking_up(dense, op, 64)
        assert graph.weight_bytes == 4 * MEBIBYTE + 64 * 1024 * 4
        assert cold(graph) == [False, False, False]
    assert looking_up(dense, "conv", 64).weight_bytes == dense.weight_bytes
    assert looking_up(dense, "embedding", 1 << 20).weight_bytes == dense.weight_bytes
    tied = looking_up(of_weights(5, 2, 5, shared=(0, 2)), "embedding", 64)
    assert tied.weight_bytes == 7 * MEBIBYTE
    assert cold(tied) == [False, True, True]


# Values and layers in front of bricks, as they are in their model.


UNKNOWN = TensorType(None)


def pooling(channels: int = 3, *ops: str) -> LayerGraph:
    """A convolution of so many channels, what pads it and so makes it plain, and what pools it; then the same of 16."""
    of_both = ops or ("conv", "mxnet.Pad", "max_pool", "conv", "mxnet.Pad", "max_pool")
    graph = named(chain("conv", "relu", "pool", "conv", "relu", "pool"), *of_both)
    shape = (1, 16, 8, 8)
    graph = convolving(graph, 0, (1, channels, 8, 8), (16, channels, 3, 3), shape)
    return convolving(graph, 3, shape, (16, 16, 3, 3), shape)


def varied(graph: LayerGraph, *layers: int) -> frozenset[Feed]:
    return varied_feeds(graph, layers, output_layouts(graph))


def test_pooling_after_the_convolution_of_an_image_has_varied_values_anywhere_in_a_sequence() -> None:
    graph = pooling()
    assert varied(graph, 2) == varied(graph, 2, 3, 4, 5) == {Feed(1, 0)}
    assert varied(pooling(4), 2)
    assert [context(graph, layer) for layer in range(6)] == ["plain", "conv", "plain:varied", "plain", "conv", "plain"]
    later = named(chain("conv", "relu", "relu", "pool"), "conv", "mxnet.Pad", "relu", "max_pool")
    later = convolving(later, 0, (1, 3, 8, 8), (16, 3, 3, 3), (1, 16, 8, 8))
    assert varied(later, 2, 3) == {Feed(1, 0)}
    # Where its input has a layout of its own, what makes that makes the values, too.
    assert context(later, 1, 2, 3) == "conv"


@pytest.mark.parametrize(
    ("graph", "layer"),
    [
        # A convolution of many channels makes values alike, as does a layout of oneDNN.
        (pooling(), 5),
        (pooling(5), 2),
        (pooling(3, "conv", "relu", "max_pool", "conv", "relu", "max_pool"), 2),
        (with_layer(pooling(), replace(pooling().layers[0], data=(UNKNOWN,))), 2),
        # Only pooling is faster with similar values, and only in MXNet.
        *((pooling(3, "conv", "mxnet.Pad", op, "conv", "relu", "relu"), 2) for op in ("mean_pool", "relu", "lrn")),
        (replace(pooling(), traits=ONNX_RUNTIME), 2),
        (named(chain("pool"), "max_pool"), 0),
    ],
)
def test_other_inputs_are_not_varied(graph: LayerGraph, layer: int) -> None:
    assert not varied(graph, layer)


def test_the_producer_includes_the_convolution_of_varied_values() -> None:
    assert feeding_layers(pooling(), [2], output_layouts(pooling())) == (0, 1)
    assert ops_of(sequence_program(pooling(), [2]).producer) == ["conv", "relu"]
    assert sequence_program(pooling(), [5]).producer is None


PARTS = ("", "conv batch_norm relu", "conv sum relu")


def convolution(read: int, made: int = 64, window: int = 3, parts: str = "", groups: int = 1) -> LayerGraph:
    """One that reads so many channels, with a relu behind it."""
    weight = (made, read // groups, window, window)
    return convolving(chain("conv", "relu"), 0, (1, read, 14, 14), weight, (1, made, 14, 14), parts=parts)


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize(("read", "few"), [(512, 16), (32, 16), (33, 17), (40, 24), (1000, 24), (513, 17)])
def test_a_large_convolution_is_narrowed_to_equally_filled_blocks(read: int, few: int, parts: str) -> None:
    graph = convolution(read, parts=parts)
    found = narrowed(graph, [0])
    layer = found.layers[0]
    assert (layer.data[0].shape, layer.weights[0].shape) == ((1, few, 14, 14), (64, few, 3, 3))
    assert (layer.outputs, layer.feeds[0]) == (graph.layers[0].outputs, Feed(None, 1))
    assert found.inputs[1].type == layer.data[0]


@given(st.integers(1, 600), st.integers(1, 100), st.sampled_from((1, 3, 7)), st.sampled_from(PARTS))
def test_a_narrowed_convolution_keeps_its_class(read: int, made: int, window: int, parts: str) -> None:
    graph = convolution(read, made, window, parts)
    assert output_layouts(narrowed(graph, [0])) == output_layouts(graph)


LAYER = convolution(512).layers[0]
READ_TWICE, ITS_OWN = (
    replace(LAYER.operators[0], inputs=wires)
    for wires in (
        (Wire(Origin.DATA, 0), Wire(Origin.WEIGHT, 0), Wire(Origin.DATA, 0)),
        (Wire(Origin.DATA, 0), Wire(Origin.DATA, 0)),
    )
)


@pytest.mark.parametrize(
    "graph",
    [
        *(convolution(512, window=1), convolution(31), convolution(3), convolution(0), chain("conv")),
        *(convolution(512, made=512, groups=512), convolution(512, made=64, groups=4)),
        *(named(convolution(512), op, "relu") for op in ("conv_transpose", "linear")),
        *(
            with_layer(convolution(512), layer)
            for layer in (
                *(replace(LAYER, data=(UNKNOWN,)), replace(LAYER, weights=(UNKNOWN,))),
                *(replace(LAYER, operators=(it,)) for it in (READ_TWICE, ITS_OWN)),
                *(replace(LAYER, operators=LAYER.operators * 2), replace(LAYER, operators=())),
            )
        ),
    ],
)
def test_convolutions_whose_layout_could_change_are_not_narrowed(graph: LayerGraph) -> None:
    assert narrowed(graph, [0]) == graph


SHAPE, WEIGHT = (1, 64, 14, 14), (64, 64, 3, 3)


def of_large_ones(text: str, *large: int) -> LayerGraph:
    graph = wired(text)
    for index in large:
        graph = convolving(graph, index, SHAPE, WEIGHT, SHAPE)
    return graph


def test_only_the_requested_layers_are_narrowed() -> None:
    graph = of_large_ones("conv conv relu", 0, 1)
    found, both = narrowed(graph, [1, 2]), narrowed(graph, [0, 1])
    assert [layer.feeds for layer in found.layers] == [DATA, (Feed(None, 1),), DATA]
    assert (found.layers[0], found.layers[2]) == (graph.layers[0], graph.layers[2])
    assert [layer.feeds for layer in both.layers] == [(Feed(None, 1),), (Feed(None, 2),), DATA]


def test_layers_in_front_of_a_brick_are_narrowed_unless_its_input_is_varied_and_the_brick_is_not() -> None:
    fed = sequence_program(of_large_ones("conv conv:0 relu:1", 0, 1), [1])
    assert fed.producer is not None
    assert [shape for shape, _ in fed.producer.inputs.values()] == [(1, 16, 14, 14)]
    assert [shape for shape, _ in fed.producer.weights.values()] == [(64, 16, 3, 3)]
    assert WEIGHT in [shape for shape, _ in fed.network.weights.values()]
    graph = named(wired("conv conv add:0,1 relu:2 pool:3"), "conv", "conv", "add", "mxnet.Pad", "max_pool")
    graph = convolving(graph, 0, (1, 3, 14, 14), (64, 3, 3, 3), SHAPE)
    graph = convolving(graph, 1, SHAPE, WEIGHT, SHAPE)
    of_varied = sequence_program(graph, [4])
    assert of_varied.producer is not None
    assert WEIGHT in [shape for shape, _ in of_varied.producer.weights.values()]
