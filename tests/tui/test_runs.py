"""Every action on runs, by keys, on what a run leaves in its folder."""

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from textual.pilot import Pilot

from dlbricks_tui.analysis.proving import PROOF, ProofOrder, RoundsDone
from dlbricks_tui.analysis.what_if import Gain
from dlbricks_tui.api.followed_runs import SnapshotBuilder
from dlbricks_tui.api.jobs import going_on
from dlbricks_tui.api.run_watch import RunWatch
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.errors import UserError
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.queue import HostQueue, Place, Ticket, WorkKind, host_queue, queued
from dlbricks_tui.jobs.events import Waiting
from dlbricks_tui.jobs.folder import JobFolder, RunFolder, RunFolders, State
from dlbricks_tui.jobs.process import JobAtWork, work_on
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runs.request import RunRequest, read_request
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.settings.cutting import GRANULARITY
from dlbricks_tui.settings.measuring import END_TO_END, METHOD, PROBE_SECONDS
from dlbricks_tui.settings.setting import Setting
from dlbricks_tui.settings.variant import BATCH, INSTRUCTIONS, OPTIMISATION, THREADS
from dlbricks_tui.share.spare import SpareRun
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.tui.dialogs.commands import HelpScreen
from dlbricks_tui.tui.dialogs.notices import ErrorScreen, WritingScreen
from dlbricks_tui.tui.run import host
from dlbricks_tui.tui.run.boxes import (
    RUN_ROWS,
    AllJobsScreen,
    CancelScreen,
    CancelWorkScreen,
    JobScreen,
    QueueScreen,
    StartRunScreen,
)
from dlbricks_tui.tui.run.screen import RunScreen
from dlbricks_tui.tui.run.status import HostNow, status_line
from dlbricks_tui.tui.scenario import ScenarioScreen
from dlbricks_tui.tui.widgets.form import FormRows
from dlbricks_tui.tui.widgets.rows import RowsView
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen
from tests.estimate.stored import brick_records
from tests.host.lines import Work, turn_of
from tests.runs.live_runs import NOBODY, RUN, end, in_the_middle, planned, put_run, round_done, started, tell
from tests.runs.live_runs import measured as brick_measured
from tests.runs.runs import Site
from tests.store.samples import system
from tests.tui.application import MEASURED_ONLY, MEDIUM, NARROW, SIZES, app_on, row_of, running
from tests.tui.driving import eventually, find, press, screen_text, shows, shows_no_more, told, words
from tests.tui.results import graph_of
from tests.tui.snapshots import resize
from tests.tui.test_run_lines import text_of

OPEN_ALEXNET = (*find("alexnet"), "enter")
# In the order in which they are selected; None is the default one.
METHODS = (None, *Method)
EARLIER = "20261120-080000-0001"


@pytest.fixture
def known(new: DataFolder) -> DataFolder:
    """A data folder with a store, so that no box welcomes the user."""
    new.store.mkdir(parents=True)
    return new


@pytest.fixture
def launched(known: DataFolder, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[RunFolder]]:
    """Start runs with workers that need no framework and nap before each sample; end all of them after the test."""
    site = Site(known.path, nap_seconds=0.1)
    folders: list[RunFolder] = []

    def start(folder: RunFolder, _: DataFolder) -> None:
        process = site.start(folder)
        while folder.state().process.pid != process.pid and process.poll() is None:
            time.sleep(0.01)
        folders.append(folder)
        processes.append(process)

    processes: list[subprocess.Popen[bytes]] = []
    monkeypatch.setattr("dlbricks_tui.api.jobs.start_apart", start)
    yield folders
    for process in processes:
        process.kill()
        process.wait()


async def choose(pilot: Pilot[None], setting: Setting[Any], *keys: str) -> None:
    """Go to a setting of the start box, which may be one for experts, and press keys there."""
    pilot.app.screen.query_one(FormRows).move_to(RUN_ROWS.index(row_of(RUN_ROWS, setting)))
    await press(pilot, *keys)


def in_a_line(pilot: Pilot[None]) -> str:
    return " ".join(screen_text(pilot).replace("┃", " ").split())


