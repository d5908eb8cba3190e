from pathlib import Path

import pytest

from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.settings import DataFolder
from dlbricks_tui.tui.messages import Failed
from tests.tui.bench import SIZES, app_on, press, running
from tests.tui.snapshots import check, check_all

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


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", SCREENS)
async def test_a_screen_looks_as_it_was_approved(
    name: str, size: tuple[int, int], measured: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "resnets").mkdir()
    (tmp_path / "resnext-symbol.json").touch()
    monkeypatch.chdir(tmp_path)
    async with running(app_on(measured), size) as pilot:
        await press(pilot, *SCREENS[name])
        check(pilot.app, f"{name}-{size[0]}x{size[1]}")


async def test_the_light_theme_has_a_colour_for_everything(measured: DataFolder) -> None:
    measured.config.write_text('[workbench]\ntheme = "light"\n')
    async with running(app_on(measured), (80, 24)) as pilot:
        await press(pilot, *OPENED, "4")
        check(pilot.app, "light-80x24")


@pytest.mark.parametrize("size", SIZES, ids=lambda size: f"{size[0]}x{size[1]}")
async def test_a_newcomer_is_welcomed(size: tuple[int, int], new: DataFolder) -> None:
    async with running(app_on(new), size) as pilot:
        check(pilot.app, f"welcome-{size[0]}x{size[1]}")


SIXTEEN: dict[str, tuple[str, ...]] = {
    **SCREENS,
    "models": (*OPENED, "1"),
    "tree": (*OPENED, "2"),
    "estimate": (*OPENED, "4"),
}


@pytest.mark.parametrize("name", SIXTEEN)
async def test_in_the_terminals_own_sixteen_colours_it_looks_as_it_was_approved(
    name: str, measured: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "resnets").mkdir()
    (tmp_path / "resnext-symbol.json").touch()
    monkeypatch.chdir(tmp_path)
    measured.config.write_text('[workbench]\ntheme = "terminal"\n')
    async with running(app_on(measured), (80, 24)) as pilot:
        await press(pilot, *SIXTEEN[name])
        check(pilot.app, f"sixteen-{name}-80x24")


async def test_the_box_of_settings_looks_as_it_was_approved(
    measured: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The path of the config file is on the screen, and is to be the same everywhere.
    monkeypatch.chdir(tmp_path)
    async with running(app_on(DataFolder(Path(measured.path.name)))) as pilot:
        await press(pilot, "comma", "j", "j")
        await check_all(pilot, "config")


ERRORS: dict[str, Exception] = {
    "error": ModelError("nets/broken-symbol.json: it says nothing of the shape of: data; " * 3 + "give it with n"),
    "fault": KeyError("data"),
}


@pytest.mark.parametrize("name", ERRORS)
async def test_the_box_of_an_error_looks_as_it_was_approved(
    name: str, measured: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The path of the log is on the screen.
    monkeypatch.chdir(tmp_path)
    async with running(app_on(DataFolder(Path(measured.path.name)))) as pilot:
        pilot.app.post_message(Failed(ERRORS[name]))
        await press(pilot)
        await check_all(pilot, name)
