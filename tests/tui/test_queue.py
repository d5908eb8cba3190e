"""The line of work on this host in the workbench: its status line, and the box that lists and cancels it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dlbricks_tui.api.followed_runs import SnapshotBuilder
from dlbricks_tui.api.jobs import going_on
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.queue import HostQueue, Place, QueuedWork, Ticket, WorkKind, host_queue
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.tui.run.boxes import CancelWorkScreen, QueueScreen
from dlbricks_tui.tui.run.screen import RunScreen
from dlbricks_tui.tui.run.status import HostNow, status_line
from dlbricks_tui.tui.scenario import ScenarioScreen
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen
from tests.host.lines import Work
from tests.runs.live_runs import put_run, started
from tests.tui.application import NARROW, app_on, eventually, press, running, screen_text
from tests.tui.test_run_lines import text_of
from tests.tui.test_scenario_screen import predicted_once  # noqa: F401 - a fixture

MODEL = "squeezenet1.1"


@pytest.fixture
def line() -> HostQueue:
    return host_queue()


@pytest.fixture
def known(new: DataFolder) -> DataFolder:
    """A data folder with a store, so that no box welcomes the user."""
    new.store.mkdir(parents=True)
    return new


@pytest.fixture
def squeezenet(line: HostQueue) -> Iterator[Ticket]:
    """A run of another data folder, which measures."""
    ticket = line.join(QueuedWork(WorkKind.RUN, [MODEL], Path("/their/data"), "20261128-1"))
    assert ticket.try_take()
    # Its hours pass slowly enough for a test.
    ticket.progress(0.41, 36_000.0)
    yield ticket
    ticket.leave()


@pytest.mark.usefixtures("squeezenet")
async def test_the_status_line_and_its_box_tell_what_measures_and_what_waits_and_the_box_cancels_it(
    known: DataFolder, line: HostQueue, tmp_path: Path
) -> None:
    async with running(app_on(known), NARROW) as pilot:
        await eventually(pilot, lambda: f"{MODEL} 41 %, 10.0 h  " in screen_text(pilot))
        # A command of another terminal, and one of another data folder.
        trace = Work(line.path, WorkKind.TRACE, "alexnet", known.path)
        load = Work(line.path, WorkKind.LOAD_TEST, "320n", tmp_path)
        await eventually(pilot, lambda: "; then trace of alexnet, load test of 320n" in screen_text(pilot))
        load.kill()
        await eventually(
            pilot, lambda: "; then trace of alexnet" in screen_text(pilot) and "320n" not in screen_text(pilot)
        )
        await press(pilot, "Q")
        assert isinstance(pilot.app.screen, QueueScreen)
        shown = screen_text(pilot)
        assert f"run            {MODEL}  41 %" in shown and "trace          alexnet  waits, place 1" in shown
        await press(pilot, "j", "x")
        assert isinstance(pilot.app.screen, CancelWorkScreen)
        assert f"process {trace.process.pid}" in screen_text(pilot)
        await press(pilot, "y")
        assert trace.process.wait() != 0
        await eventually(pilot, lambda: "waits, place" not in screen_text(pilot))
        assert isinstance(pilot.app.screen, QueueScreen)
        # What another data folder measures is not followed here.
        await press(pilot, "enter")
        assert isinstance(pilot.app.screen, QueueScreen)
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, WorkbenchScreen)
        await eventually(pilot, lambda: "; then" not in screen_text(pilot))
    trace.kill()


@pytest.mark.usefixtures("predicted_once")
async def test_work_of_this_data_folder_is_followed_from_the_box(known: DataFolder, line: HostQueue) -> None:
    folder = put_run(known, [started()], State.RUNNING)
    run = line.join(QueuedWork(WorkKind.RUN, [MODEL], known.path, folder.run))
    assert run.try_take()
    load = line.join(QueuedWork(WorkKind.LOAD_TEST, [MODEL], known.path))
    async with running(app_on(known), NARROW) as pilot:
        await eventually(pilot, lambda: f"then load test of {MODEL}" in screen_text(pilot))
        await press(pilot, "Q", "enter")
        assert isinstance(pilot.app.screen, RunScreen)
        await press(pilot, "escape", "Q", "j", "enter")
        assert isinstance(pilot.app.screen, ScenarioScreen)
    load.leave()
    run.leave()


@pytest.mark.usefixtures("squeezenet")
def test_a_run_that_is_alone_in_the_line_has_its_own_bar(line: HostQueue) -> None:
    run = SnapshotBuilder("20261128-1", (MODEL,)).snapshot()
    places = line.places()
    told = status_line(HostNow(run, places), 80, has_keys=True)
    assert told == status_line(HostNow(run), 80, has_keys=True)
    assert text_of(status_line(HostNow(None, places), 80, has_keys=True)).startswith(f" {MODEL} 41 %, ")
    behind = HostNow(replace(run, share=0.4), (*places, Place(1, "trace", "alexnet")))
    assert "  40 %  ; then trace of alexnet  " in text_of(status_line(behind, 100, has_keys=True))
    # Its process has still to end when its figures are final.
    ended = replace(run, state=State.FINISHED)
    assert text_of(status_line(HostNow(ended, places), 80, has_keys=True)).startswith(" finished ")


def test_leaving_tells_what_goes_on_and_how_to_see_it_again(known: DataFolder, line: HostQueue) -> None:
    assert not list(going_on(known))
    paused = put_run(known, [started()], State.PAUSED)
    run = line.join(QueuedWork(WorkKind.RUN, [MODEL], known.path, "20261128-1"))
    trace = line.join(QueuedWork(WorkKind.TRACE, ["alexnet"], known.path))
    theirs = line.join(QueuedWork(WorkKind.TRACE, ["vgg16"], Path("/their/data")))
    told = list(going_on(known))
    assert told[0] == (
        f"{MODEL} goes on in the background: dlbricks shows it again, `dlbricks runs watch 20261128-1` follows it"
    )
    assert f"`dlbricks runs watch {paused.run}` follows it" in told[1]
    assert told[2:] == ["trace of alexnet goes on in the background: dlbricks shows it again"]
    for ticket in (run, trace, theirs):
        ticket.leave()
