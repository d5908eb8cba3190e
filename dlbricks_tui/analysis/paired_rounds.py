"""Rounds in which two workers take turns: one runs a model as it is executed, the other runs it after a change.

Both see the same changes of the host's speed, so the ratio of two samples of a round varies less than either sample.
"""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from statistics import median
from typing import NamedTuple, NoReturn

from dlbricks_tui.analysis.what_if import Gain
from dlbricks_tui.errors import UserError
from dlbricks_tui.host.contention import contention_between
from dlbricks_tui.measure.carriers import COPIES, PLACEMENT_SHARE, SECONDS_TO_COPY, SLOW_MS
from dlbricks_tui.measure.jobs import timed_runs, untimed_runs
from dlbricks_tui.measure.noise import NoiseMonitor, Round
from dlbricks_tui.measure.stopping import drifting_half_width_ms
from dlbricks_tui.measure.supervised_worker import SupervisedWorker
from dlbricks_tui.runtime.protocol import Program
from dlbricks_tui.store.statistics import trimmed_mean

# Looking after each round would stop at the first interval that is narrow by chance.
_GROWTH_BETWEEN_LOOKS = 1.2


class ProofError(UserError):
    """A what-if cannot be proved."""


@dataclass(frozen=True, slots=True)
class ProofRule:
    """Rounds until half of the interval that they leave is at most `target`, within bounds on rounds and time.

    Slow models get fewer rounds than `least`: those of `enough_seconds`, but `fewest` in any case.
    """

    target: float = 0.02
    fewest: int = 3
    least: int = 12
    most: int = 100
    enough_seconds: float = 15.0
    most_seconds: float = 60.0

    def is_done(self, rounds: int, seconds: float, gain: Gain) -> bool:
        """Return whether so many rounds, which took so long, tell the gain well enough."""
        if rounds < self.fewest:
            return False
        if rounds >= self.most or seconds >= self.most_seconds:
            return True
        if rounds < self.least and seconds < self.enough_seconds:
            return False
        return (gain.high - gain.low) / 2 <= self.target and self._looks_at(rounds)

    def seconds_left(self, rounds: int, seconds: float, gain: Gain) -> float:
        """Return about how long a proof goes on after some rounds in some seconds: the interval shrinks steadily."""
        per_round = seconds / rounds
        needed = rounds * ((gain.high - gain.low) / 2 / self.target) ** 2 if rounds >= self.fewest else math.inf
        least = min(self.least * per_round, max(self.enough_seconds, self.fewest * per_round))
        most = min(self.most * per_round, self.most_seconds)
        return max(0.0, min(max(needed * per_round, least), most) - seconds)

    def _looks_at(self, rounds: int) -> bool:
        look = self.fewest
        while look < rounds:
            look = math.ceil(look * _GROWTH_BETWEEN_LOOKS)
        return look == rounds


def paired_gain(before_ms: Sequence[float], after_ms: Sequence[float], items: float = 1.0) -> Gain:
    """Return the gain from samples of the same rounds, with the interval that these rounds leave.

    `items` is how many times as many items a run before the change computes.
    """
    # Of ratios, the mean of 2 and 1/2 is above 1.
    logarithms = [math.log(items * after / before) for before, after in zip(before_ms, after_ms, strict=True)]
    value, half = trimmed_mean(logarithms), drifting_half_width_ms(logarithms)
    return Gain(*(1.0 - math.exp(it) for it in (value, value + half, value - half)))


def with_placement(gain: Gain) -> Gain:
    """Return a gain with an interval that also holds for other loads of the same models.

    The latency of each depends on the places of its arrays in memory.
    """
    half = math.hypot((gain.high - gain.low) / 2, PLACEMENT_SHARE * (1.0 - gain.value))
    return Gain(gain.value, gain.value - half, gain.value + half)


class ModelSample(NamedTuple):
    """The latency of a model in a round, the seconds that it took to get it, and whether others disturbed it."""

    latency_ms: float
    seconds: float
    disturbed: bool


class TimedModel:
    """A whole model in a worker: loaded twice, unless it is slow, since the places of its arrays change its speed."""

    def __init__(self, worker: SupervisedWorker, program: Program, expected_ms: float, copies: int = COPIES) -> None:
        self._worker = worker
        self._names: list[str] = []
        self._samples_ms: list[float] = []
        self._usual_ms = 0.0
        while len(self._names) < copies:
            name, began = f"copy {len(self._names) + 1}", time.monotonic()
            loaded = worker.load(name, program, expected_ms)
            if loaded is None:
                self._refuse(name)
            self._usual_ms = loaded.first_run_seconds * 1000
            slow_to_load = time.monotonic() - began > SECONDS_TO_COPY
            self._names.append(name)
            # The first run also compiles kernels.
            self._usual_ms = self._run(name)
            if slow_to_load or self._usual_ms > SLOW_MS:
                copies = 1

    @property
    def _latency_ms(self) -> float:
        return median(self._samples_ms) if self._samples_ms else self._usual_ms

    def sample(self, number: int, noise: NoiseMonitor) -> ModelSample:
        """Run the model for the round of that number, and return the median of the timed runs."""
        began, before = time.monotonic(), self._worker.contention()
        sample_ms = self._run(self._names[number // 2 % len(self._names)])
        seconds, counted = time.monotonic() - began, contention_between(before, self._worker.contention())
        runs = untimed_runs(self._latency_ms, whole=True) + timed_runs(self._latency_ms)
        self._samples_ms.append(sample_ms)
        disturbed = noise.disturbance(Round(seconds, runs, counted, ())) is not None
        # The other model runs next.
        self._worker.wait_until_idle()
        return ModelSample(sample_ms, seconds, disturbed)

    def _run(self, name: str) -> float:
        latency_ms = self._latency_ms
        taken = self._worker.sample([name], untimed_runs(latency_ms, whole=True), timed_runs(latency_ms))
        if name not in taken:
            self._refuse(name)
        return median(taken[name])

    def _refuse(self, name: str) -> NoReturn:
        loss = self._worker.take_losses().get(name)
        raise ProofError("the worker was lost" if loss is None else loss.message)


@dataclass(slots=True)
class PairedSamples:
    """The samples of the rounds that count, in their order; samples of the same place are of the same round."""

    before_ms: list[float] = field(default_factory=list)
    after_ms: list[float] = field(default_factory=list)


def time_in_turns(
    before: TimedModel,
    after: TimedModel,
    rule: ProofRule,
    tell: Callable[[int, Gain], None],
    items: float = 1.0,
    clock: Callable[[], float] = time.monotonic,
) -> PairedSamples:
    """Time both models in alternating rounds until the gain is known well enough.

    The order changes from round to round. A round that other programs disturb is repeated, as far as that is worth it.
    """
    samples, noise, began = PairedSamples(), NoiseMonitor(), clock()
    for number in count():
        taken = {model: model.sample(number, noise) for model in ((before, after), (after, before))[number % 2]}
        seconds = sum(it.seconds for it in taken.values())
        if any(it.disturbed for it in taken.values()) and noise.worth_repeating:
            noise.repeat(seconds)
            continue
        noise.count(seconds)
        samples.before_ms.append(taken[before].latency_ms)
        samples.after_ms.append(taken[after].latency_ms)
        gain = paired_gain(samples.before_ms, samples.after_ms, items)
        tell(len(samples.before_ms), gain)
        if rule.is_done(len(samples.before_ms), clock() - began, gain):
            break
    return samples
