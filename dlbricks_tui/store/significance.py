"""Whether two series of samples differ by more than chance, and by how much many of them do together."""

import math
from collections.abc import Sequence

import numpy as np

from dlbricks_tui.store.statistics import CONFIDENCE, RESAMPLES

# Below, the normal approximation of the rank sum is too rough to be believed.
FEWEST_SAMPLES = 8
_SEED = 19470318


def rank_sum_p_value(first: Sequence[float], second: Sequence[float]) -> float | None:
    """How likely series as different as these are if nothing differs (Mann and Whitney's test, two-sided).

    It asks nothing of how samples are distributed, and those of latencies are skewed. None where there are too few.
    """
    if min(len(first), len(second)) < FEWEST_SAMPLES:
        return None
    _, group, sizes = np.unique(np.concatenate([first, second]), return_inverse=True, return_counts=True)
    # Equal samples share the mean of their ranks.
    ranks = (np.cumsum(sizes) - (sizes - 1) / 2.0)[group]
    ones, others = len(first), len(second)
    total = ones + others
    larger = float(ranks[:ones].sum()) - ones * (ones + 1) / 2.0
    ties = float((sizes.astype(np.float64) ** 3 - sizes).sum()) / (total * (total - 1))
    variance = ones * others / 12.0 * (total + 1 - ties)
    if variance <= 0.0:
        return 1.0
    # Counts move in steps of a half at least, which a bell curve does not know.
    distance = max(0.0, abs(larger - ones * others / 2.0) - 0.5)
    return math.erfc(distance / math.sqrt(2.0 * variance))


def adjusted(p_values: Sequence[float]) -> list[float]:
    """The p-values of many tests made at once (Benjamini and Hochberg).

    Of those that are below a limit afterwards, no larger share than the limit is expected to be chance.
    """
    count = len(p_values)
    order = np.argsort(np.asarray(p_values, dtype=np.float64), kind="stable")[::-1]
    scaled = np.asarray(p_values, dtype=np.float64)[order] * count / np.arange(count, 0, -1)
    found = np.empty(count)
    found[order] = np.minimum.accumulate(np.minimum(scaled, 1.0))
    return [float(each) for each in found]


def mean_ratio(ratios: Sequence[float]) -> tuple[float, float, float]:
    """The geometric mean of at least one ratio, and between which bounds it lies with 95 % confidence (bootstrap)."""
    logarithms = np.log(np.asarray(ratios, dtype=np.float64))
    chance = np.random.default_rng(_SEED)
    # One resample after another: all at once would take the memory of a small host.
    means = [logarithms[chance.integers(0, len(logarithms), len(logarithms))].mean() for _ in range(RESAMPLES)]
    low, high = np.quantile(means, (0.5 - CONFIDENCE / 2, 0.5 + CONFIDENCE / 2))
    return math.exp(float(logarithms.mean())), math.exp(float(low)), math.exp(float(high))
