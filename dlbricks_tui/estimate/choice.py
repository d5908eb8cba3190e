"""The choice of bricks to measure on a system: what each tells about the latencies of models, and what it costs."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dlbricks_tui.estimate.estimate import Estimate
from dlbricks_tui.estimate.knowledge import Pair
from dlbricks_tui.estimate.nearest import LEAST_MS, Numbers
from dlbricks_tui.estimate.transfer import Deviations

# The bricks among which the most informative ones are chosen: those with the largest shares of the models.
_MOST_CANDIDATES = 600
# Keeps divisors and roots away from zero.
_LEAST_VARIANCE = 1e-6


class Trial(NamedTuple):
    """Bricks that can be measured together, and the seconds that this takes."""

    pairs: tuple[Pair, ...]
    seconds: float


class Limit(NamedTuple):
    """The most bricks to measure, and the most seconds."""

    bricks: int
    seconds: float


def most_informative(
    system: Deviations, models: Sequence[Mapping[Pair, float]], trials: Sequence[Trial], limit: Limit
) -> list[Trial]:
    """Return the trials that leave the least uncertainty about the latencies of models, the best first.

    A model is given by how often it runs each brick. A trial is the better, the more it lowers the standard deviations
    of the models per share of the limit that it takes: of the bricks or of the seconds, of which there is less.
    """
    used = sorted({pair for model in models for pair in model} & system.places.keys())
    shares = _shares(system, models, used)
    order = np.argsort(-shares.sum(axis=0), kind="stable")[:_MOST_CANDIDATES]
    places = np.array([system.places[used[number]] for number in order.tolist()], dtype=np.intp)
    shares = shares[:, order]
    number_of = {system.pairs[place]: number for number, place in enumerate(places.tolist())}
    held = [[number_of[pair] for pair in trial.pairs if pair in number_of] for trial in trials]
    covariance = system.remaining_covariance(places)
    # The part of each brick in a trial: the trial tells about the latency of all of its bricks together.
    parts = np.zeros((len(trials), len(places)))
    for trial, numbers in enumerate(held):
        weights = shares[:, numbers].sum(axis=0)
        parts[trial, numbers] = weights / max(_LEAST_VARIANCE, weights.sum())
    of_models, of_trials = shares @ covariance, parts @ covariance
    seconds = np.array([trial.seconds for trial in trials])
    counts = np.array([len(numbers) for numbers in held])
    whole = max(1, limit.bricks), max(_LEAST_VARIANCE, limit.seconds)
    costs = np.maximum(_LEAST_VARIANCE, np.maximum(counts / whole[0], seconds / whole[1]))
    waiting = parts.any(axis=1)
    left, seconds_left = limit
    chosen: list[Trial] = []
    while True:
        waiting &= (counts <= left) & (seconds <= seconds_left)
        gains = np.where(waiting, _gains(of_models, of_trials, shares, parts) / costs, 0.0)
        best = int(np.argmax(gains)) if len(gains) else 0
        if not len(gains) or gains[best] <= 0.0:
            return chosen
        waiting[best] = False
        chosen.append(trials[best])
        left, seconds_left = left - len(held[best]), seconds_left - trials[best].seconds
        for number in held[best]:
            row = covariance[number] / math.sqrt(covariance[number, number] + _LEAST_VARIANCE)
            of_models -= np.outer(shares @ row, row)
            of_trials -= np.outer(parts @ row, row)
            covariance -= np.outer(row, row)


def _gains(of_models: Numbers, of_trials: Numbers, shares: Numbers, parts: Numbers) -> Numbers:
    """Return by how much the standard deviations of all models together fall with each trial.

    The covariances of models and of trials (rows) with bricks are given.
    """
    variances = np.maximum(_LEAST_VARIANCE, (of_models * shares).sum(axis=1))
    of_parts = (of_trials * parts).sum(axis=1) + _LEAST_VARIANCE
    removed = (of_models @ parts.T) ** 2 / of_parts
    left = np.sqrt(np.maximum(_LEAST_VARIANCE, variances[:, None] - removed))
    return np.asarray((np.sqrt(variances)[:, None] - left).sum(axis=0))


def _shares(system: Deviations, models: Sequence[Mapping[Pair, float]], used: Sequence[Pair]) -> Numbers:
    """Return the expected share of each brick (column) in the latency of each model (row)."""
    expected_ms = np.array([latency.value_ms for latency in system.predict(used)])
    times = np.array([[model.get(pair, 0.0) for pair in used] for model in models])
    latencies_ms = times * expected_ms
    return np.asarray(latencies_ms / np.maximum(LEAST_MS, latencies_ms.sum(axis=1, keepdims=True)))


# An interval whose ends differ by such a factor tells little, unless its upper end is less than a share of the model.
_VAGUE, _NEGLIGIBLE = 5.0, 0.005


class Needed(NamedTuple):
    """Bricks to measure, the most uncertain first, and half of today's interval as a share of the estimate.

    The method's error does not count: no measurement of bricks reduces it.
    """

    pairs: tuple[Pair, ...]
    half_width: float


def needed_for(found: Estimate, shared: float, target: float) -> Needed:
    """Return the bricks without which half of the interval would exceed the target, a share of the estimate.

    `shared` is the share of the half intervals that all predictions have in common. Bricks without any latency come
    first, and then those of which little is known.
    """
    lacking = dict.fromkeys(part.pair for part in found.parts if not part.counts and not part.reason)
    whole_ms = 0.0 if found.composed is None else found.composed.sequential_ms
    vague: set[Pair] = set()
    halves_ms: defaultdict[Pair, float] = defaultdict(float)
    for part in found.parts:
        if part.predicted and not part.reason:
            value_ms, low_ms, high_ms = part.latency
            if high_ms > _VAGUE * low_ms and part.times * high_ms > _NEGLIGIBLE * whole_ms:
                vague.add(part.pair)
            halves_ms[part.pair] += part.times * max(value_ms - low_ms, high_ms - value_ms)
    if found.composed is None or not found.composed.sequential_ms:
        return Needed((*lacking, *halves_ms), math.inf)
    doubt = found.composed.doubt
    sampling_ms = max(doubt.sampling_below_ms, doubt.sampling_above_ms)
    linear, squares = math.fsum(halves_ms.values()), math.fsum(half**2 for half in halves_ms.values())

    def half_width() -> float:
        own = max(0.0, (1.0 - shared**2) * squares)
        return math.hypot(sampling_ms, shared * linear, math.sqrt(own)) / whole_ms

    today = math.inf if lacking else half_width()
    chosen = list(lacking)
    for pair, half_ms in sorted(halves_ms.items(), key=lambda it: (it[0] not in vague, -it[1])):
        if pair not in vague and half_width() <= target:
            break
        chosen.append(pair)
        linear, squares = linear - half_ms, squares - half_ms**2
    if half_width() > target:
        # Then results are too wide themselves.
        measured = [it for it in found.parts if it.counts and it.measured is not None]
        widest = sorted(measured, key=lambda it: it.times * (it.latency.low_ms - it.latency.high_ms))
        chosen += dict.fromkeys(it.pair for it in widest)
    return Needed(tuple(chosen), today)
