"""The answer of a fleet run: estimates of models, the order of the hosts, and the bricks that it still needs."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from dlbricks_tui.estimate.comparison import Prices, cost_of, price_of
from dlbricks_tui.estimate.inquiry import Inquiry, Predictors
from dlbricks_tui.estimate.knowledge import Latency
from dlbricks_tui.estimate.orders import HostComparison, ModelOnHost, ParcelWork, model_on_host, plan_for
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.fleet.pools import BrickPool, HostWork, SharedPools
from dlbricks_tui.fleet.request import FleetHostState, HostEstimate, OrderFound
from dlbricks_tui.fleet.workload import FleetPart, LanguagePart
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.measure.jobs import CutModel, Job, JobKey
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.time_left import expected_seconds, most_seconds_per_carrier
from dlbricks_tui.settings.measuring import Question
from dlbricks_tui.store.database import ResultsDatabase

# The share of time that composing estimates may take.
_SHARE_OF_TIME = 0.02
# Hosts in these states have no place in an order.
_OUT = frozenset({FleetHostState.REFUSED, FleetHostState.DISTRUSTED, FleetHostState.FAILED, FleetHostState.CANCELLED})
# The runs of a carrier until it is finished: at most, and of a slow one. The fewest seconds that loading it takes.
_RUNS_OF_A_CARRIER, _RUNS_OF_A_SLOW_CARRIER, _LOAD_SECONDS = 200, 5, 0.3
_MANY_CARRIERS = 8
# A model and its runtime at home, by their names.
_Key: TypeAlias = tuple[str, str]


@dataclass(eq=False)
class Answering:
    """Composes the estimates of models while results arrive, and follows the order of the hosts for each model.

    `hosts` are those of the fleet run, by name; they may become more.
    """

    question: Question
    store: ResultsDatabase
    predictors: Predictors
    prices: Prices
    hosts: Mapping[str, HostWork]
    pools: SharedPools
    told: Callable[[Event], None]
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._not_before = 0.0
        # The models whose estimates have changed, by name; the pool that changed first comes first.
        self._changed: dict[BrickPool, dict[str, CutModel | LanguagePart]] = {}
        # The newest estimates by model and runtime, and then by host; those since the orders were looked at.
        self._latest: defaultdict[_Key, dict[str, HostEstimate]] = defaultdict(dict)
        self._new: set[_Key] = set()
        # The same with all their parts, by pool and model.
        self._found: dict[tuple[BrickPool, str], SystemEstimate] = {}
        self._comparisons: dict[_Key, HostComparison] = {}
        self._orders: dict[_Key, OrderFound] = {}
        self._seen: tuple[tuple[str, FleetHostState], ...] = ()
        # The works that were planned for a pool, and not given to a host yet.
        self._plans: dict[BrickPool, list[ParcelWork]] = {}

    @property
    def is_stale(self) -> bool:
        """True if results are stored that no estimate includes yet."""
        return bool(self._changed)

    def note(self, pool: BrickPool, keys: Iterable[JobKey] | None = None) -> None:
        """Note that bricks of a pool have new results or failures, or that all of its estimates are wanted."""
        models = _asked_of(pool.part)
        if keys is not None and not isinstance(pool.part, LanguagePart):
            users = {use.model for key in keys if (job := pool.part.jobs.get(key)) is not None for use in job.uses}
            models = {name: model for name, model in models.items() if name in users}
        # Without any result of its system, an estimate says little, and its interval often fails.
        if models and pool.measured:
            self._changed.setdefault(pool, {}).update(models)

    def wanted(self, pool: BrickPool) -> Iterable[Job]:
        """Return the free bricks of a pool that the answer needs, the most informative first."""
        if self.question is Question.EVERYTHING:
            return pool.free.values()
        if isinstance(part := pool.part, LanguagePart):
            order = self._orders.get((part.name, part.request.runtime.identity))
            return () if order is not None and order.settled else pool.free.values()
        runtime = pool.part.request.runtime.identity
        settled = {model for (model, of), found in self._orders.items() if of == runtime and found.settled}
        open_jobs = [job for job in pool.free.values() if any(use.model not in settled for use in job.uses)]
        planned = self._planned(pool, open_jobs)
        # Before the first estimates, the bricks that say most about their models are as good as any.
        return open_jobs if planned is None else planned

    @property
    def is_answered(self) -> bool:
        """True if the order of the hosts is settled for every model."""
        if self.question is not Question.WHICH_HOST or not self._orders or self._seen != self._states():
            return False
        # A model has no order before its first result.
        parts = {pool.part for pool in self.pools.all}
        asked = ((name, part.request.runtime.identity) for part in parts for name in _asked_of(part))
        return all(key in self._orders and self._orders[key].settled for key in asked)

    def tell(self, *, at_once: bool) -> bool:
        """Tell estimates and orders that have changed, and return True if any order has."""
        self._tell_estimates(at_once=at_once)
        orders = tuple(self._new_orders())
        for order in orders:
            self.told(order)
        return bool(orders)

    def _tell_estimates(self, *, at_once: bool) -> None:
        """Tell estimates that have changed, for each host of a pool: all at once, or those whose turn it is."""
        while self._changed and (at_once or self.clock() >= self._not_before):
            begin = self.clock()
            pool = next(iter(self._changed))
            for name, model in self._changed.pop(pool).items():
                for told in self._estimates(pool, name, model):
                    latest = self._latest[told.model, told.runtime]
                    known = latest.get(told.host)
                    if known is None or replace(known, when=told.when) != told:
                        latest[told.host] = told
                        self._new.add((told.model, told.runtime))
                        self.told(told)
            end = self.clock()
            self._not_before = end + (end - begin) / _SHARE_OF_TIME

    def _estimates(self, pool: BrickPool, name: str, model: CutModel | LanguagePart) -> Iterator[HostEstimate]:
        """Yield the estimate of a model on each host of a pool."""
        way = pool.conditions.system, pool.conditions.runtime
        if isinstance(model, LanguagePart):
            for host in self.pools.members[pool]:
                if host.system is not None:
                    found = model.on_host(self.store, host.system, pool.conditions.runtime)
                    yield self._told(pool, name, host, found)
            return
        inquiry = Inquiry(self.store, model.decomposition, None, self.predictors)
        answer = self._found[pool, name] = inquiry.on(*way) or inquiry.empty(*way)
        # A sum that leaves layers out tells nothing about the model.
        latency, layers = answer.estimate.latency, answer.estimate.coverage
        known: dict[str, Any] = {f"{it}_layers": getattr(layers, it) for it in ("measured", "predicted", "missing")}
        if latency is not None:
            known |= {"sequential_ms": latency.value_ms, "low_ms": latency.low_ms, "high_ms": latency.high_ms}
        for host in self.pools.members[pool]:
            yield self._told(pool, name, host, {**known, "per_second": answer.per_second})

    def _told(self, pool: BrickPool, model: str, host: HostWork, found: Mapping[str, Any]) -> HostEstimate:
        """Return the estimate of a model on a host with its price."""
        price, per_second = host.entry.price_per_hour, found.get("per_second")
        if price is None and host.system is not None:
            price = price_of(self.prices, host.system.id, host.system)
        dollars = cost_of(1000 / per_second, price) if per_second and price is not None else None
        # One name of the runtime for all hosts, whatever their Python.
        runtime = pool.part.request.runtime.identity
        return HostEstimate(host=host.name, model=model, runtime=runtime, dollars_per_million=dollars, **found)

    def _new_orders(self) -> Iterator[OrderFound]:
        states = self._states()
        changed, self._new = self._new, set()
        if states != self._seen:
            # A host that joins or leaves changes all orders.
            self._seen = states
            changed = set(self._latest)
        for key in sorted(changed):
            found = self._order(*key)
            known = self._orders.get(key)
            if known is None or replace(known, when=found.when) != found:
                self._orders[key] = found
                yield found

    def _planned(self, pool: BrickPool, jobs: Sequence[Job]) -> list[Job] | None:
        """Return bricks that decide most about open pairs of hosts; None while too little is known for a plan."""
        by_brick: dict[str, list[Job]] = {}
        for job in jobs:
            by_brick.setdefault(job.key.brick, []).append(job)
        plan = [work for work in self._plans.get(pool, ()) if any(brick in by_brick for brick in work.bricks)]
        if not plan:
            host = next((names[0] for system, names in self._equal() if system == pool.conditions.system), None)
            models = [] if host is None else self._on_host(pool, host)
            if len(models) < len(pool.part.models):
                return None
            runtime = pool.part.request.runtime.identity
            comparisons = {model: found for (model, of), found in self._comparisons.items() if of == runtime}
            plan = list(plan_for(models, comparisons, _works(pool, jobs)))
        self._plans[pool] = plan
        return [job for work in plan for brick in work.bricks for job in by_brick.get(brick, ())]

    def _states(self) -> tuple[tuple[str, FleetHostState], ...]:
        """Return the hosts without a place in an order, and those without an estimate."""
        return tuple((it.name, it.state) for it in self.hosts.values() if it.state in _OUT or it.system is None)

    def _equal(self) -> Iterable[tuple[str, list[str]]]:
        """Return the hosts of each system by name; a host that has not reported stands for itself."""
        found: dict[str, list[str]] = {}
        for host in self.hosts.values():
            if host.state not in _OUT:
                found.setdefault(host.name if host.system is None else host.system.id, []).append(host.name)
        return found.items()

    def _order(self, model: str, runtime: str) -> OrderFound:
        known = self._latest[model, runtime]
        # Hosts of one system have one estimate.
        names_of = {names[0]: names for _, names in self._equal()}
        latencies = dict[str, Latency | None].fromkeys(names_of)
        for name, found in known.items():
            if name in names_of and None not in (found.sequential_ms, found.low_ms, found.high_ms):
                latencies[name] = Latency(found.sequential_ms or 0.0, found.low_ms or 0.0, found.high_ms or 0.0)
        comparison = HostComparison(latencies)
        self._comparisons[model, runtime] = comparison
        order = comparison.order
        ranks = tuple([tuple([name for host in rank for name in names_of[host]]) for rank in order.ranks])
        return OrderFound(model=model, runtime=runtime, order=ranks, settled=order.settled)

    def _on_host(self, pool: BrickPool, host: str) -> list[ModelOnHost]:
        """Return the latencies of the models of a pool, and the bricks that they still need; none before the first."""
        found = []
        for model in pool.part.models:
            known = self._found.get((pool, model.name))
            if known is not None:
                predicts = any(part.predicted for part in known.estimate.parts)
                traits = model.decomposition.graph.traits
                shared = self.predictors.of(known.way, traits).shared if predicts else 1.0
                found.append(model_on_host(host, model.name, known.estimate, shared))
        return found


def _asked_of(part: FleetPart) -> dict[str, CutModel | LanguagePart]:
    """Return what estimates of a part are about, by name."""
    return {part.name: part} if isinstance(part, LanguagePart) else {model.name: model for model in part.models}


def seconds_inside(latency_ms: float) -> float:
    """Return the expected time of measuring a parcel by method `inside`, from the latency of all of its layers."""
    run = latency_ms / 1000
    most = most_seconds_per_carrier(_MANY_CARRIERS)
    return _LOAD_SECONDS + max(min(_RUNS_OF_A_CARRIER * run, most), _RUNS_OF_A_SLOW_CARRIER * run)


def _works(pool: BrickPool, jobs: Iterable[Job]) -> list[ParcelWork]:
    """Return what can be measured at once: the bricks of a network, or each brick alone."""
    part = pool.part
    if part.request.method is not Method.INSIDE:
        rule = part.request.rule
        return [ParcelWork((job.key.brick,), expected_seconds(Method.ALONE, rule, [job])) for job in jobs]
    open_keys = {job.key for job in jobs}
    works = []
    for parcel in {parcel.sha256: parcel for parcel in part.parcels.values()}.values():
        keys = part.keys.get(parcel.sha256, ())
        if bricks := tuple([key.brick for key in keys if key in open_keys]):
            works.append(ParcelWork(bricks, seconds_inside(sum(part.jobs[key].expected_ms for key in keys))))
    return works
