from dataclasses import replace

from dlbricks_tui.bricks.identity import Brick, brick_of
from dlbricks_tui.estimate.lookup import bias_counterpart
from dlbricks_tui.models.graph import Layer, Origin, TensorType, Wire
from tests.bricks.graphs import chain

GRAPH = chain("conv")
CHANNELS = 16


def convolution(*, bias: bool) -> Layer:
    """A convolution of which the brick is that of a real one."""
    plain = GRAPH.layers[0]
    inputs = (Wire(Origin.DATA, 0), Wire(Origin.WEIGHT, 0), Wire(Origin.WEIGHT, 1))
    weights = (TensorType((CHANNELS, 8, 3, 3)), TensorType((CHANNELS,)))
    count = 2 if bias else 1
    return replace(
        plain,
        operators=(replace(plain.operators[0], inputs=inputs[: 1 + count]),),
        weights=weights[:count],
    )


def brick(layer: Layer) -> Brick:
    return brick_of(replace(GRAPH, layers=(layer,)), (0,))


def test_two_convolutions_that_differ_in_a_bias_are_counterparts() -> None:
    with_bias, without = brick(convolution(bias=True)), brick(convolution(bias=False))
    assert with_bias.key != without.key
    assert bias_counterpart(with_bias.canonical) == without.key
    assert bias_counterpart(without.canonical) == with_bias.key


def test_a_brick_without_weights_and_a_sequence_have_no_counterpart() -> None:
    assert bias_counterpart(brick_of(chain("relu"), (0,)).canonical) is None
    assert bias_counterpart(brick_of(chain("conv", "relu"), (0, 1)).canonical) is None
