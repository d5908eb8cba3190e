"""Processes of jobs; small scripts stand for them."""

import asyncio
import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.queue import WorkKind
from dlbricks_tui.jobs import process as jobs
from dlbricks_tui.jobs.control import JobStopped
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.events import Event, EventReader, JobEnded, JobStarted, Waiting, event_kinds
from dlbricks_tui.jobs.folder import JobFolder, JobFolders, JobState, State
from dlbricks_tui.jobs.kinds import JobKind
from dlbricks_tui.jobs.process import JobAtWork, JobProcess, start_detached, work_on
from tests.runs.killing import all_are_gone, eventually
from tests.runs.runs import ROOT


@dataclass(frozen=True)
class Asked:
    """A request."""

    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Said(Event):
    """An event with any value."""

    value: Any


SAYING = JobKind(WorkKind.TRACE, Asked, event_kinds(Said), "tests.jobs.saying")

# Scripts begin with this: `say` writes an event as the program of a job does.
BEGINNING = """
import json, os, sys, time
folder = sys.argv[1]
def write(name, **values):
    with open(folder + "/events.jsonl", "a") as file:
        file.write(json.dumps({"event": name, "when": "2026-11-21T08:00:00+00:00", **values}) + "\\n")
def say(value): write("Said", value=value)
def end(state, message=""): write("JobEnded", state=state, message=message, seconds=1.0)
"""
# It says its id, and ends with a last event when it is asked to.
ENDS_WHEN_ASKED = """
import signal
def stop(*_):
    say("ended")
    end("cancelled", "it was cancelled")
    os._exit(1)
signal.signal(signal.SIGTERM, stop)
say(os.getpid())
time.sleep(600)
"""
# It starts another process, says the ids of both, and does not end.
HANGS = """
import signal, subprocess
signal.signal(signal.SIGTERM, signal.SIG_IGN)
worker = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
say([os.getpid(), worker.pid])
time.sleep(600)
"""

Values = Callable[[JobProcess], list[object]]


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., JobProcess]:
    """Return the process of a job whose program is a script."""

    def job(script: str, *words: str) -> JobProcess:
        command = [sys.executable, "-S", "-c", BEGINNING + script]
        monkeypatch.setattr(jobs, "command_of", lambda _, folder, data: [*command, folder])
        return JobProcess.new(SAYING, Asked(words), DataFolder(tmp_path), ["alexnet"])

    return job


def states(folder: Path) -> list[State]:
    return [it.state for it in JobFolders(DataFolder(folder).jobs).states()]


def followed(process: JobProcess) -> list[object]:
    """Follow a process in an event loop."""
    taken: list[object] = []
    asyncio.run(process.follow(lambda event: taken.extend(values(event))))
    return taken


def run(process: JobProcess) -> list[object]:
    """Follow a process without one: its events arrive in this thread."""
    taken, threads = list[object](), {threading.get_ident()}

    def take(event: Event) -> None:
        taken.extend(values(event))
        threads.add(threading.get_ident())

    process.run(take)
    assert len(threads) == 1
    return taken


def run_in_a_loop(process: JobProcess) -> list[object]:
    """Follow a process by code that an event loop has called, and that does not wait for it."""

    async def call() -> list[object]:
        return run(process)

    return asyncio.run(call())


def values(event: Event) -> list[object]:
    return [event.value] if isinstance(event, Said) else []


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_SECONDS_BETWEEN_LOOKS", 0.001)


either_way = pytest.mark.parametrize("values_of", [followed, run])


@pytest.mark.parametrize("values_of", [followed, run, run_in_a_loop])
def test_the_process_reads_its_request_and_its_events_arrive(
    job: Callable[..., JobProcess], tmp_path: Path, values_of: Values
) -> None:
    # The latencies of many requests fit in a line.
    script = "say(json.load(open(folder + '/request.json'))['words']); say([0.123456789] * 20_000); end('finished')"
    assert values_of(job(script, "a", "b")) == [["a", "b"], [0.123456789] * 20_000]


