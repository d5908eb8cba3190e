"""Processes that write messages; small scripts stand for them."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from dlbricks_tui.answers import child_process
from dlbricks_tui.answers.child_process import ChildError, ChildProcess, JobFolder
from tests.runs.killing import all_are_gone, eventually
from tests.runs.runs import ROOT

# It writes its id, and ends with a last message when it is asked to.
ENDS_WHEN_ASKED = """
import os, signal, time
def end(*_):
    os.write(1, b'"ended"\\n')
    os._exit(0)
signal.signal(signal.SIGTERM, end)
os.write(1, b"%d\\n" % os.getpid())
time.sleep(600)
"""
# It starts another process, writes the ids of both, and does not end.
HANGS = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
worker = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
os.write(1, b"[%d, %d]\\n" % (os.getpid(), worker.pid))
time.sleep(600)
"""

Messages = Callable[[ChildProcess[object]], list[object]]


def child(folder: Path, script: str, order: bytes = b"") -> ChildProcess[object]:
    return ChildProcess([sys.executable, "-S", "-c", script], order, JobFolder(folder / "job"), json.loads)


def followed(process: ChildProcess[object]) -> list[object]:
    """Follow a process in an event loop."""
    taken: list[object] = []
    asyncio.run(process.follow(taken.append))
    return taken


def run(process: ChildProcess[object]) -> list[object]:
    """Follow a process without one: its messages arrive in this thread."""
    taken, threads = list[object](), {threading.get_ident()}

    def take(message: object) -> None:
        taken.append(message)
        threads.add(threading.get_ident())

    process.run(take)
    assert len(threads) == 1
    return taken


def run_in_a_loop(process: ChildProcess[object]) -> list[object]:
    """Follow a process by code that an event loop has called, and that does not wait for it."""

    async def call() -> list[object]:
        return run(process)

    return asyncio.run(call())


@pytest.fixture(autouse=True)
def _quick_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_process, "_SECONDS_BETWEEN_LOOKS", 0.001)


@pytest.fixture(params=[followed, run])
def messages_of(request: pytest.FixtureRequest) -> Messages:
    found: Messages = request.param
    return found


@pytest.mark.parametrize("messages", [followed, run, run_in_a_loop])
def test_the_process_reads_its_order_and_its_messages_arrive(tmp_path: Path, messages: Messages) -> None:
    # The latencies of many requests fit in a line.
    script = "import sys; print(len(sys.stdin.read())); print([0.123456789] * 20_000)"
    assert messages(child(tmp_path, script, b"order")) == [5, [0.123456789] * 20_000]


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("import sys; sys.exit('the disk is full')", "^the disk is full$"),
        ("import os; os.kill(os.getpid(), 9)", "the process ended with status -9"),
    ],
)
def test_a_process_that_fails_is_told_by_the_last_line_of_its_narration_or_its_status(
    tmp_path: Path, messages_of: Messages, script: str, words: str
) -> None:
    with pytest.raises(ChildError, match=words):
        messages_of(child(tmp_path, script))


@pytest.mark.parametrize("text", ["no json", "\\xff"])
def test_a_line_that_is_no_message_ends_the_process(tmp_path: Path, messages_of: Messages, text: str) -> None:
    script = f"import os, sys, time; open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid())); "
    script += f"os.write(1, b'{text}\\n'); time.sleep(600)"
    with pytest.raises(ChildError, match="the process wrote a line that is no message"):
        messages_of(child(tmp_path, script))
    assert all_are_gone([int((tmp_path / "pid").read_text())])


def test_a_program_that_is_not_there_is_one_line(tmp_path: Path, messages_of: Messages) -> None:
    process: ChildProcess[object] = ChildProcess(["/no/such/program"], b"", JobFolder(tmp_path / "job"), json.loads)
    with pytest.raises(ChildError, match="the process cannot be started: No such file"):
        messages_of(process)


def test_a_process_that_does_not_end_when_asked_is_killed_with_its_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_process, "_SECONDS_TO_END", 0.01)
    process = child(tmp_path, HANGS)
    taken: list[object] = []

    def stop(message: object) -> None:
        taken.append(message)
        process.stop()

    asyncio.run(process.follow(stop))
    assert process.stopped
    eventually(lambda: all_are_gone(pids(taken[0])))


