from itertools import combinations
from pathlib import Path

import pytest
from rich.color import Color, ColorSystem

from dlbricks_tui.settings import THEMES, DataFolder
from dlbricks_tui.tui.themes import COLOURS, ThemeError, read_theme, read_themes
from tests.tui.bench import app_on, running

OURS = sorted(THEMES.glob("*.toml"))
DARK = THEMES / "dark.toml"
# What is written on a ground, and what lies on the plain one.
TEXTS = ("text", "strong", "muted", "heading", "accent", "good", "warn", "bad", "mark", "match", "bar", "frame-focused")
GROUNDS = ("cursor", "cursor-elsewhere")


def sixteen(path: Path) -> dict[str, int | None]:
    variables = read_theme(path).variables
    return {name: Color.parse(variables[f"ink-{name}"]).downgrade(ColorSystem.STANDARD).number for name in COLOURS}


def contrast(one: str, other: str) -> float:
    def luminance(colour: str) -> float:
        shares = [part / 255 for part in Color.parse(colour).get_truecolor()]
        linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    darker, lighter = sorted((luminance(one), luminance(other)))
    return (lighter + 0.05) / (darker + 0.05)


def test_there_is_a_dark_and_a_light_theme() -> None:
    assert {path.stem for path in OURS} >= {"dark", "light"}


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.stem)
def test_everything_written_can_be_read(path: Path) -> None:
    colours = read_theme(path).variables
    assert all(contrast(colours[f"ink-{name}"], colours["ink-panel"]) >= 4.5 for name in TEXTS if name != "bar")
    assert contrast(colours["ink-cursor-text"], colours["ink-cursor"]) >= 4.5
    assert contrast(colours["ink-text"], colours["ink-cursor-elsewhere"]) >= 4.5
    assert contrast(colours["ink-bar"], colours["ink-panel"]) >= 3


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.stem)
def test_with_sixteen_colours_text_and_cursor_still_stand_out(path: Path) -> None:
    colours = sixteen(path)
    assert all(colours[name] != colours["panel"] for name in (*TEXTS, *GROUNDS))
    assert colours["cursor-text"] != colours["cursor"] and colours["text"] != colours["cursor-elsewhere"]
    assert colours["cursor"] != colours["cursor-elsewhere"]


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.stem)
def test_with_sixteen_colours_good_and_bad_are_still_told_apart(path: Path) -> None:
    colours = sixteen(path)
    assert all(colours[one] != colours[other] for one, other in combinations(("good", "warn", "bad", "text"), 2))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (("dark = true", ""), "say `dark = true` or `dark = false`"),
        (("[colours]", ""), "the colours belong under [colours]"),
        (("dark = true", "dark = true\nfont = 'x'"), "'font' means nothing; there are `dark` and [colours]"),
        (("accent =", "akzent ="), "'akzent' is no colour of a theme; there are: text, strong,"),
        (("[colours]", "[colours"), "is not TOML:"),
        (('"#6cb6ff"', '"skyish"'), "frame-focused = 'skyish' is no colour; write it like '#7aa2f7' or 'ansi_blue'"),
        (('"#6cb6ff"', "7"), "frame-focused = 7 is no colour"),
    ],
)
def test_a_broken_theme_is_refused_with_what_is_wrong(change: tuple[str, str], complaint: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(DARK.read_text().replace(*change))
    with pytest.raises(ThemeError) as refused:
        read_theme(path)
    assert str(refused.value).startswith(f"theme {path}") and complaint in str(refused.value)


def test_a_theme_that_lacks_a_colour_names_it(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text("\n".join(line for line in DARK.read_text().splitlines() if not line.startswith("bad =")))
    with pytest.raises(ThemeError, match="the colour 'bad' is missing"):
        read_theme(path)


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder.toml").mkdir()
    (tmp_path / "latin.toml").write_bytes(b"# caf\xe9\n")
    themes, refused = read_themes(tmp_path)
    assert not themes
    assert [str(error).split(" ", 2)[2] for error in refused] == [
        "cannot be read: Is a directory",
        "is not UTF-8 text: invalid continuation byte at byte 5",
    ]


def test_a_theme_of_the_users_takes_the_place_of_its_namesake(tmp_path: Path) -> None:
    (tmp_path / "dark.toml").write_text(DARK.read_text().replace("#6cb6ff", "#ff0000"))
    themes, refused = read_themes(THEMES, tmp_path)
    assert not refused
    assert themes["dark"].primary == "#ff0000"


async def test_the_application_starts_with_a_broken_theme_and_says_so(measured: DataFolder) -> None:
    (measured.path / "themes").mkdir()
    (measured.path / "themes" / "mine.toml").write_text("dark = 3")
    app = app_on(measured)
    async with running(app):
        assert [notice.message for notice in app._notifications] == [
            f"theme {measured.path / 'themes' / 'mine.toml'}: say `dark = true` or `dark = false`"
        ]
