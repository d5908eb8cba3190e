"""SSH connections and the cluster over them, to a real server on the loopback, with another home folder for both."""

import asyncio
import os
import queue
import re
import socket
import stat
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import asyncssh
import pytest

from dlbricks_tui import __version__
from dlbricks_tui.fleet import cluster as cluster_module
from dlbricks_tui.fleet import engine as engine_module
from dlbricks_tui.fleet import ssh as connecting
from dlbricks_tui.fleet import worker as worker_module
from dlbricks_tui.fleet.cluster import FleetCluster, HostWorker, seconds_before_retry
from dlbricks_tui.fleet.driver import FleetPlace, execute_fleet
from dlbricks_tui.fleet.engine import HostUnreachable
from dlbricks_tui.fleet.request import FleetError, HostEntry
from dlbricks_tui.fleet.scheduler import Certificates, check_address
from dlbricks_tui.fleet.ssh import HostRefusedError, SshError, check_hosts
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.folder import State
from tests.fleet.cluster import ROOT
from tests.fleet.ssh_server import USER, Person, SshServer, is_alive, on_host, served
from tests.fleet.test_fleet import fleet_of
from tests.runs.killing import eventually


def _refused(entry: HostEntry, kind: type[FleetError] = HostRefusedError) -> str:
    with pytest.raises(kind) as caught:
        on_host(entry, lambda it: it.run("true", seconds=10))
    assert str(caught.value).isprintable()
    return str(caught.value)


def test_a_command_gets_its_input_and_tells_its_output_and_status(server: SshServer) -> None:
    found = on_host(server.entry(), lambda it: it.run("cat; echo wrong >&2; exit 3", b"x" * 500_000, seconds=30))
    assert (found.status, found.out, found.err) == (3, b"x" * 500_000, b"wrong\n")
    # One that reads no input is run all the same.
    assert on_host(server.entry(), lambda it: it.run("exit 4", b"x" * 5_000_000, seconds=30)).status == 4


def test_a_connection_that_a_busy_server_ends_is_tried_once_more(server: SshServer) -> None:
    server.refusals = 1
    assert on_host(server.entry(), lambda it: it.run("exit 4", seconds=30)).status == 4
    server.refusals = 2
    assert re.search("ended the connection|Connection reset by peer", _refused(server.entry(), SshError))


def test_a_command_that_takes_too_long_or_prints_too_much_is_an_error(server: SshServer) -> None:
    with pytest.raises(SshError, match="longer than 0 seconds there: sleep 60"):
        on_host(server.entry(), lambda it: it.run("sleep 60", seconds=0.1))
    with pytest.raises(SshError, match="prints more than"):
        on_host(server.entry(), lambda it: it.run("yes", seconds=30))


def test_a_file_is_sent_for_the_user_only_and_a_full_disk_told(server: SshServer, tmp_path: Path) -> None:
    source, target = tmp_path / "source", server.home / "a target's name"
    source.write_bytes(bytes(range(256)) * 4000)
    on_host(server.entry(), lambda it: it.send(source, str(target)))
    assert target.read_bytes() == source.read_bytes()
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    with pytest.raises(SshError, match=r"source cannot be written to /dev/full: .*No space left on device"):
        on_host(server.entry(), lambda it: it.send(source, "/dev/full"))


@pytest.mark.parametrize("lax", ["", "Host *\n StrictHostKeyChecking no\n UserKnownHostsFile none\n"])
def test_a_server_with_an_unknown_key_is_refused_whatever_the_configuration_says(
    person: Person, unknown_server: SshServer, lax: str
) -> None:
    person.configure(lax)
    told = _refused(unknown_server.entry())
    assert unknown_server.host_key.get_fingerprint() in told
    assert f"`ssh -p {unknown_server.port} {USER}@127.0.0.1 true`" in told
    assert unknown_server.commands == []


