"""Widgets that draw lines of named styles."""

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from dlbricks_tui.tui.lines import STYLES, Line, clean, fitted


class Inked(Widget):
    """A widget whose lines get their colours from the theme, by the names of their styles."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"ink--{name}" for name in STYLES}

    def strip_of(self, line: Line, width: int, over: Style | None = None) -> Strip:
        """The line in exactly so many cells; `over` lies over all of its styles."""
        base = self.rich_style
        segments = [
            Segment(
                clean(span.text),
                base + self.get_component_rich_style(f"ink--{span.style}", partial=True) + (over or _NOTHING),
            )
            for span in fitted(line, width)
        ]
        return Strip(segments, width)


class LineBar(Inked):
    """One line, or a few, that are not scrolled."""

    def lines(self, width: int) -> tuple[Line, ...]:
        """What it says in so many cells."""
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        lines = self.lines(width)
        return self.strip_of(lines[y] if y < len(lines) else (), width)


_NOTHING = Style.null()
