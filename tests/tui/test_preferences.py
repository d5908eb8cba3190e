"""Themes, keys, settings, copies and pictures."""

import json
import re
from collections.abc import Mapping

import pytest
from textual.app import App
from textual.pilot import Pilot

from dlbricks_tui.answers.session import Session
from dlbricks_tui.config.config import Sources
from dlbricks_tui.folders import THEMES, DataFolder
from dlbricks_tui.tui import preferences as tailoring
from dlbricks_tui.tui.app import DlbricksApp
from dlbricks_tui.tui.keys import keymap
from dlbricks_tui.tui.keys.keymap import Keymap
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen
from tests.tui.application import (
    WRITTEN,
    AppWithoutWorkbench,
    eventually,
    press,
    running,
    small_library,
)

DARK = (THEMES / "dark.toml").read_text()


@pytest.fixture(autouse=True)
def _own_keys_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keymap, "_in_use", Keymap())


def app_with(data: DataFolder, config: str = "") -> DlbricksApp:
    if config:
        data.config.write_text(config)
    return DlbricksApp(Session(data, small_library(data.path / "samples")), WRITTEN, Sources(data.config, {}))


def bare_app_with(
    data: DataFolder, config: str = "", environment: Mapping[str, str] | None = None
) -> AppWithoutWorkbench:
    """Return the application with an empty screen: that is quicker where the workbench does not matter."""
    data.path.mkdir(exist_ok=True)
    if config:
        data.config.write_text(config)
    return AppWithoutWorkbench(Session(data), WRITTEN, Sources(data.config, environment or {}))


def told(app: App[None]) -> list[str]:
    return [notice.message for notice in app._notifications]


def foot(app: DlbricksApp) -> str:
    return app.screen._compositor.render_strips()[-1].text


def shown_on(app: DlbricksApp) -> str:
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


def setting_shown(app: DlbricksApp, name: str) -> str:
    """Return the value of a setting in the box before a run."""
    found = re.search(rf"┃ +▸? *{name} +(.+?)  ", shown_on(app))
    assert found is not None, shown_on(app)
    return found[1]


def colour(app: DlbricksApp, name: str) -> str:
    return app.current_theme.variables[f"ink-{name}"]


@pytest.fixture
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tailoring, "SECONDS_BETWEEN_CHECKS", 0.05)


async def look(pilot: Pilot[None]) -> None:
    app = pilot.app
    assert isinstance(app, DlbricksApp)
    app._preferences.reload()
    await pilot.pause()


# Themes


@pytest.mark.usefixtures("_looks_often")
async def test_the_theme_key_cycles_through_all_themes_and_saved_keys_apply_at_once(new: DataFolder) -> None:
    app = bare_app_with(new)
    async with running(app, (160, 40)) as pilot:
        seen = [app.theme]
        for _ in range(5):
            await press(pilot, "t")
            seen.append(app.theme)
        assert sorted(seen[:5]) == ["colour-blind", "dark", "high-contrast", "light", "terminal"] and seen[5] == "dark"
        new.config.write_text('[keys]\napp.next_theme = "B"\n')
        await eventually(pilot, lambda: keymap.key("app.next_theme") == "B")
        await press(pilot, "B")
        assert app.theme == "high-contrast"


async def test_an_unknown_theme_is_reported_and_the_first_one_used(new: DataFolder) -> None:
    app = bare_app_with(new, '[workbench]\ntheme = "night"\n')
    async with running(app):
        assert app.theme == "dark"
        (message,) = told(app)
        assert message.startswith(f"{new.config}:2: no theme is called night; there are colour-blind, dark, ")


