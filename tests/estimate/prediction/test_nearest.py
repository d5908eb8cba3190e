import math
import random
from functools import cache
from itertools import chain

import numpy as np
import pytest

from dlbricks_tui.estimate.knowledge import Latency, Unmeasured
from dlbricks_tui.estimate.prediction.nearest import _NEAREST, nearest
from dlbricks_tui.estimate.prediction.training import train
from tests.estimate.prediction.simulated import a_brick, conv, example, form, latency_ms, models, relu


@cache
def trained(confidence: float = 0.95, noise: float = 0.05, host: float = 0.0, seed: int = 1, count: int = 40):  # type: ignore[no-untyped-def]
    return train(chain.from_iterable(models(seed, count, noise=noise, host=host)), confidence)


def test_bricks_are_predicted_by_the_law_of_their_operator() -> None:
    chance = random.Random(2)
    wanted = [a_brick(chance) for _ in range(200)]
    errors = [
        abs(found.value_ms / latency_ms(brick) - 1)
        for brick, found in zip(wanted, trained().predict(wanted), strict=True)
        if found is not None
    ]
    assert len(errors) == len(wanted)
    assert sorted(errors)[len(errors) // 2] < 0.05
    assert sum(error < 0.2 for error in errors) > 0.95 * len(errors)


@pytest.mark.parametrize(("confidence", "noise"), [(0.9, 0.2), (0.95, 0.05)])
def test_intervals_of_bricks_hold_as_often_as_stated(confidence: float, noise: float) -> None:
    predictor = trained(confidence, noise)
    chance = random.Random(3)
    wanted = [a_brick(chance) for _ in range(1000)]
    held = [
        found.low_ms <= latency_ms(brick, chance, noise) <= found.high_ms
        for brick, found in zip(wanted, predictor.predict(wanted), strict=True)
        if found is not None
    ]
    assert len(held) == len(wanted)
    assert confidence - 0.03 <= sum(held) / len(held) <= confidence + 0.045


@pytest.mark.parametrize(
    "brick", [form("lrn", [1, 64, 28, 28]), form("relu", None), conv(64 * 1024, 64 * 1024, 3)], ids=lambda _: ""
)
def test_an_unknown_operator_no_shape_and_a_brick_unlike_all_measured_ones_are_not_predicted(brick: str) -> None:
    wanted = [Unmeasured(brick, "plain")]
    assert trained().predict(wanted) == train([]).predict(wanted) == [None]


def test_four_measured_bricks_of_an_operator_are_too_few() -> None:
    chance = random.Random(4)
    bricks = [Unmeasured(relu(channels, 28), "plain") for channels in (16, 32, 64, 96, 128)]
    examples = [example(brick, latency_ms(brick, chance), str(number)) for number, brick in enumerate(bricks)]
    wanted = [Unmeasured(relu(48, 28), "plain")]
    assert train(examples[:4]).predict(wanted) == [None]
    assert train(examples).predict(wanted) != [None]


def test_an_interval_is_wider_the_less_a_brick_is_like_measured_ones() -> None:
    predictor = trained()

    def factor(brick: str) -> float:
        (found,) = predictor.predict([Unmeasured(brick, "plain")])
        assert found is not None
        return float(found.high_ms / found.value_ms)

    assert factor(conv(64, 64, 28)) < factor(conv(512, 512, 28)) < factor(conv(512, 512, 28, kernel=7))


def test_the_layout_of_the_inputs_counts() -> None:
    slow, fast = (
        [Unmeasured(relu(channels, 28), layout) for channels in (16, 32, 48, 64, 96, 128)]
        for layout in ("plain", "conv")
    )
    examples = [example(brick, 4 * latency_ms(brick), str(n)) for n, brick in enumerate(slow)]
    examples += [example(brick, latency_ms(brick), str(n)) for n, brick in enumerate(fast)]
    found = train(examples).predict([Unmeasured(relu(80, 28), "plain"), Unmeasured(relu(80, 28), "conv")])
    ratio = found[0].value_ms / found[1].value_ms if found[0] and found[1] else math.nan
    assert 3 < ratio < 5


def test_predictions_do_not_depend_on_what_else_is_asked() -> None:
    predictor, chance = trained(), random.Random(5)
    wanted = [a_brick(chance) for _ in range(30)]
    together = predictor.predict(wanted)
    alone = [predictor.predict([brick])[0] for brick in wanted]
    for one, other in zip(together, alone, strict=True):
        assert isinstance(one, Latency)
        assert one == pytest.approx(other)


def test_of_bricks_at_the_same_distance_the_first_measured_count() -> None:
    # Versions of NumPy order equal numbers differently.
    generator = np.random.default_rng(7)
    for _ in range(50):
        distances = generator.integers(0, 4, size=(6, 40)).astype(float)
        distances[:, ::9] = np.inf
        excess = generator.normal(size=40)
        first = np.argsort(distances, axis=1, kind="stable")
        alone = np.sort(first[:, :_NEAREST], axis=1)
        expected = [nearest(distances[row : row + 1, alone[row]], excess[alone[row]]) for row in range(6)]
        found = nearest(distances, excess)
        assert found.excess == pytest.approx([float(it.excess[0]) for it in expected])
