"""The interval of a sequential estimate: from bricks' intervals, the error of the method and missing layers."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from dlbricks_tui.estimate.knowledge import Latency, MeasuredLatency, Pair
from dlbricks_tui.estimate.parts import Part

# By default a run accepts half widths of intervals up to the larger of these.
WIDEST_SHARE, WIDEST_MS = 0.05, 0.003
# Sums of isolated bricks of the committed networks differ from their end-to-end latencies by this, as a root mean
# square: docs/log/constants.md. Bricks inside of networks have the error of their carriers in their own intervals.
_ERROR_OF_ALONE = 0.096
# The ids of results of isolated bricks begin with this.
_ALONE = "alone-"
# Two standard deviations, for 95 % of a normal distribution.
_SIGMAS = 1.96


def is_wide(latency_ms: float, half_width_ms: float) -> bool:
    """True if an interval is wider than a run asks for by default."""
    return half_width_ms > max(WIDEST_SHARE * latency_ms, WIDEST_MS)


def method_doubt(protocol: str) -> float:
    """Return half of the 95 % interval of a method, as a share of an estimate."""
    return _SIGMAS * _ERROR_OF_ALONE if protocol.startswith(_ALONE) else 0.0


class Interval(NamedTuple):
    """The 95 % interval of a latency."""

    low_ms: float
    high_ms: float

    @property
    def width_ms(self) -> float:
        return self.high_ms - self.low_ms


class HalfIntervals(NamedTuple):
    """The parts of an interval below and above the estimate."""

    sampling_below_ms: float
    sampling_above_ms: float
    # The error of the measuring method, on both sides.
    method_ms: float
    # The latency that layers without results may add.
    lacking_ms: float
    # The errors of predicted latencies.
    predicted_below_ms: float = 0.0
    predicted_above_ms: float = 0.0

    def around(self, latency_ms: float) -> Interval:
        """Return the interval of an estimate; errors of sampling, method and predictions are independent."""
        below = math.hypot(self.sampling_below_ms, self.predicted_below_ms, self.method_ms)
        above = math.hypot(self.sampling_above_ms, self.predicted_above_ms, self.method_ms) + self.lacking_ms
        return Interval(max(0.0, latency_ms - below), latency_ms + above)


def doubt_about(parts: Iterable[Part], latency_ms: float, relative_doubt: float, shared: float = 1.0) -> HalfIntervals:
    """Return the parts of the uncertainty of a sequential estimate.

    Bricks of the same rounds share an error, since a host is slower for some seconds. Shared errors add up; the errors
    of single bricks are independent. If the shared part is not known, all of it counts as shared. The errors of
    predictions have a part in common, too: `shared` of each half interval.
    """
    parts = tuple(parts)
    known = [it for part in parts for it in part.measurements]
    sampled = [(it.pair, times, it.latency) for times, it in known]
    guessed = [(part.source, part.times, part.latency) for part in parts if part.predicted]
    shared_ms = _by_source(
        (it.pair, times * it.latency.value_ms * it.shared) for times, it in known if it.shared is not None
    )
    lacking_ms = _by_source((part.source, part.times * part.most_ms) for part in parts if not part.counts)
    below_ms, above_ms = (_together(halves_ms, shared_ms) for halves_ms in _halves_ms(sampled))
    return HalfIntervals(
        below_ms,
        above_ms,
        math.hypot(relative_doubt * latency_ms, _doubt_between_hours_ms(known)),
        math.fsum(lacking_ms.values()),
        *(
            _together(halves_ms, {source: shared * half_ms for source, half_ms in halves_ms.items()})
            for halves_ms in _halves_ms(guessed)
        ),
    )


def _halves_ms(latencies: Sequence[tuple[Pair, int, Latency]]) -> Iterator[dict[Pair, float]]:
    """Yield the halves of intervals below and above latencies."""
    yield _by_source((source, times * (it.value_ms - it.low_ms)) for source, times, it in latencies)
    yield _by_source((source, times * (it.high_ms - it.value_ms)) for source, times, it in latencies)


def _by_source(found: Iterable[tuple[Pair, float]]) -> dict[Pair, float]:
    """Return the sum for each source: the errors of all its uses add up."""
    sums: defaultdict[Pair, float] = defaultdict(float)
    for source, ms in found:
        sums[source] += ms
    return sums


def _together(halves_ms: Mapping[Pair, float], shared_ms: Mapping[Pair, float]) -> float:
    """Return half of the interval of a sum, from the halves of its terms."""
    shared = {source: shared_ms.get(source, half) for source, half in halves_ms.items()}
    own = [math.sqrt(max(0.0, half**2 - shared[source] ** 2)) for source, half in halves_ms.items()]
    return math.hypot(math.fsum(shared.values()), *own)


def _doubt_between_hours_ms(measurements: Iterable[tuple[int, MeasuredLatency]]) -> float:
    """Return the error due to bricks that were measured when the host was slower or faster than it was last."""
    known = [(times, it) for times, it in measurements if it.reference_ms]
    newest = max((it for _, it in known), key=lambda it: it.when, default=None)
    if newest is None:
        return 0.0
    return abs(
        math.fsum(times * it.latency.value_ms * (newest.reference_ms / it.reference_ms - 1) for times, it in known)
    )
