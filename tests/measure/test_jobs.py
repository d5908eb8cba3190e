"""Expected latency and memory of programs."""

from dataclasses import replace

from dlbricks_tui.measure.jobs import memory_bytes
from dlbricks_tui.models.graph import Feed
from tests.bricks.convolutions import convolving
from tests.bricks.graphs import DATA, Spec, after, built

SHAPE = (1, 16, 10, 10)
TENSOR, WEIGHT = 4 * 16 * 100, 4 * 16 * 16 * 9


def test_tensors_between_layers_take_memory_once() -> None:
    graph = built([Spec("conv", DATA), Spec("conv", after(0)), Spec("add", after(0, 1))])
    for index in (0, 1):
        graph = convolving(graph, index, SHAPE, (16, 16, 3, 3), SHAPE)
    first, second, third = graph.layers
    assert memory_bytes([first]) == memory_bytes([second]) == 2 * TENSOR + WEIGHT
    assert memory_bytes([first, second]) == 3 * TENSOR + 2 * WEIGHT
    # What two of them are fed is there once, too.
    again = replace(second, feeds=(Feed(None, 0),))
    assert memory_bytes([first, again]) == 3 * TENSOR + 2 * WEIGHT
    assert memory_bytes([]) == 0
    small = sum(tensor.size_bytes for tensor in third.operators[0].outputs)
    assert memory_bytes(graph.layers) == 3 * TENSOR + 2 * WEIGHT + small