async def test_a_run_is_followed_on_its_bar_and_its_screen_and_in_the_box_that_cancels_it(known: DataFolder) -> None:
    folder = put_run(known, in_the_middle())
    async with running(app_on(known)) as pilot:
        await shows(pilot, " running ")
        assert "17 of 40 bricks, 1 of 2 models, 1 failed" in screen_text(pilot)
        await press(pilot, "escape", shows=" running ")
        await resize(pilot, NARROW)
        assert "17 of 40 bricks, 1 of 2 models" in screen_text(pilot)
        tell(folder, brick_measured(11, 40))
        await shows(pilot, "18 of 40 bricks")
        await resize(pilot, MEDIUM)
        await pilot.click("StatusLine")
        assert isinstance(pilot.app.screen, RunScreen)
        tell(folder, brick_measured(12, 41))
        await shows(pilot, "19 of 40 bricks")
        await press(pilot, "escape")
        # The bar has what happened on the other screen.
        assert isinstance(pilot.app.screen, WorkbenchScreen) and "19 of 40 bricks" in screen_text(pilot)
        await press(pilot, "w", "p")
        assert folder.pause_file.exists()
        await shows(pilot, "pausing")
        await press(pilot, "p")
        assert not folder.pause_file.exists()
        await shows_no_more(pilot, "pausing")
        await press(pilot, "x", on=CancelScreen)
        assert "19 of 40 bricks, 1 of 2 models" in screen_text(pilot)
        await press(pilot, "escape", on=RunScreen)
        await press(pilot, "x")
        tell(folder, brick_measured(13, 42))
        # The box and the screen behind it.
        await eventually(pilot, lambda: screen_text(pilot).count("20 of 40 bricks") == 2)
        assert isinstance(pilot.app.screen, CancelScreen)
        folder.set_state(replace(folder.state(), state=State.FINISHED))
        await press(pilot, "y", on=ErrorScreen)
        assert "there is nothing to cancel" in screen_text(pilot)
        await press(pilot, "escape")
        end(folder)
        await shows(pilot, " finished ")
        # A run that has ended can be neither paused nor cancelled nor resumed.
        await press(pilot, "p", "x", "p")
        assert isinstance(pilot.app.screen, RunScreen) and not folder.pause_file.exists()
        assert "cancel" not in screen_text(pilot).splitlines()[-1]
        await press(pilot, "escape", on=WorkbenchScreen)
        assert " finished " not in screen_text(pilot)


async def test_escape_closes_the_bar_of_an_ended_run_until_another_run_starts(known: DataFolder) -> None:
    folder, app = put_run(known, in_the_middle()), app_on(known)
    async with running(app) as pilot:
        await shows(pilot, " running ")
        end(folder)
        await shows(pilot, " finished ")
        assert "esc close" in screen_text(pilot)
        await press(pilot, "escape")
        assert " finished " not in screen_text(pilot)
        await press(pilot, "R", "escape")
        assert " finished " not in screen_text(pilot)
        await press(pilot, "w", on=RunScreen, shows="finished")
        await press(pilot, "escape")
        other = SnapshotBuilder("another-run", ("vgg16",)).snapshot()
        app._runs.take(other)
        await shows(pilot, " vgg16")


async def test_the_run_screen_shows_a_run_from_its_wait_to_failures(known: DataFolder) -> None:
    folder = put_run(known, [started(), Waiting(holder="run 1 of ada")], State.WAITING)
    async with running(app_on(known)) as pilot:
        await press(pilot, "w")
        # The line of the progress bar is empty still, at which the text of the screen would end.
        await eventually(pilot, lambda: "Waiting for run 1 of ada." in screen_text(pilot))
        assert "Bricks appear here when the run measures them." in screen_text(pilot)
        tell(folder, planned())
        await shows(pilot, "8 of 40 bricks")
        tell(folder, *in_the_middle())
        await shows(pilot, "17 of 40 bricks, 1 of 2 models")
        assert "failed Convolution 3x3 1x56x56x56  crashed: the worker" in screen_text(pilot)
        bricks = pilot.app.screen.query(RowsView).first()
        # A cursor at the end follows the run; one that was moved stays.
        assert bricks.cursor == 15
        await press(pilot, "k", "k")
        tell(folder, round_done([1], 50), brick_measured(11, 40))
        await shows(pilot, "18 of 40 bricks")
        assert bricks.cursor == 13
        await press(pilot, *find("failed"), shows="1 Bricks 1 of 16")
        await press(pilot, "3", "g", shows="Left out: broken")


