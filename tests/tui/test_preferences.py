"""The config file, the keys, the themes and the look: applied, and kept."""

import json
import re
from collections.abc import Mapping
from itertools import combinations
from math import dist
from operator import mul
from pathlib import Path

import pytest
from rich.color import Color, ColorSystem
from textual.pilot import Pilot

from dlbricks_tui.api.open_models import ModelId
from dlbricks_tui.api.session import WorkbenchSession
from dlbricks_tui.config.config import Sources
from dlbricks_tui.folders import THEMES, DataFolder
from dlbricks_tui.tui import preferences as tailoring
from dlbricks_tui.tui.app import DlbricksApp
from dlbricks_tui.tui.keys import keymap
from dlbricks_tui.tui.preferences import COLOURS, ThemeError, read_theme, read_themes
from dlbricks_tui.tui.view_state import (
    MOST_RECENT,
    STEP,
    USUAL,
    PanelSizes,
    ViewState,
    fitted,
    read_view,
    taller,
    usual_sizes,
    wider,
    write_view,
)
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen
from tests.tui.application import WRITTEN, AppWithoutWorkbench, app_with, running, small_library
from tests.tui.driving import eventually, find, press, screen_text, told

# Only the terminal knows its own colours.
TERMINAL = THEMES / "terminal.toml"
OURS = sorted(path for path in THEMES.glob("*.toml") if path != TERMINAL)
DARK = (THEMES / "dark.toml").read_text()
# The colours of text.
TEXTS = ("text", "strong", "muted", "heading", "accent", "good", "warn", "bad", "mark", "match", "bar", "frame-focused")


def contrast(one: str, other: str) -> float:
    def luminance(colour: str) -> float:
        red, green, blue = linear(colour)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


