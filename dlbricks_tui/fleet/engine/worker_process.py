"""The dask worker of a host: it runs one task at a time, and does nearly nothing while it waits or measures."""

import argparse
import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from dlbricks_tui.errors import UserError
from dlbricks_tui.fleet.certificates import Certificates
from dlbricks_tui.fleet.engine import dask_settings
from dlbricks_tui.fleet.engine.quiet_worker import rare_heartbeats
from dlbricks_tui.fleet.engine.scheduler_address import check_address, connect, reason_of
from dlbricks_tui.fleet.errors import FleetError

if TYPE_CHECKING:
    from distributed.security import Security

# Between two attempts to reach the scheduler again.
_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 1.0, 30.0
_SECONDS_TO_REGISTER = 60
_SECONDS_TO_CLOSE = 5.0
# A scheduler remembers a worker that died without a word for a while.
_NAME_TAKEN = "name taken"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRequest:
    """A dask worker to run on this machine."""

    # The address of the scheduler, such as tls://10.0.0.1:8786.
    scheduler: str
    # The name of this host in the fleet.
    name: str
    # The folder of the certificates; None: a scheduler without TLS.
    certificates: Path | None
    # The address on which the scheduler calls it; empty: any port, on the address by which it reaches the scheduler.
    listen: str = ""
    # True: a scheduler without TLS may be used although other machines can reach it.
    allow_plain: bool = False


def run_worker(request: WorkerRequest, tell: Callable[[str], None], log: Path | None = None) -> None:
    """Run a worker until SIGTERM or ctrl+c, and connect it again when its scheduler has been away.

    `tell` gets a line when it has joined, and when it waits for the scheduler. Raise FleetError if the scheduler cannot
    be used at the start.
    """
    check_address(request.scheduler, request.allow_plain)
    dask_settings.set_up(log)
    asyncio.run(_Life(request, tell).live())


class _Life:
    """A worker after another, with one connection each."""

    def __init__(self, request: WorkerRequest, tell: Callable[[str], None]) -> None:
        certificates = None if request.certificates is None else Certificates(request.certificates)
        self._security: Security | None = None if certificates is None else certificates.for_host()
        self._request = request
        self._tell = tell
        self._stopping = asyncio.Event()
        self._wait_seconds = _FIRST_WAIT_SECONDS
        self._has_joined = False

    async def live(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        while not self._stopping.is_set():
            try:
                await self._work()
                reason = "the scheduler has closed the connection"
            except FleetError as error:
                if not self._has_joined:
                    raise
                reason = str(error)
            if not self._stopping.is_set():
                self._tell(f"waiting for the scheduler: {reason}")
                with suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), self._wait_seconds)
                self._wait_seconds = min(2 * self._wait_seconds, _LONGEST_WAIT_SECONDS)

    async def _work(self) -> None:
        """Run a worker until its connection ends."""
        request = self._request
        # One line for a wrong address or certificate. The worker itself would try for long.
        await (await connect(request.scheduler, self._security)).close()
        place = urlsplit(request.listen)
        with tempfile.TemporaryDirectory(prefix="dlbricks-worker-", ignore_cleanup_errors=True) as folder:
            worker = worker_class()(
                request.scheduler,
                name=request.name,
                nthreads=1,
                security=self._security,
                protocol=urlsplit(request.scheduler).scheme,
                host=place.hostname,
                port=place.port,
                contact_address=request.listen or None,
                local_directory=folder,
                # Measuring has processes of its own, which dask neither watches nor limits.
                memory_limit=0,
                dashboard=False,
                # It has no pages; without an address it would listen on all interfaces.
                dashboard_address="127.0.0.1:0",
                death_timeout=_SECONDS_TO_REGISTER,
            )
            try:
                await worker
            # Of several kinds; it is closed then.
            except Exception as error:
                raise self._failure(error) from error
            rare_heartbeats(worker)
            self._has_joined, self._wait_seconds = True, _FIRST_WAIT_SECONDS
            self._tell(f"{request.name} has joined the fleet at {request.scheduler}")
            finished, stopping = (asyncio.ensure_future(it) for it in (worker.finished(), self._stopping.wait()))
            await asyncio.wait([finished, stopping], return_when=asyncio.FIRST_COMPLETED)
            stopping.cancel()
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(worker.close(reason="it was stopped"), _SECONDS_TO_CLOSE)

    def _failure(self, error: Exception) -> FleetError:
        reason = reason_of(error.__cause__ or error)
        if _NAME_TAKEN in reason:
            return FleetError(f"the fleet has a host named {self._request.name} already: choose another --name")
        return FleetError(f"the worker cannot join the fleet at {self._request.scheduler}: {reason}")


def worker_class() -> Any:
    """Return the class of our workers; loaded here, because dask is slow to load."""
    from distributed import Worker

    class HostWorker(Worker):  # type: ignore[misc]
        """A worker whose end does not wait for the thread of a task: the run of the task goes on by itself."""

        async def close(self, *arguments: Any, **options: Any) -> Any:
            return await super().close(*arguments, **{**options, "executor_wait": False})

    return HostWorker


def main(arguments: list[str]) -> None:
    """Run a worker; the entry point of its process on a host that is reached over SSH."""
    parser = argparse.ArgumentParser(prog="python -m dlbricks_tui.fleet.engine.worker_process", description=__doc__)
    parser.add_argument("scheduler")
    parser.add_argument("--name", required=True)
    parser.add_argument("--certificates", type=Path)
    parser.add_argument("--listen", default="")
    parser.add_argument("--allow-plain", action="store_true")
    given = parser.parse_args(arguments)
    request = WorkerRequest(
        scheduler=given.scheduler,
        name=given.name,
        certificates=given.certificates,
        listen=given.listen,
        allow_plain=given.allow_plain,
    )
    try:
        run_worker(request, _narrate)
    except UserError as error:
        sys.exit(str(error))
    # Threads of tasks wait for their runs, which go on by themselves.
    os._exit(0)


def _narrate(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