def test_a_server_with_another_key_than_before_is_refused(person: Person, unknown_server: SshServer) -> None:
    known, unknown_server.host_key = unknown_server.host_key, asyncssh.generate_private_key("ssh-ed25519")
    person.trusts(unknown_server)
    unknown_server.host_key = known
    assert "not in known_hosts with this key" in _refused(unknown_server.entry())
    (person.home / ".ssh" / "known_hosts").unlink()
    unknown_server.host_key = asyncssh.generate_private_key("ecdsa-sha2-nistp256")
    person.trusts(unknown_server)
    assert "none of the keys that known_hosts has" in _refused(unknown_server.entry())


def test_the_first_host_that_ssh_refuses_is_named_in_one_line(person: Person, unknown_server: SshServer) -> None:
    with pytest.raises(HostRefusedError) as caught:
        check_hosts([unknown_server.entry(name=name) for name in ("one", "two", "three")])
    told = str(caught.value)
    assert told.startswith(f"one: 127.0.0.1 port {unknown_server.port} is not in known_hosts with this key")
    assert told.endswith("(and 2 more: `dlbricks fleet doctor --hosts FILE`)")
    person.trusts(unknown_server)
    check_hosts([])

    async def in_a_notebook() -> None:
        check_hosts([unknown_server.entry(), unknown_server.entry(name="two")])

    asyncio.run(in_a_notebook())


def test_hosts_that_may_come_back_keep_nobody_waiting(server: SshServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connecting, "_SECONDS_TO_CHECK", 0.2)
    with socket.socket() as silent, socket.socket() as closed:
        for each in (silent, closed):
            each.bind(("127.0.0.1", 0))
        silent.listen()
        ports = [each.getsockname()[1] for each in (silent, closed)]
        away = [server.entry(name=f"h{port}", port=port) for port in ports]
        check_hosts([server.entry(), *away])
        check_hosts(away)
        # One that is there is enough.
        check_hosts([server.entry(), away[1]], needs_one=True)
        with pytest.raises(HostRefusedError, match=rf"h{ports[1]}: .* no SSH server answers"):
            check_hosts(away[1:], needs_one=True)


def test_a_key_that_the_server_does_not_accept_is_refused_and_one_with_a_passphrase_needs_the_agent(
    person: Person, server: SshServer, tmp_path: Path
) -> None:
    told = _refused(server.entry(key=str(Person(tmp_path / "other").key)))
    assert told.endswith(f"accepts none of your keys for {USER}: correct user and key in the hosts file")
    private = asyncssh.read_private_key(str(person.key))
    private.write_private_key(str(person.key), "pkcs8-pem", passphrase="secret")
    assert f"`ssh-add {person.key}`" in _refused(server.entry(key=str(person.key)))
    assert "keys with a passphrase need ssh-add" in _refused(server.entry())


