"""The results of other systems in a store, and predictions from them."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean

from tinydb import where

from dlbricks_tui.estimate.knowledge import Latency, Pair, Predictor, Unmeasured
from dlbricks_tui.estimate.lookup import bias_counterpart
from dlbricks_tui.estimate.prediction.measured import latencies_ms, results_of, state_of
from dlbricks_tui.estimate.prediction.saved import read_in_common, write_in_common
from dlbricks_tui.estimate.prediction.transfer import (
    SHARED,
    BrickInCommon,
    Deviations,
    KnownBrick,
    deviations,
    known_brick,
)
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.dlbricks_2019 import PROTOCOL
from dlbricks_tui.store.records import ANY_CONTEXT, BrickForm
from dlbricks_tui.store.selections import Way, combinations, equal

# Fewer measured bricks in common tell too little about a system.
FEWEST_IN_COMMON = 5
# More measured bricks add little; the newest count.
_MOST_TO_COMPARE = 2000
# Latencies by interpreters of other versions are alike.
_PYTHON = re.compile(r" python-\S+")


def ways_of_others(store: ResultsDatabase, way: Way) -> tuple[Way, ...]:
    """Return one way of measuring for each other system with results like those of a way.

    They have its level, method and runtime, which may run in another version of Python. Of several ways the one with
    the most bricks counts.
    """
    asked = equal(of="brick", good=True, level=way.level.value, protocol=way.protocol)
    found: dict[str, Way] = {}
    for it in combinations(store.select(asked & (where("system") != way.system), order=())):
        if _PYTHON.sub("", it.runtime) == _PYTHON.sub("", way.runtime):
            found.setdefault(it.system, it.way)
    return tuple(found.values())


@dataclass(frozen=True)
class OtherSystems:
    """The results of other systems that are like those of one way of measuring."""

    store: ResultsDatabase
    way: Way
    # The file that keeps the bricks in common.
    saved: Path | None = None

    @cached_property
    def ways(self) -> tuple[Way, ...]:
        """The ways of measuring of the other systems."""
        return ways_of_others(self.store, self.way)

    @cached_property
    def in_common(self) -> tuple[BrickInCommon, ...]:
        """The bricks that both this system and any other one have measured."""
        if not self.ways:
            return ()
        state = state_of(*(results_of(self.store, way) for way in (self.way, *self.ways)))
        saved = None if self.saved is None else read_in_common(self.saved, state)
        found = tuple(self._compare()) if saved is None else saved
        if saved is None and self.saved is not None:
            with suppress(OSError):
                write_in_common(self.saved, found, state)
        return found

    def _compare(self) -> Iterator[BrickInCommon]:
        own = latencies_ms(self.store, self.way)
        newest = dict([*own.items()][-_MOST_TO_COMPARE:])
        elsewhere = self._elsewhere({brick for brick, _ in newest})
        keys = {pair[0] for pair in newest if pair in elsewhere}
        forms = self.store.records(BrickForm, where("key").one_of(list(keys)))
        canonical = {form.key: form.canonical for form in forms}
        for pair, latency_ms in newest.items():
            if pair in elsewhere and pair[0] in canonical:
                yield BrickInCommon(known_brick(pair, canonical[pair[0]], elsewhere[pair]), latency_ms)

    def known(self, bricks: Iterable[Unmeasured]) -> dict[Unmeasured, KnownBrick]:
        """Return those of these bricks that any other system has measured.

        A result without a context is of the brick in any context, unless there is one in the very context.
        """
        wanted = {brick: self._keys(brick) for brick in bricks}
        elsewhere = self._elsewhere({key for keys in wanted.values() for key in keys})
        found: dict[Unmeasured, KnownBrick] = {}
        for brick, keys in wanted.items():
            held: defaultdict[str, list[float]] = defaultdict(list)
            for key in keys:
                anywhere, here = elsewhere.get((key, ANY_CONTEXT), {}), elsewhere.get((key, brick.context), {})
                for system, latency_ms in {**anywhere, **here}.items():
                    held[system].append(latency_ms)
            if held:
                means_ms = {system: fmean(of_one) for system, of_one in held.items()}
                found[brick] = known_brick((keys[0], brick.context), brick.canonical, means_ms)
        return found

    def deviations(self, bricks: Iterable[KnownBrick]) -> Deviations:
        """Return the deviations of this system in known bricks, as far as the bricks in common tell."""
        here_ms = {each.brick.pair: each.latency_ms for each in self.in_common}
        everything = {brick.pair: brick for brick in (*bricks, *(each.brick for each in self.in_common))}
        return deviations(everything.values()).given(here_ms)

    def _keys(self, brick: Unmeasured) -> list[str]:
        """Return the key of a brick, and that of the brick that published lists do not distinguish from it."""
        counterpart = bias_counterpart(brick.canonical) if self.way.protocol == PROTOCOL else None
        return [brick.key] if counterpart is None else [brick.key, counterpart]

    def _elsewhere(self, bricks: Collection[str]) -> Mapping[Pair, Mapping[str, float]]:
        """Return the latencies of bricks by system."""
        found: defaultdict[Pair, dict[str, float]] = defaultdict(dict)
        for other in self.ways if bricks else ():
            for pair, latency_ms in latencies_ms(self.store, other, bricks).items():
                found[pair][other.system] = latency_ms
        return found


@dataclass(frozen=True, eq=False)
class WithOthers:
    """Predicts bricks from the systems that have measured them, and all others by the usual predictor of the system."""

    others: OtherSystems
    usual: Predictor

    @property
    def shared(self) -> float:
        """The share of the half intervals that all predictions of a model have in common."""
        return SHARED if self._compares else self.usual.shared

    @property
    def _compares(self) -> bool:
        return len(self.others.in_common) >= FEWEST_IN_COMMON

    def predict(self, bricks: Sequence[Unmeasured]) -> list[Latency | None]:
        """Return the latency of each brick; None if it is known nowhere and unlike all measured ones."""
        known = self.others.known(bricks) if self._compares else {}
        found: dict[Unmeasured, Latency | None] = {}
        if known:
            latencies = self.others.deviations(known.values()).predict([brick.pair for brick in known.values()])
            found.update(zip(known, latencies, strict=True))
        left = [brick for brick in bricks if brick not in known]
        found.update(zip(left, self.usual.predict(left), strict=True))
        return [found[brick] for brick in bricks]


def with_others(store: ResultsDatabase, way: Way, usual: Predictor, saved: Path | None = None) -> Predictor:
    """Return a predictor that also uses the results of other systems, if there are any like those of the way."""
    others = OtherSystems(store, way, saved)
    return WithOthers(others, usual) if others.ways else usual
