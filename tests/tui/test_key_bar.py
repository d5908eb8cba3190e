"""The bar with the keys that work now, and the help that lists all of them."""

import pytest

from dlbricks_tui.folders import DataFolder
from tests.tui.application import NARROW, app_on, press, running, screen_text


@pytest.mark.parametrize("panel", ["1", "2", "3", "4"])
async def test_a_narrow_workbench_shows_how_to_run_to_analyse_and_to_get_help(measured: DataFolder, panel: str) -> None:
    async with running(app_on(measured), NARROW) as pilot:
        await press(pilot, "slash", '"resnet18_v1"', "enter", "enter", panel)
        bar = screen_text(pilot).splitlines()[-1]
        for words in (" r run ", " 0 analysis ", " ? help ", " q quit"):
            assert words in bar
        assert len(bar) <= NARROW[0]


async def test_keys_of_the_focused_panel_come_first_and_other_keys_as_far_as_they_fit(measured: DataFolder) -> None:
    async with running(app_on(measured), NARROW) as pilot:
        bar = screen_text(pilot).splitlines()[-1]
        assert bar.startswith(" enter open  space mark  r run  0 analysis ")
        assert " o file " in bar and " v variants " in bar and "search" not in bar
        await pilot.resize_terminal(200, 50)
        await press(pilot)
        bar = screen_text(pilot).splitlines()[-1]
        assert "L load" in bar and "/ search" in bar and ": palette" in bar


async def test_the_help_scrolls_to_the_keys_that_a_narrow_terminal_has_no_room_for(measured: DataFolder) -> None:
    async with running(app_on(measured), NARROW) as pilot:
        await press(pilot, "?")
        assert "In every list" not in screen_text(pilot)
        shown = ""
        for _ in range(12):
            shown += screen_text(pilot)
            await press(pilot, "pagedown")
        for words in ("Show the systems and what disturbs this one.", "Suspend dlbricks", "Quit; a run in progress"):
            assert words in shown
