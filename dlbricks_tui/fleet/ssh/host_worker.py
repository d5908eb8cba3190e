"""The dask worker of a host that is reached over SSH; the driver starts it, and it never outlives the connection.

Its standard input brings the settings as one line of JSON, private keys included, and then a line break now and then.
The worker ends when its input ends or is silent for too long, and cancels what it measures. It tells its state in lines
on its standard output; all else goes to its log, the standard error.
"""

import asyncio
import json
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from dlbricks_tui import __version__
from dlbricks_tui.errors import UserError
from dlbricks_tui.fleet.setting_up.host_check import ENVIRONMENT
from dlbricks_tui.folders import DATA_FOLDER_VARIABLE

# Lines without it come from elsewhere, such as a start-up file of the user's shell.
MARK = "dlbricks-fleet: "
# The driver writes a line break so often.
SECONDS_BETWEEN_SIGNS = 10.0
# A worker whose driver is silent for so long ends: its connection is broken.
SECONDS_OF_SILENCE = 45.0
LOOPBACK = "127.0.0.1"
_MOST_BYTES_OF_SETTINGS = 1 << 20
# What is open is closed in this time, or left to the end of the process.
_SECONDS_TO_CLOSE = 8.0
_SECONDS_TO_REGISTER = 60
# The folder in the data folder for what dask writes.
_FOLDER = "dask"

_Settings = Mapping[str, Any]


class _Told:
    """The standard output; nothing else is printed there from now on."""

    def __init__(self) -> None:
        self._file = os.fdopen(os.dup(1), "w", buffering=1)
        os.dup2(2, 1)

    def tell(self, **facts: object) -> None:
        # The driver may be gone.
        with suppress(OSError):
            self._file.write(f"{MARK}{json.dumps(facts)}\n")


def main() -> None:
    """Run a worker until the driver goes."""
    start_from_folder()
    told = _Told()
    try:
        asyncio.run(_worker(told))
    except (UserError, OSError) as error:
        told.tell(fault=str(error))
    # Threads may still wait for a task.
    sys.stderr.flush()
    os._exit(0)


def start_from_folder() -> None:
    """Start this program again from the folder of its environment, if it was started through the link to it.

    The link changes when another environment is installed, and modules are loaded from there until the end.
    """
    environment = Path(sys.prefix)
    if environment.name == ENVIRONMENT and environment.is_symlink():
        python = environment.resolve() / "bin" / "python"
        os.execv(python, [str(python), *sys.orig_argv[1:]])


async def _worker(told: _Told) -> None:
    port = _free_port()
    try:
        from distributed.security import Security

        from dlbricks_tui.fleet.engine import dask_settings
        from dlbricks_tui.fleet.engine.quiet_worker import rare_heartbeats
        from dlbricks_tui.fleet.engine.worker_process import worker_class
    except ImportError as error:
        return told.tell(lacks=error.name or str(error))
    told.tell(dlbricks=__version__, distributed=metadata.version("distributed"), port=port)
    settings = _read_settings()
    folder = Path(settings["folder"]).expanduser()
    os.environ[DATA_FOLDER_VARIABLE] = str(folder)
    dask_settings.set_up()
    (folder / _FOLDER).mkdir(parents=True, exist_ok=True)
    worker = worker_class()(
        settings["scheduler"],
        name=settings["name"],
        nthreads=1,
        host=LOOPBACK,
        port=port,
        contact_address=settings["contact"],
        protocol="tls",
        security=Security(
            require_encryption=True,
            tls_ca_file=settings["authority"],
            tls_worker_cert=settings["certificate"],
            tls_worker_key=settings["key"],
        ),
        # Measuring has processes of its own, which dask neither watches nor limits.
        memory_limit=0,
        dashboard=False,
        # It has no pages; without an address it would listen on all interfaces.
        dashboard_address=f"{LOOPBACK}:0",
        local_directory=str(folder / _FOLDER),
        death_timeout=_SECONDS_TO_REGISTER,
    )
    return await _serve(worker, told, lambda: rare_heartbeats(worker))


async def _serve(worker: Any, told: _Told, joined: Callable[[], None]) -> None:
    """Run a worker until it finishes, or the driver goes; `joined` is called when the scheduler knows it."""
    loop, gone = asyncio.get_running_loop(), asyncio.Event()
    threading.Thread(
        target=_wait_for_silence, args=(SECONDS_OF_SILENCE, lambda: loop.call_soon_threadsafe(gone.set)), daemon=True
    ).start()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        loop.add_signal_handler(number, gone.set)
    try:
        if await _first(worker, gone.wait()):
            joined()
            told.tell(address=worker.contact_address)
            await _first(worker.finished(), gone.wait())
    # Dask raises many kinds of errors when a worker cannot start.
    except Exception as error:  # noqa: BLE001
        from dlbricks_tui.fleet.engine.scheduler_address import reason_of

        told.tell(fault=f"dask does not start there: {reason_of(error.__cause__ or error)}")
    finally:
        await asyncio.to_thread(_end_tasks)
        with suppress(Exception):
            await asyncio.wait_for(worker.close(reason="its driver has gone"), _SECONDS_TO_CLOSE)


async def _first(wanted: Awaitable[object], other: Awaitable[object]) -> bool:
    """Wait for the first of two; return True, or raise its error, if it is the wanted one."""
    one, two = (asyncio.ensure_future(it) for it in (wanted, other))
    done, _ = await asyncio.wait((one, two), return_when=asyncio.FIRST_COMPLETED)
    if one not in done:
        return False
    two.cancel()
    await one
    return True


def _wait_for_silence(seconds: float, then: Callable[[], object]) -> None:
    """Read the standard input until it ends, or nothing comes for so long."""
    with suppress(OSError):
        while select.select([0], [], [], seconds)[0] and os.read(0, 1 << 16):
            pass
    then()
    # A task that holds Python's lock must not keep the process.
    threading.Event().wait(2 * _SECONDS_TO_CLOSE)
    os._exit(1)


def _end_tasks() -> None:
    """End what the tasks of this worker measure."""
    # It is loaded with the first task.
    on_worker = sys.modules.get("dlbricks_tui.fleet.engine.on_worker")
    if on_worker is not None:
        on_worker.end_tasks()


def _read_settings() -> _Settings:
    """Read the first line of the standard input, and nothing after it."""
    line = bytearray()
    while not line.endswith(b"\n") and len(line) < _MOST_BYTES_OF_SETTINGS:
        ready, _, _ = select.select([0], [], [], SECONDS_OF_SILENCE)
        sign = os.read(0, 1) if ready else b""
        if not sign:
            # The driver has gone.
            os._exit(1)
        line += sign
    found: _Settings = json.loads(line)
    return found


def _free_port() -> int:
    """Return a port that no process uses now. If another one takes it meanwhile, the driver starts this one again."""
    with socket.socket() as free:
        free.bind((LOOPBACK, 0))
        return int(free.getsockname()[1])


if __name__ == "__main__":
    main()
