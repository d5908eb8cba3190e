"""The dask scheduler of a fleet: its settings, its address, and the connection to it."""

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from dlbricks_tui.fleet.errors import FleetError, first_line

if TYPE_CHECKING:
    from distributed import Client
    from distributed.security import Security


SECURE, PLAIN = "tls", "tcp"
LOOPBACK = "127.0.0.1"
SECONDS_TO_CONNECT = 10.0
# A scheduler greets each connection at once.
_SECONDS_TO_GREET = 5.0
_LATER = "check its address, and that it runs"
# A host whose worker says nothing for so long is lost.
TIME_TO_LIVE = "90s"
SETTINGS: Mapping[str, Any] = {
    "distributed.scheduler.work-stealing": False,
    # The task of a worker that died is given up, and not tried on any other.
    "distributed.scheduler.allowed-failures": 0,
    "distributed.scheduler.worker-ttl": TIME_TO_LIVE,
    "distributed.scheduler.active-memory-manager.start": False,
    "distributed.scheduler.events-cleanup-delay": "1m",
    # Pages about the scheduler and the workers, which ask for no certificate.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    # Lost hosts stay members of a cluster: their connections are made again.
    "distributed.deploy.lost-worker-timeout": "1000 days",
    # Statistical profilers: threads that look at the others a hundred times a second.
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.worker.memory.monitor-interval": "60s",
    "distributed.admin.tick.interval": "5s",
    "distributed.admin.tick.limit": "10m",
    "distributed.admin.system-monitor.interval": "60s",
    "distributed.admin.system-monitor.disk": False,
    "distributed.diagnostics.nvml": False,
    # The scheduler keeps this many messages of hosts in memory.
    "distributed.admin.log-length": 100,
    # A parcel may be larger than what dask warns of.
    "distributed.admin.large-graph-warning-threshold": "1GB",
    "distributed.comm.timeouts.connect": "20s",
    "distributed.comm.retry.count": 2,
}
_LOG_BYTES = 1 << 20


def check_address(address: str, allow_plain: bool) -> SplitResult:
    """Return the parts of an address; raise FleetError if it is none, or if others could listen or join there."""
    place = SplitResult("", "", "", "", "")
    try:
        place = urlsplit(address)
        usable = place.scheme in (SECURE, PLAIN) and bool(place.hostname) and bool(place.port)
    except ValueError:
        usable = False
    if not usable:
        raise FleetError(f"{address[:80]!r} is no address of a scheduler: write it like tls://10.0.0.1:8786")
    is_loopback = place.hostname == "localhost"
    with suppress(ValueError):
        is_loopback |= ipaddress.ip_address(place.hostname or "").is_loopback
    if place.scheme == PLAIN and not allow_plain and not is_loopback:
        raise FleetError(
            f"{address[:80]} has neither encryption nor certificates: anybody on its network could run programs on all "
            "hosts; start it with TLS (docs/guides/many-hosts.md), or give --allow-plain on a network of your own"
        )
    return place


def connect(address: str, security: "Security | None", hear: Mapping[str, Callable[[Any], object]]) -> "Client":
    """Return a connection to a scheduler, which hears events by topic; raise FleetError if there is none."""
    from distributed import Client

    # In a thread: the caller may have an event loop, as in a notebook.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, check_scheduler(address, security)).result()
    try:
        client = Client(address, security=security, set_as_default=False, timeout=SECONDS_TO_CONNECT)
        for topic, handler in hear.items():
            client.subscribe_topic(topic, handler)
        return client
    # Of many kinds: no scheduler, one of another version of dask, one that closes the connection.
    except Exception as error:
        raise FleetError(f"no dask scheduler can be used at {address}: {reason_of(error)}") from error


def reason_of(error: BaseException) -> str:
    """Return the reason in an error of dask, in one short line."""
    # The error of a function that could not be loaded is the cause of another one.
    causes = [error]
    while causes[-1].__cause__ is not None and len(causes) < 10:
        causes.append(causes[-1].__cause__)
    for cause in causes:
        if isinstance(cause, ImportError | AttributeError):
            return (
                "dask cannot load dlbricks there: the scheduler and the hosts need the version of dlbricks that this "
                f"machine has ({first_line(cause)})"
            )
    return first_line(error)


