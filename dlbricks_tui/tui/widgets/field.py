"""A field to type into."""

from rich.segment import Segment
from textual.strip import Strip
from textual.widgets import Input

from dlbricks_tui.printable import printable


class Field(Input):
    """One line; its cursor stands still, as a blinking one would write to the terminal for ever."""

    def __init__(self, value: str = "", *, hint: str = "") -> None:
        super().__init__(value, placeholder=hint, compact=True, select_on_focus=False)
        self.cursor_blink = False

    def render_line(self, y: int) -> Strip:
        # A pasted text, or the name of a file, may hold control codes.
        drawn = super().render_line(y)
        if all(segment.text.isprintable() for segment in drawn):
            return drawn
        return Strip([Segment(printable(text), style) for text, style, _ in drawn]).crop(0, self.size.width)
