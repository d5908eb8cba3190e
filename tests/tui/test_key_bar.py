"""The bar with the keys that work now, and the help that lists all of them."""

from dlbricks_tui.folders import DataFolder
from tests.tui.application import MEASURED_ONLY, NARROW, app_on, press, running, screen_text


async def test_the_bar_shows_the_keys_that_work_now_as_far_as_they_fit(measured: DataFolder) -> None:
    async with running(app_on(measured, MEASURED_ONLY), NARROW) as pilot:
        bar = screen_text(pilot).splitlines()[-1]
        # Keys of the focused panel come first.
        assert bar.startswith(" enter open  m measure  A analysis ")
        assert " o file " in bar and " V variants " in bar and "search" not in bar
        await press(pilot, "slash", '"resnet18_v1"', "enter", "enter")
        for panel in "1234":
            await press(pilot, panel)
            bar = screen_text(pilot).splitlines()[-1]
            for words in (" m measure ", " A analysis ", " ? help ", " q quit"):
                assert words in bar
            assert len(bar) <= NARROW[0]
        # The help scrolls to the keys that a narrow terminal has no room for.
        await press(pilot, "?")
        assert "In every list" not in screen_text(pilot)
        shown = ""
        for _ in range(12):
            shown += screen_text(pilot)
            await press(pilot, "pagedown")
        for words in ("Show the systems and what disturbs this one.", "Suspend dlbricks", "Quit; a run in progress"):
            assert words in shown
        await press(pilot, "escape", "1", "escape")
        await pilot.resize_terminal(200, 50)
        await press(pilot)
        bar = screen_text(pilot).splitlines()[-1]
        assert "L load" in bar and "/ search" in bar and ": palette" in bar
