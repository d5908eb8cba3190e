"""The rich consoles of standard output and standard error."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.segment import Segment

from dlbricks_tui.printable import printable_lines

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import ConsoleOptions, RenderableType

# Wide enough for a grid of fifty models: a pipe should get every name whole.
PIPED_WIDTH = 1000


class PrintableConsole(Console):
    """A console that sends no control codes but its own: those in names are spelled out."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Render a text, table or tree, with the control codes in it spelled out."""
        for segment in super().render(renderable, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                yield Segment(printable_lines(segment.text), segment.style)


def console_on(stream: TextIO | None) -> Console:
    """Return a console for a stream; its width is the terminal's, or enough for anything in a pipe."""
    # Names are data: brackets in them are no markup, and numbers in them are not to be coloured.
    console = PrintableConsole(file=stream, markup=False, emoji=False, highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPED_WIDTH
    return console
