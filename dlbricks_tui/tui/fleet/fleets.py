"""Starts, controls, lists and reads fleet runs; each is a separate process."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dlbricks_tui.answers.fleets import FleetOptions, FleetResult, fleet_request, fleet_result, require_resumable
from dlbricks_tui.answers.measuring import MeasureOptions
from dlbricks_tui.fleet.driving.running import start_detached
from dlbricks_tui.fleet.folder import FleetFolder, FleetFolders, create_fleet
from dlbricks_tui.fleet.hosts_file import read_hosts
from dlbricks_tui.fleet.request import EVENTS, FleetProgress, HostRow
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.events import EventReader
from dlbricks_tui.jobs.folder import JobState, StoredJobs
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.tui.fleet.panels import FleetSettings
from dlbricks_tui.tui.open_model import ModelSpec


class Fleets:
    """The fleet runs of a data folder."""

    def __init__(self, data: DataFolder) -> None:
        self._data = data

    def newest(self) -> FleetFolder | None:
        states = self.stored().states
        return self.folder(states[-1].run) if states else None

    def folder(self, run: str) -> FleetFolder:
        return FleetFolders(self._data.fleets).find(run)

    def stored(self) -> StoredJobs:
        """Return the states of all fleet runs, and those whose state cannot be read."""
        return FleetFolders(self._data.fleets).stored()

    def runtimes(self) -> tuple[str, ...]:
        return tuple(each.name for each in Registry(self._data.path).all())

    def start(self, sources: Sequence[ModelSource], hosts_file: Path, settings: FleetSettings) -> FleetFolder:
        """Start a fleet run in a process of its own."""
        options = FleetOptions(
            hosts=hosts_file,
            question=settings.question,
            probe_seconds=settings.probe_seconds,
            measuring=MeasureOptions(runtime=settings.runtime, threads=settings.threads),
        )
        request = fleet_request(options, sources, self._data)
        folder = create_fleet(request, self._data)
        start_detached(folder, self._data)
        return folder

    def resume(self, run: str) -> None:
        """Resume a fleet run that ended before it was complete."""
        folder = self.folder(run)
        require_resumable(folder)
        start_detached(folder, self._data)

    def add(self, run: str, hosts_file: Path) -> None:
        """Let more hosts take part in a fleet run."""
        self.folder(run).add_hosts(read_hosts(hosts_file))


def sources_of(marked: Sequence[ModelSource], spec: ModelSpec | None) -> tuple[ModelSource, ...]:
    """Return the models of a new fleet run: the marked ones, or else the open one."""
    return tuple(marked) or ((spec.source,) if spec is not None else ())


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
