"""The answers of a fleet run: estimates of each model on each host, and the order of the hosts."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from dlbricks_tui.estimate.comparison import Prices, cost_of, names_of
from dlbricks_tui.estimate.inquiry import Inquiry
from dlbricks_tui.estimate.predictors import Predictors
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.fleet.events import HostEstimate
from dlbricks_tui.fleet.hosts import HostEntry
from dlbricks_tui.fleet.workload import Part, TravellingModel, Workload
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import System

# The share of time that estimates may take: results wait meanwhile.
_SHARE_OF_TIME = 0.05


@dataclass(frozen=True, slots=True)
class Measuring:
    """A host that measures: its system, and the identity of each part's runtime there."""

    host: str
    system: System
    runtimes: Mapping[int, str]
    entry: HostEntry | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """An estimate of a model of a part on a host."""

    host: str
    part: int
    model: str
    estimate: SystemEstimate


class Answers:
    """Estimates from the local store, made again for hosts with new results, in a small share of the time."""

    def __init__(
        self,
        workload: Workload,
        store: ResultsDatabase,
        cache: Path,
        prices: Prices,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._workload = workload
        self._store = store
        self._cache = cache
        self._prices = prices
        self._clock = clock
        self._stale: dict[str, Measuring] = {}
        self._not_before = 0.0
        # By host, part and model.
        self.found: dict[tuple[str, int, str], Found] = {}

    def changed(self, host: Measuring) -> None:
        """Note that a host has new results."""
        self._stale[host.host] = host

    def forget(self, host: str) -> None:
        """Leave a host out of all answers."""
        self._stale.pop(host, None)
        self.found = {key: it for key, it in self.found.items() if key[0] != host}

    def refresh(self, *, now: bool = False) -> list[HostEstimate]:
        """Return the estimates that have changed; none if they were made a moment ago, unless they are wanted `now`."""
        began = self._clock()
        if not self._stale or (began < self._not_before and not now):
            return []
        stale, self._stale = self._stale, {}
        # New predictors learn from the new results.
        predictors = Predictors(self._store, self._cache)
        told = []
        for host in stale.values():
            for number, part in enumerate(self._workload.parts):
                for model in part.models:
                    found = self._estimate(host, number, model, predictors)
                    self.found[host.host, number, model.model.name] = found
                    told.append(self._told(host, part, found))
        end = self._clock()
        self._not_before = end + (end - began) / _SHARE_OF_TIME
        return told

    def _estimate(self, host: Measuring, number: int, it: TravellingModel, predictors: Predictors) -> Found:
        inquiry = Inquiry(self._store, it.model.decomposition, None, predictors)
        system, runtime = host.system.id, host.runtimes[number]
        estimate = inquiry.on(system, runtime) or inquiry.empty(system, runtime)
        return Found(host.host, number, it.model.name, estimate)

    def _told(self, host: Measuring, part: Part, found: Found) -> HostEstimate:
        estimate, coverage = found.estimate, found.estimate.estimate.coverage
        composed = estimate.estimate.composed
        known = composed is not None and estimate.sequential_ms is not None
        price = self._price(host)
        whole = estimate.sequential_ms if known and not estimate.estimate.is_partial else None
        return HostEstimate(
            host=host.host,
            model=found.model,
            runtime=label_of_part(part.request.runtime),
            sequential_ms=estimate.sequential_ms,
            low_ms=composed.interval.low_ms if composed is not None else None,
            high_ms=composed.interval.high_ms if composed is not None else None,
            measured_layers=coverage.measured,
            predicted_layers=coverage.predicted,
            missing_layers=coverage.missing,
            per_second=estimate.per_second,
            dollars_per_million=None if price is None or whole is None else cost_of(whole, price),
        )

    def _price(self, host: Measuring) -> float | None:
        if host.entry is not None and host.entry.price_per_hour is not None:
            return host.entry.price_per_hour
        return self._prices.of((host.host, *names_of(host.system.id, {host.system.id: host.system})))


def label_of_part(runtime: Runtime) -> str:
    """Return the name of a part's runtime in events: its identity without the version of Python, which hosts share not."""
    first, _, *rest = runtime.identity.split(" ")
    return " ".join([first, *rest])


def by_model(found: Mapping[tuple[str, int, str], Found]) -> Iterator[tuple[tuple[int, str], list[Found]]]:
    """Yield the estimates of each model of each part."""
    groups: dict[tuple[int, str], list[Found]] = {}
    for it in found.values():
        groups.setdefault((it.part, it.model), []).append(it)
    yield from groups.items()
