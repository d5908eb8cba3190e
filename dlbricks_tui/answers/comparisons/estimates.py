"""Estimates of the models of a comparison from the results of their bricks, for models of the library."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from dlbricks_tui.answers.comparisons.sides import Found, Side
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

_Loaded = tuple[str, str, Level, int]


class _Cut(NamedTuple):
    """A model of the library in its layers, and the keys under which it may have been timed."""

    decomposition: Decomposition
    keys: frozenset[str]


class Estimates:
    """Estimates of whole models, each by the results of its side in the way in which the model was timed.

    `sources` are the models of the library by their names.
    """

    def __init__(
        self, sides: Sequence[Side], sources: Mapping[str, ModelSource], loader_of: Callable[[str], Loader]
    ) -> None:
        self._sides, self._sources, self._loader_of = sides, sources, loader_of
        # The number of the side that has a result, by the id of the result; one of several sides counts in the first.
        self._number_of = {it.id: number for number, side in reversed(list(enumerate(sides))) for it in side.results}
        self._cuts: dict[_Loaded, _Cut | None] = {}
        # The newest result of each brick of a side, by the way of measuring.
        self._newest: dict[int, Mapping[Way, Mapping[Pair, Found]]] = {}
        # By the ids of the timed models.
        self._known: dict[str, float | None] = {}

    @without_cycle_search()
    def of(self, timed: Found) -> float | None:
        """Return the sequential estimate in ms; None if the library or the results lack something."""
        if timed.id not in self._known:
            self._known[timed.id] = self._estimate(timed)
        return self._known[timed.id]

    def _estimate(self, timed: Found) -> float | None:
        execution = timed.execution
        key = timed.name, timed.runtime, execution.level, execution.batch
        if key not in self._cuts:
            self._cuts[key] = self._cut(timed)
        cut = self._cuts[key]
        # Another model may have the same name here.
        if cut is None or timed.subject.key not in cut.keys:
            return None
        results = self._results_beside(timed)
        measured = {pair: _measured(results[pair], pair) for pair in cut.decomposition.suite if pair in results}
        found = estimate(cut.decomposition, Knowledge(measured))
        return None if found.composed is None or found.is_partial else found.composed.sequential_ms

    def _results_beside(self, timed: Found) -> Mapping[Pair, Found]:
        """Return the newest result of each brick of the side that has timed the model, in the same way."""
        number = self._number_of[timed.id]
        if number not in self._newest:
            found: defaultdict[Way, dict[Pair, Found]] = defaultdict(dict)
            for it in sorted(self._sides[number].results, key=lambda result: (result.when, result.id)):
                if not it.subject.is_model:
                    found[_way_of(it)][it.subject.key, it.subject.context] = it
            self._newest[number] = found
        return self._newest[number].get(_way_of(timed), {})

    def _cut(self, timed: Found) -> _Cut | None:
        source, execution = self._sources.get(timed.name), timed.execution
        described = next((it.runtimes[timed.runtime] for it in self._sides if timed.runtime in it.runtimes), None)
        if source is None:
            return None
        loader, source = self._loader_of(timed.runtime), source.in_format(format_of(described))
        try:
            graph = loader.load(source, execution.level)
            if graph.batch_size != execution.batch:
                graph = loader.load(source, execution.level, batch_size=execution.batch)
        except UNLOADABLE:
            return None
        return _Cut(decompose(graph, Cutting(), loader.cache), frozenset(end_to_end_keys(graph).values()))


def _way_of(it: Found) -> Way:
    execution = it.execution
    return Way(execution.system, it.runtime, execution.level, execution.method)


def _measured(it: Found, pair: Pair) -> MeasuredLatency:
    statistics = it.statistics
    return MeasuredLatency(
        Latency(statistics.trimmed_mean_ms, statistics.low_ms, statistics.high_ms),
        pair,
        statistics.count,
        (it.id,),
        when=int(datetime.fromisoformat(it.when).timestamp() * 1e6),
    )
