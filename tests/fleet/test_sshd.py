"""The cluster over real SSH servers of OpenSSH on the loopback, one of them as a jump host."""

import os
import queue
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncssh
import pytest

from dlbricks_tui.fleet.cluster import FleetCluster
from dlbricks_tui.fleet.engine import HostUnreachable
from dlbricks_tui.fleet.request import HostEntry
from dlbricks_tui.fleet.scheduler import Certificates
from tests.fleet.ssh_server import Person, is_alive
from tests.runs.killing import eventually

# A server that is not installed, such as one unpacked from a package: its path, and the folder of its helpers.
PROGRAM_VARIABLE, HELPERS_VARIABLE = "DLBRICKS_SSHD", "DLBRICKS_SSHD_HELPERS"
MISSING = f"needs OpenSSH's server: sudo apt install openssh-server, or name its program in {PROGRAM_VARIABLE}"
_SECONDS = 20.0


def sshd_program() -> str | None:
    """Return the path of the server; None: there is none."""
    return os.environ.get(PROGRAM_VARIABLE) or shutil.which(
        "sshd", path=f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin"
    )


@dataclass
class Sshd:
    """A running server."""

    port: int
    host_key: str
    process: subprocess.Popen[bytes]

    def connections(self) -> list[int]:
        """Return the processes of its connections."""
        found = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
        pairs = (line.split() for line in found.splitlines())
        return [int(pid) for pid, parent in pairs if int(parent) == self.process.pid]

    def cut(self) -> None:
        """Kill the processes of all connections."""
        for pid in self.connections():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@contextmanager
def sshd(folder: Path, authorized: Path, *options: str) -> Iterator[Sshd]:
    """Run a server whose files are in a folder."""
    program = sshd_program()
    assert program is not None
    if os.geteuid() == 0:
        # A server of root asks for it.
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    folder.mkdir()
    key = folder / "host_key"
    private = asyncssh.generate_private_key("ssh-ed25519")
    private.write_private_key(str(key))
    key.chmod(0o600)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    helpers = os.environ.get(HELPERS_VARIABLE)
    lines = [
        f"Port {port}",
        "ListenAddress 127.0.0.1",
        f"HostKey {key}",
        f"AuthorizedKeysFile {authorized}",
        "PidFile none",
        "StrictModes no",
        "UsePAM no",
        "PasswordAuthentication no",
        "PermitRootLogin yes",
        *([f"SshdSessionPath {helpers}/sshd-session", f"SshdAuthPath {helpers}/sshd-auth"] if helpers else []),
        *options,
    ]
    config = folder / "sshd_config"
    config.write_text("\n".join(lines) + "\n")
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([program, "-D", "-e", "-f", str(config)], stderr=log, start_new_session=True)
    try:
        give_up = time.monotonic() + _SECONDS
        while not _listens(port):
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < give_up
            time.sleep(0.05)
        server = Sshd(port, private.export_public_key().decode().strip(), process)
        yield server
        server.cut()
    finally:
        process.terminate()
        process.wait(_SECONDS)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


pytestmark = [pytest.mark.soak, pytest.mark.skipif(sshd_program() is None, reason=MISSING)]


@pytest.fixture
def server(person: Person, tmp_path: Path) -> Iterator[Sshd]:
    with sshd(tmp_path / "server", Path(f"{person.key}.pub")) as server:
        yield server


@pytest.fixture
def gateway(person: Person, tmp_path: Path) -> Iterator[Sshd]:
    with sshd(tmp_path / "gateway", Path(f"{person.key}.pub")) as server:
        yield server


def _trust(person: Person, *servers: Sshd) -> None:
    known = person.home / ".ssh" / "known_hosts"
    known.write_text("".join(f"[127.0.0.1]:{server.port} {server.host_key}\n" for server in servers))


def _entry(server: Sshd, **options: str) -> HostEntry:
    return HostEntry(**{"name": "h", "address": "127.0.0.1", "port": server.port, **options})  # type: ignore[arg-type]


def test_workers_behind_real_servers_come_back_and_nothing_stays_behind(
    person: Person, server: Sshd, gateway: Sshd, certificates: Certificates, tmp_path: Path
) -> None:
    from distributed import Client

    _trust(person, server, gateway)
    entries = []
    for name, jump in (("near", ""), ("far", f"127.0.0.1:{gateway.port}")):
        folder = tmp_path / name
        (folder / "venv" / "bin").mkdir(parents=True)
        python = folder / "venv" / "bin" / "python"
        python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        python.chmod(0o755)
        entries.append(_entry(server, name=name, jump=jump, folder=str(folder)))
    told: queue.SimpleQueue[HostUnreachable] = queue.SimpleQueue()
    cluster = FleetCluster(entries[:1], certificates, tmp_path / "logs", told.put)
    seen: set[int | None] = set()
    try:
        cluster.add_hosts(entries[1:])
        with Client(cluster.scheduler_address, security=certificates.for_driver(), set_as_default=False) as client:
            first = _workers(client, 2)
            gateway.cut()
            eventually(lambda: _workers(client)["far"] not in (None, first["far"]))
            second = _workers(client, 2)
            assert second["near"] == first["near"]
            server.cut()
            eventually(lambda: _workers(client)["near"] not in (None, first["near"]))
            seen = {*first.values(), *second.values(), *_workers(client, 2).values()}
            assert len(seen) == 5
            shown = subprocess.run(["ps", "-A", "e", "-o", "args="], capture_output=True, text=True, check=True).stdout
            assert "PRIVATE" not in shown
    finally:
        cluster.close()
    eventually(lambda: not any(is_alive(pid or 0) for pid in seen))


def _workers(client: Any, number: int = 0) -> defaultdict[str, int | None]:
    """Return the processes of the workers that answer, by name; wait for so many."""
    found: defaultdict[str, int | None] = defaultdict(lambda: None)

    def known() -> bool:
        found.clear()
        workers = client.scheduler_info(n_workers=-1)["workers"]
        for address, pid in client.run(os.getpid, on_error="ignore").items():
            if address in workers:
                found[workers[address]["name"]] = pid
        return len(found) >= number

    eventually(known)
    return found
