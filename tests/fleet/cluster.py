"""A dask scheduler and workers as processes that speak over TLS on loopback; each worker is a host of its own."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from dlbricks_tui.fleet.scheduler import Certificates
from dlbricks_tui.folders import DATA_FOLDER_VARIABLE, DataFolder
from dlbricks_tui.host.queue import HOST_LOCK_VARIABLE
from dlbricks_tui.jobs.folder import RunFolders
from tests.runs.killing import eventually

ROOT = Path(__file__).parents[2]
SEAT = Path(__file__).parent / "seat"
_GUIDE = ROOT / "docs" / "guides" / "many-hosts.md"


@dataclass
class SchedulerProcess:
    """A dask scheduler, and the processes of hosts by name."""

    path: Path
    certificates: Certificates
    address: str = "tls://127.0.0.1:0"
    processes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    def start_scheduler(self) -> None:
        """Start it as the guide does, on the port that it had before."""
        file = self.path / "scheduler.json"
        file.unlink(missing_ok=True)
        found = re.search(r"^    dask scheduler (.*\\\n.*)$", _GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
        assert found is not None
        port = self.address.rpartition(":")[2]
        words = shlex.split(found[1].replace("\\\n", " ").replace("10.0.0.1", "127.0.0.1").replace("8786", port))
        # The guide names the certificates as its reader is in their folder.
        options = [str(self.certificates.folder / it) if it.endswith(".pem") else it for it in words]
        self.start_process("", ["distributed.cli.dask_scheduler", *options, "--scheduler-file", str(file)], {})
        eventually(lambda: file.exists() and file.read_text().endswith("}"))
        self.address = json.loads(file.read_text())["address"]

    def end_process(self, name: str) -> None:
        """Kill a process; the empty name is that of the scheduler."""
        self.processes[name].kill()
        self.processes[name].wait()

    def stop(self) -> None:
        """End everything."""
        for name in self.processes:
            self.end_process(name)

    def start_process(self, name: str, arguments: list[str], environment: dict[str, str]) -> None:
        """Start a module with some more variables."""
        with (self.path / f"{name or 'scheduler'}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-m", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=ROOT,
                env={**os.environ, **environment},
            )


@dataclass
class Cluster(SchedulerProcess):
    """A scheduler, and workers by the name of their host."""

    cores: dict[str, int] = field(default_factory=dict)

    def start(self, hosts: int) -> None:
        """Start everything."""
        self.start_scheduler()
        for number, name in enumerate(("one", "two")[:hosts], start=1):
            self.cores[name] = number
            self.start_worker(name)

    def start_worker(self, name: str) -> None:
        """Start the worker of a host."""
        folder = self.path / name
        folder.mkdir(exist_ok=True)
        environment = {
            DATA_FOLDER_VARIABLE: str(self.data_of(name).path),
            HOST_LOCK_VARIABLE: str(folder / "host.lock"),
            "DLBRICKS_TEST_CORES": str(self.cores[name]),
            "PYTHONPATH": str(SEAT),
        }
        options = ["--nthreads", "1", "--name", name, "--no-nanny", "--no-dashboard"]
        authority, certificate, key = map(str, self.certificates.of_hosts)
        options += ["--tls-ca-file", authority, "--tls-cert", certificate, "--tls-key", key]
        folders = ["--local-directory", str(folder / "dask")]
        self.start_process(name, ["distributed.cli.dask_worker", self.address, *options, *folders], environment)

    def data_of(self, name: str) -> DataFolder:
        """Return the data folder of a host."""
        return DataFolder(self.path / name / "data")

    def kill_host(self, name: str) -> None:
        """Kill everything that runs on a host, as a power cut does."""
        self.end_process(name)
        for state in RunFolders(self.data_of(name).runs).states():
            if state.active:
                # Its process leads a session of its own.
                with suppress(ProcessLookupError):
                    os.killpg(state.process.pid, signal.SIGKILL)

    def stop(self) -> None:
        """End everything."""
        for name in filter(None, self.processes):
            self.kill_host(name)
        super().stop()
