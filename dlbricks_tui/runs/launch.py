"""New runs, and processes for them that go on when their terminal or viewer closes."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.recorded_host import NOTHING_IS_MEASURED, recorded_host
from dlbricks_tui.regular_files import open_log, read_bytes
from dlbricks_tui.runs.errors import RunError
from dlbricks_tui.runs.request import RunRequest, write_request
from dlbricks_tui.runs.run_folder import NO_ROOM, RunFolder, RunFolders
from dlbricks_tui.runtime.runtime import MOST_THREADS
from dlbricks_tui.store.database import ResultsDatabase

PACKAGE_PARENT = Path(__file__).resolve().parents[2]
# This dlbricks comes first on the path, whatever else is installed and wherever the process works.
_CODE = "import importlib, sys; sys.path[0] = sys.argv[1]; importlib.import_module(sys.argv[2]).main(*sys.argv[3:])"
# The pipe that a process waits at for the end of the one that has started it.
LEASH_VARIABLE = "DLBRICKS_LEASH"
_SECONDS_TO_START = 120.0
_NAP_SECONDS = 0.02


def create_run(request: RunRequest, data: DataFolder) -> RunFolder:
    """Create a run that a process can execute."""
    _refuse_in_demonstration()
    for runtime in (part.runtime for part in request.parts):
        threads = runtime.settings.threads
        if threads is not None and threads > MOST_THREADS:
            raise RunError(
                f"runtime {runtime.name} is to compute with {threads} threads, and {MOST_THREADS} are the most: "
                "ask for fewer (--threads, or OMP_NUM_THREADS), such as one for each core"
            )
    with ResultsDatabase(data.store):
        # A store that cannot be used is refused before there is a run.
        folder = RunFolders(data.runs).create(request.model_names)
    write_request(folder.request_file, request)
    return folder


def command_of(module: str, *arguments: str) -> list[str]:
    """Return the command that calls `main` of a module of this dlbricks in a process of its own."""
    return [sys.executable, "-c", _CODE, str(PACKAGE_PARENT), module, *arguments]


def start_detached(folder: RunFolder, data: DataFolder, module: str) -> None:
    """Execute the run in a separate process, and return when it has begun; `module` has its `main`."""
    _refuse_in_demonstration()
    command = command_of(module, str(folder.path), str(data.path))
    try:
        with open_log(folder.output_file) as output:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=folder.path,
                start_new_session=True,
            )
    except OSError as error:
        raise RunError(f"cannot start {folder.noun} {folder.run}: {error.strerror}") from error
    give_up = time.monotonic() + _SECONDS_TO_START
    while folder.state().process.pid != process.pid:
        # The run may have begun and ended since the state was read.
        if process.poll() is not None and folder.state().process.pid != process.pid:
            lines = read_bytes(folder.output_file).decode(errors="replace").splitlines() or ["it printed nothing"]
            raise RunError(f"{folder.noun} {folder.run} did not start: {lines[-1]}")
        if time.monotonic() > give_up:
            raise RunError(
                f"{folder.noun} {folder.run} did not start within {_SECONDS_TO_START:g} s; see {folder.output_file}"
            )
        time.sleep(_NAP_SECONDS)


def take_order() -> tuple[Any, Callable[[bytes], None]]:
    """Return the order in the standard input of this process, and the function that writes its messages.

    From now on all else that is printed goes to standard error.
    """
    _hold_leash()
    order = pickle.load(sys.stdin.buffer)
    output = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def write(line: bytes) -> None:
        written = 0
        try:
            while written < len(line):
                written += os.write(output, line[written:])
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            # Progress that a full disk does not take is lost; the result goes to the store.
            begin = os.lseek(output, 0, os.SEEK_CUR) - written
            os.ftruncate(output, begin)
            os.lseek(output, begin, os.SEEK_SET)

    return order, write


def _hold_leash() -> None:
    """End this process by SIGTERM when the one ends that has started it and waits for it, even if that is killed."""
    leash = os.environ.pop(LEASH_VARIABLE, None)

    def wait(pipe: int) -> None:
        os.read(pipe, 1)
        os.kill(os.getpid(), signal.SIGTERM)

    if leash is not None:
        threading.Thread(target=wait, args=(int(leash),), name="leash", daemon=True).start()


def _refuse_in_demonstration() -> None:
    if recorded_host() is not None:
        raise RunError(NOTHING_IS_MEASURED)