def test_an_agent_is_asked_for_the_key_of_the_host_only(
    person: Person, server: SshServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    connect = asyncssh.connect

    def asking(*given: Any, **options: Any) -> Any:
        asked.append(options["agent_identities"])
        return connect(*given, **options)

    monkeypatch.setattr(asyncssh, "connect", asking)
    for key in (str(person.key), ""):
        on_host(server.entry(key=key), lambda it: it.run("true", seconds=30))
    assert asked == [[f"{person.key}.pub"], ()]


def test_jump_hosts_are_read_as_openssh_reads_them() -> None:
    hops = connecting._jumps(HostEntry(name="h"), "ssh://me@gate:2200, me@[::1]:2200, [fe80::1], ssh://inner/")
    assert [(it.user, it.address, it.port) for it in hops] == [
        ("me", "gate", 2200),
        ("me", "::1", 2200),
        ("", "fe80::1", None),
        ("", "inner", None),
    ]


def test_a_host_is_reached_through_the_jump_host_of_the_hosts_file(
    person: Person, unknown_server: SshServer, tmp_path: Path
) -> None:
    with served(SshServer(tmp_path, Path(f"{person.key}.pub"), {})) as jump:
        entry = unknown_server.entry(jump=f"{USER}@127.0.0.1:{jump.port}")
        assert f"jump host 127.0.0.1 port {jump.port} is not in known_hosts" in _refused(entry)
        person.trusts(jump)
        told = _refused(entry)
        assert f"`ssh -p {unknown_server.port} -J {USER}@127.0.0.1:{jump.port} {USER}@127.0.0.1 true`" in told
        person.trusts(unknown_server)
        assert on_host(entry, lambda it: it.run("echo there", seconds=30)).out == b"there\n"
        assert jump.commands == []
        jump.forwards = False
        assert "cannot be reached from the jump host" in _refused(entry, SshError)


def test_a_host_is_reached_as_the_ssh_configuration_says(
    person: Person, unknown_server: SshServer, tmp_path: Path
) -> None:
    key = tmp_path / "key"
    person.key.rename(key)
    with served(SshServer(tmp_path, Path(f"{person.key}.pub"), {})) as jump:
        person.trusts(jump)
        person.trusts(unknown_server)
        person.configure(
            f"Host gate inner\n HostName 127.0.0.1\n User {USER}\n IdentityFile ~/.ssh/absent\n IdentityFile {key}\n"
            f"Host gate\n Port {jump.port}\nHost inner\n Port {unknown_server.port}\n ProxyJump gate\n"
        )
        assert on_host(HostEntry(name="inner"), lambda it: it.run("echo there", seconds=30)).out == b"there\n"
        assert len(jump.connections) == 1
        # The hosts file goes first.
        on_host(HostEntry(name="inner", jump="none"), lambda it: it.run("true", seconds=30))
        assert len(jump.connections) == 1


@pytest.mark.parametrize(
    ("configuration", "said"),
    [
        ("Host a\n ProxyJump b\nHost b\n ProxyJump a\n", "more than 8 jump hosts"),
        ("Host a\n Port many\n", "your SSH configuration cannot be read"),
    ],
)
def test_a_configuration_that_leads_nowhere_is_refused(person: Person, configuration: str, said: str) -> None:
    person.configure(configuration)
    assert said in _refused(HostEntry(name="a"))


def test_a_server_that_forwards_no_ports_is_refused(server: SshServer) -> None:
    server.forwards = False
    with pytest.raises(HostRefusedError, match="set AllowTcpForwarding yes"):
        on_host(server.entry(), lambda it: it.forward_there(1))


def test_a_connection_that_is_cut_while_a_port_is_asked_for_is_tried_again(
    server: SshServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(*_: object) -> bool:
        for connection in server.connections:
            connection.abort()
        return False

    monkeypatch.setattr(server, "server_requested", cut)
    with pytest.raises(SshError, match="the connection ended"):
        on_host(server.entry(), lambda it: it.forward_there(1))


_SECONDS = 60.0


def test_the_wait_for_the_next_try_doubles_up_to_a_minute() -> None:
    assert [seconds_before_retry(failures, lambda: 1.0) for failures in (0, 1, 2, 5, 6, 1000)] == [1, 2, 4, 32, 60, 60]
    assert seconds_before_retry(3, lambda: 0.0) == 6


@pytest.mark.parametrize(
    ("script", "is_final", "words"),
    [
        (None, True, "): `dlbricks fleet doctor --hosts FILE --install`"),
        ("exec PYTHON -I -m dlbricks_nowhere", True, "dlbricks is not installed there"),
        ("echo 'dlbricks-fleet: 0.0.1 1 2'", True, f"0.0.1, and this machine {__version__}"),
        ("echo 'dlbricks-fleet: {'", False, "something else than settings"),
        (f"echo 'dlbricks-fleet: {__version__} 1 99999'", False, "something else than settings"),
        ("echo 'Segmentation fault' >&2; exit 139", False, "its worker does not start: Segmentation fault"),
        ("yes | head -n 201", False, "something else than settings"),
        (
            f"touch HOME/dask; cd {ROOT}; exec PYTHON -m dlbricks_tui.fleet.worker",
            True,
            "/dask: File exists; free some",
        ),
    ],
)
def test_a_worker_that_cannot_start_is_told_in_one_line(
    server: SshServer, certificates: Certificates, tmp_path: Path, script: str | None, is_final: bool, words: str
) -> None:
    if script is not None:
        _install(server.home, script.replace("PYTHON", sys.executable).replace("HOME", str(server.home)))
    told: list[HostUnreachable] = []

    async def first_try() -> None:
        ended = asyncio.Event()

        def tell(change: HostUnreachable) -> None:
            told.append(change)
            ended.set()

        worker = HostWorker("tls://127.0.0.1:1", "h", server.entry(), certificates, tmp_path, tell)
        await worker
        await asyncio.wait_for(ended.wait(), _SECONDS)
        await worker.close()

    asyncio.run(first_try())
    assert [change.is_final for change in told] == [is_final]
    assert words in told[-1].reason
    assert told[-1].reason.isprintable()


def test_a_worker_whose_connection_is_cut_comes_back_under_its_name_and_nothing_stays_behind(
    server: SshServer, certificates: Certificates, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from distributed import Client

    monkeypatch.setattr(cluster_module, "_SECONDS_BEFORE_RETRY", 0.05)

    _install(server.home, f'PYTHONPATH= exec {sys.executable} "$@"')
    told: queue.SimpleQueue[HostUnreachable] = queue.SimpleQueue()
    entry = server.entry()
    cluster = FleetCluster([entry], certificates, tmp_path / "logs", told.put)
    try:
        with Client(cluster.scheduler_address, security=certificates.for_driver(), set_as_default=False) as client:
            first = _only_worker(client, entry.name)
            pid = client.submit(os.getpid, pure=False).result(_SECONDS)
            assert pid in server.pids
            # Other users see no secrets of a worker.
            secret = certificates.of_hosts[-1].read_text().splitlines()[1].encode()
            for path in (Path(f"/proc/{pid}/{file}") for file in ("cmdline", "environ")):
                assert not path.exists() or (secret not in path.read_bytes() and b"pem" not in path.read_bytes())
            server.drop()
            assert not told.get(timeout=_SECONDS).is_final
            eventually(lambda: _only_worker(client, entry.name) != first)
            assert client.submit(os.getpid, pure=False).result(_SECONDS) != pid
    finally:
        cluster.close()
    eventually(lambda: not any(is_alive(pid) for pid in server.pids))
    left = [path for path in server.home.rglob("*") if path.is_file() and b"PRIVATE" in path.read_bytes()]
    assert left == []
    assert (tmp_path / "logs" / "h.log").is_file()


@pytest.mark.soak
def test_a_host_that_is_reached_over_ssh_measures_a_model(server: SshServer, tmp_path: Path) -> None:
    _install(server.home, f'PYTHONPATH= exec {sys.executable} "$@"')
    data = DataFolder(tmp_path / "home")
    folder = fleet_of(tmp_path, data, hosts=(server.entry(),))
    state = execute_fleet(folder, FleetPlace(data))
    assert (state.state, state.message, state.bricks.measured) == (State.FINISHED, "", 6)


@pytest.mark.parametrize("goes", [False, True], ids=["silent", "gone"])
def test_a_process_ends_when_its_driver_is_silent_or_goes(monkeypatch: pytest.MonkeyPatch, goes: bool) -> None:
    told: list[object] = []
    monkeypatch.setattr(worker_module, "_SECONDS_TO_CLOSE", 0.001)
    monkeypatch.setattr(os, "_exit", told.append)
    before = os.dup(0)
    read, write = os.pipe()
    os.dup2(read, 0)
    try:
        os.write(write, b"\n")
        if goes:
            os.close(write)
        # A silent driver is waited for that long, and one that has gone not at all.
        worker_module._wait_for_silence(_SECONDS if goes else 0.01, lambda: told.append("ended"))
    finally:
        os.dup2(before, 0)
        for file in (before, read, *(() if goes else (write,))):
            os.close(file)
    assert told == ["ended", 1]


def _install(home: Path, script: str) -> None:
    python = home / "venv" / "bin" / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)


def _only_worker(client: "object", name: str) -> str:
    """Return the address of the only worker, once the scheduler knows it by its name."""
    found: list[str] = []

    def known() -> bool:
        workers = client.scheduler_info()["workers"]  # type: ignore[attr-defined]
        found[:] = [address for address, worker in workers.items() if worker["name"] == name]
        return len(workers) == len(found) == 1

    eventually(known)
    return found[0]


def test_variables_that_dask_sets_for_its_workers_do_not_reach_measuring_processes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import dask.config
    import distributed  # noqa: F401

    presets = dask.config.get("distributed.nanny.pre-spawn-environ")
    assert "OMP_NUM_THREADS" in presets
    for name, value in presets.items():
        monkeypatch.setenv(name, str(value))
    monkeypatch.setenv("OMP_PROC_BIND", "true")
    monkeypatch.setattr(engine_module, "import_module", lambda _: SimpleNamespace(report=lambda _: "{}"))
    assert engine_module.here("report") == "{}"
    assert not presets.keys() & os.environ.keys()
    # The user's own are kept.
    assert os.environ["OMP_PROC_BIND"] == "true"
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    engine_module.here("report")
    assert os.environ["OMP_NUM_THREADS"] == "4"


def test_a_worker_wakes_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    from tornado.ioloop import PeriodicCallback

    monkeypatch.setattr(engine_module, "HEARTBEAT_SECONDS", 0.1)
    beats: list[str] = []

    async def heartbeat() -> None:
        beats.append("rare")

    async def live() -> dict[str, PeriodicCallback]:
        names = {"tick": 20.0, "ticks": 20.0, "monitor": 20.0, "heartbeat": 20.0, "keep-alive": 60_000.0}
        callbacks = {name: PeriodicCallback(lambda: None, interval) for name, interval in names.items()}
        for each in callbacks.values():
            each.start()
        # Every driver asks for it.
        for _ in range(2):
            engine_module.calm(SimpleNamespace(periodic_callbacks=callbacks, heartbeat=heartbeat))
        while not beats:
            await asyncio.sleep(0.01)
        return callbacks

    callbacks = asyncio.run(live())
    running = {name: it.callback_time for name, it in callbacks.items() if it.is_running()}
    assert running == {"monitor": 100, "keep-alive": 60_000, "rare heartbeat": 100}


OPEN = "neither encryption nor certificates"
NONE = "is no address of a scheduler: write it like tls:"


@pytest.mark.parametrize(
    ("address", "fault"),
    [
        *((it, "") for it in ("tls://10.0.0.1:8786", "tcp://127.0.0.1:1", "tcp://[::1]:1", "tcp://localhost:1")),
        *((it, OPEN) for it in ("tcp://10.0.0.1:8786", "tcp://0.0.0.0:8786", "tcp://bench.example.com:8786")),
        *((it, NONE) for it in ("", "10.0.0.1:8786", "tls://", "tls://host", "tls://host:99999", "ws://host:1")),
        ("tls://[:1", NONE),
    ],
)
def test_an_address_has_tls_or_is_on_the_loopback_unless_the_user_allows_others(address: str, fault: str) -> None:
    if not fault:
        assert check_address(address, allow_plain=False).port
        return
    with pytest.raises(FleetError, match=fault):
        check_address(address, allow_plain=False)
    if fault is OPEN:
        assert check_address(address, allow_plain=True).scheme == "tcp"
