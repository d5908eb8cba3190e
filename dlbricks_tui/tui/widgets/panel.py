"""The base of every panel: a titled frame around one list, with a search line at its foot."""

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical

from dlbricks_tui.printable import printable
from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import BY_ID, binding
from dlbricks_tui.tui.keymap import key
from dlbricks_tui.tui.lines import Line
from dlbricks_tui.tui.widgets.ink import LineBar
from dlbricks_tui.tui.widgets.keyed import Keyed
from dlbricks_tui.tui.widgets.rows import RowsView
from dlbricks_tui.tui.widgets.search_line import SearchLine


class Panel(Vertical, Keyed, can_focus=False):
    """A panel shows one list; whoever gives it the focus gives it to the list."""

    # In the list, too, the key that ends a search ends one that was kept.
    BINDINGS: ClassVar[list[BindingType]] = [binding(BY_ID["find.clear"])]
    scope: ClassVar[Scope]
    # What help says of it beside its keys.
    ABOUT: ClassVar[str] = ""
    TITLE: ClassVar[str] = ""
    # The action that leads to it; its key stands before the title.
    REACHED_BY: ClassVar[str] = ""
    # What can be searched for; a panel without it has no search.
    SEARCH_HINT: ClassVar[str] = ""
    # Whether `heading` stands above the list.
    HEADED: ClassVar[bool] = False

    def __init__(self, rows: RowsView, *, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.rows = rows
        self.search_line = SearchLine(self.SEARCH_HINT, rows)
        self._more = ""
        self.show_title()

    def compose(self) -> ComposeResult:
        if self.HEADED:
            yield _Heading(self)
        yield self.rows
        if self.SEARCH_HINT:
            yield self.search_line

    def show_title(self, more: str = "") -> None:
        """Writes into the frame what it is, by which key one gets to it, and what more there is to say."""
        self._more = more
        way = f"{key(self.REACHED_BY)} " if self.REACHED_BY else ""
        self.border_title = Text(printable(f"{way}{self.TITLE}{more}"))

    def keys_changed(self) -> None:
        self.show_title(self._more)

    def heading(self, width: int) -> Line:
        """What the columns of the list are called."""
        return ()

    def heading_changed(self) -> None:
        """Draws the heading anew."""
        for heading in self.query(_Heading):
            heading.refresh()

    def take_focus(self) -> None:
        """Give the keys to the list at once: `focus` would give them only after keys that wait already."""
        self.screen.set_focus(self.rows)

    def search(self) -> None:
        """Begins a search in this panel."""
        if self.SEARCH_HINT:
            self.search_line.begin()

    def copy(self, text: str | None, otherwise: str) -> None:
        """Copies a text and says so, or says why there is none."""
        if text is None:
            self.notify(otherwise)
        else:
            self.app.copy_to_clipboard(text)

    def action_clear(self) -> None:
        self.search_line.end()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer to end the search only while there is one: else the key may leave the screen."""
        return self.search_line.has_text if action == "clear" else super().check_action(action, parameters)


def marks_told(marked: int, in_view: int) -> str:
    """How many rows are marked, and how many of those a search hides, for the foot of a panel."""
    hidden = f", {marked - in_view:,} hidden" if marked > in_view else ""
    return f"{marked:,} marked{hidden}" if marked else ""


class _Heading(LineBar):
    def __init__(self, panel: Panel) -> None:
        super().__init__()
        self._panel = panel

    def lines(self, width: int) -> tuple[Line, ...]:
        return (self._panel.heading(width),)
