import math
import random
from functools import cache
from itertools import chain

import numpy as np
import pytest

from dlbricks_tui.estimate import nearest as training
from dlbricks_tui.estimate.knowledge import Unmeasured
from dlbricks_tui.estimate.nearest import _NEAREST, Example, NearestBricks, nearest, train
from tests.estimate.simulated import a_brick, conv, example, form, latency_ms, models, relu


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


# How far the speed of a host varies from model to model.
HOSTS = (0.0, 0.1, 0.2)


def holds(predictor: NearestBricks, model: list[Example]) -> bool:
    """True if the interval of the sum of all bricks holds their latency."""
    found = predictor.predict([Unmeasured(each.canonical, each.context) for each in model])
    known = [(each.latency_ms, latency) for each, latency in zip(model, found, strict=True) if latency is not None]
    beyond_ms = sum(real_ms - latency.value_ms for real_ms, latency in known)
    halves_ms = [
        latency.high_ms - latency.value_ms if beyond_ms > 0 else latency.value_ms - latency.low_ms
        for _, latency in known
    ]
    own = math.sqrt(1 - predictor.shared**2) * math.hypot(*halves_ms)
    return abs(beyond_ms) <= math.hypot(predictor.shared * sum(halves_ms), own)


@pytest.mark.parametrize(
    ("confidence", "host", "count"),
    [
        # Errors that add up most; the soak has those that do not.
        (0.9, 0.2, 100),
        *(pytest.param(confidence, host, 400, marks=pytest.mark.soak) for confidence in (0.9, 0.95) for host in HOSTS),
    ],
)
def test_intervals_of_sums_hold_as_often_as_stated_even_if_errors_add_up(
    confidence: float, host: float, count: int
) -> None:
    predictor = train(chain.from_iterable(models(1, 120, host=host)), confidence)
    assert (predictor.shared < 0.4) is (host == 0.0) and predictor.shared <= 1.0
    held = [holds(predictor, model) for model in models(2, count, host=host)]
    assert confidence - 0.04 <= sum(held) / len(held) <= min(1.0, confidence + 0.06)


def test_a_single_model_gives_intervals_of_the_usual_width() -> None:
    (only,) = models(1, 1, bricks=60)
    found = train(only)
    assert found.shared == 0.5
    assert {each.width for each in found.operators.values()} == {4.0}


def test_the_newest_bricks_of_a_large_operator_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "_MOST_OF_AN_OPERATOR", 50)
    # The old ones took ten times as long.
    new = [each for each in chain.from_iterable(models(1, 20)) if '"op":"relu"' in each.canonical][:50]
    found = train([*[each._replace(latency_ms=10 * each.latency_ms) for each in new], *new])
    assert {name: len(held.excess) for name, held in found.operators.items()} == {"relu": 50}
    asked = [Unmeasured(each.canonical, each.context) for each in new]
    assert found.predict(asked) == train(new).predict(asked)


def test_intervals_can_be_those_of_another_predictor() -> None:
    every = list(chain.from_iterable(models(1, 20)))
    whole = train(every)
    part = train(every[: len(every) // 2], widths_of=whole)
    assert part.shared == whole.shared
    assert all(each.width == whole.operators[name].width for name, each in part.operators.items())
    assert any(len(each.excess) < len(whole.operators[name].excess) for name, each in part.operators.items())
