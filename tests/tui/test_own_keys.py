"""If every action has another key, all screens name these keys only."""

import re
from itertools import chain

import pytest
from textual.pilot import Pilot

from dlbricks_tui.api.session import WorkbenchSession
from dlbricks_tui.config.config import Sources
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.tui.app import DlbricksApp
from dlbricks_tui.tui.dialogs.commands import HelpScreen, PaletteScreen
from dlbricks_tui.tui.dialogs.dialog import Box
from dlbricks_tui.tui.keys import keymap
from dlbricks_tui.tui.keys.keymap import Hint, Keymap, shown, with_keys
from dlbricks_tui.tui.keys.scopes import ACTIONS, DIALOG
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen
from tests.runs.live_runs import NOBODY, in_the_middle, put_run
from tests.tui.application import WRITTEN, press, running, small_library
from tests.tui.test_run_screens import shows

WIDE = (200, 70)
# Letters of other alphabets, which occur on no screen. In a field they would be text.
ALPHABETS = (
    range(0x410, 0x482),
    range(0x3B1, 0x3CA),
    range(0x561, 0x587),
    range(0x10D0, 0x10F1),
    range(0x531, 0x557),
    range(0x13A0, 0x13F0),
)
LETTERS = map(chr, chain(*ALPHABETS))
CHORDS = (f"alt+{letter}" for letter in "abcdefghijklmnopqrstuvwxyz")
OTHER = {it.id: next(CHORDS if it.always or it.scope.typing or it.scope is DIALOG else LETTERS) for it in ACTIONS}
CONFIG = "\n".join(["[keys]", *(f'"{action}" = "{key}"' for action, key in OTHER.items()), ""])
# Texts on screens that are no keys: articles, verbs, units, headings, letters of modules, signs of trees and lists.
NO_KEYS = {
    "[",
    "]",
    "+",
    "*",
    "?",
    "home",
    "end",
    "delete",
    "a",
    "d",
    "h",
    "m",
    "n",
    "p",
    "s",
    "x",
    "A",
    "B",
    "C",
    "G",
    "N",
    "-",
    "=",
}
# Digits are keys only before the title of the panel that they lead to.
OLD = {shown(key) for action in ACTIONS for key in action.keys} - NO_KEYS - set("012345678")
# These keys always leave.
FIXED_KEYS = {"esc", "^c"}


@pytest.fixture(autouse=True)
def _own_keys_afterwards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keymap, "_in_use", Keymap())


def app_with(data: DataFolder, config: str = CONFIG) -> DlbricksApp:
    data.path.mkdir(parents=True, exist_ok=True)
    data.config.write_text(config, encoding="utf-8")
    return DlbricksApp(WorkbenchSession(data, small_library(data.path / "samples")), WRITTEN, Sources(data.config, {}))


def seen(pilot: Pilot[None]) -> str:
    """Return the text of the screen, or of the box in front of it."""
    screen = pilot.app.screen
    lines = [strip.text for strip in screen._compositor.render_strips()]
    box = next((box.region for box in screen.query(Box)), screen.region)
    return "\n".join(line[box.x : box.right].rstrip() for line in lines[box.y : box.bottom])


def stale(pilot: Pilot[None]) -> set[str]:
    """Return the default keys that the screen and its messages name."""
    app = pilot.app
    text = "\n".join([seen(pilot), *(note.message for note in app._notifications)])
    words = {word.strip(".,;:()'\"") or word for word in re.split(r"[\s─━│┃╭╮╰╯┏┓┗┛▸·]+", text)}
    titles = "|".join(["run", *(panel.TITLE for panel in app.screen.query(Panel))])
    found = (words & OLD) | set(re.findall(rf"(?<!History )[1-8] (?:{titles})\b", text))
    return found - FIXED_KEYS if isinstance(app.screen, HelpScreen | PaletteScreen) else found


