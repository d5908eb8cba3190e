"""The look of the workbench: themes, and what is remembered of panels."""

from itertools import combinations
from math import dist
from operator import mul
from pathlib import Path

import pytest
from rich.color import Color, ColorSystem

from dlbricks_tui.answers.open_models import ModelId
from dlbricks_tui.folders import THEMES
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

# Only the terminal knows its own colours.
TERMINAL = THEMES / "terminal.toml"
OURS = sorted(path for path in THEMES.glob("*.toml") if path != TERMINAL)
DARK = THEMES / "dark.toml"
# The colours of text, and of backgrounds.
TEXTS = ("text", "strong", "muted", "heading", "accent", "good", "warn", "bad", "mark", "match", "bar", "frame-focused")
GROUNDS = ("cursor", "cursor-elsewhere")


def sixteen(path: Path) -> dict[str, int | None]:
    variables = read_theme(path).variables
    return {name: Color.parse(variables[f"ink-{name}"]).downgrade(ColorSystem.STANDARD).number for name in COLOURS}


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
    red, green, blue = (part / 255 for part in Color.parse(colour).get_truecolor())
    return _linear(red), _linear(green), _linear(blue)


def _linear(share: float) -> float:
    return share / 12.92 if share <= 0.04045 else float(((share + 0.055) / 1.055) ** 2.4)


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


def test_four_themes_are_delivered_beside_that_of_the_terminal() -> None:
    assert {path.stem for path in OURS} == {"dark", "light", "high-contrast", "colour-blind"}


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
def test_text_and_cursor_are_distinct_in_sixteen_colours(path: Path) -> None:
    colours = sixteen(path)
    assert all(colours[name] != colours["panel"] for name in (*TEXTS, *GROUNDS))
    assert colours["cursor-text"] != colours["cursor"] and colours["text"] != colours["cursor-elsewhere"]
    assert colours["cursor"] != colours["cursor-elsewhere"]


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.stem)
def test_good_warn_bad_and_text_are_distinct_in_sixteen_colours(path: Path) -> None:
    colours = sixteen(path)
    assert all(colours[one] != colours[other] for one, other in combinations(("good", "warn", "bad", "text"), 2))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("dark = true", ""), "it needs `dark = true` or `dark = false`"),
        (("[colours]", ""), "the section [colours] is missing"),
        (("dark = true", "dark = true\nfont = 'x'"), "unknown setting 'font'; valid are `dark` and [colours]"),
        (("accent =", "akzent ="), "unknown colour 'akzent'; valid are: text, strong,"),
        (("[colours]", "[colours"), "is not TOML:"),
        (('"#6cb6ff"', '"skyish"'), "frame-focused = 'skyish' is not a colour; write it like '#7aa2f7' or 'ansi_blue'"),
        (('"#6cb6ff"', "7"), "frame-focused = 7 is not a colour"),
    ],
)
def test_an_invalid_theme_is_refused_with_the_reason(change: tuple[str, str], complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(DARK.read_text().replace(*change))
    with pytest.raises(ThemeError) as refused:
        read_theme(path)
    assert str(refused.value).startswith(f"theme {path}") and complaint in str(refused.value)


def test_a_missing_colour_of_a_theme_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("\n".join(line for line in DARK.read_text().splitlines() if not line.startswith("bad =")))
    with pytest.raises(ThemeError, match="the colour 'bad' is missing"):
        read_theme(path)


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
    (tmp_path / "dark.toml").write_text(DARK.read_text().replace("#6cb6ff", "#ff0000"))
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
