"""The picture of ratios: a row for each model or brick, with a dot and an interval for each series."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dlbricks_tui.printable import printable
from dlbricks_tui.report import drawing
from dlbricks_tui.report.drawing import Ink
from dlbricks_tui.report.figures.rows import WIDTH, draw_bars, draw_marks, mark, row_axes, rows_height

_LONGEST_LABEL = 37
_LINE = 0.09
_ROOM = 0.04
# Beyond this ratio the axis is logarithmic.
_MOST_LINEAR = 1.8
# Intervals may be much wider than the changes, which have to stay visible: a share of the range of the dots.
_MOST_BEYOND = 0.3
_LEAST_CHANGE = 0.01
_MOST_TICKS = 6
# Smaller ratios are shown as fractions.
_LEAST_DECIMAL = 0.2


@dataclass(frozen=True, slots=True)
class Dot:
    """A ratio with its 95 % interval, in a row."""

    # Dots of several series in a row are a little above and below its middle.
    row: float
    ratio: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class DotSeries:
    """Dots with one mark."""

    title: str
    ink: Ink
    shape: str
    dots: tuple[Dot, ...]
    hollow: bool = False


def label_in_rows(text: str, beside: str = "") -> str:
    """Return a label that fits; what stands beside the name is kept."""
    room = _LONGEST_LABEL - (len(beside) + 2 if beside else 0)
    name = printable(text)
    short = name if len(name) <= room else f"{name[: max(8, room) - 1]}…"
    return f"{short}, {beside}"[:_LONGEST_LABEL] if beside else short


def picture(name: str, title: str, about: str, labels: Sequence[str], series: Sequence[DotSeries], axis: str) -> str:
    """Draw the picture, with a line at the ratio of one."""
    shown = [it for it in series if it.dots]
    low, high = ratios_shown([dot for it in shown for dot in it.dots])
    is_logarithmic = high > _MOST_LINEAR or low < 1 / _MOST_LINEAR

    def paint() -> Figure:
        legend = [mark(it.title, it.ink, it.shape, it.hollow) for it in shown]
        figure = drawing.canvas(WIDTH, rows_height(len(labels), legend))
        axes = row_axes(figure, labels, axis, legend)
        if is_logarithmic:
            axes.set_xscale("log", base=2)
        axes.set_xlim(low, high)
        axes.xaxis.set_major_formatter(_times if is_logarithmic else _change)
        if is_logarithmic:
            axes.set_xticks(ticks_of(low, high))
            axes.minorticks_off()
        axes.axvline(1.0, color=Ink.MUTED.light, linewidth=0.9, zorder=1)
        for it in shown:
            _draw(axes, it, low, high)
        return figure

    return drawing.draw(name, title, about, paint)


def _draw(axes: Axes, series: DotSeries, low: float, high: float) -> None:
    bars = [(it.row, max(low, it.low), min(high, it.high)) for it in series.dots]
    draw_bars(axes, bars, _LINE, series.ink)
    inside = [(it.row, it.ratio) for it in series.dots if low <= it.ratio <= high]
    draw_marks(axes, inside, series.ink, series.shape, 4.0, hollow=series.hollow)


def ratios_shown(dots: Sequence[Dot]) -> tuple[float, float]:
    """Return the least and the largest ratio of the axis, in which one and all dots lie."""
    logs = [0.0, *(math.log(it.ratio) for it in dots if it.ratio > 0)]
    least, largest = min(logs), max(logs)
    reach = max(math.log1p(_LEAST_CHANGE), _MOST_BEYOND * (largest - least))
    lows = [math.log(it.low) if it.low > 0 else -math.inf for it in dots]
    highs = [math.log(it.high) if it.high > 0 else math.inf for it in dots]
    least = max(least - reach, min([least, *lows]))
    largest = min(largest + reach, max([largest, *highs]))
    room = max(math.log1p(_LEAST_CHANGE), _ROOM * (largest - least))
    return math.exp(least - room), math.exp(largest + room)


def ticks_of(low: float, high: float) -> list[float]:
    """Return powers of two on the axis; each is the same number of times the one before."""
    begin, end = math.ceil(math.log2(low)), math.floor(math.log2(high))
    step = max(1, -(-(end - begin) // _MOST_TICKS))
    return [2.0**it for it in range(begin, end + 1, step)]


def _times(value: float, _: float) -> str:
    return f"{value:g}x" if value >= _LEAST_DECIMAL else f"1/{1 / value:g}x"


def _change(value: float, _: float) -> str:
    return f"{round(100 * (value - 1), 1) + 0.0:+g} %"
