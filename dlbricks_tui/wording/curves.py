"""A model in several variants as a table and charts of plain characters."""

from collections.abc import Sequence

from dlbricks_tui.estimate.curve import Point, best_within, per_second, scaling_efficiency
from dlbricks_tui.runtime.variant import (
    Kernels,
    Precision,
    batch_in_words,
    kernels_in_words,
    remarks_on,
    threads_in_words,
)
from dlbricks_tui.wording.chart import beside, chart
from dlbricks_tui.wording.engine import engine_remarks
from dlbricks_tui.wording.numbers import PREDICTED, PREDICTED_LEGEND, in_ms, milliseconds, percent
from dlbricks_tui.wording.tables import Column, Table, or_dash

# Wider charts say no more.
WIDEST_CURVE = 100
_CHART_LINES, _LOWEST_CHART = 7, 3
# The blank line, the titles, the ground, the values and the legend of the charts.
_LINES_AROUND = 5
_NARROWEST = 40
# Marks of the estimates of several series; measured latencies have the same letters as capitals.
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_ESTIMATED, _MEASURED = "o", "x"


def curve_lines(
    points: Sequence[Point], width: int, bound_ms: float | None = None, most_lines: int | None = None
) -> list[str]:
    """Return the table of all variants, the charts of latency and throughput, and the best variant under a bound.

    The charts are lower if all would be more than `most_lines`.
    """
    found = _table(points, width)
    if any(it.found.estimate.coverage.predicted for it in points):
        found.append(PREDICTED_LEGEND)
    found += remarks_on(it.precision for it in points)
    found += engine_remarks(it.found for it in points)
    best = [] if bound_ms is None else ["", best_line(points, bound_ms)]
    height = _CHART_LINES
    if most_lines is not None:
        height = min(height, max(_LOWEST_CHART, most_lines - len(found) - len(best) - _LINES_AROUND))
    if drawn := _charts(points, width, bound_ms, height):
        found += ["", *drawn]
    return [*found, *best]


def best_line(points: Sequence[Point], bound_ms: float) -> str:
    """Return the variant with the highest throughput under a bound as a sentence."""
    best = best_within(points, bound_ms)
    if best is None or best.latency_ms is None:
        quickest = min((it for it in points if it.latency_ms), key=lambda it: it.latency_ms or 0.0, default=None)
        if quickest is None:
            return f"nothing is known about latencies under {bound_ms:g} ms"
        return f"none stays under {bound_ms:g} ms; the quickest is {_name(quickest, points)}, {_figures(quickest)}"
    high_ms = best.found.estimate.composed.interval.high_ms if best.found.estimate.composed else best.latency_ms
    doubt = f", but its interval reaches {in_ms(high_ms)}" if high_ms > bound_ms else ""
    return f"best under {bound_ms:g} ms: {_name(best, points)}, {_figures(best)}{doubt}"


def _figures(point: Point) -> str:
    return f"{_sign(point)}{in_ms(point.latency_ms or 0.0)}, {milliseconds(point.per_second or 0.0)} per second"


def _sign(point: Point) -> str:
    """Return the mark of predictions, if the estimate has any."""
    return PREDICTED if point.estimate_ms is not None and point.found.estimate.coverage.predicted else ""


def _name(point: Point, points: Sequence[Point]) -> str:
    words = [batch_in_words(point.batch_size)]
    words += [threads_in_words(point.threads)] if len({it.threads for it in points}) > 1 else []
    words += [point.precision.value] if len({it.precision for it in points}) > 1 else []
    words += kernels_in_words(point.kernels) if len({it.kernels for it in points}) > 1 else ()
    words += [point.runtime] if len({it.runtime for it in points}) > 1 else []
    return ", ".join(words)


