"""The order of the hosts of a fleet for a model, and the certainty of it.

An order has ranks. It is *settled* if these claims hold together with 95 % confidence, for each model by itself:

- Two hosts of one rank differ by at most 2 %.
- A host is faster than all hosts of later ranks.

Two assumptions:

- The logarithm of a latency has a normal error, and the interval of the latency is its 95 % interval.
- The errors of two hosts are independent, or mostly of the same sign. Predictions of a brick from the same other bricks
  are, on every host. Such errors cancel out in the ratio of two hosts, so independent errors are the worst case.

Not every pair of hosts needs its own share of the 5 %. Take the hosts in their true order. If a claim is wrong, one of
these claims is wrong, too: that a host is slower than the next one, or that it is equal to the first one which is more
than 2 % slower. These are two pairs for each host but the last. Each gets the same share of the 5 % (Bonferroni). The
error probability of a pair counts twice, because an order is looked at again after each task. Two hosts count as
three pairs.
"""

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from statistics import NormalDist
from typing import NamedTuple

CONFIDENCE = 0.95
# Hosts that differ by at most this share are equally fast.
EQUAL_SHARE = 0.02
_BAND = math.log1p(EQUAL_SHARE)
_SIGMAS_OF_INTERVAL = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2)
# Two hosts count as three pairs: nearly equal ones are looked at longest, and no other pair needs a part of the 5 %.
_FEWEST_PAIRS = 3
# A host is compared with so many open hosts at most on either side, among so many neighbours.
_MOST_OPEN, _MOST_NEIGHBOURS = 2, 8
# More than the error of rounding.
_ROUNDED = 1 + 1e-9


class HostLatency(NamedTuple):
    """The latency of a model on a host, with its 95 % interval; None while some layers have none."""

    host: str
    value_ms: float | None
    low_ms: float = 0.0
    high_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class Order:
    """The hosts by latency of a model.

    `ranks` has the fastest first, and hosts that are equally fast in one rank. Each group of `open` has hosts whose
    order among themselves is not settled; their ranks are the best guess. `unknown` are hosts without a latency, which
    have no rank.
    """

    ranks: tuple[tuple[str, ...], ...]
    open: tuple[tuple[str, ...], ...] = ()
    unknown: tuple[str, ...] = ()

    @property
    def settled(self) -> bool:
        """True if the whole order is right with 95 % confidence."""
        return not self.open and not self.unknown


class OpenPair(NamedTuple):
    """A host that another one is compared with, as that one sees it.

    All but the name are about logarithms of latencies: the distance of the two, and the variance of the other one.
    """

    other: str
    distance: float
    variance: float


