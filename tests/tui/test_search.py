"""Searching in the panels."""

import pytest
from textual.pilot import Pilot

from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.tui.results.screen import ResultsScreen
from dlbricks_tui.tui.results.table import ResultsPanel
from dlbricks_tui.tui.run.all_runs import AllRunsScreen
from dlbricks_tui.tui.widgets.rows import RowsView
from dlbricks_tui.tui.widgets.search_line import SearchLine
from dlbricks_tui.tui.workbench.models import ModelsPanel
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen
from tests.tui.application import LIBRARY, SIZES, app_on, press, running, screen_text
from tests.tui.stored_results import RESULTS


def models(pilot: Pilot[None]) -> ModelsPanel:
    return pilot.app.screen.query_one(ModelsPanel)


def shown(pilot: Pilot[None]) -> list[str]:
    return [source.name for source in models(pilot)._list.items]


def under_cursor(pilot: Pilot[None]) -> str:
    source = models(pilot).selected
    assert source is not None
    return source.name


async def test_escape_in_the_list_ends_a_kept_search(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, "slash", '"vgg16"', "enter")
        assert shown(pilot) == ["vgg16"] and isinstance(pilot.app.screen.focused, RowsView)
        assert "esc end search" in screen_text(pilot)
        await press(pilot, "escape")
        assert len(shown(pilot)) == len(LIBRARY) and under_cursor(pilot) == "vgg16"
        assert not models(pilot).search_line.display and "esc end search" not in screen_text(pilot)


async def test_the_next_search_replaces_a_kept_one(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, "slash", '"vgg16"', "enter", "slash")
        # The text stays until a letter replaces it.
        assert shown(pilot) == ["vgg16"]
        await press(pilot, "a", "l", "e", "x", "enter")
        assert shown(pilot) == ["alexnet"]
        await press(pilot, "slash", "end", '"nosuch"')
        assert not shown(pilot) and models(pilot).search_line.value == "alexnosuch"


async def test_a_search_selects_the_first_match_unless_the_selected_model_matches(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        last = models(pilot)._list.items[-1].name
        await press(pilot, "G")
        assert under_cursor(pilot) == last
        await press(pilot, "slash", '"resnet"')
        assert len(shown(pilot)) > 1 and under_cursor(pilot) == shown(pilot)[0]
        await press(pilot, "enter", "G")
        stays = under_cursor(pilot)
        await press(pilot, "slash", '"net"')
        assert under_cursor(pilot) == stays != shown(pilot)[0]


async def test_opening_a_path_ends_a_search_that_hides_the_model(measured: DataFolder) -> None:
    path = SAMPLE_MODELS / "gluon" / "squeezenet1.0-symbol.json"
    async with running(app_on(measured)) as pilot:
        await press(pilot, "slash", '"vgg16"', "enter", "o", f'"{path}"', "enter")
        assert under_cursor(pilot) == "squeezenet1.0" and len(shown(pilot)) == len(LIBRARY) + 1
        assert not models(pilot).search_line.display


async def test_opening_another_model_ends_the_search_in_the_tree_and_keeps_the_focus(
    measured: DataFolder,
) -> None:
    async with running(app_on(measured), SIZES[2]) as pilot:
        await press(pilot, "enter", "2", "slash", '"conv"', "enter", "1", "j", "enter")
        assert isinstance(pilot.app.screen.focused, RowsView)
        assert pilot.app.screen.focused in models(pilot).query(RowsView)


@pytest.mark.parametrize("opens", ["6", "7", "8"], ids=["results", "corpus", "systems"])
async def test_escape_ends_the_search_before_it_leaves_the_screen(opens: str, stored: DataFolder) -> None:
    async with running(app_on(stored)) as pilot:
        await press(pilot, opens, "slash", '"e"', "enter")
        screen = pilot.app.screen
        lines = [line for line in screen.query(SearchLine) if line.has_text]
        assert not isinstance(screen, WorkbenchScreen) and len(lines) == 1
        await press(pilot, "escape")
        assert pilot.app.screen is screen and not lines[0].has_text
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, WorkbenchScreen)


async def test_escape_leads_from_the_results_of_one_brick_to_all_results(stored: DataFolder) -> None:
    async with running(app_on(stored)) as pilot:
        await press(pilot, "6", "b")
        table = pilot.app.screen.query_one(ResultsPanel)
        assert len(table.shown or ()) < RESULTS
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, ResultsScreen) and len(table.shown or ()) == RESULTS


async def test_escape_ends_the_search_before_it_closes_a_box(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, "R", "slash", '"nosuch"', "enter", "escape")
        assert isinstance(pilot.app.screen, AllRunsScreen)
        assert not pilot.app.screen.search_line.has_text
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, WorkbenchScreen)
