"""The picture of load in plain characters: latency against requests per second."""

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
# The room of the vertical axis above the bound, above the least latency, and below it; that beyond the highest rate.
_OVER_BOUND, _OVER_LEAST, _UNDER_LEAST, _BEYOND_MOST = 2.5, 4.0, 1.25, 1.05


class MeasuredRate(NamedTuple):
    """The latency of a percentile at a rate, in requests per second, and whether the test has passed."""

    rate: float
    latency_ms: float
    passed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadCurve:
    """Latencies of a server at different rates, predicted and measured."""

    predicted: Sequence[LoadPoint] = ()
    bound_ms: float | None = None
    # The predicted highest rate within the bound, and the latency of the percentile there, if it is known.
    highest: float | None = None
    highest_ms: float | None = None
    tests: Sequence[MeasuredRate] = ()
    # The test in progress, with its latency so far.
    running: LoadPoint | None = None

    @property
    def points(self) -> Sequence[LoadPoint]:
        """All points that are drawn."""
        return [*self.predicted, *((it.rate, it.latency_ms) for it in self.tests), *filter(None, [self.running])]


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


def load_picture(curve: LoadCurve, percentile: float, width: int, height: int) -> Picture:
    """Return the latency of a percentile against requests per second; both axes begin where something is drawn."""
    bound_ms, highest, tests = curve.bound_ms, curve.highest, curve.tests
    least_ms = min(latency_ms for _, latency_ms in curve.points)
    most_rate, lowest_ms, most_ms = load_ranges(curve)
    legend = _legend(curve, percentile, width)
    margin = max(len(milliseconds(it)) for it in (least_ms, most_ms, bound_ms or least_ms)) + 1
    across = LinearAxis(0.0, most_rate, max(_LEAST_WIDTH, width - margin - 1))
    up = LogAxis(lowest_ms, most_ms, max(_LEAST_HEIGHT, height - len(legend) - 2))
    plot = Plot(across, up)
    if bound_ms is not None:
        plot.level(bound_ms, BOUND)
    plot.curve(curve.predicted, PREDICTED)
    if highest is not None:
        plot.upright(highest, bound_ms or most_ms, _TO_HIGHEST)
    # Where tests are in one place, one that passed counts.
    for it in sorted(tests, key=lambda test: test.passed):
        plot.mark(it.rate, it.latency_ms, PASSED if it.passed else FAILED)
    if curve.running is not None:
        plot.mark(*curve.running, RUNNING)
    signs = {} if highest is None else {highest: HIGHEST}
    rows = plot.rows(_labels(up, bound_ms), margin)
    return Picture(
        f"{'ms':>{margin}} against requests per second", tuple(rows), ground(across, margin, signs), tuple(legend)
    )


def load_ranges(curve: LoadCurve) -> tuple[float, float, float]:
    """Return the highest rate, and the least and the longest latency that a picture of load shows."""
    least_ms = min(latency_ms for _, latency_ms in curve.points)
    most_ms = max((curve.bound_ms or 0.0) * _OVER_BOUND, least_ms * _OVER_LEAST)
    # The prediction leaves the picture at its upper edge; tests stay there.
    within = [rate for rate, latency_ms in curve.predicted if latency_ms <= most_ms]
    running = curve.running[0] if curve.running else 0.0
    most_rate = max([*within, *(it.rate for it in curve.tests), running, curve.highest or 0.0])
    return most_rate * _BEYOND_MOST or 1.0, min(least_ms, curve.bound_ms or least_ms) / _UNDER_LEAST, most_ms


def _labels(up: LogAxis, bound_ms: float | None) -> dict[int, str]:
    """Return the labels of the bound, and of rows that are not beside it."""
    labels = {} if bound_ms is None else {up.cell(bound_ms): milliseconds(bound_ms)}
    for row in range(0, up.cells, 3):
        if all(abs(row - it) > 1 for it in labels):
            labels[row] = milliseconds(up.value(row))
    return labels


def _legend(curve: LoadCurve, percentile: float, width: int) -> list[str]:
    signs = [f"{PREDICTED} predicted p{percentile:g}"] if curve.predicted else []
    signs += [] if curve.bound_ms is None else [f"{BOUND} bound {curve.bound_ms:g} ms"]
    signs += [] if curve.highest is None else [f"{HIGHEST} highest rate {PREDICTED}{milliseconds(curve.highest)}"]
    signs += [f"{PASSED} passed"] if any(it.passed for it in curve.tests) else []
    signs += [f"{FAILED} failed"] if not all(it.passed for it in curve.tests) else []
    signs += [f"{RUNNING} now"] if curve.running else []
    return in_lines(signs, width, "  ")
