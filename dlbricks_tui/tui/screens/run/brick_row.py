"""The bricks of a run as rows."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from dlbricks_tui.estimate.intervals import WIDEST_MS, WIDEST_SHARE
from dlbricks_tui.tui.lines import Line, Span, column
from dlbricks_tui.tui.live.snapshot import RunBrick, Standing
from dlbricks_tui.tui.sparkline import sparkline
from dlbricks_tui.wording.numbers import milliseconds, percent

SIGNS = {
    Standing.ON_BENCH: Span("~ ", "accent"),
    Standing.MEASURED: Span("✓ ", "good"),
    Standing.AT_LIMIT: Span("≈ ", "warn"),
    Standing.UNFINISHED: Span("… ", "warn"),
    Standing.FAILED: Span("✗ ", "bad"),
}
_LEAST_LABEL = 18
_GAP = 1
# 95 % of all samples lie within so many standard deviations.
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
# From so many cells on there is room for the long one.
_ROOMY = 110
# The first ones are the last to go when there is no room.
_BY_WORTH = (_LATENCY, _WIDTH, _SPARKLINE, _SAMPLES)
_IN_ORDER = (_SPARKLINE, _LONG_SPARKLINE, _SAMPLES, _LATENCY, _WIDTH)
_TO_THE_LEFT = (_SPARKLINE, _LONG_SPARKLINE)


class Reading(NamedTuple):
    """What the samples so far say."""

    latency_ms: float
    half_width: float | None


def reading_of(samples_ms: Sequence[float]) -> Reading | None:
    """The median of some samples and half of its 95 % interval, as a share; None of too few."""
    count = len(samples_ms)
    if count < _FEWEST:
        return None
    ordered = sorted(samples_ms)
    middle = ordered[count // 2]
    # The interval of a median runs between two samples, whatever their distribution.
    reach = _NORMAL_95 * math.sqrt(count) / 2
    low, high = max(0, math.floor(count / 2 - reach)), min(count - 1, math.ceil(count / 2 + reach))
    return Reading(middle, (ordered[high] - ordered[low]) / 2 / middle) if middle > 0 else None


def row(brick: RunBrick, width: int) -> Line:
    """A brick in so many cells."""
    sign = SIGNS[brick.standing]
    label = Span(brick.label or "a brick", "strong" if brick.whole else "text")
    if brick.standing is Standing.FAILED:
        return (sign, label, Span(f"  {brick.reason}", "bad"))
    columns = _columns(width)
    name = column(label.text, width - len(sign.text) - sum(each.width + _GAP for each in columns), label.style)
    cells = [cell for each in columns for cell in (Span(" " * _GAP), _cell(brick, each))]
    return (sign, name, *cells)


def heading(width: int) -> Line:
    """What the columns of `row` are called."""
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
        found, style = Reading(brick.latency_ms, brick.half_width), "text"
    else:
        provisional, style = reading_of(brick.samples_ms), "muted"
        if provisional is None:
            return column("", which.width)
        found = provisional
    text = milliseconds(found.latency_ms) if which is _LATENCY else _half_width(found)
    return column(text, which.width, style, right=True)


def _half_width(found: Reading) -> str:
    """Half of the interval: as a share, or in microseconds if that is what makes it narrow enough."""
    if found.half_width is None:
        return ""
    half_width_ms = found.half_width * found.latency_ms
    if found.half_width > WIDEST_SHARE and half_width_ms <= WIDEST_MS:
        return f"{1000 * half_width_ms:.1f} µs"
    return percent(found.half_width, 1)
