"""Runs in processes of their own: signals, pausing, kills and what they leave."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dlbricks_tui.measure.events import Event, RoundDone
from dlbricks_tui.measure.stopping import FEWEST_SAMPLES, FixedRuns
from dlbricks_tui.runs.control import only_process
from dlbricks_tui.runs.errors import RunError
from dlbricks_tui.runs.events import Paused, ProgramMeasured, Resumed, RunEnded, Waiting
from dlbricks_tui.runs.launch import create_run
from dlbricks_tui.runs.progress import RunProgress
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.runs.run import execute
from dlbricks_tui.runs.run_folder import RunFolder, RunFolders, State
from dlbricks_tui.store.database import ResultsDatabase
from tests.host.lines import turn_of
from tests.runs.killing import (
    PATIENCE_SECONDS,
    VICTIMS,
    eventually,
    has_told,
    is_alive,
    kill_at_random,
    workers_of,
)
from tests.runs.runs import BRICKS, Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path / "data").slow()


def started(site: Site, request: RunRequest | None = None, **how: bool) -> tuple[RunFolder, "subprocess.Popen[bytes]"]:
    """A run in a process of its own that has taken its first samples."""
    folder = create_run(request or site.request(), site.data)
    process = site.start(folder, **how)
    eventually(lambda: has_told(folder, RoundDone) or process.poll() is not None)
    return folder, process


@pytest.fixture
def ended() -> Iterator[Callable[["subprocess.Popen[bytes]"], None]]:
    """Makes sure that no process outlives the test."""
    processes: list[subprocess.Popen[bytes]] = []
    yield processes.append
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.wait()


def test_cancelling_keeps_results_and_the_next_run_reuses_them(site: Site) -> None:
    request = site.request(rule=FixedRuns(12))
    folder, process = started(site, request)
    eventually(lambda: has_told(folder, ProgramMeasured))
    (worker,) = workers_of(process.pid)
    folder.cancel()
    assert process.wait(PATIENCE_SECONDS) == 0
    eventually(lambda: not is_alive(worker))
    assert folder.state().state is State.CANCELLED
    # Those that were about to be done are kept too, and are measured again.
    enough = sum(it.statistics.count == 12 for it in site.contents().measurements)
    assert 0 < enough < BRICKS
    site.hurry()
    rest = create_run(request, site.data)
    assert site.start(rest).wait(PATIENCE_SECONDS) == 0
    bricks = rest.state().bricks
    assert (bricks.reused, bricks.measured) == (enough, BRICKS - enough)


def test_a_cancelled_run_can_be_resumed(site: Site) -> None:
    folder, process = started(site)
    folder.cancel()
    process.wait(PATIENCE_SECONDS)
    site.hurry()
    assert site.start(folder).wait(PATIENCE_SECONDS) == 0
    assert folder.state().state is State.FINISHED
    ends = [event.state for event in site.events(folder) if isinstance(event, RunEnded)]
    assert ends == ["cancelled", "finished"]
    assert len(set(site.contents().measured)) == BRICKS
    with pytest.raises(RunError, match="nothing to cancel"):
        folder.cancel()


def test_samples_of_a_cancelled_run_are_unfinished_and_count_when_it_is_resumed(site: Site) -> None:
    runs = 200
    folder, process = started(site, site.request(rule=FixedRuns(runs)))
    rounds_needed = FEWEST_SAMPLES + 1
    eventually(lambda: sum(isinstance(it, RoundDone) for it in site.events(folder)) > rounds_needed)
    folder.cancel()
    process.wait(PATIENCE_SECONDS)
    bricks = folder.state().bricks
    assert bricks.unfinished > 0
    progress = RunProgress()
    for event in site.events(folder):
        progress.take(event)
    assert progress.done == bricks.measured <= BRICKS - bricks.unfinished
    assert progress.being_sampled == ()
    before = {(it.brick, it.context): it.samples_ms for it in site.contents().measurements}

    site.hurry()
    assert site.start(folder).wait(PATIENCE_SECONDS) == 0
    assert folder.state().bricks.measured + folder.state().bricks.reused == BRICKS
    for it in site.contents().measurements:
        if len(it.samples_ms) == runs:
            known = before.get((it.brick, it.context), ())
            assert it.samples_ms[: len(known)] == known


def test_the_keyboard_and_a_closed_terminal_interrupt_a_run_unless_it_is_detached(site: Site) -> None:
    for number, detached, expected in (
        (signal.SIGINT, False, State.INTERRUPTED),
        (signal.SIGHUP, False, State.INTERRUPTED),
        (signal.SIGHUP, True, State.FINISHED),
    ):
        another = Site(site.path.with_name(f"{number}-{detached}")).slow()
        folder, process = started(another, detached=detached)
        process.send_signal(number)
        if expected is State.FINISHED:
            another.hurry()
        assert process.wait(PATIENCE_SECONDS) == 0
        assert folder.state().state is expected


def test_a_paused_run_lets_other_runs_measure_and_goes_on(
    site: Site, ended: Callable[["subprocess.Popen[bytes]"], None]
) -> None:
    folder, process = started(site)
    ended(process)
    folder.pause()
    eventually(lambda: has_told(folder, Paused))
    assert folder.state().state is State.PAUSED
    theirs = turn_of(site.queue, "another", site.path)
    so_far = len(site.events(folder))
    folder.unpause()
    eventually(lambda: folder.state().state is State.WAITING)
    assert {type(event) for event in site.events(folder)[so_far:]} <= {Waiting}
    assert "another" in folder.state().message
    theirs.leave()
    site.hurry()
    assert process.wait(PATIENCE_SECONDS) == 0
    assert has_told(folder, Resumed)
    assert folder.state().bricks.measured == BRICKS


def test_a_second_run_waits_and_names_the_first(site: Site, ended: Callable[["subprocess.Popen[bytes]"], None]) -> None:
    mine = turn_of(site.queue, "the-first", Path("/their/data"))
    folder = create_run(site.request(), site.data)
    process = site.start(folder)
    ended(process)
    eventually(lambda: has_told(folder, Waiting))
    state = folder.state()
    assert state.state is State.WAITING
    assert "the-first" in state.message
    assert str(os.getpid()) in state.message
    # Its models were read before, and it computes nothing meanwhile.
    assert not workers_of(process.pid)
    assert [type(event).__name__ for event in site.events(folder)] == ["RunStarted", "ModelLoading", "Waiting"]
    site.hurry()
    mine.leave()
    assert process.wait(PATIENCE_SECONDS) == 0
    assert folder.state().bricks.measured == BRICKS


def test_a_paused_or_waiting_run_can_be_cancelled(site: Site) -> None:
    folder, process = started(site)
    folder.pause()
    eventually(lambda: folder.state().state is State.PAUSED)
    folder.cancel()
    assert process.wait(PATIENCE_SECONDS) == 0
    assert folder.state().state is State.CANCELLED
    # The process that resumes it does not find it paused.
    site.hurry()
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
    site.hurry()
    assert process.wait(PATIENCE_SECONDS) == 0
    assert folder.state().bricks.measured == BRICKS


def test_a_process_that_resumes_a_run_waits_until_the_former_process_has_exited(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = create_run(site.request(), site.data)
    folder.set_state(replace(folder.state(), state=State.CANCELLED))
    leaving = only_process(folder)
    leaving.__enter__()
    naps: list[float] = []

    def nap(seconds: float) -> None:
        naps.append(seconds)
        leaving.__exit__(None, None, None)

    monkeypatch.setattr("dlbricks_tui.runs.control.time.sleep", nap)
    with only_process(folder):
        assert len(naps) == 1


def test_the_last_event_is_written_before_the_state_changes(site: Site) -> None:
    request = site.request()
    folder = create_run(request, site.data)
    told: list[tuple[Event, bool]] = []
    execute(folder, request, site.place, site.queue, lambda event: told.append((event, folder.state().active)))
    # So a viewer that reads events until the final state has read all of them.
    assert isinstance(told[-1][0], RunEnded)
    assert all(active for _, active in told)
    assert not folder.state().active


@pytest.mark.parametrize(
    ("victims", "kills"),
    # The other victims are killed by the long tests.
    [
        (("worker",), 2),
        (("viewer", "run", "worker"), 2),
        *(pytest.param(victims, 10, marks=pytest.mark.soak) for victims in VICTIMS),
    ],
    ids=str,
)
def test_no_kill_loses_an_acknowledged_result_or_leaves_a_process_behind(
    site: Site, victims: tuple[str, ...], kills: int
) -> None:
    site = Site(site.path, nap_seconds=0.005)
    kill_at_random(site, lambda rule: site.request(end_to_end=True, rule=rule), victims, kills)
    contents = site.contents()
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
    with ResultsDatabase(site.data.store) as store:
        assert not store.damage
