"""What others have read of weights, and what is read of tables."""

from dataclasses import replace

from dlbricks_tui.bricks.coldness import MEBIBYTE, is_cold
from dlbricks_tui.models.graph import LayerGraph, Origin, TensorType, Wire
from tests.bricks.convolutions import with_layer
from tests.bricks.graphs import of_weights


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


def test_what_several_layers_read_is_one_array() -> None:
    assert of_weights(3, 3, 3).weight_bytes == 9 * MEBIBYTE
    assert cold(of_weights(3, 3, 3)) == [True, True, True]
    steps = of_weights(3, 3, 3, shared=(0, 1, 2))
    assert steps.weight_bytes == 3 * MEBIBYTE
    assert cold(steps) == [False, False, False]


def test_what_a_layer_shortly_before_has_read_is_not_cold() -> None:
    # Before the first step come the last layers of the inference before.
    assert cold(of_weights(2, 2, 2, 5, shared=(0, 1, 2))) == [True, False, False, True]
    assert cold(of_weights(5, 2, 2, shared=(1, 2))) == [True, True, False]


def test_what_is_nearly_all_that_a_model_reads_is_not_cold() -> None:
    assert cold(of_weights(30, 1)) == [False, True]
    assert cold(of_weights(30, 1, 1)) == [True, True, True]


def test_what_was_read_long_before_is_cold() -> None:
    assert cold(of_weights(2, 5, 2, 5, shared=(0, 2))) == [True, True, True, True]
    assert cold(of_weights(2, 1, 1, 2, 5, shared=(0, 3))) == [True, True, True, False, True]


def test_of_a_table_only_the_rows_are_read_that_are_looked_up() -> None:
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
