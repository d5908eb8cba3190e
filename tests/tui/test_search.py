"""Searching in the panels."""

from textual.pilot import Pilot

from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.tui.results.screen import ResultsScreen
from dlbricks_tui.tui.results.table import ResultsPanel
from dlbricks_tui.tui.widgets.panel import SearchLine
from dlbricks_tui.tui.widgets.rows import RowsView
from dlbricks_tui.tui.workbench.models import ModelsPanel
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen
from tests.tui.application import LIBRARY, MEASURED_ONLY, app_on, press, running, screen_text
from tests.tui.stored_results import RESULTS


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
