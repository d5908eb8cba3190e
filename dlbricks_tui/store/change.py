"""The verdict on two latencies of the same thing: slower, same, faster, or unknown.

This rule decides for every command that compares. The first row that fits decides. `by` is the smallest change that
counts, and `same` the largest one that counts as none: both are 3 % for models, or what the user says, and 1 % and 3 %
for bricks.

| change of the latency | samples and processes | verdict |
|---|---|---|
| any | fewer than 5 samples on either side | unknown |
| over `by`, up or down | significant, 3 processes or more on each side | slower or faster |
| over `by` + 10 % | significant, fewer processes | slower or faster |
| up to `same` | the interval reaches at most `same` to either side of the change | same |
| any | all others | unknown |

A change is significant if its p-value is below 0.05, corrected for the number of changes; beside the best of several,
below 0.035. The p-value is the larger one of two tests: the Mann-Whitney test of the samples, and a t-test of the
latencies of processes, or by their intervals where processes are few. Estimates have neither samples nor processes:
their intervals decide. The interval of the change is that of the t-test, so that it never holds 0 beside `slower` or
`faster`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from math import exp, expm1, hypot, inf, isinf, log, sqrt
from statistics import NormalDist, stdev
from typing import NamedTuple, Protocol, TypeVar

from dlbricks_tui.store.statistics import (
    adjusted,
    exact_rank_sum_p_value,
    mean_latency,
    rank_sum_p_value,
    summarise,
    t_p_value,
)

SIGNIFICANT = 0.05
# A mean lies within this many standard errors with 95 % confidence.
_TWO_SIDED_95 = NormalDist().inv_cdf(0.975)
# The interval of a ratio to a latency that may be 0 would be endless.
_LEAST_SHARE = 0.01
_NEWEST_DIFFERS = "the newest runs differ otherwise than all runs together: measure both again"
_BUSY = "the host was busy: measure again when it is quiet"
# Slow models have few samples, which vary little. Fewer give no interval.
FEWEST_SAMPLES = 5
# Fewer do not show how much processes differ.
FEWEST_PROCESSES = 3
# 95 % of all pairs of processes differ by less, on the hosts where they differ most.
MOST_APART = 0.10
# Results of processes that are at most this much older than the newest one count together.
TOGETHER = timedelta(hours=12)


class Verdict(str, Enum):
    """The second latency compared with the first."""

    SLOWER = "slower"
    SAME = "same"
    FASTER = "faster"
    # The samples or processes are too few, or vary too much, to say any of the others.
    UNKNOWN = "unknown"


class Limits(NamedTuple):
    """The smallest change that counts, the largest one that the interval of `same` may reach, and the limit of p."""

    by: float
    same_within: float
    p_below: float = SIGNIFICANT


def changes_from(by: float) -> Limits:
    """Return the limits of a user who names the smallest change that counts."""
    return Limits(by, by)


# A smaller change of a model counts as none, unless the user names another share: two processes differ by as much.
USUAL_SHARE = 0.03
MODELS = changes_from(USUAL_SHARE)
# Either one of two equal things may be the best by chance: `slower` is wrong twice as often as between two given ones.
BESIDE_BEST = MODELS._replace(p_below=0.035)
# Two halves of one run differ by this much, and two processes by more.
BRICKS = Limits(0.01, USUAL_SHARE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """A latency with its 95 % interval, and its samples if there are any."""

    value_ms: float
    low_ms: float
    high_ms: float
    samples_ms: tuple[float, ...] = ()
    # The number of processes that have measured it; None for an estimate.
    processes: int | None = None
    # The standard deviation of the latencies of several processes, as a share of the latency.
    apart: float | None = None
    # True if the host was not quiet, so that the interval is wider than its samples say.
    busy: bool = False

    def __post_init__(self) -> None:
        if not self.value_ms > 0:
            raise ValueError(f"a latency of {self.value_ms} ms cannot be compared")

    def per_item(self, items: int) -> "Timing":
        """Return the latency of one of so many items."""
        if items == 1:
            return self
        value, low, high = (it / items for it in (self.value_ms, self.low_ms, self.high_ms))
        samples = tuple([it / items for it in self.samples_ms])
        return replace(self, value_ms=value, low_ms=low, high_ms=high, samples_ms=samples)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """The change from one latency to another, with the verdict.

    `change` is the share by which the latency has grown, with its 95 % interval. `significant` is true if samples that
    differ so much are unlikely by chance. `p_value` is None if there are too few samples. `reason` says why the verdict
    is unknown; else it is empty.
    """

    was_ms: float
    is_ms: float
    change: float
    interval: tuple[float, float]
    p_value: float | None
    significant: bool
    verdict: Verdict = Verdict.UNKNOWN
    reason: str = ""

    @property
    def ratio(self) -> float:
        """The second latency over the first."""
        return 1.0 + self.change

    @property
    def ratios(self) -> tuple[float, float]:
        """The 95 % interval of the ratio."""
        return 1.0 + self.interval[0], 1.0 + self.interval[1]

    def around(self, ratio: float) -> "Change":
        """Return the change with the ratio of the newest latencies, where it was tested over several runs.

        The verdict over all runs is unknown where it does not suit that ratio.
        """
        change, (low, high) = ratio - 1.0, self.interval
        suits = {
            Verdict.SLOWER: change > 0.0,
            Verdict.FASTER: change < 0.0,
            Verdict.SAME: abs(change) <= USUAL_SHARE,
            Verdict.UNKNOWN: True,
        }
        found = replace(self, change=change, interval=(min(low, change), max(high, change)))
        return found if suits[self.verdict] else replace(found, verdict=Verdict.UNKNOWN, reason=_NEWEST_DIFFERS)


def with_doubt(latency: tuple[float, float, float], share: float) -> tuple[float, float, float]:
    """Return a latency with its interval, wider by the share by which it may be wrong; a negative one is not known.

    On a host that was not quiet the interval of the samples tells too little.
    """
    value, low, high = latency
    half = max(0.0, share) * value
    return value, max(0.0, value - hypot(half, value - low)), value + hypot(half, high - value)


def timing_of(processes: Sequence[Sequence[float]]) -> Timing:
    """Return the timing of the samples of one process or more; differences between processes widen the interval."""
    found = [summarise(samples_ms) for samples_ms in processes]
    return timing_by([it.latency for it in found], [it for one in processes for it in one])


def timing_by(
    latencies: Sequence[tuple[float, float, float]], samples_ms: Sequence[float], *, busy: bool = False
) -> Timing:
    """Return the timing of one process or more by their latencies with intervals, with the samples of all."""
    value, low, high = mean_latency(latencies)
    count = len(latencies)
    apart = stdev(it for it, _, _ in latencies) / value if count > 1 else None
    interval = {"value_ms": value, "low_ms": low, "high_ms": high}
    return Timing(**interval, samples_ms=tuple(samples_ms), processes=count, apart=apart, busy=busy)


def compared(was: Timing, now: Timing, limits: Limits = MODELS) -> Change:
    """Return the change of one thing; `all_compared` decides about several."""
    (found,) = all_compared([(was, now)], limits)
    return found


def all_compared(pairs: Sequence[tuple[Timing, Timing]], limits: Limits = MODELS) -> list[Change]:
    """Return the change of each pair of timings; p-values are corrected for the number of pairs.

    If only one timing of a pair is of several processes, the other one is taken to differ from its like as much.
    """
    sure = [(_as_sure_as(now, was), _as_sure_as(was, now)) for was, now in pairs]
    p_values = [_p_value(*pair) for pair in sure]
    corrected = iter(adjusted([it for it in p_values if it is not None]))
    return [
        _change(*pair, None if p_value is None else next(corrected), limits)
        for pair, p_value in zip(sure, p_values, strict=True)
    ]


def known_changes(pairs: Sequence[tuple[Timing | None, Timing | None]], limits: Limits = MODELS) -> list[Change | None]:
    """Return the change of each pair; None where a latency is missing."""
    both = {place: (was, now) for place, (was, now) in enumerate(pairs) if was is not None and now is not None}
    found = dict(zip(both, all_compared(list(both.values()), limits), strict=True))
    return [found.get(place) for place in range(len(pairs))]


class OfRun(Protocol):
    """A result: its run and time."""

    @property
    def run(self) -> str: ...

    @property
    def when(self) -> str: ...


Result = TypeVar("Result", bound=OfRun)


def newest_together(results: Iterable[Result]) -> list[Result]:
    """Return the newest result of each run that counts together with the newest of all, oldest first."""
    ordered = sorted(((datetime.fromisoformat(it.when), it) for it in results), key=lambda it: it[0])
    return list({it.run: it for when, it in ordered if ordered[-1][0] - when <= TOGETHER}.values())


def _change(was: Timing, now: Timing, p_value: float | None, limits: Limits) -> Change:
    found = Change(
        was_ms=was.value_ms,
        is_ms=now.value_ms,
        change=now.value_ms / was.value_ms - 1.0,
        interval=_interval(was, now),
        p_value=p_value,
        significant=p_value is not None and p_value < limits.p_below,
    )
    if p_value is None:
        return replace(found, reason=f"fewer than {FEWEST_SAMPLES} samples")
    processes = [it.processes for it in (was, now) if it.processes is not None]
    found = judged(found, min(processes, default=None), limits)
    return replace(found, reason=f"{found.reason}; {_BUSY}") if found.reason and (was.busy or now.busy) else found


def judged(found: Change, processes: int | None, limits: Limits) -> Change:
    """Return a change with its verdict, or with the reason why that is unknown.

    `processes` is their number on the side that has fewer.
    """
    size, (low, high) = abs(found.change), found.interval
    doubt = 0.0 if processes is None or processes >= FEWEST_PROCESSES else MOST_APART
    verdict, reason = Verdict.UNKNOWN, ""
    if size > limits.by + doubt and found.significant:
        verdict = Verdict.SLOWER if found.change > 0 else Verdict.FASTER
    elif max(size, high - found.change, found.change - low) <= limits.same_within:
        verdict = Verdict.SAME
    elif size <= limits.same_within:
        reason = f"its interval reaches more than {_percent(limits.same_within)} to a side"
    elif found.significant:
        reason = f"processes differ by up to {_percent(MOST_APART)}: measure both in {FEWEST_PROCESSES} runs"
    elif found.p_value is None:
        reason = "it may be chance, as its interval holds 1"
    else:
        reason = f"it may be chance, as p is not below {limits.p_below:g}"
    return replace(found, verdict=verdict, reason=reason)


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _as_sure_as(other: Timing, one: Timing) -> Timing:
    """Return a timing of one process with the doubt that its process differs from others as those of the other do."""
    if one.apart is not None or other.apart is None or one.processes is None:
        return one
    doubt_ms = _TWO_SIDED_95 * other.apart * one.value_ms
    below, above = hypot(one.value_ms - one.low_ms, doubt_ms), hypot(one.high_ms - one.value_ms, doubt_ms)
    return replace(one, low_ms=max(0.0, one.value_ms - below), high_ms=one.value_ms + above)


def _interval(was: Timing, now: Timing) -> tuple[float, float]:
    """Return the 95 % interval of the change: those changes from which this one does not differ significantly."""
    (below, freedom_below), (above, freedom_above) = _error(was, now), _error(now, was)
    ratio = now.value_ms / was.value_ms
    return ratio * exp(-below * t_distance(freedom_below)) - 1.0, ratio * exp(above * t_distance(freedom_above)) - 1.0


def _p_value(was: Timing, now: Timing) -> float | None:
    counts = [len(it.samples_ms) for it in (was, now) if it.samples_ms]
    if any(it < FEWEST_SAMPLES for it in counts):
        return None
    small, large = sorted((was, now), key=lambda it: it.value_ms)
    error, freedom = _error(small, large)
    distance = log(large.value_ms / small.value_ms)
    of_latencies = t_p_value(distance / error, freedom) if error else float(distance == 0.0)
    if len(counts) < 2:
        return of_latencies
    of_samples = rank_sum_p_value(was.samples_ms, now.samples_ms)
    if of_samples is None:
        of_samples = exact_rank_sum_p_value(was.samples_ms, now.samples_ms)
    return max(of_samples, of_latencies)


def t_distance(freedom: float) -> float:
    """Return the distance in standard errors whose p-value, by the approximation of `t_p_value`, is 0.05."""
    if isinf(freedom):
        return _TWO_SIDED_95
    normal = _TWO_SIDED_95 * (8 * freedom + 3) / (8 * freedom + 1)
    return sqrt(freedom * expm1(normal * normal / freedom))


def _error(small: Timing, large: Timing) -> tuple[float, float]:
    """Return the standard error of the logarithm of a ratio, the large latency over the small, and its freedom.

    Processes are taken to differ as much on both sides, and by no less than their samples make them differ. Fewer than
    `FEWEST_PROCESSES` do not show by how much. Of each interval, the half that faces the other latency counts.
    """
    both = (small, large)
    least_ms = max(large.low_ms, _LEAST_SHARE * large.value_ms)
    halves = log(small.high_ms / small.value_ms), log(large.value_ms / least_ms)
    apart = [(it.apart, it.processes - 1) for it in both if it.apart is not None and it.processes is not None]
    few = any(it.processes is not None and it.processes < FEWEST_PROCESSES for it in both)
    freedom = 0 if few else sum(it for _, it in apart)
    pooled = sum(share**2 * count for share, count in apart) / freedom if freedom else 0.0
    of_intervals = of_processes = of_samples = 0.0
    for it, half in zip(both, halves, strict=True):
        of_interval = (half / _TWO_SIDED_95) ** 2
        if freedom and it.processes is not None:
            of_processes += pooled / it.processes
            # The interval has its own part of this already.
            own = (it.apart or 0.0) ** 2 / it.processes
            of_samples += max(0.0, of_interval - own) / it.processes
        else:
            of_intervals += of_interval
    tested = max(of_processes, of_samples)
    variance = tested + of_intervals
    return sqrt(variance), freedom * (variance / tested) ** 2 if tested else inf
