"""The base of all panels: a titled frame around one list, with a search line at its foot."""

from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical

from dlbricks_tui.printable import printable
from dlbricks_tui.tui.keys.keymap import key
from dlbricks_tui.tui.keys.places import Place
from dlbricks_tui.tui.keys.registry import BY_ID, binding
from dlbricks_tui.tui.lines import Line
from dlbricks_tui.tui.widgets.rows import RowsView
from dlbricks_tui.tui.widgets.search_line import SearchLine
from dlbricks_tui.tui.widgets.text import LineBar, NamesKeys


class Panel(Place, Vertical, NamesKeys, can_focus=False):
    """A panel with one list, which takes the focus."""

    # The key that ends a search also works in the list.
    BINDINGS: ClassVar[list[BindingType]] = [binding(BY_ID["find.clear"])]
    TITLE: ClassVar[str] = ""
    # The action that leads to the panel; its key is shown before the title.
    REACHED_BY: ClassVar[str] = ""
    # What can be searched for; empty if the panel has no search.
    SEARCH_HINT: ClassVar[str] = ""
    # True if `heading` is shown above the list.
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
        """Show the key, the title and more in the frame."""
        self._more = more
        way = f"{key(self.REACHED_BY)} " if self.REACHED_BY else ""
        self.border_title = Text(printable(f"{way}{self.TITLE}{more}"))

    def keys_changed(self) -> None:
        self.show_title(self._more)

    def heading(self, width: int) -> Line:
        """Return the titles of the columns."""
        return ()

    def heading_changed(self) -> None:
        """Redraw the heading."""
        for heading in self.query(_Heading):
            heading.refresh()

    def cursor_settled(self) -> None:
        """React to the cursor having settled; by default do nothing."""

    @on(RowsView.CursorSettled)
    def _cursor_settled(self, event: RowsView.CursorSettled) -> None:
        event.stop()
        self.cursor_settled()

    def on_click(self) -> None:
        self.take_focus()

    def take_focus(self) -> None:
        """Focus the list at once; `focus` would do so only after keys that are waiting."""
        self.screen.set_focus(self.rows)

    def search(self) -> None:
        """Start a search."""
        if self.SEARCH_HINT:
            self.search_line.begin()

    def copy(self, text: str | None, otherwise: str) -> None:
        """Copy a text, or show why there is none."""
        if text is None:
            self.notify(otherwise)
        else:
            self.app.copy_to_clipboard(text)

    def action_clear(self) -> None:
        self.search_line.end()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer the key that ends a search only while there is one; otherwise the key may leave the screen."""
        return self.search_line.has_text if action == "clear" else super().check_action(action, parameters)


def marks_text(marked: int, in_view: int) -> str:
    """Return the numbers of marked and of hidden rows."""
    hidden = f", {marked - in_view:,} hidden" if marked > in_view else ""
    return f"{marked:,} marked{hidden}" if marked else ""


class _Heading(LineBar):
    def __init__(self, panel: Panel) -> None:
        super().__init__()
        self._panel = panel

    def lines(self, width: int) -> tuple[Line, ...]:
        return (self._panel.heading(width),)
