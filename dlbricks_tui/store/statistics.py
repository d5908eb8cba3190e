"""Statistics of samples: trimmed means with bootstrap intervals, tests for differences, and latencies in few bytes."""

import base64
import math
import zlib
from array import array
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import fsum, hypot, sqrt
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from dlbricks_tui.store.documents import BrokenDocumentError
from dlbricks_tui.store.records import Statistics

# The share dropped at either end, as in the paper (section 4.1: the middle 60 % of the sorted runs).
TRIM = 0.2
CONFIDENCE = 0.95
RESAMPLES = 1000
_RESAMPLING_SEED = 20191118
# A mean lies within this many standard errors with 95 % confidence.
_TWO_SIDED_95 = 1.96


def summarise(samples_ms: Sequence[float]) -> Statistics:
    """Return the statistics of at least one sample; they do not depend on the order of the samples."""
    ordered = np.sort(np.asarray(samples_ms, dtype=np.float64))
    if not ordered.size:
        raise ValueError("there are no samples")
    # Not by `@`: its threads spin for tens of milliseconds afterwards and would disturb measurements.
    means = np.einsum("ij,j->i", _resampling(len(ordered)), ordered)
    means.sort()
    return Statistics(
        trimmed_mean_ms=float(_kept(ordered).mean()),
        median_ms=quantile(ordered, 0.5),
        minimum_ms=float(ordered[0]),
        spread_ms=quantile(ordered, 0.75) - quantile(ordered, 0.25),
        low_ms=quantile(means, 0.5 - CONFIDENCE / 2),
        high_ms=quantile(means, 0.5 + CONFIDENCE / 2),
        count=len(ordered),
    )


def quantile(ordered: Sequence[float] | NDArray[np.float64], share: float) -> float:
    """Return the quantile of sorted numbers as numpy.quantile does, to the last bit, and ten times as fast."""
    place = share * (len(ordered) - 1)
    below = int(place)
    part, low, high = place - below, float(ordered[below]), float(ordered[min(below + 1, len(ordered) - 1)])
    # NumPy starts from the nearer of the two numbers.
    return high - (high - low) * (1 - part) if part >= 0.5 else low + (high - low) * part


def mean_statistics(found: Sequence[Statistics]) -> Statistics:
    """Return the mean statistics of a brick that was timed in several places; differences widen the interval."""
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
    """Return the mean of latencies, each a value with its interval, and the interval of the mean.

    The interval combines the mean of the intervals with the differences between the values.
    """
    count = len(latencies)
    values, lows, highs = zip(*latencies, strict=True)
    mean, low, high = (fsum(bounds) / count for bounds in (values, lows, highs))
    differ = 0.0
    if count > 1:
        # The standard library's deviation is too slow for a look-up of published results.
        deviation = sqrt(fsum((value - mean) ** 2 for value in values) / (count - 1))
        differ = _TWO_SIDED_95 * deviation / sqrt(count)
    return mean, max(0.0, mean - hypot(mean - low, differ)), mean + hypot(high - mean, differ)


def trimmed_mean(samples: Sequence[float]) -> float:
    """Return the mean without the lowest and the highest fifth."""
    return float(_kept(np.sort(np.asarray(samples, dtype=np.float64))).mean())


def _kept(ordered: NDArray[np.float64]) -> NDArray[np.float64]:
    dropped = int(ordered.shape[-1] * TRIM)
    return ordered[..., dropped : ordered.shape[-1] - dropped]


@lru_cache(maxsize=16)
def _resampling(count: int) -> NDArray[np.float64]:
    """Return the weights that turn sorted samples into the trimmed means of bootstrap resamples.

    The sorted samples that a resample keeps depend on their number only. Series of equal length share the weights, and
    each takes one matrix product.
    """
    drawn = np.sort(np.random.default_rng(_RESAMPLING_SEED).integers(0, count, size=(RESAMPLES, count)), axis=1)
    kept = drawn[:, (dropped := int(count * TRIM)) : count - dropped]
    weights = np.zeros((RESAMPLES, count))
    np.add.at(weights, (np.arange(RESAMPLES)[:, None], kept), 1.0 / kept.shape[1])
    return weights


# With fewer samples the normal approximation of the rank sum is too rough.
FEWEST_SAMPLES = 8
_RATIO_SEED = 19470318


