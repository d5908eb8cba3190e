"""The dask worker of a host: it runs one task at a time, and does nearly nothing while it waits or measures.

The driver starts it over SSH, or the user of the host does. What it measures goes on without it.

Over SSH it writes one line with its port and versions to its standard output; all else goes to its log, the standard
error. Its standard input brings the settings as one line of JSON, private keys included, and then a line break now and
then. The worker ends when its input ends or is silent for too long.
"""

import asyncio
import json
import os
import select
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from dlbricks_tui import __version__
from dlbricks_tui.errors import UserError
from dlbricks_tui.fleet.engine import calm
from dlbricks_tui.fleet.host_script import ENVIRONMENT
from dlbricks_tui.fleet.request import FleetError, HostError
from dlbricks_tui.fleet.scheduler import (
    LOOPBACK,
    PLAIN,
    Certificates,
    check_address,
    check_scheduler,
    reason_of,
    set_up,
)
from dlbricks_tui.folders import DATA_FOLDER_VARIABLE

if TYPE_CHECKING:
    from distributed.security import Security

# Lines without it come from elsewhere, such as a start-up file of the user's shell.
MARK = "dlbricks-fleet: "
# What follows, in words: two versions, and the port of the worker.
HELLO = ("dlbricks", "distributed", "port")
# The driver writes a line break so often.
SECONDS_BETWEEN_SIGNS = 10.0
# A worker whose driver is silent for so long ends: its connection is broken.
SECONDS_OF_SILENCE = 45.0
_MOST_BYTES_OF_SETTINGS = 1 << 20
# Between two attempts to reach the scheduler again.
_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 1.0, 30.0
_SECONDS_TO_REGISTER = 60
# What is open is closed in this time, or left to the end of the process.
_SECONDS_TO_CLOSE = 8.0
# A scheduler remembers a worker that died without a word for a while.
_NAME_TAKEN = "name taken"


def run_worker(
    scheduler: str, name: str, certificates: Path, tell: Callable[[str], None], *, allow_plain: bool = False
) -> None:
    """Run a worker until SIGTERM or ctrl+c, and connect it again when its scheduler has been away.

    `scheduler` is an address such as tls://10.0.0.1:8786, `name` that of this host in the fleet, and `certificates` a
    folder. With `allow_plain`, a scheduler without TLS may be used although other machines can reach it.
    `tell` gets a line when it has joined, and when it waits for the scheduler. Raise FleetError if the scheduler
    cannot be used at the start.
    """
    is_plain = check_address(scheduler, allow_plain).scheme == PLAIN
    set_up()
    security = None if is_plain else Certificates(certificates).for_host()
    asyncio.run(_run_again(scheduler, name, security, tell))


async def _run_again(scheduler: str, name: str, security: "Security | None", tell: Callable[[str], None]) -> None:
    """Run a worker after another, with one connection each."""
    stopping = _stop_signals(signal.SIGTERM, signal.SIGINT)
    has_joined, wait_seconds = False, _FIRST_WAIT_SECONDS

    def joined() -> None:
        nonlocal has_joined, wait_seconds
        has_joined, wait_seconds = True, _FIRST_WAIT_SECONDS
        tell(f"{name} has joined the fleet at {scheduler}")

    while not stopping.is_set():
        try:
            # One line for a wrong address or certificate. The worker itself would try for long.
            await check_scheduler(scheduler, security)
            with tempfile.TemporaryDirectory(prefix="dlbricks-worker-", ignore_cleanup_errors=True) as folder:
                worker = _worker(scheduler, name, security, folder, protocol=urlsplit(scheduler).scheme)
                await _serve(worker, stopping, joined)
            reason = "the scheduler has closed the connection"
        except FleetError as error:
            if not has_joined:
                if _NAME_TAKEN not in str(error):
                    raise
                raise FleetError(f"the fleet has a host named {name} already: choose another --name") from error
            reason = str(error)
        if not stopping.is_set():
            tell(f"waiting for the scheduler: {reason}")
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(stopping.wait(), wait_seconds)
            wait_seconds = min(2 * wait_seconds, _LONGEST_WAIT_SECONDS)