@pytest.mark.usefixtures("_looks_often")
async def test_a_user_theme_follows_its_file(new: DataFolder) -> None:
    app = bare_app_with(new, '[workbench]\ntheme = "mine"\n')
    mine = new.themes / "mine.toml"
    mine.parent.mkdir()
    async with running(app) as pilot:
        assert (app.theme, len(told(app))) == ("dark", 1)
        app.clear_notifications()
        mine.write_text(DARK)
        await eventually(pilot, lambda: app.theme == "mine")
        assert colour(app, "bad") == "#f47067"
        mine.write_text(DARK.replace("#f47067", "#ff0000") + "\n")
        await eventually(pilot, lambda: colour(app, "bad") == "#ff0000")
        assert (app.theme, colour(app, "bad"), told(app)) == ("mine", "#ff0000", [])
        # A theme that becomes invalid keeps its colours.
        mine.write_text(DARK.replace('bad = "#f47067"', 'bad = "redish"'))
        await look(pilot)
        assert (app.theme, colour(app, "bad")) == ("mine", "#ff0000")
        assert told(app) == [f"theme {mine}: bad = 'redish' is not a colour; write it like '#7aa2f7' or 'ansi_blue'"]
        await look(pilot)
        assert len(told(app)) == 1, "what has not changed is not told twice"
        mine.unlink()
        await eventually(pilot, lambda: app.theme == "dark")


# Keys


async def test_changed_keys_replace_the_default_keys(new: DataFolder) -> None:
    keys = {
        "app.next_theme": ["ctrl+t", "B"],
        "app.show_help": ["f5", "f6"],
        "app.quit": "O",
        "dialog.close": "f8",
        "dialog.leave": "f7",
        # Two actions exchange their keys.
        "workbench.finer": "plus",
        "workbench.coarser": "minus",
    }
    new.store.mkdir(parents=True)
    app = app_with(new, "\n".join(["[keys]", *(f'"{action}" = {json.dumps(key)}' for action, key in keys.items())]))
    async with running(app, (160, 110)) as pilot:
        screen = app.screen
        assert isinstance(screen, WorkbenchScreen)
        await press(pilot, "t")
        assert app.theme == "dark"
        await press(pilot, "ctrl+t")
        assert app.theme == "high-contrast"
        assert "f5 help" in foot(app) and "? help" not in foot(app)
        await press(pilot, "f6")
        assert type(app.screen).__name__ == "HelpScreen"
        assert "f5 f6 " in shown_on(app) and "? f1" not in shown_on(app)
        await press(pilot, "escape")
        before = screen.choices
        await press(pilot, "minus", "minus")
        assert screen.choices.granularity == before.granularity + 2
        await press(pilot, "plus")
        assert screen.choices.granularity == before.granularity + 1
        # A letter bound to an action can still be typed.
        await press(pilot, "slash", "O", "Q")
        assert app.is_running and screen.query_one("#models SearchLine").value == "OQ"  # type: ignore[attr-defined]
        await press(pilot, "escape", "f5", "ctrl+c")
    assert not app.is_running, "ctrl+c always quits"


async def test_a_key_clash_is_reported_and_changes_no_key(new: DataFolder) -> None:
    new.store.mkdir(parents=True)
    app = app_with(new, '[keys]\nmodels.sort = "q"\napp.show_help = "f5"\n')
    async with running(app, (160, 40)) as pilot:
        (message,) = told(app)
        assert message.startswith(f"{new.config}:2: keys.models.sort: q already runs app.quit in the same place")
        assert "? help" in foot(app)
        await press(pilot, "q")
    assert not app.is_running


# Settings


async def test_changed_settings_are_written_and_apply_at_once_unless_the_file_cannot_be_changed(
    new: DataFolder,
) -> None:
    app = bare_app_with(new, "# mine\n", {"DLBRICKS_WORKBENCH_MOUSE": "off"})
    async with running(app, (80, 24)) as pilot:
        await press(pilot, "comma", "l")
        assert app.theme == "high-contrast"
        assert new.config.read_text() == '# mine\n\n[workbench]\ntheme = "high-contrast"\n'
        await press(pilot, "h", "j")
        assert "DLBRICKS_WORKBENCH_MOUSE sets it and overrides the file." in shown_on(app)
        await press(pilot, "j", "l")
        assert app.theme == "dark"
        assert new.config.read_text() == '# mine\n\n[workbench]\nremote = "on"\n'
        await press(pilot, "d", "escape")
        assert new.config.read_text() == "# mine\n\n[workbench]\n"
        # Numbers step down to none.
        new.config.write_text("[estimate]\nworkers = 3\n")
        await look(pilot)
        await press(pilot, "comma", *"jjjjjj", "l")
        assert "workers = 4" in new.config.read_text()
        await press(pilot, "h", "h", "h")
        assert new.config.read_text() == "[estimate]\n"
        new.config.write_text("[workbench\n")
        await press(pilot, "l")
        assert type(app.screen).__name__ == "ErrorScreen"
        assert new.config.read_text() == "[workbench\n"


