"""The results of a model in the store: its bricks by way of measuring, and its end-to-end latencies."""

import hashlib
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from typing import NamedTuple

from tinydb import where

from dlbricks_tui.bricks.decomposition import Decomposition
from dlbricks_tui.bricks.identity import brick_of, carrier_keys, times_paid
from dlbricks_tui.estimate.estimate import method_doubt
from dlbricks_tui.estimate.knowledge import Knowledge, Latency, MeasuredLatency, Pair
from dlbricks_tui.estimate.system_estimate import Offer, SystemEstimate
from dlbricks_tui.models.graph import Level
from dlbricks_tui.store.change import with_doubt
from dlbricks_tui.store.columns import Summary
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.index import SHARED_COLUMN
from dlbricks_tui.store.records import ANY_CONTEXT, PUBLISHED, Failure
from dlbricks_tui.store.selections import LEAST_FIRST, Selection, Way, equal, noop
from dlbricks_tui.store.statistics import mean_latency

# Operators whose first array is the weight, and the second the bias, with one number for each output.
_WITH_OR_WITHOUT_BIAS = frozenset({"conv", "linear"})

# The ids of results of layers inside of networks begin with this.
_INSIDE = "inside-"


class _Result(NamedTuple):
    way: Way
    run: str
    measured: MeasuredLatency
    # The trust in its origin.
    trust: int


class BrickResults:
    """All good measurements of a model's bricks, from all systems."""

    def __init__(self, store: ResultsDatabase, decomposition: Decomposition) -> None:
        self._store = store
        self._decomposition = decomposition
        self._kin = _kin(store, decomposition)
        self._layers = _layers_of_sequences(decomposition)
        self._by_way: defaultdict[Way, list[_Result]] = defaultdict(list)
        layers = {key for held in self._layers.values() for _, key in held}
        about = where("brick").one_of(list(decomposition.bricks | self._kin.keys() | layers))
        for result in _results(store.select(about & equal(of="brick", good=True), order=LEAST_FIRST)):
            self._by_way[result.way].append(result)

    @cached_property
    def _unlike_others(self) -> Set[str]:
        """The carriers that are no other models: this one and its part, and those that are not known."""
        return {*carrier_keys(self._decomposition.graph), ""}

    @property
    def offers(self) -> tuple[Offer, ...]:
        """The ways of measuring that cover some of the model, each with how much it covers."""
        uses = Counter((it.brick.key, it.context) for it in self._decomposition.occurrences)
        offers = [
            Offer(
                way,
                sum(uses[pair] for pair in self._measured(way)),
                max(result.trust for result in results),
                max(result.measured.when for result in results),
            )
            for way, results in self._by_way.items()
        ]
        return tuple(offer for offer in offers if offer.sequences)

    def knowledge(self, way: Way) -> Knowledge:
        """Return the measurements of one way."""
        measured = self._measured(way)
        lacking = self._decomposition.pairs - measured.keys()
        return Knowledge(measured, self._failed(way, lacking) if lacking else {}, method_doubt(way.protocol))

    def _measured(self, way: Way) -> dict[Pair, MeasuredLatency]:
        kin = self._kin if way.protocol == PUBLISHED else {}
        newest: dict[Pair, MeasuredLatency] = {}
        # A method without contexts has several results of a brick, one for each occurrence.
        anywhere: defaultdict[str, list[_Result]] = defaultdict(list)
        for result in self._by_way.get(way, []):
            brick, context = result.measured.pair
            if context == ANY_CONTEXT:
                anywhere[kin.get(brick, brick)].append(result)
            else:
                newest[result.measured.pair] = result.measured
        means = {brick: _mean_of_newest_run(brick, results, self._unlike_others) for brick, results in anywhere.items()}
        found: dict[Pair, MeasuredLatency] = {}
        for pair in self._decomposition.pairs:
            brick, _ = pair
            measured = newest.get(pair) or means.get(kin.get(brick, brick))
            held = self._layers_in(pair, way)
            if measured is None and held and all(layer in means for _, layer in held):
                measured = _together(pair, [(times, means[layer]) for times, layer in held])
            if measured is not None:
                found[pair] = measured
        return found

    def _layers_in(self, pair: Pair, way: Way) -> Sequence[tuple[int, str]]:
        """Return the layers of a sequence, of which a method that times layers inside of networks composes it."""
        return self._layers.get(pair, ()) if way.protocol.startswith(_INSIDE) else ()

    def _failed(self, way: Way, lacking: Iterable[Pair]) -> dict[Pair, str]:
        wanted: defaultdict[str, list[Pair]] = defaultdict(list)
        for pair in lacking:
            for brick in (pair[0], *(layer for _, layer in self._layers_in(pair, way))):
                wanted[brick].append(pair)
        about = where("brick").one_of(list(wanted))
        failures = self._store.least_first(Failure, about & equal(system=way.system, runtime=way.runtime))
        return {
            pair: f"{it.reason}: {it.message}" if it.message else it.reason
            for it in failures
            for pair in wanted.get(it.brick, ())
            if it.context in (pair[1], ANY_CONTEXT)
        }


