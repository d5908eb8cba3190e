"""The estimates of models on the hosts of a fleet, while results arrive."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from dlbricks_tui.estimate.comparison import Prices, cost_of, names_of
from dlbricks_tui.estimate.inquiry import Inquiry
from dlbricks_tui.estimate.predictors import Predictors
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.fleet.deciding.choosing import ModelOnHost, model_on_host
from dlbricks_tui.fleet.driving.pools import BrickPool
from dlbricks_tui.fleet.events import HostEstimate
from dlbricks_tui.measure.jobs import CutModel, JobKey
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import System

# The share of time that composing estimates may take.
_SHARE_OF_TIME = 0.02
_MS_PER_SECOND = 1000


class Asker(NamedTuple):
    """A host whose results a pool holds, with its system, and its own price if it has one."""

    host: str
    system: System
    price_per_hour: float | None


class FleetEstimates:
    """Composes the estimates of models whose bricks have new results, those of one pool at a time."""

    def __init__(
        self,
        store: ResultsDatabase,
        predictors: Predictors,
        prices: Prices,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._predictors = predictors
        self._prices = prices
        self._clock = clock
        self._not_before = 0.0
        # The models whose estimates have changed, by name; the pool that changed first comes first.
        self._changed: dict[BrickPool, dict[str, CutModel]] = {}
        # The newest estimates by model and runtime, and then by host.
        self.latest: defaultdict[tuple[str, str], dict[str, HostEstimate]] = defaultdict(dict)
        self._new: set[tuple[str, str]] = set()
        # The same with all their parts, by pool and model.
        self._found: dict[tuple[BrickPool, str], SystemEstimate] = {}

    @property
    def are_stale(self) -> bool:
        """True if results are stored that no estimate includes yet."""
        return bool(self._changed)

    def note(self, pool: BrickPool, keys: Iterable[JobKey]) -> None:
        """Note that bricks of a pool have new results or failures."""
        users = {use.model for key in keys if (job := pool.part.jobs.get(key)) is not None for use in job.uses}
        self._note(pool, (model for model in pool.part.models if model.name in users))

    def note_all(self, pool: BrickPool) -> None:
        """Note that all estimates of a pool are wanted."""
        self._note(pool, pool.part.models)

    def changes(
        self, askers: Callable[[BrickPool], Sequence[Asker]], *, at_once: bool = False
    ) -> Iterator[HostEstimate]:
        """Yield estimates that have changed, for each host of a pool: all at once, or those whose turn it is."""
        while self._changed and (at_once or self._clock() >= self._not_before):
            begin = self._clock()
            pool = next(iter(self._changed))
            for name, model in self._changed.pop(pool).items():
                found = self._found[pool, name] = self._composed(pool, model)
                for asker in askers(pool):
                    told = self._told(pool, name, found, asker)
                    latest = self.latest[told.model, told.runtime]
                    known = latest.get(told.host)
                    if known is None or replace(known, when=told.when) != told:
                        latest[told.host] = told
                        self._new.add((told.model, told.runtime))
                        yield told
            end = self._clock()
            self._not_before = end + (end - begin) / _SHARE_OF_TIME

    def on_host(self, pool: BrickPool, host: str) -> list[ModelOnHost]:
        """Return the latencies of the models of a pool, and the bricks that they still need; none before the first."""
        found = []
        for model in pool.part.models:
            known = self._found.get((pool, model.name))
            if known is not None:
                predicts = any(part.predicted for part in known.estimate.parts)
                traits = model.decomposition.graph.traits
                shared = self._predictors.of(known.way, traits).shared if predicts else 1.0
                found.append(model_on_host(host, model.name, known.estimate, shared))
        return found

    def take_changed(self) -> set[tuple[str, str]]:
        """Return the models and runtimes with new estimates since the last call."""
        new, self._new = self._new, set()
        return new

    def _note(self, pool: BrickPool, models: Iterable[CutModel]) -> None:
        found: Mapping[str, CutModel] = {model.name: model for model in models}
        # Without any result of its system, an estimate says little, and its interval often fails.
        if found and pool.measured:
            self._changed.setdefault(pool, {}).update(found)

    def _composed(self, pool: BrickPool, model: CutModel) -> SystemEstimate:
        inquiry = Inquiry(self._store, model.decomposition, None, self._predictors)
        system, runtime = pool.conditions.system, pool.conditions.runtime
        return inquiry.on(system, runtime) or inquiry.empty(system, runtime)

    def _told(self, pool: BrickPool, model: str, found: SystemEstimate, asker: Asker) -> HostEstimate:
        # A sum that leaves layers out tells nothing about the model.
        composed = None if found.estimate.is_partial else found.estimate.composed
        coverage, per_second = found.estimate.coverage, found.per_second
        price = asker.price_per_hour
        if price is None:
            price = self._prices.of(names_of(asker.system.id, {asker.system.id: asker.system}))
        return HostEstimate(
            host=asker.host,
            model=model,
            # One name for all hosts, whatever their Python.
            runtime=pool.part.request.runtime.identity,
            sequential_ms=None if composed is None else composed.sequential_ms,
            low_ms=None if composed is None else composed.interval.low_ms,
            high_ms=None if composed is None else composed.interval.high_ms,
            measured_layers=coverage.measured,
            predicted_layers=coverage.predicted,
            missing_layers=coverage.missing,
            per_second=per_second,
            dollars_per_million=cost_of(_MS_PER_SECOND / per_second, price)
            if per_second and price is not None
            else None,
        )
