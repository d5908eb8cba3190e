"""Systems that follow a known law, and probes of them."""

import json
import math
from collections.abc import Mapping, Sequence
from functools import cache
from random import Random
from typing import NamedTuple

import numpy as np
import pytest

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.estimate.choice import Limit, Trial, most_informative, needed_for
from dlbricks_tui.estimate.estimate import Estimate, estimate
from dlbricks_tui.estimate.knowledge import Knowledge, Latency, Pair, Unmeasured
from dlbricks_tui.estimate.transfer import Deviations, KnownBrick, deviations, known_brick
from tests.estimate.knowledge_of import measured
from tests.estimate.table1 import table1

OPS = ("conv", "relu", "max_pool", "batch_norm", "concat", "softmax")


class Simulated(NamedTuple):
    """Systems whose latencies follow a law: a factor per system, one per system and kind, and noise."""

    bricks: Sequence[KnownBrick]
    # The latencies on the new system.
    truth_ms: dict[Pair, float]


def canonical(op: str, size: int) -> str:
    weights = [[[64, 64, 3, 3], "float32"]] if op == "conv" else []
    operators = [{"op": op, "inputs": [["data", 0, 0]]}]
    return json.dumps({"operators": operators, "data": [[[1, 64, size, size], "float32"]], "weights": weights})


@cache
def simulated(seed: int, systems: int = 3, noise: float = 0.05, of_a_kind: float = 0.3) -> Simulated:
    """Forty sizes of each operator on some known systems, and on a new one."""
    random = Random(seed)
    factors = [math.exp(random.gauss(0.0, 0.4)) for _ in range(systems + 1)]
    kinds = {op: [math.exp(random.gauss(0.0, of_a_kind)) for _ in range(systems + 1)] for op in OPS}
    bricks, truth_ms = [], {}
    for op in OPS:
        for size in range(8, 168, 4):
            base_ms = (10.0 if op == "conv" else 1.0) * (size / 64) ** 2
            taken_ms = [
                base_ms * factor * of_kind * math.exp(random.gauss(0.0, noise))
                for factor, of_kind in zip(factors, kinds[op], strict=True)
            ]
            pair = (f"{op} {size}", "")
            known = {f"system {number}": taken_ms[number] for number in range(systems)}
            bricks.append(known_brick(pair, canonical(op, size), known))
            truth_ms[pair] = taken_ms[-1]
    return Simulated(bricks, truth_ms)


def probed(found: Simulated, count: int = 20) -> tuple[Deviations, set[Pair]]:
    """The deviations once the most informative bricks of a model of all bricks are measured, and these bricks."""
    before = deviations(found.bricks)
    model = dict.fromkeys(before.pairs, 1.0)
    trials = [Trial((pair,), 0.1) for pair in before.pairs]
    chosen = most_informative(before, [model], trials, Limit(count, math.inf))
    pairs = {pair for trial in chosen for pair in trial.pairs}
    return before.given({pair: found.truth_ms[pair] for pair in pairs}), pairs