async def does(pilot: Pilot[None], *steps: str) -> str:
    """Run actions by their changed keys, check each screen on the way, and return the last one."""
    for step in steps:
        await press(pilot, OTHER.get(step, step))
        found = stale(pilot)
        assert not found, f"{found} after {step}:\n{seen(pilot)}"
    return seen(pilot)


def key(action: str) -> str:
    return shown(OTHER[action])


async def test_screens_boxes_and_messages_name_the_current_keys(measured: DataFolder) -> None:
    put_run(measured, in_the_middle(), State.RUNNING, process=NOBODY)
    async with running(app_with(measured), WIDE) as pilot:
        await shows(pilot, " interrupted ")
        found = await does(pilot, "app.search", '"vgg16"', "find.keep")
        assert f"{key('workbench.show_run')} {key('run.pause')} resume" in found
        opened = await does(pilot, "models.open", "workbench.go_to_tree", "app.search", '"nosuch"')
        assert f"{key('find.clear')} shows the whole model again." in opened
        await does(pilot, "find.clear", "app.show_help", "dialog.close", "workbench.start_run")
        await does(pilot, "dialog.show_help", "dialog.close", "dialog.close")
        assert f"{key('run.pause')} resumes it" in await does(pilot, "workbench.show_run")
        await does(pilot, "run.show_runs", "box.search", '"nosuch"', "find.clear", "dialog.close", "run.leave")
        analysis = await does(pilot, "workbench.show_analysis", "app.show_help", "dialog.close")
        assert f"{key('workbench.start_run')} runs what is missing." in analysis
        await does(pilot, "analysis.leave")
        systems = await does(pilot, "workbench.show_systems")
        assert f"{key('workbench.show_results')} {key('results.import_file')} imports results" in systems
        await does(pilot, "systems.leave", "workbench.show_results", "result_table.choose_columns", "dialog.close")
        await does(
            pilot, "app.compare_marked", "results.delete", "dialog.close", "app.search", '"nosuch"', "find.clear"
        )
        assert f"press {key('app.compare_marked')} to compare" in seen(pilot)
        file = measured.path / "mine.json"
        file.touch()
        await does(pilot, "results.export", f'"{file}"')
        assert f"{key('path.take')} again to replace it" in (await does(pilot, "path.take")).replace("\n", " ")


async def test_texts_on_screen_follow_changed_keys(new: DataFolder) -> None:
    app = app_with(new, "")
    async with running(app, WIDE) as pilot:
        await press(pilot, "escape", "S", "escape", "U", "escape", "S")
        before = seen(pilot)
        assert "2 System" in before and "m runs a model's bricks." in before
        new.config.write_text('[keys]\nsystems.go_to_system = "S"\nworkbench.start_run = "B"\n')
        app._preferences.reload()
        await press(pilot)
        after = seen(pilot)
        assert "S System" in after and "B runs a model's bricks." in after
        new.config.write_text('[keys]\napp.show_help = "H"\nworkbench.go_to_models = "B"\nmodels.open = "O"\n')
        app._preferences.reload()
        await press(pilot, "escape")
        assert "B Models" in seen(pilot) and "O in the list of models opens one." in seen(pilot)
        await press(pilot, "H")
        assert isinstance(pilot.app.screen, HelpScreen)
        # A box with a field names no letter as a key.
        new.config.write_text('[keys]\ndialog.close = ["X", "f8"]\n')
        app._preferences.reload()
        await press(pilot, "X", "comma")
        assert "X close" in seen(pilot)
        await press(pilot, "X", "colon")
        assert "f8 close" in seen(pilot)
        await press(pilot, "X", "f8")
        assert isinstance(pilot.app.screen, WorkbenchScreen)


def test_a_hint_replaces_action_ids_and_keeps_other_braces() -> None:
    assert with_keys("{models.open} opens {this}.") == "enter opens {this}."
    assert Hint("{app.search} {find.clear} {}", "muted").line == (
        ("/", "accent"),
        (" ", "muted"),
        ("esc", "accent"),
        (" {}", "muted"),
    )
