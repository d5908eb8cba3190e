"""The predictor of a way of measuring: trained from the results of a store, and kept in a file.

Bricks in common with other systems, and the prior, are in files, too: a look-up need not train.
"""

import hashlib
import json
import math
import re
import zlib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from io import BytesIO
from pathlib import Path
from statistics import fmean, median
from typing import BinaryIO, NamedTuple
from zipfile import BadZipFile, ZipFile

import numpy as np
from tinydb import where

from dlbricks_tui import __version__
from dlbricks_tui.estimate.inquiry import of_usual_variant
from dlbricks_tui.estimate.knowledge import Latency, Pair, Predictor, Unmeasured
from dlbricks_tui.estimate.lookup import bias_counterpart
from dlbricks_tui.estimate.nearest import (
    FEWEST,
    Example,
    NearestBricks,
    Numbers,
    OperatorBricks,
    Roofline,
    first_known,
    train,
)
from dlbricks_tui.estimate.transfer import SHARED, BrickInCommon, Deviations, KnownBrick, deviations, known_brick
from dlbricks_tui.files import open_regular, read_json, replace_file, write_atomically
from dlbricks_tui.models.graph import Level
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import DamagedResultError
from dlbricks_tui.store.records import ANY_CONTEXT, PUBLISHED, BrickForm
from dlbricks_tui.store.selections import LEAST_FIRST, Selection, Way, combinations, equal

# Files of another format are trained again.
_FORMAT = 1
_UNREADABLE = (OSError, ValueError, LookupError, TypeError, EOFError, ArithmeticError, BadZipFile, zlib.error)


class Trained(NamedTuple):
    """The measured bricks of a store, and how many times as long they take as by the prior; None if not known."""

    own: NearestBricks
    speed: float | None = None


def write_trained(path: Path, trained: Trained, state: str = "") -> None:
    """Write a predictor, and the state of the results that it was trained with."""
    predictor = trained.own
    held = list(predictor.operators.values())
    about = {
        "format": _FORMAT,
        "state": state,
        "speed": trained.speed,
        "vocabulary": predictor.vocabulary,
        "shared": predictor.shared,
        "operators": [
            [name, len(each.excess), each.usual_error, each.width, *each.roofline]
            for name, each in predictor.operators.items()
        ],
    }

    def write(file: BinaryIO) -> None:
        # In memory first: an archive on a full disk would complain on standard error once more when it is discarded.
        archive = BytesIO()
        np.savez_compressed(
            archive,
            about=np.frombuffer(json.dumps(about).encode(), dtype=np.uint8),
            shapes=_joined([each.shapes for each in held]),
            traits=np.packbits(_joined([each.traits for each in held]).astype(bool), axis=1),
            excess=np.concatenate([np.zeros(0), *(each.excess for each in held)]),
        )
        file.write(archive.getbuffer())

    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, write)


def read_trained(path: Path, state: str = "") -> Trained | None:
    """Return the predictor in a file; None if it was trained with other results, or cannot be read."""
    try:
        with open_regular(path) as file:
            content = file.read()
        # NumPy parses the heads of arrays before it compares their sums, and fails in many ways on damaged ones.
        if ZipFile(BytesIO(content)).testzip() is not None:
            return None
        with np.load(BytesIO(content), allow_pickle=False) as arrays:
            about = json.loads(arrays["about"].tobytes())
            if (about["format"], about["state"]) != (_FORMAT, state):
                return None
            vocabulary = tuple(about["vocabulary"])
            shapes, excess = arrays["shapes"].astype(float), arrays["excess"].astype(float)
            traits = np.unpackbits(arrays["traits"], axis=1, count=len(vocabulary)).astype(float)
    except _UNREADABLE:
        return None
    operators: dict[str, OperatorBricks] = {}
    first = 0
    for name, count, usual_error, width, *rates in about["operators"]:
        rows = slice(first, first := first + count)
        operators[name] = OperatorBricks(Roofline(*rates), shapes[rows], traits[rows], excess[rows], usual_error, width)
    return Trained(NearestBricks(operators, vocabulary, about["shared"]), about["speed"])


def read_in_common(path: Path, state: str) -> tuple[BrickInCommon, ...] | None:
    """Return the bricks in a file; None if results have changed since, or it cannot be read."""
    try:
        about = read_json(path)
        if (about["format"], about["state"]) != (_FORMAT, state):
            return None
        return tuple(
            [
                BrickInCommon(KnownBrick((key, context), kind, work, {**latencies_ms}), latency_ms)
                for ((key, context), kind, work, latencies_ms), latency_ms in about["bricks"]
            ]
        )
    except _UNREADABLE:
        return None


def _joined(arrays: Sequence[Numbers]) -> Numbers:
    return np.concatenate(arrays) if arrays else np.zeros((0, 1))


PRIORS = Path(__file__).parent / "priors"
# A system of which nothing is known takes up to so many times as long as by the prior, or as little.
_UNKNOWN_SYSTEM = 3.0


