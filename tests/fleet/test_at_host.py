"""Messages of fleets, and what a host makes of them: parcels, tasks and reports."""

import json
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.fleet import at_host
from dlbricks_tui.fleet.at_host import control, run_of, runtime_here, runtimes_here
from dlbricks_tui.fleet.installing import content_of, own_files
from dlbricks_tui.fleet.messages import (
    HostMessage,
    HostReport,
    Parcel,
    ResultFound,
    Task,
    TaskProgress,
    message_in,
    text_of,
)
from dlbricks_tui.fleet.request import HostError, MessageError
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.queue import HOST_LOCK_VARIABLE, HostQueue, ProcessIdentity, WorkKind, queued
from dlbricks_tui.jobs.folder import JobFolder, RunFolders, State
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.graph import Level
from dlbricks_tui.recorded_host import processors_here
from dlbricks_tui.runs.request import InputShape, InputValue, ModelChoice, RunRequest
from dlbricks_tui.runtime.runtime import Runtime, Settings
from dlbricks_tui.store.documents import to_document
from tests.fleet.fake_hosts import REQUEST as FLEET_REQUEST
from tests.fleet.fake_hosts import FakeHost, records, small_parcel, task_of
from tests.runs.killing import eventually
from tests.runs.runs import Site
from tests.store.samples import measurement, system


def test_the_parcels_used_longest_ago_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(at_host, "MOST_KEPT_BYTES", 4000)
    data = DataFolder(tmp_path)
    for number, name in enumerate("abcd"):
        path = at_host.take(data, name, ".onnx", bytes([number]) * 1000)
        assert path.read_bytes() == bytes([number]) * 1000
        os.utime(path, (number, number))
    # The first one is used once more.
    at_host.take(data, "a", ".onnx", b"0" * 1000)
    at_host.take(data, "e", ".onnx", b"4" * 1000)
    assert {it.stem for it in data.parcels.iterdir()} >= {"a", "d", "e"}
    assert not (data.parcels / "b.onnx").exists()


def test_settings_of_the_shell_are_not_those_of_the_runtimes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The processes of dask set these for their own sake.
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "65536")
    data = DataFolder(tmp_path)
    (onnx,) = (it for it in runtimes_here(data) if it.framework == "onnxruntime")
    assert runtime_here(data, onnx) == onnx.on(processors_here())
    assert runtime_here(data, onnx.with_threads(7)).settings.threads == 7
    for runtime in runtimes_here(data):
        assert "threads-default" in runtime.identity
        assert "MALLOC" not in runtime.identity
        assert "OMP_NUM_THREADS" not in runtime.environment(os.environ)


def test_the_check_tells_the_doctor_what_measures_here_and_the_noise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HOST_LOCK_VARIABLE, str(tmp_path / "lock"))
    monkeypatch.setattr("dlbricks_tui.host.noise.SECONDS_TO_WATCH", 0.02)
    first = HostQueue(tmp_path / "lock").join(queued(WorkKind.RUN, ["alexnet"], tmp_path))
    assert first.try_take()
    try:
        noticed = {it[0]: it[1:] for it in message_in(at_host.check(str(tmp_path), [], []), HostReport).noticed}
    finally:
        first.leave()
    assert noticed["measuring"][0].startswith("run of alexnet by ") and "waits" in noticed["measuring"][1]
    assert {"frequency governor", "other load", "stolen time", "memory"} < noticed.keys()
    again = message_in(at_host.check(str(tmp_path), [], ["distributed", "none"]), HostReport)
    assert ("measuring", "nothing", "") in again.noticed
    assert (again.content, again.packages) == (content_of(own_files()), {"distributed": version("distributed")})


@pytest.fixture
def host(tmp_path: Path) -> Iterator[FakeHost]:
    found = FakeHost(Site(tmp_path / "data"))
    yield found
    found.end()


@pytest.fixture
def parcel(tmp_path: Path, host: FakeHost) -> Parcel:
    found = small_parcel(tmp_path)
    host.receive(found)
    return found


OF_ANOTHER_VERSION = replace(FLEET_REQUEST, runtime=replace(FLEET_REQUEST.runtime, version="1.8.0"))


class DiedError(Exception):
    """The process that follows a run dies."""


def test_results_are_sent_as_they_come_and_at_the_end_and_measured_again_on_demand_only(
    host: FakeHost, parcel: Parcel
) -> None:
    messages = host.carry_out(task_of(parcel))
    assert messages[-1].state == "finished"
    assert {it["brick"] for it in records(messages, "measurements")} == parcel.bricks
    assert len({it["system"] for it in records(messages, "measurements")}) == 1
    last = [it for it in host.told if isinstance(it, TaskProgress)][-1]
    assert (last.done, last.of) == (len(parcel.bricks),) * 2
    uuids = [it.record["uuid"] for it in messages if isinstance(it, ResultFound)]
    assert len(set(uuids)) == len(uuids)
    (run,) = RunFolders(host.data.runs).stored().states
    assert run.models == (f"parcel {parcel.sha256[:12]}",)
    # A task that is given twice has one run, and the next one finds the results in the store.
    for name in ("task-1", "task-2"):
        second = host.carry_out(task_of(parcel, name))
        assert len(host.started) == 1
        assert records(second, "measurements") == records(messages, "measurements")
        assert second[-1].state == "finished"
    third = host.carry_out(task_of(parcel, "task-3", again=True))
    assert {it["brick"] for it in records(third, "measurements")} == parcel.bricks
    assert {it["uuid"] for it in records(third, "measurements")}.isdisjoint(uuids)


