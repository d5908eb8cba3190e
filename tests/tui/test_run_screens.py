"""Every action on runs, by keys, on what a run leaves in its folder."""

import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.queue import host_queue
from dlbricks_tui.measure.calibration_nets import NETWORKS
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runs.events import Waiting
from dlbricks_tui.runs.request import read_request
from dlbricks_tui.runs.run_folder import RunFolder, RunFolders, State
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.traits import MXNET, Format
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.tui.app import DlbricksApp
from dlbricks_tui.tui.dialogs.commands import HelpScreen
from dlbricks_tui.tui.dialogs.notices import ErrorScreen
from dlbricks_tui.tui.dialogs.writing import WritingScreen
from dlbricks_tui.tui.messages import RunSeen
from dlbricks_tui.tui.run.all_runs import AllRunsScreen, CancelScreen
from dlbricks_tui.tui.run.follower import SnapshotBuilder
from dlbricks_tui.tui.run.screen import RunScreen
from dlbricks_tui.tui.run.setting_rows import RunSetting
from dlbricks_tui.tui.run.start import StartRunScreen, _SettingRows
from dlbricks_tui.tui.session import Session
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import RowsView
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen
from tests.estimate.stored import brick_records
from tests.host.lines import turn_of
from tests.runs.live_runs import (
    NOBODY,
    RUN,
    calibrated,
    end,
    in_the_middle,
    planned,
    put_run,
    round_done,
    started,
    tell,
)
from tests.runs.live_runs import (
    measured as brick_measured,
)
from tests.runs.runs import Site
from tests.store.samples import calibration, system
from tests.tui.application import NARROW, SIZES, WRITTEN, app_on, eventually, press, running, screen_text, settled
from tests.tui.results import graph_of

OPEN_ALEXNET = ("slash", '"alexnet"', "enter", "enter")
# In the order in which they are selected; None is the default one.
METHODS = (None, *Method)


def to_the(setting: RunSetting) -> tuple[str, ...]:
    """Return the keys from the first row of the start box to a setting, which may be one for experts."""
    return ("full_stop", *"j" * list(RunSetting).index(setting))


@pytest.fixture
def launched(
    request: pytest.FixtureRequest, measured: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[RunFolder]]:
    """Start runs with workers that need no framework and nap before each sample; end all of them after the test."""
    site = Site(measured.path, nap_seconds=getattr(request, "param", 0.1))
    folders: list[RunFolder] = []

    def start(folder: RunFolder, _: DataFolder) -> None:
        process = site.start(folder)
        while folder.state().process.pid != process.pid and process.poll() is None:
            time.sleep(0.01)
        folders.append(folder)
        processes.append(process)

    processes: list[subprocess.Popen[bytes]] = []
    monkeypatch.setattr("dlbricks_tui.tui.run.runs.start_detached", start)
    yield folders
    for process in processes:
        process.kill()
        process.wait()


@pytest.fixture
def asked_for(monkeypatch: pytest.MonkeyPatch) -> list[RunFolder]:
    """Keep the folders of the runs that a test asks for, without a process."""
    folders: list[RunFolder] = []
    monkeypatch.setattr("dlbricks_tui.tui.run.runs.start_detached", lambda folder, _: folders.append(folder))
    return folders


async def shows(pilot: Pilot[None], text: str) -> None:
    await eventually(pilot, lambda: text in screen_text(pilot))


async def shows_no_more(pilot: Pilot[None], text: str) -> None:
    await eventually(pilot, lambda: text not in screen_text(pilot))


async def test_a_running_run_is_in_the_bar_after_a_restart(measured: DataFolder) -> None:
    put_run(measured, in_the_middle())
    async with running(app_on(measured)) as pilot:
        await shows(pilot, " running ")
        assert "17 of 40 bricks · 1 of 2 models · 1 failed" in screen_text(pilot)
        assert "resnet18_v1 …12.50 ms ±1.2 %" in screen_text(pilot)


