from pathlib import Path

import pytest

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.tui.messages import Failed
from tests.tui.application import NARROW, app_on, press, running
from tests.tui.snapshots import check, check_all, check_layout, check_sixteen_colours

OPENED = ("slash", '"res"', "enter", "enter")
SCREENS: dict[str, tuple[str, ...]] = {
    "start": (),
    "model": OPENED,
    "estimate": (*OPENED, "4", "down", "down"),
    "nothing-found": ("slash", '"nosuch"'),
    "help": ("question_mark",),
    "commands": ("colon", '"cut"'),
    "open": ("o", '"re"'),
    "shapes": (*OPENED, "1", "n"),
}


@pytest.mark.parametrize("name", SCREENS)
async def test_a_screen_matches_its_snapshot(
    name: str, measured: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "resnets").mkdir()
    (tmp_path / "resnext-symbol.json").touch()
    monkeypatch.chdir(tmp_path)
    async with running(app_on(measured)) as pilot:
        await press(pilot, *SCREENS[name])
        await check_all(pilot, name)


@pytest.mark.parametrize("panel", ["1", "2", "3", "4"])
async def test_each_panel_of_the_workbench_fits_a_narrow_terminal(panel: str, measured: DataFolder) -> None:
    measured.config.write_text('[workbench]\ntheme = "terminal"\n')
    async with running(app_on(measured), NARROW) as pilot:
        await press(pilot, *OPENED, panel)
        check_layout(pilot.app)
        check_sixteen_colours(pilot.app)


async def test_the_light_theme_matches_its_snapshot(measured: DataFolder) -> None:
    measured.config.write_text('[workbench]\ntheme = "light"\n')
    async with running(app_on(measured)) as pilot:
        await press(pilot, *OPENED, "4")
        check(pilot.app, "light")


async def test_the_welcome_box_matches_its_snapshot(new: DataFolder) -> None:
    async with running(app_on(new)) as pilot:
        await check_all(pilot, "welcome")


async def test_the_settings_box_matches_its_snapshot(
    measured: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The screen shows the path of the config file, which has to be the same on every host.
    monkeypatch.chdir(tmp_path)
    async with running(app_on(DataFolder(Path(measured.path.name)))) as pilot:
        await press(pilot, "comma", "j", "j")
        await check_all(pilot, "config")


ERRORS: dict[str, Exception] = {
    "error": ModelError("nets/broken-symbol.json: it says nothing of the shape of: data; " * 3 + "give it with n"),
    "fault": KeyError("data"),
}


@pytest.mark.parametrize("name", ERRORS)
async def test_the_error_box_matches_its_snapshot(
    name: str, measured: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The screen shows the path of the log.
    monkeypatch.chdir(tmp_path)
    async with running(app_on(DataFolder(Path(measured.path.name)))) as pilot:
        pilot.app.post_message(Failed(ERRORS[name]))
        await press(pilot)
        await check_all(pilot, name)
