"""The interval of a sequential estimate: from the bricks' intervals, the method's residuals and the missing layers."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dlbricks_tui.estimate.knowledge import Pair
from dlbricks_tui.estimate.parts import Part

# By default a run accepts half widths of intervals up to the larger of these.
WIDEST_SHARE, WIDEST_MS = 0.05, 0.003


def is_wide(latency_ms: float, half_width_ms: float) -> bool:
    """True if an interval is wider than a run asks for by default."""
    return half_width_ms > max(WIDEST_SHARE * latency_ms, WIDEST_MS)


@dataclass(frozen=True, slots=True)
class Interval:
    """The 95 % interval of a latency."""

    low_ms: float
    high_ms: float

    @property
    def width_ms(self) -> float:
        return self.high_ms - self.low_ms


@dataclass(frozen=True, slots=True)
class Doubt:
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


def doubt_about(parts: Iterable[Part], latency_ms: float, relative_doubt: float, shared: float = 1.0) -> Doubt:
    """Return the parts of the uncertainty of a sequential estimate.

    Bricks of the same rounds share an error, since a host is slower for some seconds. Shared errors add up; the errors
    of single bricks are independent. If the shared part is not known, all of it counts as shared. The errors of
    predictions have a part in common, too: `shared` of each half interval.
    """
    parts = tuple(parts)
    known = [part for part in parts if part.known]
    predicted = [part for part in parts if part.predicted]
    shared_ms = _by_source(
        (part.source, part.times * part.latency.value_ms * part.measured.shared)
        for part in known
        if part.measured is not None and part.measured.shared is not None
    )
    lacking_ms = _by_source((part.source, part.times * part.most_ms) for part in parts if not part.counts)
    return Doubt(
        _together(_below_ms(known), shared_ms),
        _together(_above_ms(known), shared_ms),
        math.hypot(relative_doubt * latency_ms, _doubt_between_hours_ms(known)),
        math.fsum(lacking_ms.values()),
        *(
            _together(halves_ms, {source: shared * half_ms for source, half_ms in halves_ms.items()})
            for halves_ms in (_below_ms(predicted), _above_ms(predicted))
        ),
    )


def _below_ms(parts: Iterable[Part]) -> dict[Pair, float]:
    return _by_source((part.source, part.times * (part.latency.value_ms - part.latency.low_ms)) for part in parts)


def _above_ms(parts: Iterable[Part]) -> dict[Pair, float]:
    return _by_source((part.source, part.times * (part.latency.high_ms - part.latency.value_ms)) for part in parts)


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


def _doubt_between_hours_ms(parts: Iterable[Part]) -> float:
    """Return the error due to bricks that were measured when the host was slower or faster than it was last."""
    known = [part for part in parts if part.measured is not None and part.measured.reference_ms]
    newest = max((part.measured for part in known if part.measured is not None), key=lambda it: it.when, default=None)
    if newest is None:
        return 0.0
    return abs(
        math.fsum(
            part.times * part.latency.value_ms * (newest.reference_ms / part.measured.reference_ms - 1)
            for part in known
            if part.measured is not None
        )
    )