async def test_all_runs_are_listed_opened_paused_and_resumed_and_a_damaged_one_is_named(known: DataFolder) -> None:
    put_run(known, in_the_middle(), State.CANCELLED, run=EARLIER, seconds=40)
    (known.runs / "20261119-080000-0001").mkdir()
    (known.runs / "20261119-080000-0001" / "state.json").write_bytes(b"\xff")
    folder = put_run(known, in_the_middle())
    async with running(app_on(known)) as pilot:
        await shows(pilot, " running ")
        await press(pilot, "J")
        shown = screen_text(pilot)
        assert "running" in shown and "cancelled" in shown and "40 s" in shown
        await eventually(pilot, lambda: "20261119-080000-0001" in [*pilot.app._notifications][-1].message)
        await press(pilot, "question_mark", on=HelpScreen)
        assert "Show the selected job." in screen_text(pilot)
        # The key of replays pauses a run that goes on.
        await press(pilot, "escape", "p")
        assert isinstance(pilot.app.screen, AllJobsScreen) and folder.pause_file.exists()
        await press(pilot, "p")
        assert not folder.pause_file.exists()
        # A run that has paused is resumed as one that has ended.
        folder.pause()
        await press(pilot, "p")
        assert not folder.pause_file.exists()
        await press(pilot, "escape", "J", "G", "enter", on=RunScreen)
        await shows(pilot, EARLIER)
        await press(pilot, "J", "g", "enter")
        await shows(pilot, RUN)
        # The list follows the run.
        await press(pilot, "J", shows="running")
        end(folder)
        await eventually(pilot, lambda: "finished" in words(pilot))


async def test_other_jobs_are_shown_in_a_box_cancelled_and_resumed(
    known: DataFolder, asked_for: list[RunFolder], monkeypatch: pytest.MonkeyPatch
) -> None:
    order = ProofOrder(ModelSource("net", Path("/net.onnx")), ())
    job = PROOF.create(known, ("net",), order)

    def work(at_work: JobAtWork[ProofOrder]) -> None:
        at_work.tell(RoundsDone("threads-1", 7, Gain(0.41, 0.38, 0.44), 12.0))
        raise UserError("the worker was lost")

    work_on(PROOF, job, known, work)
    cancelled, paused = list[str](), list[str]()
    monkeypatch.setattr(JobFolder, "cancel", lambda it: cancelled.append(it.run))
    async with running(app_on(known)) as pilot:
        await press(pilot, "J", shows="proof of net")
        await press(pilot, "enter", on=JobScreen)
        shown = screen_text(pilot)
        assert "failed: the worker was lost" in shown and "use 1 thread: +41.0 % +- 3.0 points after 7 rounds" in shown
        # It has ended: there is nothing to cancel, and it can be worked on again.
        assert "x cancel" not in shown
        await press(pilot, "x", "escape", "p")
        assert ([it.run for it in asked_for], cancelled) == ([job.run], [])
        assert isinstance(pilot.app.screen, JobScreen)
        job.set_state(replace(job.state(), state=State.RUNNING, message=""))
        await shows(pilot, "running, ")
        await pilot.press("x")
        await eventually(pilot, lambda: cancelled == [job.run])
        monkeypatch.setattr(JobFolder, "pause", lambda it: paused.append(it.run))
        await pilot.press("p")
        await eventually(pilot, lambda: paused == [job.run])
        await press(pilot, "escape", "slash", '"trace"', shows="No job contains all of these words.")


async def test_a_job_that_makes_room_for_a_newer_one_ends_no_program(known: DataFolder) -> None:
    job = PROOF.create(known, ("net",), ProofOrder(ModelSource("net", Path("/net.onnx")), ()))
    job.set_state(replace(job.state(), state=State.FAILED, message="the worker was lost"))
    async with running(app_on(known)) as pilot:
        await press(pilot, "J", "enter", on=JobScreen)
        shutil.rmtree(job.path)
        await eventually(pilot, lambda: any(f"there is no job {job.run} here" in it for it in told(pilot)))
        await press(pilot, on=JobScreen, shows="failed: the worker was lost")


