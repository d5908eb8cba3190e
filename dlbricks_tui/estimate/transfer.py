"""Predictions from other systems: how long bricks take on a system that has measured only some of them.

The logarithm of a latency is the mean over the known systems plus a deviation. The deviations of a new system are a
Gaussian process. Bricks deviate alike

- all of them: a system is slower or faster,
- if they are of one kind, and the more so the nearer they are in latency and efficiency,
- if the known systems differ in them in the same way.

What remains is a brick's own. `python -m benchmarks.probe` leaves systems out.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dlbricks_tui.estimate.features import features_of
from dlbricks_tui.estimate.knowledge import Latency, Pair
from dlbricks_tui.estimate.nearest import LEAST_MS, Numbers, conformal_quantile

Places = NDArray[np.intp]

# Numbers that keep matrices invertible, and roots away from zero.
_LEAST_VARIANCE = 1e-6
_SIGMAS = 1.96
# Farther from its prediction than so many standard deviations, a measured brick has something by itself; this is found
# in so many rounds.
_FAR, _ROUNDS = 2.0, 3
# The share of the half intervals that all predictions of a model have in common (`python -m benchmarks.probe`).
SHARED = 0.3
# More measured bricks than these add little.
_MOST_MEASURED = 500


class Law(NamedTuple):
    """The variances of the logarithms of latencies on a new system, and the distances within which bricks are near."""

    # What all bricks have in common, those of a kind, and near ones of a kind.
    common: float = 0.06
    kind: float = 0.3
    near: float = 0.03
    # Distances of the logarithms of latency and efficiency.
    near_latency: float = 3.0
    near_efficiency: float = 1.0
    # The factor by which the new system differs as a known one does.
    like_known: float = 0.3
    # What a brick has by itself.
    own: float = 0.016


# Fitted to five systems of 2019 and to three hosts.
USUAL = Law()


class KnownBrick(NamedTuple):
    """A brick in a context, and its latencies by system; at least one."""

    pair: Pair
    kind: str
    # The logarithm of its arithmetic.
    work: float
    latencies_ms: Mapping[str, float]


class BrickInCommon(NamedTuple):
    """A brick that known systems and the new one have measured, and its latency on the new one."""

    brick: KnownBrick
    latency_ms: float


def known_brick(pair: Pair, canonical: str, latencies_ms: Mapping[str, float]) -> KnownBrick:
    """Return a known brick by its canonical form; one without features has no kind and no work."""
    features = features_of(canonical, pair[1])
    kind, work = ("", 0.0) if features is None else (features.kind.value, features.sizes[0])
    return KnownBrick(pair, kind, work, latencies_ms)


@dataclass(frozen=True, eq=False)
class Deviations:
    """The deviations of a system from the mean of known systems, as far as its measured bricks tell."""

    pairs: tuple[Pair, ...]
    law: Law
    # The logarithms of the mean latencies, and the differences of each known system (column) from them.
    means: Numbers
    differences: Numbers
    # Bricks of one kind have one number. The efficiency is the logarithm of work over latency.
    kinds: Places
    efficiencies: Numbers
    # The measured bricks and their deviations; none at first.
    measured: Places
    found: Numbers

    @cached_property
    def places(self) -> Mapping[Pair, int]:
        """The places of the bricks."""
        return {pair: place for place, pair in enumerate(self.pairs)}

    def given(self, latencies_ms: Mapping[Pair, float]) -> "Deviations":
        """Return the deviations of a system, given its measured latencies; bricks of no known system are ignored."""
        held = {self.places[pair]: latency_ms for pair, latency_ms in latencies_ms.items() if pair in self.places}
        measured = np.array(sorted(held), dtype=np.intp)
        measured = measured[:: math.ceil(len(measured) / _MOST_MEASURED) or 1]
        latencies = np.array([held[place] for place in measured.tolist()], dtype=np.float64)
        logs = np.log(np.maximum(LEAST_MS, latencies))
        return replace(self, measured=measured, found=logs - self.means[measured])

    def covariance(self, some: Places, others: Places) -> Numbers:
        """Return the covariance of the deviations of some bricks (rows) and others, before anything is measured.

        The part that is a brick's own is left out.
        """
        law = self.law
        apart = np.subtract.outer(self.means[some], self.means[others]) / law.near_latency
        unlike = np.subtract.outer(self.efficiencies[some], self.efficiencies[others]) / law.near_efficiency
        alike = self.kinds[some][:, None] == self.kinds[others]
        found = law.common + alike * (law.kind + law.near * np.exp(-0.5 * (apart**2 + unlike**2)))
        found += law.like_known * self.differences[some] @ self.differences[others].T
        return np.asarray(found)

    def variance(self, some: Places) -> Numbers:
        """Return the variance of the deviations before anything is measured, without the bricks' own parts."""
        law = self.law
        return np.asarray(law.common + law.kind + law.near + law.like_known * (self.differences[some] ** 2).sum(axis=1))

    def remaining_covariance(self, some: Places) -> Numbers:
        """Return the covariance of the deviations of some bricks, their own parts included, given the measured ones."""
        found = self.covariance(some, some) + np.diag(self._own[some])
        across = self._with_measured(some)
        return np.asarray(found - across @ self._inverse @ across.T)

    def predict(self, pairs: Sequence[Pair]) -> list[Latency]:
        """Return the latency of each of these known bricks, with its 95 % interval."""
        wanted = np.array([self.places[pair] for pair in pairs], dtype=np.intp)
        across = self._with_measured(wanted)
        weights = across @ self._inverse
        variances = self.variance(wanted) + self._own[wanted] - (weights * across).sum(axis=1)
        values_ms = np.exp(self.means[wanted] + weights @ self.found)
        factors = np.exp(_SIGMAS * self.width * np.sqrt(np.maximum(_LEAST_VARIANCE, variances)))
        return [
            Latency(value_ms, value_ms / factor, value_ms * factor)
            for value_ms, factor in zip(values_ms.tolist(), factors.tolist(), strict=True)
        ]

    def _with_measured(self, some: Places) -> Numbers:
        """Return the covariance of bricks (rows) and measured ones; the own part of a measured brick is known."""
        own = self._own[self.measured] * (some[:, None] == self.measured)
        return np.asarray(self.covariance(some, self.measured) + own)

    @cached_property
    def _own(self) -> Numbers:
        """The variance that each brick has by itself.

        A measured brick that is far from what others of its kind predict tells about itself, and little about them.
        """
        own, usual = np.full(len(self.pairs), self.law.own), self.law.own
        covariance = self.covariance(self.measured, self.measured)
        for _ in range(_ROUNDS if len(self.measured) else 0):
            inverse = np.linalg.inv(covariance + np.diag(own[self.measured]))
            apart, expected = self._left_out(inverse, own)
            beyond = np.maximum(0.0, apart**2 - _FAR**2 * expected)
            # Otherwise no other brick of its kind was measured.
            own[self.measured] = usual + np.where(expected < self.law.kind / 2, beyond, 0.0)
        return own

    @cached_property
    def _inverse(self) -> Numbers:
        covariance = self.covariance(self.measured, self.measured)
        return np.asarray(np.linalg.inv(covariance + np.diag(self._own[self.measured])))

    def _left_out(self, inverse: Numbers, own: Numbers) -> tuple[Numbers, Numbers]:
        """Return how far each measured brick is from what all others predict, and the variance that is expected."""
        expected = 1.0 / np.diag(inverse)
        return inverse @ self.found * expected, expected - own[self.measured] + self.law.own

    @cached_property
    def width(self) -> float:
        """The width of intervals over that of a normal distribution.

        Each measured brick is predicted from the others: the interval has to hold for as many of them as it says.
        """
        apart, expected = self._left_out(self._inverse, self._own)
        scores = np.abs(apart) / np.sqrt(np.maximum(_LEAST_VARIANCE, expected))
        return max(1.0, conformal_quantile(scores.tolist(), 0.95) / _SIGMAS) if len(scores) else 1.0


