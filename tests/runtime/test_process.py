import gc
import io
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from dlbricks_tui.runtime import process
from dlbricks_tui.runtime.errors import (
    FrameworkMissingError,
    WorkerDiedError,
    WorkerError,
    WorkerGarbledError,
    WorkerHungError,
    WorkerRefusedError,
)
from dlbricks_tui.runtime.process import Worker, WorkerLog
from dlbricks_tui.runtime.protocol import Describe, Infer, Reason
from dlbricks_tui.runtime.runtime import Runtime, Settings
from tests.runtime.fake_worker import DESCRIBED
from tests.runtime.processes import ends, is_alive, is_listed

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("fake_worker.py")
PATIENCE_SECONDS = 120.0
MOMENT_SECONDS = 0.2

MakeWorker = Callable[..., Worker]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log" / "worker.log"


@pytest.fixture
def fake(log: Path) -> MakeWorker:
    def make(manner: str = "", python: str = sys.executable) -> Worker:
        runtime = Runtime("fake", python, "mxnet", "1.0", "3.7", Settings(environment=(("FAKE_WORKER", manner),)))
        return Worker(runtime, log, PROGRAM)

    return make


def test_a_refusal_has_reason_and_place_and_the_worker_continues(fake: MakeWorker) -> None:
    with fake("refuse") as worker:
        for _ in range(2):
            with pytest.raises(WorkerRefusedError, match="it does not fit") as caught:
                worker.ask(Describe(), PATIENCE_SECONDS)
            assert (caught.value.reason, caught.value.node) == (Reason.INCONSISTENT, 3)


def test_a_request_that_was_sent_ahead_is_answered_once_and_the_next_one_anew(fake: MakeWorker) -> None:
    with fake() as worker:
        worker.send_ahead(Describe())
        assert [worker.ask(Describe(), PATIENCE_SECONDS) for _ in range(2)] == [DESCRIBED] * 2
    with fake("exit") as worker:
        worker.send_ahead(Describe())
        with pytest.raises(WorkerDiedError, match="ended with status 1: no more"):
            worker.ask(Describe(), PATIENCE_SECONDS)


def test_a_missing_framework_is_reported_with_advice(fake: MakeWorker) -> None:
    with (
        fake("no framework") as worker,
        pytest.raises(FrameworkMissingError, match=r"`dlbricks runtimes add PATH`$") as caught,
    ):
        worker.ask(Describe(), PATIENCE_SECONDS)
    assert sys.executable in str(caught.value)
    assert "pip install mxnet" in str(caught.value)


@pytest.mark.parametrize("python", ["/no/such/python", str(PROGRAM), str(ROOT)])
def test_an_unstartable_interpreter_is_reported_with_advice(fake: MakeWorker, python: str) -> None:
    with pytest.raises(FrameworkMissingError, match=r"cannot start .*dlbricks runtimes add"), fake(python=python):
        pytest.fail("it started")


def test_a_worker_that_ends_is_reported_with_its_signal_or_status_and_its_last_line(
    fake: MakeWorker, log: Path
) -> None:
    with fake("exit") as worker, pytest.raises(WorkerDiedError, match="ended with status 1: no more"):
        worker.ask(Describe(), PATIENCE_SECONDS)
    with fake("crash") as worker:
        with pytest.raises(WorkerDiedError) as caught:
            worker.ask(Describe(), PATIENCE_SECONDS)
        assert str(caught.value) == f"the worker of fake was killed by SIGSEGV: the last words; its log is {log}"
        with pytest.raises(WorkerDiedError, match="the worker of fake has ended"):
            worker.ask(Describe(), PATIENCE_SECONDS)
    with fake("killed") as worker, pytest.raises(WorkerDiedError, match="by SIGKILL, often for lack of memory: the fr"):
        worker.ask(Describe(), PATIENCE_SECONDS)
    assert log.read_text().startswith("the framework greets\nno more\nthe framework greets\nthe last words\n")


@pytest.mark.parametrize("manner", ["hang", "deaf"])
def test_a_worker_that_hangs_is_ended_and_leaves_no_zombie(fake: MakeWorker, manner: str) -> None:
    with fake(manner) as worker:
        pid = worker.pid
        assert pid is not None
        # More than a pipe holds, so that a worker that does not read blocks the request halfway.
        request = Infer("x" * 1_000_000, {})
        with pytest.raises(WorkerHungError, match=r"did not answer within 0\.2 s"):
            worker.ask(request, MOMENT_SECONDS)
        assert not is_listed(pid)


