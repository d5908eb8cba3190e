"""Widgets that draw lines of named styles."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget

from dlbricks_tui.documents.lines import Line, Span, fitted, width_of, wrapped_lines
from dlbricks_tui.tui.keys import actions
from dlbricks_tui.tui.keys.registry import bindings
from dlbricks_tui.wording.text_tables import TextTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


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


# Wide enough that nearly no cell is shortened.
WIDTH = 500
# A list without columns has these two: most of its lines begin with a name.
FACT, VALUE = "fact", "value"
# The styles of bars and sparklines, which copies leave out.
_DRAWN = frozenset({"bar", "rest"})


def columns_as_texts(heading: Line, rows: Iterable[Line]) -> TextTable:
    """Return rows below the titles of their columns; each span belongs to the column in which it begins."""
    titles, starts = _columns_of(heading)
    found = [_cells(row, starts) for row in rows]
    texts = [[text_of(cell) for cell in row] for row in found]
    # A column that has only drawings is left out; one without any text in these rows stays.
    drawn = {at for row in found for at, cell in enumerate(row) if any(span.style in _DRAWN for span in cell)}
    kept = [at for at in range(len(titles)) if at not in drawn or any(row[at] for row in texts)]
    return TextTable(tuple(titles[at] for at in kept), [[row[at] for at in kept] for row in texts])


def lines_as_texts(lines: Iterable[Line]) -> TextTable:
    """Return lines of text as names and values; a line without a name has only a value."""
    return TextTable((FACT, VALUE), [_fact(each) for each in lines if text_of(each)])


def text_of(spans: Iterable[Span]) -> str:
    """Return the text of spans without drawings and without additional blanks."""
    return " ".join("".join(span.text for span in spans if span.style not in _DRAWN).split())


def _columns_of(heading: Line) -> tuple[list[str], list[int]]:
    """Return the titles, and the cell where each column begins; a gap belongs to the column before it."""
    titles: list[str] = []
    starts: list[int] = []
    at = 0
    for span in heading:
        if span.text.strip():
            titles.append(span.text.strip())
            starts.append(at)
        at += width_of((span,))
    return titles, starts


def _cells(row: Line, starts: Sequence[int]) -> list[list[Span]]:
    cells: list[list[Span]] = [[] for _ in starts]
    at = 0
    for span in row:
        column = sum(start <= at for start in starts) - 1
        # A mark before the first title belongs to no column.
        if column >= 0:
            cells[column].append(span)
        at += width_of((span,))
    return cells


def _fact(spans: Line) -> list[str]:
    # The column of names ends in a gap.
    if len(spans) > 1 and spans[0].text.endswith(" "):
        return [text_of(spans[:1]), text_of(spans[1:])]
    return ["", text_of(spans)]
