"""The systems that have results: what they are, what was measured there, and what they cost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dlbricks_tui.answers.doctor import peaks_document, system_document
from dlbricks_tui.estimate.comparison import (
    PRICES_FILE,
    Candidate,
    Prices,
    against_quickest,
    candidates,
    cheapest,
    names_of,
    quickest,
    read_prices,
)
from dlbricks_tui.estimate.system_estimate import find_system
from dlbricks_tui.store.index import OWN
from dlbricks_tui.store.selections import OLDEST_FIRST, by_id, combinations, equal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from dlbricks_tui.answers.estimating import Estimator
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.store.database import ResultsDatabase
    from dlbricks_tui.store.records import Peaks, System
    from dlbricks_tui.store.selections import Combination


@dataclass(frozen=True, slots=True)
class KnownSystem:
    """A system with its price per hour, if known, the ways in which it has measured, and its peaks."""

    system: System
    dollars_per_hour: float | None
    ways: tuple[Combination, ...]
    is_host: bool = False
    peaks: tuple[Peaks, ...] = ()
    # The time of its newest result; empty without any.
    newest: str = ""
    # The number of results by their origin: `own`, `unsigned`, or `signed by` somebody.
    origins: Mapping[str, int] = field(default_factory=dict)

    @property
    def bricks(self) -> int:
        """The number of bricks in contexts that were measured there."""
        return sum(way.pairs for way in self.ways)

    @property
    def models(self) -> int:
        """The number of models that were measured there end to end."""
        return max((way.models for way in self.ways), default=0)

    @property
    def imported(self) -> list[str]:
        """The numbers of results that were imported, each with its origin."""
        return [f"{count:,} {origin}" for origin, count in self.origins.items() if origin != OWN]


def known_systems(store: ResultsDatabase, prices: Prices, host: System | None = None) -> tuple[KnownSystem, ...]:
    """Return the systems of the store; a host comes first, also without results."""
    known = {**({} if host is None else {host.id: host}), **by_id(store.systems())}
    results, peaks = store.select(order=()), store.peaks()
    ways = combinations(results)
    origins = Counter(zip(results.values("system"), results.values("origin"), strict=True))
    newest = {it: found[-1].when for it in known if (found := store.select(equal(system=it), order=OLDEST_FIRST))}
    return tuple(
        KnownSystem(
            system,
            prices.of(names_of(system.id, known)),
            tuple(way for way in ways if way.system == system.id),
            host is not None and system.id == host.id,
            tuple(each for each in peaks if each.system == system.id),
            newest.get(system.id, ""),
            {origin: count for (of, origin), count in sorted(origins.items()) if of == system.id},
        )
        for system in known.values()
    )


def systems_of(store: ResultsDatabase, data: DataFolder) -> tuple[KnownSystem, ...]:
    """Return the systems of the store with the prices of the user."""
    return known_systems(store, read_prices(data.path))


def prices_file(data: DataFolder) -> Path:
    """Return the file of prices that the user may change."""
    return data.path / PRICES_FILE


def ranked_systems(
    estimator: Estimator, sources: Sequence[ModelSource], names: Sequence[str]
) -> dict[str, list[Candidate]]:
    """Return the systems of these names, or all, ranked for each model that has results, by its name."""
    known = by_id(estimator.store.systems())
    wanted = [find_system(name, known) for name in names] or list(known)
    prices = read_prices(estimator.data.path)
    estimates = estimator.on_systems(sources, wanted)
    return {name: list(found) for name, held in estimates.items() if (found := candidates(held, known, prices))}


def known_system_document(known: KnownSystem) -> dict[str, Any]:
    """Return a system and the numbers of its results as a JSON document."""
    return {
        **system_document(known.system),
        "dollars_per_hour": known.dollars_per_hour,
        "peaks": [peaks_document(it) for it in known.peaks],
        "results": [
            {
                "runtime": it.runtime,
                "level": it.level,
                "protocol": it.protocol,
                "bricks": it.pairs,
                "models": it.models,
            }
            for it in known.ways
        ],
        "origins": known.origins,
    }


def candidate_documents(found: Sequence[Candidate]) -> Iterator[dict[str, Any]]:
    """Yield the systems of one model as JSON documents."""
    best, thrifty = quickest(found), cheapest(found)
    for it, change in zip(found, against_quickest(found), strict=True):
        one, way, composed = it.estimate, it.estimate.way, it.estimate.estimate.composed
        yield {
            "model": one.estimate.model,
            "system": way.system,
            "runtime": way.runtime,
            "level": way.level,
            "granularity": one.estimate.cutting.granularity,
            "latency_ms": it.latency_ms,
            "interval_ms": (composed.interval.low_ms, composed.interval.high_ms) if composed else None,
            "complete": it.complete,
            "predicted_share": one.estimate.predicted_share,
            "measured_ms": one.end_to_end.value_ms if one.end_to_end else None,
            "dollars_per_hour": it.dollars_per_hour,
            "dollars_per_million": it.dollars_per_million,
            "quickest": it is best,
            # Against the quickest; null for that itself, and for a sum of some layers.
            "verdict": None if change is None else change.verdict.value,
            "reason": "" if change is None else change.reason,
            "cheapest": it is thrifty,
        }
