"""What a series of samples says about a latency."""

from collections.abc import Sequence
from functools import lru_cache
from math import fsum, hypot, sqrt
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from dlbricks_tui.store.records import Statistics

# Dropped at either end, as the paper's published means do (section 4.1: the middle 60 % of the sorted runs).
TRIM = 0.2
CONFIDENCE = 0.95
RESAMPLES = 1000
_SEED = 20191118
# Standard errors to either side between which a mean lies with 95 % confidence.
_TWO_SIDED_95 = 1.96


def summarise(samples_ms: Sequence[float]) -> Statistics:
    """The statistics of at least one sample; the same samples give the same interval, whatever their order."""
    ordered = np.sort(np.asarray(samples_ms, dtype=np.float64))
    if not ordered.size:
        raise ValueError("there are no samples")
    quarter, median, three_quarters = np.quantile(ordered, (0.25, 0.5, 0.75))
    # Not by `@`: its threads would go on spinning for tens of milliseconds beside whatever is being timed.
    means = np.einsum("ij,j->i", _resampling(len(ordered)), ordered)
    low, high = np.quantile(means, (0.5 - CONFIDENCE / 2, 0.5 + CONFIDENCE / 2))
    return Statistics(
        trimmed_mean_ms=float(_kept(ordered).mean()),
        median_ms=float(median),
        minimum_ms=float(ordered[0]),
        spread_ms=float(three_quarters - quarter),
        low_ms=float(low),
        high_ms=float(high),
        count=len(ordered),
    )


def mean_statistics(found: Sequence[Statistics]) -> Statistics:
    """The statistics of a brick that was timed in several places: their mean, unsure as their differences show."""
    mean = mean_latency([(it.trimmed_mean_ms, it.low_ms, it.high_ms) for it in found])
    return Statistics(
        trimmed_mean_ms=mean[0],
        median_ms=fmean(it.median_ms for it in found),
        minimum_ms=min(it.minimum_ms for it in found),
        spread_ms=fmean(it.spread_ms for it in found),
        low_ms=mean[1],
        high_ms=mean[2],
        count=sum(it.count for it in found),
    )


def mean_latency(latencies: Sequence[tuple[float, float, float]]) -> tuple[float, float, float]:
    """The mean of latencies, each a value with its interval, and the interval of the mean.

    The interval holds both the mean of the intervals and how much the values differ.
    """
    count = len(latencies)
    values, lows, highs = zip(*latencies, strict=True)
    mean, low, high = (fsum(bounds) / count for bounds in (values, lows, highs))
    differ = 0.0
    if count > 1:
        # The standard library's deviation is exact, and too slow for a look-up of published results.
        deviation = sqrt(fsum((value - mean) ** 2 for value in values) / (count - 1))
        differ = _TWO_SIDED_95 * deviation / sqrt(count)
    return mean, max(0.0, mean - hypot(mean - low, differ)), mean + hypot(high - mean, differ)


def trimmed_mean(samples: Sequence[float]) -> float:
    """The mean of what remains when the lowest and the highest fifth are dropped."""
    return float(_kept(np.sort(np.asarray(samples, dtype=np.float64))).mean())


def _kept(ordered: NDArray[np.float64]) -> NDArray[np.float64]:
    dropped = int(ordered.shape[-1] * TRIM)
    return ordered[..., dropped : ordered.shape[-1] - dropped]


@lru_cache(maxsize=16)
def _resampling(count: int) -> NDArray[np.float64]:
    """The weights that turn sorted samples into the trimmed means of bootstrap resamples.

    Which sorted samples a resample keeps depends on their number alone, so series of equal length share the drawing
    and the sorting, and one matrix product is left per series.
    """
    drawn = np.sort(np.random.default_rng(_SEED).integers(0, count, size=(RESAMPLES, count)), axis=1)
    kept = drawn[:, (dropped := int(count * TRIM)) : count - dropped]
    weights = np.zeros((RESAMPLES, count))
    np.add.at(weights, (np.arange(RESAMPLES)[:, None], kept), 1.0 / kept.shape[1])
    return weights
