from dataclasses import replace

import pytest

from dlbricks_tui.bricks.contexts import MEBIBYTE, context_key, is_cold, is_cold_in, kept_feeds
from dlbricks_tui.bricks.layouts import output_layouts
from dlbricks_tui.models.graph import Feed, LayerGraph, Origin, Shape, TensorType, Wire
from tests.bricks.convolutions import convolving, named, with_layer
from tests.bricks.graphs import DATA, Spec, after, built, chain, of_weights, weighing


def context(graph: LayerGraph, *layers: int) -> str:
    return context_key(graph, layers, output_layouts(graph))


def test_inputs_of_a_model_are_plain() -> None:
    assert context(chain("relu"), 0) == "plain"


def test_a_context_lists_the_layout_classes_of_all_inputs() -> None:
    graph = built([Spec("conv", DATA), Spec("relu", after(0)), Spec("concat", (*after(1, 0), *DATA)), Spec("constant")])
    assert context(graph, 2) == "conv+conv+plain"
    assert context(graph, 1, 2) == "conv+plain"
    assert context(graph, 0, 1, 2) == "plain"
    assert context(graph, 3) == "none"


# What may be written over.


def fused_sum(*behind: Spec) -> LayerGraph:
    """A convolution, another one that adds the first one's result to its own, and what stands behind them."""
    shape: Shape = (1, 64, 8, 8)
    specs = [Spec("conv", DATA), Spec("conv", DATA), Spec("conv", after(0, 1))]
    graph = built([*specs, *behind])
    return convolving(graph, 2, shape, (64, 64, 3, 3), shape, parts="conv batch_norm add relu")


def test_a_fused_convolution_adds_to_a_tensor_without_later_readers() -> None:
    assert context(fused_sum(), 2) == "conv+conv"
    # What the convolution itself reads may live on.
    assert context(fused_sum(Spec("relu", after(0))), 2) == "conv+conv"


def test_a_fused_convolution_keeps_a_tensor_needed_afterwards() -> None:
    assert context(fused_sum(Spec("relu", after(1))), 2) == "conv+conv:kept"


def test_a_plain_sum_may_overwrite_any_input() -> None:
    specs = [Spec("relu", DATA), Spec("relu", DATA), Spec("add", after(0, 1)), Spec("relu", after(0))]
    assert context(built(specs), 2) == "plain:kept+plain"
    assert context(built(specs[:3]), 2) == "plain+plain"
    assert context(built([Spec("add", (Feed(None, 0), Feed(None, 1)))]), 0) == "plain:kept+plain:kept"


@pytest.mark.parametrize(("op", "expected"), [("exp", "conv:kept"), ("relu", "conv"), ("clip", "conv")])
def test_other_operators_keep_an_input_only_if_that_changes_the_conversions(op: str, expected: str) -> None:
    graph = built([Spec("conv", DATA), Spec("relu", after(0)), Spec("relu", after(0))])
    assert context(named(graph, "conv", op, "relu"), 1) == expected
    assert context(named(graph, "relu", op, "relu"), 1) == "plain"


def test_tensors_inside_a_sequence_are_not_kept() -> None:
    graph = built([Spec("conv", DATA), Spec("relu", after(0)), Spec("add", after(0, 1))])
    layouts = output_layouts(graph)
    assert kept_feeds(graph, [2], layouts) == frozenset()
    assert kept_feeds(graph, [0, 1, 2], layouts) == frozenset()


# Whether it was written past the caches.


def test_results_of_batch_norms_in_onednn_layouts_are_streamed() -> None:
    graph = named(chain("conv", "relu", "relu", "pool"), "conv", "batch_norm", "relu", "pool")
    assert [context(graph, layer) for layer in range(4)] == ["plain", "conv", "conv:streamed", "conv"]
    assert context(graph, 1, 2) == "conv"


def test_plain_results_of_batch_norms_are_not_streamed() -> None:
    graph = named(chain("pool", "relu", "relu"), "pool", "batch_norm", "relu")
    assert context(graph, 2) == "plain"


def test_a_batch_norm_with_computed_parameters_cannot_be_used_for_streaming() -> None:
    graph = built([Spec("conv", DATA), Spec("conv", DATA), Spec("add", after(0, 1)), Spec("relu", after(2))])
    assert context(named(graph, "conv", "conv", "batch_norm", "relu"), 3) == "conv"


def test_a_streamed_input_may_be_kept_too() -> None:
    graph = built([Spec("conv", DATA), Spec("relu", after(0)), Spec("add", after(0, 1)), Spec("relu", after(1))])
    assert context(named(graph, "conv", "batch_norm", "add", "relu"), 2) == "conv+conv:streamed:kept"


