import math
import random
from collections.abc import Sequence
from typing import Any

import pytest

from dlbricks_tui.analysis.proving import (
    ModelSample,
    ProofRule,
    TimedModel,
    paired_gain,
    time_in_turns,
    with_placement,
)
from dlbricks_tui.analysis.what_if import Gain
from dlbricks_tui.measure.noise import NoiseMonitor
from dlbricks_tui.runtime.protocol import Loaded, Network, Program


class Host:
    """A host whose speed drifts, and the order in which it ran models."""

    def __init__(self, seed: int = 1, noise: float = 0.02, drift: float = 0.05) -> None:
        self.chance, self.noise, self.drift = random.Random(seed), noise, drift
        self.speed = 0.0
        self.order: list[str] = []
        self.disturbed: set[int] = set()

    def run(self, name: str, latency_ms: float) -> ModelSample:
        self.speed = 0.95 * self.speed + self.chance.gauss(0, self.drift)
        self.order.append(name)
        taken_ms = latency_ms * math.exp(self.speed + self.chance.gauss(0, self.noise))
        return ModelSample(taken_ms, 0.1, len(self.order) in self.disturbed)


class Model(TimedModel):
    """A model that takes a known time."""

    def __init__(self, host: Host, name: str, latency_ms: float) -> None:
        self.host, self.name, self.latency_ms = host, name, latency_ms

    def sample(self, number: int, noise: NoiseMonitor) -> ModelSample:
        return self.host.run(self.name, self.latency_ms)


def timed(host: Host, before_ms: float, after_ms: float, rule: ProofRule | None = None) -> tuple[int, Gain]:
    found = time_in_turns(Model(host, "A", before_ms), Model(host, "B", after_ms), rule or ProofRule(), lambda *_: None)
    return len(found.before_ms), paired_gain(found.before_ms, found.after_ms)


# A noisy host needs many rounds.
@pytest.mark.parametrize(("noise", "hosts"), [(0.01, 6), (0.05, 4), pytest.param(0.1, 30, marks=pytest.mark.soak)])
def test_the_interval_holds_the_true_gain_on_a_host_whose_speed_drifts(noise: float, hosts: int) -> None:
    found = [timed(Host(seed, noise), 4.0, 3.0)[1] for seed in range(hosts)]
    inside = sum(gain.low <= 0.25 <= gain.high for gain in found)
    assert inside >= 0.9 * hosts
    assert abs(sum(gain.value for gain in found) / len(found) - 0.25) < 0.02


def test_the_rounds_end_when_the_gain_is_known_and_go_on_while_it_is_not() -> None:
    assert timed(Host(noise=0.002, drift=0.002), 2.0, 1.0)[0] == 12
    assert timed(Host(noise=0.5, drift=0.0), 2.0, 1.0, ProofRule(most=40))[0] == 40


def test_slow_models_get_fewer_rounds_and_the_time_limit_ends_any_proof() -> None:
    narrow, wide = Gain(0.2, 0.19, 0.21), Gain(0.2, 0.0, 0.4)
    rule = ProofRule()
    assert rule.is_done(4, 20.0, narrow)
    assert not rule.is_done(4, 20.0, wide)
    assert not rule.is_done(4, 2.0, narrow)
    assert rule.is_done(4, 60.0, wide)
    assert not rule.is_done(2, 600.0, narrow)


def test_the_models_take_turns_in_an_order_that_changes_and_repeat_a_round_that_others_disturb() -> None:
    calm, host = Host(), Host()
    host.disturbed = {3}
    for each in (calm, host):
        assert timed(each, 2.0, 1.0, ProofRule(least=4, most=4))[0] == 4
    assert "".join(calm.order) == "ABBAABBA"
    assert len(host.order) == 10


def test_gains_are_means_of_logarithms_for_an_item_in_intervals_that_hold_for_other_loads_too() -> None:
    # Of the ratios themselves, the mean of 2 and 1/2 would be above 1.
    assert paired_gain([1.0, 2.0] * 10, [2.0, 1.0] * 10).value == pytest.approx(0.0)
    assert paired_gain([10.0] * 5, [20.0] * 5, items=1 / 4).value == pytest.approx(0.5)
    exact = with_placement(Gain(0.2, 0.2, 0.2))
    assert exact.high - exact.value == pytest.approx(0.027 * 0.8)
    assert with_placement(Gain(0.2, 0.1, 0.3)).low < 0.1


class StubWorker:
    """A worker in which each run takes the same time; it keeps the names of the programs that it ran."""

    def __init__(self, latency_ms: float) -> None:
        self.latency_ms = latency_ms
        self.ran: list[str] = []

    def load(self, name: str, *_: object) -> Loaded:
        return Loaded(self.latency_ms / 1000, (), 1)

    def sample(self, names: Sequence[str], _: int, timed: int) -> dict[str, tuple[float, ...]]:
        self.ran += names
        return dict.fromkeys(names, (self.latency_ms,) * timed)

    def contention(self) -> None:
        return None

    def wait_until_idle(self) -> None:
        return None


@pytest.mark.parametrize(
    ("latency_ms", "copies", "loaded"),
    [(5.0, 2, ["copy 1", "copy 2"]), (5.0, 1, ["copy 1"]), (400.0, 2, ["copy 1"])],
)
def test_quick_models_are_loaded_twice_where_the_memory_holds_them(
    latency_ms: float, copies: int, loaded: list[str]
) -> None:
    worker: Any = StubWorker(latency_ms)
    TimedModel(worker, Program(Network("", {}, {})), latency_ms, copies)
    assert worker.ran == loaded


def test_both_copies_run_first_and_last_in_a_round() -> None:
    worker: Any = StubWorker(5.0)
    model = TimedModel(worker, Program(Network("", {}, {})), 5.0)
    worker.ran.clear()
    samples = [model.sample(number, NoiseMonitor()) for number in range(4)]
    # The order within a round changes with each round.
    assert worker.ran == ["copy 1", "copy 1", "copy 2", "copy 2"]
    assert [it.latency_ms for it in samples] == [5.0] * 4
