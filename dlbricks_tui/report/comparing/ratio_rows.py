"""The picture of ratios: a row for each model or brick, with a mark and an interval for each series."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from dlbricks_tui.documents.pictures import Axis, BarRow, LegendSign, Rows, round_ticks
from dlbricks_tui.printable import printable
from dlbricks_tui.report.figures.executions import marked, thin_line

_LONGEST_LABEL = 37
_ROOM = 0.04
# Beyond this ratio the axis is logarithmic.
_MOST_LINEAR = 1.8
# Intervals may be much wider than the changes, which have to stay visible: a share of the range of the ratios.
_MOST_BEYOND = 0.3
_LEAST_CHANGE = 0.01
_MOST_TICKS = 6
# Smaller ratios are shown as fractions.
_LEAST_DECIMAL = 0.2


class DrawnRatio(NamedTuple):
    """A ratio with its 95 % interval, and the series that it belongs to."""

    series: LegendSign
    value: float
    low: float
    high: float


def ratio_rows(axis: str, says: str, labels: Sequence[str], ratios: Sequence[Sequence[DrawnRatio]]) -> Rows:
    """Return the ratios of each label, with a line at one."""
    low, high = ratios_shown([it for held in ratios for it in held])
    rows = [
        BarRow(
            label,
            tuple(thin_line(it.low, it.high, it.series.style) for it in held),
            tuple(marked(it.series, it.value) for it in held),
        )
        for label, held in zip(labels, ratios, strict=True)
    ]
    legend = tuple(dict.fromkeys(it.series for held in ratios for it in held))
    return Rows(axis, says, ratio_axis(low, high), tuple(rows), legend, 1.0)


def ratios_shown(ratios: Sequence[DrawnRatio]) -> tuple[float, float]:
    """Return the least and the largest ratio of the axis, in which one and all ratios lie."""
    logs = [0.0, *(math.log(it.value) for it in ratios if it.value > 0)]
    least, largest = min(logs), max(logs)
    reach = max(math.log1p(_LEAST_CHANGE), _MOST_BEYOND * (largest - least))
    lows = [math.log(it.low) if it.low > 0 else -math.inf for it in ratios]
    highs = [math.log(it.high) if it.high > 0 else math.inf for it in ratios]
    least = max(least - reach, min([least, *lows]))
    largest = min(largest + reach, max([largest, *highs]))
    room = max(math.log1p(_LEAST_CHANGE), _ROOM * (largest - least))
    return math.exp(least - room), math.exp(largest + room)


def ratio_axis(low: float, high: float) -> Axis:
    """Return an axis of changes in percent; one of powers of two where they are large."""
    if low >= 1 / _MOST_LINEAR and high <= _MOST_LINEAR:
        ticks = round_ticks(Axis(100 * (low - 1.0), 100 * (high - 1.0)), _MOST_TICKS)
        return Axis(low, high, ticks=tuple((1.0 + value / 100, f"{value + 0.0:+g} %") for value, _ in ticks))
    begin, end = math.ceil(math.log2(low)), math.floor(math.log2(high))
    powers = range(begin, end + 1, max(1, -(-(end - begin) // _MOST_TICKS)))
    return Axis(low, high, is_log=True, ticks=tuple((2.0**it, _times(2.0**it)) for it in powers))


def row_labels(named: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """Return labels that fit: names, and the circumstances that tell rows apart, which are kept."""
    common = set[str]().union(*(told for _, told in named)).intersection(*(told for _, told in named))
    return [_label(printable(name), " ".join(it for it in told if it not in common)) for name, told in named]


def _label(name: str, beside: str) -> str:
    room = _LONGEST_LABEL - (len(beside) + 2 if beside else 0)
    short = name if len(name) <= room else f"{name[: max(8, room) - 1]}…"
    return f"{short}, {beside}"[:_LONGEST_LABEL] if beside else short


def _times(ratio: float) -> str:
    return f"{ratio:g}x" if ratio >= _LEAST_DECIMAL else f"1/{1 / ratio:g}x"
