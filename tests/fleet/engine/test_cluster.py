"""The cluster over SSH: its workers come back, end with their connection, and hide the keys; what dask calls there."""

import asyncio
import os
import queue
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dlbricks_tui import __version__
from dlbricks_tui.fleet.certificates import Certificates
from dlbricks_tui.fleet.engine import cluster as cluster_module
from dlbricks_tui.fleet.engine import on_worker
from dlbricks_tui.fleet.engine import worker as worker_module
from dlbricks_tui.fleet.engine.cluster import FleetCluster, HostWorker, seconds_before_retry
from dlbricks_tui.fleet.engine.engine import HostUnreachable
from dlbricks_tui.fleet.engine.scheduler import check_address
from dlbricks_tui.fleet.errors import FleetError, HostError
from tests.fleet.ssh_server import SshServer, is_alive
from tests.runs.killing import eventually

_SECONDS = 60.0


def test_the_wait_for_the_next_try_doubles_up_to_a_minute() -> None:
    assert [seconds_before_retry(failures, lambda: 1.0) for failures in (0, 1, 2, 5, 6, 1000)] == [1, 2, 4, 32, 60, 60]
    assert seconds_before_retry(3, lambda: 0.0) == 6


@pytest.mark.parametrize(
    ("script", "is_final", "words"),
    [
        (None, True, "dlbricks is not installed there: `dlbricks fleet doctor --hosts FILE --install`"),
        ("exec PYTHON -I -m dlbricks_nowhere", True, "dlbricks is not installed there"),
        ('echo \'dlbricks-fleet: {"lacks": "distributed"}\'', True, "its dlbricks lacks distributed"),
        ('echo \'dlbricks-fleet: {"dlbricks": "0.0.1"}\'', True, f"0.0.1, and this machine {__version__}"),
        ("echo 'dlbricks-fleet: {'", False, "something else than settings"),
        ("echo 'Segmentation fault' >&2; exit 139", False, "its worker does not start: Segmentation fault"),
        ("yes | head -n 201", False, "something else than settings"),
    ],
)
def test_a_worker_that_cannot_start_is_told_in_one_line(
    server: SshServer, certificates: Certificates, tmp_path: Path, script: str | None, is_final: bool, words: str
) -> None:
    if script is not None:
        _install(server.home, script.replace("PYTHON", sys.executable))
    told: list[HostUnreachable] = []

    async def first_try() -> None:
        ended = asyncio.Event()

        def tell(change: HostUnreachable) -> None:
            told.append(change)
            ended.set()

        worker = HostWorker("tls://127.0.0.1:1", "h", server.entry(), certificates, tmp_path / "h.log", tell)
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
            _assert_hides_keys(pid, certificates)
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


def _assert_hides_keys(pid: int, certificates: Certificates) -> None:
    """Check that other users see no secrets of a worker."""
    secret = certificates.of_hosts[-1].read_text().splitlines()[1].encode()
    for file in ("cmdline", "environ"):
        path = Path(f"/proc/{pid}/{file}")
        if path.exists():
            assert secret not in path.read_bytes()
            assert b"pem" not in path.read_bytes()


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
    monkeypatch.setattr(on_worker, "_at_host", lambda: SimpleNamespace(report=lambda _: "{}"))
    assert on_worker.call("report") == "answer {}"
    assert not presets.keys() & os.environ.keys()
    # The user's own are kept.
    assert os.environ["OMP_PROC_BIND"] == "true"
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    on_worker.call("report")
    assert os.environ["OMP_NUM_THREADS"] == "4"


@pytest.mark.parametrize("text", [b"answer {}", None, "", "{}", "answers {}", "answer " + 100 * "x"])
def test_an_answer_in_another_form_is_refused(text: object) -> None:
    with pytest.raises(HostError, match="the host answered with something else"):
        on_worker.answer_in(text, 50)


def test_an_answer_is_told_from_an_error() -> None:
    assert on_worker.answer_in('answer {"a": 1}', 50) == '{"a": 1}'
    with pytest.raises(HostError, match="no space left"):
        on_worker.answer_in("error no space left", 50)


class Callback:
    """A periodic callback that notes if it runs."""

    def __init__(self) -> None:
        self.running = True
        self.callback_time = 20.0

    def is_running(self) -> bool:
        return self.running

    def start(self) -> None:
        self.running = True

    def stop(self) -> None:
        self.running = False


def worker_of(callbacks: dict[str, Any]) -> Any:
    """Return a worker with some callbacks."""
    return SimpleNamespace(periodic_callbacks=callbacks, status=SimpleNamespace(name="running"))


def test_a_worker_wakes_rarely_and_its_heartbeats_end_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(on_worker, "HEARTBEAT_SECONDS", 0.1)
    callbacks = {name: Callback() for name in ("tick", "ticks", "monitor", "heartbeat", "keep-alive")}
    callbacks["keep-alive"].callback_time = 60_000
    beats: list[str] = []

    async def live() -> None:
        worker = worker_of(callbacks)

        async def heartbeat() -> None:
            beats.append(worker.status.name)
            worker.status.name = "closed"

        worker.heartbeat = heartbeat
        # Every driver asks for it.
        for _ in range(2):
            on_worker.calm(worker)
        await asyncio.sleep(0.35)

    asyncio.run(live())
    assert beats == ["running"]
    assert [name for name, it in callbacks.items() if not it.running] == ["tick", "ticks", "heartbeat"]
    assert (callbacks["monitor"].callback_time, callbacks["keep-alive"].callback_time) == (100, 60_000)


@pytest.mark.parametrize("address", ["tls://10.0.0.1:8786", "tcp://127.0.0.1:1", "tcp://[::1]:1", "tcp://localhost:1"])
def test_an_address_with_tls_or_on_the_loopback_is_used(address: str) -> None:
    assert check_address(address, allow_plain=False).port


def test_an_address_without_tls_needs_leave_if_others_can_reach_it() -> None:
    for address in ("tcp://10.0.0.1:8786", "tcp://0.0.0.0:8786", "tcp://bench.example.com:8786"):
        with pytest.raises(FleetError, match="neither encryption nor certificates"):
            check_address(address, allow_plain=False)
        assert check_address(address, allow_plain=True).scheme == "tcp"


@pytest.mark.parametrize(
    "address", ["", "10.0.0.1:8786", "tls://", "tls://host", "tls://host:99999", "ws://host:1", "tls://[:1"]
)
def test_what_is_no_address_is_told_in_one_line(address: str) -> None:
    with pytest.raises(FleetError, match="is no address of a scheduler: write it like tls:"):
        check_address(address, allow_plain=False)
