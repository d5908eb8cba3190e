"""The queries that read measurements and calibrations from the store: the only module here that reads anything."""

import hashlib
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from operator import attrgetter
from statistics import median
from typing import NamedTuple

from tinydb import where
from tinydb.queries import QueryInstance

from dlbricks_tui.bricks.decomposition import Decomposition
from dlbricks_tui.estimate.calibration import BATCH_SIZE, Correction, is_applicable, prior_of
from dlbricks_tui.estimate.knowledge import Knowledge, Latency, MeasuredLatency, Pair
from dlbricks_tui.estimate.selection import Offer
from dlbricks_tui.estimate.system_estimate import SystemEstimate, Way
from dlbricks_tui.models.graph import Level
from dlbricks_tui.store.columns import Summary
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.dlbricks_2019 import PROTOCOL
from dlbricks_tui.store.filters import equal, noop
from dlbricks_tui.store.index import SHARED_COLUMN
from dlbricks_tui.store.records import ANY_CONTEXT, Calibration, Failure
from dlbricks_tui.store.selections import LEAST_FIRST, Selection
from dlbricks_tui.store.statistics import mean_latency

# The constants of one calibration vary by chance, on a noisy host by as much as their size.
MOST_CALIBRATIONS = 5
_ONE_DAY = timedelta(days=1)
# Operators whose first array is the weight, and the second the bias, with one number for each output.
_WITH_OR_WITHOUT_BIAS = frozenset({"conv", "linear"})


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
        self._by_way: defaultdict[Way, list[_Result]] = defaultdict(list)
        about = where("brick").one_of(list(decomposition.bricks | self._kin.keys()))
        for result in _results(store.select(about & equal(of="brick", good=True), order=LEAST_FIRST)):
            self._by_way[result.way].append(result)

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
        measured, graph = self._measured(way), self._decomposition.graph
        lacking = self._decomposition.suite - measured.keys()
        return Knowledge(
            measured,
            self._failed(way, lacking) if lacking else {},
            correction_of(self._store, way, graph.batch_size) or prior_of(graph.traits, way.protocol, graph.batch_size),
        )

    def _measured(self, way: Way) -> dict[Pair, MeasuredLatency]:
        kin = self._kin if way.protocol == PROTOCOL else {}
        newest: dict[Pair, MeasuredLatency] = {}
        # A method without contexts has several results of a brick, one for each occurrence.
        anywhere: defaultdict[str, list[_Result]] = defaultdict(list)
        for result in self._by_way.get(way, []):
            brick, context = result.measured.pair
            if context == ANY_CONTEXT:
                anywhere[kin.get(brick, brick)].append(result)
            else:
                newest[result.measured.pair] = result.measured
        means = {brick: _mean_of_newest_run(brick, results) for brick, results in anywhere.items()}
        found: dict[Pair, MeasuredLatency] = {}
        for pair in self._decomposition.suite:
            brick, _ = pair
            measured = newest.get(pair) or means.get(kin.get(brick, brick))
            if measured is not None:
                found[pair] = measured
        return found

    def _failed(self, way: Way, lacking: Iterable[Pair]) -> dict[Pair, str]:
        wanted: defaultdict[str, list[str]] = defaultdict(list)
        for brick, context in lacking:
            wanted[brick].append(context)
        about = where("brick").one_of(list(wanted))
        failures = self._store.least_first(Failure, about & equal(system=way.system, runtime=way.runtime))
        return {
            (it.brick, context): f"{it.reason}: {it.message}" if it.message else it.reason
            for it in failures
            for context in wanted.get(it.brick, ())
            if it.context in (context, ANY_CONTEXT)
        }


def calibrations_of(store: ResultsDatabase, way: Way, batch_size: int = 1) -> tuple[Calibration, ...]:
    """Return the calibrations of a way of measuring whose constants are averaged by their median, newest first.

    The newest calibration whose constants this version applies comes first. Others are added if they have the same
    constants, are at most one day older, and have more than half as many networks as the largest one.
    """
    found = [each for each in _applicable(store, way) if batch_size_of(each) == batch_size]
    fitting = sorted(found, key=lambda calibration: calibration.when, reverse=True)
    alike = [each for each in fitting if _of_one_day(each, fitting[0]) and _names(each) == _names(fitting[0])]
    most = max([len(each.residuals) for each in alike], default=0)
    return tuple([each for each in alike if 2 * len(each.residuals) > most][:MOST_CALIBRATIONS])


def nearest_calibrated(store: ResultsDatabase, way: Way, batch_size: int) -> int | None:
    """Return the batch size with calibrations that is most like this one; None without any calibration."""
    sizes = {batch_size_of(each) for each in _applicable(store, way)}
    return min(sizes, key=lambda size: (abs(math.log(size / max(1, batch_size))), size), default=None)


