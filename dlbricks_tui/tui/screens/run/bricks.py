"""The bricks of the run, as they come on the bench."""

from collections.abc import Iterable

from textual import on
from textual.app import ComposeResult

from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.lines import BLANK, Line, Span, line, wrapped
from dlbricks_tui.tui.live.snapshot import RunBrick, Standing
from dlbricks_tui.tui.screens.run.brick_row import heading, row
from dlbricks_tui.tui.screens.run.tail_rows import TailRows
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import RowsView, place_of
from dlbricks_tui.tui.widgets.said import Said
from dlbricks_tui.tui.widgets.search_line import SearchLine
from dlbricks_tui.wording.runs import names_of

_LINES_BELOW = 2
_MOST_USERS = 6


class BrickRows(TailRows):
    """The bricks that the search leaves."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: tuple[RunBrick, ...] = ()
        self.say_why_empty("")

    @property
    def row_count(self) -> int:
        return len(self.shown)

    @property
    def under_cursor(self) -> RunBrick | None:
        """The brick that the cursor is on."""
        return self.shown[self.cursor] if self.cursor < len(self.shown) else None

    def row(self, index: int, width: int) -> Line:
        return row(self.shown[index], width)

    def say_why_empty(self, now: str) -> None:
        """Says what the run does while there is no brick to list."""
        doing = [line(Span(f"{now[:1].upper()}{now[1:]}."))] if now else []
        self.say(*doing, line(Span("Bricks appear here when the run measures them.", "muted")))

    def show(self, bricks: tuple[RunBrick, ...]) -> None:
        """Shows these bricks, and draws no more than what has changed: while bricks run, drawing disturbs them."""
        before, self.shown = self.shown, bricks
        if len(before) != len(bricks):
            self.grown()
            return
        first = self.scroll_offset.y
        for index in range(first, min(first + self.size.height, len(bricks))):
            if bricks[index] is not before[index]:
                self.refresh_line(index)


class BricksPanel(Panel):
    """Samples, latency and interval of each brick, or why it failed."""

    scope = Scope.RUN_BRICKS
    TITLE = "Bricks"
    REACHED_BY = "run.go_to_bricks"
    SEARCH_HINT = "operator, shape, model, or: failed"
    HEADED = True
    ABOUT = (
        "~ is being sampled. ✓ is known as well as the run asks for: by default to 1 % or 3 µs, and to 5 % if it is a "
        "small part of its models. ≈ has the most samples, and they still vary too much. … was not finished when the "
        "run was stopped. ✗ failed. ± is half of the 95 % interval. The columns of blocks are the newest samples, from "
        "the least to the most. Stay at the end of the list to follow the run."
    )

    def __init__(self) -> None:
        self._list = BrickRows()
        super().__init__(self._list, id="run-bricks")
        self._bricks: tuple[RunBrick, ...] = ()
        self._now = ""
        self._sought: tuple[str, ...] = ()
        self._below = Said(self._below_lines, classes="run-brick")
        self._described: RunBrick | None = None

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield self._below

    def heading(self, width: int) -> Line:
        return (Span(" "), *heading(width - 1))

    def show(self, bricks: tuple[RunBrick, ...], now: str) -> None:
        """Lists the bricks as they stand now; without any it says what the run does now."""
        if not bricks and now != self._now:
            self._now = now
            self._list.say_why_empty(now)
        if bricks is not self._bricks:
            self._bricks = bricks
            self._find()

    def on_search_line_sought(self, event: SearchLine.Sought) -> None:
        here = self._list.under_cursor
        self._sought = tuple(event.text.casefold().split())
        self._find()
        self._list.move_to(place_of(here and here.number, [brick.number for brick in self._list.shown]))

    def on_click(self) -> None:
        self.take_focus()

    @on(RowsView.Rested)
    def _rested(self, event: RowsView.Rested) -> None:
        event.stop()
        self._describe()

    def _find(self) -> None:
        found = tuple(self._found()) if self._sought else self._bricks
        self._list.show(found)
        of = f" of {len(self._bricks):,}" if len(found) != len(self._bricks) else ""
        self.show_title(f" {len(found):,}{of}")
        self._describe()

    def _found(self) -> Iterable[RunBrick]:
        for brick in self._bricks:
            text = f"{brick.label} {brick.standing.value} {' '.join(brick.used_by)}".casefold()
            if all(word in text for word in self._sought):
                yield brick

    def _describe(self) -> None:
        brick = self._list.under_cursor
        before, self._described = self._described, brick
        if brick is None or before is None or _described(brick) != _described(before):
            self._below.refresh()

    def _below_lines(self, width: int) -> tuple[Line, ...]:
        brick = self._described
        found = wrapped(_described(brick), width)[:_LINES_BELOW] if brick is not None else []
        return (*found, *[BLANK] * (_LINES_BELOW - len(found)))


def _described(brick: RunBrick) -> Line:
    users = names_of(brick.used_by, _MOST_USERS) or "no model that was read"
    reason = Span(f"{brick.reason}  " if brick.reason else "", "bad" if brick.standing is Standing.FAILED else "warn")
    return line(Span(f" {brick.standing.value}: ", "muted"), reason, Span(f"{brick.label}, in {users}", "muted"))
