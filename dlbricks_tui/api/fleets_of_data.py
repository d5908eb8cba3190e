"""The fleet runs of a data folder, each a process of its own: started, listed, read, paused, ended and resumed."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dlbricks_tui.api.controlled_jobs import JobNews
from dlbricks_tui.api.fleets import FleetOptions, FleetResult, fleet_request, fleet_result, require_resumable
from dlbricks_tui.api.measuring import MeasureOptions
from dlbricks_tui.fleet.driving.running import start_detached
from dlbricks_tui.fleet.folder import FleetFolder, FleetFolders, create_fleet
from dlbricks_tui.fleet.hosts_file import read_hosts
from dlbricks_tui.fleet.request import EVENTS, FleetHostState, FleetProgress, HostRow
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.events import EventReader
from dlbricks_tui.jobs.folder import JobState, State, StoredJobs
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.settings.fleets import Question


@dataclass(frozen=True, slots=True)
class FleetSettings:
    """The settings of a new fleet run; None is the usual value."""

    question: Question = Question.WHICH_HOST
    probe_seconds: float = 20.0
    runtime: str | None = None
    threads: int | None = None


@dataclass(frozen=True, slots=True)
class FleetView:
    """A fleet run at a moment."""

    state: JobState
    hosts: tuple[HostRow, ...]
    result: FleetResult

    @property
    def failure(self) -> str:
        """Why it has failed; empty if it has not."""
        return self.state.message if self.state.state is State.FAILED else ""


class FleetReader(JobNews):
    """Reads a fleet run again and again."""

    folder: FleetFolder

    def __init__(self, folder: FleetFolder) -> None:
        super().__init__(folder, EventReader(folder.events_file, EVENTS))
        self._progress = FleetProgress()
        self._was_read = False

    def read(self) -> FleetView | None:
        """Return the fleet run if anything has changed since the last call."""
        news = self.new()
        if news is None and self._was_read:
            return None
        for event in news or ():
            self._progress.take(event)
        self._was_read = True
        return FleetView(self.state, tuple(self._progress.hosts.values()), fleet_result(self.state, self._progress))


class Fleets:
    """The fleet runs of a data folder."""

    def __init__(self, data: DataFolder) -> None:
        self._data = data

    def newest(self) -> FleetReader | None:
        states = self.stored().states
        return self.reader(states[-1].run) if states else None

    def reader(self, run: str) -> FleetReader:
        return FleetReader(FleetFolders(self._data.fleets).find(run))

    def stored(self) -> StoredJobs:
        """Return the states of all fleet runs, and those whose state cannot be read."""
        return FleetFolders(self._data.fleets).stored()

    def start(self, sources: Sequence[ModelSource], hosts_file: Path, settings: FleetSettings) -> FleetReader:
        """Start a fleet run in a process of its own."""
        options = FleetOptions(
            hosts=hosts_file,
            question=settings.question,
            probe_seconds=settings.probe_seconds,
            measuring=MeasureOptions(runtime=settings.runtime, threads=settings.threads),
        )
        folder = create_fleet(fleet_request(options, sources, self._data), self._data)
        start_detached(folder, self._data)
        return FleetReader(folder)

    def resume(self, run: str) -> None:
        """Resume a fleet run that ended before it was complete."""
        folder = FleetFolders(self._data.fleets).find(run)
        require_resumable(folder)
        start_detached(folder, self._data)

    def pause_or_resume(self, fleet: FleetReader) -> None:
        """Pause a fleet run, or let one go on that is paused or has ended early."""
        folder = fleet.folder
        if not fleet.state.active:
            self.resume(folder.run)
        else:
            (folder.unpause if folder.pause_file.exists() else folder.pause)()


def add_hosts(fleet: FleetReader, hosts_file: Path) -> None:
    """Let more hosts take part in a fleet run."""
    fleet.folder.add_hosts(read_hosts(hosts_file))


def control_host(fleet: FleetReader, host: HostRow, what: str) -> None:
    """Cancel the work of a host, pause it, or let it go on: `what` is `cancel` or `pause`."""
    is_paused = host.state is FleetHostState.PAUSED
    fleet.folder.command_host(host.name, "resume" if is_paused and what == "pause" else what)
