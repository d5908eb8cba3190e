"""The verdict on two timings of the same thing: slower, same, faster, or unknown.

The first row that fits decides. `by` is the smallest change that counts.

| change of the latency | samples | verdict |
|---|---|---|
| any | fewer than 5 on either side | unknown |
| over `by`, up or down | significant | slower or faster |
| over `by`, up or down | not significant | unknown |
| up to `by` | the interval reaches at most `by` to either side of the change | same |
| up to `by` | the interval is wider | unknown |

A change is significant if its p-value is below 0.05, corrected for the number of models. The p-value is the larger one
of two tests: the Mann-Whitney test of the samples, and a test of the intervals, which are wider if processes differ.
Timings without samples, such as estimates, have the second test only.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from math import hypot
from statistics import stdev

from dlbricks_tui.store.records import Statistics
from dlbricks_tui.store.statistics import (
    adjusted,
    exact_rank_sum_p_value,
    interval_p_value,
    mean_latency,
    rank_sum_p_value,
    summarise,
)

# A smaller change counts as none, unless the user names another share: two processes differ by as much.
USUAL_SHARE = 0.03
SIGNIFICANT = 0.05
# A mean lies within this many standard errors with 95 % confidence.
_TWO_SIDED_95 = 1.96
# Slow models have few samples, which vary little. Fewer give no interval.
FEWEST_SAMPLES = 5


class CheckVerdict(str, Enum):
    """Today's latency compared with the earlier one."""

    SLOWER = "slower"
    SAME = "same"
    FASTER = "faster"
    # The samples are too few, or vary too much, to say any of the others.
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """A latency with its 95 % interval, and its samples if there are any."""

    value_ms: float
    low_ms: float
    high_ms: float
    samples_ms: tuple[float, ...] = ()
    # The standard deviation of the latencies of several processes, as a share of the latency. None: it was one process.
    apart: float | None = None

    def __post_init__(self) -> None:
        if not self.value_ms > 0:
            raise ValueError(f"a latency of {self.value_ms} ms cannot be compared")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The change between two timings.

    `change` is the share by which the latency has grown, with its 95 % interval. `significant` is true if samples that
    differ so much are unlikely by chance. `p_value` is None if there are too few samples.
    """

    was_ms: float
    is_ms: float
    change: float
    low: float
    high: float
    p_value: float | None
    significant: bool
    verdict: CheckVerdict


def timing_of(processes: Sequence[Sequence[float]]) -> Timing:
    """Return the timing of the samples of one process or more; differences between processes widen the interval."""
    return timing_by([summarise(samples_ms) for samples_ms in processes], [it for one in processes for it in one])


def timing_by(processes: Sequence[Statistics], samples_ms: Sequence[float]) -> Timing:
    """Return the timing of one process or more by their statistics, with the samples of all."""
    value, low, high = mean_latency([(it.trimmed_mean_ms, it.low_ms, it.high_ms) for it in processes])
    apart = stdev(it.trimmed_mean_ms for it in processes) / value if len(processes) > 1 else None
    return Timing(value_ms=value, low_ms=low, high_ms=high, samples_ms=tuple(samples_ms), apart=apart)


def compared(was: Timing, now: Timing, by: float = USUAL_SHARE) -> Change:
    """Return the change of one model; of several models, `corrected` decides.

    If only one of the timings is of several processes, the other one is taken to differ from its like as much.
    """
    was, now = _as_sure_as(now, was), _as_sure_as(was, now)
    low, high = _interval(was, now)
    found = Change(
        was_ms=was.value_ms,
        is_ms=now.value_ms,
        change=now.value_ms / was.value_ms - 1.0,
        low=low,
        high=high,
        p_value=_p_value(was, now),
        significant=False,
        verdict=CheckVerdict.UNKNOWN,
    )
    return _judged(found, found.p_value, by)


def corrected(changes: Sequence[Change], by: float = USUAL_SHARE) -> tuple[Change, ...]:
    """Return the changes of several models with p-values that are corrected for their number, and the verdicts."""
    p_values = iter(adjusted([it.p_value for it in changes if it.p_value is not None]))
    return tuple([_judged(it, None if it.p_value is None else next(p_values), by) for it in changes])


def _judged(found: Change, p_value: float | None, by: float) -> Change:
    significant = p_value is not None and p_value < SIGNIFICANT
    reaches = max(found.high - found.change, found.change - found.low)
    verdict = CheckVerdict.UNKNOWN
    if abs(found.change) > by:
        if significant:
            verdict = CheckVerdict.SLOWER if found.change > 0 else CheckVerdict.FASTER
    elif p_value is not None and reaches <= by:
        verdict = CheckVerdict.SAME
    return replace(found, p_value=p_value, significant=significant, verdict=verdict)


def _as_sure_as(other: Timing, one: Timing) -> Timing:
    """Return a timing of one process with the doubt that its process differs from others as those of the other do."""
    if one.apart is not None or other.apart is None or not one.samples_ms:
        return one
    doubt_ms = _TWO_SIDED_95 * other.apart * one.value_ms
    below, above = hypot(one.value_ms - one.low_ms, doubt_ms), hypot(one.high_ms - one.value_ms, doubt_ms)
    return replace(one, low_ms=max(0.0, one.value_ms - below), high_ms=one.value_ms + above)


def _interval(was: Timing, now: Timing) -> tuple[float, float]:
    """Return the 95 % interval of the change, from those of the two latencies."""
    ratio = now.value_ms / was.value_ms
    below = hypot((now.value_ms - now.low_ms) / now.value_ms, (was.high_ms - was.value_ms) / was.value_ms)
    above = hypot((now.high_ms - now.value_ms) / now.value_ms, (was.value_ms - was.low_ms) / was.value_ms)
    return max(0.0, ratio * (1.0 - below)) - 1.0, ratio * (1.0 + above) - 1.0


def _p_value(was: Timing, now: Timing) -> float | None:
    of_intervals = interval_p_value((was.value_ms, was.low_ms, was.high_ms), (now.value_ms, now.low_ms, now.high_ms))
    if not (was.samples_ms and now.samples_ms):
        return of_intervals
    if min(len(was.samples_ms), len(now.samples_ms)) < FEWEST_SAMPLES:
        return None
    of_samples = rank_sum_p_value(was.samples_ms, now.samples_ms)
    if of_samples is None:
        of_samples = exact_rank_sum_p_value(was.samples_ms, now.samples_ms)
    return max(of_samples, of_intervals)
