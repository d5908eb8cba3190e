"""A fleet run after all of its events so far, as the fleet screen shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dlbricks_tui.answers.fleets.results import fleet_result
from dlbricks_tui.fleet.request import EVENTS, FleetProgress
from dlbricks_tui.jobs.events import EventReader

if TYPE_CHECKING:
    from dlbricks_tui.answers.fleets.results import FleetResult
    from dlbricks_tui.fleet.folder import FleetFolder
    from dlbricks_tui.fleet.request import HostRow
    from dlbricks_tui.jobs.folder import JobState


@dataclass(frozen=True, slots=True)
class FleetView:
    """A fleet run at a moment."""

    state: JobState
    hosts: tuple[HostRow, ...]
    result: FleetResult


class FleetReader:
    """Reads a fleet run again and again; cheap while nothing happens."""

    def __init__(self, folder: FleetFolder) -> None:
        self.folder = folder
        self._events = EventReader(folder.events_file, EVENTS)
        self._progress = FleetProgress()
        self._last: FleetView | None = None

    def read(self) -> FleetView | None:
        """Return the fleet run if anything has changed since the last call."""
        state, news = self.folder.state(), self._events.new()
        if self._last is not None and not news and state == self._last.state:
            return None
        for event in news:
            self._progress.take(event)
        hosts = tuple(self._progress.hosts.values())
        self._last = FleetView(state, hosts, fleet_result(state, self._progress))
        return self._last
