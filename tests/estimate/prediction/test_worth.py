import math
from collections.abc import Mapping, Sequence

import pytest

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.estimate.estimate import Estimate, estimate
from dlbricks_tui.estimate.knowledge import Knowledge, Latency, Unmeasured
from dlbricks_tui.estimate.prediction.choice import needed_for
from tests.estimate.knowledge_of import measured
from tests.estimate.table1 import table1

VGG = decompose(table1()["17"])
FORMS = {(it.brick.key, it.context): Unmeasured(it.brick.canonical, it.context) for it in VGG.occurrences}
MEASURED = measured(VGG).measured


class Doubtful:
    """Predicts each brick as it was measured, within a factor."""

    def __init__(self, factor: float, shared: float) -> None:
        self.shared = shared
        self._factor = factor
        self.known: Mapping[Unmeasured, float] = {
            FORMS[pair]: found.latency.value_ms for pair, found in MEASURED.items()
        }

    def predict(self, bricks: Sequence[Unmeasured]) -> list[Latency | None]:
        found = [self.known[brick] for brick in bricks]
        return [Latency(it, it / self._factor, it * self._factor) for it in found]


def known(pairs: object, predictor: Doubtful) -> Estimate:
    """The estimate of VGG-16 with measurements of these bricks, and predictions of the others."""
    held = {pair: found for pair, found in MEASURED.items() if pair in pairs}  # type: ignore[operator]
    return estimate(VGG, Knowledge(held, predictor=lambda: predictor))


def half_width(found: Estimate) -> float:
    assert found.composed is not None
    interval = found.composed.interval
    return max(interval.high_ms - found.composed.sequential_ms, found.composed.sequential_ms - interval.low_ms) / (
        found.composed.sequential_ms
    )


@pytest.mark.parametrize("shared", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("target", [0.1, 0.05, 0.02])
def test_the_needed_bricks_and_no_fewer_bring_the_interval_within_the_target(shared: float, target: float) -> None:
    predictor = Doubtful(1.5, shared)
    needed = needed_for(known((), predictor), shared, target)
    assert 0 < len(needed.pairs) < len(MEASURED)
    assert half_width(known(needed.pairs, predictor)) <= target + 0.01
    assert half_width(known(needed.pairs[:-1], predictor)) > target
    assert needed.half_width > target


def test_bricks_of_which_little_is_known_are_needed_whatever_the_target() -> None:
    vague = Doubtful(2.5, 0.0)
    negligible = next(iter(MEASURED))
    vague.known = {**vague.known, FORMS[negligible]: 1e-6}
    pairs = needed_for(known((), vague), 0.0, 1e9).pairs
    assert set(pairs) == MEASURED.keys() - {negligible}, "a factor of six"
    assert needed_for(known(pairs, vague), 0.0, 1e9).pairs == ()
    assert needed_for(known((), Doubtful(2.0, 0.0)), 0.0, 1e9).pairs == (), "a factor of four"


def test_the_bricks_that_may_be_farthest_off_come_first() -> None:
    found = known((), Doubtful(1.5, 0.5))
    pairs = needed_for(found, 0.5, 0.01).pairs
    spent = {part.pair: 0.0 for part in found.parts}
    for part in found.parts:
        spent[part.pair] += part.times * part.latency.value_ms
    assert [spent[pair] for pair in pairs] == sorted((spent[pair] for pair in pairs), reverse=True)


def test_nothing_is_needed_within_the_target() -> None:
    assert needed_for(known(MEASURED, Doubtful(1.5, 0.5)), 0.5, 0.05).pairs == ()
    assert needed_for(known((), Doubtful(1.01, 0.5)), 0.5, 0.05).pairs == ()


def test_bricks_without_any_latency_are_needed_first() -> None:
    nothing = estimate(VGG, Knowledge())
    needed = needed_for(nothing, 1.0, 0.5)
    assert set(needed.pairs) == set(MEASURED)
    assert needed.half_width == math.inf
