"""Keys: as the config file and the bytes of a terminal spell them, one after another, and on the bar of keys."""

import re

import pytest
from textual.drivers import linux_driver
from textual.events import Key
from textual.pilot import Pilot

from dlbricks_tui.config.config import Given
from dlbricks_tui.documents.lines import wrapped
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.tui.dialogs.commands import HelpScreen, PaletteScreen
from dlbricks_tui.tui.dialogs.dialog import Box
from dlbricks_tui.tui.keys.keyboard import KeyParser
from dlbricks_tui.tui.keys.keymap import (
    FIXED_KEYS,
    RESERVED_KEYS,
    Hint,
    Keymap,
    KeymapError,
    UnknownKeyError,
    key_labels,
    keymap_of,
    parse_key,
    shown,
    with_keys,
    wrong_keys,
)
from dlbricks_tui.tui.keys.scopes import ACTIONS, BY_ID, CHAINS, DIALOG
from dlbricks_tui.tui.widgets.panel import Field, Panel
from dlbricks_tui.tui.workbench.models import ModelsPanel
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen
from tests.runs.live_runs import NOBODY, in_the_middle, put_run
from tests.tui.application import MEASURED_ONLY, NARROW, app_on, app_with, running
from tests.tui.driving import find, press, screen_text, settled, shows


def given(**keys: str | list[str]) -> dict[str, Given]:
    """Return the keys of a config file; `models__sort="f5"` stands for `models.sort`."""
    return {
        action.replace("__", "."): Given((each,) if isinstance(each, str) else tuple(each), "config.toml:7")
        for action, each in keys.items()
    }


def test_keys_may_be_written_as_the_help_shows_them() -> None:
    written = {it.id: Given(tuple(key_labels(it.keys).split(" ")), "config.toml:1") for it in ACTIONS}
    keymap = keymap_of(written)
    for action in ACTIONS:
        assert set(map(parse_key, action.keys)) <= set(map(parse_key, keymap.keys_of(action))), action.id


SPELLINGS = "x=x X=X ?=question_mark ,=comma Ctrl+X=ctrl+x ^x=ctrl+x C-x=ctrl+x esc=escape PgDn=pagedown"
SPELLINGS += " shift-tab=shift+tab alt+x=alt+x F5=f5 ↓=down ö=ö"


def test_common_spellings_of_keys_are_accepted() -> None:
    for spelling in SPELLINGS.split():
        written, key = spelling.split("=")
        assert parse_key(written) == key


@pytest.mark.parametrize("written", ["", "xx", "ctrl+", "ctrl+shift", "hyper+x", "f13", "ctrl+[", "\n", "meta"])
def test_texts_that_name_no_key_are_refused(written: str) -> None:
    with pytest.raises(UnknownKeyError):
        parse_key(written)


@pytest.mark.parametrize("letter", "abhijm")
def test_reserved_keys_are_refused_with_the_reason(letter: str) -> None:
    message = wrong_keys(given(models__sort=f"ctrl+{letter}"))
    reason = RESERVED_KEYS[f"ctrl+{letter}"]
    assert message == f"config.toml:7: keys.models.sort: ^{letter} never arrives ({reason}): choose another key"


