"""The dask cluster of a fleet that is reached over SSH: a scheduler beside the driver, and a worker on each host.

All that dask says travels inside SSH connections that start here: hosts need no open port, and no route to the driver.
Each host has a port on its loopback that leads to the scheduler, and this machine one on its own that leads to the
worker of the host. TLS protects both from other users of these machines.

A host whose connection is lost is reached again, ever more rarely. Its worker there ends by itself.
"""

import asyncio
import json
import os
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from distributed import Scheduler
from distributed.core import Status
from distributed.deploy.spec import ProcessInterface, SpecCluster

from dlbricks_tui import __version__
from dlbricks_tui.files import open_log
from dlbricks_tui.fleet import worker as worker_module
from dlbricks_tui.fleet.engine import HostUnreachable
from dlbricks_tui.fleet.host_script import ENVIRONMENT
from dlbricks_tui.fleet.request import FleetError, HostEntry, last_line, shell_path
from dlbricks_tui.fleet.scheduler import LOOPBACK, Certificates
from dlbricks_tui.fleet.ssh import SECONDS_TO_CLOSE, HostRefusedError, SshError, connected
from dlbricks_tui.fleet.worker import HELLO, MARK, SECONDS_BETWEEN_SIGNS
from dlbricks_tui.printable import printable

if TYPE_CHECKING:
    import asyncssh

# A host's disk may be slow, and dask is large.
_SECONDS_TO_START = 120.0
# A worker closes its connections first.
_SECONDS_TO_END = 20.0
# The wait before the second try; it doubles each time.
_SECONDS_BEFORE_RETRY = 1.0
_MOST_SECONDS_BEFORE_RETRY = 60.0
# Longer than a worker tries to join.
_SECONDS_OF_SUCCESS = 120.0
_MOST_BYTES_OF_LOG = 4 << 20
_LONGEST_LINE = 1 << 16
_MOST_LINES_BEFORE_HELLO = 200
_NO_SUCH_COMMAND = (126, 127)
_INSTALL = "dlbricks fleet doctor --hosts FILE --install"

# Called with the hosts that cannot be reached.
Tell = Callable[[HostUnreachable], None]


class FleetCluster(SpecCluster):  # type: ignore[misc]
    """The scheduler and the workers of a fleet, with dask set up. `scheduler_address` is for the driver's client.

    `logs` is the folder for the log of each host. `tell` is called in the cluster's thread.
    """

    def __init__(self, hosts: Sequence[HostEntry], certificates: Certificates, logs: Path, tell: Tell) -> None:
        self._means = {"certificates": certificates, "logs": logs, "tell": tell}
        logs.mkdir(parents=True, exist_ok=True)
        scheduler = {
            "cls": Scheduler,
            "options": {
                "host": LOOPBACK,
                "port": 0,
                "protocol": "tls",
                "security": certificates.for_driver(),
                "dashboard": False,
                # Its page has no routes; without an address it would listen on all interfaces.
                "dashboard_address": f"{LOOPBACK}:0",
            },
        }
        try:
            super().__init__(
                workers=self._specified(hosts),
                scheduler=scheduler,
                security=certificates.for_driver(),
                scheduler_sync_interval=60,
                name="dlbricks",
            )
        except RuntimeError as error:
            raise FleetError(f"the scheduler does not start: {error.__cause__ or error}") from error

    def add_hosts(self, hosts: Sequence[HostEntry]) -> None:
        """Reach more hosts."""
        self.worker_spec.update(self._specified(hosts))
        self.sync(self._correct_state)

    def close(self, timeout: float | None = None) -> Awaitable[None] | None:
        """End all workers, connections, and the scheduler."""
        if self.status == Status.closed:
            return None

        async def end_workers() -> None:
            await asyncio.gather(*(worker.close() for worker in self.workers.values()), return_exceptions=True)

        # Dask would wait for the results of each worker first.
        with suppress(Exception):
            self.sync(end_workers, callback_timeout=2 * _SECONDS_TO_END)
        closed: Awaitable[None] | None = super().close(timeout)
        return closed

    def _specified(self, hosts: Sequence[HostEntry]) -> dict[str, Any]:
        return {host.name: {"cls": HostWorker, "options": {"entry": host, **self._means}} for host in hosts}


