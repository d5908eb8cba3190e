"""Work of the systems screen that takes time; it runs it in a thread."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.estimate.comparison import candidates, names_of, read_prices
from dlbricks_tui.estimate.estimate import Options
from dlbricks_tui.estimate.inquiry import Inquiry
from dlbricks_tui.estimate.lookup import levels_measured
from dlbricks_tui.estimate.predictors import Predictors
from dlbricks_tui.estimate.selection import preferred_level
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.noise import findings
from dlbricks_tui.store.filters import equal
from dlbricks_tui.store.selections import OLDEST_FIRST, by_id, combinations

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dlbricks_tui.estimate.comparison import Candidate
    from dlbricks_tui.host.noise import Finding
    from dlbricks_tui.models.graph import Level
    from dlbricks_tui.store.records import Peaks, Runtime, System
    from dlbricks_tui.store.selections import Combination
    from dlbricks_tui.tui.open_model import ModelSpec
    from dlbricks_tui.tui.session import Session


@dataclass(frozen=True, slots=True)
class KnownSystem:
    """A system with its price per hour, if known, the ways in which it has measured, and its peaks."""

    system: System
    is_host: bool
    dollars_per_hour: float | None
    ways: tuple[Combination, ...]
    peaks: tuple[Peaks, ...] = ()
    # The time of its newest result; empty without any.
    newest: str = ""

    @property
    def bricks(self) -> int:
        """The number of bricks in contexts that were measured there."""
        return sum(way.pairs for way in self.ways)

    @property
    def models(self) -> int:
        """The number of models that were measured there end to end."""
        return max((way.models for way in self.ways), default=0)


class Systems(NamedTuple):
    """This host and the systems of the store, and the runtimes by id."""

    known: tuple[KnownSystem, ...]
    runtimes: Mapping[str, Runtime]


def list_systems(session: Session) -> Systems:
    """Return this host and the systems of the store."""
    host, prices = fingerprint(), read_prices(session.data.path)
    with session.store.held() as store:
        store.refresh()
        known = {host.id: host, **by_id(store.systems())}
        ways, runtimes = combinations(store.select(order=())), by_id(store.runtimes())
        peaks = store.peaks()
        newest = {it: found[-1].when for it in known if (found := store.select(equal(system=it), order=OLDEST_FIRST))}
    listed = (
        KnownSystem(
            system,
            system.id == host.id,
            prices.of(names_of(system.id, known)),
            tuple(way for way in ways if way.system == system.id),
            tuple(each for each in peaks if each.system == system.id),
            newest.get(system.id, ""),
        )
        for system in known.values()
    )
    return Systems(tuple(listed), runtimes)


def examine() -> tuple[Finding, ...]:
    """Return the sources of noise on this host."""
    return tuple(findings())


def rank(session: Session, spec: ModelSpec, workers: int) -> tuple[Candidate, ...]:
    """Estimate a model on every system, at the level that was measured there."""
    prices = read_prices(session.data.path)
    with session.store.held() as store:
        store.refresh()
        known = by_id(store.systems())
        levels = {system: preferred_level(levels_measured(store, system, None)) for system in known}
    inquiries = {level: _inquiry(session, spec, level, workers) for level in set(levels.values())}
    found: list[SystemEstimate] = []
    for level, inquiry in inquiries.items():
        if inquiry is not None:
            with session.store.held():
                found += inquiry.with_predicted({it: inquiry.on(it, None) for it in known if levels[it] is level})
    return candidates(found, known, prices)


def _inquiry(session: Session, spec: ModelSpec, level: Level, workers: int) -> Inquiry | None:
    decomposition = session.reader.decompose_cached(replace(spec, level=level))
    if decomposition is None:
        return None
    named = replace(decomposition, graph=replace(decomposition.graph, name=spec.source.name))
    with session.store.held() as store:
        return Inquiry(store, named, Options(workers=workers), Predictors(store, session.data.cache))
