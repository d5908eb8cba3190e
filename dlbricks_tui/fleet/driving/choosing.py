"""The bricks that a host of a fleet measures next.

For the question `which-host` they are those that decide most about open pairs of hosts per expected second. A pair is
decided once the variance of the ratio of its two hosts is small enough. Measuring a brick removes a part of the
variance that is too much, and that part is its worth for the pair.

A plan holds works for several tasks, a third of what the host needs. Making a plan reads all of its bricks, and plans
become shorter, so that the time for all of them grows linearly with the number of bricks.
"""

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import accumulate
from statistics import NormalDist
from typing import NamedTuple

from dlbricks_tui.estimate.estimate import Estimate
from dlbricks_tui.fleet.driving.orders import EQUAL_SHARE, HostComparison, HostLatency, OpenPair
from dlbricks_tui.measure.time_left import most_seconds_per_carrier

# The interval that a brick keeps when it is measured, as a share of its latency: half of it, in common with all others.
_MEASURED_HALF = 0.03
# The share of all that is needed which is planned at once, and the fewest seconds.
_PLANNED, _LEAST_PLANNED_SECONDS = 1 / 3, 120.0
# A pair with a lower chance to be decided is not worth a measurement.
_LEAST_CHANCE = 0.01
_SIGMAS = 1.96
_BAND = math.log1p(EQUAL_SHARE)
_NORMAL = NormalDist()
# A work is chosen if no other one is worth more than it by this factor.
_ABOUT = 0.8
# The runs of a carrier until it is finished: at most, and of a slow one. The fewest seconds that loading it takes.
_RUNS_OF_A_CARRIER, _RUNS_OF_A_SLOW_CARRIER, _LOAD_SECONDS = 200, 5, 0.3
_MANY_CARRIERS = 8


class UnmeasuredPart(NamedTuple):
    """The part of a brick without a measurement in the latency of a model, and half of the interval of that part.

    The half is infinite without a prediction.
    """

    ms: float
    half_ms: float


@dataclass(frozen=True, slots=True)
class ModelOnHost:
    """The latency of a model on a host, and the parts of it that are not measured, by the keys of bricks."""

    # The model, together with the runtime if there are several.
    model: str
    latency: HostLatency
    unmeasured: Mapping[str, UnmeasuredPart] = field(repr=False)
    # The share of the half intervals that all predictions have in common.
    shared: float = 1.0


class ParcelWork(NamedTuple):
    """Bricks of a parcel that are measured together, and the seconds that this is expected to take."""

    parcel: str
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
    composed = found.composed
    if composed is None or found.is_partial:
        return ModelOnHost(model, HostLatency(host, None), halves, shared)
    interval = composed.interval
    latency = HostLatency(host, composed.sequential_ms, interval.low_ms, interval.high_ms)
    return ModelOnHost(model, latency, halves, shared)


def seconds_inside(latency_ms: float) -> float:
    """Return the expected time of measuring a parcel by method `inside`, from the latency of all of its layers."""
    run = latency_ms / 1000
    most = most_seconds_per_carrier(_MANY_CARRIERS)
    return _LOAD_SECONDS + max(min(_RUNS_OF_A_CARRIER * run, most), _RUNS_OF_A_SLOW_CARRIER * run)


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
    return chosen[: _planned(chosen)]


def _planned(chosen: Sequence[ParcelWork]) -> int:
    """Return the number of works to plan at once: a third of them by time, and at least some tasks."""
    ends = list(accumulate(work.seconds for work in chosen))
    limit = max(_LEAST_PLANNED_SECONDS, _PLANNED * ends[-1]) if ends else 0.0
    return next((number for number, end in enumerate(ends, start=1) if end >= limit), len(ends))


def _by_worth(works: Sequence[ParcelWork], users: Mapping[str, Sequence["_Doubt"]]) -> list[ParcelWork]:
    """Return the works that decide something, the most worth per second first.

    A work is worth less the more others were chosen. So only the work with the highest former worth is looked at again.
    """
    chosen: list[ParcelWork] = []
    gone: set[str] = set()
    # The parts of works in the sums of models, until a chosen work has some of the same bricks.
    parts: dict[int, list[tuple[_Doubt, _Sums]]] = {}
    holders: defaultdict[str, list[int]] = defaultdict(list)
    for place, work in enumerate(works):
        for brick in work.bricks:
            holders[brick].append(place)

    def parts_of(place: int) -> list[tuple["_Doubt", _Sums]]:
        if place not in parts:
            used = _used(works[place], users, gone)
            parts[place] = [(doubt, doubt.part_of(bricks)) for doubt, bricks in used]
        return parts[place]

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
        for brick in works[place].bricks:
            if brick not in gone:
                gone.add(brick)
                for other in holders[brick]:
                    parts.pop(other, None)
        chosen.append(works[place])
    return chosen


def _used(
    work: ParcelWork, users: Mapping[str, Sequence["_Doubt"]], gone: Set[str]
) -> Iterable[tuple["_Doubt", Sequence[str]]]:
    """Return the models that use bricks of a work which no chosen work has, with these bricks."""
    if len(work.bricks) == 1:
        bricks = work.bricks if work.bricks[0] not in gone else ()
        return [(doubt, bricks) for brick in bricks for doubt in users.get(brick, ())]
    found: dict[int, tuple[_Doubt, list[str]]] = {}
    for brick in dict.fromkeys(work.bricks):
        if brick not in gone:
            for doubt in users.get(brick, ()):
                found.setdefault(id(doubt), (doubt, []))[1].append(brick)
    return found.values()


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
        _, value_ms, low_ms, high_ms = model.latency
        self._value_ms = value_ms or 0.0
        half_ms = max(self._value_ms - low_ms, high_ms - self._value_ms)
        self._fixed = max(0.0, half_ms**2 - self._predicted(self._sums)) if value_ms else 0.0
        self._first = self._variance(self._sums) if value_ms else 0.0
        self._least = self._variance(_Sums(0.0, 0.0, math.fsum(each.ms for each in predicted))) if value_ms else 0.0
        # The variance that has to go until a pair is decided.
        self._needs = [self._need(pair) for pair in pairs if self._chance(pair) >= _LEAST_CHANCE]
        self._worth = self._worth_at(self._sums)

    @classmethod
    def of(cls, model: ModelOnHost, comparison: HostComparison | None) -> "_Doubt | None":
        """Return the doubt about a model; None if measurements on this host cannot reduce it."""
        if comparison is None or not model.unmeasured:
            return None
        doubt = cls(model, comparison.open_pairs(model.latency.host), comparison.sigmas)
        return doubt if doubt._needs or doubt._all_lacking else None

    def part_of(self, bricks: Sequence[str]) -> _Sums:
        """Return what the sums have of these bricks."""
        found = [self.unmeasured[brick] for brick in bricks]
        halves_ms = [half_ms for _, half_ms in found if half_ms < math.inf]
        return _Sums(
            sum(halves_ms),
            sum(half_ms * half_ms for half_ms in halves_ms),
            sum(ms for ms, half_ms in found if half_ms < math.inf),
            len(found) - len(halves_ms),
        )

    def worth_of(self, part: _Sums) -> float:
        """Return how many pairs the bricks of a part decide, in parts of pairs."""
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

    def _need(self, pair: OpenPair) -> float:
        apart = max(pair.distance, _BAND - pair.distance)
        return max(1e-12, self._first + pair.variance - (apart / self._sigmas) ** 2)

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