async def test_escape_closes_the_bar_of_an_ended_run_until_another_run_starts(
    measured: DataFolder,
) -> None:
    folder = put_run(measured, in_the_middle())
    async with running(app_on(measured)) as pilot:
        await shows(pilot, " running ")
        await press(pilot, "escape")
        assert " running " in screen_text(pilot)
        end(folder)
        await shows(pilot, " finished ")
        assert "esc close" in screen_text(pilot)
        await press(pilot, "escape")
        assert " finished " not in screen_text(pilot)
        await press(pilot, "6", "escape")
        assert " finished " not in screen_text(pilot)
        await press(pilot, "5")
        assert isinstance(pilot.app.screen, RunScreen) and "finished" in screen_text(pilot)
        await press(pilot, "escape")
        other = SnapshotBuilder("another-run", ("vgg16",)).snapshot()
        pilot.app.post_message(RunSeen(other))
        await shows(pilot, " vgg16")


async def test_the_bar_closes_after_the_run_screen_showed_the_end(measured: DataFolder) -> None:
    folder = put_run(measured, in_the_middle())
    async with running(app_on(measured)) as pilot:
        await shows(pilot, " running ")
        await press(pilot, "5")
        end(folder)
        await shows(pilot, "finished")
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, WorkbenchScreen)
        assert " finished " not in screen_text(pilot)


async def test_without_a_run_there_is_no_bar(measured: DataFolder) -> None:
    async with running(app_on(measured), (80, 24)) as pilot:
        assert " run " not in screen_text(pilot).splitlines()[-2]
        await press(pilot, "5")
        assert isinstance(pilot.app.screen, AllRunsScreen)
        assert "There are no runs yet." in screen_text(pilot)


async def test_the_bar_follows_the_run_and_opens_its_screen(measured: DataFolder) -> None:
    folder = put_run(measured, in_the_middle())
    async with running(app_on(measured), (80, 24)) as pilot:
        await shows(pilot, "17 of 40 bricks · 1 of 2 models")
        tell(folder, brick_measured(11, 40))
        await shows(pilot, "18 of 40 bricks")
        await press(pilot, "5")
        assert isinstance(pilot.app.screen, RunScreen)
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, WorkbenchScreen)
        end(folder)
        await shows(pilot, " finished ")
        await pilot.click("RunBar")
        assert isinstance(pilot.app.screen, RunScreen)


async def test_a_missing_estimate_shows_the_progress_of_its_run(new: DataFolder) -> None:
    folder = put_run(new, [started(), planned(), *calibrated(11)[: 3 * 2 + 1]])
    async with running(app_on(new)) as pilot:
        await press(pilot, "escape", "slash", '"resnet18"', "enter", "enter")
        await shows(pilot, "calibrates the")
        assert "5 shows the run" in screen_text(pilot)
        end(folder)
        await shows(pilot, "r runs what is missing")


async def test_the_run_screen_shows_the_current_step_before_the_first_brick(new: DataFolder) -> None:
    folder = put_run(new, [started(), Waiting(holder="run 1 of ada")], State.WAITING)
    async with running(app_on(new)) as pilot:
        await press(pilot, "escape", "5")
        # The line of the progress bar is empty still, at which the text of the screen would end.
        await eventually(pilot, lambda: "Waiting for run 1 of ada." in screen_text(pilot))
        assert "Bricks appear here when the run measures them." in screen_text(pilot)
        tell(folder, planned(), *calibrated(11)[: 3 * 2 + 1])
        await shows(pilot, "Calibrating, network 3 of 11.")


async def test_an_estimate_without_a_run_shows_how_to_measure_the_model(new: DataFolder) -> None:
    put_run(new, [started(), planned(), *calibrated(11)[: 3 * 2 + 1]])
    async with running(app_on(new)) as pilot:
        await press(pilot, "escape", *OPEN_ALEXNET)
        await shows(pilot, "calibrating, network 3 of 11")
        assert "r runs what is missing" in screen_text(pilot) and "A run of this model" not in screen_text(pilot)


async def test_the_bar_shows_events_that_happened_on_the_run_screen(measured: DataFolder) -> None:
    folder = put_run(measured, in_the_middle())
    async with running(app_on(measured)) as pilot:
        await shows(pilot, "17 of 40 bricks · 1 of 2 models")
        await press(pilot, "5")
        tell(folder, brick_measured(11, 40))
        await shows(pilot, "18 of 40 bricks")
        await press(pilot, "escape")
        assert "18 of 40 bricks" in screen_text(pilot)


