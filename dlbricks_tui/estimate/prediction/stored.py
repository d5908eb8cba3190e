"""The predictor of a way of measuring: trained from the results of a store, and kept in a file."""

import hashlib
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean

import numpy as np
from tinydb import where

from dlbricks_tui import __version__
from dlbricks_tui.estimate.knowledge import Latency, Pair, Predictor, Unmeasured
from dlbricks_tui.estimate.lookup import bias_counterpart
from dlbricks_tui.estimate.prediction.nearest import Example, train
from dlbricks_tui.estimate.prediction.saved import (
    Trained,
    WithPrior,
    prior_of,
    read_in_common,
    read_trained,
    speed_by,
    write_in_common,
    write_trained,
)
from dlbricks_tui.estimate.prediction.transfer import (
    SHARED,
    BrickInCommon,
    Deviations,
    KnownBrick,
    deviations,
    known_brick,
)
from dlbricks_tui.runtime.variant import USUAL_KERNELS, Precision, stated_kernels, stated_precision
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.errors import DamagedResultError
from dlbricks_tui.store.records import ANY_CONTEXT, PUBLISHED, BrickForm
from dlbricks_tui.store.selections import LEAST_FIRST, Selection, Way, combinations, equal


def results_of(store: ResultsDatabase, way: Way, bricks: Collection[str] | None = None) -> Selection:
    """Return the good results of all bricks, or of some, that were measured in one way; the last one of each counts."""
    asked = equal(of="brick", good=True) & way.query
    if bricks is not None:
        asked &= where("brick").one_of(list(bricks))
    return store.select(asked, order=LEAST_FIRST)


def state_of(*selections: Selection) -> str:
    """Return a text that changes with the results, with the bricks whose forms are known, and with the version."""
    digest = hashlib.sha256(__version__.encode())
    for results in selections:
        index, rows = results.generation.index, results.rows
        names = np.frombuffer(index.name_of_brick, dtype=np.int32)[index.column("brick")[rows]]
        columns = [index.column(name)[rows] for name in ("uuid", "trimmed_mean_ms", "when")]
        for column in (np.array([len(rows)]), names > 0, *columns):
            digest.update(column.tobytes())
    return digest.hexdigest()


def latencies_ms(store: ResultsDatabase, way: Way, bricks: Collection[str] | None = None) -> dict[Pair, float]:
    """Return the newest latencies of all bricks, or of some, that were measured in one way, the oldest first.

    A method without contexts has several results of a brick, one for each occurrence: the mean of its newest run
    counts.
    """
    found = results_of(store, way, bricks)
    taken_ms = found.values("trimmed_mean_ms")
    return {pair: fmean(taken_ms[place] for place in places) for pair, places in _counting(found).items()}


def _counting(found: Selection) -> dict[Pair, list[int]]:
    """Return the places of the results of each brick that count: the newest, or without contexts its newest run."""
    places: dict[Pair, list[int]] = {}
    runs = found.values("run")
    for place, pair in enumerate(zip(found.values("brick"), found.values("context"), strict=True)):
        before = places.pop(pair, [])
        same_run = pair[1] == ANY_CONTEXT and before and runs[before[-1]] == runs[place]
        places[pair] = [*before, place] if same_run else [place]
    return places


def predictor_of(store: ResultsDatabase, folder: Path, way: Way, framework: str) -> Predictor:
    """Return the predictor of a way of measuring: the one in the folder, unless results have changed since."""
    # Priors were measured in the usual precision, with any kernels.
    is_usual = stated_precision(way.runtime) is Precision.F32 and stated_kernels(way.runtime) == USUAL_KERNELS
    prior = prior_of(framework, way.level) if is_usual else None
    name = hashlib.sha256(repr((*way[:2], way.level.value, way.protocol)).encode()).hexdigest()[:32]
    path, results = folder / f"{name}.npz", results_of(store, way)
    state = state_of(results)
    trained = read_trained(path, state)
    if trained is None:
        measured = list(_examples(store, results))
        pairs = [(Unmeasured(each.canonical, each.context), each.latency_ms) for each in measured]
        trained = Trained(train(measured), speed_by(prior, pairs))
        with suppress(OSError):
            write_trained(path, trained, state)
    usual = trained.own if prior is None else WithPrior(trained.own, prior, trained.speed)
    return with_others(store, way, usual, path.with_suffix(".json"))


def examples_of(store: ResultsDatabase, way: Way) -> Iterator[Example]:
    """Yield each brick in each context that was measured in one way, by its newest good result, oldest first.

    A method without contexts has several results of a brick, one for each occurrence: their mean counts.
    """
    return _examples(store, results_of(store, way))


def _examples(store: ResultsDatabase, found: Selection) -> Iterator[Example]:
    bricks = where("key").one_of(list(found.distinct("brick")))
    forms = {form.key: form.canonical for form in store.records(BrickForm, bricks)}
    latencies_ms, runs = found.values("trimmed_mean_ms"), found.values("run")
    begins: dict[str, int] = {}
    since: dict[Pair, int] = {}
    pairs = zip(found.values("brick"), found.values("context"), strict=True)
    for pair, run, when in zip(pairs, runs, found.numbers("when").tolist(), strict=True):
        since.setdefault(pair, begins.setdefault(run, when))
    for (brick, context), places in _counting(found).items():
        with suppress(DamagedResultError):
            document = found.generation.document(int(found.rows[places[0]]))
            # A run measures bricks for its models. Some methods also note the model.
            group = document["occurrence"].get("model") or runs[places[0]]
            if brick in forms:
                latency_ms = fmean(latencies_ms[place] for place in places)
                yield Example(brick, context, forms[brick], latency_ms, str(group), since[brick, context])


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
        counterpart = bias_counterpart(brick.canonical) if self.way.protocol == PUBLISHED else None
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
