"""The base of every list: of any length, as only the rows in sight are made."""

from collections.abc import Hashable, Sequence

from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.timer import Timer

from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.key_words import Hint
from dlbricks_tui.tui.lines import Line, Span, wrapped
from dlbricks_tui.tui.widgets.ink import CURSOR, CURSOR_ELSEWHERE, OWN_GROUND, Inked

# Long enough for a held key to pass by many rows, short enough not to be noticed.
REST_SECONDS = 0.06
CURSOR_SIGN = "▸"


def place_of(one: Hashable, found: Sequence[Hashable]) -> int:
    """Return the row of what the cursor was on among what a search has found; the first row if it is not there."""
    return found.index(one) if one in found else 0


class RowsView(Inked, ScrollView, can_focus=True, inherit_bindings=False):
    """A list with a cursor; subclasses say how many rows there are and what stands in one."""

    BINDINGS = bindings(Scope.LIST)

    cursor: reactive[int] = reactive(0, repaint=False)

    class Rested(Message):
        """The cursor has come to rest on a row."""

        def __init__(self, rows: "RowsView", row: int) -> None:
            super().__init__()
            self.rows = rows
            self.row = row

        @property
        def control(self) -> "RowsView":
            """The list, for `@on` selectors."""
            return self.rows

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes=classes)
        self._said: tuple[Line | Hint, ...] = ()
        self._rest: Timer | None = None

    @property
    def about_to_rest(self) -> bool:
        """Whether the cursor was moved so lately that `Rested` is still to come."""
        return self._rest is not None

    @property
    def line_width(self) -> int:
        """How many cells there are beside the scrollbar."""
        return self.scrollable_content_region.width

    @property
    def row_count(self) -> int:
        """How many rows there are."""
        raise NotImplementedError

    def row(self, index: int, width: int) -> Line:
        """What stands in a row, in at most so many cells."""
        raise NotImplementedError

    @property
    def has_cursor(self) -> bool:
        """Whether a row is chosen by the cursor; where one need not choose, there is none at first."""
        return True

    def can_rest_on(self, index: int) -> bool:
        """Whether the cursor may stand on the row; headings and gaps are passed by."""
        return True

    def say(self, *lines: Line | Hint) -> None:
        """What stands there while there are no rows: where to go from here."""
        self._said = lines
        self.refresh()

    def rows_changed(self) -> None:
        """Draws anew after rows have come, gone or changed; the cursor stays where it can."""
        self.virtual_size = Size(0, self.row_count)
        landed = self._landing(min(self.cursor, self.row_count - 1), 1)
        if landed != self.cursor:
            self.cursor = landed
        else:
            self.scroll_to_cursor()
        self.refresh()

    def move_to(self, index: int) -> None:
        """Puts the cursor on a row, or on the nearest one where it may stand."""
        self.cursor = self._landing(index, 1 if index >= self.cursor else -1)

    def scroll_to_cursor(self) -> None:
        """Scrolls no more than is needed to see the cursor."""
        self.scroll_to_region(Region(0, self.cursor, 1, 1), animate=False, force=True)

    def watch_cursor(self, before: int, now: int) -> None:
        self.refresh_line(before)
        self.refresh_line(now)
        self.scroll_to_cursor()
        if self._rest is not None:
            self._rest.stop()
        self._rest = self.set_timer(REST_SECONDS, self._rested)

    def render_line(self, y: int) -> Strip:
        width, index = self.line_width, y + self.scroll_offset.y
        if not self.row_count:
            lines = (each.line if isinstance(each, Hint) else each for each in self._said)
            said = [each for long in lines for each in wrapped(long, width - 1)]
            return self.strip_of((Span(" "), *said[y]) if y < len(said) else (), width)
        if index >= self.row_count:
            return self.strip_of((), width)
        here = self.has_cursor and index == self.cursor
        sign = Span(CURSOR_SIGN if here else " ", "accent")
        return self.strip_of((sign, *self.row(index, width - 1)), width, self._ground() if here else OWN_GROUND)

    def on_resize(self) -> None:
        # What has come up below, as the bar of a run does, may lie where the cursor was.
        self.scroll_to_cursor()

    def on_focus(self) -> None:
        self.refresh_line(self.cursor)

    def on_blur(self) -> None:
        self.refresh_line(self.cursor)

    def on_click(self, event: events.Click) -> None:
        index = event.y + self.scroll_offset.y
        if index < self.row_count and self.can_rest_on(index):
            self.cursor = index

    def action_down(self) -> None:
        before = self.cursor
        self.move_to(before + 1)
        if self.cursor == before:
            # What lies beyond the last row that takes the cursor is to be read too.
            self.scroll_end(animate=False)

    def action_up(self) -> None:
        before = self.cursor
        self.move_to(before - 1)
        if self.cursor == before:
            self.scroll_home(animate=False)

    def action_page_down(self) -> None:
        self.move_to(self.cursor + max(1, self.size.height - 1))

    def action_page_up(self) -> None:
        self.move_to(self.cursor - max(1, self.size.height - 1))

    def action_first(self) -> None:
        self.cursor = self._landing(0, 1)

    def action_last(self) -> None:
        self.cursor = self._landing(self.row_count - 1, -1)

    def _landing(self, index: int, step: int) -> int:
        """The first row from there on where the cursor may stand; else the last one on the way there."""
        last = max(0, self.row_count - 1)
        index = min(max(index, 0), last)
        for direction in (step, -step):
            candidates: Sequence[int] = range(index, last + 1) if direction > 0 else range(index, -1, -1)
            found = next((each for each in candidates if each < self.row_count and self.can_rest_on(each)), None)
            if found is not None:
                return found
        return 0

    def _ground(self) -> str:
        return CURSOR if self.has_focus else CURSOR_ELSEWHERE

    def _rested(self) -> None:
        self._rest = None
        if self.row_count:
            self.post_message(self.Rested(self, self.cursor))