@lru_cache(maxsize=4096)
def sigmas_for(hosts: int) -> float:
    """Return the standard deviations by which two of so many hosts have to differ."""
    pairs = max(_FEWEST_PAIRS, min(hosts * (hosts - 1) // 2, 2 * (hosts - 1)))
    return NormalDist().inv_cdf(1.0 - (1.0 - CONFIDENCE) / (2 * pairs))


class HostComparison:
    """The latencies of one model on all hosts, sorted and compared."""

    def __init__(self, latencies: Sequence[HostLatency]) -> None:
        self.sigmas = sigmas_for(len(latencies))
        known = sorted((each for each in latencies if _is_known(each)), key=lambda each: (each.value_ms, each.host))
        self._unknown = tuple(each.host for each in latencies if not _is_known(each))
        self._hosts = tuple(each.host for each in known)
        # The logarithm of the latency, and its standard deviations above and below.
        self._logs, self._above, self._below = [], [], []
        for each in known:
            value_ms = each.value_ms or 0.0
            self._logs.append(math.log(value_ms))
            self._above.append(math.log(max(1.0, each.high_ms / value_ms)) / _SIGMAS_OF_INTERVAL)
            below = math.log(max(1.0, value_ms / each.low_ms)) if each.low_ms > 0 else math.inf
            self._below.append(below / _SIGMAS_OF_INTERVAL)

    @cached_property
    def order(self) -> Order:
        """The order of the hosts."""
        ranks: list[range] = []
        is_open = list[range]()
        last_is_settled = False
        for group in self._groups:
            settled = self._is_equal(group)
            if not settled:
                is_open.append(group)
                ranks += self._guessed(group)
            elif last_is_settled and self._is_equal(range(ranks[-1].start, group.stop)):
                ranks[-1] = range(ranks[-1].start, group.stop)
            else:
                ranks.append(group)
            last_is_settled = settled
        return Order(tuple(map(self._named, ranks)), tuple(map(self._named, is_open)), self._unknown)

    def open_pairs(self, host: str) -> tuple[OpenPair, ...]:
        """Return the nearest hosts whose order with this one is open."""
        place = self._places.get(host)
        group = None if place is None else self._open_group.get(place)
        if place is None or group is None:
            return ()
        found: list[OpenPair] = []
        for side in (range(place + 1, group.stop), range(place - 1, group.start - 1, -1)):
            near = [other for other in side[:_MOST_NEIGHBOURS] if not self._is_decided(place, other)]
            found += [self._pair(place, other) for other in near[:_MOST_OPEN]]
        # A group can be open because of its ends only.
        ends = [end for end in (group.start, group.stop - 1) if end != place]
        return tuple(found) or tuple(self._pair(place, end) for end in ends)

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return {host: place for place, host in enumerate(self._hosts)}

    @cached_property
    def _open_group(self) -> Mapping[int, range]:
        return {place: group for group in self._groups if not self._is_equal(group) for place in group}

    def _pair(self, place: int, other: int) -> OpenPair:
        facing = self._below if other > place else self._above
        return OpenPair(self._hosts[other], abs(self._logs[other] - self._logs[place]), facing[other] ** 2)

    @cached_property
    def _groups(self) -> list[range]:
        """The hosts between two places at which every host before is faster than every host behind."""
        widest_behind = list(accumulate(reversed(self._below), max))[::-1]
        groups, start, reach = list[range](), 0, 0
        for place, (log, above) in enumerate(zip(self._logs, self._above, strict=True)):
            if place > reach:
                groups.append(range(start, place))
                start = place
            # The last host that may not be slower than this one; those before the reach of earlier ones do not matter.
            limit = log + _ROUNDED * self.sigmas * math.hypot(above, widest_behind[place])
            last = bisect_right(self._logs, limit) - 1
            reach = max(reach, place)
            while last > reach and self._logs[last] - log > self.sigmas * math.hypot(above, self._below[last]):
                last -= 1
            reach = max(reach, last)
        return [*groups, range(start, len(self._logs))] if self._logs else []

    def _is_equal(self, places: range) -> bool:
        """True if all of these hosts differ by at most 2 %."""
        if len(places) < 2:
            return True
        apart = self._logs[places[-1]] - self._logs[places[0]]
        if apart > _BAND:
            return False
        above, below = (max(each[places.start : places.stop]) for each in (self._above, self._below))
        return apart + self.sigmas * math.hypot(above, below) <= _BAND

    def _is_decided(self, one: int, other: int) -> bool:
        """True if one of two hosts is faster, or if they are equally fast."""
        first, second = sorted((one, other))
        apart = self._logs[second] - self._logs[first]
        if apart > self.sigmas * math.hypot(self._above[first], self._below[second]):
            return True
        doubt = max(
            math.hypot(self._below[first], self._above[second]), math.hypot(self._above[first], self._below[second])
        )
        return apart + self.sigmas * doubt <= _BAND

    def _guessed(self, group: range) -> Iterator[range]:
        """Yield ranks of hosts whose order is open: those that are equally fast are together."""
        start = group.start
        for place in range(group.start + 1, group.stop + 1):
            if place == group.stop or not self._is_equal(range(start, place + 1)):
                yield range(start, place)
                start = place

    def _named(self, places: range) -> tuple[str, ...]:
        return self._hosts[places.start : places.stop]


def _is_known(latency: HostLatency) -> bool:
    return latency.value_ms is not None and latency.value_ms > 0 and math.isfinite(latency.high_ms)
