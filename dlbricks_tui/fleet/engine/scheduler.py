"""The dask scheduler of a fleet that is reached over SSH: a process on the loopback that ends with its driver."""

import asyncio
import subprocess
import sys
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import IO

from dlbricks_tui.fleet.certificates import Certificates
from dlbricks_tui.fleet.engine import dask_settings
from dlbricks_tui.fleet.errors import FleetError
from dlbricks_tui.regular_files import open_log

_LOOPBACK = "127.0.0.1"
_SECONDS_TO_END = 2.0


class SchedulerProcess:
    """A scheduler in a process of its own. It ends if this process dies, as its standard input is closed then."""

    def __init__(self, certificates: Certificates, log: Path, port: int = 0) -> None:
        # Checked here, where the error has a reader.
        certificates.for_driver()
        self._certificates = certificates
        self._log = log
        # 0: any that is free.
        self._port = port
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> str:
        """Start it, and return its address."""
        self._log.parent.mkdir(parents=True, exist_ok=True)
        with open_log(self._log) as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(self._certificates.folder), str(self._log), str(self._port)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                # Ctrl+c is the driver's business.
                start_new_session=True,
            )
        self._process = process
        address = (process.stdout or BytesIO()).readline().decode("ascii", "replace").strip()
        if not address:
            self.close()
            raise FleetError(f"the dask scheduler does not start; the end of {self._log} says why")
        return address

    def close(self) -> None:
        """End it within a few seconds."""
        if self._process is None:
            return
        for stream in (self._process.stdin, self._process.stdout):
            _close(stream)
        try:
            self._process.wait(_SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _close(stream: IO[bytes] | None) -> None:
    if stream is not None:
        with suppress(OSError):
            stream.close()


async def _serve(certificates: Certificates, port: int) -> None:
    from distributed import Scheduler

    async with Scheduler(
        host=_LOOPBACK,
        port=port,
        protocol="tls",
        security=certificates.for_driver(),
        dashboard=False,
        # Its page has no routes; without an address it would listen on all interfaces.
        dashboard_address=f"{_LOOPBACK}:0",
    ) as scheduler:
        sys.stdout.write(f"{scheduler.address}\n")
        sys.stdout.flush()
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.buffer.read)


def main(folder: str, log: str, port: str) -> None:
    """Run a scheduler until the standard input ends."""
    dask_settings.set_up(Path(log))
    asyncio.run(_serve(Certificates(Path(folder)), int(port)))


if __name__ == "__main__":
    main(*sys.argv[1:])