@either_way
@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("end('failed', 'the disk is full'); sys.exit(1)", "^the disk is full$"),
        ("sys.exit('no room for the interpreter')", "^no room for the interpreter$"),
        (
            "os.kill(os.getpid(), 9)",
            "the process was killed by SIGKILL, .*; .*/jobs/.* tells no other reason",
        ),
    ],
)
def test_a_process_that_fails_is_told_by_its_last_event_its_narration_or_its_status(
    job: Callable[..., JobProcess], values_of: Values, script: str, words: str
) -> None:
    with pytest.raises(JobError, match=words):
        values_of(job(script))


def test_the_end_of_an_earlier_process_does_not_count(job: Callable[..., JobProcess], tmp_path: Path) -> None:
    script = "end('cancelled', 'it was cancelled'); write('JobStarted', pid=os.getpid()); os.kill(os.getpid(), 9)"
    with pytest.raises(JobError, match="the process was killed by SIGKILL"):
        run(job(script))
    (folder,) = JobFolders(DataFolder(tmp_path).jobs).folders()
    assert folder.seen_file.exists()
    work_on(SAYING, folder, DataFolder(tmp_path), lambda _: None)
    assert not folder.seen_file.exists()


def test_events_of_another_version_are_skipped_and_counted(job: Callable[..., JobProcess], tmp_path: Path) -> None:
    assert run(job("say(1); write('Flown', height=3); write('Said', words='old'); say(2); end('finished')")) == [1, 2]
    reader = SAYING.reader(JobFolders(DataFolder(tmp_path).jobs).find("last"))
    assert len(reader.new()) == 3 and reader.unreadable == {"Flown": 1, "Said": 1}


@either_way
def test_a_program_that_is_not_there_is_one_line(
    job: Callable[..., JobProcess], values_of: Values, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = job("")
    monkeypatch.setattr(jobs, "command_of", lambda *_: ["/no/such/program"])
    with pytest.raises(JobError, match=r"cannot start job .*: No such file"):
        values_of(process)


def test_a_process_that_does_not_end_when_asked_is_killed_with_its_workers(
    job: Callable[..., JobProcess], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "_SECONDS_TO_END", 0.01)
    process = job(HANGS)
    taken: list[object] = []

    def stop(event: Event) -> None:
        taken.extend(values(event))
        process.stop()

    asyncio.run(process.follow(stop))
    assert process.stopped
    eventually(lambda: all_are_gone(pids(taken[0])))
    assert states(tmp_path) == [State.INTERRUPTED]


def test_ctrl_c_ends_the_process_with_a_single_press_wherever_it_arrives(job: Callable[..., JobProcess]) -> None:
    pid: list[object] = []
    pressing = threading.Event()

    def press() -> None:
        pressing.wait()
        # The thread that waits for events is not woken up, as if the signal had arrived just before it waited.
        time.sleep(0.02)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    def take(event: Event) -> None:
        pid.extend(values(event))
        pressing.set()

    thread = threading.Thread(target=press)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        job(ENDS_WHEN_ASKED).run(take)
    thread.join()
    assert all_are_gone(pids(pid[0]))
    # Its last event arrives, too.
    assert pid[1:] == ["ended"]


def test_a_second_ctrl_c_kills_a_process_that_hangs_and_its_workers(job: Callable[..., JobProcess]) -> None:
    process, taken = job(HANGS), list[object]()

    def press() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        while not process.stopped:
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)

    def take(event: Event) -> None:
        taken.extend(values(event))
        thread.start()

    with pytest.raises(KeyboardInterrupt):
        process.run(take)
    thread.join()
    eventually(lambda: all_are_gone(pids(taken[0])))


def test_a_process_goes_on_when_its_viewer_leaves_and_another_one_follows_it(
    job: Callable[..., JobProcess], tmp_path: Path
) -> None:
    process = job(ENDS_WHEN_ASKED.replace("time.sleep(600)", "say(1); time.sleep(600)"))
    first: list[object] = []

    async def leave() -> None:
        viewer = asyncio.create_task(process.follow(lambda event: first.extend(values(event))))
        while len(first) < 2:
            await asyncio.sleep(0.01)
        viewer.cancel()
        with suppress(asyncio.CancelledError):
            await viewer

    asyncio.run(leave())
    data = DataFolder(tmp_path)
    assert SAYING.last_unseen(data, "resnet18") is None
    folder = SAYING.last_unseen(data, "alexnet")
    assert folder is not None and not all_are_gone(pids(first[0])) and folder.state().active
    later = JobProcess.started_before(SAYING, folder, data)
    second: list[object] = []

    def stop(event: Event) -> None:
        second.extend(values(event))
        if second[-1:] == [1]:
            later.stop()

    asyncio.run(later.follow(stop))
    assert second == [*first, "ended"]
    assert all_are_gone(pids(first[0])) and SAYING.last_unseen(data) is None