@pytest.mark.parametrize(
    ("manner", "message"),
    [
        ("garbage", "not JSON"),
        ("two answers", "not JSON"),
        ("another answer", "answers Describe with Inferred"),
        ("endless line", "a line without an end"),
    ],
)
def test_an_invalid_answer_ends_the_worker(
    fake: MakeWorker, manner: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "LONGEST_REPLY_BYTES", 50_000)
    with fake(manner) as worker:
        pid = worker.pid
        assert pid is not None
        with pytest.raises(WorkerGarbledError, match=message):
            worker.ask(Describe(), PATIENCE_SECONDS)
        assert not is_listed(pid)


def test_a_closed_worker_leaves_no_zombie_and_no_pipes(fake: MakeWorker) -> None:
    before = sorted(Path("/proc/self/fd").iterdir())
    for manner in ("", "crash", "garbage"):
        with fake(manner) as worker:
            pid = worker.pid
            assert pid is not None and is_alive(pid)
            with suppress(WorkerError):
                worker.ask(Describe(), PATIENCE_SECONDS)
        assert not is_listed(pid)
    with pytest.raises(FrameworkMissingError):
        fake(python="/no/such/python").__enter__()
    assert sorted(Path("/proc/self/fd").iterdir()) == before


def test_a_closed_worker_leaves_no_temporary_files(fake: MakeWorker) -> None:
    with fake("temporary file") as worker:
        file = Path(worker.ask(Describe(), PATIENCE_SECONDS).version)
        assert file.exists()
    assert not file.parent.exists()


def test_output_of_the_framework_goes_only_to_the_log(
    fake: MakeWorker, log: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A terminal UI replaces both by objects without a file.
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with fake() as worker:
        worker.ask(Describe(), PATIENCE_SECONDS)
    assert capfd.readouterr() == ("", "")
    assert log.read_text() == "the framework greets\n"


def test_a_large_log_is_restarted(fake: MakeWorker, log: Path) -> None:
    log.parent.mkdir()
    log.write_bytes(b"x" * (2 << 20))
    with fake() as worker:
        worker.ask(Describe(), PATIENCE_SECONDS)
    assert log.read_text() == "the framework greets\n"


def test_without_a_log_file_a_worker_answers_and_its_last_line_is_reported(fake: MakeWorker, log: Path) -> None:
    log.parent.write_text("a file in the place of the folder")
    with fake() as worker:
        assert worker.ask(Describe(), PATIENCE_SECONDS) == DESCRIBED
    with (
        fake("crash") as worker,
        pytest.raises(WorkerDiedError, match=f"the last words; its log cannot be kept in {log}"),
    ):
        worker.ask(Describe(), PATIENCE_SECONDS)


def test_what_stands_in_for_a_log_is_closed_in_the_end(log: Path) -> None:
    log.parent.write_text("a file in the place of the folder")
    # What other tests have left open is not meant.
    gc.collect()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        kept = WorkerLog(log)
        for _ in range(2):
            kept.open().close()
        del kept
        gc.collect()
    assert not told


def test_a_worker_started_by_a_thread_outlives_the_thread(fake: MakeWorker) -> None:
    workers: list[Worker] = []
    thread = threading.Thread(target=lambda: workers.append(fake().__enter__()))
    thread.start()
    thread.join()
    try:
        assert workers[0].ask(Describe(), PATIENCE_SECONDS) == DESCRIBED
    finally:
        workers[0].end()


START_AND_WAIT = """
import sys, threading, time
from pathlib import Path
from dlbricks_tui.runtime.process import Worker, WorkerLog
from dlbricks_tui.runtime.runtime import Runtime

def start():
    worker = Worker(Runtime("ours", sys.executable, "", "", ""), Path(sys.argv[1]))
    worker.__enter__()
    print(worker.pid, flush=True)
    time.sleep(600)

if sys.argv[2] == "thread":
    threading.Thread(target=start, daemon=True).start()
    time.sleep(600)
start()
"""


@pytest.mark.parametrize("where", ["main", "thread"])
def test_a_worker_ends_when_its_parent_is_killed(
    log: Path, tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nobody is left to remove its temporary files.
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    command = [sys.executable, "-c", START_AND_WAIT, str(log), where]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as asking:
        assert asking.stdout is not None
        pid = int(asking.stdout.readline())
        assert is_alive(pid)
        asking.send_signal(signal.SIGKILL)
    assert ends(pid)
