"""The folder of a fleet run: its request, state, events, and the commands of its user to the driver."""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from dlbricks_tui.fleet.request import EVENTS, FleetError, FleetProgress, FleetRequest, HostEntry, TaskGiven
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.queue import WorkKind, this_process
from dlbricks_tui.jobs.events import Event, EventKinds, EventReader, EventWriter, event_kinds
from dlbricks_tui.jobs.folder import FolderList, JobFolder, JobState, State, Tally, stored_request
from dlbricks_tui.settings.measuring import Question
from dlbricks_tui.store.database import ResultsDatabase

# A state is a file that is made durable.
_SECONDS_BETWEEN_STATES = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCommanded(Event):
    """A command: `pause` what a host measures, let it go on (`resume`), or `cancel` its work."""

    host: str
    what: str


@dataclass(frozen=True, kw_only=True)
class HostAdded(HostEntry, Event):
    """A command: one more host takes part."""

    @property
    def entry(self) -> HostEntry:
        """The host."""
        return HostEntry(**{it.name: getattr(self, it.name) for it in fields(HostEntry)})


COMMANDS: EventKinds = event_kinds(HostCommanded, HostAdded)


class FleetFolder(JobFolder):
    """The files of a fleet run, whose id is the name of their folder."""

    noun = "fleet run"
    listed_by = "dlbricks fleet list"
    watched_by = "dlbricks fleet status"
    waits_while_paused = True
    made_by = "dlbricks fleet run"
    kind = WorkKind.FLEET

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        # Commands about single hosts, one a line; the driver reads those that are new.
        self.commands_file = path / "commands.jsonl"
        # The narration of dask, here and on each host.
        self.logs = path / "logs"

    def command_host(self, host: str, what: str) -> None:
        """Ask the driver to pause a host, to let it go on, or to end its work; what it has measured is kept."""
        self._require_active(what)
        names = self.host_names()
        if host not in names:
            raise FleetError(f"fleet run {self.run} has no host {host[:80]!r}; its hosts are {', '.join(names)}")
        self._command(HostCommanded(host=host, what=what))

    def add_hosts(self, entries: Iterable[HostEntry]) -> None:
        """Ask the driver to take in more hosts. A fleet run that is resumed later takes them in, too."""
        entries = tuple(entries)
        known = self.host_names()
        twice = [entry.name for entry in entries if entry.name in known]
        if twice:
            raise FleetError(f"fleet run {self.run} has a host {twice[0]} already; give the new one another name")
        self._command(*[HostAdded(**asdict(entry)) for entry in entries])

    def added_hosts(self) -> tuple[HostEntry, ...]:
        """Return the hosts that were added so far."""
        commands = EventReader(self.commands_file, COMMANDS).new()
        return tuple(command.entry for command in commands if isinstance(command, HostAdded))

    def entries(self) -> tuple[HostEntry, ...]:
        """Return all hosts that are reached over SSH."""
        return (*read_fleet_request(self.request_file).hosts, *self.added_hosts())

    @property
    def is_complete(self) -> bool:
        """True if every host has measured all that was asked of it; other workers may join a scheduler later."""
        if self.state().state is not State.FINISHED:
            return False
        progress = self.progress()
        names, rows = [entry.name for entry in self.entries()], progress.hosts
        # Otherwise all bricks were asked for, and a time budget may have ended the work before.
        asks_for_order = read_fleet_request(self.request_file).question is Question.WHICH_HOST
        is_settled = asks_for_order and all(it.settled for it in progress.orders.values())
        return bool(names) and all(
            name in rows and rows[name].is_complete and (is_settled or 0 < rows[name].of == rows[name].bricks)
            for name in names
        )

    def host_names(self) -> tuple[str, ...]:
        """Return the names of all hosts that are known so far."""
        return tuple(dict.fromkeys((*(entry.name for entry in self.entries()), *self.progress().hosts)))

    def progress(self) -> FleetProgress:
        """Return the progress of the fleet run, as its events tell."""
        found = FleetProgress()
        for event in EventReader(self.events_file, EVENTS).new():
            found.take(event)
        return found

    def given_tasks(self) -> Mapping[str, str]:
        """Return the last task that each host was given."""
        events = EventReader(self.events_file, EVENTS).new()
        return {event.host: event.task for event in events if isinstance(event, TaskGiven)}

    def _command(self, *commands: Event) -> None:
        with closing(EventWriter(self.commands_file)) as writer:
            for command in commands:
                writer.tell(command)


class FleetFolders(FolderList[FleetFolder]):
    """The folders of all fleet runs of a data folder."""

    folder_type = FleetFolder


class FleetControl:
    """Keeps the stored state of a fleet run up to date, and reads what its user asks for."""

    def __init__(self, folder: FleetFolder, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder = folder
        self._clock = clock
        self.state = folder.state()
        self._began = clock() - self.state.seconds
        self._not_before = 0.0
        # A resumed fleet run goes on, even if it was paused when its last process died.
        folder.unpause()
        # Those about single hosts.
        self.commands = EventReader(folder.commands_file, COMMANDS)
        # Earlier commands were to an earlier process; the hosts that were added then are read apart.
        self.commands.new()
        self._set(state=State.STARTING, process=this_process(), message="")

    @property
    def seconds(self) -> float:
        """Seconds for which the fleet run has been driven, by this process and earlier ones."""
        return self._clock() - self._began

    @property
    def is_paused(self) -> bool:
        """True while the user wants all hosts to pause."""
        return self._folder.pause_file.exists()

    def change(self, state: State, message: str = "") -> JobState:
        """Store another state, and return it."""
        if (state, message) != (self.state.state, self.state.message):
            self._set(state=state, message=message)
        return self.state

    def count(self, bricks: Tally, *, at_once: bool = False) -> None:
        """Store the bricks of all hosts, at once or now and then.

        Those that an earlier process has counted stay until as many are known again: hosts join one after another.
        """
        if bricks.total < self.state.bricks.total or bricks == self.state.bricks:
            return
        if at_once or self._clock() >= self._not_before:
            self._not_before = self._clock() + _SECONDS_BETWEEN_STATES
            self._set(bricks=bricks)

    def _set(self, **changes: Any) -> None:
        self.state = replace(self.state, **changes, seconds=self.seconds)
        self._folder.set_state(self.state)


def create_fleet(request: FleetRequest, data: DataFolder) -> FleetFolder:
    """Create a fleet run that a process can drive."""
    with ResultsDatabase(data.store):
        # A store that cannot be used is refused before there is a fleet run.
        return FleetFolders(data.fleets).create(request.model_names, request=request)


def read_fleet_request(path: Path) -> FleetRequest:
    """Return the request of a fleet run."""
    return stored_request(path, FleetRequest, FleetFolder.noun)
