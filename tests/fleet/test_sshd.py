"""The cluster over real SSH servers of OpenSSH on the loopback, one of them as a jump host."""

import os
import queue
import shutil
import signal
import socket
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
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
FOLDERS = f"{os.environ['PATH']}:/usr/sbin:/usr/local/sbin"
PROGRAM = os.environ.get(PROGRAM_VARIABLE) or shutil.which("sshd", path=FOLDERS)


class Sshd:
    """A server whose files are in a folder, which lets the owner of a key in."""

    def __init__(self, folder: Path, person: Person) -> None:
        if os.geteuid() == 0:
            # A server of root asks for it.
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        folder.mkdir()
        key, config = folder / "host_key", folder / "sshd_config"
        private = asyncssh.generate_private_key("ssh-ed25519")
        private.write_private_key(str(key))
        key.chmod(0o600)
        self.host_key = private.export_public_key().decode().strip()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        helpers = os.environ.get(HELPERS_VARIABLE)
        lines = [
            *(f"Port {self.port}", "ListenAddress 127.0.0.1", f"HostKey {key}", "PidFile none", "StrictModes no"),
            *(f"AuthorizedKeysFile {person.key}.pub", "UsePAM no", "PasswordAuthentication no", "PermitRootLogin yes"),
            *([f"SshdSessionPath {helpers}/sshd-session", f"SshdAuthPath {helpers}/sshd-auth"] if helpers else []),
        ]
        config.write_text("\n".join(lines) + "\n")
        assert PROGRAM is not None
        with (folder / "log").open("wb") as log:
            command = [PROGRAM, "-D", "-e", "-f", str(config)]
            self.process = subprocess.Popen(command, stderr=log, start_new_session=True)

    def listens(self) -> bool:
        assert self.process.poll() is None
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def cut(self) -> None:
        """Kill the processes of all connections."""
        found = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
        for pid, parent in (map(int, line.split()) for line in found.splitlines()):
            if parent == self.process.pid:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


pytestmark = [pytest.mark.soak, pytest.mark.skipif(PROGRAM is None, reason=MISSING)]


@pytest.fixture
def servers(person: Person, tmp_path: Path) -> Iterator[list[Sshd]]:
    """Two servers that the person trusts."""
    found = [Sshd(tmp_path / name, person) for name in ("server", "gateway")]
    known = "".join(f"[127.0.0.1]:{it.port} {it.host_key}\n" for it in found)
    (person.home / ".ssh" / "known_hosts").write_text(known)
    try:
        for each in found:
            eventually(each.listens)
        yield found
    finally:
        for each in found:
            each.cut()
            each.process.terminate()
            each.process.wait(20)


def test_workers_behind_real_servers_come_back_and_nothing_stays_behind(
    servers: list[Sshd], certificates: Certificates, tmp_path: Path
) -> None:
    from distributed import Client

    server, gateway = servers
    entries = []
    for name, jump in (("near", ""), ("far", f"127.0.0.1:{gateway.port}")):
        folder = tmp_path / name
        (folder / "venv" / "bin").mkdir(parents=True)
        python = folder / "venv" / "bin" / "python"
        python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        python.chmod(0o755)
        entries.append(HostEntry(name=name, address="127.0.0.1", port=server.port, jump=jump, folder=str(folder)))
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
