"""The cluster over SSH: its workers come back, end with their connection, and hide the keys."""

import asyncio
import os
import queue
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dlbricks_tui import __version__
from dlbricks_tui.fleet.certificates import Certificates
from dlbricks_tui.fleet.hosts import HostEntry
from dlbricks_tui.fleet.ssh.cluster import (
    FleetCluster,
    HostWorker,
    LinkChanged,
    LinkState,
    seconds_before_retry,
    worker_command,
)
from dlbricks_tui.runs.launch import PACKAGE_PARENT
from tests.fleet.ssh_server import Person, SshServer, served

_SECONDS = 60.0


@pytest.fixture
def person(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Person:
    monkeypatch.setenv("HOME", str(tmp_path / "person"))
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    return Person(tmp_path / "person")


@pytest.fixture
def server(person: Person, tmp_path: Path) -> Iterator[SshServer]:
    home = tmp_path / "host"
    (home / "venv" / "bin").mkdir(parents=True)
    with served(SshServer(home, Path(f"{person.key}.pub"), {"PATH": os.environ["PATH"]})) as server:
        person.trusts(server)
        yield server


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    made = Certificates(tmp_path_factory.mktemp("fleet") / "certificates")
    made.create()
    return made


def test_the_wait_for_the_next_try_doubles_up_to_a_minute() -> None:
    assert [seconds_before_retry(failures, lambda: 1.0) for failures in (0, 1, 2, 5, 6, 1000)] == [1, 2, 4, 32, 60, 60]
    assert seconds_before_retry(3, lambda: 0.0) == 6


@pytest.mark.parametrize(
    ("folder", "begin"),
    [
        ("", "exec ~/.local/share/dlbricks/venv/bin/python -I"),
        ("~/my data", "exec ~/'my data/venv/bin/python' -I"),
        ("/data", "exec /data/venv/bin/python -I"),
    ],
)
def test_the_command_names_the_interpreter_of_the_host(folder: str, begin: str) -> None:
    assert worker_command(HostEntry(name="h", folder=folder)).startswith(begin)


@pytest.mark.parametrize(
    ("script", "state", "words"),
    [
        (None, LinkState.REFUSED, "dlbricks is not installed there: `dlbricks fleet doctor --hosts FILE --install`"),
        ("exec PYTHON -I -m dlbricks_nowhere", LinkState.REFUSED, "dlbricks is not installed there"),
        ('echo \'dlbricks-fleet: {"lacks": "distributed"}\'', LinkState.REFUSED, "its dlbricks lacks distributed"),
        ('echo \'dlbricks-fleet: {"dlbricks": "0.0.1"}\'', LinkState.REFUSED, f"0.0.1, and this machine {__version__}"),
        ('echo \'dlbricks-fleet: {"fault": "no space"}\'', LinkState.LOST, "its worker does not start: no space"),
        ("echo 'dlbricks-fleet: {'", LinkState.LOST, "something else than settings"),
        ("echo 'Segmentation fault' >&2; exit 139", LinkState.LOST, "its worker does not start: Segmentation fault"),
        pytest.param("yes", LinkState.LOST, "something else than settings", marks=pytest.mark.soak),
    ],
)
def test_a_worker_that_cannot_start_is_told_in_one_line(
    server: SshServer, certificates: Certificates, tmp_path: Path, script: str | None, state: LinkState, words: str
) -> None:
    if script is not None:
        _install(server.home, script.replace("PYTHON", sys.executable))
    told: list[LinkChanged] = []

    async def first_try() -> None:
        ended = asyncio.Event()

        def tell(change: LinkChanged) -> None:
            told.append(change)
            if change.state is not LinkState.CONNECTING:
                ended.set()

        worker = HostWorker("tls://127.0.0.1:1", "h", server.entry(), certificates, tmp_path / "h.log", tell)
        await worker
        await asyncio.wait_for(ended.wait(), _SECONDS)
        await worker.close()

    asyncio.run(first_try())
    assert [change.state for change in told] == [LinkState.CONNECTING, state]
    assert words in told[-1].message
    assert told[-1].message.isprintable()


def test_a_worker_whose_connection_is_cut_comes_back_under_its_name_and_nothing_stays_behind(
    server: SshServer, certificates: Certificates, tmp_path: Path
) -> None:
    from distributed import Client

    _install(server.home, f'PYTHONPATH= exec {sys.executable} "$@"')
    told: queue.SimpleQueue[LinkChanged] = queue.SimpleQueue()
    entry = server.entry()
    cluster = FleetCluster([entry], certificates, tmp_path / "logs", told.put)
    try:
        _until(told, LinkState.CONNECTED)
        with Client(cluster.scheduler_address, security=certificates.for_driver(), set_as_default=False) as client:
            first = _only_worker(client, entry.name)
            pid = client.submit(os.getpid, pure=False).result(_SECONDS)
            assert pid in server.pids
            _assert_hides_keys(pid, certificates)
            server.drop()
            _until(told, LinkState.LOST)
            _until(told, LinkState.CONNECTED)
            assert _only_worker(client, entry.name) != first
            assert client.submit(os.getpid, pure=False).result(_SECONDS) != pid
    finally:
        cluster.close()
    _wait(lambda: not any(_is_alive(pid) for pid in server.pids))
    left = [path for path in server.home.rglob("*") if path.is_file() and b"PRIVATE" in path.read_bytes()]
    assert left == []
    assert (tmp_path / "logs" / "h.log").is_file()


def test_a_process_ends_when_its_driver_is_silent_or_goes() -> None:
    code = (
        "import sys; sys.path[0] = sys.argv[1]\n"
        "from dlbricks_tui.fleet.ssh import host_worker as it\n"
        "it.SECONDS_OF_SILENCE = 0.2; it._SECONDS_TO_CLOSE = 0.1\n"
        "print('begun', flush=True)\n"
        "it._wait_for_silence(0.2, lambda: print('ended', flush=True))"
    )
    for goes in (False, True):
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(PACKAGE_PARENT)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        if goes:
            process.stdin.close()
        assert process.stdout.readline() == b"ended\n"
        assert process.wait(_SECONDS) == 1
        process.stdout.close()
        process.stdin.close()


def _install(home: Path, script: str) -> None:
    python = home / "venv" / "bin" / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)


def _until(told: "queue.SimpleQueue[LinkChanged]", state: LinkState) -> LinkChanged:
    while True:
        change = told.get(timeout=_SECONDS)
        assert change.state is not LinkState.REFUSED, change.message
        if change.state is state:
            return change


def _only_worker(client: "object", name: str) -> str:
    """Return the address of the only worker, once the scheduler knows it by its name."""
    found: list[str] = []

    def known() -> bool:
        workers = client.scheduler_info()["workers"]  # type: ignore[attr-defined]
        found[:] = [address for address, worker in workers.items() if worker["name"] == name]
        return len(workers) == len(found) == 1

    _wait(known)
    return found[0]


def _assert_hides_keys(pid: int, certificates: Certificates) -> None:
    """Check that other users see no secrets of a worker."""
    secret = certificates.of_hosts[-1].read_text().splitlines()[1].encode()
    for file in ("cmdline", "environ"):
        path = Path(f"/proc/{pid}/{file}")
        if path.exists():
            assert secret not in path.read_bytes()
            assert b"pem" not in path.read_bytes()


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _wait(done: Callable[[], bool]) -> None:
    give_up = time.monotonic() + _SECONDS
    while not done():
        assert time.monotonic() < give_up
        time.sleep(0.05)
