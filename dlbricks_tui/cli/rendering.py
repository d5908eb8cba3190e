"""Documents on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from dlbricks_tui.cli.output import data_console, show
from dlbricks_tui.documents.layout import ASCII, TEXT, laid_out
from dlbricks_tui.documents.lines import ELLIPSIS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dlbricks_tui.documents.lines import Line
    from dlbricks_tui.documents.parts import Part

# In colours that every terminal has; other styles are plain text.
_STYLES = {"heading": "bold", "strong": "bold", "muted": "dim", "bar": "cyan", "accent": "cyan"}
_STYLES |= {"good": "green", "warn": "yellow", "bad": "red"}
# The guides of trees, axes, and the ellipsis: what is cut keeps its width where a terminal lacks them.
_IN_ASCII = str.maketrans("├└─│┤┬┴┼" + ELLIPSIS, "|`-|++++.")


def show_parts(parts: Iterable[Part], widest: int | None = None) -> None:
    """Write a document to standard output, in at most so many columns."""
    console = data_console()
    width = min(console.width, widest or console.width)
    is_ascii = console.options.ascii_only
    lines = laid_out(parts, width, ASCII if is_ascii else TEXT)
    # A command may be longer than a line, and is copied whole.
    show(*(_text(spans, is_ascii=is_ascii) for spans in lines), soft_wrap=True)


def _text(spans: Line, *, is_ascii: bool) -> Text:
    texts = ((text.translate(_IN_ASCII) if is_ascii else text, _STYLES.get(style, "")) for text, style in spans)
    return Text.assemble(*texts)
