"""Searching in boxes."""

import pytest

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.tui.dialogs.commands import HelpScreen
from dlbricks_tui.tui.results.screen import ResultsScreen
from dlbricks_tui.tui.results.table import FIRST_COLUMNS, ColumnsScreen, ResultsPanel
from dlbricks_tui.tui.run.boxes import AllJobsScreen
from dlbricks_tui.tui.run.screen import RunScreen
from dlbricks_tui.tui.widgets.text import TextView
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen
from tests.runs.live_runs import in_the_middle, put_run
from tests.tui.application import MEASURED_ONLY, SIZES, app_on, press, running, screen_text, showing
from tests.tui.test_run_screens import shows

OLDER = "20261120-080000-0001"


@pytest.fixture
def runs(measured: DataFolder) -> DataFolder:
    put_run(measured, in_the_middle(), State.CANCELLED, run=OLDER, seconds=40)
    put_run(measured, in_the_middle())
    return measured


async def test_a_run_is_found_by_its_state_and_watched(runs: DataFolder) -> None:
    async with running(app_on(runs, MEASURED_ONLY), SIZES[2]) as pilot:
        await shows(pilot, "17 of 40 bricks")
        await press(pilot, "J", "question_mark")
        help_text = screen_text(pilot)
        assert "Search in this list." in help_text and "Show the selected job." in help_text
        assert "Close the box without doing anything." in help_text and "Save a picture of the screen" in help_text
        assert "Switch to the next theme." not in help_text
        await press(pilot, "escape", "slash", '"nosuch"')
        assert "No job contains all of these words." in screen_text(pilot)
        assert "esc shows all jobs again." in screen_text(pilot)
        await press(pilot, "enter", "enter", "m")
        assert isinstance(pilot.app.screen, AllJobsScreen)
        await press(pilot, "slash", "escape")
        assert isinstance(pilot.app.screen, AllJobsScreen) and "cancelled" in screen_text(pilot)
        await press(pilot, "slash", '"Cancelled resnet18"')
        assert isinstance(pilot.app.screen, AllJobsScreen) and "40 s" in screen_text(pilot)
        assert " running " not in screen_text(pilot).partition("Jobs")[2].partition("┗")[0]
        await press(pilot, "enter", "enter")
        assert isinstance(pilot.app.screen, RunScreen)
        await shows(pilot, OLDER)


async def test_a_column_is_searched_by_its_description_and_moved_among_all(stored: DataFolder) -> None:
    async with showing(stored, ResultsScreen, SIZES[2]) as pilot:
        await press(pilot, "c", "slash", '"the median of"', "enter")
        assert isinstance(pilot.app.screen, ColumnsScreen)
        assert "[ ] median_ms" in screen_text(pilot) and "[x] name" not in screen_text(pilot)
        await press(pilot, "space", "slash", "ctrl+u", '"nosuch"')
        assert "No column contains all of these words." in screen_text(pilot)
        await press(pilot, "enter", "space", "J", "slash", "escape")
        assert "[x] median_ms" in screen_text(pilot) and "[x] name" in screen_text(pilot)
        await press(pilot, "enter")
        assert isinstance(pilot.app.screen, ResultsScreen)
        assert pilot.app.screen.query_one(ResultsPanel)._list.arrangement.columns == (*FIRST_COLUMNS, "median_ms")
        await press(pilot, "c", "slash", '"the age of"', "enter", *"KKKKK", "enter")
        (heading,) = [line for line in screen_text(pilot).splitlines() if "age↑" in line]
        assert heading.index("age↑") < heading.index("model")


async def test_the_help_can_be_searched(new: DataFolder) -> None:
    async with running(app_on(new, MEASURED_ONLY), SIZES[0]) as pilot:
        await press(pilot, "escape", "2", "question_mark", "slash", '"critical"')
        assert isinstance(pilot.app.screen, HelpScreen)
        help_text = screen_text(pilot)
        assert "In the decomposition" in help_text and "on the critical path" in help_text
        assert "On the workbench" not in help_text and "equal brick or module" not in help_text
        await press(pilot, "ctrl+u", '"nosuch"')
        assert "No action here contains all of these words." in screen_text(pilot)
        await press(pilot, "escape")
        assert "The parts of the model" in screen_text(pilot)
        assert isinstance(pilot.app.screen.focused, TextView)
        await press(pilot, "q")
        assert isinstance(pilot.app.screen, WorkbenchScreen)
