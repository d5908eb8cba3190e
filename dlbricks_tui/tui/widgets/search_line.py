"""The line in which a search is typed, at the foot of a panel."""

from textual.message import Message
from textual.widgets import Input

from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.widgets.field import Field


class SearchLine(Field):
    """Hidden until a search begins; what is typed counts at once."""

    scope = Scope.SEARCH
    BINDINGS = bindings(Scope.SEARCH)

    class Sought(Message):
        """The text searched for has changed; empty when the search has ended."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Left(Message):
        """The person goes back to the list, with the text kept or cleared."""

    def __init__(self, hint: str) -> None:
        super().__init__(hint=hint)
        self.display = False

    def begin(self) -> None:
        """Shows the line and takes the keys."""
        self.display = True
        self.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Sought(self.value.strip()))

    def action_keep(self) -> None:
        self.display = bool(self.value.strip())
        self.post_message(self.Left())

    def action_clear(self) -> None:
        self.value = ""
        self.display = False
        self.post_message(self.Left())