async def test_an_interrupted_run_is_offered_to_resume(known: DataFolder, asked_for: list[RunFolder]) -> None:
    put_run(known, in_the_middle(), process=NOBODY)
    async with running(app_on(known)) as pilot:
        await shows(pilot, " interrupted ")
        await resize(pilot, NARROW)
        assert "w p resume" in screen_text(pilot)
        await press(pilot, "w", shows="p resumes it")
        await press(pilot, "p")
        assert [it.run for it in asked_for] == [RUN]
        await press(pilot, "J", "p")
        assert [it.run for it in asked_for] == [RUN, RUN]


async def test_the_start_box_shows_what_a_run_would_do_and_why_it_cannot(
    known: DataFolder, asked_for: list[RunFolder]
) -> None:
    alone = "l" * METHODS.index(Method.ALONE)
    runtime = Registry(known.path).runtime_for({Format.MXNET}).identity
    async with running(app_on(known)) as pilot:
        assert " run " not in screen_text(pilot).splitlines()[-2]
        await press(pilot, *find("nosuch"), "m", on=WorkbenchScreen)
        assert "Mark the models to run with space" in [*pilot.app._notifications][-1].message
        await press(pilot, "w", on=AllJobsScreen)
        assert "There are no jobs yet." in screen_text(pilot)
        # Without an open model, the selected one is run.
        await press(pilot, "escape", "1", *find("alexnet"), "m", on=StartRunScreen)
        shown = screen_text(pilot)
        assert "Run alexnet" in shown
        assert "18 bricks to run, 1 whole model to time, about" in shown
        await press(pilot, "full_stop")
        await choose(pilot, METHOD, *alone)
        assert "method          alone" in screen_text(pilot)
        await choose(pilot, END_TO_END, "l")
        assert "18 bricks to run, about" in screen_text(pilot)
        await choose(pilot, PROBE_SECONDS, "l")
        for size in SIZES:
            await resize(pilot, size)
            assert "the store has no results of another system" in screen_text(pilot)
            # The whole reason is in view.
            assert "with `dlbricks results import" in in_a_line(pilot)
        await press(pilot, "h")
        assert "the store has no results of another system" not in screen_text(pilot)
        assert "bricks to run" in screen_text(pilot)
        await press(pilot, "escape", on=WorkbenchScreen)
        assert not known.runs.exists()

        # While others measure it would wait.
        lock = turn_of(host_queue(), "20261121-0700-cafe", Path("/their/data"))
        try:
            await resize(pilot, NARROW)
            await press(pilot, "m")
            assert "It will wait for run 20261121-0700-cafe" in in_a_line(pilot)
        finally:
            lock.leave()
        with ResultsDatabase(known.store) as store:
            there = brick_records(
                decompose(graph_of("alexnet")), system="c5.xlarge", runtime=runtime, protocol=Method.ALONE.id
            )
            store.add(system(fingerprint().id), system("c5.xlarge"), *there)
        await press(pilot, "escape", "m")
        await choose(pilot, METHOD, *alone)
        assert "method          alone" in screen_text(pilot)
        assert "1 whole model to time, about" in screen_text(pilot)

        # With results of another system, a probe chooses the bricks.
        await choose(pilot, PROBE_SECONDS, "l")
        assert "probe           20 s " in screen_text(pilot)
        assert "at most 18 bricks to run, about" in screen_text(pilot)
        await press(pilot, "enter")
    request = read_request(asked_for[0].request_file)
    assert (request.probe_bricks, request.time_budget_seconds, request.level) == (30, 20.0, Level.WRITTEN)


