"""When a program has been timed often enough, and what its samples then say."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from statistics import fmean, median

from dlbricks_tui.measure.errors import MeasureError
from dlbricks_tui.store.records import Statistics
from dlbricks_tui.store.statistics import summarise

# Fewer samples say nothing about how far apart they are.
FEWEST_SAMPLES = 5
# From so many on the interval of samples that hardly vary is worth believing; those that last so long hardly ever vary,
# and of the longest nobody wants to wait for more than these.
_FEWEST_STEADY, _STEADY_BY_ITSELF_MS = 8, 200.0
FEWEST_OF_THE_LONGEST = 3
# Looking at every new sample would stop at the first lucky one.
_GROWTH_BETWEEN_LOOKS = 1.2
# Errors of many bricks cancel out: one that is less than this share of each of its models may be known less well, by as
# much as it is less, within reason.
_SMALL_SHARE, _MOST_LENIENCY = 0.3, 5.0
# Programs have run before they are timed: who is slow for longer than this does not warm up. It is the host that has
# become quicker, and whoever was timed beside them had both of it.
_LONGEST_WARM_UP = 5
# Beyond so many interquartile ranges outside the quartiles a sample is no longer noise but an event.
_FENCE = 3.0
# Samples that resemble one another more than this say next to nothing about the mean.
_MOST_ALIKE = 0.9
_FEW_SAMPLES = 8.0


class StoppingError(MeasureError):
    """A rule by which no run could stop."""


class Stop(str, Enum):
    """Why a program gets no more samples."""

    # Its interval is as narrow as was asked for.
    NARROW = "narrow"
    # It ran as often as was asked for.
    RUNS = "runs"
    # It has the most samples that the rule allows; its interval is still too wide.
    MOST_SAMPLES = "most samples"


@dataclass(frozen=True, slots=True)
class Adaptive:
    """Until half of the 95 % interval is at most this share of the latency, within bounds on samples and time.

    What takes long varies little: fewer than the least number of samples do if they last `enough_seconds` together.
    What is quick varies by more than its share for ever: an interval of `enough_ms` to either side does. And what is a
    small part of every model that it stands in need not be known as well as what a model consists of.

    On a restless host quick models and their bricks vary most, and cost least: the most samples are doubled, up to
    `most_of_quick`, as long as the model runs as often in `quick_seconds`.
    """

    target: float = 0.01
    least: int = 12
    most: int = 50
    most_of_quick: int = 100
    quick_seconds: float = 5.0
    most_seconds: float = 20.0
    enough_seconds: float = 0.06
    enough_ms: float = 0.003

    def __post_init__(self) -> None:
        if not 0 < self.target < 1:
            raise StoppingError(f"a target of {self.target:g} cannot be reached: give a share such as 0.01")

    def bounds(self, latency_ms: float, share: float = 1.0) -> tuple[int, int]:
        """How many samples are needed in any case, and how many are enough however much they vary.

        They are of that latency, and of what is such a share of any model.
        """
        runs_per_second = 1000 / latency_ms if latency_ms > 0 else math.inf
        most = self.most
        while 2 * most <= min(self.most_of_quick, self.quick_seconds * share * runs_per_second):
            most *= 2
        cap = max(FEWEST_OF_THE_LONGEST, math.floor(min(self.most_seconds * runs_per_second, most)))
        fewest = _FEWEST_STEADY if latency_ms < _STEADY_BY_ITSELF_MS else FEWEST_SAMPLES
        enough = max(fewest, math.ceil(min(self.enough_seconds * runs_per_second, self.least)))
        return min(enough, self.least, cap), cap

    def most_samples(self, latency_ms: float, share: float = 1.0) -> int:
        """How many samples of that latency are enough, however much they vary, of what is such a share of any model."""
        needed, cap = self.bounds(latency_ms, share)
        return cap if share >= _SMALL_SHARE else max(needed, cap // 2)

    def is_quick(self, latency_ms: float) -> bool:
        """Whether as many samples as any model gets cost next to nothing."""
        return latency_ms * self.most_of_quick <= 1000 * self.quick_seconds

    def satisfied_by(self, statistics: Statistics, share: float = 1.0) -> bool:
        """Whether a series with these statistics needs no more samples if it is at most such a share of any model."""
        return self.stop(statistics, share) is not None

    def stop(self, statistics: Statistics, share: float = 1.0) -> Stop | None:
        """Why such a series needs no more samples; None if it needs more."""
        needed, _ = self.bounds(statistics.median_ms, share)
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
        """Whether a series of so many samples is worth looking at."""
        if samples >= self.most and (samples % self.most == 0 or samples >= self.most_of_quick):
            return True
        look = self.least if samples >= self.least else FEWEST_OF_THE_LONGEST
        while look < samples:
            look = math.ceil(look * _GROWTH_BETWEEN_LOOKS)
        return look == samples


@dataclass(frozen=True, slots=True)
class FixedRuns:
    """So many runs of each program, as in the paper."""

    runs: int

    def __post_init__(self) -> None:
        if self.runs < 1:
            raise StoppingError(f"{self.runs} runs measure nothing: give 1 or more")

    def most_samples(self, latency_ms: float, share: float = 1.0) -> int:
        """How many samples are enough, whatever the latency and the share."""
        return self.runs

    def is_quick(self, latency_ms: float) -> bool:
        """Whether more samples would cost next to nothing: there are never more."""
        return False

    def satisfied_by(self, statistics: Statistics, share: float = 1.0) -> bool:
        """Whether a series with these statistics needs no more samples, whatever it is a share of."""
        return self.stop(statistics, share) is not None

    def stop(self, statistics: Statistics, share: float = 1.0) -> Stop | None:
        """Why such a series needs no more samples; None if it needs more."""
        return Stop.RUNS if statistics.count >= self.runs else None

    def looks_at(self, samples: int) -> bool:
        """Whether a series of so many samples is worth looking at."""
        return samples >= self.runs


StoppingRule = Adaptive | FixedRuns


@dataclass(frozen=True, slots=True)
class Series:
    """All samples of a program in the order in which they were taken, and what those after the warm-up say."""

    samples_ms: tuple[float, ...]
    warm_up: int
    statistics: Statistics
    # How many samples stand apart; they are kept, and trimmed like others.
    outliers: int
    # Why there are no more samples; None if the rule asks for more.
    stop: Stop | None = None


def series_of(samples_ms: Sequence[float], rule: StoppingRule) -> Series:
    """What at least one sample says; the paper's protocol knows no warm-up, it trims."""
    warm_up = 0 if isinstance(rule, FixedRuns) else warm_up_length(samples_ms)
    steady = samples_ms[warm_up:]
    return Series(tuple(samples_ms), warm_up, summarise(steady), len(outliers(steady)))


