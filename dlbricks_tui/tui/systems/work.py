"""Work of the systems screen that takes time; it runs it in a thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.estimate.comparison import candidates, names_of, read_prices
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.noise import findings
from dlbricks_tui.store.filters import equal
from dlbricks_tui.store.selections import OLDEST_FIRST, by_id, combinations

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dlbricks_tui.answers.scope import EstimateOptions
    from dlbricks_tui.estimate.comparison import Candidate
    from dlbricks_tui.host.noise import Finding
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


def rank(session: Session, spec: ModelSpec, options: EstimateOptions) -> tuple[Candidate, ...]:
    """Return the answers of a model on every system, the fastest first."""
    from dlbricks_tui.answers.estimating import Remarks, open_estimator

    prices, silent = read_prices(session.data.path), Remarks(lambda _: None, str, lambda *_: None)
    # A store of its own: reading models takes long, and other panels estimate meanwhile.
    with open_estimator(options, session.data, silent) as estimator:
        known = by_id(estimator.store.systems())
        found = estimator.on_systems([spec.source], list(known))
    return candidates(found[spec.source.name], known, prices)
