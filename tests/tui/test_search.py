"""Searching in panels and in boxes."""

import pytest
from textual.pilot import Pilot

from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.tui.dialogs.commands import HelpScreen
from dlbricks_tui.tui.result_table import FIRST_COLUMNS, ColumnsScreen, ResultsPanel
from dlbricks_tui.tui.results import ResultsScreen
from dlbricks_tui.tui.run.boxes import AllJobsScreen
from dlbricks_tui.tui.run.screen import RunScreen
from dlbricks_tui.tui.widgets.panel import SearchLine
from dlbricks_tui.tui.widgets.rows import RowsView
from dlbricks_tui.tui.widgets.text import TextView
from dlbricks_tui.tui.workbench.models import ModelsPanel
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen
from tests.runs.live_runs import in_the_middle, put_run
from tests.tui.application import LIBRARY, MEASURED_ONLY, SIZES, app_on, press, running, screen_text, showing
from tests.tui.stored_results import RESULTS
from tests.tui.test_run_screens import shows


def models(pilot: Pilot[None]) -> ModelsPanel:
    return pilot.app.screen.query_one(ModelsPanel)


def shown(pilot: Pilot[None]) -> list[str]:
    return [source.name for source in models(pilot)._list.items]


def under_cursor(pilot: Pilot[None]) -> str:
    source = models(pilot).selected
    assert source is not None
    return source.name


async def test_a_search_is_kept_replaced_and_ended(measured: DataFolder) -> None:
    async with running(app_on(measured, MEASURED_ONLY)) as pilot:
        # It selects the first match, unless the selected model matches.
        last = models(pilot)._list.items[-1].name
        await press(pilot, "G", "k")
        assert under_cursor(pilot) == last
        await press(pilot, "slash", '"resnet"')
        assert len(shown(pilot)) > 1 and under_cursor(pilot) == shown(pilot)[0]
        await press(pilot, "enter", "G")
        stays = under_cursor(pilot)
        await press(pilot, "slash", '"net"')
        assert under_cursor(pilot) == stays != shown(pilot)[0]
        await press(pilot, "ctrl+u", '"vgg16"', "enter")
        assert shown(pilot) == ["vgg16"] and isinstance(pilot.app.screen.focused, RowsView)
        assert "esc end search" in screen_text(pilot)
        await press(pilot, "escape")
        assert len(shown(pilot)) == len(LIBRARY) and under_cursor(pilot) == "vgg16"
        assert not models(pilot).search_line.display and "esc end search" not in screen_text(pilot)
        await press(pilot, "slash", '"vgg16"', "enter", "slash")
        # The text stays until a letter replaces it.
        assert shown(pilot) == ["vgg16"]
        await press(pilot, "a", "l", "e", "x", "enter")
        assert shown(pilot) == ["alexnet"]
        await press(pilot, "slash", "end", '"nosuch"')
        assert not shown(pilot) and models(pilot).search_line.value == "alexnosuch"


async def test_opening_another_model_ends_searches_and_keeps_the_focus(measured: DataFolder) -> None:
    path = SAMPLE_MODELS / "gluon" / "squeezenet1.1-symbol.json"
    async with running(app_on(measured, MEASURED_ONLY)) as pilot:
        await press(pilot, "enter", "2", "slash", '"conv"', "enter", "1", "j", "enter")
        focused = pilot.app.screen.focused
        assert isinstance(focused, RowsView) and focused in models(pilot).query(RowsView)
        assert not pilot.app.screen.query_one("#tree SearchLine").display
        # A path ends a search that hides its model.
        await press(pilot, "slash", '"vgg16"', "enter", "o", f'"{path}"', "enter")
        assert under_cursor(pilot) == "squeezenet1.1" and len(shown(pilot)) >= len(LIBRARY)
        assert not models(pilot).search_line.display


async def test_escape_ends_the_search_before_it_leaves_the_screen(stored: DataFolder) -> None:
    async with running(app_on(stored, MEASURED_ONLY)) as pilot:
        for opens in ("R", "U", "S", "J"):
            await press(pilot, opens, "slash", '"e"', "enter")
            screen = pilot.app.screen
            lines = [line for line in screen.query(SearchLine) if line.has_text]
            assert not isinstance(screen, WorkbenchScreen) and len(lines) == 1
            await press(pilot, "escape")
            assert pilot.app.screen is screen and not lines[0].has_text
            await press(pilot, "escape")
            assert isinstance(pilot.app.screen, WorkbenchScreen)
        # It leads from the results of one brick to all results.
        await press(pilot, "R", "b")
        table = pilot.app.screen.query_one(ResultsPanel)
        assert len(table.shown or ()) < RESULTS
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, ResultsScreen) and len(table.shown or ()) == RESULTS


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
        assert pilot.app.screen.query_one(ResultsPanel)._list.columns == (*FIRST_COLUMNS, "median_ms")
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
