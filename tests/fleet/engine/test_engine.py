"""The engine on a real dask scheduler and real workers, over TLS on loopback, as processes; hosts sleep."""

import json
import os
import queue
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dlbricks_tui.fleet.certificates import Certificates
from dlbricks_tui.fleet.engine import engine as engine_module
from dlbricks_tui.fleet.engine import scheduler as scheduler_module
from dlbricks_tui.fleet.engine import scheduler_address
from dlbricks_tui.fleet.engine.engine import Answered, Engine, EngineEvent, HostJoined, HostLeft, HostSaid
from dlbricks_tui.fleet.engine.scheduler import SchedulerProcess
from dlbricks_tui.fleet.errors import FleetError
from dlbricks_tui.fleet.messages import Parcel
from dlbricks_tui.folders import DATA_FOLDER_VARIABLE
from tests.runs.killing import eventually

pytest.importorskip("distributed")

ROOT = Path(__file__).parents[3]
HOST = (sys.executable, "-m", "tests.fleet.sleeping_host")
HOSTS = ("one", "two")
PATIENCE_SECONDS = 60.0
PARCEL = Parcel(sha256="a" * 64, suffix=".onnx", content=b"layers")


@dataclass
class Cluster:
    """A scheduler, its workers by name, and an engine that is connected to them."""

    path: Path
    certificates: Certificates
    scheduler: SchedulerProcess
    address: str
    workers: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    def start_worker(self, name: str) -> None:
        with (self.path / "worker.log").open("ab") as log:
            self.workers[name] = subprocess.Popen(
                [*HOST, self.address, "--name", name, "--certificates", str(self.certificates.folder)],
                cwd=ROOT,
                env={**os.environ, DATA_FOLDER_VARIABLE: str(self.data_of(name))},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def restart_scheduler(self) -> str:
        port = int(self.address.rpartition(":")[2])
        self.scheduler = SchedulerProcess(self.certificates, self.path / "scheduler.log", port)
        return self.scheduler.start()

    def data_of(self, name: str) -> Path:
        return self.path / f"data of {name}"

    def engine(self) -> Engine:
        return Engine(self.address, self.certificates.for_driver())

    def stop(self) -> None:
        self.scheduler.close()
        for process in self.workers.values():
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    path = tmp_path_factory.mktemp("cluster")
    certificates = Certificates(path / "certificates")
    certificates.create()
    scheduler = SchedulerProcess(certificates, path / "scheduler.log")
    cluster = Cluster(path, certificates, scheduler, scheduler.start())
    try:
        for name in HOSTS:
            cluster.start_worker(name)
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture(scope="module")
def engine(cluster: Cluster) -> Iterator[Engine]:
    engine = cluster.engine()
    engine.start()
    joined = {next_event(engine, HostJoined) for _ in HOSTS}
    assert joined == {HostJoined(host) for host in HOSTS}
    yield engine
    engine.close()


def next_event(engine: Engine, kind: type[EngineEvent]) -> EngineEvent:
    """Return the next event of a kind; events of other kinds before it are dropped."""
    while True:
        event = engine.events.get(timeout=PATIENCE_SECONDS)
        if isinstance(event, kind):
            return event


def answer(engine: Engine, call: str) -> Answered:
    """Return the answer of a call."""
    while True:
        event = next_event(engine, Answered)
        assert isinstance(event, Answered)
        if event.call == call:
            return event


def task(name: str, **how: object) -> str:
    return json.dumps({"id": name, **how})


def started(cluster: Cluster, host: str) -> list[str]:
    file = cluster.data_of(host) / "started"
    return file.read_text().splitlines() if file.exists() else []


def test_a_host_is_asked_for_its_report(cluster: Cluster, engine: Engine) -> None:
    found = answer(engine, engine.report("one"))
    assert found.error == ""
    assert json.loads(found.text)["data"] == str(cluster.data_of("one"))
    assert (found.host, found.error, found.lost) == ("one", "", False)


def test_a_host_gets_a_parcel_that_it_lacks(cluster: Cluster, engine: Engine) -> None:
    assert json.loads(answer(engine, engine.missing("one", [PARCEL.sha256])).text) == [PARCEL.sha256]
    assert answer(engine, engine.send("one", PARCEL)).error == ""
    assert json.loads(answer(engine, engine.missing("one", [PARCEL.sha256])).text) == []
    assert (cluster.data_of("one") / PARCEL.sha256).read_bytes() == PARCEL.content


def test_messages_of_a_task_come_in_order_before_its_answer(engine: Engine) -> None:
    answer(engine, engine.send("two", PARCEL))
    call = engine.carry_out("two", task("talk", messages=5, seconds=0.05))
    said = []
    while True:
        event = engine.events.get(timeout=PATIENCE_SECONDS)
        if isinstance(event, Answered):
            break
        assert isinstance(event, HostSaid)
        assert (event.host, event.call) == ("two", call)
        said.append(json.loads(event.text)["number"])
    assert said == [0, 1, 2, 3, 4]
    assert json.loads(event.text) == {"ended": "talk"}


def test_errors_of_a_host_are_one_line(engine: Engine) -> None:
    refused = answer(engine, engine.send("one", Parcel(sha256="b" * 64, suffix=".exe", content=b"")))
    assert refused == Answered("one", refused.call, error="a parcel is no model file of any kind")
    answer(engine, engine.send("one", PARCEL))
    fault = answer(engine, engine.carry_out("one", task("fault", fault="of\nthe host")))
    assert fault == Answered("one", fault.call, error="ZeroDivisionError: of the host")


def test_hosts_work_at_the_same_time_and_a_task_is_controlled_while_it_runs(cluster: Cluster, engine: Engine) -> None:
    for host in ("one", "two"):
        answer(engine, engine.send(host, PARCEL))
    calls = {host: engine.carry_out(host, task(f"long {host}", seconds=600)) for host in ("one", "two")}
    eventually(lambda: all(f"long {host}" in started(cluster, host) for host in calls))
    for host in calls:
        engine.control(host, f"long {host}", "cancel")
    ended = [next_event(engine, Answered) for _ in calls]
    assert sorted(ended, key=str) == sorted(
        (Answered(host, call, text=json.dumps({"ended": f"long {host}"})) for host, call in calls.items()), key=str
    )


def test_what_hosts_print_does_not_reach_the_terminal(engine: Engine, capfd: pytest.CaptureFixture[str]) -> None:
    answer(engine, engine.send("one", PARCEL))
    answer(engine, engine.carry_out("one", task("print", prints="\x1b]0;host\x07", messages=1, seconds=0.05)))
    assert capfd.readouterr() == ("", "")


def test_a_host_that_dies_loses_its_task_once_and_is_found_again(
    cluster: Cluster, engine: Engine, capfd: pytest.CaptureFixture[str]
) -> None:
    answer(engine, engine.send("two", PARCEL))
    call = engine.carry_out("two", task("lethal", seconds=600))
    waiting = engine.report("two")
    eventually(lambda: "lethal" in started(cluster, "two"))
    cluster.workers["two"].kill()
    cluster.workers["two"].wait()
    events = [engine.events.get(timeout=PATIENCE_SECONDS) for _ in range(3)]
    gone = {Answered("two", each, error="the host went away", lost=True) for each in (call, waiting)}
    assert set(events) == gone | {HostLeft("two")}
    assert answer(engine, engine.report("two")).lost
    # The others go on.
    assert answer(engine, engine.report("one")).error == ""
    cluster.start_worker("two")
    assert next_event(engine, HostJoined) == HostJoined("two")
    assert answer(engine, engine.report("two")).error == ""
    assert started(cluster, "two").count("lethal") == 1
    with pytest.raises(queue.Empty):
        engine.events.get(timeout=0.2)
    assert capfd.readouterr() == ("", "")


def test_a_second_driver_sees_the_same_hosts_and_closes_by_itself(cluster: Cluster, engine: Engine) -> None:
    second = cluster.engine()
    second.start()
    assert {next_event(second, HostJoined) for _ in range(2)} == {HostJoined("one"), HostJoined("two")}
    answer(second, second.send("one", PARCEL))
    second.carry_out("one", task("left behind", seconds=0.2))
    eventually(lambda: "left behind" in started(cluster, "one"))
    second.close()
    assert answer(engine, engine.report("one")).error == ""


def test_a_worker_that_may_run_several_tasks_at_once_joins_with_a_fault() -> None:
    from dlbricks_tui.fleet.engine.engine import _seen

    workers = {
        "tls://1": {"name": "right", "nthreads": 1},
        "tls://2": {"name": "wide", "nthreads": 8},
        "tls://3": {"name": "\x1b[2J", "nthreads": "\x1b[2J"},
    }
    found = _seen({"workers": workers})
    assert found["right"] == ("tls://1", "")
    assert "runs up to 8 tasks at once" in found["wide"][1]
    assert found["wide"][1].isprintable()
    assert found["\\x1b[2J"][1].isprintable()


def refusal(address: str, certificates: Certificates | None) -> str:
    """Return the line with which an engine refuses to start."""
    engine = Engine(address, None if certificates is None else certificates.for_driver())
    with pytest.raises(FleetError) as found:
        engine.start()
    engine.close()
    assert "\n" not in str(found.value)
    return str(found.value)


def test_certificates_of_another_fleet_are_refused_in_one_line(cluster: Cluster, tmp_path: Path) -> None:
    stranger = Certificates(tmp_path / "other")
    stranger.create()
    assert "is of another fleet: its certificate is not signed by" in refusal(cluster.address, stranger)
    # This one trusts the scheduler, which does not trust it.
    (tmp_path / "other" / "authority.pem").write_bytes(cluster.certificates.authority.read_bytes())
    assert "refuses the certificate of this machine" in refusal(cluster.address, stranger)


def test_a_scheduler_with_tls_is_not_used_without(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler_address, "_SECONDS_TO_GREET", 0.1)
    assert "try tls://" in refusal(cluster.address.replace("tls:", "tcp:"), None)


def test_an_address_without_a_scheduler_is_told_in_one_line(cluster: Cluster) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
        assert "nothing answers at" in refusal(f"tls://127.0.0.1:{port}", cluster.certificates)


@pytest.mark.soak
def test_a_name_is_given_once_in_a_fleet(cluster: Cluster, engine: Engine, tmp_path: Path) -> None:
    command = [*HOST, cluster.address, "--name", "one", "--certificates", str(cluster.certificates.folder)]
    second = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert second.returncode == 1
    assert second.stderr == "the fleet has a host named one already: choose another --name\n"


def test_a_worker_and_the_engine_return_to_a_scheduler_that_was_away_and_end_soon_if_it_hangs(
    cluster: Cluster, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_module, "_SECONDS_BETWEEN_CHECKS", 0.1)
    cluster.scheduler.close()
    assert {next_event(engine, HostLeft) for _ in HOSTS} == {HostLeft(host) for host in HOSTS}
    # Soon enough for the first try of each to return.
    assert cluster.restart_scheduler() == cluster.address
    assert {next_event(engine, HostJoined) for _ in HOSTS} == {HostJoined(host) for host in HOSTS}
    assert answer(engine, engine.report("one")).error == ""
    # Another driver and a worker end although the scheduler hangs, which is killed then.
    monkeypatch.setattr(engine_module, "_SECONDS_TO_CLOSE", 1.1)
    monkeypatch.setattr(scheduler_module, "_SECONDS_TO_END", 0.1)
    process = cluster.scheduler._process
    assert process is not None
    os.kill(process.pid, signal.SIGSTOP)
    begin = time.monotonic()
    engine.close()
    cluster.workers["one"].terminate()
    assert cluster.workers["one"].wait(PATIENCE_SECONDS) == 0
    cluster.scheduler.close()
    # Each waits for a few seconds at most; the machine may be busy.
    assert time.monotonic() - begin < 30
    assert process.returncode is not None
