"""The contexts of bricks: layouts, what may be written over, streamed and cold inputs."""

from dataclasses import replace

import pytest

from dlbricks_tui.bricks.contexts import MEBIBYTE, context_key, is_cold, is_cold_in
from dlbricks_tui.bricks.layouts import output_layouts
from dlbricks_tui.models.graph import Feed, LayerGraph, Origin, Shape, TensorType, Wire
from tests.bricks.convolutions import convolving, named, with_layer
from tests.bricks.graphs import DATA, Spec, after, built, chain, of_weights, weighing


def context(graph: LayerGraph, *layers: int) -> str:
    return context_key(graph, layers, output_layouts(graph))


def fused_sum(*behind: Spec) -> LayerGraph:
    """A convolution, another one that adds the first one's result to its own, and what stands behind them."""
    shape: Shape = (1, 64, 8, 8)
    graph = built([Spec("conv", DATA), Spec("conv", DATA), Spec("conv", after(0, 1)), *behind])
    return convolving(graph, 2, shape, (64, 64, 3, 3), shape, parts="conv batch_norm add relu")


def forked(*ops: str) -> LayerGraph:
    """A first operator, and two that read its result."""
    return named(built([Spec("conv", DATA), Spec("relu", after(0)), Spec("relu", after(0))]), *ops)


SEVERAL = built([Spec("conv", DATA), Spec("relu", after(0)), Spec("concat", (*after(1, 0), *DATA)), Spec("constant")])
SUM = [Spec("relu", DATA), Spec("relu", DATA), Spec("add", after(0, 1)), Spec("relu", after(0))]
NORM = named(chain("conv", "relu", "relu", "pool"), "conv", "batch_norm", "relu", "pool")
KEPT = built([Spec("conv", DATA), Spec("relu", after(0)), Spec("add", after(0, 1)), Spec("relu", after(1))])
COMPUTED = built([Spec("conv", DATA), Spec("conv", DATA), Spec("add", after(0, 1)), Spec("relu", after(2))])


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
        (fused_sum(Spec("relu", after(0))), [2], "conv+conv"),
        (fused_sum(Spec("relu", after(1))), [2], "conv+conv:kept"),
        # A plain sum may overwrite any input.
        (built(SUM), [2], "plain:kept+plain"),
        (built(SUM[:3]), [2], "plain+plain"),
        (built([Spec("add", (Feed(None, 0), Feed(None, 1)))]), [0], "plain:kept+plain:kept"),
        # Other operators keep an input only if that changes the conversions.
        (forked("conv", "exp", "relu"), [1], "conv:kept"),
        (forked("conv", "relu", "relu"), [1], "conv"),
        (forked("conv", "clip", "relu"), [1], "conv"),
        (forked("relu", "exp", "relu"), [1], "plain"),
        # Results of batch norms in layouts of oneDNN are streamed, unless their parameters are computed.
        *((NORM, layers, it) for layers, it in (([0], "plain"), ([1], "conv"), ([2], "conv:streamed"), ([3], "conv"))),
        (NORM, [1, 2], "conv"),
        (named(chain("pool", "relu", "relu"), "pool", "batch_norm", "relu"), [2], "plain"),
        (named(COMPUTED, "conv", "conv", "batch_norm", "relu"), [3], "conv"),
        (named(KEPT, "conv", "batch_norm", "add", "relu"), [2], "conv+conv:streamed:kept"),
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
