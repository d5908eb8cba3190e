"""A run as a process: what it obeys, what it survives, and what it leaves when it is killed."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from dlbricks_tui.bench.errors import RunError
from dlbricks_tui.bench.event_file import EventReader
from dlbricks_tui.bench.events import Event, Paused, ProgramMeasured, Resumed, RoundDone, RunEnded, Waiting
from dlbricks_tui.bench.launch import create_run
from dlbricks_tui.bench.request import RunRequest
from dlbricks_tui.bench.run_folder import RunFolder, RunFolders, State
from dlbricks_tui.bench.stopping import FixedRuns
from dlbricks_tui.store.store import Store
from tests.bench.runs import BRICKS, ROOT, Site

PATIENCE_SECONDS = 60.0
KILLS_OF_EACH = 4
# Reads the events of a run for ever, as a viewer does.
VIEWER = """
import sys, time
from pathlib import Path
from dlbricks_tui.bench.event_file import EventReader
reader = EventReader(Path(sys.argv[1]))
while True:
    reader.new()
    time.sleep(0.01)
"""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    # A round of samples takes long enough to be interrupted.
    (tmp_path / "data").mkdir()
    return Site(tmp_path / "data", nap_seconds=0.005)


def eventually(happens: Callable[[], object]) -> None:
    """Waits until something is true."""
    give_up = time.monotonic() + PATIENCE_SECONDS
    while not happens():
        assert time.monotonic() < give_up, "it does not happen"
        time.sleep(0.005)


def has_told(folder: RunFolder, kind: type[Event]) -> bool:
    """Whether such a thing has happened in the run."""
    return any(isinstance(event, kind) for event in EventReader(folder.events_file).new())


def workers_of(pid: int) -> list[int]:
    """The processes that a process has started and that still run."""
    found = subprocess.run(["ps", "-o", "pid=,stat=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(line.split()[0]) for line in found.stdout.splitlines() if "Z" not in line.split()[1]]


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def started(site: Site, request: RunRequest | None = None, **how: bool) -> tuple[RunFolder, "subprocess.Popen[bytes]"]:
    """A run in a process of its own that has taken its first samples."""
    folder = create_run(request or site.request(), site.data)
    process = site.start(folder, **how)
    eventually(lambda: has_told(folder, RoundDone) or process.poll() is not None)
    return folder, process


def has_begun(folder: RunFolder, process: "subprocess.Popen[bytes]") -> bool:
    """Whether a process has worked on the run, and may do so still."""
    return process.poll() is not None or (folder.state().process.pid == process.pid and bool(workers_of(process.pid)))


def all_are_gone(pids: Sequence[int]) -> bool:
    """Whether none of the processes runs any more."""
    return not any(map(is_alive, pids))


def results_told(events: Sequence[Event]) -> set[tuple[str, str, str]]:
    """What a run has said to be in the store."""
    return {(it.brick, it.context, it.model) for it in events if isinstance(it, ProgramMeasured)}


def results_kept(site: Site) -> set[tuple[str, str, str]]:
    """What is in the store."""
    contents = site.contents()
    return {(*pair, "") for pair in contents.measured} | {("", "", it.model) for it in contents.end_to_end}


@pytest.fixture
def ended() -> Iterator[Callable[["subprocess.Popen[bytes]"], None]]:
    """Makes sure that no process outlives the test."""
    processes: list[subprocess.Popen[bytes]] = []
    yield processes.append
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.wait()


def test_cancelling_keeps_what_was_measured_and_the_next_run_goes_on(site: Site) -> None:
    folder, process = started(site)
    eventually(lambda: has_told(folder, ProgramMeasured))
    (worker,) = workers_of(process.pid)
    folder.cancel()
    assert process.wait(PATIENCE_SECONDS) == 0
    eventually(lambda: not is_alive(worker))
    assert folder.state().state is State.CANCELLED
    kept = site.contents().measured
    assert 0 < len(kept) < BRICKS
    rest = create_run(site.request(), site.data)
    assert site.start(rest).wait(PATIENCE_SECONDS) == 0
    bricks = rest.state().bricks
    assert (bricks.reused, bricks.measured) == (len(kept), BRICKS - len(kept))


def test_a_cancelled_run_can_be_taken_up_again_under_its_own_name(site: Site) -> None:
    folder, process = started(site)
    folder.cancel()
    process.wait(PATIENCE_SECONDS)
    assert site.start(folder).wait(PATIENCE_SECONDS) == 0
    assert folder.state().state is State.FINISHED
    ends = [event.state for event in site.events(folder) if isinstance(event, RunEnded)]
    assert ends == ["cancelled", "finished"]
    assert len(set(site.contents().measured)) == BRICKS
    with pytest.raises(RunError, match="nothing to cancel"):
        folder.cancel()


def test_the_keyboard_interrupts_and_a_closed_terminal_does_too_unless_the_run_is_detached(site: Site) -> None:
    for number, detached, expected in (
        (signal.SIGINT, False, State.INTERRUPTED),
        (signal.SIGHUP, False, State.INTERRUPTED),
        (signal.SIGHUP, True, State.FINISHED),
    ):
        folder, process = started(
            Site(site.path.with_name(f"{number}-{detached}"), nap_seconds=0.005), detached=detached
        )
        process.send_signal(number)
        assert process.wait(PATIENCE_SECONDS) == 0
        assert folder.state().state is expected


def test_a_paused_run_stands_still_lets_others_measure_and_goes_on(
    site: Site, ended: Callable[["subprocess.Popen[bytes]"], None]
) -> None:
    folder, process = started(site)
    ended(process)
    folder.pause()
    eventually(lambda: has_told(folder, Paused))
    assert folder.state().state is State.PAUSED
    theirs = site.lock
    assert theirs.try_hold("another", site.path)
    so_far = len(site.events(folder))
    folder.unpause()
    eventually(lambda: folder.state().state is State.WAITING)
    assert {type(event) for event in site.events(folder)[so_far:]} <= {Waiting}
    assert "another" in folder.state().message
    theirs.release()
    assert process.wait(PATIENCE_SECONDS) == 0
    assert has_told(folder, Resumed)
    assert folder.state().bricks.measured == BRICKS


def test_a_second_run_waits_and_says_for_whom(site: Site, ended: Callable[["subprocess.Popen[bytes]"], None]) -> None:
    mine = site.lock
    assert mine.try_hold("the-first", Path("/their/data"))
    folder = create_run(site.request(), site.data)
    process = site.start(folder)
    ended(process)
    eventually(lambda: has_told(folder, Waiting))
    state = folder.state()
    assert state.state is State.WAITING
    assert "the-first" in state.message
    assert str(os.getpid()) in state.message
    # It computes nothing meanwhile: not even its models are read.
    assert not workers_of(process.pid)
    assert [type(event).__name__ for event in site.events(folder)] == ["RunStarted", "Waiting"]
    mine.release()
    assert process.wait(PATIENCE_SECONDS) == 0
    assert folder.state().bricks.measured == BRICKS


def test_a_paused_or_waiting_run_can_be_cancelled(site: Site) -> None:
    folder, process = started(site)
    folder.pause()
    eventually(lambda: folder.state().state is State.PAUSED)
    folder.cancel()
    assert process.wait(PATIENCE_SECONDS) == 0
    assert folder.state().state is State.CANCELLED
    # Whoever takes it up again does not find it paused.
    assert site.start(folder).wait(PATIENCE_SECONDS) == 0
    assert folder.state().state is State.FINISHED
    assert not has_told(folder, Resumed)


def test_no_two_processes_work_on_one_run(site: Site, ended: Callable[["subprocess.Popen[bytes]"], None]) -> None:
    folder, process = started(site)
    ended(process)
    folder.pause()
    eventually(lambda: folder.state().state is State.PAUSED)
    second = site.start(folder)
    assert second.wait(PATIENCE_SECONDS) != 0
    assert folder.state().process.pid == process.pid
    folder.unpause()
    assert process.wait(PATIENCE_SECONDS) == 0
    assert folder.state().bricks.measured == BRICKS


@pytest.mark.parametrize(
    "victims", [("worker",), ("run",), ("viewer",), ("run", "worker"), ("viewer", "run", "worker")], ids="+".join
)
def test_no_kill_loses_an_acknowledged_result_or_leaves_a_process_behind(
    site: Site, victims: tuple[str, ...], ended: Callable[["subprocess.Popen[bytes]"], None]
) -> None:
    chance = random.Random("+".join(victims))
    folder = create_run(site.request(end_to_end=True), site.data)
    for kill in range(KILLS_OF_EACH):
        if folder.state().state is State.FINISHED:
            # What was measured is not enough any more.
            folder = create_run(site.request(end_to_end=True, rule=FixedRuns(20 + 5 * kill)), site.data)
        run = site.start(folder)
        viewer = subprocess.Popen([sys.executable, "-c", VIEWER, str(folder.events_file)], cwd=ROOT)
        ended(run)
        ended(viewer)
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
    assert site.start(folder).wait(PATIENCE_SECONDS) == 0
    state = folder.state()
    assert (state.state, state.bricks.failed) == (State.FINISHED, 0)
    assert state.bricks.measured + state.bricks.reused == BRICKS
    contents = site.contents()
    assert not contents.failures, "a program was blamed for the death of the worker"
    assert len(set(contents.measured)) == BRICKS
    assert contents.end_to_end


def test_a_run_whose_process_was_killed_reads_as_interrupted(site: Site) -> None:
    folder, process = started(site)
    process.kill()
    process.wait()
    state = folder.state()
    assert (state.state, state.active) == (State.INTERRUPTED, False)
    assert "killed" in state.message
    assert [it.state for it in RunFolders(site.data.runs).states()] == [State.INTERRUPTED]
    with Store(site.data.store) as store:
        assert not store.damage
