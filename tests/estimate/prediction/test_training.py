import math
from itertools import chain

import pytest

from dlbricks_tui.estimate.knowledge import Unmeasured
from dlbricks_tui.estimate.prediction.nearest import NearestBricks
from dlbricks_tui.estimate.prediction.training import Example, train
from tests.estimate.prediction.simulated import models


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
    ("confidence", "host"),
    [
        # Errors that do not add up, and those that add up most.
        (0.9, 0.0),
        (0.95, 0.2),
        *(pytest.param(*each, marks=pytest.mark.soak) for each in ((0.95, 0.0), (0.9, 0.1), (0.95, 0.1), (0.9, 0.2))),
    ],
)
def test_intervals_of_sums_hold_as_often_as_stated_even_if_errors_add_up(confidence: float, host: float) -> None:
    predictor = train(chain.from_iterable(models(1, 120, host=host)), confidence)
    held = [holds(predictor, model) for model in models(2, 400, host=host)]
    assert confidence - 0.04 <= sum(held) / len(held) <= min(1.0, confidence + 0.06)


def test_errors_that_add_up_within_models_widen_the_sums() -> None:
    alone, together = (train(chain.from_iterable(models(1, 120, host=host))) for host in (0.0, 0.2))
    assert alone.shared < 0.4 < together.shared <= 1.0


def test_a_single_model_gives_intervals_of_the_usual_width() -> None:
    (only,) = models(1, 1, bricks=60)
    found = train(only)
    assert found.shared == 0.5
    assert {each.width for each in found.operators.values()} == {4.0}


def test_the_newest_bricks_of_a_large_operator_count() -> None:
    old, new = (list(chain.from_iterable(models(seed, 60))) for seed in (1, 2))
    many = [*[each for _ in range(4) for each in old], *new]
    for operator, held in train(many).operators.items():
        assert len(held.excess) <= 1500, operator


def test_intervals_can_be_those_of_another_predictor() -> None:
    every = list(chain.from_iterable(models(1, 40)))
    whole = train(every)
    part = train(every[: len(every) // 2], widths_of=whole)
    assert part.shared == whole.shared
    assert all(each.width == whole.operators[name].width for name, each in part.operators.items())
    assert any(len(each.excess) < len(whole.operators[name].excess) for name, each in part.operators.items())