@pytest.mark.parametrize(
    ("keys", "complaint"),
    [
        (given(models__sort="q"), "keys.models.sort: q already runs app.quit in the same place (Quit;"),
        (given(models__sort="j"), "keys.models.sort: j already runs list.down"),
        (given(models__sort="f"), "keys.models.sort: f already runs workbench.other_level"),
        (given(models__sort="ctrl+z"), "keys.models.sort: ^z already runs app.suspend_process"),
        (given(models__sort="ctrl+c"), "keys.models.sort: ^c already runs app.quit"),
        (given(tree__expand=["f5", "?"]), "keys.tree.expand: ? already runs app.show_help"),
        (given(models__sort="f7", models__mark_all="f7"), "keys.models.sort: f7 already runs models.mark_all"),
        (
            given(app__save_picture="f7", cancel_run__confirm="f7"),
            "keys.app.save_picture: f7 already runs cancel_run.confirm",
        ),
        (given(models__srot="x"), "keys.models.srot: no such action; did you mean models.sort?"),
        (given(zzz="x"), "keys.zzz: no such action; docs/reference/keys.md"),
        (given(models__sort="ctlr+x"), "keys.models.sort: 'ctlr+x' is not a key; write it like 'x', 'X', 'ctrl+x'"),
        (given(find__keep="x"), "keys.find.keep: x types text here: choose a key like f5 or ctrl+x"),
        (given(app__save_picture="x"), "keys.app.save_picture: x types text here"),
    ],
)
def test_invalid_keys_are_refused_with_their_place_and_the_reason(keys: dict[str, Given], complaint: str) -> None:
    with pytest.raises(KeymapError) as refused:
        keymap_of(keys)
    assert str(refused.value).startswith(f"config.toml:7: {complaint}")


def test_one_key_may_run_different_actions_in_different_places_and_is_free_once_its_action_has_another() -> None:
    assert not wrong_keys(given(models__sort="f7", tree__expand="f7", run__pause="f7"))
    assert not wrong_keys(given(workbench__other_level="w", workbench__show_run="f"))


@pytest.mark.parametrize("action", FIXED_KEYS)
def test_fixed_keys_always_leave(action: str) -> None:
    keymap = keymap_of(given(**{action.replace(".", "__"): "f9"}))
    assert keymap.keys_of(BY_ID[action]) == ("f9", FIXED_KEYS[action])
    # Every place has one of them.
    outs = {BY_ID[out].scope for out in FIXED_KEYS}
    assert all(outs.intersection(scopes) for scopes in CHAINS)


def test_textual_gets_only_changed_keys() -> None:
    assert Keymap().for_textual() == {}
    assert keymap_of(given(models__sort=["f5", ";"])).for_textual() == {"models.sort": "f5,semicolon"}


def keys(written: str) -> list[tuple[str, str | None]]:
    return [(event.key, event.character) for event in KeyParser().feed(written) if isinstance(event, Key)]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("x", ["x"]),
        # Alt with a letter, before a special key and before a letter.
        ("\x1bx\x1b[15~\x18", ["alt+x", "f5", "ctrl+x"]),
        ("\x1bxq", ["alt+x", "q"]),
        ("\x1b,", ["alt+comma"]),
        ("\x1bX", ["alt+shift+x"]),
        # Sequences known to Textual are parsed as before.
        ("\x1b[A\x1bOP\x1b[[A\x1b\t", ["up", "f1", "f1", "shift+tab"]),
        (
            "\x1b[97;5u\x1b[15;2~\x1b[1;5C\x1b[3~\x1b[25~\x1b[Z",
            ["ctrl+a", "shift+f5", "ctrl+right", "delete", "f13", "shift+tab"],
        ),
        # Unknown special keys, and answers of terminals.
        ("\x1b[99~\x1b[120~j", ["j"]),
        ("\x1b[27;99;5~\x1b[1;99Z\x1bOzj", ["j"]),
        ("\x1b[?62;22cj", ["j"]),
        # The mouse reports of old terminals.
        ("\x1b[M !!j\x1b[32;10;10Mj", ["j", "j"]),
    ],
)
def test_each_key_sequence_is_one_key_and_unknown_sequences_type_nothing(written: str, expected: list[str]) -> None:
    assert [key for key, _ in keys(written)] == expected


def test_mouse_events_and_mode_reports_are_still_parsed() -> None:
    told = [type(event).__name__ for event in KeyParser().feed("\x1b[<0;3;4M\x1b[?2026;1$y\x1b[200~\x1b[99~\x1b[201~")]
    assert told[:2] == ["MouseDown", "TerminalSupportsSynchronizedOutput"]


async def typed(pilot: Pilot[None], *keys: str) -> None:
    """Type all keys before the first of them is handled."""
    for key in keys:
        pilot.app.post_message(Key(key, key if len(key) == 1 else None))
    await settled(pilot)