# Red, green and blue light as seen by eyes without one kind of cones (Machado, Oliveira and Fernandes, 2009).
EYES = {
    "all cones": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "no long": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "no medium": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "no short": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
Light = tuple[float, float, float]


def linear(colour: str) -> Light:
    red, green, blue = (
        share / 12.92 if share <= 0.04045 else float(((share + 0.055) / 1.055) ** 2.4)
        for share in (part / 255 for part in Color.parse(colour).get_truecolor())
    )
    return red, green, blue


def seen(colour: str, eyes: tuple[Light, Light, Light]) -> Light:
    """Return the colour as these eyes see it, in CIELAB, where distances are visible differences."""
    light = linear(colour)
    red, green, blue = (min(1.0, max(0.0, sum(map(mul, row, light)))) for row in eyes)
    x = _cube_root((0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505)
    y = _cube_root(0.2126 * red + 0.7152 * green + 0.0722 * blue)
    z = _cube_root((0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.0888)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def _cube_root(share: float) -> float:
    return float(share ** (1 / 3)) if share > 0.008856 else 7.787 * share + 16 / 116


def test_the_high_contrast_theme_has_a_contrast_of_seven_to_one() -> None:
    colours = read_theme(THEMES / "high-contrast.toml").variables
    assert all(contrast(colours[f"ink-{name}"], colours["ink-panel"]) >= 7 for name in TEXTS)
    assert contrast(colours["ink-cursor-text"], colours["ink-cursor"]) >= 7
    assert all(contrast(colours[f"ink-{name}"], colours["ink-cursor-elsewhere"]) >= 4.5 for name in TEXTS)


@pytest.mark.parametrize("eyes", EYES)
def test_the_colour_blind_theme_separates_good_warn_bad_and_text_for_all_eyes(eyes: str) -> None:
    colours = read_theme(THEMES / "colour-blind.toml").variables
    places = [seen(colours[f"ink-{name}"], EYES[eyes]) for name in ("good", "warn", "bad", "text")]
    assert min(dist(one, other) for one, other in combinations(places, 2)) >= 20


def test_the_terminal_theme_uses_only_colours_of_the_terminal() -> None:
    theme = read_theme(TERMINAL)
    colours = {name: theme.variables[f"ink-{name}"] for name in COLOURS}
    assert theme.ansi and all(colour.startswith("ansi_") for colour in colours.values())
    # On an unknown background only the terminal's own text colour is always readable; other colours stand beside words.
    assert {colours[name] for name in ("text", "strong", "muted", "heading")} == {"ansi_default"}
    grounds = {
        name for name in ("background", "panel", "cursor", "cursor-elsewhere") if colours[name] != "ansi_default"
    }
    assert grounds == {"cursor"} and colours["cursor-text"] != "ansi_default"


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.stem)
def test_every_text_colour_is_readable(path: Path) -> None:
    colours = read_theme(path).variables
    assert all(contrast(colours[f"ink-{name}"], colours["ink-panel"]) >= 4.5 for name in TEXTS if name != "bar")
    assert contrast(colours["ink-cursor-text"], colours["ink-cursor"]) >= 4.5
    assert contrast(colours["ink-text"], colours["ink-cursor-elsewhere"]) >= 4.5
    assert contrast(colours["ink-bar"], colours["ink-panel"]) >= 3


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.stem)
def test_text_cursor_and_verdicts_are_distinct_in_sixteen_colours(path: Path) -> None:
    variables = read_theme(path).variables
    colours = {name: Color.parse(variables[f"ink-{name}"]).downgrade(ColorSystem.STANDARD).number for name in COLOURS}
    assert all(colours[name] != colours["panel"] for name in (*TEXTS, "cursor", "cursor-elsewhere"))
    assert colours["cursor-text"] != colours["cursor"] and colours["text"] != colours["cursor-elsewhere"]
    assert colours["cursor"] != colours["cursor-elsewhere"]
    assert all(colours[one] != colours[other] for one, other in combinations(("good", "warn", "bad", "text"), 2))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("dark = true", ""), "it needs `dark = true` or `dark = false`"),
        (("[colours]", ""), "the section [colours] is missing"),
        (("dark = true", "dark = true\nfont = 'x'"), "unknown setting 'font'; valid are `dark` and [colours]"),
        (("accent =", "akzent ="), "unknown colour 'akzent'; valid are: text, strong,"),
        (("[colours]", "[colours"), "is not TOML:"),
        (("[colours]", "deep = " + "[" * 3000), "is not TOML: it nests too deep"),
        (('"#6cb6ff"', '"skyish"'), "frame-focused = 'skyish' is not a colour; write it like '#7aa2f7' or 'ansi_blue'"),
        (('"#6cb6ff"', "7"), "frame-focused = 7 is not a colour"),
    ],
)
def test_an_invalid_theme_is_refused_with_the_reason(change: tuple[str, str], complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(DARK.replace(*change))
    with pytest.raises(ThemeError) as refused:
        read_theme(path)
    assert str(refused.value).startswith(f"theme {path}") and complaint in str(refused.value)


def test_an_unreadable_theme_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "latin.toml").write_bytes(b"# caf\xe9\n")
    themes, refused = read_themes(tmp_path)
    assert not themes
    assert [str(error).split(" ", 2)[2] for error in refused] == [
        "cannot be read: it is a directory",
        "is not UTF-8 text: invalid continuation byte at byte 5",
    ]


def test_a_user_theme_replaces_a_delivered_theme_of_the_same_name(tmp_path: Path) -> None:
    (tmp_path / "dark.toml").write_text(DARK.replace("#6cb6ff", "#ff0000"))
    themes, refused = read_themes(THEMES, tmp_path)
    assert not refused
    assert themes["dark"].primary == "#ff0000"


MODELS = tuple(ModelId(Path(f"/models/{it}.onnx"), f"net{it}") for it in range(MOST_RECENT + 2))


def test_the_look_is_read_as_it_was_written(tmp_path: Path) -> None:
    state = ViewState(("age", "estimate"), "by time", {"-wide": PanelSizes(40, 50, 30)}, MODELS[:2], True, ("GLUON",))
    write_view(tmp_path / "view.json", state)
    assert read_view(tmp_path / "view.json") == state


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{",
        "[" * 100_000,
        '{"columns": 3, "order": 4, "sizes": [], "recent": {}, "expert": 1, "unfolded": 1}',
        '{"sizes": {"-wide": {"left": "x"}, "-medium": 3}, "recent": [1, ["a"], [1, 2]]}',
    ],
)
def test_a_broken_file_gives_the_usual_look(tmp_path: Path, content: str) -> None:
    (tmp_path / "view.json").write_text(content)
    assert read_view(tmp_path / "view.json") == ViewState()


def test_a_folder_that_does_not_exist_or_cannot_be_written_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    write_view(tmp_path / "file" / "view.json", ViewState())
    assert read_view(tmp_path / "nowhere" / "view.json") == ViewState()


