"""Which machine for this model, and which model for this machine (paper, section 6)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dlbricks_tui.estimate.prices import Prices, cost_of
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.store.records import System


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model on a system: how long it takes there and what a million inferences cost.

    `complete` is False where the latency leaves layers out: such a one is never called the best.
    """

    estimate: SystemEstimate
    latency_ms: float
    complete: bool
    dollars_per_hour: float | None
    dollars_per_million: float | None


def candidates(
    estimates: Iterable[SystemEstimate], systems: Mapping[str, System], prices: Prices
) -> tuple[Candidate, ...]:
    """All that have a latency, the quickest first, incomplete ones behind complete ones."""
    found = []
    for one in estimates:
        latency_ms = one.sequential_ms
        if latency_ms is not None:
            price = prices.of(names_of(one.way.system, systems))
            cost = None if price is None else cost_of(latency_ms, price)
            found.append(Candidate(one, latency_ms, one.estimate.coverage.complete, price, cost))
    return tuple(sorted(found, key=lambda it: (not it.complete, it.latency_ms, it.estimate.way)))


def names_of(system: str, systems: Mapping[str, System]) -> tuple[str, ...]:
    """What prices may call a system, the most particular first."""
    known = systems.get(system)
    return (system,) if known is None else (system, known.name, known.instance_type)


def quickest(found: Iterable[Candidate]) -> Candidate | None:
    """The complete one with the least latency."""
    return min((it for it in found if it.complete), key=lambda it: it.latency_ms, default=None)


def cheapest(found: Iterable[Candidate]) -> Candidate | None:
    """The complete one with the least cost, None where no price is known."""
    priced = ((it.dollars_per_million, it) for it in found if it.complete and it.dollars_per_million is not None)
    return min(priced, key=lambda pair: pair[0], default=(0.0, None))[1]
