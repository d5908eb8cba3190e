"""Pictures of load in plain characters: latency against requests per second, and the latencies of a test."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dlbricks_tui.wording.numbers import PREDICTED, milliseconds
from dlbricks_tui.wording.plot import LinearAxis, LogAxis, Plot, PlotRow, ground, in_lines

# Requests per second with the latency of a percentile.
LoadPoint = tuple[float, float]

BOUND, PASSED, FAILED, RUNNING, HIGHEST = "=", "o", "x", "?", "^"
_TO_HIGHEST = ":"
_LEAST_WIDTH, _LEAST_HEIGHT = 20, 4
# The room of the vertical axis above the bound, above the least latency, and below it.
_OVER_BOUND, _OVER_LEAST, _UNDER_LEAST = 2.5, 4.0, 1.25
# No latency is shorter; logarithms have no zero.
_LEAST_MS = 1e-6
# Up to 4, up to 24, and more requests in a cell of the picture of latencies.
_FEW, _MANY, _MOST = ".", ":", "#"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTrace:
    """Latencies of a server at different rates, predicted and measured."""

    predicted: Sequence[LoadPoint] = ()
    bound_ms: float | None = None
    # The predicted highest rate within the bound.
    highest: float | None = None
    passed: Sequence[LoadPoint] = ()
    failed: Sequence[LoadPoint] = ()
    # The test in progress, with its latency so far.
    running: LoadPoint | None = None


class Picture(NamedTuple):
    """A plot with its lines above and below."""

    above: str
    rows: tuple[PlotRow, ...]
    ground: PlotRow
    below: tuple[str, ...] = ()

    @property
    def lines(self) -> list[str]:
        """All lines as text."""
        return [self.above, *(f"{row.label}{row.cells}".rstrip() for row in (*self.rows, self.ground)), *self.below]


def load_picture(trace: LoadTrace, percentile: float, width: int, height: int) -> Picture:
    """Return the latency of a percentile against requests per second; both axes begin where something is drawn."""
    tests = [*trace.passed, *trace.failed, *([trace.running] if trace.running else [])]
    least_ms = min(latency_ms for _, latency_ms in [*trace.predicted, *tests])
    most_ms = max((trace.bound_ms or 0.0) * _OVER_BOUND, least_ms * _OVER_LEAST)
    within = [rate for rate, latency_ms in trace.predicted if latency_ms <= most_ms]
    most_rate = max([*within, *(rate for rate, _ in tests), trace.highest or 0.0]) * 1.05
    legend = _legend(trace, percentile, width)
    margin = max(len(milliseconds(it)) for it in (least_ms, most_ms, trace.bound_ms or least_ms)) + 1
    across = LinearAxis(0.0, most_rate or 1.0, max(_LEAST_WIDTH, width - margin - 1))
    up = LogAxis(
        min(least_ms, trace.bound_ms or least_ms) / 1.25, most_ms, max(_LEAST_HEIGHT, height - len(legend) - 2)
    )
    plot = Plot(across, up)
    if trace.bound_ms is not None:
        plot.level(trace.bound_ms, BOUND)
    plot.curve(trace.predicted, PREDICTED)
    if trace.highest is not None:
        plot.upright(trace.highest, trace.bound_ms or most_ms, _TO_HIGHEST)
    for points, sign in ((trace.failed, FAILED), (trace.passed, PASSED)):
        for rate, latency_ms in points:
            plot.mark(rate, latency_ms, sign)
    if trace.running is not None:
        plot.mark(*trace.running, RUNNING)
    signs = {} if trace.highest is None else {trace.highest: HIGHEST}
    rows = plot.rows(_labels(up, trace.bound_ms), margin)
    return Picture(
        f"{'ms':>{margin}} against requests per second", tuple(rows), ground(across, margin, signs), tuple(legend)
    )


def latencies_picture(
    latencies_ms: Sequence[float], expected: int, bound_ms: float | None, width: int, height: int
) -> Picture:
    """Return the latencies of a test in the order of its requests; the picture fills as they are answered."""
    # Loaded here: other pictures need no numpy.
    import numpy as np

    latencies = np.maximum(np.asarray(latencies_ms, dtype=np.float64), _LEAST_MS)
    least_ms, most_ms = float(latencies.min()), float(latencies.max())
    margin = max(len(milliseconds(it)) for it in (least_ms, most_ms, bound_ms or least_ms)) + 1
    across = LinearAxis(0.0, max(expected, latencies.size, 2), max(_LEAST_WIDTH, width - margin - 1))
    up = LogAxis(least_ms / 1.1, max(most_ms, bound_ms or 0.0) * 1.1, max(_LEAST_HEIGHT, height - 2))
    plot = Plot(across, up)
    if bound_ms is not None and bound_ms > up.low:
        plot.level(bound_ms, BOUND)
    columns = np.rint(np.arange(latencies.size) * ((across.cells - 1) / across.high))
    places = np.rint(np.log(latencies / up.low) * ((up.cells - 1) / math.log(up.high / up.low)))
    cells, counts = np.unique(columns * up.cells + places, return_counts=True)
    for cell, count in zip(cells.tolist(), counts.tolist(), strict=True):
        column, row = divmod(int(cell), up.cells)
        plot.mark(across.value(column), up.value(row), _FEW if count < 5 else _MANY if count < 25 else _MOST)
    rows = plot.rows(_labels(up, bound_ms), margin)
    return Picture(f"{'ms':>{margin}} of each request", tuple(rows), ground(across, margin, {}))


def _labels(up: LogAxis, bound_ms: float | None) -> dict[int, str]:
    """Return the labels of the bound, and of rows that are not beside it."""
    labels = {} if bound_ms is None else {up.cell(bound_ms): milliseconds(bound_ms)}
    for row in range(0, up.cells, 3):
        if all(abs(row - it) > 1 for it in labels):
            labels[row] = milliseconds(up.value(row))
    return labels


def _legend(trace: LoadTrace, percentile: float, width: int) -> list[str]:
    signs = [f"{PREDICTED} predicted p{percentile:g}"] if trace.predicted else []
    signs += [] if trace.bound_ms is None else [f"{BOUND} bound {trace.bound_ms:g} ms"]
    signs += [] if trace.highest is None else [f"{HIGHEST} highest rate {milliseconds(trace.highest)}"]
    signs += [f"{PASSED} passed"] if trace.passed else []
    signs += [f"{FAILED} failed"] if trace.failed else []
    signs += [f"{RUNNING} now"] if trace.running else []
    return in_lines(signs, width, "  ")