@pytest.mark.parametrize(
    ("systems", "seeds"), [(1, 3), (3, 5), *(pytest.param(systems, 20, marks=pytest.mark.soak) for systems in (1, 3))]
)
def test_a_system_that_is_slower_by_kind_is_predicted_from_few_bricks_within_intervals_that_hold(
    systems: int, seeds: int
) -> None:
    held = total = 0
    for seed in range(seeds):
        found = simulated(seed, systems)
        after, measured = probed(found)
        others = [pair for pair in after.pairs if pair not in measured]
        latencies = dict(zip(others, after.predict(others), strict=True))
        errors = sorted(abs(it.value_ms / found.truth_ms[pair] - 1) for pair, it in latencies.items())
        assert errors[len(errors) // 2] < 0.08
        whole_ms = sum(latency.value_ms for latency in after.predict(after.pairs))
        assert whole_ms == pytest.approx(sum(found.truth_ms.values()), rel=0.05)
        held += sum(it.low_ms <= found.truth_ms[pair] <= it.high_ms for pair, it in latencies.items())
        total += len(others)
    assert 0.9 <= held / total <= 1.0


def test_intervals_are_wider_before_anything_is_measured_and_for_kinds_without_a_measurement() -> None:
    found = simulated(2)
    before = deviations(found.bricks)
    convolutions = {pair: found.truth_ms[pair] for pair in before.pairs if pair[0].startswith("conv")}
    after = before.given(dict(list(convolutions.items())[::2]))
    conv, pool = ("conv 12", ""), ("max_pool 12", "")

    def spread(system: Deviations, pair: Pair) -> float:
        (latency,) = system.predict([pair])
        return latency.high_ms / latency.low_ms

    assert spread(after, conv) < spread(after, pool) < spread(before, pool)


def test_a_system_like_a_known_one_is_predicted_as_that_one_deviates() -> None:
    """Small bricks are slow on one of the known systems; on the new one they are, too."""
    bricks, truth_ms = [], {}
    for size in range(8, 168, 4):
        slow = 2.0 if size % 8 else 1.0
        pair = (f"conv {size}", "")
        base_ms = (size / 64) ** 2
        bricks.append(known_brick(pair, canonical("conv", size), {"a": base_ms, "b": base_ms * slow, "c": base_ms}))
        truth_ms[pair] = base_ms * slow
    before = deviations(bricks)
    after = before.given({pair: truth_ms[pair] for pair in before.pairs[10:22]})
    for pair, latency in zip(before.pairs[:10], after.predict(before.pairs[:10]), strict=True):
        assert latency.value_ms == pytest.approx(truth_ms[pair], rel=0.1)


def test_a_brick_that_is_unlike_its_kind_does_not_mislead_about_the_others() -> None:
    found = simulated(8)
    convolutions = [pair for pair in found.truth_ms if pair[0].startswith("conv")]
    measured = {pair: found.truth_ms[pair] for pair in convolutions[::3]}
    odd = convolutions[18]
    others = [pair for pair in convolutions if pair not in measured]
    before = deviations(found.bricks)
    usual = before.given(measured).predict(others)
    misled = before.given(measured | {odd: 10 * found.truth_ms[odd]}).predict(others)
    for one, other in zip(usual, misled, strict=True):
        assert other.value_ms == pytest.approx(one.value_ms, rel=0.1)


ANY_TIME = Limit(30, math.inf)


def test_the_brick_that_takes_most_of_a_model_is_measured_first() -> None:
    found = simulated(3)
    before = deviations(found.bricks)
    model = {("conv 40", ""): 50.0, ("relu 8", ""): 1.0, ("softmax 12", ""): 1.0}
    trials = [Trial((pair,), 0.1) for pair in before.pairs]
    first, *_ = most_informative(before, [model], trials, ANY_TIME)
    assert first.pairs == (("conv 40", ""),)


def test_choosing_keeps_to_the_numbers_of_bricks_and_seconds() -> None:
    before = deviations(simulated(4).bricks)
    model = dict.fromkeys(before.pairs, 1.0)
    trials = [Trial(before.pairs[first : first + 3], 1.0) for first in range(0, len(before.pairs), 3)]
    assert sum(len(it.pairs) for it in most_informative(before, [model], trials, Limit(10, math.inf))) == 9
    assert len(most_informative(before, [model], trials, Limit(60, 4.5))) == 4
    assert most_informative(before, [model], trials, Limit(60, 0.5)) == []
    # Numpy would warn the user of a division by zero.
    with np.errstate(all="raise"):
        assert most_informative(before, [model], trials, Limit(60, 0.0)) == []
        assert most_informative(before, [model], [Trial((), 1.0)], Limit(0, math.inf)) == []


def test_of_equally_informative_bricks_the_quick_one_is_measured() -> None:
    before = deviations(simulated(5).bricks)
    twins = (("conv 80", ""), ("conv 84", ""))
    model = dict.fromkeys(twins, 1.0)
    trials = [Trial((twins[0],), 5.0), Trial((twins[1],), 0.5)]
    assert most_informative(before, [model], trials, Limit(1, 10.0)) == [trials[1]]


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
    interval = found.composed.latency
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


def test_a_known_system_that_lacks_bricks_counts_as_it_usually_compares_with_the_others() -> None:
    found = simulated(6, noise=0.001, of_a_kind=0.0)
    lacking = [
        it._replace(latencies_ms={name: ms for name, ms in it.latencies_ms.items() if number % 3 or name != "system 0"})
        for number, it in enumerate(found.bricks)
    ]
    whole, part = deviations(found.bricks), deviations(lacking)
    for one, other in zip(whole.predict(whole.pairs), part.predict(part.pairs), strict=True):
        assert other.value_ms == pytest.approx(one.value_ms, rel=0.01)