async def test_failures_are_named_as_they_happen(measured: DataFolder) -> None:
    put_run(measured, in_the_middle())
    async with running(app_on(measured)) as pilot:
        await shows(pilot, "17 of 40 bricks · 1 of 2 models")
        await press(pilot, "5")
        shown = screen_text(pilot)
        assert "✗ Convolution 3x3 1x56x56x56  crashed: the worker" in shown
        await press(pilot, "slash", '"failed"', "enter")
        assert "1 Bricks 1 of 16" in screen_text(pilot)
        await press(pilot, "3")
        assert "Left out: broken" in screen_text(pilot)


async def test_a_cursor_at_the_end_of_the_bricks_follows_the_run(measured: DataFolder) -> None:
    folder = put_run(measured, in_the_middle())
    async with running(app_on(measured)) as pilot:
        await shows(pilot, "17 of 40 bricks · 1 of 2 models")
        await press(pilot, "5")
        bricks = pilot.app.screen.query(RowsView).first()
        assert bricks.cursor == 15
        await press(pilot, "k", "k")
        tell(folder, round_done([1], 50), *in_the_middle()[-1:])
        await pilot.pause(0.6)
        assert bricks.cursor == 13


async def test_each_panel_of_the_run_screen_is_a_key_away(measured: DataFolder) -> None:
    put_run(measured, in_the_middle())
    async with running(app_on(measured), (80, 24)) as pilot:
        await shows(pilot, "17 of 40 bricks · 1 of 2 models")
        await press(pilot, "5")
        seen = []
        for key in ("3", "1", "2", "tab", "tab", "shift+tab"):
            await press(pilot, key)
            (panel,) = [panel.id for panel in pilot.app.screen.query(Panel) if panel.has_focus_within]
            assert [each.id for each in pilot.app.screen.query(Panel) if each.display] == [panel]
            seen.append(panel)
        names = [f"run-{name}" for name in ("notes", "bricks", "estimates", "notes", "bricks", "notes")]
        assert seen == names


async def test_a_run_is_paused_and_continued(measured: DataFolder) -> None:
    folder = put_run(measured, in_the_middle())
    async with running(app_on(measured)) as pilot:
        await shows(pilot, "17 of 40 bricks · 1 of 2 models")
        await press(pilot, "5", "p")
        assert folder.pause_file.exists()
        await shows(pilot, "pausing")
        await press(pilot, "p")
        assert not folder.pause_file.exists()
        await shows_no_more(pilot, "pausing")


async def test_in_the_list_of_runs_the_key_of_replays_pauses_and_resumes_a_run_that_goes_on(
    measured: DataFolder,
) -> None:
    folder = put_run(measured, in_the_middle())
    async with running(app_on(measured)) as pilot:
        await press(pilot, "R", "p")
        assert isinstance(pilot.app.screen, AllRunsScreen) and folder.pause_file.exists()
        await press(pilot, "p")
        assert not folder.pause_file.exists()
        # A run that has paused is resumed as one that has ended.
        folder.pause()
        await press(pilot, "r")
        assert not folder.pause_file.exists()


async def test_a_run_that_has_ended_can_be_neither_paused_nor_cancelled(measured: DataFolder) -> None:
    folder = put_run(measured, in_the_middle())
    async with running(app_on(measured)) as pilot:
        await shows(pilot, "17 of 40 bricks · 1 of 2 models")
        await press(pilot, "5")
        end(folder)
        await shows(pilot, " finished ")
        await press(pilot, "p", "x", "r")
        assert isinstance(pilot.app.screen, RunScreen)
        assert not folder.pause_file.exists()
        assert "cancel" not in screen_text(pilot).splitlines()[-1]


async def test_cancelling_asks_first(measured: DataFolder) -> None:
    put_run(measured, in_the_middle())
    async with running(app_on(measured)) as pilot:
        await shows(pilot, "17 of 40 bricks · 1 of 2 models")
        await press(pilot, "5", "x")
        assert isinstance(pilot.app.screen, CancelScreen)
        assert "17 of 40 bricks · 1 of 2 models" in screen_text(pilot)
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, RunScreen)