async def test_letters_typed_quickly_go_into_the_search_or_the_box_that_the_key_before_them_opens(
    measured: DataFolder,
) -> None:
    async with running(app_on(measured, MEASURED_ONLY)) as pilot:
        assert vars(linux_driver)["XTermParser"] is KeyParser
        await typed(pilot, "slash", *"vgg16")
        panel = pilot.app.screen.query_one(ModelsPanel)
        assert panel.search_line.value == "vgg16" and [it.name for it in panel._list.items] == ["vgg16"]
        await typed(pilot, "escape", "G", "slash", *"alex", "enter", "enter")
        assert isinstance(pilot.app.screen, WorkbenchScreen) and pilot.app.screen._spec is not None
        assert pilot.app.screen._spec.source.name == "alexnet"
        await typed(pilot, "colon", *"quit")
        assert isinstance(pilot.app.screen, PaletteScreen)
        assert pilot.app.screen.query_one(Field).value == "quit"
        await typed(pilot, "escape", "question_mark", "slash", *"run")
        assert isinstance(pilot.app.screen, HelpScreen) and pilot.app.screen.search_line.value == "run"


async def test_the_bar_shows_the_keys_that_work_now_as_far_as_they_fit(measured: DataFolder) -> None:
    async with running(app_on(measured, MEASURED_ONLY), NARROW) as pilot:
        bar = screen_text(pilot).splitlines()[-1]
        # Keys of the focused panel come first.
        assert bar.startswith(" enter open  m measure  A analysis ")
        assert " o file " in bar and " V variants " in bar and "search" not in bar
        await press(pilot, *find("resnet18_v1"), "enter")
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


WIDE = (200, 70)
# Canadian syllables, which occur on no screen. In a field they would be text.
LETTERS = map(chr, range(0x1401, 0x166D))
CHORDS = (f"alt+{letter}" for letter in "abcdefghijklmnopqrstuvwxyz")
OTHER = {it.id: next(CHORDS if it.always or it.scope.typing or it.scope is DIALOG else LETTERS) for it in ACTIONS}
CONFIG = "\n".join(["[keys]", *(f'"{action}" = "{key}"' for action, key in OTHER.items()), ""])
# Texts on screens that are no keys: articles, verbs, units, headings, letters of modules, signs of trees and lists.
NO_KEYS = {*"[]+*?adhmnpsxABCGN-=", "home", "end", "delete"}
# Digits are keys only before the title of the panel that they lead to.
OLD = {shown(key) for action in ACTIONS for key in action.keys} - NO_KEYS - set("012345678")
# These keys always leave.
LEAVING = {"esc", "^c"}


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
    return found - LEAVING if isinstance(app.screen, HelpScreen | PaletteScreen) else found


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
    async with running(app_with(measured, CONFIG), WIDE) as pilot:
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
    app = app_with(new)
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
        await press(pilot, "H", on=HelpScreen)
        # A box with a field names no letter as a key.
        new.config.write_text('[keys]\ndialog.close = ["X", "f8"]\n')
        app._preferences.reload()
        await press(pilot, "X", "comma")
        assert "X close" in seen(pilot)
        await press(pilot, "X", "colon")
        assert "f8 close" in seen(pilot)
        await press(pilot, "X", "f8", on=WorkbenchScreen)


def test_a_hint_replaces_action_ids_and_keeps_other_braces() -> None:
    assert with_keys("{models.open} opens {this}.") == "enter opens {this}."
    assert Hint("{app.search} {find.clear} {}", "muted").line == (
        ("/", "accent"),
        (" ", "muted"),
        ("esc", "accent"),
        (" {}", "muted"),
    )
    # A sentence above the panels goes on at the margin, not below its first key.
    long = wrapped(Hint(" Nothing yet: {app.search} finds a model of the list.").line, 40)
    assert ["".join(span.text for span in each) for each in long] == [" Nothing yet: / finds a model of the", " list."]
