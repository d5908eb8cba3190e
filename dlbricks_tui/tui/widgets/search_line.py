"""Lines to type into."""

from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input
from textual.widgets.input import Selection

from dlbricks_tui.printable import printable
from dlbricks_tui.tui.keys import actions
from dlbricks_tui.tui.keys.places import HelpPlace


class Field(Input, inherit_bindings=False):
    """A one-line field with a steady cursor, as blinking would write to the terminal all the time."""

    # Enter runs the action of the box around the field, by the key that the user has given to it.
    BINDINGS: ClassVar[list[BindingType]] = [
        it for it in Input.BINDINGS if not (isinstance(it, Binding) and it.action == "submit")
    ]

    def __init__(self, value: str = "", *, hint: str = "") -> None:
        super().__init__(value, placeholder=hint, compact=True, select_on_focus=False)
        self.cursor_blink = False

    def render_line(self, y: int) -> Strip:
        # A pasted text or a file name may contain control codes.
        drawn = super().render_line(y)
        if all(segment.text.isprintable() for segment in drawn):
            return drawn
        return Strip([Segment(printable(text), style) for text, style, _ in drawn]).crop(0, self.size.width)


class SearchLine(HelpPlace, Field):
    """A search field, hidden until a search begins; it searches with every letter."""

    scope = actions.SEARCH

    @dataclass
    class TextChanged(Message):
        """The search text has changed; empty when the search has ended."""

        text: str

    def __init__(self, hint: str, searched: Widget) -> None:
        super().__init__(hint=hint)
        self.display = False
        self._searched = searched

    @property
    def has_text(self) -> bool:
        return bool(self.value.strip())

    def begin(self) -> None:
        """Show and focus the field; typing replaces the previous text."""
        self.display = True
        self.selection = Selection(0, len(self.value))
        # At once: `focus` would wait for keys that are already queued.
        self.screen.set_focus(self)

    def seek(self, text: str) -> None:
        self.display = True
        self.value = text

    def end(self) -> None:
        """End the search; the focus moves only if it is in this field."""
        self.value = ""
        self.display = False
        self._give_keys_back()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.TextChanged(self.value.strip()))
        # The key that ends a search is offered only while there is one.
        self.screen.refresh_bindings()

    def action_keep(self) -> None:
        self.display = self.has_text
        self._give_keys_back()

    def action_clear(self) -> None:
        self.end()

    def _give_keys_back(self) -> None:
        if self.screen.focused is self:
            self.screen.set_focus(self._searched)
