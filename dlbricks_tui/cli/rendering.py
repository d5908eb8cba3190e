"""Documents and names on the consoles of rich."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.segment import Segment
from rich.text import Text

from dlbricks_tui.documents.layout import ASCII, TEXT, laid_out
from dlbricks_tui.documents.lines import ELLIPSIS
from dlbricks_tui.printable import printable, printable_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import ConsoleOptions, RenderableType

    from dlbricks_tui.documents.parts import Part

# Wide enough for a grid of fifty models, so that a pipe gets every name whole.
PIPED_WIDTH = 1000
# In colours that every terminal has; other styles are plain text.
_STYLES = {"heading": "bold", "strong": "bold", "muted": "dim", "bar": "cyan", "accent": "cyan"}
_STYLES |= {"good": "green", "warn": "yellow", "bad": "red"}
# The guides of trees, axes, and the ellipsis: what is cut keeps its width where a terminal lacks them.
_IN_ASCII = str.maketrans("├└─│┤┬┴┼" + ELLIPSIS, "|`-|++++.")


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


def texts_of(parts: Iterable[Part], console: Console, width: int) -> Iterator[Text]:
    """Yield the lines of a document as this console shows them."""
    is_ascii = console.options.ascii_only
    for spans in laid_out(parts, width, ASCII if is_ascii else TEXT):
        texts = ((text.translate(_IN_ASCII) if is_ascii else text, _STYLES.get(style, "")) for text, style in spans)
        yield Text.assemble(*texts)


def name_cell(name: str) -> Text:
    """Return a name as a cell of one line; it is cut where space is short."""
    return Text(printable(name), no_wrap=True, overflow="ellipsis")
