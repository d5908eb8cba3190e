"""Hosts behind SSH servers on loopback, each with a number of processors of its own."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from dlbricks_tui.fleet.request import HostEntry
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.queue import HOST_LOCK_VARIABLE
from dlbricks_tui.jobs.folder import RunFolders
from tests.fleet.cluster import SEAT
from tests.fleet.ssh_server import Person, SshServer, served


@dataclass
class SshHosts:
    """Servers by the name of the host."""

    servers: dict[str, SshServer]

    @property
    def entries(self) -> tuple[HostEntry, ...]:
        """The hosts, as a hosts file names them."""
        return tuple(server.entry(name=name) for name, server in self.servers.items())

    def data_of(self, name: str) -> DataFolder:
        """Return the data folder of a host."""
        return DataFolder(self.servers[name].home)

    def kill_host(self, name: str) -> None:
        """Kill everything that runs on a host, as a power cut does."""
        server = self.servers[name]
        server.drop()
        runs = [state.process.pid for state in RunFolders(self.data_of(name).runs).states() if state.active]
        for pid in (*server.pids, *runs):
            # Each leads a session of its own.
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)

    def start_worker(self, name: str) -> None:
        """Do nothing: the driver reaches the host again by itself."""


@contextmanager
def hosts_over_ssh(path: Path) -> Iterator[SshHosts]:
    """Run a server for each of two hosts."""
    person = Person(path / "person")
    with ExitStack() as stack:
        servers: dict[str, SshServer] = {}
        for cores, name in enumerate(("one", "two"), start=1):
            home = path / name
            (home / "venv" / "bin").mkdir(parents=True)
            python = home / "venv" / "bin" / "python"
            # Without -I, which would hide the number of processors.
            python.write_text(f'#!/bin/sh\nshift\nexec {sys.executable} "$@"\n')
            python.chmod(0o755)
            variables = {
                "PATH": os.environ["PATH"],
                "PYTHONPATH": f"{SEAT}{os.pathsep}{Path(__file__).parents[2]}",
                "DLBRICKS_TEST_CORES": str(cores),
                HOST_LOCK_VARIABLE: str(home / "host.lock"),
            }
            server = stack.enter_context(served(SshServer(home, Path(f"{person.key}.pub"), variables)))
            person.trusts(server)
            servers[name] = server
        yield SshHosts(servers)