async def check_scheduler(address: str, security: "Security | None") -> None:
    """Connect to a scheduler and hang up; raise FleetError for what is wrong with its address or the certificates.

    Dask itself would try for long, and call everything a timeout.
    """
    place = urlsplit(address)
    context = None
    if place.scheme == SECURE:
        try:
            context = None if security is None else security.get_connection_args("client")["ssl_context"]
        except (OSError, ValueError) as error:
            raise FleetError(f"the certificates of this fleet cannot be read: {first_line(error)}") from error
        if context is None:
            raise FleetError(
                f"{address} asks for certificates: `dlbricks fleet init` makes them, and each host has a copy"
            )
    try:
        await _greeting(place.hostname or "", place.port or 0, context)
    except ssl.SSLCertVerificationError as error:
        raise FleetError(
            f"the scheduler at {address} is of another fleet: its certificate is not signed by the authority of this "
            f"one ({error.verify_message})"
        ) from error
    except ssl.SSLError as error:
        if error.reason and "ALERT" in error.reason:
            raise _refused(address) from error
        why = "does not speak TLS: check the port; a scheduler without TLS has an address with tcp://"
        raise FleetError(f"{address} {why}") from error
    except (ConnectionRefusedError, socket.gaierror) as error:
        raise FleetError(f"nothing answers at {address}: {error.strerror}; {_LATER}") from error
    except (asyncio.TimeoutError, TimeoutError) as error:
        raise FleetError(f"nothing answers at {address} within {SECONDS_TO_CONNECT:.0f} seconds; {_LATER}") from error
    except EOFError as error:
        if context is not None:
            raise _refused(address) from error
        why = "does not greet as a dask scheduler without TLS does: try tls://, or"
        raise FleetError(f"{address} {why} {_LATER}") from error
    except OSError as error:
        raise FleetError(f"nothing answers at {address}: {error.strerror or error}; {_LATER}") from error


def _refused(address: str) -> FleetError:
    return FleetError(
        f"the scheduler at {address} refuses the certificate of this machine: it is of another fleet; "
        "use the certificates that the scheduler was started with"
    )


async def _greeting(host: str, port: int, context: ssl.SSLContext | None) -> None:
    """Wait for the first byte of a scheduler; raise EOFError if it sends none."""
    # Fleets check the authority, not the name: hosts are reached by addresses, and through tunnels.
    opening = asyncio.open_connection(host, port, ssl=context, server_hostname="" if context else None)
    reader, writer = await asyncio.wait_for(opening, SECONDS_TO_CONNECT)
    try:
        # With TLS 1.3 the other side refuses our certificate after the handshake.
        first = await asyncio.wait_for(reader.read(1), _SECONDS_TO_GREET)
    except (asyncio.TimeoutError, TimeoutError, ConnectionError):
        first = b""
    finally:
        writer.close()
        with suppress(Exception):
            await asyncio.wait_for(writer.wait_closed(), 1)
    if not first:
        raise EOFError


def set_up(log: Path | None = None) -> None:
    """Load dask with the settings above, and write its warnings to a file instead of the standard error."""
    import logging
    import warnings
    from logging.handlers import RotatingFileHandler

    import dask.config

    # Before `distributed` is loaded: it reads some of them once, and sets up its log.
    dask.config.set(SETTINGS)
    import distributed

    handler: logging.Handler = logging.NullHandler()
    if log is not None:
        log.parent.mkdir(parents=True, exist_ok=True)
        handler = RotatingFileHandler(log, maxBytes=_LOG_BYTES, backupCount=1, delay=True, encoding="utf-8")
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
    packages = (distributed.__name__, "tornado", "asyncio", "bokeh")
    # Dask gives some of their parts handlers of their own.
    parts = [name for name in logging.root.manager.loggerDict if "." in name and name.partition(".")[0] in packages]
    for name in (*packages, *parts):
        logger = logging.getLogger(name)
        logger.setLevel(logging.NOTSET if "." in name else logging.WARNING)
        logger.propagate = "." in name
        logger.handlers = [] if "." in name else [handler]
    # Such as that of other versions of packages, which matter to none of our texts.
    warnings.filterwarnings("ignore", module=r"distributed(\.|$)")
