"""Control of fleet runs, and of their hosts: what these lack, their certificates, and the work of one of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dlbricks_tui.answers.fleets.requesting import require_extra, require_resumable
from dlbricks_tui.answers.fleets.results import FleetResult, FleetSummary, fleet_result, fleet_summary
from dlbricks_tui.fleet.certificates import Certificates
from dlbricks_tui.fleet.errors import FleetError
from dlbricks_tui.fleet.folder import FleetFolder, FleetFolders, create_fleet, read_fleet_request
from dlbricks_tui.fleet.request import FleetProgress, FleetRequest
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.runtime.registry import Registry

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from dlbricks_tui.fleet.setting_up.judging import Examination
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.jobs.events import Event
    from dlbricks_tui.jobs.folder import JobState


@dataclass(frozen=True, slots=True)
class FleetJob:
    """A fleet run of a data folder, to drive in this process or in one of its own."""

    folder: FleetFolder
    data: DataFolder

    @classmethod
    def create(cls, request: FleetRequest, data: DataFolder) -> FleetJob:
        """Return a new fleet run; refuse it where the store cannot be used."""
        return cls(create_fleet(request, data), data)

    @classmethod
    def find(cls, wanted: str, data: DataFolder) -> FleetJob:
        """Return a fleet run by its id, or the beginning of it; `last` is the newest."""
        return cls(FleetFolders(data.fleets).find(wanted), data)

    def result(self) -> FleetResult:
        """Return the fleet run as it is now."""
        return fleet_result(self.folder.state(), self.folder.progress())

    def new_progress(self) -> FleetProgress:
        """Return the progress before the first event."""
        return FleetProgress()

    def drive(self, take: Callable[[Event], None] | None) -> JobState:
        """Drive it in this process until its end."""
        # Loaded here, as below: other questions reach no hosts.
        from dlbricks_tui.fleet.driving.running import FleetPlace, execute_fleet

        return execute_fleet(self.folder, FleetPlace(self.data), take)

    def drive_apart(self) -> None:
        """Drive it in a process of its own."""
        from dlbricks_tui.fleet.driving.running import start_detached

        start_detached(self.folder, self.data)

    def resume(self) -> bool:
        """Let a paused fleet run go on; return True if it has ended early, and is to be driven again."""
        state = self.folder.state()
        if not state.active:
            require_resumable(self.folder)
            return True
        if state.state is State.PAUSED or self.folder.pause_file.exists():
            self.folder.unpause()
            return False
        run = self.folder.run
        raise FleetError(
            f"fleet run {run} is {state.state.value} already; `dlbricks fleet status {run} --follow` shows it"
        )

    def add_hosts(self, file: Path) -> Sequence[str]:
        """Let the hosts of another hosts file take part, and return their names."""
        from dlbricks_tui.fleet.hosts_file import read_hosts

        if scheduler := read_fleet_request(self.folder.request_file).scheduler:
            raise FleetError(
                f"the hosts of fleet run {self.folder.run} join by themselves: start `dlbricks fleet worker "
                f"{scheduler} --name NAME` on the new one"
            )
        hosts = read_hosts(file)
        self.folder.add_hosts(hosts)
        return [host.name for host in hosts]


def fleet_summaries(data: DataFolder) -> tuple[list[FleetSummary], list[str]]:
    """Return all fleet runs of a data folder, and a line for each that cannot be read."""
    stored = FleetFolders(data.fleets).stored()
    return [fleet_summary(state) for state in stored.states], list(stored.unreadable.values())


def examined_hosts(
    file: Path,
    data: DataFolder,
    runtimes: Sequence[str] = (),
    *,
    install: bool = False,
    wheels: Path | None = None,
    step: Callable[[str], None],
) -> tuple[Examination, ...]:
    """Return what the hosts of a hosts file lack for these runtimes, or all; `install` sets them up before.

    `step` takes a line about each step of it.
    """
    require_extra()
    # Loaded here: nothing else in this module reaches hosts.
    from dlbricks_tui.fleet.engine.ssh import connected
    from dlbricks_tui.fleet.hosts_file import read_hosts
    from dlbricks_tui.fleet.setting_up.doctor import examine_hosts
    from dlbricks_tui.fleet.setting_up.installing import set_up_hosts, wanted

    if wheels is not None and not install:
        raise FleetError("--wheels is for --install")
    hosts, registry = read_hosts(file), Registry(data.path)
    needed = wanted([registry.find(name) for name in runtimes] or list(registry.all()))
    if install:
        return tuple(set_up_hosts(hosts, needed, connected, wheels=wheels, step=lambda host, it: step(f"{host}: {it}")))
    return tuple(examine_hosts(hosts, needed, connected))


def made_certificates(folder: Path | None, data: DataFolder) -> tuple[Certificates, bool]:
    """Make the certificates and private keys of a fleet; return them, and True unless they were there."""
    require_extra()
    found = Certificates(folder or data.certificates)
    is_new = found.create()
    return found, is_new


def work_for_fleet(
    scheduler: str,
    name: str,
    data: DataFolder,
    tell: Callable[[str], None],
    *,
    certificates: Path | None = None,
    allow_plain: bool = False,
) -> None:
    """Measure on this host for the driver of a dask scheduler until the process is told to end."""
    require_extra()
    from dlbricks_tui.fleet.engine.scheduler import PLAIN, check_address
    from dlbricks_tui.fleet.engine.worker import run_worker

    is_plain = check_address(scheduler, allow_plain).scheme == PLAIN
    run_worker(scheduler, name, None if is_plain else certificates or data.certificates, tell, allow_plain=allow_plain)
