import math
from itertools import chain

import pytest

from dlbricks_tui.estimate.knowledge import Unmeasured
from dlbricks_tui.estimate.prediction import training
from dlbricks_tui.estimate.prediction.nearest import NearestBricks
from dlbricks_tui.estimate.prediction.training import Example, train
from tests.estimate.prediction.simulated import models

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


def test_errors_that_do_not_add_up_within_models_have_little_in_common() -> None:
    assert train(chain.from_iterable(models(1, 60))).shared < 0.4


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
