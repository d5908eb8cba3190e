"""Pictures as data, and as lines of text with named styles, which plotext draws for both terminals."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from dlbricks_tui.documents.lines import Line, Span, cut, width_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


# The styles of texts and signs; a theme gives them their colours.
STYLES = ("text", "strong", "muted", "accent", "good", "warn", "bad", "bar", "rest", "mark", "match", "heading")
# The steps of round numbers within a power of ten.
_ROUND_STEPS = (1.0, 2.0, 5.0)


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis with its range; a logarithmic one begins above zero.

    Without ticks of its own it gets round numbers.
    """

    low: float
    high: float
    is_log: bool = False
    ticks: tuple[tuple[float, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Series:
    """Points with one mark. The marks of a picture differ, so that colours only help.

    `line` is the character of the line between the points; empty without a line. A filled one reaches the ground.
    """

    name: str
    mark: str
    style: str
    points: tuple[tuple[float, float], ...]
    line: str = ""
    filled: bool = False


@dataclass(frozen=True, slots=True)
class StraightLine:
    """A value that is a straight line through the whole picture, such as a bound."""

    name: str
    value: float
    style: str = "warn"


@dataclass(frozen=True, slots=True)
class Plot:
    """Series over two axes. Later series cover earlier ones."""

    title: str
    says: str
    across: Axis
    up: Axis
    series: tuple[Series, ...]
    # Horizontal and vertical lines.
    levels: tuple[StraightLine, ...] = ()
    uprights: tuple[StraightLine, ...] = ()
    # What the signs mean that no series stands for.
    legend: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a bar. `mark` fills it where colours are few, `block` where there are many."""

    low: float
    high: float
    mark: str
    block: str
    style: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A sign at a value."""

    value: float
    sign: str
    style: str


@dataclass(frozen=True, slots=True)
class BarRow:
    """A name with its bar, the marks on it, and a text behind it."""

    name: str
    pieces: tuple[Piece, ...] = ()
    marks: tuple[Mark, ...] = ()
    text: str = ""
    style: str = "text"


@dataclass(frozen=True, slots=True)
class LegendSign:
    """A sign of a legend; `block` stands for it where there are many colours."""

    mark: str
    name: str
    style: str
    block: str = ""

    def piece(self, low: float, high: float, style: str = "") -> Piece:
        """Return a part of a bar with this sign."""
        return Piece(low, high, self.mark, self.block, style or self.style)


@dataclass(frozen=True, slots=True)
class Rows:
    """Bars and marks in rows over a horizontal axis, the first row at the top."""

    title: str
    says: str
    across: Axis
    rows: tuple[BarRow, ...]
    legend: tuple[LegendSign, ...] = ()
    # A vertical line, such as zero.
    upright: float | None = field(default=None)


Picture = Plot | Rows


def round_ticks(axis: Axis, most: int) -> tuple[tuple[float, str], ...]:
    """Return at most about so many round numbers on an axis with their texts; its own ticks where it has some."""
    if axis.ticks:
        return axis.ticks
    found: list[float] = []
    for steps in ([_ROUND_STEPS, (1.0, 3.0), (1.0,)]) if axis.is_log else ():
        powers = range(math.floor(math.log10(axis.low)), math.ceil(math.log10(axis.high)) + 1)
        found = [10.0**power * each for power in powers for each in steps]
        found = [it for it in found if axis.low * (1 - 1e-9) <= it <= axis.high * (1 + 1e-9)]
        if len(found) <= most:
            break
    if len(found) > 1:
        every = math.ceil(len(found) / max(1, most))
        return tuple((it, number_text(it)) for it in found[::every])
    # Also on a logarithmic axis of less than a power of ten: round numbers at equal distances.
    span = axis.high - axis.low
    least = span / max(1, most)
    power = 10.0 ** math.floor(math.log10(least)) if least > 0 else 1.0
    step = next(power * each for each in (*_ROUND_STEPS, 10.0) if power * each >= least * (1 - 1e-9))
    first, last = math.ceil(axis.low / step - 1e-9), math.floor(axis.high / step + 1e-9)
    ticks = (place * step for place in range(first, last + 1))
    return tuple((it, number_text(it)) for it in ticks if it >= axis.low or math.isclose(it, axis.low))


def number_text(value: float) -> str:
    """Return a round number in few characters."""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.6g}"


# Smaller areas show the sentence alone.
LEAST_WIDTH, LEAST_HEIGHT = 30, 4
# plotext knows colours by number; the numbers stand for styles.
_COLOURS = {style: number for number, style in enumerate(STYLES, start=16)}
_STYLES = {number: style for style, number in _COLOURS.items()}
_CODES = re.compile(r"\x1b\[([0-9;]*)m")
# Lines of points of braille are finer than characters.
_FINE_FILL = "█"
_FINE, _FINE_LINE = "braille", "⠒"
# The cells and rows for each number on an axis.
_CELLS_OF_TICK, _ROWS_OF_TICK = 10, 3
# The axis with its numbers.
_BELOW = 2
_THICKEST_BAR = 3
_WIDEST_NAME = 0.45
_BETWEEN = "   "


def drawn(picture: Picture, width: int, height: int, *, fine: bool, beside: Plot | None = None) -> tuple[Line, ...]:
    """Return the lines of a picture without its sentence, or of a plot beside another one with the same series.

    `fine` uses blocks and points of braille; without it all signs differ by their characters. Two plots have `height`
    lines, and below them all lines of one legend.
    """
    if isinstance(picture, Plot) and beside is not None:
        half = (width - len(_BETWEEN)) // 2
        lefts, rights = (
            [(Span(cut(plot.title, half), "heading"),), *_plot_lines(plot, half, height - 1, fine)]
            for plot in (picture, beside)
        )
        gaps = [Span(" " * (half - width_of(spans)) + _BETWEEN) for spans in lefts]
        lines = [(*spans, gap, *others) for spans, gap, others in zip(lefts, gaps, rights, strict=True)]
        return (*lines, *_filled((), _meanings(picture), width, fine))
    if isinstance(picture, Plot):
        head = _heads(picture.title, [*_meanings(picture)], width, height, fine)
        return (*head, *_plot_lines(picture, width, height - len(head), fine))
    head = _heads(picture.title, list(picture.legend), width, height, fine)
    fitting = max(1, height - len(head) - _BELOW)
    if fitting < len(picture.rows):
        picture = replace(picture, title=f"{picture.title}, {fitting} of {len(picture.rows)}")
        head = _heads(picture.title, list(picture.legend), width, height, fine)
    return (*head, *_rows_lines(picture, width, height - len(head), fine))


def _meanings(plot: Plot) -> Iterator[LegendSign]:
    for each in plot.series:
        if each.name:
            yield LegendSign(each.mark, each.name, each.style, _FINE_LINE if each.mark == each.line else "")
    for level in (*plot.levels, *plot.uprights):
        if level.name:
            yield LegendSign("─" if level in plot.levels else "│", level.name, level.style)
    for text in plot.legend:
        yield LegendSign("", text, "muted")


def _heads(title: str, meanings: Sequence[LegendSign], width: int, height: int, fine: bool) -> list[Line]:
    """Return the title with the legend behind it, in as few lines as they need and at most a third of all."""
    return _filled((Span(cut(title, width), "heading"),), meanings, width, fine)[: max(1, height // 3)]


def _filled(first: Line, meanings: Iterable[LegendSign], width: int, fine: bool) -> list[Line]:
    """Return the meanings of signs behind what begins the first line, in as few lines as they need."""
    lines = [list(first)]
    for it in meanings:
        sign = it.block if fine and it.block else it.mark
        spans = [*([Span(sign, it.style), Span(" ")] if sign else []), Span(it.name, "muted")]
        between = [Span(_BETWEEN)] if lines[-1] else []
        if width_of([*lines[-1], *between, *spans]) <= width or not lines[-1]:
            lines[-1] += [*between, *spans]
        else:
            lines.append(spans)
    return [tuple(spans) for spans in lines]


def _figure(width: int, height: int) -> Any:
    """Return plotext with an empty figure of this size."""
    import plotext

    plotext.clear_figure()
    plotext.limit_size(False, False)
    plotext.plot_size(width, height)
    plotext.theme("clear")
    plotext.ticks_color(_COLOURS["muted"])
    plotext.xaxes(True, False)
    plotext.yaxes(True, False)
    return plotext


def _plot_lines(plot: Plot, width: int, height: int, fine: bool) -> tuple[Line, ...]:
    figure = _figure(width, height)
    figure.xlim(_place(plot.across.low, plot.across), _place(plot.across.high, plot.across))
    figure.ylim(_place(plot.up.low, plot.up), _place(plot.up.high, plot.up))
    figure.xticks(*_ticks(plot.across, width // _CELLS_OF_TICK))
    rows = max(1, height - _BELOW)
    figure.yticks(*_ticks(plot.up, max(2, rows // _ROWS_OF_TICK), rows))
    for level in plot.levels:
        figure.hline(_place(level.value, plot.up), color=_COLOURS[level.style])
    for upright in plot.uprights:
        figure.vline(_place(upright.value, plot.across), color=_COLOURS[upright.style])
    # Marks cover the lines of all series.
    for each in plot.series:
        if each.line and len(each.points) > 1:
            fine_marker = _FINE_FILL if each.filled else _FINE
            marker, colour = fine_marker if fine else each.line, _COLOURS[each.style]
            figure.plot(*_coordinates(each, plot), marker=marker, color=colour, fillx=each.filled)
    for each in plot.series:
        if each.mark.strip() and each.points and each.mark != each.line:
            figure.scatter(*_coordinates(each, plot), marker=each.mark, color=_COLOURS[each.style])
    if not plot.series:
        # plotext draws no axes without data.
        figure.scatter([_place(plot.across.low, plot.across)], [_place(plot.up.low, plot.up)], marker=" ")
    return _as_lines(figure.build(), width)


def _coordinates(series: Series, plot: Plot) -> tuple[list[float], list[float]]:
    return [_place(x, plot.across) for x, _ in series.points], [_place(y, plot.up) for _, y in series.points]


def _place(value: float, axis: Axis) -> float:
    """Return the place of a value on its axis; values beyond an end are at that end.

    The logarithm is taken here, as plotext takes that of points but not that of the ends of an axis.
    """
    value = min(max(value, axis.low), axis.high)
    return math.log10(value) if axis.is_log else value


def _ticks(axis: Axis, most: int, cells: int = 0) -> tuple[list[float], list[str]]:
    """Return the places of ticks and their texts: one in each cell, as plotext draws any of several there."""
    low, high = _place(axis.low, axis), _place(axis.high, axis)
    kept: dict[float, tuple[float, str]] = {}
    for value, text in round_ticks(axis, most):
        place = _place(value, axis)
        cell = round((place - low) / ((high - low) or 1.0) * (cells - 1)) if cells else place
        kept.setdefault(cell, (place, text))
    return [place for place, _ in kept.values()], [text for _, text in kept.values()]


def _rows_lines(picture: Rows, width: int, height: int, fine: bool) -> tuple[Line, ...]:
    canvas = max(1, height - _BELOW)
    rows = picture.rows[:canvas]
    if not rows:
        return ()
    # Bars of an odd number of rows have their names in the middle.
    thick = _THICKEST_BAR if len(rows) * (_THICKEST_BAR + 1) - 1 <= canvas else 1
    step = thick + (1 if len(rows) * (thick + 1) - 1 <= canvas else 0)
    canvas = len(rows) * step - (step - thick)
    names = [cut(row.name, int(width * _WIDEST_NAME)) for row in rows]
    longest = max(len(row.text) for row in rows)
    room = max(4, width - max(map(len, names)) - 2)
    # The texts stand behind the longest bar.
    axis = picture.across
    beyond = axis.high + (axis.high - axis.low) * (longest + 2) / max(1, room - longest - 2) if longest else axis.high
    figure = _figure(width, canvas + _BELOW)
    figure.xlim(axis.low, beyond)
    figure.ylim(0, max(1, canvas - 1))
    figure.xticks(*_ticks(axis, max(2, (room - longest) // _CELLS_OF_TICK)))
    middles = [canvas - 1 - place * step - thick // 2 for place in range(len(rows))]
    figure.yticks(middles, [f"{name} " for name in names])
    if picture.upright is not None:
        figure.vline(picture.upright, color=_COLOURS["muted"])
    # An empty series, as plotext draws no axes without data.
    figure.scatter([axis.low], [0], marker=" ")
    for row, middle in zip(rows, middles, strict=True):
        for piece in row.pieces:
            ends = [_place(piece.low, axis), _place(piece.high, axis)]
            marker, beyond_middle = piece.block if fine else piece.mark, 0 if piece.block == "─" else thick // 2
            for place in range(middle - beyond_middle, middle + beyond_middle + 1):
                figure.plot(ends, [place, place], marker=marker, color=_COLOURS[piece.style])
        for mark in row.marks:
            figure.scatter([_place(mark.value, axis)], [middle], marker=mark.sign, color=_COLOURS[mark.style])
        if row.text:
            behind = axis.high + (beyond - axis.low) / max(1, room - 1)
            figure.text(f" {row.text}", behind, middle, color=_COLOURS[row.style], alignment="left")
    return _as_lines(figure.build(), width)


def _as_lines(text: str, width: int) -> tuple[Line, ...]:
    """Return the lines of a figure with its colours as styles."""
    found = []
    style = "muted"
    for row in text.rstrip("\n").split("\n"):
        spans, end = [], 0
        for code in _CODES.finditer(row):
            if code.start() > end:
                spans.append(Span(row[end : code.start()], style))
            start, _, number = code.group(1).rpartition(";")
            is_ours = number.isdigit() and start.startswith("38;5")
            style, end = _STYLES.get(int(number), "muted") if is_ours else "muted", code.end()
        if end < len(row):
            spans.append(Span(row[end:], style))
        found.append(tuple(spans))
    return tuple(found)