def correction_of(store: ResultsDatabase, way: Way, batch_size: int = 1) -> Correction | None:
    """Return the median of each constant, and all residuals; None without a calibration.

    Without calibrations at this batch size, those at the nearest one count.
    """
    nearest = nearest_calibrated(store, way, batch_size)
    if nearest is None:
        return None
    found = calibrations_of(store, way, nearest)
    errors = [error for each in found for _, error in each.residuals]
    densities = [density for each in found for _, density in each.densities]
    values = zip(*[constants_of(each).values() for each in found], strict=True)
    constants = tuple(zip(constants_of(found[0]), map(median, values), strict=True))
    known_densities = tuple(densities) if len(densities) == len(errors) else ()
    return Correction(constants, tuple(errors), known_densities, of_other_batch=nearest != batch_size)


def constants_of(calibration: Calibration) -> Mapping[str, float]:
    """Return the constants of a calibration by their names."""
    return {name: value for name, value in calibration.constants if name != BATCH_SIZE}


def batch_size_of(calibration: Calibration) -> int:
    """Return the batch size of the networks of a calibration."""
    return max(1, int(dict(calibration.constants).get(BATCH_SIZE, 1)))


def _applicable(store: ResultsDatabase, way: Way) -> list[Calibration]:
    # Without calibrations of its own, a store takes those of others.
    own = [each for each in store.records(Calibration, _of_way(way), own=True) if is_applicable(_names(each))]
    return own or [each for each in store.records(Calibration, _of_way(way)) if is_applicable(_names(each))]


def _of_one_day(calibration: Calibration, newest: Calibration) -> bool:
    return datetime.fromisoformat(newest.when) - datetime.fromisoformat(calibration.when) <= _ONE_DAY


def _names(calibration: Calibration) -> tuple[str, ...]:
    return tuple([name for name, _ in calibration.constants])


def beside(found: SystemEstimate, timed: Summary | None) -> SystemEstimate:
    """Return an estimate with the end-to-end latency of the model, if it was timed.

    On a host that was not quiet the interval of its samples tells too little.
    """
    if timed is None:
        return found
    value_ms = timed.trimmed_mean_ms
    half_ms = max(0.0, timed.shared) * value_ms
    below_ms, above_ms = math.hypot(half_ms, value_ms - timed.low_ms), math.hypot(half_ms, timed.high_ms - value_ms)
    latency = Latency(value_ms, max(0.0, value_ms - below_ms), value_ms + above_ms)
    moment = round(datetime.fromisoformat(timed.when).timestamp() * 1_000_000)
    return replace(
        found,
        end_to_end=latency,
        reference_ms=timed.reference_ms,
        timed_when=moment,
        timed_samples=timed.samples,
    )


def end_to_end(store: ResultsDatabase, keys: Mapping[Level, str], name: str, way: Way) -> Summary | None:
    """Return the newest good result of a whole model in one way, under any of its keys."""
    found = (_end_to_end(store, key, name, way._replace(level=level)) for level, key in keys.items())
    return max(filter(None, found), key=attrgetter("precedence"), default=None)


def _end_to_end(store: ResultsDatabase, model: str, name: str, way: Way) -> Summary | None:
    """Return the newest good result under a key, under any name of the model: equal models are measured once.

    The published lists have results by name.
    """
    found = store.select(_of_way(way) & equal(of="model", model=model, good=True), order=LEAST_FIRST).summaries()
    named = [summary for summary in found if summary.name == name] if way.protocol == PROTOCOL else []
    return next(reversed(named or found), None)


def levels_measured(store: ResultsDatabase, system: str | None = None, runtime: str | None = None) -> tuple[Level, ...]:
    """Return the levels with any good measurement, on one system and runtime or on all."""
    wanted = equal(of="brick", good=True)
    wanted &= equal(system=system) if system is not None else noop()
    wanted &= equal(runtime=runtime) if runtime is not None else noop()
    return tuple(sorted(map(Level, store.select(wanted, order=()).distinct("level"))))


def _of_way(way: Way) -> QueryInstance:
    return equal(system=way.system, runtime=way.runtime, level=way.level.value, protocol=way.protocol)


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
        measured = MeasuredLatency(latency, pair, samples, (identity,), reference_ms, common, moment, carrier)
        yield _Result(Way(system, runtime, levels[level], protocol), run, measured, trust)


def _kin(store: ResultsDatabase, decomposition: Decomposition) -> dict[str, str]:
    """Return one common key for each brick and its counterpart, which published lists do not distinguish."""
    if not store.select(equal(protocol=PROTOCOL), order=()):
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


def _mean_of_newest_run(brick: str, results: Sequence[_Result]) -> MeasuredLatency:
    """Return the mean over the occurrences of the newest run; its interval also has the differences between them.

    Results are sorted, oldest first.
    """
    found = [result.measured for result in results if result.run == results[-1].run]
    newest = found[-1]
    shared = [each.shared for each in found if each.shared is not None]
    return MeasuredLatency(
        Latency(*mean_latency([each.latency for each in found])),
        (brick, ANY_CONTEXT),
        found[0].samples,
        tuple([name for each in found for name in each.results]),
        newest.reference_ms,
        math.fsum(shared) / len(shared) if len(shared) == len(found) else None,
        newest.when,
        newest.carrier if len({each.carrier for each in found}) == 1 else "",
    )
