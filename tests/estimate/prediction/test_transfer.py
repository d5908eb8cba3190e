import pytest

from dlbricks_tui.estimate.knowledge import Pair
from dlbricks_tui.estimate.prediction.transfer import Deviations, deviations, known_brick
from tests.estimate.prediction.simulated_systems import Simulated, canonical, probed, simulated


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


def test_a_measured_brick_keeps_its_latency() -> None:
    after, measured = probed(simulated(1))
    pair = min(measured)
    (latency,) = after.predict([pair])
    assert latency.value_ms == pytest.approx(simulated(1).truth_ms[pair], rel=1e-3)


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


def test_a_brick_that_only_some_systems_have_is_predicted_too() -> None:
    found = simulated(7)
    partly = [
        brick._replace(latencies_ms={"system 0": brick.latencies_ms["system 0"]}) if number % 3 else brick
        for number, brick in enumerate(found.bricks)
    ]
    after, measured = probed(Simulated(partly, found.truth_ms))
    others = [pair for pair in after.pairs if pair not in measured]
    errors = [
        abs(it.value_ms / found.truth_ms[pair] - 1) for pair, it in zip(others, after.predict(others), strict=True)
    ]
    assert sorted(errors)[len(errors) // 2] < 0.1


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


def test_a_kind_that_is_much_slower_than_all_others_is_predicted_to_be_so() -> None:
    found = simulated(9)
    slow = {pair: ms * (20.0 if pair[0].startswith("max_pool") else 1.0) for pair, ms in found.truth_ms.items()}
    before = deviations(found.bricks)
    pools = [pair for pair in slow if pair[0].startswith("max_pool")]
    some = {pair: slow[pair] for pair in [*before.pairs[::9], pools[10], pools[30]]}
    errors = [
        abs(it.value_ms / slow[pair] - 1) for pair, it in zip(pools, before.given(some).predict(pools), strict=True)
    ]
    assert sorted(errors)[len(errors) // 2] < 0.2
