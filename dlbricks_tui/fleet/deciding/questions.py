"""The question of a fleet run: the bricks that its answer still needs, and the order of the hosts for each model."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from dlbricks_tui.fleet.deciding.choosing import Work, plan_for, seconds_inside
from dlbricks_tui.fleet.deciding.estimates import Asker, FleetEstimates
from dlbricks_tui.fleet.deciding.orders import Comparison, HostLatency
from dlbricks_tui.fleet.driving.host_work import HostWork
from dlbricks_tui.fleet.driving.pools import BrickPool
from dlbricks_tui.fleet.events import HostEstimate, HostState, OrderFound
from dlbricks_tui.fleet.request import Question
from dlbricks_tui.measure.events import Event
from dlbricks_tui.measure.jobs import Job
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.time_left import expected_seconds

# Hosts in these states have no place in an order.
_OUT = frozenset({HostState.REFUSED, HostState.DISTRUSTED, HostState.FAILED, HostState.CANCELLED})
# A model and its runtime at home, by their names.
_Key: TypeAlias = tuple[str, str]


class Answering:
    """Follows the order of the hosts for each model, as estimates change."""

    def __init__(
        self,
        question: Question,
        estimates: FleetEstimates,
        askers: Callable[[BrickPool], Sequence[Asker]],
        hosts: Callable[[], Iterable[HostWork]],
        tell: Callable[[Event], None],
    ) -> None:
        self._question = question
        self._estimates = estimates
        self._askers = askers
        self._hosts = hosts
        self._tell = tell
        self._comparisons: dict[_Key, Comparison] = {}
        self._orders: dict[_Key, OrderFound] = {}
        self._seen: tuple[tuple[str, HostState], ...] = ()
        # The works that were planned for a pool, and not given to a host yet.
        self._plans: dict[BrickPool, list[Work]] = {}

    def wanted(self, pool: BrickPool) -> Iterable[Job]:
        """Return the free bricks of a pool that the answer needs, the most informative first."""
        if self._question is Question.EVERYTHING:
            return pool.free.values()
        runtime = pool.part.request.runtime.identity
        settled = {model for (model, of), found in self._orders.items() if of == runtime and found.settled}
        open_jobs = [job for job in pool.free.values() if any(use.model not in settled for use in job.uses)]
        planned = self._planned(pool, open_jobs)
        # Before the first estimates, the bricks that say most about their models are as good as any.
        return open_jobs if planned is None else planned

    @property
    def is_answered(self) -> bool:
        """True if the order of the hosts is settled for every model."""
        asked = self._question is Question.WHICH_HOST and bool(self._orders)
        return asked and self._seen == self._states() and all(found.settled for found in self._orders.values())

    def tell(self, *, at_once: bool) -> bool:
        """Tell estimates and orders that have changed, and return True if any order has."""
        for estimate in self._estimates.changes(self._askers, at_once=at_once):
            self._tell(estimate)
        orders = tuple(self._new_orders())
        for order in orders:
            self._tell(order)
        return bool(orders)

    def _new_orders(self) -> Iterator[OrderFound]:
        states = self._states()
        changed = self._estimates.take_changed()
        if states != self._seen:
            # A host that joins or leaves changes all orders.
            self._seen = states
            changed = set(self._estimates.latest)
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
            models = [] if host is None else self._estimates.on_host(pool, host)
            if len(models) < len(pool.part.models):
                return None
            runtime = pool.part.request.runtime.identity
            comparisons = {model: found for (model, of), found in self._comparisons.items() if of == runtime}
            plan = list(plan_for(models, comparisons, _works(pool, jobs)))
        self._plans[pool] = plan
        return [job for work in plan for brick in work.bricks for job in by_brick.get(brick, ())]

    def _states(self) -> tuple[tuple[str, HostState], ...]:
        """Return the hosts without a place in an order, and those without an estimate."""
        return tuple((it.name, it.state) for it in self._hosts() if it.state in _OUT or it.system is None)

    def _equal(self) -> Iterable[tuple[str, list[str]]]:
        """Return the hosts of each system by name; a host that has not reported stands for itself."""
        found: dict[str, list[str]] = {}
        for host in self._hosts():
            if host.state not in _OUT:
                found.setdefault(host.name if host.system is None else host.system.id, []).append(host.name)
        return found.items()

    def _order(self, model: str, runtime: str) -> OrderFound:
        known = self._estimates.latest[model, runtime]
        # Hosts of one system have one estimate.
        names_of = {names[0]: names for _, names in self._equal()}
        comparison = Comparison([_latency(known.get(name), name) for name in names_of])
        self._comparisons[model, runtime] = comparison
        order = comparison.order
        ranks = tuple([tuple([name for host in rank for name in names_of[host]]) for rank in order.ranks])
        return OrderFound(model=model, runtime=runtime, order=ranks, settled=order.settled)


def _latency(found: HostEstimate | None, host: str) -> HostLatency:
    if found is None or found.sequential_ms is None or found.low_ms is None or found.high_ms is None:
        return HostLatency(host, None)
    return HostLatency(host, found.sequential_ms, found.low_ms, found.high_ms)


def _works(pool: BrickPool, jobs: Iterable[Job]) -> list[Work]:
    """Return what can be measured at once: the bricks of a network, or each brick alone."""
    part = pool.part
    if part.request.method is not Method.INSIDE:
        return [Work("", (job.key.brick,), expected_seconds(Method.ALONE, part.request.rule, [job])) for job in jobs]
    open_keys = {job.key for job in jobs}
    works = []
    for sha256, parcel in {parcel.sha256: parcel for parcel in part.parcels.values()}.items():
        keys = part.keys_in(parcel)
        bricks = tuple([key.brick for key in keys if key in open_keys])
        if bricks:
            latency_ms = sum(part.jobs[key].expected_ms for key in keys)
            works.append(Work(sha256, bricks, seconds_inside(latency_ms)))
    return works