def test_a_task_measures_its_bricks_only(host: FakeHost, parcel: Parcel) -> None:
    one = min(parcel.bricks)
    first = host.carry_out(task_of(parcel, bricks=(one, "f" * 64)))
    assert first[-1].note.startswith("1 of 2 bricks are in no parcel")
    assert {it["brick"] for it in records(first, "measurements")} == {one}
    assert {it.brick for it in host.site.contents().measurements} == {one}


def test_a_failure_is_sent_with_its_reason_and_not_tried_again(
    tmp_path: Path, parcel: Parcel, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = FakeHost(Site(tmp_path / "other", manners={"Pooling": "unbuildable"}))
    host.receive(parcel)
    for name, value in host.site.environment.items():
        monkeypatch.setenv(name, value)
    messages = host.carry_out(task_of(parcel))
    (failure,) = records(messages, "failures")
    assert (failure["reason"], failure["message"]) == ("unbuildable", "the operator is unbuildable")
    assert {it["brick"] for it in records(messages, "measurements")} == parcel.bricks - {failure["brick"]}
    again = host.carry_out(task_of(parcel, "task-2"))
    assert records(again, "failures") == [failure]
    assert len(host.started) == 1
    # One that is to be tried again, and is not for lack of time, is not told as failed anew.
    retried = host.carry_out(task_of(parcel, "task-3", retry_failed=True, time_budget_seconds=0.001))
    assert (len(host.started), records(retried, "failures")) == (2, [])
    retried = host.carry_out(task_of(parcel, "task-4", retry_failed=True))
    assert [it["brick"] for it in records(retried, "failures")] == [failure["brick"]]


def test_a_task_that_cannot_be_carried_out_fails_with_one_line(host: FakeHost, parcel: Parcel) -> None:
    ended = host.carry_out(replace(task_of(parcel), request=OF_ANOTHER_VERSION))[-1]
    assert (ended.state, host.started) == ("failed", [])
    assert "this host has no mxnet 1.8.0 any more" in ended.reason
    assert "\n" not in ended.reason


def test_a_host_whose_disk_cannot_be_written_says_so_in_one_line(
    host: FakeHost, parcel: Parcel, tmp_path: Path
) -> None:
    (tmp_path / "parcels").write_text("no folder")
    with pytest.raises(HostError, match=r"cannot write .*parcels: "):
        at_host.take(DataFolder(tmp_path), "a", ".onnx", b"a network")
    host.data.runs.write_text("no folder")
    ended = host.carry_out(task_of(parcel))[-1]
    assert ended.state == "failed"
    assert "cannot write" in ended.reason


def lived(host: FakeHost, task: str) -> bool:
    """Return what a host reports of a task."""
    return message_in(at_host.report(str(host.data.path), task), HostReport).lived


def test_a_run_outlives_the_call_that_follows_it_and_is_not_repeated(tmp_path: Path) -> None:
    host = FakeHost(Site(tmp_path / "data").slow(nap_seconds=0.3))
    try:
        parcel = small_parcel(tmp_path)
        host.receive(parcel)

        def die() -> None:
            raise DiedError

        with pytest.raises(DiedError):
            host.carry_out(task_of(parcel), die, detached=True)
        run = run_of(host.data, "task-1")
        assert run is not None
        eventually(lambda: run.state().state is State.RUNNING)
        assert lived(host, "task-1")
        # The first run stands still until the second one, which reads its models first, waits for it.
        host.processes[0].send_signal(signal.SIGSTOP)
        waited: list[str] = []

        def hurry() -> None:
            waits = [it.waits_for for it in host.told if isinstance(it, TaskProgress) and it.waits_for]
            if waits:
                waited.append(waits[-1])
                host.site.hurry()
                host.processes[0].send_signal(signal.SIGCONT)

        messages = host.carry_out(task_of(parcel, "task-2"), hurry, detached=True)
        assert waited
        assert run.run in waited[0]
        assert messages[-1].state == "finished"
        assert {it["brick"] for it in records(messages, "measurements")} == parcel.bricks
        # Each was measured once, by the run of the first task.
        assert {it["run"] for it in records(messages, "measurements")} == {run.run}
        assert {it.run for it in host.site.contents().measurements} == {run.run}
        assert lived(host, "task-1")
        # That of a host that has crashed.
        run.set_state(replace(run.state(), state=State.RUNNING, process=ProcessIdentity(1, "before")))
        assert not lived(host, "task-1")
        assert not lived(host, "task-3")
    finally:
        host.end()


def test_a_task_that_is_cancelled_before_it_has_a_run_gets_none(host: FakeHost, parcel: Parcel) -> None:
    control(str(host.data.path), "task-1", "cancel")
    messages = host.carry_out(task_of(parcel))
    assert (messages[-1].state, host.started) == ("cancelled", [])


def test_a_task_that_is_cancelled_before_its_run_has_a_process_ends_and_the_worker_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = FakeHost(Site(tmp_path / "data").slow(nap_seconds=0.3))
    begin, kill, killed = host._detach, os.kill, list[int]()

    def end(process: int, number: int) -> None:
        killed.append(process)
        if process != os.getpid():
            kill(process, number)

    def start(folder: JobFolder, data: DataFolder) -> None:
        for what in ("pause", "cancel"):
            control(str(data.path), "task-1", what)
        begin(folder, data)

    try:
        parcel = small_parcel(tmp_path)
        host.receive(parcel)
        monkeypatch.setattr(host, "_detach", start)
        monkeypatch.setattr(os, "kill", end)
        assert host.carry_out(task_of(parcel), detached=True)[-1].state == "cancelled"
        assert os.getpid() not in killed
    finally:
        host.end()


REPORT = HostReport(
    dlbricks="0.2.0",
    python="3.11.9",
    methods={"inside": "inside-1", "alone": "alone-1"},
    runtimes=("mxnet-1.9.1 python-3.11",),
    system=to_document(system()),
    clock="2026-11-27T08:00:00+00:00",
)
REQUEST = RunRequest(
    models=(ModelChoice("secret net", Path("/home/ada/secret-symbol.json")),),
    runtime=Runtime("ada's own", "/home/ada/venv/bin/python", "mxnet", "1.9.1", "3.10.4", Settings(threads=2)),
    inputs=(InputShape("secret_input", (1, 3)),),
    values=(InputValue("secret_rate", (16000,)),),
    batch_sizes=(1, 8),
    level=Level.WRITTEN,
    method=Method.INSIDE,
    time_budget_seconds=20,
    evaluation="secret evaluation",
)
TASK = Task(id="fleet-1", request=REQUEST, bricks=("b" * 64, "c" * 64))
MESSAGES: tuple[HostMessage, ...] = (
    TaskProgress(done=3, of=9, seconds_left=12.5, disturbed_rounds=1, paused=True, waits_for="for run 1"),
    TaskProgress(),
    ResultFound(record=to_document(measurement())),
    TaskProgress(note="parcel 12: its file is damaged"),
    TaskProgress(state="failed", reason="the disk is full"),
)


def changed(text: str, /, **values: Any) -> str:
    return json.dumps({**json.loads(text), **values})


@pytest.mark.parametrize("message", [REPORT, *MESSAGES])
def test_each_is_read_as_it_was_written(message: Any) -> None:
    assert message_in(text_of(message), type(message)) == message


def test_a_task_is_read_without_what_concerns_the_users_host_only() -> None:
    found = message_in(text_of(TASK), Task)
    assert (found.id, found.bricks) == (TASK.id, TASK.bricks)
    request = found.request
    assert (request.level, request.method, request.time_budget_seconds) == (Level.WRITTEN, Method.INSIDE, 20)
    assert request.runtime.settings == REQUEST.runtime.settings
    assert (request.runtime.framework, request.runtime.version) == ("mxnet", "1.9.1")
    assert (request.models, request.inputs, request.values, request.batch_sizes) == ((), (), (), ())
    assert "secret" not in text_of(TASK) and "/home" not in text_of(TASK)


NO_PROGRESS: list[dict[str, Any]] = [
    *({"schema": 2}, {"format": "dlbricks-host"}, {"kind": "order"}, {"more": 1}, {"note": 7}, {"note": "t" * 2000}),
    *({"done": True}, {"done": -1}, {"of": 10**400}, {"seconds_left": True}, {"disturbed_seconds": None}),
]
NO_REPORTS: list[dict[str, Any]] = [
    *({"methods": {"inside": 1}}, {"runtimes": [{"name": "mxnet"}]}, {"dlbricks": 1.5}, {"system": None}),
    {"clock": "x" * 2000},
]
NO_TASKS: list[dict[str, Any]] = [{"request": {"schema": 1}}, {"request": []}, {"bricks": "all"}]
PROGRESS = text_of(MESSAGES[0])


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", '{"format": "dlbricks-fleet-message"}', PROGRESS.replace("12.5", "NaN")),
        PROGRESS.replace('"seconds_left":12.5,', ""),
        *(changed(PROGRESS, **values) for values in NO_PROGRESS),
        changed(text_of(MESSAGES[2]), record=[]),
        changed(text_of(MESSAGES[3]), note="x" * 2000),
        changed(text_of(MESSAGES[4]), state="great"),
        '{"format":"dlbricks-fleet-message","schema":1,"kind":"TaskProgress","note":' + "[" * 100_000,
        *(changed(text_of(REPORT), **values) for values in NO_REPORTS),
        *(changed(text_of(TASK), **values) for values in NO_TASKS),
    ],
)
def test_anything_else_is_no_message(text: str) -> None:
    with pytest.raises(MessageError):
        message_in(text, TaskProgress, ResultFound, HostReport, Task)
