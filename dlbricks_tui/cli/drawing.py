"""Rich consoles, and names in tables of rich."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.segment import Segment
from rich.text import Text

from dlbricks_tui.printable import printable, printable_lines

if TYPE_CHECKING:
    from rich.console import ConsoleOptions, RenderableType


# Wide enough for a grid of fifty models, so that a pipe gets every name whole.
PIPED_WIDTH = 1000


class PrintableConsole(Console):
    """A console that spells out the control codes in names, and sends only its own."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render a text, table or tree, with the control codes in it spelled out."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(printable_lines(segment.text), segment.style)


def console_on(stream: TextIO | None) -> Console:
    """Return a console for a stream; its width is the terminal's, or enough for anything in a pipe."""
    # Names are data: their brackets are no markup, and their numbers stay uncoloured.
    console = PrintableConsole(file=stream, markup=False, emoji=False, highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPED_WIDTH
    return console


def name_cell(name: str) -> Text:
    """Return a name as a cell of one line; it is cut where space is short."""
    return Text(printable(name), no_wrap=True, overflow="ellipsis")
