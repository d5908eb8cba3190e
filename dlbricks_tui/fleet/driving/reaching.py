"""Reach the hosts of a fleet: through a dask scheduler that exists already, or over SSH."""

from pathlib import Path
from queue import SimpleQueue

from dlbricks_tui.fleet.certificates import Certificates
from dlbricks_tui.fleet.driving.host_calls import HostCalls, HostUnreachable
from dlbricks_tui.fleet.engine.engine import Engine
from dlbricks_tui.fleet.engine.scheduler_address import PLAIN, check_address
from dlbricks_tui.fleet.errors import FleetError
from dlbricks_tui.fleet.folder import FleetFolder
from dlbricks_tui.fleet.hosts import HostEntry
from dlbricks_tui.fleet.request import FleetRequest
from dlbricks_tui.folders import DataFolder


def reach(folder: FleetFolder, request: FleetRequest, hosts: tuple[HostEntry, ...], data: DataFolder) -> HostCalls:
    """Return the means to call the hosts of a fleet run."""
    certificates, log = Certificates(data.certificates), folder.logs / "dask.log"
    if not request.scheduler:
        return _over_ssh(hosts, certificates, folder.logs, log)
    is_plain = check_address(request.scheduler, request.allow_plain).scheme == PLAIN
    return HostCalls(Engine(request.scheduler, None if is_plain else certificates.for_driver(), log), _refuse)


def _over_ssh(hosts: tuple[HostEntry, ...], certificates: Certificates, logs: Path, log: Path) -> HostCalls:
    """Start a scheduler, and begin to reach the hosts."""
    # Loaded here: it loads dask.
    from dlbricks_tui.fleet.ssh.cluster import FleetCluster, LinkChanged, LinkState

    certificates.create()
    unreachable: SimpleQueue[HostUnreachable] = SimpleQueue()

    def tell(changed: LinkChanged) -> None:
        if changed.state in (LinkState.LOST, LinkState.REFUSED):
            is_final = changed.state is LinkState.REFUSED
            unreachable.put(HostUnreachable(changed.host, changed.message, is_final))

    cluster = FleetCluster(hosts, certificates, logs, tell)

    def release() -> None:
        cluster.close()

    engine = Engine(cluster.scheduler_address, certificates.for_driver(), log)
    return HostCalls(engine, lambda entry: cluster.add_hosts([entry]), release, unreachable)


def _refuse(entry: HostEntry) -> None:
    raise FleetError(f"hosts of this fleet run join by themselves: start a worker named {entry.name} for its scheduler")