def test_a_process_whose_viewer_is_killed_while_it_waits_for_it_ends_too(tmp_path: Path) -> None:
    caller = f"""
import sys
from pathlib import Path
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs import process as it
from tests.jobs.test_process import SAYING, Asked
script = "import dlbricks_tui.jobs.process as it; it._hold_leash(); import signal; signal.pause()"
it.command_of = lambda *_: [sys.executable, "-c", script]
it.JobProcess.new(SAYING, Asked(), DataFolder(Path({str(tmp_path)!r}))).run(lambda _: None)
"""
    with subprocess.Popen(
        [sys.executable, "-c", caller], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}
    ) as viewer:
        eventually(
            lambda: [it for it in JobFolders(DataFolder(tmp_path).jobs).states() if it.process.pid != viewer.pid]
        )
        viewer.kill()
    eventually(lambda: states(tmp_path) == [State.INTERRUPTED])


def test_the_oldest_ended_jobs_make_room_for_new_ones_and_no_two_share_an_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, drawn = DataFolder(tmp_path), count()
    monkeypatch.setattr("dlbricks_tui.jobs.folder.secrets.token_hex", lambda _: f"{next(drawn) // 2:04x}")
    for _ in range(23):
        job = SAYING.create(data, (), Asked())
        job.set_state(replace(job.state(), state=State.FINISHED))
    numbers = [it.number for it in JobFolders(data.jobs).states()]
    assert len(numbers) == 20 and numbers[-1] == 23


def test_a_job_of_an_earlier_version_is_listed(tmp_path: Path) -> None:
    folder = tmp_path / "jobs" / "load_test-20261121-080000-ab12"
    folder.mkdir(parents=True)
    (folder / "process.json").write_text('{"pid": 4194305, "started": "gone"}')
    (state,) = JobFolders(DataFolder(tmp_path).jobs).states()
    assert (state.kind, state.state) == (WorkKind.LOAD_TEST, State.INTERRUPTED)
    assert state.started == "2026-11-21T08:00:00+00:00"


@pytest.mark.parametrize(
    ("error", "state", "message"),
    [
        (None, State.FINISHED, ""),
        (JobStopped(State.CANCELLED, "it was cancelled"), State.CANCELLED, "it was cancelled"),
        (JobError("the worker was lost"), State.FAILED, "the worker was lost"),
        (KeyError("a fault"), State.FAILED, "internal error: 'a fault'; the traceback is in "),
    ],
)
def test_the_end_of_the_work_is_the_state_of_the_job_and_its_last_event(
    tmp_path: Path, error: Exception | None, state: State, message: str
) -> None:
    data = DataFolder(tmp_path)
    folder = SAYING.create(data, ("alexnet",), Asked(("a",)))
    seen: list[tuple[State, str]] = []

    def work(job: JobAtWork[Asked]) -> None:
        for event in (Waiting(holder="a run"), Said(job.request.words)):
            job.tell(event)
            seen.append((folder.state().state, folder.state().message))
        if error is not None:
            raise error

    told: list[Event] = []
    assert work_on(SAYING, folder, data, work, told.append).state is state
    started, waiting, said, ended = told
    assert isinstance(started, JobStarted) and (waiting, said) == (Waiting(holder="a run"), Said(("a",)))
    assert isinstance(ended, JobEnded) and ended.state == state.value and ended.message.startswith(message)
    assert seen == [(State.WAITING, "for a run"), (State.RUNNING, "")]
    assert (folder.state().state, folder.state().message) == (state, ended.message)


