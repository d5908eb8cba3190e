"""The systems that have results: what they are, what was measured there, and what they cost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dlbricks_tui.estimate.comparison import Prices, names_of
from dlbricks_tui.store.selections import OLDEST_FIRST, by_id, combinations, equal

if TYPE_CHECKING:
    from collections.abc import Mapping

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
