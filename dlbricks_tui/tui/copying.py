"""Copies of a panel: its rows as a text, or a picture of it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Console
from rich.segment import Segment, Segments

from dlbricks_tui.tui.saving import Copied, picture_name, save_copy
from dlbricks_tui.wording.numbers import counted
from dlbricks_tui.wording.text_tables import written

if TYPE_CHECKING:
    from textual.geometry import Region
    from textual.screen import Screen

    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.wording.text_tables import TableFormat, TextTable


class SavedCopy(NamedTuple):
    """A copy in a file; the message tells its path."""

    copied: Copied
    message: str


def copy_table(table: TextTable, how: TableFormat, label: str, data: DataFolder) -> SavedCopy:
    """Save a table in the data folder, or in the current folder if that fails."""
    found = written(table, how)
    files = (data.copied.with_suffix(f".{how.value}"), Path.cwd() / f"dlbricks-copied.{how.value}")
    return _saved(Copied(found.text, f"{counted(found.rows, 'row')} as {label}", files))


def copy_picture(svg: str, what: str, data: DataFolder) -> SavedCopy:
    """Save a picture in the folder of pictures, or in the current folder if that fails."""
    name = picture_name()
    return _saved(Copied(svg, what, (data.pictures / name, Path.cwd() / name)))


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


def _saved(copied: Copied) -> SavedCopy:
    return SavedCopy(copied, save_copy(copied))