def half_width_ms(statistics: Statistics) -> float:
    """Half of the interval."""
    return (statistics.high_ms - statistics.low_ms) / 2


def drifting_half_width_ms(samples_ms: Sequence[float]) -> float:
    """Half of the interval of the mean where each sample resembles the one before, as on a host whose speed drifts.

    Samples with a lag-1 autocorrelation r say as little as (1 - r) / (1 + r) times as many independent ones. Few
    samples underestimate both r and their own spread, which the two terms in 1/n make up for.
    """
    half_ms = half_width_ms(summarise(samples_ms))
    count = len(samples_ms)
    alike = _autocorrelation(samples_ms)
    alike = min(_MOST_ALIKE, max(0.0, alike + (1 + 3 * alike) / count))
    return half_ms * math.sqrt((1 + alike) / (1 - alike)) * (1 + _FEW_SAMPLES / count)


def _autocorrelation(samples_ms: Sequence[float]) -> float:
    """The correlation of samples with the next ones; those far out count as less far."""
    middle = median(samples_ms)
    reach = _FENCE * median(abs(it - middle) for it in samples_ms)
    kept = [min(max(it, middle - reach), middle + reach) for it in samples_ms]
    mean = fmean(kept)
    apart = [it - mean for it in kept]
    total = sum(it * it for it in apart)
    return sum(one * next_one for one, next_one in pairwise(apart)) / total if total else 0.0


def warm_up_length(samples_ms: Sequence[float]) -> int:
    """How many of the first samples are slower than anything usual in the second half, if these are few."""
    half = len(samples_ms) // 2
    if half < 2:
        return 0
    _, high = _fences(samples_ms[half:])
    slower = next((place for place, sample in enumerate(samples_ms[:half]) if sample <= high), half)
    return slower if slower <= _LONGEST_WARM_UP else 0


def outliers(samples_ms: Sequence[float]) -> tuple[int, ...]:
    """The places of samples far outside of what is usual in the series."""
    if len(samples_ms) < 4:
        return ()
    low, high = _fences(samples_ms)
    return tuple(place for place, sample in enumerate(samples_ms) if not low <= sample <= high)


def _fences(samples_ms: Sequence[float]) -> tuple[float, float]:
    ordered = sorted(samples_ms)
    quarter, three_quarters = ordered[len(ordered) // 4], ordered[(3 * len(ordered)) // 4]
    reach = _FENCE * (three_quarters - quarter)
    return quarter - reach, three_quarters + reach
