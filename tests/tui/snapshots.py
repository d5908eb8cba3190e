"""What is on the screen, cell by cell, as text to be reviewed; `UPDATE_SNAPSHOTS=1 make test` writes it anew."""

import os
import string
from collections.abc import Mapping
from difflib import unified_diff
from pathlib import Path

from rich.cells import cell_len
from rich.color import Color
from rich.style import Style
from textual.app import App
from textual.pilot import Pilot
from textual.strip import Strip

from tests.tui.bench import SIZES, settled

FOLDER = Path(__file__).parent / "snapshots"
UPDATE = "UPDATE_SNAPSHOTS"
_LETTERS = string.ascii_letters + string.digits + "!?+*#%&@"
_FLAGS = ("bold", "dim", "italic", "underline", "reverse")


def snapshot(app: App[None]) -> str:
    """The cells, then the style of each as a letter, then what the letters mean in words of the theme."""
    inks = ((name, value) for name, value in app.current_theme.variables.items() if name.startswith("ink-"))
    names = {value.lower(): name.removeprefix("ink-") for name, value in inks}
    strips = app.screen._compositor.render_strips()
    letters: dict[str, str] = {}
    cells = [strip.text.rstrip() for strip in strips]
    styles = [_lettered(strip, names, letters) for strip in strips]
    meanings = [f"{letter} {style}" for style, letter in letters.items()]
    return "\n".join([*cells, "", *styles, "", *meanings, ""])


def check(app: App[None], name: str) -> None:
    """Compares the screen with the snapshot of that name."""
    path, seen = FOLDER / f"{name}.txt", snapshot(app)
    if os.environ.get(UPDATE):
        FOLDER.mkdir(exist_ok=True)
        path.write_text(seen, encoding="utf-8")
    known = path.read_text(encoding="utf-8") if path.exists() else ""
    difference = "\n".join(unified_diff(known.splitlines(), seen.splitlines(), "approved", "seen", n=0, lineterm=""))
    assert not difference, f"the screen is not that of {path.name}; {UPDATE}=1 writes it anew\n{difference}"


async def check_all(pilot: Pilot[None], name: str) -> None:
    """Compares the screen on terminals of every size, then in the terminal's own sixteen colours on a narrow one."""
    for columns, lines in SIZES:
        await pilot.resize_terminal(columns, lines)
        await settled(pilot)
        check(pilot.app, f"{name}-{columns}x{lines}")
    pilot.app.theme = "terminal"
    await pilot.resize_terminal(*SIZES[0])
    await settled(pilot)
    check(pilot.app, f"sixteen-{name}-{SIZES[0][0]}x{SIZES[0][1]}")


def _lettered(strip: Strip, names: Mapping[str, str], letters: dict[str, str]) -> str:
    found = ""
    for text, style, _ in strip:
        described = _described(style or Style.null(), names)
        if described not in letters:
            letters[described] = _LETTERS[len(letters)]
        found += letters[described] * cell_len(text)
    return found


def _described(style: Style, names: Mapping[str, str]) -> str:
    text, ground = (_named(colour, names) for colour in (style.color, style.bgcolor))
    return " ".join([f"{text} on {ground}", *(flag for flag in _FLAGS if getattr(style, flag))])


def _named(colour: Color | None, names: Mapping[str, str]) -> str:
    return "nothing" if colour is None else names.get(colour.name.lower(), colour.name)
