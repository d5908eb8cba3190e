"""The line in which a search is typed, at the foot of a panel."""

from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input
from textual.widgets.input import Selection

from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.widgets.field import Field


class SearchLine(Field):
    """A line that is hidden until a search begins; every letter counts at once."""

    scope = Scope.SEARCH
    BINDINGS = bindings(Scope.SEARCH)

    class Sought(Message):
        """The text searched for has changed; empty when the search has ended."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, hint: str, searched: Widget) -> None:
        super().__init__(hint=hint)
        self.display = False
        self._searched = searched

    @property
    def has_text(self) -> bool:
        """Whether something is searched for."""
        return bool(self.value.strip())

    def begin(self) -> None:
        """Show the line and take the keys; the first letter replaces the text of the search before."""
        self.display = True
        self.selection = Selection(0, len(self.value))
        # At once: `focus` would take the keys only after keys that wait already.
        self.screen.set_focus(self)

    def seek(self, text: str) -> None:
        """Search for a text as if it had been typed."""
        self.display = True
        self.value = text

    def end(self) -> None:
        """End the search; the keys stay where they are unless they are in this line."""
        self.value = ""
        self.display = False
        self._give_keys_back()

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self.post_message(self.Sought(self.value.strip()))
        # The key that ends a search is offered while there is one.
        self.screen.refresh_bindings()

    def action_keep(self) -> None:
        self.display = self.has_text
        self._give_keys_back()

    def action_clear(self) -> None:
        self.end()

    def _give_keys_back(self) -> None:
        if self.screen.focused is self:
            self.screen.set_focus(self._searched)