def _table(points: Sequence[Point], width: int) -> list[str]:
    """Return a row for each variant, with a column for everything that varies."""
    several_runtimes = len({it.runtime for it in points}) > 1
    several_threads = len({it.threads for it in points}) > 1
    several_precisions = len({it.precision for it in points}) > 1
    several_instructions = len({it.kernels.instructions for it in points}) > 1
    several_optimisations = len({it.kernels.optimisation for it in points}) > 1
    runtimes: Column[Point] = Column("RUNTIME", lambda it: it.runtime or "usual", holds_names=True)
    threads: Column[Point] = Column("THREADS", lambda it: "default" if it.threads is None else str(it.threads))
    precisions: Column[Point] = Column("PRECISION", lambda it: it.precision.value)
    instructions: Column[Point] = Column("INSTRUCTIONS", lambda it: it.kernels.instructions.value)
    optimisations: Column[Point] = Column("OPTIMISATION", lambda it: it.kernels.optimisation.value)
    batches: Column[Point] = Column("BATCH", lambda it: str(it.batch_size))
    efficiency: Column[Point] = Column("EFFICIENCY", lambda it: or_dash(percent, scaling_efficiency(it, points)))
    return Table(
        [
            *([runtimes] * several_runtimes + [precisions] * several_precisions),
            *([instructions] * several_instructions + [optimisations] * several_optimisations),
            *[threads] * several_threads,
            batches,
        ],
        [
            Column("ESTIMATE", lambda it: _sign(it) + or_dash(in_ms, it.estimate_ms)),
            Column("95 %", _interval),
            Column("MEASURED", lambda it: or_dash(in_ms, it.measured_ms)),
            Column("PER SECOND", lambda it: _sign(it) + or_dash(milliseconds, it.per_second)),
            *[efficiency] * several_threads,
        ],
        lambda it: it if it.latency_ms is None else None,
    ).lines(points, width)


def _interval(point: Point) -> str:
    composed = point.found.estimate.composed
    if composed is None or point.estimate_ms is None:
        return "-"
    return f"{milliseconds(composed.interval.low_ms)} to {milliseconds(composed.interval.high_ms)}"


def _charts(points: Sequence[Point], width: int, bound_ms: float | None, height: int) -> list[str]:
    """Return the latency and the throughput against batch sizes, or against threads at a single batch size."""
    by_batch = len({it.batch_size for it in points}) > 1
    if not by_batch and len({it.threads for it in points if it.threads}) < 2:
        return []
    axis = sorted({it.batch_size if by_batch else it.threads or 0 for it in points if by_batch or it.threads})
    series: dict[tuple[str, Precision, Kernels, int | None], list[Point]] = {}
    for it in points:
        series.setdefault((it.runtime, it.precision, it.kernels, it.threads if by_batch else None), []).append(it)
    latencies: dict[str, dict[int, float]] = {}
    throughputs: dict[str, dict[int, float]] = {}
    names = []
    for letter, (_, held) in zip(_LETTERS, series.items(), strict=False):
        marks = (letter, letter.upper()) if len(series) > 1 else (_ESTIMATED, _MEASURED)
        names.append(f"{letter} {_series_name(held[0], points, by_batch=by_batch)}")
        for it in held:
            place = axis.index(it.batch_size if by_batch else it.threads or 0)
            for mark, latency_ms in zip(marks, (it.estimate_ms, it.measured_ms), strict=True):
                if latency_ms is not None:
                    latencies.setdefault(mark, {})[place] = latency_ms
                    throughputs.setdefault(mark, {})[place] = per_second(it.batch_size, latency_ms) or 0.0
    if not latencies:
        return []
    values, against = [str(value) for value in axis], "batch" if by_batch else "threads"
    half = max(_NARROWEST, width) // 2
    left = chart(f"ms against {against}", values, latencies, half - 2, height, bound_ms)
    right = chart(f"per second against {against}", values, throughputs, half - 1, height)
    legend = f"{_ESTIMATED} estimated   {_MEASURED} measured"
    if len(series) > 1:
        legend = f"{', '.join(names)}; capitals: measured"
    dots = f"   .... {bound_ms:g} ms" if bound_ms is not None and bound_ms <= _highest(latencies) else ""
    return [*beside(left, right, half), legend + dots]


def _series_name(point: Point, points: Sequence[Point], *, by_batch: bool) -> str:
    words = [point.runtime or "usual"] if len({it.runtime for it in points}) > 1 else []
    words += [point.precision.value] if len({it.precision for it in points}) > 1 else []
    words += kernels_in_words(point.kernels) if len({it.kernels for it in points}) > 1 else ()
    words += [threads_in_words(point.threads)] if by_batch and len({it.threads for it in points}) > 1 else []
    return ", ".join(words)


def _highest(series: dict[str, dict[int, float]]) -> float:
    return max(y for each in series.values() for y in each.values())
