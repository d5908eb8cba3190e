"""The fake worker in a fork of this process: it starts in a moment, as it has nothing to import."""

import faulthandler
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.runtime.process import Worker
from tests.runs import fake_worker

# Their handlers in this process are those of a run.
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM)
NAP_SECONDS = 0.001


class Forked:
    """A child process, as far as it is used like one of `subprocess`."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        give_up = None if timeout is None else time.monotonic() + timeout
        while (status := self.poll()) is None:
            if give_up is not None and time.monotonic() > give_up:
                raise subprocess.TimeoutExpired([], timeout or 0.0)
            time.sleep(NAP_SECONDS)
        return status


@pytest.fixture(autouse=True)
def fake_workers_are_forks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start fake workers so; for the `conftest.py` of a folder whose tests start many."""
    monkeypatch.setattr(Worker, "_start", fork_fake_worker)


def fork_fake_worker(worker: Any, worker_reads: int, worker_writes: int) -> Any:
    """Start a worker: a fork of this process if it is the usual fake one."""
    usual = worker._program == Path(fake_worker.__file__) and worker._runtime.python == sys.executable
    if not usual:
        return _start(worker, worker_reads, worker_writes)
    options = ["--requests", str(worker_reads), "--replies", str(worker_writes)]
    if threading.current_thread() is threading.main_thread():
        options += ["--die-with", str(os.getpid())]
    environment = worker._runtime.environment(os.environ)
    with worker.log.open() as log:
        pid = os.fork()
        if not pid:
            _become_worker(options, environment, log.fileno(), {worker_reads, worker_writes})
    # Whoever kills its group may come before it leads one.
    with suppress(OSError):
        os.setpgid(pid, pid)
    return Forked(pid)


_start = Worker._start


def _become_worker(options: Sequence[str], environment: dict[str, str], log: int, kept: set[int]) -> None:
    """Answer requests until they end; never return."""
    status = 1
    try:
        gc.disable()
        faulthandler.disable()
        for number in SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        os.setpgid(0, 0)
        for output in (1, 2):
            os.dup2(log, output)
        # As open locks and pipes of this process would outlive it.
        for file in [int(it.name) for it in Path("/proc/self/fd").iterdir()]:
            if file > 2 and file not in kept:
                with suppress(OSError):
                    os.close(file)
        os.environ.clear()
        os.environ.update(environment)
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115 - until the process ends
        fake_worker.main(options=options)
        status = 0
    except BaseException:  # noqa: BLE001 - nothing of the test may go on here
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(status)