def _layers_of_sequences(decomposition: Decomposition) -> Mapping[Pair, Sequence[tuple[int, str]]]:
    """Return the (count, brick) pairs of the computing layers in each sequence of several layers."""
    graph = decomposition.graph
    found: dict[Pair, Sequence[tuple[int, str]]] = {}
    for it in decomposition.occurrences:
        pair, indices = (it.brick.key, it.context), it.sequence.layers
        if len(indices) > 1 and pair not in found:
            times = times_paid(graph, indices)
            computing = [graph.layers[index] for index in indices if graph.layers[index].operators]
            found[pair] = [(layer.times // times, brick_of(graph, (layer.index,)).key) for layer in computing]
    return found


def _together(pair: Pair, layers: Sequence[tuple[int, MeasuredLatency]]) -> MeasuredLatency:
    """Return the latency of a sequence whose layers were timed, each with the number of times that it holds it."""
    measured = [of_layer for _, of_layer in layers]
    newest = max(measured, key=lambda it: it.when)
    parts = zip(*([times * ms for ms in it.latency] for times, it in layers), strict=True)
    others_ms = [None if it.others_ms is None else times * it.others_ms for times, it in layers]
    return MeasuredLatency(
        Latency(*map(math.fsum, parts)),
        pair,
        min(it.samples for it in measured),
        tuple([name for it in measured for name in it.results]),
        newest.reference_ms,
        when=newest.when,
        carriers=frozenset().union(*(it.carriers for it in measured)),
        others_ms=None if None in others_ms else math.fsum(filter(None, others_ms)),
        layers=tuple(layers),
    )


def beside(found: SystemEstimate, timed: Summary | None) -> SystemEstimate:
    """Return an estimate with the end-to-end latency of the model, if it was timed."""
    if timed is None:
        return found
    moment, whole = round(datetime.fromisoformat(timed.when).timestamp() * 1_000_000), whole_latency(timed)
    return replace(
        found, end_to_end=whole, reference_ms=timed.reference_ms, timed_when=moment, timed_samples=timed.samples
    )


def whole_latency(timed: Summary) -> Latency:
    """Return the latency of a whole model, with the doubt that its host was not quiet."""
    return Latency(*with_doubt((timed.trimmed_mean_ms, timed.low_ms, timed.high_ms), timed.shared))


def end_to_end(store: ResultsDatabase, keys: Mapping[Level, str], name: str, way: Way) -> Summary | None:
    """Return the newest good result of a whole model in one way, under any of its keys."""
    return next(reversed(all_end_to_end(store, keys, name, way)), None)


def all_end_to_end(store: ResultsDatabase, keys: Mapping[Level, str], name: str, way: Way) -> list[Summary]:
    """Return the good results of a whole model in one way under the key of the newest one, which is the last."""
    held = []
    for level, key in keys.items():
        asked = way._replace(level=level).query & equal(of="model", model=key, good=True)
        found = store.select(asked, order=LEAST_FIRST).summaries()
        # Equal models are measured once, under any name. The published lists have results by name.
        held.append(([it for it in found if it.name == name] if way.protocol == PUBLISHED else []) or found)
    return max(filter(None, held), key=lambda it: it[-1].precedence, default=[])


def levels_measured(store: ResultsDatabase, system: str | None = None, runtime: str | None = None) -> tuple[Level, ...]:
    """Return the levels with any good measurement, on one system and runtime or on all."""
    wanted = equal(of="brick", good=True)
    wanted &= equal(system=system) if system is not None else noop()
    wanted &= equal(runtime=runtime) if runtime is not None else noop()
    return tuple(sorted(map(Level, store.select(wanted, order=()).distinct("level"))))


def _results(found: Selection) -> Iterator[_Result]:
    """Yield the results of bricks."""
    pairs = zip(found.values("brick"), found.values("context"), strict=True)
    ways = zip(*map(found.values, ("system", "runtime", "level", "protocol")), strict=True)
    latencies = map(Latency, *map(found.values, ("trimmed_mean_ms", "low_ms", "high_ms")))
    levels = {level.value: level for level in Level}
    others = zip(*map(found.values, ("samples", "id", "reference_ms", "run")), found.trust, strict=True)
    facts = zip(
        found.numbers("when").tolist(), others, found.values(SHARED_COLUMN), found.values("carrier"), strict=True
    )
    for pair, way, latency, (moment, other, common, carrier) in zip(pairs, ways, latencies, facts, strict=True):
        system, runtime, level, protocol = way
        samples, identity, reference_ms, run, trust = other
        common = common if common >= 0 else None
        carriers = frozenset((carrier,))
        measured = MeasuredLatency(latency, pair, samples, (identity,), reference_ms, common, moment, carriers)
        yield _Result(Way(system, runtime, levels[level], protocol), run, measured, trust)


def _kin(store: ResultsDatabase, decomposition: Decomposition) -> dict[str, str]:
    """Return one common key for each brick and its counterpart, which published lists do not distinguish."""
    if not store.select(equal(protocol=PUBLISHED), order=()):
        return {}
    kin: dict[str, str] = {}
    for brick in {it.brick for it in decomposition.occurrences}:
        other = bias_counterpart(brick.canonical)
        if other is not None:
            kin[brick.key] = kin[other] = min(brick.key, other)
    return kin


def bias_counterpart(canonical: str) -> str | None:
    """Return the key of the brick that differs from this one only in its bias; None if there is none.

    The published layer lists of 2019 do not distinguish the two: both have one mean latency there.
    """
    form = json.loads(canonical)
    operators, weights = form["operators"], form["weights"]
    if len(operators) != 1 or operators[0]["op"] not in _WITH_OR_WITHOUT_BIAS or not weights:
        return None
    (operator,), (shape, dtype) = operators, weights[0]
    if len(weights) == 1 and shape is not None:
        operator["inputs"].append(["weight", 1, 0])
        weights.append([[shape[0]], dtype])
    elif len(weights) == 2:
        operator["inputs"].pop()
        weights.pop()
    else:
        return None
    # As in `bricks.identity`: the order of names and the lack of spaces affect the key.
    counterpart = json.dumps(form, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(counterpart.encode()).hexdigest()


def _mean_of_newest_run(brick: str, results: Sequence[_Result], unlike: Set[str]) -> MeasuredLatency:
    """Return the mean over the occurrences of the newest run; its interval also has the differences between them.

    Results are sorted, oldest first. The mean in other models has none of the carriers `unlike` them.
    """
    found = [result.measured for result in results if result.run == results[-1].run]
    newest = found[-1]
    shared = [each.shared for each in found if each.shared is not None]
    others_ms = [each.latency.value_ms for each in found if not each.carriers & unlike]
    return MeasuredLatency(
        latency=Latency(*mean_latency([each.latency for each in found])),
        pair=(brick, ANY_CONTEXT),
        samples=found[0].samples,
        results=tuple([name for each in found for name in each.results]),
        reference_ms=newest.reference_ms,
        shared=math.fsum(shared) / len(shared) if len(shared) == len(found) else None,
        when=newest.when,
        carriers=frozenset().union(*(each.carriers for each in found)),
        others_ms=math.fsum(others_ms) / len(others_ms) if others_ms else None,
    )
