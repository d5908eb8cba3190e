"""Reach the hosts of a fleet: through a dask scheduler that exists already, or over SSH."""

import ipaddress
from urllib.parse import urlsplit

from dlbricks_tui.fleet.certificates import Certificates
from dlbricks_tui.fleet.engine import Engine
from dlbricks_tui.fleet.errors import FleetError
from dlbricks_tui.fleet.host_calls import HostCalls
from dlbricks_tui.fleet.hosts import HostEntry
from dlbricks_tui.fleet.request import FleetRequest
from dlbricks_tui.folders import DataFolder

_SECURE, _PLAIN = "tls", "tcp"


def reach(request: FleetRequest, hosts: tuple[HostEntry, ...], data: DataFolder) -> HostCalls:
    """Return the means to call the hosts of a fleet run."""
    check_scheduler(request)
    is_plain = urlsplit(request.scheduler).scheme == _PLAIN
    security = None if is_plain else Certificates(data.certificates).for_driver()
    return HostCalls(Engine(request.scheduler, security), _refuse, lambda: None)


def check_scheduler(request: FleetRequest) -> None:
    """Raise FleetError for an address that is none, or that anybody could listen to without leave of the user."""
    address = urlsplit(request.scheduler)
    try:
        usable = address.scheme in (_SECURE, _PLAIN) and bool(address.hostname) and bool(address.port)
    except ValueError:
        usable = False
    if not usable:
        raise FleetError(f"{request.scheduler[:80]!r} is no address of a scheduler: write it like tls://10.0.0.1:8786")
    if address.scheme == _PLAIN and not request.allow_plain and not _is_loopback(address.hostname or ""):
        raise FleetError(
            f"{request.scheduler[:80]} has neither encryption nor certificates: anybody on its network could run "
            "programs on all hosts; use tls:// after `dlbricks fleet init`, or --allow-plain on a network of your own"
        )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _refuse(entry: HostEntry) -> None:
    raise FleetError(f"hosts of this fleet run join by themselves: start a worker named {entry.name} for its scheduler")