async def test_the_screen_behind_a_box_and_the_box_follow_the_run(measured: DataFolder) -> None:
    folder = put_run(measured, in_the_middle())
    async with running(app_on(measured)) as pilot:
        await shows(pilot, "17 of 40 bricks · 1 of 2 models")
        await press(pilot, "5", "x")
        assert isinstance(pilot.app.screen, CancelScreen)
        tell(folder, brick_measured(11, 40))
        await eventually(pilot, lambda: screen_text(pilot).count("18 of 40 bricks") == 2)
        assert isinstance(pilot.app.screen, CancelScreen)


async def test_all_runs_are_listed_with_their_state_and_can_be_opened(measured: DataFolder) -> None:
    put_run(measured, in_the_middle(), State.CANCELLED, run="20261120-080000-0001", seconds=40)
    put_run(measured, in_the_middle())
    async with running(app_on(measured)) as pilot:
        await shows(pilot, " running ")
        await press(pilot, "R")
        shown = screen_text(pilot)
        assert "running" in shown and "cancelled" in shown and "40 s" in shown
        await press(pilot, "question_mark")
        assert isinstance(pilot.app.screen, HelpScreen)
        assert "Show the selected run." in screen_text(pilot)
        await press(pilot, "escape", "G", "enter")
        assert isinstance(pilot.app.screen, RunScreen)
        await shows(pilot, "20261120-080000-0001")
        await press(pilot, "R")
        await press(pilot, "g", "enter")
        await shows(pilot, RUN)


async def test_a_run_whose_state_is_damaged_is_named_beside_the_others(measured: DataFolder) -> None:
    put_run(measured, in_the_middle(), State.CANCELLED, run="20261120-080000-0001", seconds=40)
    (measured.runs / "20261119-080000-0001").mkdir()
    (measured.runs / "20261119-080000-0001" / "state.json").write_bytes(b"\xff")
    async with running(app_on(measured)) as pilot:
        await press(pilot, "R")
        await shows(pilot, " cancelled ")
        await eventually(pilot, lambda: "20261119-080000-0001" in [*pilot.app._notifications][-1].message)


async def test_an_interrupted_run_is_offered_to_resume(measured: DataFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    taken_up: list[str] = []
    monkeypatch.setattr("dlbricks_tui.tui.run.runs.start_detached", lambda folder, _: taken_up.append(folder.run))
    put_run(measured, in_the_middle(), process=NOBODY)
    async with running(app_on(measured)) as pilot:
        await shows(pilot, " interrupted ")
        await press(pilot, "5")
        assert "r resumes it" in screen_text(pilot)
        await press(pilot, "r")
        assert taken_up == [RUN]
        await press(pilot, "R")
        await press(pilot, "r")
        assert taken_up == [RUN, RUN]


async def test_an_impossible_action_on_a_run_opens_an_error_box(measured: DataFolder) -> None:
    folder = put_run(measured, in_the_middle())
    async with running(app_on(measured)) as pilot:
        await shows(pilot, "17 of 40 bricks · 1 of 2 models")
        await press(pilot, "5", "x")
        folder.set_state(replace(folder.state(), state=State.FINISHED))
        await press(pilot, "y")
        assert isinstance(pilot.app.screen, ErrorScreen)
        assert "there is nothing to cancel" in screen_text(pilot)


async def test_the_start_box_shows_settings_and_predicted_time(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, *OPEN_ALEXNET, "r")
        assert isinstance(pilot.app.screen, StartRunScreen)
        shown = screen_text(pilot)
        assert "Run alexnet" in shown
        assert "18 bricks to run · 1 whole model to time · about" in shown
        # The default method, inside of networks, needs no calibration.
        assert "calibration" not in shown
        await press(pilot, *to_the(RunSetting.METHOD), *"l" * METHODS.index(Method.ALONE))
        assert "method          alone" in screen_text(pilot)
        assert "The calibration takes about" in screen_text(pilot)
        await press(pilot, "j", "l")
        assert "18 bricks to run · about" in screen_text(pilot)
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, WorkbenchScreen)
        assert not measured.runs.exists()