async def test_a_process_gets_ready_for_the_run_while_its_box_is_open_and_stays_if_it_is_opened_again(
    known: DataFolder, asked_for: list[RunFolder], monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared: list[tuple[int | None, Callable[[], bool]]] = []
    ended: list[SpareRun] = []

    def prepare(_: SpareRun, request: RunRequest, is_over: Callable[[], bool]) -> None:
        prepared.append((request.runtime.settings.threads, is_over))

    monkeypatch.setattr(SpareRun, "prepare", prepare)
    monkeypatch.setattr(SpareRun, "end", lambda spare: ended.append(spare))
    async with running(app_on(known)) as pilot:
        await press(pilot, *OPEN_ALEXNET, "m", on=StartRunScreen)
        await choose(pilot, THREADS, "equals_sign", "1", "enter")
        assert prepared[-1][0] == 1 and not prepared[-1][1]() and not ended
        await press(pilot, "escape", on=WorkbenchScreen)
        assert prepared[-1][1]() and not ended
        monkeypatch.setattr(host, "_SPARE_SECONDS", 0.1)
        await press(pilot, "m", "escape", on=WorkbenchScreen)
        await eventually(pilot, lambda: len(ended) == 1)
        workbench = cast("WorkbenchScreen", pilot.app.screen)
        await press(pilot, "m", on=StartRunScreen)
        workbench.action_start_run()
        await press(pilot, "escape", on=StartRunScreen)
        await pilot.pause(0.3)
        assert len(ended) == 1
        await press(pilot, "escape", on=WorkbenchScreen)
        await eventually(pilot, lambda: len(ended) == 2)
        await press(pilot, "m", "enter", on=WorkbenchScreen)
        assert all(is_over() for _, is_over in prepared)
    assert len(asked_for) == 1


async def test_settings_of_a_run_are_stepped_through_written_and_refused(
    known: DataFolder, asked_for: list[RunFolder]
) -> None:
    cores = fingerprint().cores
    async with running(app_on(known, MEASURED_ONLY), NARROW) as pilot:
        # Beside the box, the layers leave its lines alone.
        await press(pilot, *OPEN_ALEXNET, "2", "m", "full_stop")
        await choose(pilot, BATCH, "equals_sign")
        assert isinstance(pilot.app.screen, WritingScreen)
        for wrong in ('"1, 3,x"', '"1,3,0"'):
            await press(pilot, "ctrl+u", wrong, "enter", shows="Give a whole number from 1 to")
        await press(pilot, "backspace", "6", "enter", shows="batch           1,3,6 ")
        await press(pilot, "k", "equals_sign", f'"{4 * cores}"', "enter", shows=f"threads         {4 * cores} ")
        assert f"{4 * cores} threads on {cores} core" in in_a_line(pilot)
        # A setting that is no number has its next value instead.
        await press(pilot, "k", "equals_sign", "h", on=StartRunScreen)
        await choose(pilot, GRANULARITY)
        assert "granularity     1 " in screen_text(pilot)
        await press(pilot, "l", "right", "l", shows="granularity     4 ")
        await press(pilot, "h", "left", shows="granularity     2 ")
        await choose(pilot, OPTIMISATION)
        shown = screen_text(pilot)
        assert all(f"{row.name} " in shown for row in RUN_ROWS)
        assert " to run" in in_a_line(pilot)
        await press(pilot, "l")
        assert "optimisation extended" in in_a_line(pilot)
        assert "no choice of optimisation levels: leave extended out, or choose another runtime" in in_a_line(pilot)
        await press(pilot, "h", "k", "l")
        assert "no choice of" not in screen_text(pilot) and " to run" in in_a_line(pilot)
        # The cursor stays on its setting while fewer are shown, and then all.
        await press(pilot, "full_stop", "full_stop")
        rows = pilot.app.screen.query_one(FormRows)
        assert rows.selected is row_of(RUN_ROWS, INSTRUCTIONS)
        chosen = row_of(RUN_ROWS, INSTRUCTIONS).shown(rows.form)
        await press(pilot, "enter")
    request = read_request(asked_for[0].request_file)
    assert request.runtime.kernels.instructions.value == chosen != "all"
    assert request.measured_only, "the settings predict nothing"


async def test_a_run_is_started_watched_paused_continued_cancelled_resumed_and_left_behind(
    known: DataFolder, launched: list[RunFolder]
) -> None:
    app = app_on(known)
    async with running(app) as pilot:
        await press(pilot, *OPEN_ALEXNET, "m", "full_stop")
        await choose(pilot, GRANULARITY, "l", "enter")
        (folder,) = launched
        request = read_request(folder.request_file)
        assert (request.level, request.cutting.granularity, request.end_to_end) == (Level.WRITTEN, 2, True)
        await shows(pilot, " running ")
        await press(pilot, "w")
        await shows(pilot, " bricks")
        await press(pilot, "p")
        await shows(pilot, " paused ")
        assert folder.state().state is State.PAUSED
        await press(pilot, "p")
        await shows(pilot, " running ")
        await press(pilot, "x", "y")
        await shows(pilot, " cancelled ")
        assert folder.state().state is State.CANCELLED
        await press(pilot, "p")
        await eventually(pilot, lambda: len(launched) == 2)
        await eventually(pilot, lambda: folder.state().active)
    (state,) = RunFolders(known.runs).states()
    assert state.active
    # What is told of the run when no screen is there any more is for nobody.
    app._runs.take(SnapshotBuilder(state.run, ("alexnet",)).snapshot())


async def test_a_run_is_shown_before_the_watch_tells_of_it(
    known: DataFolder, asked_for: list[RunFolder], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunWatch, "look", lambda _: None)
    async with running(app_on(known)) as pilot:
        await press(pilot, *OPEN_ALEXNET, "w", on=AllJobsScreen)
        await press(pilot, "escape", "m", "enter", "w", on=RunScreen, shows="Looking for the run.")
        assert len(asked_for) == 1


MODEL = "squeezenet1.1"


@pytest.fixture
def line() -> HostQueue:
    return host_queue()


@pytest.fixture
def squeezenet(line: HostQueue) -> Iterator[Ticket]:
    """A run of another data folder, which measures."""
    ticket = line.join(queued(WorkKind.RUN, [MODEL], Path("/their/data"), "20261128-1"))
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
        await press(pilot, "Q", on=QueueScreen)
        shown = screen_text(pilot)
        assert f"run            {MODEL}  41 %" in shown and "trace          alexnet  waits, place 1" in shown
        await press(pilot, "j", "x", on=CancelWorkScreen)
        assert f"process {trace.process.pid}" in screen_text(pilot)
        await press(pilot, "y")
        assert trace.process.wait() != 0
        await eventually(pilot, lambda: "waits, place" not in screen_text(pilot))
        assert isinstance(pilot.app.screen, QueueScreen)
        # What another data folder measures is not followed here.
        await press(pilot, "enter", on=QueueScreen)
        await press(pilot, "escape", on=WorkbenchScreen)
        await eventually(pilot, lambda: "; then" not in screen_text(pilot))
    trace.kill()


@pytest.mark.usefixtures("predicted_once")
async def test_work_of_this_data_folder_is_followed_from_the_box(known: DataFolder, line: HostQueue) -> None:
    folder = put_run(known, [started()], State.RUNNING)
    run = line.join(queued(WorkKind.RUN, [MODEL], known.path, folder.run))
    assert run.try_take()
    load = line.join(queued(WorkKind.LOAD_TEST, [MODEL], known.path))
    async with running(app_on(known), NARROW) as pilot:
        await eventually(pilot, lambda: f"then load test of {MODEL}" in screen_text(pilot))
        await press(pilot, "Q", "enter", on=RunScreen)
        await press(pilot, "escape", "Q", "j", "enter", on=ScenarioScreen)
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
    run = line.join(queued(WorkKind.RUN, [MODEL], known.path, "20261128-1"))
    trace = line.join(queued(WorkKind.TRACE, ["alexnet"], known.path))
    theirs = line.join(queued(WorkKind.TRACE, ["vgg16"], Path("/their/data")))
    told = list(going_on(known))
    assert told[0] == (
        f"{MODEL} goes on in the background: dlbricks shows it again, `dlbricks runs watch 20261128-1` follows it"
    )
    assert f"`dlbricks runs watch {paused.run}` follows it" in told[1]
    assert told[2:] == ["trace of alexnet goes on in the background: dlbricks shows it again"]
    for ticket in (run, trace, theirs):
        ticket.leave()
