import pytest

from dlbricks_tui.settings import DataFolder
from tests.tui.bench import SIZES, app_on, press, running
from tests.tui.snapshots import check

SCREENS = {
    "start": (),
    "model": ("slash", '"res"', "enter", "enter"),
    "estimate": ("slash", '"res"', "enter", "enter", "4"),
    "nothing-found": ("slash", '"nosuch"'),
    "help": ("question_mark",),
    "commands": ("colon",),
    "open": ("o",),
}


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", SCREENS)
async def test_a_screen_looks_as_it_was_approved(name: str, size: tuple[int, int], measured: DataFolder) -> None:
    async with running(app_on(measured), size) as pilot:
        await press(pilot, *SCREENS[name])
        check(pilot.app, f"{name}-{size[0]}x{size[1]}")
