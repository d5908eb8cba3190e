"""Estimates of timed models by the other results of their side of a comparison."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import NamedTuple

from dlbricks_tui.api.changes import EstimateOf
from dlbricks_tui.api.sides import Found, Side
from dlbricks_tui.bricks.decomposition import Cutting, Decomposition, decompose
from dlbricks_tui.bricks.identity import end_to_end_keys
from dlbricks_tui.estimate.estimate import estimate
from dlbricks_tui.estimate.knowledge import Knowledge, Latency, MeasuredLatency, Pair
from dlbricks_tui.estimate.system_estimate import format_of
from dlbricks_tui.models.content import without_cycle_search
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.models.loading import UNLOADABLE, Loader
from dlbricks_tui.store.selections import Way


class _Cut(NamedTuple):
    """A model of the library in its layers, and the keys under which it may have been timed."""

    decomposition: Decomposition
    keys: frozenset[str]


def estimates_of(
    sides: Sequence[Side], sources: Mapping[str, ModelSource], loader_of: Callable[[str], Loader]
) -> EstimateOf:
    """Return the function that estimates whole models, by the results of their side in the way of measuring.

    It returns the sequential estimate in ms, or None if the library or the results lack something. `sources` are the
    models of the library by their names.
    """
    # The number of the side that has a result, by the id of the result; one of several sides counts in the first.
    number_of = {it.id: number for number, side in reversed(list(enumerate(sides))) for it in side.results}
    known: dict[str, float | None] = {}

    @cache
    def cut_of(name: str, runtime: str, level: Level, batch: int) -> _Cut | None:
        source = sources.get(name)
        described = next((it.runtimes[runtime] for it in sides if runtime in it.runtimes), None)
        if source is None:
            return None
        loader, source = loader_of(runtime), source.in_format(format_of(described))
        try:
            graph = loader.load(source, level)
            if graph.batch_size != batch:
                graph = loader.load(source, level, batch_size=batch)
        except UNLOADABLE:
            return None
        return _Cut(decompose(graph, Cutting(), loader.cache), frozenset(end_to_end_keys(graph).values()))

    @cache
    def newest_of(number: int) -> Mapping[Way, Mapping[Pair, Found]]:
        """Return the newest result of each brick of a side, by the way of measuring."""
        found: defaultdict[Way, dict[Pair, Found]] = defaultdict(dict)
        for it in sorted(sides[number].results, key=lambda result: (result.when, result.id)):
            if not it.subject.is_model:
                found[_way_of(it)][it.subject.key, it.subject.context] = it
        return found

    @without_cycle_search()
    def of(timed: Found) -> float | None:
        if timed.id not in known:
            execution = timed.execution
            cut = cut_of(timed.name, timed.runtime, execution.level, execution.batch)
            known[timed.id] = None
            # Another model may have the same name here.
            if cut is not None and timed.subject.key in cut.keys:
                results = newest_of(number_of[timed.id]).get(_way_of(timed), {})
                measured = {it: _measured(results[it], it) for it in cut.decomposition.pairs if it in results}
                found = estimate(cut.decomposition, Knowledge(measured))
                if found.composed is not None and not found.is_partial:
                    known[timed.id] = found.composed.sequential_ms
        return known[timed.id]

    return of


def _way_of(it: Found) -> Way:
    execution = it.execution
    return Way(execution.system, it.runtime, execution.level, execution.method)


def _measured(it: Found, pair: Pair) -> MeasuredLatency:
    when = int(datetime.fromisoformat(it.when).timestamp() * 1e6)
    return MeasuredLatency(Latency(*it.statistics.latency), pair, it.statistics.count, (it.id,), when=when)
