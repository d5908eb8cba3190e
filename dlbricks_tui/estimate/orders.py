"""The order of hosts for a model, the certainty of it, and the bricks that decide most about it.

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

A pair is decided once the variance of the ratio of its two hosts is small enough. Measuring a brick removes a part of
the variance that is too much, and that part is its worth for the pair. A host measures what is worth most per expected
second. A plan holds works for several tasks, a third of what the host needs. Making a plan reads all of its bricks, and
plans become shorter, so that the time for all of them grows linearly with the number of bricks.
"""

import heapq
import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import accumulate
from statistics import NormalDist
from typing import NamedTuple

from dlbricks_tui.estimate.estimate import Estimate
from dlbricks_tui.estimate.knowledge import Latency

CONFIDENCE = 0.95
# Hosts that differ by at most this share are equally fast.
EQUAL_SHARE = 0.02
_BAND = math.log1p(EQUAL_SHARE)
_NORMAL = NormalDist()
_SIGMAS = _NORMAL.inv_cdf(0.5 + CONFIDENCE / 2)
# Two hosts count as three pairs: nearly equal ones are looked at longest, and no other pair needs a part of the 5 %.
_FEWEST_PAIRS = 3
# A host is compared with so many open hosts at most on either side, among so many neighbours.
_MOST_OPEN, _MOST_NEIGHBOURS = 2, 8
# More than the error of rounding.
_ROUNDED = 1 + 1e-9
# The interval that a brick keeps when it is measured, as a share of its latency: half of it, in common with all others.
_MEASURED_HALF = 0.03
# The share of all that is needed which is planned at once, and the fewest seconds.
_PLANNED, _LEAST_PLANNED_SECONDS = 1 / 3, 120.0
# A pair with a lower chance to be decided is not worth a measurement.
_LEAST_CHANCE = 0.01
# A work is chosen if no other one is worth more than it by this factor.
_ABOUT = 0.8


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
    return _NORMAL.inv_cdf(1.0 - (1.0 - CONFIDENCE) / (2 * pairs))


class HostComparison:
    """The latencies of one model on all hosts, sorted and compared; None while some layers have none."""

    def __init__(self, latencies: Mapping[str, Latency | None]) -> None:
        self.sigmas = sigmas_for(len(latencies))
        known = {host: it for host, it in latencies.items() if it and it.value_ms > 0 and math.isfinite(it.high_ms)}
        self._unknown = tuple(host for host in latencies if host not in known)
        self._hosts = tuple(sorted(known, key=lambda host: (known[host].value_ms, host)))
        # The logarithm of the latency, and its standard deviations above and below.
        self._logs, self._above, self._below = [], [], []
        for value_ms, low_ms, high_ms in map(known.__getitem__, self._hosts):
            self._logs.append(math.log(value_ms))
            self._above.append(math.log(max(1.0, high_ms / value_ms)) / _SIGMAS)
            below = math.log(max(1.0, value_ms / low_ms)) if low_ms > 0 else math.inf
            self._below.append(below / _SIGMAS)

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
        place, group = self._open_groups.get(host, (0, range(0)))
        found: list[OpenPair] = []
        for side in (range(place + 1, group.stop), range(place - 1, group.start - 1, -1)):
            near = [other for other in side[:_MOST_NEIGHBOURS] if not self._is_decided(place, other)]
            found += [self._pair(place, other) for other in near[:_MOST_OPEN]]
        # A group can be open because of its ends only.
        ends = [end for end in (group.start, group.stop - 1) if group and end != place]
        return tuple(found) or tuple(self._pair(place, end) for end in ends)

    @cached_property
    def _open_groups(self) -> Mapping[str, tuple[int, range]]:
        """The place of each host of an open group, and that group."""
        is_open = [group for group in self._groups if not self._is_equal(group)]
        return {self._hosts[place]: (place, group) for group in is_open for place in group}

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


class UnmeasuredPart(NamedTuple):
    """The part of a brick without a measurement in the latency of a model, and half of the interval of that part.

    The half is infinite without a prediction.
    """

    ms: float
    half_ms: float


@dataclass(frozen=True, slots=True)
class ModelOnHost:
    """The latency of a model on a host, and the parts of it that are not measured, by the keys of bricks."""

    host: str
    # The model, together with the runtime if there are several.
    model: str
    latency: Latency | None
    unmeasured: Mapping[str, UnmeasuredPart] = field(repr=False)
    # The share of the half intervals that all predictions have in common.
    shared: float = 1.0


