"""The cluster over real SSH servers of OpenSSH on the loopback, one of them as a jump host."""

import os
import queue
import signal
import stat
import subprocess
import sys
from collections import defaultdict
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.fleet.certificates import Certificates
from dlbricks_tui.fleet.engine.cluster import FleetCluster
from dlbricks_tui.fleet.engine.engine import HostUnreachable
from dlbricks_tui.fleet.engine.ssh import Finished, HostRefusedError, SshConnection, SshError
from dlbricks_tui.fleet.request import HostEntry
from tests.fleet.ssh_server import Person, is_alive, on_host
from tests.fleet.sshd import MISSING, Sshd, agent_with, sshd, sshd_program
from tests.runs.killing import eventually

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


def _true(connection: SshConnection) -> Awaitable[Finished]:
    return connection.run("true", seconds=30)


def test_a_real_server_runs_commands_and_takes_files(person: Person, server: Sshd, tmp_path: Path) -> None:
    _trust(person, server)
    source = tmp_path / "source"
    source.write_bytes(bytes(range(256)) * 8000)

    async def send_and_run(it: SshConnection) -> Finished:
        await it.send(source, str(tmp_path / "target"))
        with pytest.raises(SshError, match="No space left on device"):
            await it.send(source, "/dev/full")
        return await it.run("cat; exit 3", b"x" * 300_000, seconds=30)

    found = on_host(_entry(server), send_and_run)
    assert (found.out, found.status) == (b"x" * 300_000, 3)
    assert (tmp_path / "target").read_bytes() == source.read_bytes()
    assert stat.S_IMODE((tmp_path / "target").stat().st_mode) == 0o600


def test_what_a_real_server_refuses_is_told_in_one_line(
    person: Person, server: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(HostRefusedError, match=r"not in known_hosts with this key \(it shows SHA256:"):
        on_host(_entry(server), _true)
    _trust(person, server)
    with pytest.raises(HostRefusedError, match="accepts none of your keys"):
        on_host(_entry(server, key=str(Person(tmp_path / "other").key)), _true)
    subprocess.run(["ssh-keygen", "-q", "-p", "-P", "", "-N", "secret", "-f", str(person.key)], check=True)
    entry = _entry(server, key=str(person.key))
    with pytest.raises(HostRefusedError, match="ssh-add"):
        on_host(entry, _true)
    agent = agent_with(person.key, "secret", tmp_path)
    try:
        monkeypatch.setenv("SSH_AUTH_SOCK", agent["SSH_AUTH_SOCK"])
        assert on_host(entry, _true).status == 0
    finally:
        os.kill(int(agent["SSH_AGENT_PID"]), signal.SIGTERM)


def test_a_real_server_without_forwarding_is_told_in_one_line(person: Person, tmp_path: Path) -> None:
    with sshd(tmp_path / "closed", Path(f"{person.key}.pub"), "AllowTcpForwarding no") as server:
        _trust(person, server)
        with pytest.raises(HostRefusedError, match="set AllowTcpForwarding yes"):
            on_host(_entry(server), lambda it: it.forward_there(1))


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