def test_the_newest_models_are_kept_each_once() -> None:
    state = ViewState()
    for model in (*MODELS, MODELS[3]):
        state = state.opened(model)
    assert state.recent == (MODELS[3], MODELS[6], MODELS[5], MODELS[4], MODELS[2])


def test_the_list_of_models_takes_what_it_needs_and_the_panels_at_the_right_the_rest() -> None:
    assert usual_sizes("-wide", 200, 70) == PanelSizes(70, 82, 40)
    # The layers and the panels at the right keep their room.
    assert usual_sizes("-wide", 200, 130) == PanelSizes(94, 58, 40)
    assert usual_sizes("-medium", 120, 70) == USUAL["-medium"]


def test_a_panel_becomes_wider_at_the_cost_of_its_neighbours() -> None:
    usual = USUAL["-medium"]
    assert wider(usual, "models", STEP) == PanelSizes(36, 42, 40)
    assert wider(usual, "details", -STEP) == PanelSizes(32, 38, 40)
    assert wider(usual, "tree", STEP) == PanelSizes(30, 40, 40)
    assert taller(usual, "details", 5) == PanelSizes(32, 42, 45) == taller(usual, "estimate", -5)
    assert taller(usual, "models", 5) == usual


@pytest.mark.parametrize("width", [112, 120, 200])
@pytest.mark.parametrize("sizes", [PanelSizes(-9, -9, -9), PanelSizes(999, 999, 999), PanelSizes(60, 60, 40)])
def test_every_panel_keeps_some_room(width: int, sizes: PanelSizes) -> None:
    found = fitted(sizes, width)
    assert found.left >= 22 and found.right >= 28 and width - found.left - found.right >= 24
    assert 15 <= found.upper <= 85


def bare_app_with(
    data: DataFolder, config: str = "", environment: Mapping[str, str] | None = None
) -> AppWithoutWorkbench:
    """Return the application with an empty screen: that is quicker where the workbench does not matter."""
    data.path.mkdir(exist_ok=True)
    if config:
        data.config.write_text(config)
    return AppWithoutWorkbench(WorkbenchSession(data), WRITTEN, Sources(data.config, environment or {}))


def foot(pilot: Pilot[None]) -> str:
    return screen_text(pilot).splitlines()[-1]


def setting_shown(pilot: Pilot[None], name: str) -> str:
    """Return the value of a setting in the box before a run."""
    found = re.search(rf"┃ +▸? *{name} +(.+?)  ", screen_text(pilot))
    assert found is not None, screen_text(pilot)
    return found[1]


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


@pytest.mark.usefixtures("_looks_often")
async def test_a_missing_theme_is_reported_and_a_user_theme_follows_its_file(new: DataFolder) -> None:
    app = bare_app_with(new, '[workbench]\ntheme = "mine"\n')
    mine = new.themes / "mine.toml"
    mine.parent.mkdir()
    async with running(app) as pilot:
        (message,) = told(pilot)
        assert message.startswith(f"{new.config}:2: no theme is called mine; there are colour-blind, dark, ")
        assert app.theme == "dark"
        app.clear_notifications()
        mine.write_text(DARK)
        await eventually(pilot, lambda: app.theme == "mine")
        assert app.current_theme.variables["ink-bad"] == "#f47067"
        mine.write_text(DARK.replace("#f47067", "#ff0000") + "\n")
        await eventually(pilot, lambda: app.current_theme.variables["ink-bad"] == "#ff0000")
        assert (app.theme, app.current_theme.variables["ink-bad"], told(pilot)) == ("mine", "#ff0000", [])
        # A theme that becomes invalid keeps its colours.
        mine.write_text(DARK.replace('bad = "#f47067"', 'bad = "redish"'))
        await look(pilot)
        assert (app.theme, app.current_theme.variables["ink-bad"]) == ("mine", "#ff0000")
        assert told(pilot) == [f"theme {mine}: bad = 'redish' is not a colour; write it like '#7aa2f7' or 'ansi_blue'"]
        await look(pilot)
        assert len(told(pilot)) == 1, "what has not changed is not told twice"
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
        assert "f5 help" in foot(pilot) and "? help" not in foot(pilot)
        await press(pilot, "f6")
        assert type(app.screen).__name__ == "HelpScreen"
        assert "f5 f6 " in screen_text(pilot) and "? f1" not in screen_text(pilot)
        await press(pilot, "escape")
        before = screen.choices
        await press(pilot, "minus", "minus")
        assert screen.choices.granularity == before.granularity + 2
        await press(pilot, "plus")
        assert screen.choices.granularity == before.granularity + 1
        # A letter bound to an action can still be typed.
        await press(pilot, "slash", "O", "Q")
        assert app.is_running and screen.query_one("ModelsPanel SearchLine").value == "OQ"  # type: ignore[attr-defined]
        await press(pilot, "escape", "f5", "ctrl+c")
    assert not app.is_running, "ctrl+c always quits"


