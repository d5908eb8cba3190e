"""One snapshot per screen, cell by cell, as text to review; other sizes and colours are checked by meaning.

`UPDATE_SNAPSHOTS=1 make test` writes the snapshots anew.
"""

import os
import string
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import unified_diff
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.cells import cell_len
from rich.color import Color, ColorType
from rich.style import Style
from textual.app import App
from textual.geometry import Region
from textual.pilot import Pilot
from textual.screen import ModalScreen, Screen
from textual.strip import Strip

from dlbricks_tui.tui.dialogs.dialog import Box
from dlbricks_tui.tui.keys.keymap import key
from dlbricks_tui.tui.keys.scopes import BY_ID
from dlbricks_tui.tui.widgets.panel import Panel, SearchLine
from dlbricks_tui.tui.widgets.rows import CURSOR_SIGN, RowsView
from dlbricks_tui.tui.widgets.screens import PanelledScreen
from tests.tui.application import NARROW, SNAPSHOT_SIZE, WIDE
from tests.tui.driving import press, settled

FOLDER = Path(__file__).parent / "snapshots"
# For each screen a snapshot that shows it.
SCREENS_FILE = Path(__file__).parent / "snapshot_screens.txt"
UPDATE = "UPDATE_SNAPSHOTS"
# A screen, and the keys that are pressed on it, by the name of the snapshot.
Shown = Mapping[str, tuple[Callable[[], Screen[Any]], tuple[str, ...]]]
_LETTERS = string.ascii_letters + string.digits + "!?+*#%&@"
_FLAGS = ("bold", "dim", "italic", "underline", "reverse")
_OF_THE_TERMINAL = (ColorType.DEFAULT, ColorType.STANDARD)


def snapshot(app: App[None]) -> str:
    """Return the cells, then the style of each as a letter, then the meaning of the letters in words of the theme.

    Of a box nothing is shown of what is behind it. Equal rows below one another are one line with their number.
    """
    inks = ((name, value) for name, value in app.current_theme.variables.items() if name.startswith("ink-"))
    names = {value.lower(): name.removeprefix("ink-") for name, value in inks}
    strips, place = app.screen._compositor.render_strips(), []
    for box in app.screen.query(Box):
        region = box.region
        place = [f"at {region.x}, {region.y}"]
        strips = [strip.crop(region.x, region.right) for strip in strips[region.y : region.bottom]]
    letters: dict[str, str] = {}
    cells = _counted(strip.text.rstrip() for strip in strips)
    styles = _counted(_lettered(strip, names, letters) for strip in strips)
    meanings = [f"{letter} {style}" for style, letter in letters.items()]
    return "\n".join([*place, *cells, "", *styles, "", *meanings, ""])


def _counted(rows: Iterable[str]) -> list[str]:
    counts = ((row, len([*equal])) for row, equal in groupby(rows))
    return [f"{row} x{count}" if count > 1 else row for row, count in counts]


def snapshots_of_screens() -> dict[str, str]:
    """Return the name of a snapshot for each class of screens."""
    return dict(entry.split() for entry in SCREENS_FILE.read_text(encoding="utf-8").splitlines())


def check(app: App[None], name: str) -> None:
    """Compare the screen with the snapshot of that name."""
    listed = {snapshot: screen for screen, snapshot in snapshots_of_screens().items()}
    shown = type(app.screen).__name__
    assert listed.get(name, shown) == shown, f"{SCREENS_FILE.name} says that {name} shows {listed[name]}, not {shown}"
    path, seen = FOLDER / f"{name}.txt", snapshot(app)
    if os.environ.get(UPDATE):
        FOLDER.mkdir(exist_ok=True)
        path.write_text(seen, encoding="utf-8")
    known = path.read_text(encoding="utf-8") if path.exists() else ""
    difference = "\n".join(unified_diff(known.splitlines(), seen.splitlines(), "approved", "seen", n=0, lineterm=""))
    assert not difference, f"the screen is not that of {path.name}; {UPDATE}=1 writes it anew\n{difference}"