class ParcelWork(NamedTuple):
    """Bricks of a parcel that are measured together, and the seconds that this is expected to take."""

    bricks: tuple[str, ...]
    seconds: float


def model_on_host(host: str, model: str, found: Estimate, shared: float) -> ModelOnHost:
    """Return what an estimate tells; `shared` is the share that the intervals of its predictions have in common.

    Bricks that the host cannot measure stay as uncertain as they are.
    """
    halves: dict[str, UnmeasuredPart] = {}
    for part in found.parts:
        if part.known or part.reason:
            continue
        value_ms, low_ms, high_ms = part.latency
        ms, half_ms = halves.get(part.brick.key, (0.0, 0.0))
        half = max(value_ms - low_ms, high_ms - value_ms) if part.predicted else math.inf
        halves[part.brick.key] = UnmeasuredPart(ms + part.times * value_ms, half_ms + part.times * half)
    return ModelOnHost(host, model, found.latency, halves, shared)


def plan_for(
    models: Sequence[ModelOnHost], comparisons: Mapping[str, HostComparison], works: Iterable[ParcelWork]
) -> Sequence[ParcelWork]:
    """Return works for the next tasks of a host, in order: those that decide most per second.

    `models` are all models on this host, and `comparisons` compares all hosts, by the names of the models. The
    plan is empty if no work can decide anything.
    """
    doubts = [each for each in (_Doubt.of(model, comparisons.get(model.model)) for model in models) if each is not None]
    users: defaultdict[str, list[_Doubt]] = defaultdict(list)
    for doubt in doubts:
        for brick in doubt.unmeasured:
            users[brick].append(doubt)
    chosen = _by_worth([work for work in works if any(brick in users for brick in work.bricks)], users)
    # A third of them by time, and at least some tasks.
    ends = list(accumulate(work.seconds for work in chosen))
    limit = max(_LEAST_PLANNED_SECONDS, _PLANNED * ends[-1]) if ends else 0.0
    return chosen[: next((number for number, end in enumerate(ends, start=1) if end >= limit), len(ends))]


def _by_worth(works: Sequence[ParcelWork], users: Mapping[str, Sequence["_Doubt"]]) -> list[ParcelWork]:
    """Return the works that decide something, the most worth per second first.

    A work is worth less the more others were chosen. So only the work with the highest former worth is looked at again.
    """
    chosen: list[ParcelWork] = []
    gone: set[str] = set()

    def parts_of(place: int) -> list[tuple["_Doubt", _Sums]]:
        """Return the part of a work in the sums of each model that uses bricks of it which are not measured yet."""
        used: defaultdict[_Doubt, list[str]] = defaultdict(list)
        for brick in dict.fromkeys(works[place].bricks):
            for doubt in users.get(brick, ()) if brick not in gone else ():
                used[doubt].append(brick)
        return [(doubt, doubt.part_of(bricks)) for doubt, bricks in used.items()]

    def entry(place: int) -> tuple[float, int, int]:
        worth = sum(doubt.worth_of(part) for doubt, part in parts_of(place))
        return -worth / max(works[place].seconds, 1e-3), place, len(chosen)

    waiting = [entry(place) for place in range(len(works))]
    heapq.heapify(waiting)
    while waiting:
        worth, place, looked_at = heapq.heappop(waiting)
        if worth >= 0.0:
            continue
        if looked_at < len(chosen):
            again = entry(place)
            # Works of about the same worth would be looked at again each time otherwise.
            if waiting and again[0] > _ABOUT * waiting[0][0]:
                heapq.heappush(waiting, again)
                continue
            if again[0] >= 0.0:
                continue
        for doubt, part in parts_of(place):
            doubt.measure(part)
        gone.update(works[place].bricks)
        chosen.append(works[place])
    return chosen


class _Sums(NamedTuple):
    """Sums over the bricks that are not measured: halves of intervals, their squares, and the chosen latencies."""

    linear_ms: float
    squares: float
    chosen_ms: float = 0.0
    # Those without a prediction.
    lacking: int = 0