async def test_a_key_clash_is_reported_and_changes_no_key(new: DataFolder) -> None:
    new.store.mkdir(parents=True)
    app = app_with(new, '[keys]\nmodels.sort = "q"\napp.show_help = "f5"\n')
    async with running(app, (160, 40)) as pilot:
        (message,) = told(pilot)
        assert message.startswith(f"{new.config}:2: keys.models.sort: q already runs app.quit in the same place")
        assert "? help" in foot(pilot)
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
        assert "DLBRICKS_WORKBENCH_MOUSE sets it and overrides the file." in screen_text(pilot)
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
        await eventually(pilot, lambda: told(pilot))
        assert app.theme == "light"
        assert told(pilot) == [f"{new.config}:2: workbench.theme = 3: it has to be the name of a theme"]


async def test_the_workbench_starts_with_the_cutting_of_the_config(new: DataFolder) -> None:
    new.store.mkdir(parents=True)
    new.config.write_text('[cutting]\ngranularity = 3\ncut = "overlap"\n[estimate]\nworkers = 8\n')
    app = DlbricksApp(WorkbenchSession(new, small_library(new.path / "samples")), None, Sources(new.config, {}))
    async with running(app, (160, 40)) as pilot:
        head = screen_text(pilot).splitlines()[0]
        assert "bricks of up to 3 layers" in head and "overlap" in head and "8 workers" in head


async def test_a_run_uses_the_settings_of_the_current_config(measured: DataFolder) -> None:
    app = app_with(measured, "[run]\nthreads = 3\ntarget_ci = 0.03\n")
    async with running(app) as pilot:
        await press(pilot, *find("alexnet"), "enter", "m")
        assert setting_shown(pilot, "threads") == "3"
        assert setting_shown(pilot, "target interval") == "±3.0 %"
        await press(pilot, "escape")
        measured.config.write_text("[run]\nthreads = 4\ntime_budget = 60\n")
        await look(pilot)
        await press(pilot, "m", "full_stop")
        assert setting_shown(pilot, "threads") == "4"
        assert setting_shown(pilot, "target interval") == "±2.0 %"
        assert setting_shown(pilot, "time budget") == "60 s"
        await press(pilot, "escape")
        # So do the estimates of what was not measured.
        assert isinstance(app.screen, WorkbenchScreen) and app.screen.choices.usual_threads == 4
        measured.config.write_text('[run]\nruntime = "gone"\n')
        await look(pilot)
        await press(pilot, "m")
        assert type(app.screen).__name__ == "ErrorScreen"
        assert "no runtime is called gone" in screen_text(pilot)


@pytest.mark.parametrize(("pressed", "predicted"), [("A", "~"), ("L", "requests/s ("), ("V", " ~"), ("S", "~")])
async def test_an_open_screen_answers_for_the_settings_of_the_current_config(
    measured: DataFolder, pressed: str, predicted: str
) -> None:
    app = app_with(measured)
    async with running(app) as pilot:
        await press(pilot, *find("squeezenet1.1"), "enter", pressed, shows=predicted)
        measured.config.write_text('[estimate]\npredictions = "off"\n')
        await look(pilot)
        await eventually(pilot, lambda: predicted not in screen_text(pilot))


# Copies and pictures


async def test_a_picture_of_the_screen_can_be_saved_everywhere(new: DataFolder) -> None:
    new.store.mkdir(parents=True)
    app = app_with(new)
    async with running(app) as pilot:
        # On the workbench, in a box, and while the user types into a search.
        for before in ((), ("question_mark",), ("escape", "slash")):
            await press(pilot, *before, "ctrl+g")
            (picture,) = new.pictures.iterdir()
            assert told(pilot)[-1] == f"The picture is in {picture}"
            assert picture.read_text().startswith("<svg") and "Models" in picture.read_text()
            picture.unlink()
        new.pictures.rmdir()
        new.pictures.touch()
        await press(pilot, "ctrl+g")
        assert type(app.screen).__name__ == "ErrorScreen"
