"""The widget of a picture, with the sentence that says the same below it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.documents.lines import ELLIPSIS, Line, Span, line, wrapped
from dlbricks_tui.tui.widgets.text import LineWidget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.strip import Strip

    from dlbricks_tui.documents.pictures import Picture

# A sentence takes at most three lines, and one of so many.
_MOST_LINES_OF_TEXT, _LINES_FOR_A_LINE_OF_TEXT = 3, 4
_MANY_COLOURS = ("256", "truecolor")
# The theme of the terminal's own colours.
SIXTEEN_COLOURS = "terminal"


class PictureView(LineWidget):
    """Draws a picture in the area that it has, once it is visible; a small area shows the sentence alone."""

    def __init__(self, *, id: str | None = None, classes: str = "picture") -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes=classes)
        self.picture: Picture | None = None
        self._lines: tuple[Line, ...] = ()
        # What the lines were drawn for.
        self._drawn_for: tuple[object, ...] = ()
        self._is_loading = False

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
        from dlbricks_tui.documents import drawing

        asked = (self.picture, width, height, self.is_fine, drawing.is_loaded())
        if asked != self._drawn_for:
            self._drawn_for = asked
            self._lines = self._draw(width, height)
        return self._lines

    def _draw(self, width: int, height: int) -> tuple[Line, ...]:
        from dlbricks_tui.documents import drawing

        if self.picture is None or width < 1:
            return ()
        most = min(_MOST_LINES_OF_TEXT, max(1, height // _LINES_FOR_A_LINE_OF_TEXT))
        said = _cut(wrapped(line(self.picture.says), width), most)
        room = height - len(said)
        if width < drawing.LEAST_WIDTH or room < drawing.LEAST_HEIGHT:
            return _cut(wrapped(line(self.picture.says), width), height)
        if not drawing.is_loaded():
            self._load()
            return said
        return (*drawing.drawn(self.picture, width, room, fine=self.is_fine), *said)

    def _load(self) -> None:
        if not self._is_loading:
            self._is_loading = True
            self.call_later(self._load_in_thread)

    def _load_in_thread(self) -> None:
        from dlbricks_tui.documents import drawing

        def load() -> None:
            drawing.load()
            self.call_later(self._loaded)

        self.run_worker(load, thread=True, exit_on_error=False)

    def _loaded(self) -> None:
        self._is_loading = False
        self.refresh()


def _cut(lines: Sequence[Line], most: int) -> tuple[Line, ...]:
    """Return at most so many lines; an ellipsis stands for others."""
    if len(lines) <= most:
        return tuple(lines)
    return (*lines[: most - 1], (*lines[most - 1], Span(f" {ELLIPSIS}", "muted")))
