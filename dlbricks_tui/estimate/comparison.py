"""The comparison of models and systems by latency and cost (paper, section 6)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dlbricks_tui.estimate.prices import Prices, cost_of
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.store.records import System


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model on a system: its latency there, and the cost of a million inferences.

    `complete` is False if the latency lacks layers: such a candidate is never the best.
    """

    estimate: SystemEstimate
    latency_ms: float
    complete: bool
    dollars_per_hour: float | None
    dollars_per_million: float | None


def candidates(
    estimates: Iterable[SystemEstimate], systems: Mapping[str, System], prices: Prices
) -> tuple[Candidate, ...]:
    """Return all candidates with a latency, the fastest first, and incomplete ones last."""
    found = []
    for one in estimates:
        latency_ms = one.sequential_ms
        if latency_ms is not None:
            price = prices.of(names_of(one.way.system, systems))
            cost = None if price is None else cost_of(latency_ms, price)
            found.append(Candidate(one, latency_ms, one.estimate.coverage.complete, price, cost))
    return tuple(sorted(found, key=lambda it: (not it.complete, it.latency_ms, it.estimate.way)))


def names_of(system: str, systems: Mapping[str, System]) -> tuple[str, ...]:
    """Return the names of a system in a price table, the most specific first."""
    known = systems.get(system)
    return (system,) if known is None else (system, known.name, known.instance_type)


def quickest(found: Iterable[Candidate]) -> Candidate | None:
    """Return the complete candidate with the least latency."""
    return min((it for it in found if it.complete), key=lambda it: it.latency_ms, default=None)


def cheapest(found: Iterable[Candidate]) -> Candidate | None:
    """Return the complete candidate with the least cost; None without prices."""
    priced = ((it.dollars_per_million, it) for it in found if it.complete and it.dollars_per_million is not None)
    return min(priced, key=lambda pair: pair[0], default=(0.0, None))[1]


def remarks_on(found: Sequence[Candidate]) -> list[str]:
    """Return a remark on each candidate: quickest, cheapest, incomplete, or nothing."""
    best, thrifty = quickest(found), cheapest(found)
    return [
        ", ".join(["quickest"] * (it is best) + ["cheapest"] * (it is thrifty) + ["incomplete"] * (not it.complete))
        for it in found
    ]
