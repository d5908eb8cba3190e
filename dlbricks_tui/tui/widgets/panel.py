"""The bases of all panels: a titled frame around a list, a document or a table, with a search line at its foot."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, ClassVar, Generic, NamedTuple

from rich.segment import Segment
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.dom import DOMNode
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input
from textual.widgets.input import Selection

from dlbricks_tui.api.open_models import ComparableRow
from dlbricks_tui.documents.layout import TableLayout, laid_out
from dlbricks_tui.documents.lines import Line, Span, contains_all
from dlbricks_tui.documents.parts import Column, Missing, Part, Table
from dlbricks_tui.documents.pictures import Picture
from dlbricks_tui.printable import printable
from dlbricks_tui.settings.setting import next_of
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import HelpPlace, Hint, key
from dlbricks_tui.tui.keys.scopes import BY_ID
from dlbricks_tui.tui.widgets.rows import DrawnRows, Item, ItemRows, LineRows, RowsView, marks_of, place_of
from dlbricks_tui.tui.widgets.text import WIDTH, NamesKeys, PictureView, TextLines, lines_as_texts
from dlbricks_tui.wording.plain_text import TextTable


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

    scope = scopes.SEARCH

    class TextChanged(Message):
        """The search text has changed."""

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
        self.post_message(self.TextChanged())
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


class SearchedPlace(DOMNode):
    """A place with a search line at its foot; subclasses show what a search finds."""

    search_line: SearchLine

    @property
    def words(self) -> list[str]:
        """The lower-case words of the search."""
        return self.search_line.value.casefold().split()

    def search_changed(self) -> None:
        """Show what the search finds; by default do nothing."""

    @on(SearchLine.TextChanged)
    def _search_changed(self) -> None:
        self.search_changed()

    def action_clear(self) -> None:
        self.search_line.end()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer the key that ends a search only while there is one; otherwise the key may leave the place."""
        return self.search_line.has_text if action == "clear" else super().check_action(action, parameters)


class Panel(HelpPlace, Vertical, SearchedPlace, NamesKeys, can_focus=False):
    """A panel with one list, which takes the focus."""

    # The key that ends a search also works in the list.
    BINDINGS: ClassVar[list[BindingType]] = [BY_ID["find.clear"].binding]
    TITLE: ClassVar[str] = ""
    # The things to search for; empty if the panel has no search.
    SEARCH_HINT: ClassVar[str] = ""
    # True if `heading` is shown above the list.
    HEADED: ClassVar[bool] = False
    # True if pictures are shown above the list.
    PICTURED: ClassVar[bool] = False
    # The text while there are no rows, until another one is shown.
    PLACEHOLDER: ClassVar[tuple[Hint, ...]] = ()
    # The message where the key that copies has nothing to copy.
    NOTHING_TO_COPY: ClassVar[str] = ""

    def __init__(self, rows: RowsView) -> None:
        super().__init__()
        self.rows = rows
        rows.show_placeholder(*self.PLACEHOLDER)
        self.search_line = SearchLine(self.SEARCH_HINT, rows)
        self._heading = TextLines(lambda width: (self.heading(width),))
        self.picture = PictureView()
        # The action that leads to the panel; its key is shown before the title. Its screen tells it.
        self.reached_by = ""
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
        way = f"{key(self.reached_by)} " if self.reached_by else ""
        self.border_title = Text(printable(f"{way}{self.TITLE}{more}"))

    def keys_changed(self) -> None:
        self.show_title(self._more)

    def show_picture(self, picture: Picture | None) -> None:
        self.picture.display = picture is not None
        self.picture.show(picture)

    def show_placeholder(self, *lines: Line | Hint) -> None:
        """Set the text that is shown while there are no rows."""
        self.rows.show_placeholder(*lines)

    def heading(self, width: int) -> Line:
        return ()

    def as_texts(self) -> TextTable:
        """Return all rows of the list as texts: names and values, unless the panel has columns."""
        return lines_as_texts(self.rows.all_rows(WIDTH - 1))

    def heading_changed(self) -> None:
        self._heading.refresh()

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
        if self.SEARCH_HINT:
            self.search_line.begin()

    def mark(self) -> bool:
        """Mark the selected row; False if the panel has no marks of its own, and those of the application hold it."""
        return False

    def copied(self) -> str | None:
        """Return the text that the key copies; empty or None if there is none."""
        return None

    def action_copy(self) -> None:
        if text := self.copied():
            self.app.copy_to_clipboard(text)
        else:
            self.notify(self.NOTHING_TO_COPY)