# Whether weights are still in a cache.


def test_weights_of_a_model_larger_than_the_cache_are_cold() -> None:
    graph = weighing(weighing(chain("conv", "conv", "relu"), 0, 2), 1, 6)
    assert [context(graph, layer) for layer in range(3)] == ["plain;cold", "conv;cold", "conv"]


def test_each_repetition_of_a_layer_has_weights_of_its_own() -> None:
    graph = weighing(chain("conv", "conv"), 0, 1)
    assert context(graph, 0) == "plain"
    often = replace(graph, layers=(replace(graph.layers[0], times=7), graph.layers[1]))
    assert context(often, 0) == "plain;cold"
    # All layers together are the model, which reads nothing else in between.
    assert context(often, 0, 1) == "plain"


def test_weights_of_a_model_that_fit_into_a_cache_stay_there() -> None:
    assert context(weighing(chain("conv", "conv"), 0, 5), 0) == "plain"


def test_large_weights_are_cold_if_much_else_is_read_in_between() -> None:
    graph = of_weights(1, 9)
    assert [context(graph, 0), context(graph, 1), context(graph, 0, 1)] == ["plain;cold", "conv", "plain"]
    graph = of_weights(1, 9, 1)
    assert [context(graph, 0), context(graph, 1), context(graph, 0, 1)] == ["plain;cold", "conv;cold", "plain"]


def test_a_context_records_whether_a_brick_is_cold() -> None:
    assert [is_cold_in(it) for it in ("conv", "none", "conv:kept", "conv+plain;cold")] == [False, False, False, True]
    graph = weighing(chain("conv", "conv"), 0, 2)
    layouts = output_layouts(graph)
    assert [context_key(graph, [0], layouts, cold=cold) for cold in (None, False, True)] == [
        "plain",
        "plain",
        "plain;cold",
    ]


# What other layers have read of weights, and what is read of tables.


def cold(graph: LayerGraph) -> list[bool]:
    return [is_cold(graph, (layer.index,)) for layer in graph.layers]


def looking_up(graph: LayerGraph, layer: int, op: str, rows: int) -> LayerGraph:
    """The graph with one layer that looks rows up in what it has learned."""
    (operator,) = graph.layers[layer].operators
    operator = replace(
        operator,
        op=op,
        inputs=(*operator.inputs, Wire(Origin.WEIGHT, 0)),
        outputs=(TensorType((rows, 1024)),),
    )
    return with_layer(graph, replace(graph.layers[layer], operators=(operator,)))


def test_weights_of_several_layers_count_once() -> None:
    assert of_weights(3, 3, 3).weight_bytes == 9 * MEBIBYTE
    assert cold(of_weights(3, 3, 3)) == [True, True, True]
    steps = of_weights(3, 3, 3, shared=(0, 1, 2))
    assert steps.weight_bytes == 3 * MEBIBYTE
    assert cold(steps) == [False, False, False]


def test_recently_read_weights_are_not_cold() -> None:
    # Before the first step come the last layers of the inference before.
    assert cold(of_weights(2, 2, 2, 5, shared=(0, 1, 2))) == [True, False, False, True]
    assert cold(of_weights(5, 2, 2, shared=(1, 2))) == [True, True, False]


def test_weights_that_are_nearly_all_of_a_model_are_not_cold() -> None:
    assert cold(of_weights(30, 1)) == [False, True]
    assert cold(of_weights(30, 1, 1)) == [True, True, True]


def test_weights_read_long_before_are_cold() -> None:
    assert cold(of_weights(2, 5, 2, 5, shared=(0, 2))) == [True, True, True, True]
    assert cold(of_weights(2, 1, 1, 2, 5, shared=(0, 3))) == [True, True, True, False, True]


def test_only_the_looked_up_rows_of_a_table_count() -> None:
    dense = of_weights(30, 2, 2)
    assert cold(dense) == [True, True, True]
    for op in ("embedding", "mxnet.take", "onnx.Gather"):
        graph = looking_up(dense, 0, op, 64)
        assert graph.weight_bytes == 4 * MEBIBYTE + 64 * 1024 * 4
        assert cold(graph) == [False, False, False]
    assert looking_up(dense, 0, "conv", 64).weight_bytes == dense.weight_bytes
    assert looking_up(dense, 0, "embedding", 1 << 20).weight_bytes == dense.weight_bytes


def test_a_table_that_another_layer_reads_whole_is_read_whole() -> None:
    tied = looking_up(of_weights(5, 2, 5, shared=(0, 2)), 0, "embedding", 64)
    assert tied.weight_bytes == 7 * MEBIBYTE
    assert cold(tied) == [False, True, True]
