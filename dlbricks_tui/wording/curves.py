"""A model in several variants as a table, as sentences, and as series of points."""

from collections.abc import Sequence
from typing import NamedTuple

from dlbricks_tui.estimate.curve import Point, best_within, scaling_efficiency
from dlbricks_tui.printable import printable
from dlbricks_tui.runtime.variant import (
    Kernels,
    Precision,
    batch_in_words,
    kernels_in_words,
    remarks_on,
    threads_in_words,
)
from dlbricks_tui.wording.engine import engine_remarks
from dlbricks_tui.wording.numbers import PREDICTED, PREDICTED_LEGEND, capitalised, in_ms, milliseconds, percent
from dlbricks_tui.wording.tables import Column, Table, or_dash
from dlbricks_tui.wording.text_tables import TextTable

# Marks of the estimates of several series; measured latencies have the same letters as capitals.
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_ESTIMATED, _MEASURED = "o", "x"


def curve_table(points: Sequence[Point], width: int, *, marked: bool = False) -> list[str]:
    """Return the table of all variants, and remarks on them; `marked` tells the mark of each in the charts."""
    found = _table(points, width, marked=marked)
    if any(it.found.estimate.coverage.predicted for it in points):
        found.append(PREDICTED_LEGEND)
    found += remarks_on(it.precision for it in points)
    found += engine_remarks(it.found for it in points)
    return found


def variants_question(model: str) -> str:
    """Return the question that the variants of a model answer."""
    return f"Which runtime, batch size and number of threads suit {printable(model)}?"


def curve_answer(points: Sequence[Point], bound_ms: float | None = None) -> str:
    """Return the best variant under a bound; without one those of the least latency and the highest throughput."""
    if bound_ms is not None:
        return f"{capitalised(best_line(points, bound_ms))}."
    known = [it for it in points if it.latency_ms]
    if not known:
        return "Nothing was measured in any of these variants."
    quickest = min(known, key=lambda it: it.latency_ms or 0.0)
    busiest = max(known, key=lambda it: it.per_second or 0.0)
    if quickest is busiest or not varies_by_batch(points):
        slowest = max(known, key=lambda it: it.latency_ms or 0.0)
        times = (slowest.latency_ms or 0.0) / (quickest.latency_ms or 1.0)
        against = f", {times:.2f} times as fast as {_name(slowest, points)}" if slowest is not quickest else ""
        return f"{capitalised(_name(quickest, points))}: {_figures(quickest)}{against}."
    return (
        f"Least latency: {_name(quickest, points)}, {_figures(quickest)}. "
        f"Highest throughput: {_name(busiest, points)}, {_figures(busiest)}."
    )


def curve_sentences(points: Sequence[Point]) -> tuple[str, str]:
    """Return how the latency and the throughput change along a curve, for each of its series."""
    by_batch = varies_by_batch(points)
    latencies, throughputs = [], []
    for each in curve_series(points):
        known = [(x, it) for x, it in each.points if it.latency_ms]
        if not known:
            continue
        (low, first), (high, last) = known[0], known[-1]
        axis = "batch" if by_batch else "threads"
        if len(known) == 1:
            name = ", ".join(filter(None, (each.name, f"{axis} {low}")))
            latencies.append(f"{name}: {in_ms(first.latency_ms or 0.0)}")
            throughputs.append(f"{name}: {milliseconds(first.per_second or 0.0)} per second")
            continue
        name = each.name or f"{axis} {low} to {high}"
        latencies.append(f"{name}: {milliseconds(first.latency_ms or 0.0)} to {in_ms(last.latency_ms or 0.0)}")
        rates = [milliseconds(it.per_second or 0.0) for it in (first, last)]
        throughputs.append(f"{name}: {rates[0]} to {rates[1]} per second")
    return "; ".join(latencies), "; ".join(throughputs)


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
    several_threads = len({it.threads for it in points}) > 1
    words = [] if several_threads and not varies_by_batch(points) else [batch_in_words(point.batch_size)]
    words += [threads_in_words(point.threads)] if several_threads else []
    words += [point.precision.value] if len({it.precision for it in points}) > 1 else []
    words += kernels_in_words(point.kernels) if len({it.kernels for it in points}) > 1 else ()
    words += [point.runtime] if len({it.runtime for it in points}) > 1 else []
    return ", ".join(words)


