"""Kill processes of runs at random moments, and check that no result is lost."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from dlbricks_tui.jobs.events import Event
from dlbricks_tui.jobs.folder import RunFolder, State
from dlbricks_tui.measure.stopping import Adaptive, FixedRuns, StoppingRule
from dlbricks_tui.runs.control import create_run
from dlbricks_tui.runs.events import ProgramMeasured, RunEvents
from dlbricks_tui.runs.request import RunRequest
from tests.runs.runs import ROOT, Site

# A run on a busy host repeats rounds for up to a minute at a time.
PATIENCE_SECONDS = 240.0
VICTIMS = (("worker",), ("run",), ("viewer",), ("run", "worker"), ("viewer", "run", "worker"))

# Reads the events of a run for ever, as a viewer does.
VIEWER = """
import sys, time
from pathlib import Path
from dlbricks_tui.runs.events import RunEvents
reader = RunEvents(Path(sys.argv[1]))
while True:
    reader.new()
    time.sleep(0.01)
"""


def eventually(happens: Callable[[], object]) -> None:
    """Wait until something is true."""
    give_up = time.monotonic() + PATIENCE_SECONDS
    while not happens():
        assert time.monotonic() < give_up, "it does not happen"
        # Each look reads files, and takes processor time from the processes that it waits for.
        time.sleep(0.02)


def has_told(folder: RunFolder, kind: type[Event]) -> bool:
    """Return True if the run has told such an event."""
    return any(isinstance(event, kind) for event in RunEvents(folder.events_file).new())


def workers_of(pid: int) -> list[int]:
    """Return the running child processes of a process."""
    try:
        # Those that its other threads have started stand in files of their own.
        children = [it.read_text() for it in Path(f"/proc/{pid}/task").glob("*/children")]
    except OSError:
        return []
    return [child for child in map(int, " ".join(children).split()) if is_alive(child)]


def is_alive(pid: int) -> bool:
    """Return True if a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def has_begun(folder: RunFolder, process: "subprocess.Popen[bytes]") -> bool:
    """Return True if a process has worked on the run, and may do so still."""
    return process.poll() is not None or (folder.state().process.pid == process.pid and bool(workers_of(process.pid)))


def all_are_gone(pids: Sequence[int]) -> bool:
    """Return True if none of the processes runs."""
    return not any(map(is_alive, pids))


def results_told(events: Sequence[Event]) -> set[tuple[str, str, str]]:
    """Return the results that a run has told to be in the store."""
    return {(it.brick, it.context, it.model) for it in events if isinstance(it, ProgramMeasured)}


def results_kept(site: Site) -> set[tuple[str, str, str]]:
    """Return the results in the store."""
    contents = site.contents()
    return {(*pair, "") for pair in contents.measured} | {("", "", it.model) for it in contents.end_to_end}


def kill_at_random(
    site: Site, request: Callable[[StoppingRule], RunRequest], victims: Sequence[str], kills: int
) -> int:
    """Take a run up and kill these processes of it, again and again; in the end nothing must be lost or left.

    Return the number of results.
    """
    chance = random.Random("+".join(victims))
    folder = create_run(request(Adaptive()), site.data)
    for kill in range(kills):
        if folder.state().state is State.FINISHED:
            # What was measured is not enough any more.
            folder = create_run(request(FixedRuns(20 + 5 * kill)), site.data)
        run = site.start(folder)
        viewer = subprocess.Popen([sys.executable, "-c", VIEWER, str(folder.events_file)], cwd=ROOT)
        try:
            # Most of the time while it measures, sometimes before.
            if chance.random() < 0.8:
                eventually(partial(has_begun, folder, run))
            time.sleep(chance.random() * 0.3)
            workers = workers_of(run.pid)
            pids = {"worker": workers, "run": [run.pid], "viewer": [viewer.pid]}
            for pid in (pid for victim in victims for pid in pids[victim] if is_alive(pid)):
                os.kill(pid, signal.SIGKILL)
            acknowledged = results_told(site.events(folder))
            if "run" in victims:
                run.wait()
            else:
                assert run.wait(PATIENCE_SECONDS) == 0
                assert folder.state().state is State.FINISHED
            eventually(partial(all_are_gone, workers))
            assert acknowledged <= results_kept(site)
        finally:
            for process in (run, viewer):
                process.kill()
                process.wait()
    assert site.start(folder).wait(PATIENCE_SECONDS) == 0
    state = folder.state()
    assert (state.state, state.bricks.failed) == (State.FINISHED, 0)
    assert state.bricks.measured + state.bricks.reused == state.bricks.total
    assert not site.contents().failures, "a program was blamed for the death of the worker"
    return len(results_kept(site))
