"""Copies texts and tables, and saves pictures of the screen."""

import base64
import io
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.segment import Segment, Segments
from textual.app import App
from textual.geometry import Region
from textual.screen import Screen

from dlbricks_tui.documents.lines import cut
from dlbricks_tui.errors import UserError
from dlbricks_tui.files import write_atomically
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.printable import printable
from dlbricks_tui.wording.commands import completed
from dlbricks_tui.wording.numbers import counted
from dlbricks_tui.wording.plain_text import TableFormat, TextTable, written

_END = "\a"


def clipboard_sequence(text: str, environment: Mapping[str, str]) -> str:
    """Return the sequence that copies the text to the clipboard of a terminal that allows it (OSC 52).

    tmux handles it with `set-clipboard on`, and passes on a wrapped sequence with `allow-passthrough on`. Which of them
    is on cannot be queried, so both are sent.
    """
    sequence = f"\x1b]52;c;{base64.b64encode(text.encode()).decode()}{_END}"
    if not environment.get("TMUX"):
        return sequence
    doubled = sequence.replace("\x1b", "\x1b\x1b")
    return f"{sequence}\x1bPtmux;{doubled}\x1b\\"


# Some terminals take at most 100,000 bytes in a sequence: the base64 of so many.
_MOST_IN_CLIPBOARD = 74_000
# Enough to recognise a key.
_MOST_SHOWN = 64
_SECONDS, _SECONDS_OF_A_WARNING = 8.0, 20.0


class SavingError(UserError):
    """A file could not be saved."""


def picture_name() -> str:
    """Return a name with the present time for the file of a picture."""
    return f"dlbricks-{datetime.now().astimezone().strftime('%Y-%m-%d-%H%M%S')}.svg"


def save_picture_file(svg: str, data: DataFolder) -> Path:
    path = data.pictures / picture_name()
    try:
        write_atomically(path, svg)
    except OSError as error:
        raise SavingError(f"{path} cannot be written: {error.strerror}") from None
    return path


class SavedCopy(NamedTuple):
    """A copy in a file: its text, unless it is too long for a clipboard, and a message with the path of the file."""

    text: str | None
    message: str


def _saved_copy(text: str, what: str, *files: Path) -> SavedCopy:
    """Save a copy, which `what` describes, to the first file that can be written."""
    fits, refusals = len(text.encode()) <= _MOST_IN_CLIPBOARD, list[str]()
    for path in files:
        try:
            write_atomically(path, text)
        except OSError as error:
            refusals.append(f"{path} cannot be written: {error.strerror}")
            continue
        if fits:
            return SavedCopy(text, f"Copied: {what}. Some terminals do not allow that: the copy is also in {path}")
        return SavedCopy(None, f"The copy is in {path}: {what}. It is too long for the clipboard of a terminal.")
    refused = "; ".join(refusals)
    if fits:
        return SavedCopy(text, f"Copied: {what}. Some terminals do not allow that, and {refused}")
    raise SavingError(f"The copy is too long for the clipboard of a terminal, and {refused}")


def copy_text(text: str, data: DataFolder) -> SavedCopy:
    """Save a text in the data folder; commands in it work on the folder of this session."""
    text = completed(text)
    return _saved_copy(text, cut(printable(text), _MOST_SHOWN), data.copied)


def show_message(app: App[None], text: str, *, warning: bool = False) -> None:
    """Show a message long enough to read the paths in it."""
    app.notify(
        completed(text),
        severity="warning" if warning else "information",
        timeout=_SECONDS_OF_A_WARNING if warning else _SECONDS,
    )


def copy_table(table: TextTable, how: TableFormat, label: str, data: DataFolder) -> SavedCopy:
    """Save a table in the data folder, or in the current folder if that fails."""
    rows = [[completed(cell) for cell in row] for row in table.rows]
    files = (data.copied.with_suffix(f".{how.value}"), Path.cwd() / f"dlbricks-copied.{how.value}")
    text = written(TextTable(table.titles, rows), how)
    return _saved_copy(text, f"{counted(len(rows), 'row')} as {label}", *files)


def copy_picture(svg: str, what: str, data: DataFolder) -> SavedCopy:
    """Save a picture in the folder of pictures, or in the current folder if that fails."""
    name = picture_name()
    return _saved_copy(svg, what, data.pictures / name, Path.cwd() / name)


def picture_of(screen: Screen[Any], region: Region, title: str) -> str:
    """Return a region of the screen as SVG, as Textual does for the whole screen."""
    part = region.intersection(screen.region)
    console = Console(
        width=max(1, part.width),
        height=max(1, part.height),
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        record=True,
        legacy_windows=False,
        safe_box=False,
    )
    segments: list[Segment] = []
    for strip in screen._compositor.render_strips()[part.y : part.bottom]:
        segments += [*strip.crop(part.x, part.right), Segment.line()]
    console.print(Segments(segments), end="")
    return console.export_svg(title=title)