def main() -> None:
    """Run a worker for a driver that has started it over SSH, until the driver goes."""
    start_from_folder()
    status = 0
    try:
        asyncio.run(_run_for_driver())
    except (UserError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        status = os.EX_CANTCREAT if isinstance(error, HostError) else 1
    # Threads of tasks wait for their runs, which go on by themselves.
    sys.stderr.flush()
    os._exit(status)


def start_from_folder() -> None:
    """Start this program again from the folder of its environment, if it was started through the link to it.

    The link changes when another environment is installed, and modules are loaded from there until the end.
    """
    environment = Path(sys.prefix)
    if environment.name == ENVIRONMENT and environment.is_symlink():
        python = environment.resolve() / "bin" / "python"
        os.execv(python, [str(python), *sys.orig_argv[1:]])


async def _run_for_driver() -> None:
    from distributed.security import Security

    with socket.socket() as free:
        free.bind((LOOPBACK, 0))
        # No process uses it now. If another one takes it meanwhile, the driver starts this one again.
        port = free.getsockname()[1]
    # The driver may be gone.
    with suppress(OSError):
        os.write(1, f"{MARK}{__version__} {metadata.version('distributed')} {port}\n".encode())
    # All else goes to the standard error from now on.
    os.dup2(2, 1)
    settings = _read_settings()
    data = Path(settings["folder"]).expanduser()
    os.environ[DATA_FOLDER_VARIABLE] = str(data)
    set_up()
    # What dask writes.
    folder = data / "dask"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise HostError(f"cannot write {folder}: {error.strerror}; free some space, or make it writable") from error
    security = Security(
        require_encryption=True,
        tls_ca_file=settings["authority"],
        tls_worker_cert=settings["certificate"],
        tls_worker_key=settings["key"],
    )
    place = {"host": LOOPBACK, "port": port, "contact_address": settings["contact"], "protocol": "tls"}
    worker = _worker(settings["scheduler"], settings["name"], security, str(folder), **place)
    loop, gone = asyncio.get_running_loop(), _stop_signals(signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    silent = (SECONDS_OF_SILENCE, lambda: loop.call_soon_threadsafe(gone.set))
    threading.Thread(target=_wait_for_silence, args=silent, daemon=True).start()
    await _serve(worker, gone, lambda: None)


def _worker(scheduler: str, name: str, security: "Security | None", folder: str, **place: Any) -> Any:
    """Return a dask worker of one thread; call it in an event loop, with dask set up."""
    from distributed import Worker

    class TaskWorker(Worker):  # type: ignore[misc]
        """A worker whose end does not wait for the thread of a task: the run of the task goes on by itself."""

        async def close(self, *arguments: Any, **options: Any) -> Any:
            return await super().close(*arguments, **{**options, "executor_wait": False})

    return TaskWorker(
        scheduler,
        name=name,
        nthreads=1,
        security=security,
        local_directory=folder,
        # Measuring has processes of its own, which dask neither watches nor limits.
        memory_limit=0,
        dashboard=False,
        # It has no pages; without an address it would listen on all interfaces.
        dashboard_address=f"{LOOPBACK}:0",
        death_timeout=_SECONDS_TO_REGISTER,
        **place,
    )


async def _serve(worker: Any, stopping: asyncio.Event, joined: Callable[[], None]) -> None:
    """Run a worker until its connection ends or it has to stop; `joined` is called when the scheduler knows it."""
    stopped = asyncio.ensure_future(stopping.wait())
    try:
        for begin in (worker.start, worker.finished):
            working = asyncio.ensure_future(begin())
            await asyncio.wait((working, stopped), return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                return
            await working
            if begin == worker.start:
                calm(worker)
                joined()
    # Dask raises many kinds of errors when a worker cannot start.
    except Exception as error:
        raise FleetError(f"the dask worker cannot join: {reason_of(error.__cause__ or error)}") from error
    finally:
        stopped.cancel()
        with suppress(Exception):
            await asyncio.wait_for(worker.close(reason="it was stopped"), _SECONDS_TO_CLOSE)


def _stop_signals(*numbers: signal.Signals) -> asyncio.Event:
    """Return an event of the running loop that these signals set."""
    stopping = asyncio.Event()
    for number in numbers:
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    return stopping


def _wait_for_silence(seconds: float, then: Callable[[], object]) -> None:
    """Read the standard input until it ends, or nothing comes for so long."""
    with suppress(OSError):
        while select.select([0], [], [], seconds)[0] and os.read(0, 1 << 16):
            pass
    then()
    # A task that holds Python's lock must not keep the process.
    threading.Event().wait(2 * _SECONDS_TO_CLOSE)
    os._exit(1)


def _read_settings() -> dict[str, Any]:
    """Read the first line of the standard input; what comes with it are signs only."""
    is_there, _, _ = select.select([0], [], [], SECONDS_OF_SILENCE)
    line = sys.stdin.buffer.readline(_MOST_BYTES_OF_SETTINGS) if is_there else b""
    if not line:
        # The driver has gone.
        os._exit(1)
    found: dict[str, Any] = json.loads(line)
    return found


if __name__ == "__main__":
    main()