@pytest.mark.usefixtures("_looks_often")
async def test_a_config_file_that_becomes_invalid_is_reported_and_keeps_its_settings(new: DataFolder) -> None:
    app = bare_app_with(new, '[workbench]\ntheme = "light"\n')
    async with running(app) as pilot:
        new.config.write_text("[workbench]\ntheme = 3\n")
        await eventually(pilot, lambda: told(app))
        assert app.theme == "light"
        assert told(app) == [f"{new.config}:2: workbench.theme = 3: it has to be the name of a theme"]


async def test_the_workbench_starts_with_the_cutting_of_the_config(new: DataFolder) -> None:
    new.store.mkdir(parents=True)
    new.config.write_text('[cutting]\ngranularity = 3\ncut = "overlap"\n[estimate]\nworkers = 8\n')
    app = DlbricksApp(Session(new, small_library(new.path / "samples")), None, Sources(new.config, {}))
    async with running(app, (160, 40)):
        head = app.screen._compositor.render_strips()[0].text
        assert "bricks of up to 3 layers" in head and "overlap" in head and "8 workers" in head


async def test_a_run_uses_the_settings_of_the_current_config(measured: DataFolder) -> None:
    app = app_with(measured, "[run]\nthreads = 3\ntarget_ci = 0.02\n")
    async with running(app) as pilot:
        await press(pilot, "slash", '"alexnet"', "enter", "enter", "m")
        assert setting_shown(app, "threads") == "3"
        assert setting_shown(app, "target interval") == "±2.0 %"
        await press(pilot, "escape")
        measured.config.write_text("[run]\nthreads = 4\ntime_budget = 60\n")
        await look(pilot)
        await press(pilot, "m", "full_stop")
        assert setting_shown(app, "threads") == "4"
        assert setting_shown(app, "target interval") == "±1.0 %"
        assert setting_shown(app, "time budget") == "60 s"
        await press(pilot, "escape")
        measured.config.write_text('[run]\nruntime = "gone"\n')
        await look(pilot)
        await press(pilot, "m")
        assert type(app.screen).__name__ == "ErrorScreen"
        assert "no runtime is called gone" in shown_on(app)


async def test_unreadable_runtimes_are_reported_in_a_box(new: DataFolder) -> None:
    new.store.mkdir(parents=True)
    app = app_with(new)
    (new.path / "runtimes.json").write_text("torn")
    async with running(app) as pilot:
        await press(pilot, "comma", *"jjjjjjj", "l")
        assert type(app.screen).__name__ == "ErrorScreen"
        # Where the box breaks its lines depends on the length of the path.
        await press(pilot, "y")
        assert "is not a list of" in app.clipboard


# Copies and pictures


async def test_copied_text_is_saved_in_a_file_whose_path_is_shown(new: DataFolder) -> None:
    app = bare_app_with(new)
    async with running(app) as pilot:
        app.copy_to_clipboard("a brick's key")
        await pilot.pause()
        assert app.clipboard == new.copied.read_text() == "a brick's key"
        assert told(app) == [
            f"Copied: a brick's key. Some terminals do not allow that: the copy is also in {new.copied}"
        ]
        new.copied.unlink()
        new.copied.mkdir()
        app.copy_to_clipboard("text")
        await pilot.pause()
        assert app.clipboard == "text"
        assert f"{new.copied} cannot be written: " in told(app)[-1]


async def test_a_picture_of_the_screen_can_be_saved_everywhere(new: DataFolder) -> None:
    new.store.mkdir(parents=True)
    app = app_with(new)
    async with running(app) as pilot:
        # On the workbench, in a box, and while the user types into a search.
        for before in ((), ("question_mark",), ("escape", "slash")):
            await press(pilot, *before, "ctrl+g")
            (picture,) = new.pictures.iterdir()
            assert told(app)[-1] == f"The picture is in {picture}"
            assert picture.read_text().startswith("<svg") and "Models" in picture.read_text()
            picture.unlink()
        new.pictures.rmdir()
        new.pictures.touch()
        await press(pilot, "ctrl+g")
        assert type(app.screen).__name__ == "ErrorScreen"