async def test_the_settings_of_a_run_cycle_both_ways(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, *OPEN_ALEXNET, "r", *to_the(RunSetting.GRANULARITY))
        assert "granularity     1 " in screen_text(pilot)
        await press(pilot, "l", "right", "space")
        assert "granularity     4 " in screen_text(pilot)
        await press(pilot, "h", "left")
        assert "granularity     2 " in screen_text(pilot)


async def test_threads_and_batch_sizes_of_a_run_can_be_written(measured: DataFolder) -> None:
    cores = fingerprint().cores
    async with running(app_on(measured)) as pilot:
        await press(pilot, *OPEN_ALEXNET, "r", *to_the(RunSetting.BATCH), "e")
        assert isinstance(pilot.app.screen, WritingScreen)
        await press(pilot, '"1, 3,x"', "enter")
        assert "Write whole numbers from 1 to" in screen_text(pilot)
        await press(pilot, *["backspace"] * 7, '"1,3,0"', "enter")
        assert "Write whole numbers from 1 to" in screen_text(pilot)
        await press(pilot, "backspace", "6", "enter")
        assert "batch size      1,3,6 " in screen_text(pilot)
        await press(pilot, "k", "e", f'"{4 * cores}"', "enter")
        shown = screen_text(pilot)
        assert f"threads         {4 * cores} " in shown
        assert f"{4 * cores} threads on {cores} core" in shown
        await press(pilot, "k", "e")
        assert isinstance(pilot.app.screen, StartRunScreen)


async def test_a_calibrated_runtime_adds_no_time_to_the_prediction(measured: DataFolder) -> None:
    runtime = Registry(measured.path).runtime_for({Format.MXNET}).identity
    with ResultsDatabase(measured.store) as store:
        way = {"system": fingerprint().id, "runtime": runtime, "level": Level.WRITTEN, "protocol": Method.ALONE.id}
        found = {"constants": MXNET.calibration_constants, "residuals": NETWORKS}
        store.add(calibration(**way, **{kind: tuple((name, 0.01) for name in names) for kind, names in found.items()}))
    async with running(app_on(measured)) as pilot:
        await press(pilot, *OPEN_ALEXNET, "r", *to_the(RunSetting.METHOD), *"l" * METHODS.index(Method.ALONE))
        shown = screen_text(pilot)
        assert "18 bricks to run · 1 whole model to time · about" in shown
        assert "method          alone" in shown and "calibration" not in shown


async def test_the_start_box_names_the_run_that_it_will_wait_for(measured: DataFolder) -> None:
    lock = turn_of(host_queue(), "20261121-0700-cafe", Path("/their/data"))
    try:
        async with running(app_on(measured)) as pilot:
            await press(pilot, "slash", '"resnet18"', "enter", "enter", "r")
            assert "It will wait for run 20261121-0700-cafe" in screen_text(pilot)
        async with running(DlbricksApp(Session(measured, measured.path / "samples"), WRITTEN), (80, 24)) as pilot:
            await press(pilot, *OPEN_ALEXNET, "r", *to_the(RunSetting.METHOD), *"l" * METHODS.index(Method.ALONE))
            shown = screen_text(pilot)
            assert "The calibration takes about" in shown and "It will wait for" in shown
    finally:
        lock.leave()


async def test_without_a_model_there_is_nothing_to_run(measured: DataFolder) -> None:
    async with app_on(measured).run_test(size=(120, 40), notifications=True) as pilot:
        await press(pilot, "r")
        assert isinstance(pilot.app.screen, WorkbenchScreen)
        await shows(pilot, "Mark the models to run with space")


async def test_a_run_is_started_watched_paused_continued_and_cancelled(
    measured: DataFolder, launched: list[RunFolder]
) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, *OPEN_ALEXNET, "r", *to_the(RunSetting.GRANULARITY), "l", "enter")
        (folder,) = launched
        request = read_request(folder.request_file)
        assert (request.level, request.cutting.granularity, request.end_to_end) == (Level.WRITTEN, 2, True)
        await shows(pilot, " running ")
        await press(pilot, "5")
        await shows(pilot, " bricks")
        await press(pilot, "p")
        await shows(pilot, " paused ")
        assert folder.state().state is State.PAUSED
        await press(pilot, "p")
        await shows(pilot, " running ")
        await press(pilot, "x", "y")
        await shows(pilot, " cancelled ")
        assert folder.state().state is State.CANCELLED
        await press(pilot, "r")
        await eventually(pilot, lambda: len(launched) == 2)
        await eventually(pilot, lambda: folder.state().active)