def rank_sum_p_value(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return the p-value of the two-sided Mann-Whitney test, None if there are too few samples.

    The test assumes nothing about the distribution of the samples. Latencies are skewed.
    """
    if min(len(first), len(second)) < FEWEST_SAMPLES:
        return None
    ordered = np.sort(np.concatenate([first, second]))
    ones, others = len(first), len(second)
    total = ones + others
    # Equal samples share the mean of their ranks. Searching is several times as fast as `numpy.unique`.
    ranks = (ordered.searchsorted(first) + ordered.searchsorted(first, side="right") + 1) / 2.0
    larger = float(ranks.sum()) - ones * (ones + 1) / 2.0
    sizes = (ordered.searchsorted(ordered, side="right") - ordered.searchsorted(ordered)).astype(np.float64)
    ties = float((sizes**2 - 1).sum()) / (total * (total - 1))
    variance = ones * others / 12.0 * (total + 1 - ties)
    if variance <= 0.0:
        return 1.0
    # Continuity correction.
    distance = max(0.0, abs(larger - ones * others / 2.0) - 0.5)
    return math.erfc(distance / math.sqrt(2.0 * variance))


def exact_rank_sum_p_value(first: Sequence[float], second: Sequence[float]) -> float:
    """Return the p-value of the two-sided Mann-Whitney test for few samples, from all orders that they can have.

    A pair of equal samples counts half, rounded towards no difference.
    """
    # It takes time with the square of the number of the first ones.
    first, second = sorted((first, second), key=len)
    ones, others = len(first), len(second)
    larger = sum((one > other) + (one == other) / 2 for one in first for other in second)
    extreme = math.ceil(min(larger, ones * others - larger))
    # The number of orders with each rank sum: coefficients of the Gaussian binomial.
    orders = [1] + [0] * extreme
    for step in range(1, ones + 1):
        for place in range(extreme, others + step - 1, -1):
            orders[place] -= orders[place - others - step]
        for place in range(step, extreme + 1):
            orders[place] += orders[place - step]
    return min(1.0, 2.0 * sum(orders) / math.comb(ones + others, ones))


def t_p_value(distance: float, freedom: float) -> float:
    """Return the two-sided p-value of a distance in standard errors, by Student's distribution.

    By Wallace's approximation, which is right to 2 % from 4 degrees of freedom on, and larger than p below. Infinite
    degrees are the normal distribution.
    """
    if not math.isinf(freedom):
        distance = (
            math.sqrt(freedom * math.log1p(distance * distance / freedom)) * (8 * freedom + 1) / (8 * freedom + 3)
        )
    return math.erfc(distance / math.sqrt(2.0))


def adjusted(p_values: Sequence[float]) -> list[float]:
    """Return the p-values of many tests, adjusted by Benjamini and Hochberg's method.

    Of the adjusted values below a limit, at most that share is expected to be chance.
    """
    count = len(p_values)
    order = np.argsort(np.asarray(p_values, dtype=np.float64), kind="stable")[::-1]
    scaled = np.asarray(p_values, dtype=np.float64)[order] * count / np.arange(count, 0, -1)
    found = np.empty(count)
    found[order] = np.minimum.accumulate(np.minimum(scaled, 1.0))
    return [float(each) for each in found]


def mean_ratio(ratios: Sequence[float]) -> tuple[float, float, float]:
    """Return the geometric mean of at least one ratio and its 95 % interval (bootstrap)."""
    logarithms = np.log(np.asarray(ratios, dtype=np.float64))
    generator = np.random.default_rng(_RATIO_SEED)
    # One by one: all resamples at once would take too much memory.
    means = [logarithms[generator.integers(0, len(logarithms), len(logarithms))].mean() for _ in range(RESAMPLES)]
    low, high = np.quantile(means, (0.5 - CONFIDENCE / 2, 0.5 + CONFIDENCE / 2))
    return math.exp(float(logarithms.mean())), math.exp(float(low)), math.exp(float(high))


# A day of 10,000 requests a second would be more; a text from elsewhere must not fill the memory.
_MOST_BYTES = 1 << 28


def pack_latencies(latencies_ns: Iterable[int]) -> str:
    """Return latencies as text."""
    packed = array("q", latencies_ns)
    return base64.b64encode(zlib.compress(packed.tobytes(), 9)).decode()


def unpack_latencies(text: str) -> Sequence[int]:
    """Return the latencies in a text; raise BrokenDocumentError if it holds none."""
    try:
        inflater = zlib.decompressobj()
        content = inflater.decompress(base64.b64decode(text, validate=True), _MOST_BYTES)
    except (ValueError, zlib.error) as error:
        raise BrokenDocumentError("has latencies that cannot be read") from error
    if inflater.unconsumed_tail or not inflater.eof or len(content) % 8:
        raise BrokenDocumentError("has latencies that cannot be read")
    return array("q", content)