def test_the_end_of_a_job_is_known_where_a_full_disk_takes_no_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = SAYING.create(DataFolder(tmp_path), (), Asked())

    def refuse(folder: JobFolder, state: JobState) -> None:
        raise JobError("no room")

    def work(job: JobAtWork[Asked]) -> None:
        raise JobError("cannot write a.json")

    monkeypatch.setattr(JobFolder, "set_state", refuse)
    found = work_on(SAYING, folder, DataFolder(tmp_path), work)
    assert (found.state, found.message) == (State.FAILED, "cannot write a.json")


def test_waiting_for_other_work_is_no_time_of_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, clock = DataFolder(tmp_path), count(0.0, 1.0)
    folder = SAYING.create(data, (), Asked())
    told: list[Event] = []

    def work(job: JobAtWork[Asked]) -> None:
        job.tell(Waiting(holder="a run"))
        monkeypatch.setattr("dlbricks_tui.jobs.process.time.monotonic", lambda: 1000.0 + next(clock))
        job.tell(Said(1))

    monkeypatch.setattr("dlbricks_tui.jobs.process.time.monotonic", lambda: next(clock))
    work_on(SAYING, folder, data, work, told.append)
    assert isinstance(told[-1], JobEnded) and told[-1].seconds < 20 and folder.state().seconds < 20


def test_a_job_whose_process_does_not_begin_has_failed(tmp_path: Path) -> None:
    data = DataFolder(tmp_path)
    folder = SAYING.create(data, (), Asked())
    with pytest.raises(JobError, match=r"did not start: .*tests\.jobs\.no_such"):
        start_detached(folder, data, "tests.jobs.no_such")
    assert folder.state().state is State.FAILED and "tests.jobs.no_such" in folder.state().message


def test_a_job_for_which_the_host_has_no_process_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    data = DataFolder(tmp_path)
    folder = SAYING.create(data, (), Asked())
    monkeypatch.setattr("dlbricks_tui.jobs.process.subprocess.Popen", refuse)
    with pytest.raises(JobError, match="Resource temporarily unavailable"):
        start_detached(folder, data, "tests.jobs.pretending")
    assert folder.state().state is State.FAILED and "cannot start job" in folder.state().message


def test_a_paused_job_ends_its_process_and_goes_on_or_is_cancelled_later(tmp_path: Path) -> None:
    data = DataFolder(tmp_path)
    folder = SAYING.create(data, ("alexnet",), Asked())

    def pausing(job: JobAtWork[Asked]) -> None:
        folder.pause()
        job.signals.check()

    assert work_on(SAYING, folder, data, pausing).state is State.PAUSED
    # This process is alive, and that of a paused job is not.
    folder.set_state(replace(folder.state(), process=replace(folder.state().process, started="gone")))
    found = folder.state()
    assert (found.state, found.message) == (State.PAUSED, f"it is paused: `dlbricks jobs resume {folder.run}` goes on")
    assert not JobFolders(data.jobs).states()[0].was_stopped
    said: list[Event] = []
    assert work_on(SAYING, folder, data, lambda job: job.tell(Said(1)), said.append).state is State.FINISHED
    assert Said(1) in said and not folder.pause_file.exists()
    assert work_on(SAYING, folder, data, pausing).state is State.PAUSED
    folder.set_state(replace(folder.state(), process=replace(folder.state().process, started="gone")))
    folder.cancel()
    assert folder.state().state is State.CANCELLED and not folder.pause_file.exists()


def test_a_disk_that_is_full_takes_progress_and_no_half_lines(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    script = f"""
import resource, signal
from pathlib import Path
from dlbricks_tui.jobs.events import EventWriter
from tests.jobs.test_process import Said
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
writer = EventWriter(Path({str(path)!r}), spares_disk=True)
writer.tell(Said(1))
size = Path({str(path)!r}).stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, resource.RLIM_INFINITY))
writer.tell(Said(2))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
writer.tell(Said(3))
"""
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)
    reader = EventReader(path, SAYING.events)
    assert reader.new() == (Said(1), Said(3)) and not reader.unreadable


def pids(message: object) -> Sequence[int]:
    return message if isinstance(message, list) else [message]  # type: ignore[list-item]
