import time
from collections.abc import Iterator

import pytest

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.runs.run_folder import State
from tests.runs.live_runs import in_the_middle, put_run
from tests.tui.application import app_on, press, running
from tests.tui.snapshots import check_all
from tests.tui.test_run_screens import shows

# What is on the bar before the keys are pressed.
SCREENS: dict[str, tuple[str, ...]] = {
    "run-bar": (),
    "run-screen": ("5",),
    "run-start": ("slash", '"alexnet"', "enter", "enter", "r"),
    "run-estimates": ("5", "2"),
    "run-notes": ("5", "3"),
    "run-cancel": ("5", "x"),
    "run-all": ("R",),
    "run-all-sought": ("R", "slash", '"cancelled"'),
}


@pytest.fixture(autouse=True)
def _times_of_greenwich(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("name", SCREENS)
async def test_a_screen_of_runs_matches_its_snapshot(name: str, measured: DataFolder) -> None:
    put_run(measured, in_the_middle(), State.CANCELLED, run="20261120-080000-0001", seconds=400)
    async with running(app_on(measured)) as pilot:
        # While a run measures nobody looks through the library: what is known of it is to be there before.
        put_run(measured, in_the_middle())
        await shows(pilot, "17 of 40 bricks · 1 of 2 models")
        await press(pilot, *SCREENS[name])
        await check_all(pilot, name)
