"""The engine on a real dask scheduler and real workers, over TLS on loopback, as processes; hosts sleep."""

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.fleet import engine as engine_module
from dlbricks_tui.fleet import scheduler
from dlbricks_tui.fleet.engine import (
    Engine,
    HostAnswered,
    HostJoined,
    HostLeft,
    HostSaid,
    News,
    fault_of,
    name_of,
)
from dlbricks_tui.fleet.messages import Parcel, Task
from dlbricks_tui.fleet.request import FleetError
from dlbricks_tui.fleet.scheduler import Certificates, set_up
from dlbricks_tui.folders import DATA_FOLDER_VARIABLE
from tests.fleet.cluster import ROOT, SchedulerProcess
from tests.fleet.fake_hosts import REQUEST
from tests.runs.killing import eventually

pytest.importorskip("distributed")

HOST = "tests.fleet.sleeping_host"
HOSTS = ("one", "two")
PATIENCE_SECONDS = 60.0
PARCEL = Parcel(sha256="a" * 64, suffix=".onnx", content=b"layers")


class Cluster(SchedulerProcess):
    """A scheduler, its workers by name, whose hosts sleep, and an engine that is connected to them."""

    def start_worker(self, name: str) -> None:
        data = {DATA_FOLDER_VARIABLE: str(self.data_of(name))}
        self.start_process(name, [HOST, self.address, name, str(self.certificates.folder)], data)

    def data_of(self, name: str) -> Path:
        return self.path / f"data of {name}"

    def engine(self) -> Engine:
        set_up()
        return Engine(self.address, self.certificates.for_driver())


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, certificates: Certificates) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path_factory.mktemp("cluster"), certificates)
    try:
        cluster.start_scheduler()
        for name in HOSTS:
            cluster.start_worker(name)
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="module")
def engine(cluster: Cluster) -> Iterator[Engine]:
    engine = cluster.engine()
    engine.start()
    joined = {next_news(engine, HostJoined) for _ in HOSTS}
    assert joined == {*map(HostJoined, HOSTS)}
    yield engine
    engine.close()


def next_news(engine: Engine, *kinds: type[News]) -> Any:
    """Return the next news of some kinds; others before it are dropped."""
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        found = list(engine.wait(0.1))
        while found:
            if isinstance(event := found.pop(0), kinds):
                for later in found:
                    engine.events.put(later)
                return event
    raise TimeoutError


def reported(engine: Engine, host: str) -> HostAnswered | HostLeft:
    """Ask a host for its report."""
    engine.report(host)
    found: HostAnswered | HostLeft = next_news(engine, HostAnswered, HostLeft)
    return found


def task(*words: str) -> Task:
    """Return a task; the words after its name say what the host does."""
    return Task(id=" ".join(words), request=REQUEST, bricks=("b",))


def carried_out(engine: Engine, host: str, *words: str, parcel: Parcel = PARCEL) -> HostAnswered:
    """Let a host carry out a task, and return its end."""
    engine.carry_out(host, task(*words), [parcel])
    found: HostAnswered = next_news(engine, HostAnswered)
    return found


def started(cluster: Cluster, host: str) -> list[str]:
    file = cluster.data_of(host) / "started"
    return file.read_text().splitlines() if file.exists() else []


def test_a_host_gets_parcels_with_its_task_and_others_of_the_fleet_go_on(cluster: Cluster, engine: Engine) -> None:
    second = cluster.engine()
    second.start()
    next_news(second, HostJoined)
    assert carried_out(second, "one", "parcel").error == ""
    assert (cluster.data_of("one") / PARCEL.sha256).read_bytes() == PARCEL.content
    second.close()
    found = reported(engine, "one")
    assert isinstance(found, HostAnswered) and found.error == ""
    assert json.loads(found.text)["data"] == str(cluster.data_of("one"))


def test_messages_of_a_task_come_in_order_before_its_end(engine: Engine) -> None:
    engine.carry_out("two", task("talk", "messages=5", "seconds=0.05"), [PARCEL])
    said = []
    while isinstance(event := next_news(engine, HostSaid, HostAnswered), HostSaid):
        assert event.host == "two"
        said.append(json.loads(event.text)["number"])
    assert said == [0, 1, 2, 3, 4]
    assert json.loads(event.text) == {"ended": "talk"}


def test_errors_of_a_host_are_one_line(engine: Engine) -> None:
    other = Parcel(sha256="b" * 64, suffix=".exe", content=b"")
    assert carried_out(engine, "one", "refused", parcel=other) == HostAnswered(
        "one", "refused", "", "a parcel is no model file of any kind"
    )
    assert carried_out(engine, "one", "fault", "fault=of").error == "ZeroDivisionError: of the host"


