"""Widgets that draw lines of named styles."""

from collections.abc import Callable, Iterable

from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from dlbricks_tui.documents.lines import Line, fitted, wrapped_lines
from dlbricks_tui.tui.keys import actions
from dlbricks_tui.tui.keys.registry import bindings


class NamesKeys:
    """A widget that keeps text with key names; it is told when keys change."""

    def keys_changed(self) -> None:
        """Show the current keys."""
        raise NotImplementedError


# Attributes that distinguish styles without colours.
_WEIGHTS = {
    "strong": Style(bold=True),
    "heading": Style(bold=True),
    "bad": Style(bold=True),
    "mark": Style(bold=True),
    "match": Style(bold=True, underline=True),
}
_PLAIN = Style()
# The background of an unmarked line.
OWN_GROUND = ""
CURSOR, CURSOR_ELSEWHERE = "cursor", "cursor-elsewhere"


class LineWidget(Widget):
    """A widget whose lines get their colours from the theme by style names.

    Textual would look up each style in its style sheets, for every widget, whenever the focus moves.
    """

    _inks: dict[tuple[str, str], Style] | None = None

    def strip_of(self, line: Line, width: int, ground: str = OWN_GROUND) -> Strip:
        """Return the line in exactly `width` cells on its background, with control codes escaped."""
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
        # The cursor line has one text colour, as not all colours are readable on its background.
        colour = self._colour("cursor-text" if ground == CURSOR else name)
        return style + Style(color=colour, bgcolor=self._colour(ground), reverse=self.app.no_color and ground == CURSOR)

    def _colour(self, name: str) -> RichColor:
        return Color.parse(self.app.current_theme.variables[f"ink-{name}"]).rich_color


class LineBar(LineWidget):
    """One or a few lines that do not scroll."""

    def lines(self, width: int) -> tuple[Line, ...]:
        raise NotImplementedError

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return max(1, len(self.lines(width)))

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        lines = self.lines(width)
        return self.strip_of(lines[y] if y < len(lines) else (), width)


class TextLines(LineBar):
    """Lines that a function makes whenever they are drawn."""

    def __init__(self, make: Callable[[int], tuple[Line, ...]], *, classes: str = "") -> None:
        super().__init__(classes=classes)
        self._make = make

    def lines(self, width: int) -> tuple[Line, ...]:
        return self._make(width)


class TextView(LineWidget, ScrollView, NamesKeys, can_focus=True, inherit_bindings=False):
    """Wrapped text that scrolls."""

    BINDINGS = bindings(actions.LIST)

    def __init__(self, make: Callable[[], Iterable[Line]]) -> None:
        super().__init__()
        self._make = make
        self._wrapped: tuple[Line, ...] = ()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._wrap(width - self.scrollbar_size_vertical))

    def on_resize(self) -> None:
        self.remake()

    def keys_changed(self) -> None:
        self.remake()

    def remake(self) -> None:
        self._wrapped = self._wrap(self.scrollable_content_region.width)
        self.virtual_size = Size(0, len(self._wrapped))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        index = y + self.scroll_offset.y
        return self.strip_of(self._wrapped[index] if index < len(self._wrapped) else (), self.size.width)

    def action_down(self) -> None:
        self.scroll_down(animate=False)

    def action_up(self) -> None:
        self.scroll_up(animate=False)

    def action_page_down(self) -> None:
        self.scroll_page_down(animate=False)

    def action_page_up(self) -> None:
        self.scroll_page_up(animate=False)

    def action_first(self) -> None:
        self.scroll_home(animate=False)

    def action_last(self) -> None:
        self.scroll_end(animate=False)

    def _wrap(self, width: int) -> tuple[Line, ...]:
        return wrapped_lines(self._make(), width)
