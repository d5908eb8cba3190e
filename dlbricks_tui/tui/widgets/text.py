"""Widgets that draw lines of named styles: bars, texts and pictures."""

from collections.abc import Callable, Iterable, Sequence

from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from dlbricks_tui.documents.lines import ELLIPSIS, Line, Span, fitted, line, wrapped, wrapped_lines
from dlbricks_tui.documents.pictures import Picture
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.wording.plain_text import TextTable


class NamesKeys:
    """A widget that keeps text with key names; it is told when keys change."""

    def keys_changed(self) -> None:
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
        if name in (CURSOR, CURSOR_ELSEWHERE):
            # A cell under the cursor in a row that is not.
            name, ground = "text", name
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

    BINDINGS = scopes.LIST.bindings

    def __init__(self, make: Callable[[int], Iterable[Line]]) -> None:
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
        return wrapped_lines(self._make(width), width)


# Wide enough that nearly no cell is shortened.
WIDTH = 500
# A list without columns has these two: most of its lines begin with a name.
FACT, VALUE = "fact", "value"
# The styles of bars and sparklines, which copies leave out.
_DRAWN = frozenset({"bar", "rest"})


def lines_as_texts(lines: Iterable[Line]) -> TextTable:
    """Return lines of text as names and values; a line without a name has only a value."""
    return TextTable((FACT, VALUE), [_fact(each) for each in lines if text_of(each)])


def text_of(spans: Iterable[Span]) -> str:
    """Return the text of spans without drawings and without additional blanks."""
    return " ".join("".join(span.text for span in spans if span.style not in _DRAWN).split())


def _fact(spans: Line) -> list[str]:
    # The column of names ends in a gap.
    if len(spans) > 1 and spans[0].text.endswith(" "):
        return [text_of(spans[:1]), text_of(spans[1:])]
    return ["", text_of(spans)]


# A sentence takes at most three lines, and one of so many.
_MOST_LINES_OF_TEXT, _LINES_FOR_A_LINE_OF_TEXT = 3, 4
_MANY_COLOURS = ("256", "truecolor")
# The theme of the terminal's own colours.
SIXTEEN_COLOURS = "terminal"


class PictureView(LineWidget):
    """Draws a picture in the area that it has, once it is visible; a small area shows the sentence alone."""

    def __init__(self) -> None:
        super().__init__(classes="picture")
        self.picture: Picture | None = None
        self._lines: tuple[Line, ...] = ()
        # What the lines were drawn for.
        self._drawn_for: tuple[object, ...] = ()

    def show(self, picture: Picture | None) -> None:
        """Show another picture; the same one is not drawn again."""
        if picture != self.picture:
            self.picture = picture
            self.refresh()

    def render_line(self, y: int) -> Strip:
        # Textual asks for lines only while they are visible.
        lines = self._drawn(self.size.width, self.size.height)
        return self.strip_of(lines[y] if y < len(lines) else (), self.size.width)

    @property
    def is_fine(self) -> bool:
        """True if the terminal has colours enough to tell series apart, so that signs may be fine."""
        app = self.app
        return not app.no_color and app.theme != SIXTEEN_COLOURS and app.console.color_system in _MANY_COLOURS

    def _drawn(self, width: int, height: int) -> tuple[Line, ...]:
        asked = (self.picture, width, height, self.is_fine)
        if asked != self._drawn_for:
            self._drawn_for = asked
            self._lines = self._draw(width, height)
        return self._lines

    def _draw(self, width: int, height: int) -> tuple[Line, ...]:
        # Loaded here: the first screen has no pictures.
        from dlbricks_tui.documents import pictures

        if self.picture is None or width < 1:
            return ()
        most = min(_MOST_LINES_OF_TEXT, max(1, height // _LINES_FOR_A_LINE_OF_TEXT))
        said = cut_lines(wrapped(line(self.picture.says), width), most)
        room = height - len(said)
        if width < pictures.LEAST_WIDTH or room < pictures.LEAST_HEIGHT:
            return cut_lines(wrapped(line(self.picture.says), width), height)
        return (*pictures.drawn(self.picture, width, room, fine=self.is_fine), *said)


def cut_lines(lines: Sequence[Line], most: int) -> tuple[Line, ...]:
    """Return at most so many lines; an ellipsis stands for others."""
    if len(lines) <= most:
        return tuple(lines)
    return (*lines[: most - 1], (*lines[most - 1], Span(f" {ELLIPSIS}", "muted")))