async def test_a_probe_is_started_from_the_start_box(measured: DataFolder, asked_for: list[RunFolder]) -> None:
    runtime = Registry(measured.path).runtime_for({Format.MXNET}).identity
    alexnet, protocol = decompose(graph_of("alexnet")), Method.ALONE.id
    found_there = brick_records(alexnet, system="c5.xlarge", runtime=runtime, protocol=protocol)
    with ResultsDatabase(measured.store) as store:
        store.add(system("c5.xlarge"), *found_there)
    async with running(app_on(measured)) as pilot:
        await press(pilot, *OPEN_ALEXNET, "r", *to_the(RunSetting.PROBE), "l")
        assert "probe           20 s " in screen_text(pilot)
        assert "at most 18 bricks to run · about" in screen_text(pilot)
        await press(pilot, "enter")
        (folder,) = asked_for
        request = read_request(folder.request_file)
        assert (request.probe_bricks, request.time_budget_seconds, request.level) == (30, 20.0, Level.WRITTEN)


async def test_the_start_box_says_why_a_probe_is_not_possible(new: DataFolder) -> None:
    async with running(app_on(new)) as pilot:
        await press(pilot, "escape", *OPEN_ALEXNET, "r", *to_the(RunSetting.PROBE), "l")
        for size in SIZES:
            await pilot.resize_terminal(*size)
            await settled(pilot)
            assert "the store has no results of another system" in screen_text(pilot)
            # The whole reason is in view.
            assert "with `dlbricks results import" in " ".join(screen_text(pilot).replace("┃", " ").split())
        await press(pilot, "h")
        assert "the store has no results of another system" not in screen_text(pilot)
        assert "bricks to run" in screen_text(pilot)


async def test_the_start_box_limits_kernels_and_says_which_runtime_lacks_the_choice(
    measured: DataFolder, asked_for: list[RunFolder]
) -> None:
    async with running(app_on(measured), NARROW) as pilot:
        await press(pilot, *OPEN_ALEXNET, "r", *to_the(RunSetting.OPTIMISATION))
        shown = screen_text(pilot)
        assert all(f"{setting.label} " in shown for setting in RunSetting)
        assert " to run " in shown
        await press(pilot, "l")
        shown = " ".join(screen_text(pilot).replace("┃", " ").split())
        assert "optimisation extended" in shown
        assert "has no choice of optimisation levels: leave extended out, or choose another runtime" in shown
        await press(pilot, "h", "k", "l")
        assert "no choice of" not in screen_text(pilot) and " to run " in screen_text(pilot)
        chosen = RunSetting.INSTRUCTIONS.shown(pilot.app.screen.query_one(_SettingRows).settings)
        await press(pilot, "enter")
        request = read_request(asked_for[0].request_file)
        assert request.runtime.kernels.instructions.value == chosen != "all"


@pytest.mark.parametrize("launched", [0.01], indirect=True)
async def test_the_estimate_updates_while_a_run_stores_results(measured: DataFolder, launched: list[RunFolder]) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, *OPEN_ALEXNET)
        headline = screen_text(pilot).splitlines()[0]
        assert "alexnet" in headline
        await press(pilot, "r", "enter")
        await shows_no_more(pilot, headline)
        assert "alexnet" in screen_text(pilot).splitlines()[0]


async def test_quitting_leaves_the_run_running_and_the_next_start_finds_it(
    measured: DataFolder, launched: list[RunFolder]
) -> None:
    left = app_on(measured)
    async with running(left) as pilot:
        await press(pilot, *OPEN_ALEXNET, "r", "enter")
        await shows(pilot, " running ")
    (state,) = RunFolders(measured.runs).states()
    assert state.active
    # What is told of the run when no screen is there any more is for nobody.
    left.on_run_seen(RunSeen(SnapshotBuilder(state.run, ("alexnet",)).snapshot()))
    async with running(DlbricksApp(Session(measured, measured.path / "samples"))) as pilot:
        await shows(pilot, " running ")
