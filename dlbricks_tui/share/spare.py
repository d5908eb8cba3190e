"""A process that waits for the next run of a workbench, with a worker that has imported its framework.

The worker has timed nothing, so its samples are like those of any other. If no version of oneDNN is known, a second one
stands by to tell it. The process gets lines of JSON from the workbench: runtimes, whose workers replace each other, and
at last the folder of its run. It sleeps meanwhile, and ends when the workbench ends before that, even if it is killed.
It is in this room since its run may be one of a suite.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock

from dlbricks_tui.files import open_log
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.queue import host_queue
from dlbricks_tui.host_files import HostFiles
from dlbricks_tui.jobs.codec import decoded, encoded
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.folder import RunFolder
from dlbricks_tui.jobs.process import command_of
from dlbricks_tui.recorded_host import recorded_host
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.runtime.runtime import Runtime

# A spare with its worker takes a tenth of it.
_LEAST_MEMORY_BYTES = 2 << 30


class SpareRun:
    """The spare process of a workbench. Any thread may ask."""

    def __init__(self, data: DataFolder) -> None:
        self._data = data
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        # What it was told last.
        self._told = ""
        # The run that was started last.
        self._run: RunFolder | None = None

    def prepare(self, request: RunRequest, is_over: Callable[[], bool]) -> None:
        """Have a process ready for such a run, unless other work measures or the host has little memory.

        Nothing is done if the question is over by now: a run that has begun is not to be disturbed.
        """
        has_room = (HostFiles().available_memory_bytes or 0) >= _LEAST_MEMORY_BYTES
        if recorded_host() is not None or not has_room or host_queue().places() or self._is_at_work():
            self.end()
            return
        told = encoded(request.first_runtime(fingerprint().memory_bytes))
        with self._lock:
            if is_over():
                return
            if self._process is None or self._process.poll() is not None:
                self._start()
            elif told == self._told:
                return
            if self._tell(told):
                self._told = told

    def take(self, folder: RunFolder) -> "subprocess.Popen[bytes] | None":
        """Let the process work on a run; return it, or None if there is none."""
        with self._lock:
            process, self._run = self._process, folder
            is_told = self._tell(json.dumps(str(folder.path)))
        self.end()
        return process if is_told else None

    def end(self) -> None:
        """End the process, unless it works on a run."""
        with self._lock:
            if self._process is not None and self._process.stdin is not None:
                self._process.stdin.close()
            self._process = None

    def _is_at_work(self) -> bool:
        """Return whether the last run goes on: it reads its models before it joins the line of the host."""
        with suppress(JobError):
            return self._run is not None and self._run.state().active
        return False

    def _start(self) -> None:
        # Whoever starts the run tells why no process can start.
        with suppress(OSError):
            self._process = subprocess.Popen(
                command_of(__name__, str(self._data.path)),
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                # As all processes of runs, out of the reach of ctrl+c and ctrl+z.
                start_new_session=True,
            )

    def _tell(self, line: str) -> bool:
        """Return whether the process gets the line."""
        if self._process is None or self._process.stdin is None or self._process.poll() is not None:
            return False
        try:
            self._process.stdin.write(line.encode() + b"\n")
        except BrokenPipeError:
            return False
        return True


def main(data: str) -> None:
    """Wait for a run, and execute it; the entry point of the process."""
    from dlbricks_tui.runs.work import EarlyWorker, EarlyWorkers, Workplace
    from dlbricks_tui.share import suite_runs

    place, early = Workplace(DataFolder(Path(data))), EarlyWorkers(EarlyWorker(), EarlyWorker())
    # Each workbench has a spare of its own.
    log = place.data.log / f"spare-{os.getpid()}.log"
    try:
        for line in sys.stdin:
            told = json.loads(line)
            if isinstance(told, str):
                folder = RunFolder(Path(told))
                _move_to(folder)
                early.move_log(folder.worker_log)
                suite_runs.main(told, data, early)
                break
            runtime = decoded(Runtime, told)
            early.first.start(runtime, log, place.worker_program)
            early.start_explaining(runtime, place, log)
    finally:
        early.end()
        with suppress(OSError):
            log.unlink()


def _move_to(folder: RunFolder) -> None:
    """Work where the process of a run works, and let go of the workbench."""
    with open_log(folder.output_file) as output, Path(os.devnull).open("rb") as nothing:
        for file, place in ((nothing, 0), (output, 1), (output, 2)):
            os.dup2(file.fileno(), place)
    os.chdir(folder.path)
