"""How sure a sequential estimate is: the bricks' own intervals, the method's residual, and what nobody measured."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dlbricks_tui.estimate.knowledge import Pair
from dlbricks_tui.estimate.parts import Part

# By default a run accepts no brick whose interval reaches further to either side than both of these.
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
        """From end to end."""
        return self.high_ms - self.low_ms


@dataclass(frozen=True, slots=True)
class Doubt:
    """Where an interval comes from, by side: what the truth may be below and above the estimate."""

    sampling_below_ms: float
    sampling_above_ms: float
    # Of the measuring method, alike on both sides.
    method_ms: float
    # What layers without any latency may add.
    lacking_ms: float

    def around(self, latency_ms: float) -> Interval:
        """The interval of an estimate; sampling and method err independently of each other."""
        below = math.hypot(self.sampling_below_ms, self.method_ms)
        above = math.hypot(self.sampling_above_ms, self.method_ms) + self.lacking_ms
        return Interval(max(0.0, latency_ms - below), latency_ms + above)


@dataclass(frozen=True, slots=True)
class Share:
    """What one brick in a context contributes to the doubt about a model, below and above."""

    below_ms: float
    above_ms: float


_NONE = Share(0.0, 0.0)


def shares_of_doubt(parts: Iterable[Part]) -> dict[Pair, Share]:
    """By what was or has to be measured: all uses of a brick are wrong together, so their errors add up."""
    found: dict[Pair, Share] = {}
    for part in parts:
        before = found.get(part.source, _NONE)
        value, low, high = part.latency
        found[part.source] = Share(
            before.below_ms + part.times * (value - low),
            before.above_ms + part.times * (high - value if part.counts else part.most_ms),
        )
    return found


def doubt_about(parts: Iterable[Part], latency_ms: float, relative_doubt: float) -> Doubt:
    """What makes a sequential estimate unsure.

    Bricks of the same rounds err together where a host is slower for seconds, and quicker for others. That part adds
    up; what each brick has of its own cancels out in part. Where the shared part is not known, all of it is shared.
    """
    parts = tuple(parts)
    counting = [part for part in parts if part.counts]
    shares = shares_of_doubt(counting)
    shared = _shared_ms(counting)
    lacking = shares_of_doubt(part for part in parts if not part.counts).values()
    return Doubt(
        _together({source: share.below_ms for source, share in shares.items()}, shared),
        _together({source: share.above_ms for source, share in shares.items()}, shared),
        math.hypot(relative_doubt * latency_ms, _doubt_between_hours_ms(counting)),
        math.fsum(share.above_ms for share in lacking),
    )


def _shared_ms(parts: Iterable[Part]) -> dict[Pair, float]:
    """Of each source what its error shares with others of the same rounds, where that is known."""
    found: dict[Pair, float] = {}
    for part in parts:
        if part.measured is not None and part.measured.shared is not None:
            ms = part.times * part.latency.value_ms * part.measured.shared
            found[part.source] = found.get(part.source, 0.0) + ms
    return found


def _together(halves_ms: Mapping[Pair, float], shared_ms: Mapping[Pair, float]) -> float:
    """Half of the interval of a sum, of the halves of its terms."""
    shared = {source: shared_ms.get(source, half) for source, half in halves_ms.items()}
    own = [math.sqrt(max(0.0, half**2 - shared[source] ** 2)) for source, half in halves_ms.items()]
    return math.hypot(math.fsum(shared.values()), *own)


def _doubt_between_hours_ms(parts: Iterable[Part]) -> float:
    """By how much bricks may be wrong that were measured when the host was slower or quicker than it was last."""
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
