"""Reach the hosts of a fleet: through a dask scheduler that exists already, or over SSH."""

from dlbricks_tui.fleet.certificates import Certificates
from dlbricks_tui.fleet.engine import Engine
from dlbricks_tui.fleet.errors import FleetError
from dlbricks_tui.fleet.host_calls import HostCalls
from dlbricks_tui.fleet.hosts import HostEntry
from dlbricks_tui.fleet.request import FleetRequest
from dlbricks_tui.fleet.scheduler_address import PLAIN, check_address
from dlbricks_tui.folders import DataFolder


def reach(request: FleetRequest, hosts: tuple[HostEntry, ...], data: DataFolder) -> HostCalls:
    """Return the means to call the hosts of a fleet run."""
    is_plain = check_address(request.scheduler, request.allow_plain).scheme == PLAIN
    security = None if is_plain else Certificates(data.certificates).for_driver()
    return HostCalls(Engine(request.scheduler, security), _refuse, lambda: None)


def _refuse(entry: HostEntry) -> None:
    raise FleetError(f"hosts of this fleet run join by themselves: start a worker named {entry.name} for its scheduler")
