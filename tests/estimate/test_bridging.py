import json
from collections.abc import Sequence
from typing import Any

import pytest

from dlbricks_tui.estimate.bridging import Bridge
from dlbricks_tui.estimate.knowledge import Latency, Similar


def form(
    operators: Sequence[dict[str, Any]], shape: Sequence[int] | None, weights: Sequence[Sequence[int]] = ()
) -> str:
    """The canonical form of a brick with one data input."""
    return json.dumps(
        {
            "data": [[shape, "float32"]],
            "level": "written",
            "operators": list(operators),
            "version": 1,
            "weights": [[weight, "float32"] for weight in weights],
        }
    )


def relu(*shape: int) -> str:
    return form([{"op": "relu", "inputs": [["data", 0, 0]]}], shape)


def conv(channels: int, stride: int = 1, size: int = 28) -> str:
    params = {"kernel": [3, 3], "stride": [stride, stride]}
    return form([{"op": "conv", "params": params}], [1, 64, size, size], [[channels, 64, 3, 3]])


def fused(activation: str) -> str:
    nodes = [
        "variable",
        "variable",
        ["conv", [["kernel", [3, 3]]], [[0, 0]], []],
        [activation, [], [[2, 0]], []],
        [[3, 0]],
    ]
    operator = {"op": "mxnet.fused", "inner": [json.dumps(nodes)]}
    return form([operator], [1, 64, 28, 28], [[64, 64, 3, 3]])


def taking(canonical: str, ms: float) -> Similar:
    return Similar(canonical, Latency(ms, 0.99 * ms, 1.01 * ms))


def test_a_brick_of_equal_features_is_predicted_to_take_the_same_within_a_quarter() -> None:
    found = Bridge([taking(relu(1, 64, 28, 28), 2.0)]).predict(relu(1, 64, 28, 28))
    assert found is not None
    assert found.value_ms == 2.0
    assert 1.5 < found.low_ms < found.value_ms < found.high_ms < 2.5


def test_more_work_takes_longer_and_has_a_wider_interval() -> None:
    bridge = Bridge([taking(conv(64), 1.0)])
    near, far = bridge.predict(conv(128)), bridge.predict(conv(1024))
    assert near is not None
    assert far is not None
    assert 1.5 < near.value_ms < 2.5 < far.value_ms < 20
    assert far.high_ms / far.value_ms > near.high_ms / near.value_ms


def test_the_nearest_shape_with_the_same_parameters_is_used() -> None:
    bridge = Bridge([taking(conv(64), 1.0), taking(conv(96), 7.0), taking(conv(100, stride=2), 50.0)])
    found = bridge.predict(conv(100))
    assert found is not None
    assert found.value_ms == pytest.approx(7.0, rel=0.1)


def test_other_operators_bound_a_guess_but_do_not_make_one() -> None:
    bridge = Bridge([taking(relu(1, 64, 28, 28), 0.02)])
    assert bridge.predict(conv(64)) is None
    assert bridge.most_ms(conv(64)) > 0.02
    assert bridge.most_ms(conv(1024)) > bridge.most_ms(conv(64))


def test_similar_fused_bricks_have_the_same_inner_operators() -> None:
    bridge = Bridge([taking(fused("relu"), 1.0)])
    assert bridge.predict(fused("relu")) is not None
    assert bridge.predict(fused("sigmoid")) is None


def test_a_sequence_is_guessed_from_its_layers_if_all_are_known() -> None:
    sequence = form([{"op": "relu"}, {"op": "conv", "params": {"kernel": [3, 3]}}], [1, 64, 28, 28], [[64, 64, 3, 3]])
    layers = [relu(1, 64, 28, 28), conv(64)]
    both = Bridge([taking(relu(1, 64, 28, 28), 0.5), taking(conv(64), 1.0)])
    found = both.predict(sequence, layers)
    assert found is not None
    assert found.value_ms == pytest.approx(1.5)
    one = Bridge([taking(relu(1, 64, 28, 28), 0.5)])
    assert one.predict(sequence, layers) is None
    assert one.most_ms(sequence, layers) > one.most_ms(layers[0])


def test_the_slowest_brick_is_the_bound_of_a_brick_without_shapes() -> None:
    shapeless = form([{"op": "relu"}], None)
    bridge = Bridge([taking(relu(1, 64, 28, 28), 2.0), taking(conv(64), 5.0)])
    assert bridge.predict(shapeless) is None
    assert bridge.most_ms(shapeless) == pytest.approx(5.05)
    assert Bridge([]).most_ms(shapeless) == 0.0