def deviations(bricks: Iterable[KnownBrick], law: Law = USUAL) -> Deviations:
    """Return what is known of a system before anything is measured on it."""
    held = tuple(bricks)
    systems = sorted({system for brick in held for system in brick.latencies_ms})

    def log(latency_ms: float | None) -> float:
        return math.nan if latency_ms is None else math.log(max(LEAST_MS, latency_ms))

    logs = np.array([[log(brick.latencies_ms.get(system)) for system in systems] for brick in held])
    logs = _completed(logs.reshape(len(held), len(systems)))
    means = logs.mean(axis=1)
    differences: Numbers = logs - means[:, None]
    if len(held):
        # What a known system has in all bricks tells nothing about one brick.
        differences -= differences.mean(axis=0, keepdims=True)
    return Deviations(
        tuple(brick.pair for brick in held),
        law,
        means,
        differences,
        np.unique([brick.kind for brick in held], return_inverse=True)[1],
        np.array([brick.work for brick in held]) - means,
        np.zeros(0, dtype=np.intp),
        np.zeros(0),
    )


def _completed(logs: Numbers) -> Numbers:
    """Fill in what a system (column) lacks: the mean of the others plus its median difference from that mean."""
    known = np.isfinite(logs)
    found: Numbers = logs.copy()
    for system in range(logs.shape[1]):
        others = np.where(known, logs, 0.0).sum(axis=1) - np.where(known[:, system], logs[:, system], 0.0)
        count = known.sum(axis=1) - known[:, system]
        means = others / np.maximum(1, count)
        both = known[:, system] & (count > 0)
        usual = float(np.median(logs[both, system] - means[both])) if both.any() else 0.0
        lacking = ~known[:, system]
        found[lacking, system] = means[lacking] + usual
    return found
