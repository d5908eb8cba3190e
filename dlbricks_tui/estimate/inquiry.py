"""Estimates of a model from the results in a store: on one system, or on each system, with its predictors."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from operator import attrgetter
from pathlib import Path

from dlbricks_tui.bricks.decomposition import Decomposition
from dlbricks_tui.bricks.identity import end_to_end_keys
from dlbricks_tui.estimate.estimate import Options, estimate
from dlbricks_tui.estimate.knowledge import NOTHING_KNOWN, Knowledge, Predictor, host_speed
from dlbricks_tui.estimate.lookup import BrickResults, all_end_to_end, beside, end_to_end, whole_latency
from dlbricks_tui.estimate.system_estimate import Offer, SystemEstimate, best_offer, offers_for
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.traits import Traits
from dlbricks_tui.runtime.variant import (
    USUAL_KERNELS,
    Precision,
    Variant,
    stated_kernels,
    stated_precision,
    stated_variant,
)
from dlbricks_tui.store.change import Timing, newest_together, timing_by
from dlbricks_tui.store.columns import Summary
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import DamagedResultError
from dlbricks_tui.store.selections import LEAST_FIRST, Way, by_id, combinations, equal, noop

_FOLDER = "predictions"


class Predictors:
    """The predictors of a store, one for each way of measuring: trained when they are needed first, and then cached."""

    def __init__(self, store: ResultsDatabase, cache: Path) -> None:
        self._store = store
        self._folder = cache / _FOLDER
        self._known: dict[Way, tuple[dict[str, int], Predictor]] = {}

    def of(self, way: Way, traits: Traits) -> Predictor:
        """Return the predictor of a way of measuring, which the framework with these traits has made possible."""
        from dlbricks_tui.estimate.predictors import predictor_of

        covered = self._store.generation.covered
        known = self._known.get(way)
        if known is None or known[0] != covered:
            known = self._known[way] = covered, predictor_of(self._store, self._folder, way, traits.framework)
        return known[1]


def any_runtime(_: str) -> bool:
    """Count the results of all runtimes."""
    return True


def of_usual_variant(identity: str) -> bool:
    """Count the results of a runtime that computes in the usual precision with any of its kernels."""
    return stated_precision(identity) is Precision.F32 and stated_kernels(identity) == USUAL_KERNELS


class Inquiry:
    """A model whose estimates are wanted; the results of its bricks are read from the store once."""

    def __init__(
        self,
        store: ResultsDatabase,
        decomposition: Decomposition,
        options: Options | None = None,
        predictors: Predictors | None = None,
    ) -> None:
        self.decomposition = decomposition
        self._store = store
        self._options = options or Options()
        self._predictors = None if self._options.measured_only else predictors
        self._results = BrickResults(store, decomposition)

    @property
    def offers(self) -> tuple[Offer, ...]:
        """The ways in which any of its bricks was measured."""
        return self._results.offers

    def on(
        self, system: str, runtime: str | None, counts: Callable[[str], bool] | None = None
    ) -> SystemEstimate | None:
        """Return the estimate on a system; None if there are no results.

        Without a runtime it is by the one of the model's framework that covers most, of those that `counts` allows by
        their identities: models of several formats share bricks. By default, those that compute in the usual precision
        with any of their kernels count. A model without measured bricks may still have been timed end to end.
        """
        counts = counts or (of_usual_variant if runtime is None else any_runtime)
        offers = [it for it in self.offers if counts(it.way.runtime)]
        if runtime is None:
            offers = offers_for(offers, self.decomposition.graph.traits, by_id(self._store.runtimes()))
        offer = best_offer(offers, system, runtime)
        way = self._only_timed(system, runtime, counts) if offer is None else offer.way
        return None if way is None else self.by(way)

    def by_runtime(self, system: str, runtime: str) -> Iterator[SystemEstimate]:
        """Yield the estimate from each way in which a runtime has measured the model on a system."""
        ways = [offer.way for offer in self.offers if (offer.way.system, offer.way.runtime) == (system, runtime)]
        timed = self._only_timed(system, runtime, any_runtime)
        if timed is not None and timed not in ways:
            ways.append(timed)
        yield from map(self.by, ways)

    def everywhere(self) -> Iterator[SystemEstimate]:
        """Yield an estimate for each system, by the runtime that covers most there."""
        for system in sorted({offer.way.system for offer in self.offers}):
            found = self.on(system, None)
            if found is not None:
                yield found

    def by(self, way: Way) -> SystemEstimate:
        """Return the estimate from the measurements of one way."""
        knowledge = self._with_predictor(self._results.knowledge(way), way)
        composed = estimate(self.decomposition, knowledge, self._options)
        runtime = by_id(self._store.runtimes()).get(way.runtime)
        found = SystemEstimate(
            way,
            composed,
            variant=self._variant(way),
            cores=self._cores(way),
            usual_reference_ms=host_speed(self._store, way.system, way.runtime, way.protocol).usual_ms or 0.0,
            runtime_name="" if runtime is None else runtime.name,
        )
        return beside(found, self.timed(way))

    def timing(self, way: Way) -> Timing | None:
        """Return the latency of the whole model in one way, over the runs of half a day.

        None if it was not timed, or if its samples can no longer be read.
        """
        found = all_end_to_end(self._store, self._keys, self.decomposition.graph.name, way)
        runs = newest_together([it for it in found if it.trimmed_mean_ms > 0])
        # The store reports damaged results.
        with suppress(DamagedResultError):
            samples_ms = [sample for it in runs for sample in self.steady_samples_ms(it)]
            latencies, busy = [whole_latency(it) for it in runs], any(it.shared > 0 for it in runs)
            return timing_by(latencies, samples_ms, busy=busy) if runs else None
        return None

    def steady_samples_ms(self, timed: Summary) -> tuple[float, ...]:
        """Return the samples of a result behind its warm-up, of which its statistics are."""
        return self._store.samples_ms(timed)[-timed.samples :]

    def timed(self, way: Way) -> Summary | None:
        """Return the newest result of the model that was timed end to end in one way; None if it was not."""
        return end_to_end(self._store, self._keys, self.decomposition.graph.name, way)

    @cached_property
    def _keys(self) -> Mapping[Level, str]:
        return end_to_end_keys(self.decomposition.graph)

    def _only_timed(self, system: str, runtime: str | None, counts: Callable[[str], bool]) -> Way | None:
        """Return the way in which the whole model was timed last on a system."""
        graph = self.decomposition.graph
        asked = equal(of="model", good=True, system=system)
        asked &= equal(runtime=runtime) if runtime is not None else noop()
        keys = self._keys.values()
        timed = [
            it for key in keys for it in self._store.select(asked & equal(model=key), order=LEAST_FIRST).summaries()
        ]
        newest = max((it for it in timed if counts(it.runtime)), key=attrgetter("precedence"), default=None)
        return None if newest is None else Way(system, newest.runtime, graph.level, newest.protocol)

    def empty(
        self, system: str, runtime: str, counts: Callable[[str], bool] | None = None, precision: Precision | None = None
    ) -> SystemEstimate:
        """Return the estimate of a model without results there: of predictions, or of nothing.

        Without a precision it is in that of the runtime.
        """
        counts = counts or (any_runtime if runtime else of_usual_variant)
        graph = self.decomposition.graph
        way = self._way_of_others(system, runtime, counts) or Way(system, runtime, graph.level, "")
        composed = estimate(self.decomposition, self._with_predictor(NOTHING_KNOWN, way), self._options)
        return SystemEstimate(way, composed, variant=self._variant(way, precision), cores=self._cores(way))

    def _with_predictor(self, knowledge: Knowledge, way: Way) -> Knowledge:
        if self._predictors is None:
            return knowledge
        return replace(knowledge, predictor=partial(self._predictors.of, way, self.decomposition.graph.traits))

    def _way_of_others(self, system: str, runtime: str, counts: Callable[[str], bool]) -> Way | None:
        """Return the way in which most bricks of other models were measured on a system, by this runtime or by any."""
        if self._predictors is None:
            return None
        level, traits = self.decomposition.graph.level, self.decomposition.graph.traits
        asked = equal(of="brick", good=True, system=system, level=level.value)
        asked &= equal(runtime=runtime) if runtime else noop()
        ways = [it for it in combinations(self._store.select(asked, order=())) if counts(it.runtime)]
        offers = [Offer(Way(it.system, it.runtime, level, it.protocol), it.pairs, 0, 0) for it in ways]
        offer = best_offer(offers_for(offers, traits, by_id(self._store.runtimes())), system, runtime or None)
        return None if offer is None else offer.way

    def _cores(self, way: Way) -> int | None:
        system = by_id(self._store.systems()).get(way.system)
        return None if system is None else system.cores_to_use

    def _variant(self, way: Way, precision: Precision | None = None) -> Variant:
        graph = self.decomposition.graph
        found = stated_variant(way.runtime, graph.batch_size)
        precision = precision or found.precision
        if precision is Precision.F32 and graph.is_quantised:
            precision = Precision.FILE
        return replace(found, precision=precision)
