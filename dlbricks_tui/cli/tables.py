"""Tables without lines, in which names give way to numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from dlbricks_tui.cli.charts import ASCII, UNICODE, Glyphs, bar
from dlbricks_tui.printable import printable

if TYPE_CHECKING:
    from rich.console import Console

_NARROWEST_BAR = 6
_WIDEST_BAR = 28


@dataclass(frozen=True, slots=True)
class Pen:
    """How bars are drawn beside a table: of which characters, and how long at most."""

    glyphs: Glyphs
    width: int

    def bar(self, share: float) -> Text:
        """A bar as long as the share."""
        return Text(bar(share, self.width, self.glyphs), style="cyan", no_wrap=True)


def pen_for(console: Console, taken: int) -> Pen:
    """A pen for the room that is left when a table takes so many cells."""
    glyphs = ASCII if console.options.ascii_only else UNICODE
    return Pen(glyphs, max(_NARROWEST_BAR, min(_WIDEST_BAR, console.width - taken)))


def plain_table(*headings: str) -> Table:
    """A table whose first column is for names; under a heading stand numbers, under none are bars."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    # Where space is short, rich narrows columns that may wrap and leaves the others alone.
    table.add_column(headings[0])
    for heading in headings[1:]:
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    return table


def name_cell(name: str) -> Text:
    """Return a name as a cell of one line; it is cut where space is short."""
    return Text(printable(name), no_wrap=True, overflow="ellipsis")