@lru_cache(maxsize=8)
def prior_of(framework: str, level: Level) -> NearestBricks | None:
    """Return the prior of a framework at a level; None if the committed results have none."""
    found = read_trained(PRIORS / f"{framework}-{level.value}.npz")
    return None if found is None else found.own


def speed_by(prior: NearestBricks | None, measured: Sequence[tuple[Unmeasured, float]]) -> float | None:
    """Return how many times as long measured bricks take as by the prior; None if too few can be compared."""
    if prior is None:
        return None
    expected = prior.from_alike([brick for brick, _ in measured])
    ratios = [
        latency_ms / each.value_ms
        for (_, latency_ms), each in zip(measured, expected, strict=True)
        if each is not None and latency_ms
    ]
    return median(ratios) if len(ratios) >= FEWEST else None


@dataclass(frozen=True, slots=True, eq=False)
class WithPrior:
    """Predicts by the measured bricks of a store, and operators of which these are too few by the prior."""

    own: NearestBricks
    prior: NearestBricks
    # How many times as long bricks take on the system as by the prior; None if not known.
    speed: float | None

    @property
    def shared(self) -> float:
        """The share of the half intervals that all predictions of a model have in common."""
        return max(self.own.shared, self.prior.shared) if self.speed is not None else 1.0

    def predict(self, bricks: Sequence[Unmeasured]) -> list[Latency | None]:
        """Return the latency of each brick, of which neither may know any like it; None if its shapes are not known."""
        return first_known(
            bricks,
            self.own.from_alike,
            lambda left: [None if it is None else self._scaled(it) for it in self.prior.predict(left)],
        )

    def _scaled(self, latency: Latency) -> Latency:
        speed, unknown = (1.0, _UNKNOWN_SYSTEM) if self.speed is None else (self.speed, 1.0)
        # Both errors are independent.
        below, above = (
            math.exp(math.hypot(math.log(ratio), math.log(unknown)))
            for ratio in (latency.value_ms / latency.low_ms, latency.high_ms / latency.value_ms)
        )
        value_ms = speed * latency.value_ms
        return Latency(value_ms, value_ms / below, value_ms * above)


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
        names = index.names_of("bricks", "brick")[index.column("brick")[rows]]
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
    prior = prior_of(framework, way.level) if of_usual_variant(way.runtime) else None
    name = hashlib.sha256(repr((*way[:2], way.level.value, way.protocol)).encode()).hexdigest()[:32]
    path, results = folder / f"{name}.npz", results_of(store, way)
    state = state_of(results)
    trained = read_trained(path, state)
    if trained is None:
        measured = list(examples_of(store, results))
        pairs = [(Unmeasured(each.canonical, each.context), each.latency_ms) for each in measured]
        trained = Trained(train(measured), speed_by(prior, pairs))
        with suppress(OSError):
            write_trained(path, trained, state)
    usual = trained.own if prior is None else WithPrior(trained.own, prior, trained.speed)
    return with_others(store, way, usual, path.with_suffix(".json"))


def examples_of(store: ResultsDatabase, found: Selection) -> Iterator[Example]:
    """Yield each brick in each context of the results of one way, by its newest good result, oldest first.

    A method without contexts has several results of a brick, one for each occurrence: their mean counts.
    """
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


@dataclass(frozen=True)
class OtherSystems:
    """The results of other systems that are like those of one way of measuring."""

    store: ResultsDatabase
    way: Way
    # The file that keeps the bricks in common.
    saved: Path | None = None

    @cached_property
    def ways(self) -> tuple[Way, ...]:
        """The way of measuring with the most bricks, for each other system.

        These ways have the level, method and runtime of this one, which may run in another version of Python.
        """
        asked = equal(of="brick", good=True, level=self.way.level.value, protocol=self.way.protocol)
        found: dict[str, Way] = {}
        for it in combinations(self.store.select(asked & (where("system") != self.way.system), order=())):
            if _PYTHON.sub("", it.runtime) == _PYTHON.sub("", self.way.runtime):
                found.setdefault(it.system, it.way)
        return tuple(found.values())

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
                write_atomically(self.saved, json.dumps({"format": _FORMAT, "state": state, "bricks": found}))
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
    # The share of the half intervals that all predictions of a model have in common.
    shared: float = SHARED

    def predict(self, bricks: Sequence[Unmeasured]) -> list[Latency | None]:
        """Return the latency of each brick; None if it is known nowhere and unlike all measured ones."""
        known = self.others.known(bricks)
        found: dict[Unmeasured, Latency | None] = {}
        if known:
            latencies = self.others.deviations(known.values()).predict([brick.pair for brick in known.values()])
            found.update(zip(known, latencies, strict=True))
        left = [brick for brick in bricks if brick not in known]
        found.update(zip(left, self.usual.predict(left), strict=True))
        return [found[brick] for brick in bricks]


def with_others(store: ResultsDatabase, way: Way, usual: Predictor, saved: Path | None = None) -> Predictor:
    """Return a predictor that also uses the results of other systems, if there are enough bricks in common."""
    others = OtherSystems(store, way, saved)
    return WithOthers(others, usual) if len(others.in_common) >= FEWEST_IN_COMMON else usual
