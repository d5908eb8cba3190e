"""Timelines as lines: the spans that fall in each cell of a row, the axis above, and times in words."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.documents.lines import ELLIPSIS, Span, cut, width_of

if TYPE_CHECKING:
    from dlbricks_tui.traces.trace import Counter, Track

_BEGINS, _BODY = "▌", "─"
_SELECTED_BEGINS, _SELECTED_BODY = "█", "═"
# A selected span of one cell, or without cells of its own.
_SELECTED_CELL = "●"
# Cells of several spans or of a narrow one, by the share that they cover.
_SHADES = "░▒▓█"
_HEIGHTS = "▁▂▃▄▅▆▇█"
# The fewest cells of a shortened name: fewer tell nothing.
_LEAST_NAME = 4
_TICK = "|"
_UNITS = (("s", 1_000_000_000), ("ms", 1_000_000), ("µs", 1_000), ("ns", 1))


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """The part of the time axis in view: its start, and the length of a cell in whole nanoseconds."""

    start_ns: int
    cell_ns: int = 1

    @classmethod
    def fitting(cls, start_ns: int, end_ns: int, width: int) -> TimeWindow:
        """Return the narrowest window of `width` cells that shows all from the start to the end."""
        return cls(start_ns, max(1, -(-(end_ns - start_ns) // max(1, width))))

    def time(self, cell: int) -> int:
        """Return the time at which a cell begins."""
        return self.start_ns + cell * self.cell_ns

    def cell(self, time_ns: int) -> int:
        """Return the cell of a time."""
        return (time_ns - self.start_ns) // self.cell_ns

    def moved(self, cells: int) -> TimeWindow:
        """Return the window that many cells later."""
        return replace(self, start_ns=self.time(cells))

    def later(self, time_ns: int) -> TimeWindow:
        """Return the window at that much later times."""
        return replace(self, start_ns=self.start_ns + time_ns)

    def zoomed(self, cell_ns: int, time_ns: int) -> TimeWindow:
        """Return the window with other cells; a time stays in its cell."""
        cell_ns = max(1, cell_ns)
        return TimeWindow(time_ns - self.cell(time_ns) * cell_ns, cell_ns)

    def showing(self, start_ns: int, end_ns: int, width: int) -> TimeWindow:
        """Return the window moved so that a span is in view: all of it if it fits, else its start."""
        first, last = self.cell(start_ns), self.cell(max(start_ns, end_ns - 1))
        if first < 0 or last - first >= width:
            return self if 0 <= first < width else self.moved(first)
        return self if last < width else self.moved(last - width + 1)

    def within(self, start_ns: int, end_ns: int, width: int) -> TimeWindow:
        """Return the window moved so that some of a trace from the start to the end is in view."""
        half = width // 2
        first, last = start_ns - half * self.cell_ns, end_ns - half * self.cell_ns
        return replace(self, start_ns=min(max(self.start_ns, first), max(first, last)))


class CellRun(NamedTuple):
    """Neighbouring cells of a row that show the same: nothing, one span, or spans too narrow for cells of their own."""

    cells: int
    # The first of the spans, and their number; 0 for nothing.
    first: int = 0
    spans: int = 0
    # The covered share of a cell with narrow spans; None for a span with cells of its own.
    share: float | None = None
    # False if the span has begun before the window.
    begins: bool = True


class SpanTimes:
    """The starts and ends of spans in their order, for look-ups in a time that hardly grows with their number."""

    def __init__(self, starts_ns: Sequence[int], durations_ns: Sequence[int]) -> None:
        self.starts = starts_ns
        # Spans without a duration are drawn, too. Ends that do not decrease can be searched.
        shown = [start + max(1, it) for start, it in zip(starts_ns, durations_ns, strict=True)]
        self.ends = list(accumulate(shown, max))
        lengths = (max(0, end - start) for start, end in zip(starts_ns, self.ends, strict=True))
        self._covered = list(accumulate(lengths, initial=0))

    @classmethod
    def of_track(cls, track: Track) -> SpanTimes:
        return cls([it.start_ns for it in track.spans], [it.duration_ns for it in track.spans])

    @classmethod
    def of_counter(cls, counter: Counter) -> SpanTimes:
        """Return the times of the readings; each counts until the next one."""
        times = counter.times_ns
        return cls(times, [later - time for time, later in zip(times, [*times[1:], *times[-1:]], strict=True)])

    def at(self, time_ns: int) -> int | None:
        """Return the span at a time, or the nearest one; None without spans."""
        if not self.starts:
            return None
        before = max(0, bisect_right(self.starts, time_ns) - 1)
        after = min(before + 1, len(self.starts) - 1)
        is_nearer = self.starts[after] - time_ns < time_ns - self.ends[before] + 1
        return after if self.ends[before] <= time_ns and is_nearer else before

    def runs(self, window: TimeWindow, width: int) -> Iterator[CellRun]:
        """Yield what the cells of a row show, from left to right.

        A span has a part in one of them if it is narrower than a cell, or if at least a cell's time of it is in view.
        """
        cells = [self._cell(window.time(cell), window.cell_ns) for cell in range(width)]
        for shown, alike in groupby(cells):
            length = len(list(alike))
            if shown.share is not None:
                # Each cell has narrow spans of its own, or a part of the same one.
                yield from [shown] * length
            else:
                begins = not shown.spans or self.starts[shown.first] >= window.start_ns
                yield shown._replace(cells=length, begins=begins)

    def _cell(self, begin: int, cell_ns: int) -> CellRun:
        end = begin + cell_ns
        first, beyond = bisect_right(self.ends, begin), bisect_left(self.starts, end)
        if first >= beyond:
            return CellRun(1)
        if beyond - first <= 2:
            wide = [index for index in range(first, beyond) if self.ends[index] - self.starts[index] >= cell_ns]
            if len(wide) == beyond - first:
                # The cell belongs to the span that covers most of it.
                return CellRun(1, max(wide, key=lambda index: self._part(index, begin, end)), 1)
        covered = self._covered[beyond] - self._covered[first]
        covered -= max(0, begin - self.starts[first]) + max(0, self.ends[beyond - 1] - end)
        return CellRun(1, first, beyond - first, min(1.0, max(0.0, covered / cell_ns)))

    def _part(self, index: int, begin: int, end: int) -> int:
        return min(end, self.ends[index]) - max(begin, self.starts[index])


# Neighbouring spans differ.
USUAL: tuple[str, str] = ("accent", "text")
_SELECTED = "match"


def span_row(
    runs: Iterator[CellRun], name: Callable[[int], str], selected: int | None = None, styles: tuple[str, str] = USUAL
) -> Iterator[Span]:
    """Yield a row of spans with the names that have room; spans with cells of their own have one of two styles."""
    shown = list(runs)
    has_cells = any(run.spans and run.share is None and run.first == selected for run in shown)
    for run in shown:
        is_selected = selected is not None and run.first <= selected < run.first + run.spans
        if not run.spans:
            yield Span(" " * run.cells)
        elif run.share is None:
            style = _SELECTED if is_selected else styles[run.first % 2]
            yield Span(_bar(run, name(run.first), is_selected), style)
        elif is_selected and not has_cells:
            yield Span(_SELECTED_CELL, _SELECTED)
        else:
            shade = _SHADES[min(int(run.share * len(_SHADES)), len(_SHADES) - 1)]
            yield Span(shade, "bar")


def _bar(run: CellRun, name: str, is_selected: bool) -> str:
    if is_selected and run.cells == 1:
        # A full block would look like narrow spans that cover the cell.
        return _SELECTED_CELL
    begin, body = (_SELECTED_BEGINS, _SELECTED_BODY) if is_selected else (_BEGINS, _BODY)
    begin, room = (begin if run.begins else body), run.cells - 1
    shown = cut(name, room)
    if room < _LEAST_NAME and shown.endswith(ELLIPSIS):
        shown = ""
    # A blank keeps the name apart from the rest.
    rest = room - width_of([Span(shown)])
    return begin + shown + (f" {body * (rest - 1)}" if rest and shown else body * rest)


def counter_row(
    counter: Counter, times: SpanTimes, window: TimeWindow, width: int, selected: int | None = None
) -> Iterator[Span]:
    """Yield the readings of a counter as heights between the least and the greatest value in view."""
    before = bisect_right(times.starts, window.start_ns) - 1
    values = counter.values[max(0, before) : bisect_left(times.starts, window.time(width))]
    least, most = min(values, default=0.0), max(values, default=0.0)
    span = most - least or 1.0
    cells = []
    for cell in range(width):
        # The last reading in a cell counts; a reading counts until the next one.
        place = bisect_left(times.starts, window.time(cell + 1)) - 1
        if place < 0 or (place == len(times.starts) - 1 and times.ends[place] <= window.time(cell)):
            cells.append(Span(" "))
        else:
            height = _HEIGHTS[round((counter.values[place] - least) / span * (len(_HEIGHTS) - 1))]
            cells.append(Span(height, _SELECTED if place == selected else USUAL[0]))
    for style, alike in groupby(cells, lambda it: it.style):
        yield Span("".join(it.text for it in alike), style)


class TimeAxis(NamedTuple):
    """The axis above a timeline: its unit, and its cells."""

    unit: str
    cells: str


def axis(window: TimeWindow, width: int) -> TimeAxis:
    """Return the axis of a window, with as many labelled times as have room."""
    longest = max(abs(window.start_ns), abs(window.time(width)))
    unit, unit_ns = next((it for it in _UNITS if longest >= it[1]), _UNITS[-1])
    step_ns = next(it for it in _steps() if it >= window.cell_ns * (2 + _longest_label(window, width, unit_ns, it)))
    cells = [" "] * width
    first = -(-window.start_ns // step_ns) * step_ns
    for time_ns in range(first, window.time(width), step_ns):
        text, place = f"{_TICK}{_label(time_ns, unit_ns, step_ns)}", window.cell(time_ns)
        if place + len(text) <= width:
            cells[place : place + len(text)] = text
    return TimeAxis(unit, "".join(cells))


def _steps() -> Iterator[int]:
    power = 1
    while True:
        yield from (power, 2 * power, 5 * power)
        power *= 10


def _longest_label(window: TimeWindow, width: int, unit_ns: int, step_ns: int) -> int:
    return max(len(_label(it, unit_ns, step_ns)) for it in (window.start_ns, window.time(width)))


def _label(time_ns: int, unit_ns: int, step_ns: int) -> str:
    """Return a time in a unit, with the decimals that tell steps apart."""
    decimals = next(it for it in range(10) if step_ns * 10**it >= unit_ns)
    return f"{time_ns / unit_ns:.{decimals}f}"


def span_time(time_ns: float) -> str:
    """Return a time with four digits in the unit that suits it: `870 ns`, `12.34 µs`, `3.412 ms`, `1.500 s`."""
    unit, unit_ns = next((it for it in _UNITS if abs(time_ns) >= it[1]), _UNITS[-1])
    value = time_ns / unit_ns
    if unit == "ns":
        return f"{value:.0f} {unit}"
    decimals = next((it for it, limit in enumerate((1000, 100, 10)) if abs(value) >= limit), 3)
    return f"{value:.{decimals}f} {unit}"