def test_an_exception_ends_the_process_before_it_is_raised(tmp_path: Path) -> None:
    taken: list[object] = []

    def fail(message: object) -> None:
        taken.append(message)
        raise KeyError("a fault")

    process = child(tmp_path, ENDS_WHEN_ASKED)
    with pytest.raises(KeyError, match="a fault"):
        process.run(fail)
    assert all_are_gone(pids(taken[0]))


def test_ctrl_c_ends_the_process_with_a_single_press_wherever_it_arrives(tmp_path: Path) -> None:
    pid: list[object] = []
    pressing = threading.Event()

    def press() -> None:
        pressing.wait()
        # The thread that waits for messages is not woken up, as if the signal had arrived just before it waited.
        time.sleep(0.02)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    def take(message: object) -> None:
        pid.append(message)
        pressing.set()

    thread = threading.Thread(target=press)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        child(tmp_path, ENDS_WHEN_ASKED).run(take)
    thread.join()
    assert all_are_gone(pids(pid[0]))
    # Its last message arrives, too.
    assert pid[1:] == ["ended"]


def test_a_second_ctrl_c_kills_a_process_that_hangs_and_its_workers(tmp_path: Path) -> None:
    process, taken = child(tmp_path, HANGS), list[object]()

    def press() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        while not process.stopped:
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)

    def take(message: object) -> None:
        taken.append(message)
        thread.start()

    with pytest.raises(KeyboardInterrupt):
        process.run(take)
    thread.join()
    eventually(lambda: all_are_gone(pids(taken[0])))


def test_a_process_goes_on_when_its_viewer_leaves_and_another_one_follows_it(tmp_path: Path) -> None:
    script = ENDS_WHEN_ASKED.replace("time.sleep(600)", "print(1, flush=True); time.sleep(600)")
    process = child(tmp_path, script)
    first: list[object] = []

    async def leave() -> None:
        viewer = asyncio.create_task(process.follow(first.append))
        while len(first) < 2:
            await asyncio.sleep(0.01)
        viewer.cancel()
        with suppress(asyncio.CancelledError):
            await viewer

    asyncio.run(leave())
    assert not all_are_gone(pids(first[0])) and process.folder.is_active
    later: ChildProcess[object] = ChildProcess.started_before(JobFolder(tmp_path / "job"), json.loads)
    second: list[object] = []

    def stop(message: object) -> None:
        second.append(message)
        if message == 1:
            later.stop()

    asyncio.run(later.follow(stop))
    assert second == [*first, "ended"]
    assert all_are_gone(pids(first[0])) and not (tmp_path / "job").exists()


def test_a_process_whose_viewer_is_killed_while_it_waits_for_it_ends_too(tmp_path: Path) -> None:
    caller = f"""
import sys
from pathlib import Path
from dlbricks_tui.answers.child_process import ChildProcess, JobFolder
from dlbricks_tui.runs.control import command_of
script = "import pickle, dlbricks_tui.runs.control as it; it.take_order(); import signal; signal.pause()"
command = [sys.executable, "-c", script]
ChildProcess(command, b"N.", JobFolder(Path({str(tmp_path / "job")!r})), bytes).run(lambda _: None)
"""
    job = JobFolder(tmp_path / "job")
    with subprocess.Popen([sys.executable, "-c", caller], cwd=ROOT) as viewer:
        eventually(lambda: job.is_active)
        viewer.kill()
    eventually(lambda: not job.is_active)


def test_a_disk_that_is_full_takes_progress_and_no_half_lines(tmp_path: Path) -> None:
    script = (
        "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "import dlbricks_tui.runs.control as it; _, write = it.take_order(); "
        "write(b'[1]\\n'); resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10)); "
        "write(b'[2, 3, 4, 5, 6]\\n'); write(b'[7]\\n')"
    )
    process: ChildProcess[object] = ChildProcess(
        [sys.executable, "-c", script], b"N.", JobFolder(tmp_path / "job"), json.loads
    )
    assert run(process) == [[1], [7]]


def pids(message: object) -> Sequence[int]:
    return message if isinstance(message, list) else [message]  # type: ignore[list-item]