class HostWorker(ProcessInterface):  # type: ignore[misc]
    """The worker of a host, and the SSH connection to it, which is made again when it was lost."""

    def __init__(
        self, scheduler: str, name: str, entry: HostEntry, certificates: Certificates, logs: Path, tell: Tell
    ) -> None:
        super().__init__()
        self.name = name
        self._scheduler_port = int(scheduler.rpartition(":")[2])
        self._entry = entry
        self._certificates = certificates
        self._log = logs / f"{name}.log"
        self._tell = tell
        self._connected_at: float | None = None
        # The end of what the worker has printed.
        self._printed = b""
        self._keeping: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to reach the host; other hosts are not kept waiting."""
        self._keeping = asyncio.create_task(self._keep())
        await super().start()

    async def close(self) -> None:
        """End the worker and the connection."""
        keeping, self._keeping = self._keeping, None
        if keeping is not None:
            keeping.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await keeping
        await super().close()

    async def _keep(self) -> None:
        """Keep a worker on the host, until this is cancelled or the host refuses."""
        failures = 0
        while True:
            self._connected_at = None
            try:
                reason = await self._session()
            except HostRefusedError as error:
                return self._tell(HostUnreachable(self.name, printable(str(error)), is_final=True))
            except FleetError as error:
                reason = str(error)
            # No fault of one host may end the others.
            except Exception as error:  # noqa: BLE001
                reason = f"{type(error).__name__}: {error}"
            if self._connected_at is not None and time.monotonic() - self._connected_at > _SECONDS_OF_SUCCESS:
                failures = 0
            seconds = seconds_before_retry(failures)
            failures += 1
            self._tell(HostUnreachable(self.name, printable(f"{reason}; the next try is in {seconds:.0f} s")))
            await asyncio.sleep(seconds)

    async def _session(self) -> str:
        """Connect, run a worker until it or the connection ends, and return the reason."""
        python = shell_path(f"{self._entry.folder_there}/{ENVIRONMENT}/bin/python")
        async with connected(self._entry) as ssh:
            port_there = await ssh.forward_there(self._scheduler_port)
            # The settings, a private key among them, go to standard input: a command line is visible to other users.
            process = await ssh.start(f"exec {python} -I -m {worker_module.__name__}")
            logging = asyncio.create_task(self._keep_log(process.stderr))
            try:
                port_here = await ssh.forward_here(await self._greeted(process, logging))
                authority, certificate, key = (path.read_text() for path in self._certificates.of_hosts)
                # Both ports are tunnels: the one there leads to the scheduler, the one here to the worker.
                settings = {
                    "name": self.name,
                    "folder": self._entry.folder_there,
                    "scheduler": f"tls://{LOOPBACK}:{port_there}",
                    "contact": f"tls://{LOOPBACK}:{port_here}",
                    "authority": authority,
                    "certificate": certificate,
                    "key": key,
                }
                process.stdin.write(json.dumps(settings).encode() + b"\n")
                self._connected_at = time.monotonic()
                # Signs that the driver is there, until the worker ends.
                while not await _has_ended(process, SECONDS_BETWEEN_SIGNS):
                    with suppress(BrokenPipeError):
                        process.stdin.write(b"\n")
                await asyncio.wait((logging,), timeout=SECONDS_TO_CLOSE)
            finally:
                # A worker ends with its input, or else by a signal.
                with suppress(OSError):
                    process.stdin.write_eof()
                if not await _has_ended(process, _SECONDS_TO_END):
                    with suppress(OSError):
                        process.kill()
                process.close()
                logging.cancel()
            if ssh.is_closed:
                return f"its connection ended: {ssh.fault}"
            if process.exit_status == os.EX_CANTCREAT:
                raise HostRefusedError(last_line(self._printed))
            said = f": {last_line(self._printed)}" if process.exit_status else ""
            return f"its worker ended{said}; see {self._log}"

    async def _greeted(self, process: "asyncssh.SSHClientProcess[bytes]", logging: "asyncio.Task[None]") -> int:
        """Return the port of the worker, which tells its versions before it gets its settings.

        Raise HostRefusedError unless the host has the same dlbricks and dask.
        """
        line, lines = b"", 0
        try:
            while not line.startswith(MARK.encode()) and lines < _MOST_LINES_BEFORE_HELLO:
                line = await asyncio.wait_for(process.stdout.readline(), _SECONDS_TO_START)
                lines = lines + 1 if line else _MOST_LINES_BEFORE_HELLO
        except asyncio.TimeoutError:
            raise SshError(f"it did not answer within {_SECONDS_TO_START:.0f} seconds") from None
        if not line:
            await asyncio.wait((logging,), timeout=_SECONDS_TO_END)
            await _has_ended(process, _SECONDS_TO_END)
            status, said = process.exit_status, last_line(self._printed)
            if status in _NO_SUCH_COMMAND or "No module named" in said:
                raise HostRefusedError(f"dlbricks is not installed there ({said}): `{_INSTALL}` sets it up")
            raise SshError(f"its worker does not start: {said or f'status {status}'}")
        hello = line[:_LONGEST_LINE].decode(errors="replace").removeprefix(MARK).split()
        if len(hello) != len(HELLO) or not hello[-1].isdigit() or not 0 < int(hello[-1][:6]) < 2**16:
            raise SshError(f"it answered with something else than settings: `{_INSTALL}`, or check this host")
        for package, here, there in zip(HELLO, (__version__, metadata.version("distributed")), hello, strict=False):
            if there != here:
                has = f"it has {package} {printable(there)[:40]}, and this machine {here}"
                raise HostRefusedError(f"{has}: `{_INSTALL}` makes them equal")
        return int(hello[-1])

    async def _keep_log(self, reader: "asyncssh.SSHReader[bytes]") -> None:
        """Append what the worker prints to its log, up to a limit, until it ends."""
        # Messages name it, also if the worker prints nothing.
        self._log.touch()
        self._printed, left = b"", _MOST_BYTES_OF_LOG
        while chunk := await reader.read(_LONGEST_LINE):
            self._printed = (self._printed + chunk)[-_LONGEST_LINE:]
            if left > 0:
                with open_log(self._log) as file:
                    file.write(chunk[:left])
                left -= len(chunk)


def seconds_before_retry(failures: int, noise: Callable[[], float] = random.random) -> float:
    """Return the wait after a number of failures: it doubles, and differs from that of other hosts."""
    return min(_SECONDS_BEFORE_RETRY * 2.0 ** min(failures, 16), _MOST_SECONDS_BEFORE_RETRY) * (0.75 + 0.25 * noise())


async def _has_ended(process: "asyncssh.SSHClientProcess[bytes]", seconds: float) -> bool:
    """Wait for the end of a process, but not for longer; return True if it has ended."""
    with suppress(OSError, asyncio.TimeoutError):
        await asyncio.wait_for(process.wait_closed(), seconds)
        return True
    return False
