"""The panel of the bricks of a run."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from textual.app import ComposeResult

from dlbricks_tui.documents.lines import BLANK, Line, Span, column, contains_all, line, sparkline, wrapped
from dlbricks_tui.estimate.intervals import WIDEST_MS, WIDEST_SHARE
from dlbricks_tui.tui.run.snapshot import BrickState, RunBrick
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import ItemRows, TailRows, place_of
from dlbricks_tui.tui.widgets.search_line import SearchLine
from dlbricks_tui.tui.widgets.text import TextLines
from dlbricks_tui.wording.numbers import milliseconds, names_of, percent
from dlbricks_tui.wording.text_tables import TextTable

SIGNS = {
    BrickState.SAMPLING: Span("~ ", "accent"),
    BrickState.MEASURED: Span("✓ ", "good"),
    BrickState.AT_LIMIT: Span("≈ ", "warn"),
    BrickState.UNFINISHED: Span("… ", "warn"),
    BrickState.FAILED: Span("✗ ", "bad"),
}
_LEAST_LABEL = 18
_GAP = 1
# The number of standard deviations that contain 95 % of a normal distribution.
_NORMAL_95 = 1.96
_FEWEST = 6


class _Column(NamedTuple):
    title: str
    width: int


_LATENCY = _Column("ms", 8)
_WIDTH = _Column("±", 7)
_SAMPLES = _Column("runs", 5)
_SPARKLINE = _Column("samples", 12)
_LONG_SPARKLINE = _Column("samples", 36)
# The least width for the long sparkline.
_ROOMY = 110
# The most important first: the last ones are dropped when the panel is narrow.
_BY_WORTH = (_LATENCY, _WIDTH, _SPARKLINE, _SAMPLES)
_IN_ORDER = (_SPARKLINE, _LONG_SPARKLINE, _SAMPLES, _LATENCY, _WIDTH)
_TO_THE_LEFT = (_SPARKLINE, _LONG_SPARKLINE)
_COPIED = (_SAMPLES, _LATENCY, _WIDTH)


class SampleSummary(NamedTuple):
    """The median of the samples so far, and half of its interval."""

    latency_ms: float
    half_width: float | None


def summary_of(samples_ms: Sequence[float]) -> SampleSummary | None:
    """Return the median and half of its 95 % interval as a share; None for too few samples."""
    count = len(samples_ms)
    if count < _FEWEST:
        return None
    ordered = sorted(samples_ms)
    middle = ordered[count // 2]
    # The interval of a median lies between two samples, whatever their distribution.
    reach = _NORMAL_95 * math.sqrt(count) / 2
    low, high = max(0, math.floor(count / 2 - reach)), min(count - 1, math.ceil(count / 2 + reach))
    return SampleSummary(middle, (ordered[high] - ordered[low]) / 2 / middle) if middle > 0 else None


def brick_row(brick: RunBrick, width: int) -> Line:
    """Return a brick as a row."""
    sign = SIGNS[brick.state]
    label = Span(brick.label or "a brick", "strong" if brick.whole else "text")
    if brick.state is BrickState.FAILED:
        return (sign, label, Span(f"  {brick.reason}", "bad"))
    columns = _columns(width)
    name = column(label.text, width - len(sign.text) - sum(each.width + _GAP for each in columns), label.style)
    cells = [cell for each in columns for cell in (Span(" " * _GAP), _cell(brick, each))]
    return (sign, name, *cells)


def brick_heading(width: int) -> Line:
    """Return the titles of the columns."""
    columns = _columns(width)
    name = column("  brick", width - sum(each.width + _GAP for each in columns), "heading")
    titles = [
        cell
        for each in columns
        for cell in (Span(" " * _GAP), column(each.title, each.width, "heading", right=each not in _TO_THE_LEFT))
    ]
    return (name, *titles)


def _columns(width: int) -> tuple[_Column, ...]:
    room = width - 2 - _LEAST_LABEL
    kept = set[_Column]()
    for worthy in _BY_WORTH:
        each = _LONG_SPARKLINE if worthy is _SPARKLINE and width >= _ROOMY else worthy
        if each.width + _GAP <= room:
            kept.add(each)
            room -= each.width + _GAP
    return tuple(each for each in _IN_ORDER if each in kept)


def _cell(brick: RunBrick, which: _Column) -> Span:
    if which in _TO_THE_LEFT:
        return column(sparkline(brick.samples_ms, which.width), which.width, "bar")
    if which is _SAMPLES:
        return column(f"{len(brick.samples_ms)}", which.width, "muted", right=True)
    if brick.latency_ms is not None:
        found, style = SampleSummary(brick.latency_ms, brick.half_width), "text"
    else:
        provisional, style = summary_of(brick.samples_ms), "muted"
        if provisional is None:
            return column("", which.width)
        found = provisional
    text = milliseconds(found.latency_ms) if which is _LATENCY else _half_width(found)
    return column(text, which.width, style, right=True)


def _half_width(found: SampleSummary) -> str:
    """Return half of the interval as a share, or in microseconds if only that is narrow enough."""
    if found.half_width is None:
        return ""
    half_width_ms = found.half_width * found.latency_ms
    if found.half_width > WIDEST_SHARE and half_width_ms <= WIDEST_MS:
        return f"{1000 * half_width_ms:.1f} µs"
    return percent(found.half_width, 1)


def _texts_of(brick: RunBrick) -> list[str]:
    figures = (_cell(brick, each).text.strip() for each in _COPIED)
    return [brick.label or "a brick", brick.state.value, *figures, brick.reason]


_LINES_BELOW = 2
_MOST_USERS = 6


class BrickRows(TailRows, ItemRows[RunBrick]):
    """The bricks that match the search."""

    def __init__(self) -> None:
        super().__init__()
        self.say_why_empty("")

    def row(self, index: int, width: int) -> Line:
        return brick_row(self.items[index], width)

    def say_why_empty(self, now: str) -> None:
        """Show the current step of the run while there is no brick to list."""
        doing = [line(Span(f"{now[:1].upper()}{now[1:]}."))] if now else []
        self.show_placeholder(*doing, line(Span("Bricks appear here when the run measures them.", "muted")))

    def show(self, bricks: tuple[RunBrick, ...]) -> None:
        """Show the bricks and redraw only those that have changed, as drawing disturbs measurements."""
        before, self.items = self.items, bricks
        if len(before) != len(bricks):
            self.grown()
            return
        first = self.scroll_offset.y
        for index in range(first, min(first + self.size.height, len(bricks))):
            if bricks[index] is not before[index]:
                self.refresh_line(index)


class BricksPanel(Panel):
    """Samples, latency and interval of each brick, or why it failed."""

    TITLE = "Bricks"
    REACHED_BY = "run.go_to_bricks"
    SEARCH_HINT = "operator, shape, model, or: failed"
    HEADED = True
    ABOUT = (
        "~ is being sampled. ✓ is as precise as the run asks for: by default 1 % or 3 µs, and 5 % for a small part of "
        "its models. ≈ has the most samples, and they still vary too much. … was not finished when the run was "
        "stopped. ✗ failed. ± is half of the 95 % interval. The blocks are the newest samples between the least and "
        "the greatest. At the end of the list the cursor follows the run."
    )

    def __init__(self) -> None:
        self._list = BrickRows()
        super().__init__(self._list, id="run-bricks")
        self._bricks: tuple[RunBrick, ...] = ()
        self._now = ""
        self._search_text: tuple[str, ...] = ()
        self._below = TextLines(self._below_lines, classes="run-brick")
        self._described: RunBrick | None = None

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield self._below

    def heading(self, width: int) -> Line:
        return (Span(" "), *brick_heading(width - 1))

    def as_texts(self) -> TextTable:
        titles = ("brick", "state", *(each.title for each in _COPIED), "reason")
        return TextTable(titles, [_texts_of(brick) for brick in self._list.items])

    def show(self, bricks: tuple[RunBrick, ...], now: str) -> None:
        """Show the bricks; without any, show the current step of the run."""
        if not bricks and now != self._now:
            self._now = now
            self._list.say_why_empty(now)
        if bricks is not self._bricks:
            self._bricks = bricks
            self._find()

    def on_search_line_text_changed(self, event: SearchLine.TextChanged) -> None:
        here = self._list.selected
        self._search_text = tuple(event.text.casefold().split())
        self._find()
        self._list.move_to(place_of(here and here.number, [brick.number for brick in self._list.items]))

    def cursor_settled(self) -> None:
        self._describe()

    def _find(self) -> None:
        found = tuple(self._found()) if self._search_text else self._bricks
        self._list.show(found)
        of = f" of {len(self._bricks):,}" if len(found) != len(self._bricks) else ""
        self.show_title(f" {len(found):,}{of}")
        self._describe()

    def _found(self) -> Iterable[RunBrick]:
        for brick in self._bricks:
            if contains_all(f"{brick.label} {brick.state.value} {' '.join(brick.used_by)}", self._search_text):
                yield brick

    def _describe(self) -> None:
        brick = self._list.selected
        before, self._described = self._described, brick
        if brick is None or before is None or _described(brick) != _described(before):
            self._below.refresh()

    def _below_lines(self, width: int) -> tuple[Line, ...]:
        brick = self._described
        found = wrapped(_described(brick), width)[:_LINES_BELOW] if brick is not None else []
        return (*found, *[BLANK] * (_LINES_BELOW - len(found)))


def _described(brick: RunBrick) -> Line:
    users = names_of(brick.used_by, _MOST_USERS) or "no known model"
    reason = Span(f"{brick.reason}  " if brick.reason else "", "bad" if brick.state is BrickState.FAILED else "warn")
    return line(Span(f" {brick.state.value}: ", "muted"), reason, Span(f"{brick.label}, in {users}", "muted"))
