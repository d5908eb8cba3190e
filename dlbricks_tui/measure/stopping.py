"""Stopping rules: when a program has been timed often enough, and the statistics of its samples."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean, median

from dlbricks_tui.measure.events import MeasureError, Stop
from dlbricks_tui.store.records import Statistics
from dlbricks_tui.store.statistics import summarise

# Fewer samples give no interval.
FEWEST_SAMPLES = 5
# The interval of steady samples is reliable from this many on. Latencies above this one are always steady, and the
# longest get no more samples than this.
_FEWEST_STEADY, _STEADY_BY_ITSELF_MS = 8, 200.0
FEWEST_OF_THE_LONGEST = 3
# Checking after every sample would stop at the first interval that is narrow by chance.
_GROWTH_BETWEEN_LOOKS = 1.2
# Errors of many bricks cancel out: a brick that is less than this share of each of its models may have a wider
# interval, in proportion, up to this factor.
_SMALL_SHARE, _MOST_LENIENCY = 0.3, 5.0
# A wider interval says nothing, however small the share.
_WIDEST_TARGET = 0.5
# Programs have run before they are timed. If more samples than this are slow, the program is not warming up: the host
# has become faster, also for the programs in the same rounds (docs/log/hosts.md).
_LONGEST_WARM_UP = 5
# A sample is an outlier if it is more than this many interquartile ranges outside the quartiles.
_FENCE = 3.0
# A higher autocorrelation would make the interval of the mean meaninglessly wide.
_MOST_ALIKE = 0.9
_FEW_SAMPLES = 8.0


@dataclass(frozen=True, slots=True)
class Adaptive:
    """Samples until half of the 95 % interval is at most `target` of the latency, within bounds on samples and time.

    - Long programs vary little: fewer than `least` samples are enough if they last `enough_seconds` together.
    - Quick programs always vary by more than `target`: an interval of `enough_ms` to either side is enough.
    - Bricks that are a small share of each of their models may have wider intervals.
    """

    target: float = 0.02
    least: int = 12
    most: int = 50
    quick_seconds: float = 2.5
    most_seconds: float = 20.0
    enough_seconds: float = 0.06
    enough_ms: float = 0.003

    def __post_init__(self) -> None:
        if not 0 < self.target < 1:
            raise MeasureError(f"a target of {self.target:g} cannot be reached: give a share such as 0.01")

    def narrowed(self, target: float) -> "Adaptive":
        """Return the rule with another target; a narrower one may take more samples, up to four times as many."""
        aimed = replace(self, target=target)
        return replace(aimed, most=round(self.most * min(max(1.0, (self.target / target) ** 2), 4.0)))

    def for_share(self, share: float) -> "Adaptive":
        """Return the rule for a carrier on which this share of an estimate rests, so that the estimate has the target.

        Errors of carriers are independent: with shares that add up to 1 and targets divided by the roots of the shares,
        the squares of the errors add up to that of the target.
        """
        factor = min(1 / math.sqrt(share), _MOST_LENIENCY) if share > 0 else _MOST_LENIENCY
        target = min(self.target * factor, max(self.target, _WIDEST_TARGET))
        return replace(self, target=target, most=max(self.least, round(self.most / factor**2)))

    def bounds(self, latency_ms: float) -> tuple[int, int]:
        """Return the fewest and the most samples of a program with that latency."""
        runs_per_second = 1000 / latency_ms if latency_ms > 0 else math.inf
        cap = max(FEWEST_OF_THE_LONGEST, math.floor(min(self.most_seconds * runs_per_second, self.most)))
        fewest = _FEWEST_STEADY if latency_ms < _STEADY_BY_ITSELF_MS else FEWEST_SAMPLES
        enough = max(fewest, math.ceil(min(self.enough_seconds * runs_per_second, self.least)))
        return min(enough, self.least, cap), cap

    def most_samples(self, latency_ms: float, share: float = 1.0) -> int:
        """Return how many samples are enough, however much they vary, for that latency and share of a model."""
        needed, cap = self.bounds(latency_ms)
        return cap if share >= _SMALL_SHARE else max(needed, cap // 2)

    def is_quick(self, latency_ms: float) -> bool:
        """True if even the most samples of any model cost next to nothing."""
        return latency_ms * self.most <= 1000 * self.quick_seconds

    def stop(self, statistics: Statistics, share: float = 1.0) -> Stop | None:
        """Return why a program with these statistics needs no more samples; None if it needs more."""
        needed, _ = self.bounds(statistics.median_ms)
        if statistics.count < needed:
            return None
        if self.is_narrow(statistics, share):
            return Stop.NARROW
        most = self.most_samples(statistics.median_ms, share)
        return Stop.MOST_SAMPLES if statistics.count >= most else None

    def is_narrow(self, statistics: Statistics, share: float = 1.0) -> bool:
        """True if the interval is narrow enough for a program that is this share of a model."""
        leniency = min(_SMALL_SHARE / share, _MOST_LENIENCY) if share < _SMALL_SHARE else 1.0
        narrow_ms = max(leniency * self.target * statistics.trimmed_mean_ms, self.enough_ms)
        return half_width_ms(statistics) <= narrow_ms

    def looks_at(self, samples: int) -> bool:
        """True if the rule is checked at this number of samples."""
        if samples >= self.most:
            return True
        look = self.least if samples >= self.least else FEWEST_OF_THE_LONGEST
        while look < samples:
            look = math.ceil(look * _GROWTH_BETWEEN_LOOKS)
        return look == samples


@dataclass(frozen=True, slots=True)
class FixedRuns:
    """A fixed number of runs of each program, as in the paper; its methods are those of `Adaptive`."""

    runs: int

    def __post_init__(self) -> None:
        if self.runs < 1:
            raise MeasureError(f"{self.runs} runs measure nothing: give 1 or more")

    def most_samples(self, latency_ms: float, share: float = 1.0) -> int:
        return self.runs

    def is_quick(self, latency_ms: float) -> bool:
        """False: there are never more samples."""
        return False

    def stop(self, statistics: Statistics, share: float = 1.0) -> Stop | None:
        return Stop.RUNS if statistics.count >= self.runs else None

    def looks_at(self, samples: int) -> bool:
        return samples >= self.runs


StoppingRule = Adaptive | FixedRuns


@dataclass(frozen=True, slots=True)
class Samples:
    """All samples of a program in the order in which they were taken, and the statistics of those after the warm-up."""

    samples_ms: tuple[float, ...]
    warm_up: int
    statistics: Statistics
    # The number of outliers among the samples; they are kept, and trimmed like others.
    outliers: int
    # None if the rule requires more samples.
    stop: Stop | None = None
    # Reasons for doubt: the result is kept, and does not count.
    flags: tuple[str, ...] = ()


def samples_of(samples_ms: Sequence[float], rule: StoppingRule) -> Samples:
    """Return the statistics of one sample or more; of fixed runs none counts as warm-up, as in the paper."""
    warm_up = 0 if isinstance(rule, FixedRuns) else warm_up_length(samples_ms)
    steady = samples_ms[warm_up:]
    return Samples(tuple(samples_ms), warm_up, summarise(steady), len(outliers(steady)))


def half_width_ms(statistics: Statistics) -> float:
    return (statistics.high_ms - statistics.low_ms) / 2


def drifting_half_width_ms(samples_ms: Sequence[float]) -> float:
    """Return half of the interval of the mean of autocorrelated samples, as on a host whose speed drifts.

    Samples with a lag-1 autocorrelation r are worth (1 - r) / (1 + r) times as many independent ones. Few samples
    underestimate both r and their own spread; the two terms in 1/n correct that.
    """
    half_ms = half_width_ms(summarise(samples_ms))
    count = len(samples_ms)
    correlation = _autocorrelation(samples_ms)
    correlation = min(_MOST_ALIKE, max(0.0, correlation + (1 + 3 * correlation) / count))
    return half_ms * math.sqrt((1 + correlation) / (1 - correlation)) * (1 + _FEW_SAMPLES / count)


def samples_until_narrow(samples_ms: Sequence[float], half_ms: float, most: int) -> int:
    """Return how many samples like these narrow the interval to `half_ms` to either side, at most `most`."""
    count = len(samples_ms)
    steady_ms = drifting_half_width_ms(samples_ms) / (1 + _FEW_SAMPLES / count) * math.sqrt(count)
    numbers = range(count, most)
    return next((it for it in numbers if steady_ms / math.sqrt(it) * (1 + _FEW_SAMPLES / it) <= half_ms), most)


def _autocorrelation(samples_ms: Sequence[float]) -> float:
    """Return the lag-1 autocorrelation, with outliers moved towards the median."""
    middle = median(samples_ms)
    reach = _FENCE * median(abs(it - middle) for it in samples_ms)
    kept = [min(max(it, middle - reach), middle + reach) for it in samples_ms]
    mean = fmean(kept)
    apart = [it - mean for it in kept]
    total = sum(it * it for it in apart)
    return sum(one * next_one for one, next_one in pairwise(apart)) / total if total else 0.0


def warm_up_length(samples_ms: Sequence[float]) -> int:
    """Return the number of first samples that are warm-up: slower than is usual in the second half.

    More than `_LONGEST_WARM_UP` slow samples are no warm-up.
    """
    half = len(samples_ms) // 2
    if half < 2:
        return 0
    _, high = _fences(samples_ms[half:])
    slower = next((place for place, sample in enumerate(samples_ms[:half]) if sample <= high), half)
    return slower if slower <= _LONGEST_WARM_UP else 0


def outliers(samples_ms: Sequence[float]) -> tuple[int, ...]:
    if len(samples_ms) < 4:
        return ()
    low, high = _fences(samples_ms)
    return tuple(place for place, sample in enumerate(samples_ms) if not low <= sample <= high)


def _fences(samples_ms: Sequence[float]) -> tuple[float, float]:
    ordered = sorted(samples_ms)
    quarter, three_quarters = ordered[len(ordered) // 4], ordered[(3 * len(ordered)) // 4]
    reach = _FENCE * (three_quarters - quarter)
    return quarter - reach, three_quarters + reach