class _Doubt:
    """The doubt about the place of a host in the order for one model, and how measurements reduce it."""

    def __init__(self, model: ModelOnHost, pairs: Sequence[OpenPair], sigmas: float) -> None:
        self.unmeasured = model.unmeasured
        self._shared = model.shared
        self._sigmas = sigmas
        predicted = [each for each in model.unmeasured.values() if math.isfinite(each.half_ms)]
        self._sums = _Sums(
            math.fsum(each.half_ms for each in predicted),
            math.fsum(each.half_ms**2 for each in predicted),
            lacking=len(model.unmeasured) - len(predicted),
        )
        self._all_lacking = self._sums.lacking
        self._value_ms, low_ms, high_ms = model.latency or Latency(0.0, 0.0, 0.0)
        half_ms = max(self._value_ms - low_ms, high_ms - self._value_ms)
        self._fixed = max(0.0, half_ms**2 - self._predicted(self._sums)) if self._value_ms else 0.0
        self._first = self._variance(self._sums) if self._value_ms else 0.0
        self._least = (
            self._variance(_Sums(0.0, 0.0, math.fsum(each.ms for each in predicted))) if self._value_ms else 0.0
        )
        # The variance that has to go until a pair is decided.
        self._needs = []
        for pair in pairs:
            if self._chance(pair) >= _LEAST_CHANCE:
                apart = max(pair.distance, _BAND - pair.distance)
                self._needs.append(max(1e-12, self._first + pair.variance - (apart / sigmas) ** 2))
        self._worth = self._worth_at(self._sums)

    @classmethod
    def of(cls, model: ModelOnHost, comparison: HostComparison | None) -> "_Doubt | None":
        """Return the doubt about a model; None if measurements on this host cannot reduce it."""
        if comparison is None or not model.unmeasured:
            return None
        doubt = cls(model, comparison.open_pairs(model.host), comparison.sigmas)
        return doubt if doubt._needs or doubt._all_lacking else None

    def part_of(self, bricks: Sequence[str]) -> _Sums:
        """Return the sums over these bricks alone."""
        found = [self.unmeasured[brick] for brick in bricks]
        halves_ms = [half_ms for _, half_ms in found if half_ms < math.inf]
        return _Sums(
            sum(halves_ms),
            sum(half_ms * half_ms for half_ms in halves_ms),
            sum(ms for ms, half_ms in found if half_ms < math.inf),
            len(found) - len(halves_ms),
        )

    def worth_of(self, part: _Sums) -> float:
        """Return how many more pairs are decided, fractions included, once the bricks of a part are measured."""
        return max(0.0, self._worth_at(self._without(part)) - self._worth)

    def measure(self, part: _Sums) -> None:
        """Continue as if the bricks of a part were measured."""
        self._sums = self._without(part)
        self._worth = self._worth_at(self._sums)

    def _without(self, part: _Sums) -> _Sums:
        linear_ms, squares, chosen_ms, lacking = self._sums
        return _Sums(
            max(0.0, linear_ms - part.linear_ms),
            max(0.0, squares - part.squares),
            chosen_ms + part.chosen_ms,
            lacking - part.lacking,
        )

    def _worth_at(self, sums: _Sums) -> float:
        if not self._value_ms:
            # A host without a latency is open beside everyone: its place among two neighbours is not known.
            return 2.0 * (1.0 - sums.lacking / self._all_lacking) if self._all_lacking else 0.0
        removed = self._first - self._variance(sums)
        return sum(min(1.0, removed / need) for need in self._needs)

    def _chance(self, pair: OpenPair) -> float:
        """Return the probability that a pair is decided once all bricks of the model are measured on this host.

        The other host may become more certain, too: as much as this one.
        """
        moves = math.sqrt(2.0 * max(0.0, self._first - self._least))
        wide = self._sigmas * math.sqrt(self._least + min(self._least, pair.variance))
        if not moves:
            return float(pair.distance > wide or pair.distance + wide <= _BAND)

        def below(distance: float) -> float:
            return _NORMAL.cdf((distance - pair.distance) / moves)

        equal = max(0.0, below(_BAND - wide) - below(wide - _BAND)) if wide < _BAND else 0.0
        return max(1.0 - below(wide) + below(-wide), equal)

    def _variance(self, sums: _Sums) -> float:
        """Return the variance of the logarithm of the latency."""
        kept = (_MEASURED_HALF * sums.chosen_ms) ** 2
        return (self._fixed + self._predicted(sums) + kept) / (_SIGMAS * self._value_ms) ** 2

    def _predicted(self, sums: _Sums) -> float:
        """Return the square of half of the interval of all predictions together."""
        return (self._shared * sums.linear_ms) ** 2 + (1.0 - self._shared**2) * sums.squares
