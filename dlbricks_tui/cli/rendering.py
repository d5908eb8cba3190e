"""Documents on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from dlbricks_tui.cli.output import data_console, show
from dlbricks_tui.documents.layout import ASCII, TEXT, laid_out

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dlbricks_tui.documents.parts import Part

# In colours that every terminal has; other styles are plain text.
_STYLES = {"heading": "bold", "strong": "bold", "muted": "dim", "bar": "cyan"}


def show_parts(parts: Iterable[Part], widest: int | None = None) -> None:
    """Write a document to standard output, in at most so many columns."""
    console = data_console()
    width = min(console.width, widest or console.width)
    lines = laid_out(parts, width, ASCII if console.options.ascii_only else TEXT)
    show(*(Text.assemble(*((text, _STYLES.get(style, "")) for text, style in spans), no_wrap=True) for spans in lines))
