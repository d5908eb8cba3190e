"""What threads do for the screen of systems: each errand asks and posts what it has found."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from textual.message import Message

from dlbricks_tui.estimate.comparison import candidates, names_of
from dlbricks_tui.estimate.estimate import Options
from dlbricks_tui.estimate.inquiry import Inquiry
from dlbricks_tui.estimate.lookup import levels_measured
from dlbricks_tui.estimate.prices import read_prices
from dlbricks_tui.estimate.selection import preferred_level
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.noise import findings
from dlbricks_tui.store.queries import combinations, runtimes, systems

if TYPE_CHECKING:
    from collections.abc import Callable

    from dlbricks_tui.estimate.comparison import Candidate
    from dlbricks_tui.host.noise import Finding
    from dlbricks_tui.models.graph import Level
    from dlbricks_tui.store.queries import Combination
    from dlbricks_tui.store.records import Runtime, System
    from dlbricks_tui.tui.opened import Wish
    from dlbricks_tui.tui.session import Session


@dataclass(frozen=True, slots=True)
class KnownSystem:
    """A system, what an hour of it costs where that is known, and in which ways things were measured there."""

    system: System
    is_host: bool
    dollars_per_hour: float | None
    ways: tuple[Combination, ...]

    @property
    def bricks(self) -> int:
        """How many bricks in their contexts were measured there, in whatever way."""
        return sum(way.pairs for way in self.ways)

    @property
    def models(self) -> int:
        """How many models were measured there end to end."""
        return max((way.models for way in self.ways), default=0)


class SystemsListed(Message):
    """The systems of the store, this host among them, and the runtimes by id."""

    def __init__(self, known: tuple[KnownSystem, ...], by_id: dict[str, Runtime]) -> None:
        super().__init__()
        self.known = known
        self.by_id = by_id


class HostExamined(Message):
    """What disturbs measurements on this host."""

    def __init__(self, found: tuple[Finding, ...]) -> None:
        super().__init__()
        self.found = found


class MachinesRanked(Message):
    """How long a model takes on each system, and what that costs."""

    def __init__(self, wish: Wish, found: tuple[Candidate, ...]) -> None:
        super().__init__()
        self.wish = wish
        self.found = found


class SystemsErrands:
    """For one screen, which hears of everything by messages."""

    def __init__(self, session: Session, post: Callable[[Message], object]) -> None:
        self._session = session
        self._post = post

    def look(self, wish: Wish | None, workers: int) -> None:
        """Does all of it, one after another: what disturbs this host is not to be the rest of it."""
        self.list_systems()
        if wish is not None:
            self.rank(wish, workers)
        self.examine()

    def list_systems(self) -> None:
        """Finds the systems of the store; this host stands first, whether anything was measured on it or not."""
        host, prices = fingerprint(), read_prices(self._session.data.path)
        with self._session.store.held() as store:
            store.refresh()
            known = {host.id: host, **systems(store.generation)}
            ways, by_id = combinations(store.generation), runtimes(store.generation)
        listed = (
            KnownSystem(
                system,
                system.id == host.id,
                prices.of(names_of(system.id, known)),
                tuple(way for way in ways if way.system == system.id),
            )
            for system in known.values()
        )
        self._post(SystemsListed(tuple(listed), by_id))

    def examine(self) -> None:
        """Looks for what disturbs measurements on this host."""
        self._post(HostExamined(tuple(findings())))

    def rank(self, wish: Wish, workers: int) -> None:
        """Puts a model on every system, at the level that was measured there."""
        prices = read_prices(self._session.data.path)
        with self._session.store.held() as store:
            store.refresh()
            known = systems(store.generation)
            levels = {system: preferred_level(levels_measured(store.generation, system, None)) for system in known}
        inquiries = {level: self._inquiry(wish, level, workers) for level in set(levels.values())}
        found = []
        for system, level in levels.items():
            inquiry = inquiries[level]
            if inquiry is not None:
                with self._session.store.held():
                    found.append(inquiry.on(system, None))
        held = [estimate for estimate in found if estimate is not None]
        self._post(MachinesRanked(wish, candidates(held, known, prices)))

    def _inquiry(self, wish: Wish, level: Level, workers: int) -> Inquiry | None:
        decomposition = self._session.opener.glance(replace(wish, level=level))
        if decomposition is None:
            return None
        named = replace(decomposition, graph=replace(decomposition.graph, name=wish.source.name))
        with self._session.store.held() as store:
            return Inquiry(store.generation, named, Options(workers=workers))