def test_hosts_work_at_the_same_time_and_a_task_is_controlled_while_it_runs(cluster: Cluster, engine: Engine) -> None:
    tasks = {host: task(f"long-{host}", "seconds=600") for host in HOSTS}
    for host in HOSTS:
        engine.carry_out(host, tasks[host], [PARCEL])
    eventually(lambda: all(f"long-{host}" in started(cluster, host) for host in HOSTS))
    for host in HOSTS:
        engine.control(host, tasks[host].id, "cancel")
    ended = {next_news(engine, HostAnswered) for _ in HOSTS}
    assert ended == {HostAnswered(host, tasks[host].id, json.dumps({"ended": f"long-{host}"})) for host in HOSTS}


def test_what_hosts_print_does_not_reach_the_terminal(engine: Engine, capfd: pytest.CaptureFixture[str]) -> None:
    carried_out(engine, "one", "print", "prints=\x1b]0;host\x07", "messages=1", "seconds=0.05")
    assert capfd.readouterr() == ("", "")


def test_a_host_that_dies_loses_its_task_once_and_is_found_again(
    cluster: Cluster, engine: Engine, capfd: pytest.CaptureFixture[str]
) -> None:
    engine.carry_out("two", task("lethal", "seconds=600"), [PARCEL])
    engine.report("two")
    eventually(lambda: "lethal" in started(cluster, "two"))
    cluster.end_process("two")
    # There is no news of its task and the report, but that they may be lost.
    assert next_news(engine, HostLeft, HostAnswered) == HostLeft("two")
    assert reported(engine, "two") == HostLeft("two", is_gone=False)
    # The others go on.
    assert reported(engine, "one") == reported(engine, "one")
    cluster.start_worker("two")
    assert next_news(engine, HostJoined) == HostJoined("two")
    assert isinstance(reported(engine, "two"), HostAnswered)
    assert started(cluster, "two").count("lethal") == 1
    assert engine.wait(0.2) == []
    assert capfd.readouterr() == ("", "")


def test_a_worker_that_may_run_several_tasks_at_once_is_refused() -> None:
    assert fault_of({"name": "right", "nthreads": 1}) == ""
    assert "runs up to 8 tasks at once" in fault_of({"name": "wide", "nthreads": 8})
    assert fault_of({"nthreads": "\x1b[2J"}).isprintable()
    assert name_of({"name": "\x1b[2J"}) == "\\x1b[2J"


def refusal(address: str, certificates: Certificates | None) -> str:
    """Return the line with which an engine refuses to start."""
    set_up()
    engine = Engine(address, None if certificates is None else certificates.for_driver())
    with pytest.raises(FleetError) as found:
        engine.start()
    engine.close()
    assert "\n" not in str(found.value)
    return str(found.value)


def test_a_scheduler_of_another_fleet_or_of_none_is_refused_in_one_line(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stranger = Certificates(tmp_path / "other")
    stranger.create()
    assert "is of another fleet: its certificate is not signed by" in refusal(cluster.address, stranger)
    # This one trusts the scheduler, which does not trust it.
    (tmp_path / "other" / "authority.pem").write_bytes(cluster.certificates.authority.read_bytes())
    assert "refuses the certificate of this machine" in refusal(cluster.address, stranger)
    monkeypatch.setattr(scheduler, "_SECONDS_TO_GREET", 0.1)
    assert "try tls://" in refusal(cluster.address.replace("tls:", "tcp:"), None)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        assert "nothing answers at" in refusal(f"tls://127.0.0.1:{port}", cluster.certificates)


@pytest.mark.soak
def test_a_name_is_given_once_in_a_fleet(cluster: Cluster, engine: Engine) -> None:
    command = [sys.executable, "-m", HOST, cluster.address, "one", str(cluster.certificates.folder)]
    second = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert second.returncode == 1
    assert second.stderr == "the fleet has a host named one already: choose another --name\n"


def test_a_worker_and_the_engine_return_to_a_scheduler_that_was_away_and_end_soon_if_it_hangs(
    cluster: Cluster, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.end_process("")
    assert {next_news(engine, HostLeft) for _ in HOSTS} == {*map(HostLeft, HOSTS)}
    # Soon enough for the first try of each to return.
    address = cluster.address
    cluster.start_scheduler()
    assert cluster.address == address
    assert {next_news(engine, HostJoined) for _ in HOSTS} == {*map(HostJoined, HOSTS)}
    assert isinstance(reported(engine, "one"), HostAnswered)
    # Another driver and a worker end although the scheduler hangs.
    monkeypatch.setattr(engine_module, "_SECONDS_TO_CLOSE", 1.1)
    cluster.processes[""].send_signal(signal.SIGSTOP)
    begin = time.monotonic()
    engine.close()
    cluster.processes["one"].terminate()
    assert cluster.processes["one"].wait(PATIENCE_SECONDS) == 0
    # Each waits for a few seconds at most; the machine may be busy.
    assert time.monotonic() - begin < 30