class Copyable(NamedTuple):
    """Parts whose lines all copy the same text."""

    parts: tuple[Part, ...]
    text: str = ""


class DocumentPanel(Panel):
    """Shows the parts of a document at any width."""

    def __init__(self) -> None:
        self._list = LineRows(self._lines)
        super().__init__(self._list)
        self._groups: tuple[Copyable, ...] = ()
        # The subject of the document, and the text that each line copies.
        self._about: object = None
        self._texts: tuple[str, ...] = ()

    def show_parts(self, parts: Iterable[Part], about: object = None) -> None:
        """Show a document; the cursor stays if its subject is the same as before."""
        self.show_groups([Copyable(tuple(parts))], about)

    def show_groups(self, groups: Iterable[Copyable], about: object = None) -> None:
        """Show a document with texts to copy."""
        if about != self._about:
            self._list.move_to(0)
        self._groups, self._about = tuple(groups), about
        self._list.remake()

    def copied(self) -> str | None:
        here = self._list.cursor
        return self._texts[here] if here < len(self._texts) else None

    def _lines(self, width: int) -> tuple[Line, ...]:
        made = [(each, group.text) for group in self._groups for each in laid_out(group.parts, width)]
        self._texts = tuple(text for _, text in made)
        return tuple(each for each, _ in made)


# The orders of a list by name, each with its sort key.
Orders = Mapping[str, Callable[[Any], Any]]


class ItemPanel(Panel, Generic[Item]):
    """A panel with a row for each item that the search finds."""

    # Without orders the items stay as they are.
    ORDERS: ClassVar[Orders] = {}
    # The word for an item.
    NOUN: ClassVar[str] = "row"
    # Tells an item apart from others, also when the items are replaced; without it an item is compared as a whole.
    IDENTITY: ClassVar[attrgetter[Any] | None] = None
    # What the key copies of the selected item.
    COPIES: ClassVar[attrgetter[str] | None] = None

    class Settled(Message):
        """The cursor has settled on a row, or the rows have changed."""

        def __init__(self, panel: ItemPanel[Any]) -> None:
            super().__init__()
            self.panel = panel

        @property
        def control(self) -> ItemPanel[Any]:
            """The panel, which handlers select by its class."""
            return self.panel

    def __init__(self, rows: ItemRows[Item]) -> None:
        super().__init__(rows)
        self._list = rows
        self._empty: tuple[Line | Hint, ...] = self.PLACEHOLDER
        rows.stands_for = self.comparable_at
        self.items: tuple[Item, ...] = ()
        self.order = next(iter(self.ORDERS), "")

    @property
    def found(self) -> tuple[Item, ...]:
        """The items that the search finds, in their order."""
        return self._list.items

    @property
    def selected(self) -> Item | None:
        return self._list.selected

    @property
    def chosen(self) -> tuple[Item, ...]:
        """The marked items, else the selected one."""
        marks = marks_of(self.app)
        marked = tuple(it for it in self.items if marks.rows and marks.has(self.comparable(it)))
        return marked or (() if self.selected is None else (self.selected,))

    def copied(self) -> str | None:
        return None if self.COPIES is None or self.selected is None else self.COPIES(self.selected)

    def searched(self, item: Item) -> str:
        """Return the text of an item that a search looks in."""
        return ""

    def identity(self, item: Item) -> Hashable:
        """Return what an item keeps when the items are replaced."""
        return item if self.IDENTITY is None else self.IDENTITY(item)

    def comparable(self, item: Item) -> ComparableRow | None:
        """Return what an item stands for when it is compared; None for items that cannot be."""
        return None

    def comparable_at(self, index: int) -> ComparableRow | None:
        """Return what a row stands for; None for one that is no item."""
        return self.comparable(self.found[index]) if index < len(self.found) else None

    def show_placeholder(self, *lines: Line | Hint) -> None:
        self._empty = lines
        self._show_why_empty()

    def say_why_empty(self) -> tuple[Hint, ...]:
        """Return what is shown where a search hides all items."""
        return (
            Hint(f"No {self.NOUN} matches the search."),
            Hint(f"{{find.clear}} shows all {self.NOUN}s again.", "muted"),
        )

    def _show_why_empty(self) -> None:
        self.rows.show_placeholder(*(self.say_why_empty() if self.items else self._empty))

    def select(self, identity: Hashable) -> None:
        """Move the cursor to an item, or to the first one if it is not there."""
        self._list.move_to(place_of(identity, [self.identity(item) for item in self.found]))

    def show_items(self, items: Sequence[Item]) -> None:
        """Show other items; the cursor stays on its item if it can."""
        self.items = tuple(items)
        self._show_why_empty()
        self.search_changed()

    def search_changed(self) -> None:
        here = None if self.selected is None else self.identity(self.selected)
        words = self.words
        found = [item for item in self.items if contains_all(self.searched(item), words)] if words else self.items
        self._list.items = tuple(sorted(found, key=self.ORDERS[self.order]) if self.ORDERS else found)
        self._list.rows_changed()
        self.select(here)
        self.show_counts()
        self.cursor_settled()

    def cursor_settled(self) -> None:
        self.post_message(self.Settled(self))

    def show_counts(self) -> None:
        """Show in the title how many items there are, and their order."""
        order = f", {self.order}" if self.order and len(self.items) > 1 else ""
        self.show_title(f" {counts_text(len(self.found), len(self.items))}{order}")

    def action_mark_all(self) -> None:
        """Mark all items that the search finds, or none of them."""
        marks, rows = marks_of(self.app), [row for row in map(self.comparable, self.found) if row is not None]
        are_marked = all(map(marks.has, rows))
        for row in rows:
            if marks.has(row) is are_marked:
                marks.toggle(row)
        self.rows.refresh()

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


