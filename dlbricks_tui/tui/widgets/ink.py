"""Widgets that draw lines of named styles."""

from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from dlbricks_tui.tui.lines import Line, fitted

# What tells styles apart where there are no colours.
_WEIGHTS = {
    "strong": Style(bold=True),
    "heading": Style(bold=True),
    "bad": Style(bold=True),
    "mark": Style(bold=True),
    "match": Style(bold=True, underline=True),
}
_PLAIN = Style()
# A line lies on the widget's own ground unless it is marked.
OWN_GROUND = ""
CURSOR, CURSOR_ELSEWHERE = "cursor", "cursor-elsewhere"


class Inked(Widget):
    """A widget whose lines get their colours from the theme, by the names of their styles.

    Textual would find each of them by the rules of its style sheets, for every widget, whenever the focus moves.
    """

    _inks: dict[tuple[str, str], Style] | None = None

    def strip_of(self, line: Line, width: int, ground: str = OWN_GROUND) -> Strip:
        """Return the line in exactly so many cells, on its ground; control codes in it are spelled out."""
        return Strip([Segment(text, self._ink(style, ground)) for text, style in fitted(line, width)], width)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._inks = None

    def _ink(self, name: str, ground: str) -> Style:
        if self._inks is None:
            self._inks = {}
        found = self._inks.get((name, ground))
        if found is None:
            found = self._inks[name, ground] = self._mixed(name, ground)
        return found

    def _mixed(self, name: str, ground: str) -> Style:
        style = self.rich_style + _WEIGHTS.get(name, _PLAIN)
        if ground == OWN_GROUND:
            return style + Style(color=self._colour(name))
        # What the cursor is on is written in one colour: not all of them can be read on its ground.
        colour = self._colour("cursor-text" if ground == CURSOR else name)
        return style + Style(color=colour, bgcolor=self._colour(ground), reverse=self.app.no_color and ground == CURSOR)

    def _colour(self, name: str) -> RichColor:
        return Color.parse(self.app.current_theme.variables[f"ink-{name}"]).rich_color


class LineBar(Inked):
    """One line, or a few, that are not scrolled."""

    def lines(self, width: int) -> tuple[Line, ...]:
        """What it says in so many cells."""
        raise NotImplementedError

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return max(1, len(self.lines(width)))

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        lines = self.lines(width)
        return self.strip_of(lines[y] if y < len(lines) else (), width)
