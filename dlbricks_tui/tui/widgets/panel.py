"""The bases of all panels: a titled frame around one list, with a search line at its foot."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical

from dlbricks_tui.documents.lines import Line, Span, contains_all
from dlbricks_tui.printable import printable
from dlbricks_tui.settings.kinds import next_of
from dlbricks_tui.tui.keys.keymap import Hint, key
from dlbricks_tui.tui.keys.places import HelpPlace
from dlbricks_tui.tui.keys.registry import BY_ID, binding
from dlbricks_tui.tui.widgets.plot import PictureView
from dlbricks_tui.tui.widgets.rows import Item, ItemRows, RowsView, place_of
from dlbricks_tui.tui.widgets.search_line import SearchLine
from dlbricks_tui.tui.widgets.text import NamesKeys, TextLines

if TYPE_CHECKING:
    from dlbricks_tui.documents.pictures import Picture
    from dlbricks_tui.wording.text_tables import TextTable


class Panel(HelpPlace, Vertical, NamesKeys, can_focus=False):
    """A panel with one list, which takes the focus."""

    # The key that ends a search also works in the list.
    BINDINGS: ClassVar[list[BindingType]] = [binding(BY_ID["find.clear"])]
    TITLE: ClassVar[str] = ""
    # The action that leads to the panel; its key is shown before the title.
    REACHED_BY: ClassVar[str] = ""
    # The things to search for; empty if the panel has no search.
    SEARCH_HINT: ClassVar[str] = ""
    # True if `heading` is shown above the list.
    HEADED: ClassVar[bool] = False
    # True if pictures are shown above the list.
    PICTURED: ClassVar[bool] = False

    def __init__(self, rows: RowsView, *, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self.rows = rows
        self.search_line = SearchLine(self.SEARCH_HINT, rows)
        self._heading = TextLines(lambda width: (self.heading(width),))
        self.picture = PictureView()
        self._more = ""
        self.show_title()

    def compose(self) -> ComposeResult:
        if self.PICTURED:
            self.picture.display = False
            yield self.picture
        if self.HEADED:
            yield self._heading
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

    def show_picture(self, picture: Picture | None) -> None:
        """Show a picture above the list, or none."""
        self.picture.display = picture is not None
        self.picture.show(picture)

    def show_placeholder(self, *lines: Line | Hint) -> None:
        """Set the text that is shown while there are no rows."""
        self.rows.show_placeholder(*lines)

    def heading(self, width: int) -> Line:
        """Return the titles of the columns."""
        return ()

    def copied_heading(self, width: int) -> Line:
        """Return the titles of the columns of a copy; without any, a copy has lines of text."""
        return self.heading(width)

    def as_texts(self) -> TextTable:
        """Return all rows of the list as texts, with the titles of their columns."""
        from dlbricks_tui.tui.widgets.text import WIDTH, columns_as_texts, lines_as_texts

        rows, heading = self.rows.all_rows(WIDTH - 1), self.copied_heading(WIDTH)
        # The heading leaves room for the sign of the cursor.
        return columns_as_texts(heading, ((Span(" "), *row) for row in rows)) if heading else lines_as_texts(rows)

    def heading_changed(self) -> None:
        self._heading.refresh()

    def cursor_settled(self) -> None:
        """React to the cursor having settled; by default do nothing."""

    @on(RowsView.CursorSettled)
    def _cursor_settled(self, event: RowsView.CursorSettled) -> None:
        event.stop()
        self.cursor_settled()

    @property
    def words(self) -> list[str]:
        """The lower-case words of the search."""
        return self.search_line.value.casefold().split()

    def search_changed(self) -> None:
        """Show what the search finds; by default do nothing."""

    @on(SearchLine.TextChanged)
    def _search_changed(self) -> None:
        self.search_changed()

    def on_click(self) -> None:
        self.take_focus()

    def take_focus(self) -> None:
        """Focus the list at once; `focus` would do so only after keys that are waiting."""
        self.screen.set_focus(self.rows)

    def search(self) -> None:
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


# The orders of a list by name, each with its sort key.
Orders = Mapping[str, Callable[[Any], Any]]


class ItemPanel(Panel, Generic[Item]):
    """A panel with a row for each item that the search finds."""

    # Without orders the items stay as they are.
    ORDERS: ClassVar[Orders] = {}

    def __init__(self, rows: ItemRows[Item], *, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(rows, id=id)
        self._list = rows
        self.items: tuple[Item, ...] = ()
        self.order = next(iter(self.ORDERS), "")

    @property
    def found(self) -> tuple[Item, ...]:
        """The items that the search finds, in their order."""
        return self._list.items

    @property
    def selected(self) -> Item | None:
        return self._list.selected

    def searched(self, item: Item) -> str:
        """Return the text of an item that a search looks in."""
        return ""

    def identity(self, item: Item) -> Hashable:
        """Return what an item keeps when the items are replaced."""
        return item

    def select(self, identity: Hashable) -> None:
        """Move the cursor to an item, or to the first one if it is not there."""
        self._list.move_to(place_of(identity, [self.identity(item) for item in self.found]))

    def show_items(self, items: Sequence[Item]) -> None:
        """Show other items; the cursor stays on its item if it can."""
        self.items = tuple(items)
        self.search_changed()

    def search_changed(self) -> None:
        here = None if self.selected is None else self.identity(self.selected)
        words = self.words
        found = [item for item in self.items if contains_all(self.searched(item), words)] if words else self.items
        self._list.items = tuple(sorted(found, key=self.ORDERS[self.order]) if self.ORDERS else found)
        self._list.rows_changed()
        self.select(here)
        self.show_counts()

    def show_counts(self) -> None:
        """Show in the title how many items there are."""
        self.show_title(f" {counts_text(len(self.found), len(self.items))}")

    def action_sort(self) -> None:
        self.order = next_of(tuple(self.ORDERS), self.order, 1)
        self.search_changed()
        self._list.move_to(0)


def counts_text(found: int, items: int) -> str:
    """Return the number of rows that the search finds, and of all rows if there are more."""
    return f"{found:,}" if found == items else f"{found:,} of {items:,}"


def marks_text(marked: int, in_view: int) -> str:
    """Return the numbers of marked and of hidden rows."""
    hidden = f", {marked - in_view:,} hidden" if marked > in_view else ""
    return f"{marked:,} marked{hidden}" if marked else ""
