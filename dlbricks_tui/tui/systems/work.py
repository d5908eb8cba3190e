"""Work of the systems screen that takes time: worker threads do it and post what they have found."""

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
    from dlbricks_tui.tui.open_model import ModelSpec
    from dlbricks_tui.tui.session import Session


@dataclass(frozen=True, slots=True)
class KnownSystem:
    """A system with its price per hour, if known, and the ways in which it has measured."""

    system: System
    is_host: bool
    dollars_per_hour: float | None
    ways: tuple[Combination, ...]

    @property
    def bricks(self) -> int:
        """The number of bricks in contexts that were measured there."""
        return sum(way.pairs for way in self.ways)

    @property
    def models(self) -> int:
        """The number of models that were measured there end to end."""
        return max((way.models for way in self.ways), default=0)


class SystemsListed(Message):
    """The systems of the store and this host, and the runtimes by id."""

    def __init__(self, known: tuple[KnownSystem, ...], by_id: dict[str, Runtime]) -> None:
        super().__init__()
        self.known = known
        self.by_id = by_id


class HostExamined(Message):
    """The sources of noise on this host."""

    def __init__(self, found: tuple[Finding, ...]) -> None:
        super().__init__()
        self.found = found


class MachinesRanked(Message):
    """Latency and cost of a model on each system."""

    def __init__(self, spec: ModelSpec, found: tuple[Candidate, ...]) -> None:
        super().__init__()
        self.spec = spec
        self.found = found


class SystemsWork:
    """Reads the store and examines the host, and posts the outcome as messages to one screen."""

    def __init__(self, session: Session, post: Callable[[Message], object]) -> None:
        self._session = session
        self._post = post

    def look(self, spec: ModelSpec | None, workers: int) -> None:
        """Do all steps one after another: running them in parallel would disturb the examination of this host."""
        self.list_systems()
        if spec is not None:
            self.rank(spec, workers)
        self.examine()

    def list_systems(self) -> None:
        """List this host and the systems of the store."""
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
        """Look for sources of noise on this host."""
        self._post(HostExamined(tuple(findings())))

    def rank(self, spec: ModelSpec, workers: int) -> None:
        """Estimate a model on every system at the level that was measured there."""
        prices = read_prices(self._session.data.path)
        with self._session.store.held() as store:
            store.refresh()
            known = systems(store.generation)
            levels = {system: preferred_level(levels_measured(store.generation, system, None)) for system in known}
        inquiries = {level: self._inquiry(spec, level, workers) for level in set(levels.values())}
        found = []
        for system, level in levels.items():
            inquiry = inquiries[level]
            if inquiry is not None:
                with self._session.store.held():
                    found.append(inquiry.on(system, None))
        held = [estimate for estimate in found if estimate is not None]
        self._post(MachinesRanked(spec, candidates(held, known, prices)))

    def _inquiry(self, spec: ModelSpec, level: Level, workers: int) -> Inquiry | None:
        decomposition = self._session.reader.decompose_cached(replace(spec, level=level))
        if decomposition is None:
            return None
        named = replace(decomposition, graph=replace(decomposition.graph, name=spec.source.name))
        with self._session.store.held() as store:
            return Inquiry(store.generation, named, Options(workers=workers))