class TableRows(DrawnRows[Item]):
    """A row for each item, then rows of totals, which cannot be selected."""

    totals: tuple[Item, ...] = ()

    @property
    def row_count(self) -> int:
        return len(self.items) + len(self.totals)

    def can_select(self, index: int) -> bool:
        return index < len(self.items)


class TablePanel(ItemPanel[Item]):
    """A list with declared columns: they give its titles, its rows, and the table that is copied."""

    HEADED: ClassVar[bool] = True
    ROWS: ClassVar[type[TableRows[Any]]] = TableRows

    def __init__(self) -> None:
        self._table_rows: TableRows[Item] = self.ROWS(self._row)
        super().__init__(self._table_rows)
        # The columns in a width, for the items of the moment.
        self._layout: TableLayout | None = None
        self._laid_out_for: tuple[Item, ...] = ()
        self._width = 0

    def columns(self) -> tuple[Column[Any], ...]:
        """Return the columns for the items of the moment."""
        raise NotImplementedError

    def copied_columns(self) -> tuple[Column[Any], ...]:
        """Return the columns of a copy."""
        return self.columns()

    def columns_changed(self) -> None:
        """Draw the same items with other cells."""
        self._layout = None
        self.rows.refresh()
        self.heading_changed()

    def show_totals(self, totals: Sequence[Item]) -> None:
        """Show rows below those of the items, which cannot be selected."""
        self._table_rows.totals = tuple(totals)

    def missing(self, item: Item) -> Missing | None:
        """Return why an item has no figures, and the command that measures them."""
        return None

    def heading(self, width: int) -> Line:
        # The sign of the cursor stands before the rows.
        return (Span(" "), *self._laid_out(width - 1).heading)

    def as_texts(self) -> TextTable:
        # Bars, marks and numbers of rows have no title.
        kept = [it for it in self.copied_columns() if it.title]
        found = (*self.found, *self._table_rows.totals)
        told = ["".join(self.missing(row) or ()) for row in found]
        rows = [
            ["" if missing and not it.is_key else str(it.cell(row)) for it in kept]
            for row, missing in zip(found, told, strict=True)
        ]
        titles = [it.title for it in kept]
        if any(told):
            titles, rows = [*titles, "missing"], [[*row, missing] for row, missing in zip(rows, told, strict=True)]
        return TextTable(tuple(titles), rows)

    def search_changed(self) -> None:
        self._layout = None
        super().search_changed()
        self.heading_changed()

    def _row(self, index: int, width: int) -> Line:
        return self._laid_out(width).row(index, self.words)

    def _laid_out(self, width: int) -> TableLayout:
        if self._layout is None or self._laid_out_for is not self.found or self._width != width:
            rows = (*self.found, *self._table_rows.totals)
            self._layout = TableLayout(Table(self.columns(), rows, missing=self.missing), width)
            self._laid_out_for, self._width = self.found, width
        return self._layout