async def check_all(pilot: Pilot[None], name: str) -> None:
    """Compare the screen with its snapshot, then check that it fits every size and the terminal's sixteen colours."""
    await resize(pilot, SNAPSHOT_SIZE)
    check(pilot.app, name)
    check_layout(pilot.app)
    # A box has room enough on a wide screen.
    if not isinstance(pilot.app.screen, ModalScreen):
        await resize(pilot, WIDE)
        check_layout(pilot.app)
    theme, pilot.app.theme = pilot.app.theme, "terminal"
    await resize(pilot, NARROW)
    check_layout(pilot.app)
    check_sixteen_colours(pilot.app)
    pilot.app.theme = theme


async def check_each(
    pilot: Pilot[None], shown: Mapping[str, tuple[Callable[[], Screen[Any]], tuple[str, ...]]]
) -> None:
    """Compare screens with their snapshots, one after the other; each begins anew, and keys are pressed on it."""
    listed = snapshots_of_screens().values()
    for name, (screen_of, keys) in shown.items():
        await resize(pilot, SNAPSHOT_SIZE)
        pilot.app.push_screen(screen_of())
        # A key would find nothing on a screen that has not read its data yet.
        await settled(pilot)
        await press(pilot, *keys)
        if name in listed:
            await check_all(pilot, name)
        else:
            check(pilot.app, name)
        while len(pilot.app.screen_stack) > 1:
            pilot.app.pop_screen()


def check_layout(app: App[None]) -> None:
    """Check that nothing is cut off: panels, boxes, the selected row, and the keys at the foot."""
    screen, lines = app.screen, [strip.text for strip in app.screen._compositor.render_strips()]
    assert len(lines) == app.size.height and all(cell_len(line) <= app.size.width for line in lines)
    if isinstance(screen, PanelledScreen):
        # Each panel has a key, in the order of the actions.
        ways = [it.id for it in (screen.scope.actions if screen.scope else ()) if it.method.startswith("go_to_")]
        assert [panel.reached_by for panel in screen.query(Panel)] == (ways or [""])
        panels = [panel for panel in screen.query(Panel) if panel.display]
        assert len(panels) == (1 if screen.shows_one_panel else len(screen.query(Panel)))
        for panel in panels:
            assert _is_inside(panel.region, screen.region) and panel.rows.size.height > 1, panel
            reached_by = f"{key(panel.reached_by)} " if panel.reached_by else ""
            # The end of a long title is cut off where the panel is narrow.
            assert f"{reached_by}{panel.TITLE}" in lines[panel.region.y], panel
        # While the user types into a search, only its own keys work.
        expected = ["find.clear"] if isinstance(screen.focused, SearchLine) else ["app.show_help", "app.quit"]
        assert all(f" {key(action)} {BY_ID[action].label} " in f"{lines[-1]} " for action in expected)
    for box in screen.query(Box):
        assert _is_inside(box.region, screen.region), box
        assert str(box.border_title)[:20] in lines[box.region.y]
        assert str(box.border_subtitle)[:20] in lines[box.region.bottom - 1]
    focused = screen.focused
    if isinstance(focused, RowsView) and focused.row_count and focused.has_cursor:
        row = focused.region.y + focused.cursor - round(focused.scroll_offset.y)
        assert focused.region.y <= row < focused.region.bottom and CURSOR_SIGN in lines[row]


def check_sixteen_colours(app: App[None]) -> None:
    """Check that every colour on the screen is one of the terminal's own."""
    for colour in _colours(app):
        assert colour.type in _OF_THE_TERMINAL, colour


async def resize(pilot: Pilot[None], size: tuple[int, int]) -> None:
    """Give the terminal a size, if it has another one, and draw the screen."""
    if pilot.app.size != size:
        await pilot.resize_terminal(*size)
    await settled(pilot)


def _is_inside(region: Region, around: Region) -> bool:
    return region.area > 0 and around.contains_region(region)


def _colours(app: App[None]) -> Iterator[Color]:
    for strip in app.screen._compositor.render_strips():
        for style in (each for _, each, _ in strip if each is not None):
            yield from (colour for colour in (style.color, style.bgcolor) if colour is not None)


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
