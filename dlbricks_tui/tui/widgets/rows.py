"""The bases of all lists, of which only the visible rows are made, and marks on rows of one kind."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, TypeVar

from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from dlbricks_tui.api.open_models import ComparableRow
from dlbricks_tui.documents.lines import Line, Span, column, fitted, wrapped_lines
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.widgets.text import CURSOR, CURSOR_ELSEWHERE, OWN_GROUND, LineWidget, NamesKeys

if TYPE_CHECKING:
    from textual.app import App

# Long enough that a held key passes many rows, short enough not to be noticed.
SETTLE_SECONDS = 0.06
CURSOR_SIGN = "▸"

Item = TypeVar("Item")


def place_of(one: Hashable, found: Sequence[Hashable]) -> int:
    """Return the index of the row that the cursor was on; 0 if it is gone."""
    return found.index(one) if one in found else 0


class ListColumn(NamedTuple):
    """A column of a list in which only the visible rows are made, so that its width is fixed."""

    title: str
    width: int
    # Returns the text of an item, and its style.
    cell: Callable[[Any], tuple[str, str]]
    # The least width of a list that shows it.
    begins_at: int = 0
    is_right: bool = True


def list_row(first: Line, columns: Sequence[ListColumn], item: Any, width: int, before: int = 0) -> Line:
    """Return a row: its name in the room that the columns leave, `before` cells from the left, and their cells."""
    return _in_columns(first, [(it, it.cell(item)) for it in columns if width >= it.begins_at], width - before)


def list_heading(first: str, columns: Sequence[ListColumn], width: int) -> Line:
    """Return the titles of the columns that a list so wide shows."""
    titles = [(it, (it.title, "heading")) for it in columns if width >= it.begins_at]
    return _in_columns((Span(first, "heading"),), titles, width)


def _in_columns(first: Line, cells: Sequence[tuple[ListColumn, tuple[str, str]]], width: int) -> Line:
    spans = [*fitted(first, width - sum(it.width + 1 for it, _ in cells))]
    for it, (text, style) in cells:
        spans += [Span(" "), column(text, it.width, style, right=it.is_right)]
    return tuple(spans)


class RowsView(LineWidget, ScrollView, can_focus=True, inherit_bindings=False):
    """A list with a cursor; subclasses define the rows."""

    BINDINGS = scopes.LIST.bindings

    # False: the subclass colours the place of the cursor in its row.
    COLOURS_CURSOR: ClassVar[bool] = True

    cursor: reactive[int] = reactive(0, repaint=False)

    class CursorSettled(Message):
        """The cursor has settled on a row."""

    def __init__(self) -> None:
        super().__init__()
        self._said: tuple[Line | Hint, ...] = ()
        self._settling: asyncio.TimerHandle | None = None
        # Tells what a row stands for when it is compared. Set by a panel whose rows can be; None for those that cannot.
        self.stands_for: Callable[[int], ComparableRow | None] = lambda _: None

    @property
    def is_settling(self) -> bool:
        """Return whether `CursorSettled` is still to come."""
        return self._settling is not None

    @property
    def line_width(self) -> int:
        """The width without the scrollbar."""
        return self.scrollable_content_region.width

    @property
    def row_count(self) -> int:
        raise NotImplementedError

    def row(self, index: int, width: int) -> Line:
        """Return the content of a row in at most `width` cells."""
        raise NotImplementedError

    def all_rows(self, width: int) -> list[Line]:
        """Return all rows, also those out of view, as if the list were so wide."""
        return [self.row(index, width) for index in range(self.row_count)]

    @property
    def has_cursor(self) -> bool:
        """Return whether a row is selected; lists with an optional selection start without one."""
        return True

    def can_select(self, index: int) -> bool:
        """Return whether the cursor may stop on the row; it skips headings and gaps."""
        return True

    def show_placeholder(self, *lines: Line | Hint) -> None:
        """Set the text that is shown while there are no rows."""
        self._said = lines
        self.refresh()

    def rows_changed(self) -> None:
        """Redraw after the rows have changed; the cursor stays if it can."""
        self.virtual_size = Size(0, self.row_count)
        landed = self._landing(min(self.cursor, self.row_count - 1), 1)
        if landed != self.cursor:
            self.cursor = landed
        else:
            self.scroll_to_cursor()
        self.refresh()

    def move_to(self, index: int) -> None:
        """Move the cursor to a row, or to the nearest one where it may stop."""
        self.cursor = self._landing(index, 1 if index >= self.cursor else -1)

    def scroll_to_cursor(self) -> None:
        self.scroll_to_region(Region(0, self.cursor, 1, 1), animate=False, force=True)

    def watch_cursor(self, before: int, now: int) -> None:
        self.refresh_line(before)
        self.refresh_line(now)
        self.scroll_to_cursor()
        if self._settling is not None:
            self._settling.cancel()
        # A timer of Textual is skipped for good if the process gets no processor for as long as the timer lasts.
        self._settling = asyncio.get_running_loop().call_later(SETTLE_SECONDS, self._rested)

    def render_line(self, y: int) -> Strip:
        width, index = self.line_width, y + self.scroll_offset.y
        if not self.row_count:
            said = wrapped_lines((each.line if isinstance(each, Hint) else each for each in self._said), width - 1)
            return self.strip_of((Span(" "), *said[y]) if y < len(said) else (), width)
        if index >= self.row_count:
            return self.strip_of((), width)
        here = self.has_cursor and index == self.cursor
        # Without marks, nothing is asked of the rows.
        marked = bool((marks := marks_of(self.app)).rows) and marks.has(self.stands_for(index))
        sign = Span(MARK, "mark") if marked else Span(CURSOR_SIGN if here else " ", "accent")
        ground = (CURSOR if self.has_focus else CURSOR_ELSEWHERE) if here and self.COLOURS_CURSOR else OWN_GROUND
        return self.strip_of((sign, *self.row(index, width - 1)), width, ground)

    def on_resize(self) -> None:
        # A bar that appeared below may cover the cursor.
        self.scroll_to_cursor()

    def on_focus(self) -> None:
        self.refresh_line(self.cursor)

    def on_blur(self) -> None:
        self.refresh_line(self.cursor)

    def on_click(self, event: events.Click) -> None:
        index = event.y + self.scroll_offset.y
        if index < self.row_count and self.can_select(index):
            self.cursor = index

    def action_down(self) -> None:
        before = self.cursor
        self.move_to(before + 1)
        if self.cursor == before:
            # Text beyond the last selectable row has to be readable too.
            self.scroll_end(animate=False)

    def action_up(self) -> None:
        before = self.cursor
        self.move_to(before - 1)
        if self.cursor == before:
            self.scroll_to(y=0, animate=False, force=True, immediate=True)

    def action_page_down(self) -> None:
        self.move_to(self.cursor + max(1, self.size.height - 1))

    def action_page_up(self) -> None:
        self.move_to(self.cursor - max(1, self.size.height - 1))

    def action_first(self) -> None:
        self.cursor = self._landing(0, 1)

    def action_last(self) -> None:
        self.cursor = self._landing(self.row_count - 1, -1)
        # Rows after the last selectable one are shown too.
        self.scroll_end(animate=False)

    def _landing(self, index: int, step: int) -> int:
        """Return the first selectable row from there on; else the last one before it."""
        last = max(0, self.row_count - 1)
        index = min(max(index, 0), last)
        for direction in (step, -step):
            candidates: Sequence[int] = range(index, last + 1) if direction > 0 else range(index, -1, -1)
            found = next((each for each in candidates if each < self.row_count and self.can_select(each)), None)
            if found is not None:
                return found
        return 0

    def _rested(self) -> None:
        self._settling = None
        if self.row_count:
            self.post_message(self.CursorSettled())


class ItemRows(RowsView, Generic[Item]):
    """A list of items with one row each."""

    def __init__(self) -> None:
        super().__init__()
        self.items: tuple[Item, ...] = ()

    @property
    def row_count(self) -> int:
        return len(self.items)

    @property
    def selected(self) -> Item | None:
        return self.items[self.cursor] if self.cursor < len(self.items) else None

    def on_mount(self) -> None:
        self.rows_changed()

    def show_items(self, items: Iterable[Item], identity: Callable[[Item], Any] = lambda it: it) -> None:
        """Show other items; the cursor stays on its item by what this keeps, or goes to the first one."""
        here = None if self.selected is None else identity(self.selected)
        self.items = tuple(items)
        self.rows_changed()
        self.move_to(place_of(here, [identity(item) for item in self.items]))


class DrawnRows(ItemRows[Item]):
    """A list of items whose rows a function draws: it gets the index and the width of a row."""

    def __init__(self, draw: Callable[[int, int], Line], items: Iterable[Item] = ()) -> None:
        super().__init__()
        self.items = tuple(items)
        self._draw = draw

    def row(self, index: int, width: int) -> Line:
        return self._draw(index, width)


class CheckedRows(ItemRows[str]):
    """Columns of a list by name, each with its title and meaning; a check says which of them are shown."""

    def __init__(self, shown: Iterable[str], about: Callable[[str], tuple[str, str]], title_width: int) -> None:
        super().__init__()
        self.chosen = set(shown)
        self._about = about
        self._title_width = title_width

    def row(self, index: int, width: int) -> Line:
        name = self.items[index]
        title, about = self._about(name)
        mark = Span("[x] ", "mark") if name in self.chosen else Span("[ ] ", "muted")
        return (mark, column(title, self._title_width, "strong"), Span(about, "muted"))

    def check(self) -> None:
        """Check the selected column, or take its check away."""
        if self.selected is not None:
            self.chosen ^= {self.selected}
            self.action_down()
            self.refresh()


class LineRows(RowsView, NamesKeys):
    """Lines with a cursor; they are made and wrapped again when the width changes."""

    def __init__(self, make: Callable[[int], Iterable[Line]]) -> None:
        super().__init__()
        self._make = make
        self._made: tuple[Line, ...] = ()
        self._made_for = -1

    @property
    def row_count(self) -> int:
        return len(self._lines())

    def row(self, index: int, width: int) -> Line:
        return self._lines()[index]

    def all_rows(self, width: int) -> list[Line]:
        made = list(self._make(width))
        # `make` may keep what belongs to each line that is shown.
        self._made_for = -1
        self._lines()
        return made

    def can_select(self, index: int) -> bool:
        return bool(self._lines()[index])

    def remake(self) -> None:
        self._made_for = -1
        self.rows_changed()

    def on_resize(self) -> None:
        self.remake()

    def keys_changed(self) -> None:
        self.remake()

    def _lines(self) -> tuple[Line, ...]:
        width = self.line_width - 1
        if width != self._made_for and width > 0:
            self._made, self._made_for = wrapped_lines(self._make(width), width), width
        return self._made


class TailRows(RowsView):
    """A growing list: the cursor follows the end unless the user has scrolled up."""

    _last = 0

    def grown(self) -> None:
        """Redraw after rows were added or changed."""
        at_end = self.cursor >= self._last
        self._last = max(0, self.row_count - 1)
        self.rows_changed()
        if at_end and self.cursor != self._last:
            self.move_to(self._last)


class TailLines(TailRows, LineRows):
    """Growing lines."""

    def remake(self) -> None:
        self._made_for = -1
        self.grown()


MARK = "●"
# The kind of what-ifs, which are marked and never compared.
WHAT_IF = "what-if"
# How many rows a comparison takes.
TWO = 2
# What rows with marks stand for.
MARKABLE = "models, what-ifs, variants, systems, runs and results"


class Marks:
    """The rows that are marked now, in the order in which they were."""

    def __init__(self, *rows: ComparableRow) -> None:
        self.rows = rows

    def has(self, row: ComparableRow | None) -> bool:
        return row is not None and any((it.kind, it.identity) == (row.kind, row.identity) for it in self.rows)

    def of(self, kind: str) -> tuple[ComparableRow, ...]:
        return tuple(it for it in self.rows if it.kind == kind)

    def toggle(self, row: ComparableRow) -> None:
        """Mark a row or unmark it; rows of another kind lose their marks."""
        if self.has(row):
            self.rows = tuple(it for it in self.rows if it.identity != row.identity)
        else:
            self.rows = (*self.of(row.kind), row)


_NONE = Marks()


def marks_of(app: App[object]) -> Marks:
    """Return the marks of an application; those of one without marks are none."""
    found = getattr(app, "marks", _NONE)
    return found if isinstance(found, Marks) else _NONE