def curve_texts(points: Sequence[Point]) -> TextTable:
    """Return the table of all variants as texts."""
    return _table_of(points, with_interval=True).as_texts(points)


def _table(points: Sequence[Point], width: int, *, marked: bool = False) -> list[str]:
    """Return the table in so many cells, or without intervals if these do not fit."""
    found = _table_of(points, with_interval=True, marked=marked).lines(points, width)
    if len(found[0]) <= width:
        return found
    return _table_of(points, with_interval=False, marked=marked).lines(points, width)


def _table_of(points: Sequence[Point], *, with_interval: bool, marked: bool = False) -> Table[Point]:
    """Return the table: a row for each variant, with a column for everything that varies."""
    series = curve_series(points)
    letters = {id(it): each.estimated_mark for each in series for _, it in each.points}
    marks: Column[Point] = Column("MARK", lambda it: letters.get(id(it), ""))
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
    interval: Column[Point] = Column("95 %", _interval)
    return Table(
        [
            *[marks] * (marked and len(series) > 1),
            *([runtimes] * several_runtimes + [precisions] * several_precisions),
            *([instructions] * several_instructions + [optimisations] * several_optimisations),
            *[threads] * several_threads,
            batches,
        ],
        [
            Column("ESTIMATE", lambda it: _sign(it) + or_dash(in_ms, it.estimate_ms)),
            *[interval] * with_interval,
            Column("MEASURED", lambda it: or_dash(in_ms, it.measured_ms)),
            Column("PER SECOND", lambda it: _sign(it) + or_dash(milliseconds, it.per_second)),
            *[efficiency] * several_threads,
        ],
        lambda it: it if it.latency_ms is None else None,
    )


def _interval(point: Point) -> str:
    composed = point.found.estimate.composed
    if composed is None or point.estimate_ms is None:
        return "-"
    return f"{milliseconds(composed.interval.low_ms)} to {milliseconds(composed.interval.high_ms)}"


class CurveSeries(NamedTuple):
    """The variants of a model that differ in one thing only, by batch size or by threads: `x` and `ms` of each."""

    # Empty for the only series.
    name: str
    estimated_mark: str
    measured_mark: str
    points: tuple[tuple[int, Point], ...]

    def estimated(self) -> list[tuple[int, float]]:
        """The estimates in milliseconds."""
        return [(x, it.estimate_ms) for x, it in self.points if it.estimate_ms is not None]

    def measured(self) -> list[tuple[int, float]]:
        """The end-to-end latencies in milliseconds."""
        return [(x, it.measured_ms) for x, it in self.points if it.measured_ms is not None]


def varies_by_batch(points: Sequence[Point]) -> bool:
    """Return whether a curve is one over batch sizes; else it is one over threads."""
    return len({it.batch_size for it in points}) > 1


def curve_series(points: Sequence[Point]) -> list[CurveSeries]:
    """Return the series of a curve over batch sizes, or over threads at a single batch size."""
    by_batch = varies_by_batch(points)
    groups: dict[tuple[str, Precision, Kernels, int | None], list[Point]] = {}
    for it in points:
        groups.setdefault((it.runtime, it.precision, it.kernels, it.threads if by_batch else None), []).append(it)
    several = len(groups) > 1
    found = []
    for letter, held in zip(_LETTERS, groups.values(), strict=False):
        marks = (letter, letter.upper()) if several else (_ESTIMATED, _MEASURED)
        name = _series_name(held[0], points, by_batch=by_batch) if several else ""
        placed = tuple((it.batch_size if by_batch else it.threads or 0, it) for it in held)
        found.append(CurveSeries(name, *marks, tuple((x, it) for x, it in placed if x)))
    return found


def _series_name(point: Point, points: Sequence[Point], *, by_batch: bool) -> str:
    words = [point.runtime or "usual"] if len({it.runtime for it in points}) > 1 else []
    words += [point.precision.value] if len({it.precision for it in points}) > 1 else []
    words += kernels_in_words(point.kernels) if len({it.kernels for it in points}) > 1 else ()
    words += [threads_in_words(point.threads)] if by_batch and len({it.threads for it in points}) > 1 else []
    return ", ".join(words)
