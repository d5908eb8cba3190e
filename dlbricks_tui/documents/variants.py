"""A model in several variants: their table, the best of them, and their latency and throughput as curves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from dlbricks_tui.documents.parts import CellKind, Column, Missing, Part, Sentence, Table
from dlbricks_tui.documents.pictures import Axis, Plot, Series, StraightLine
from dlbricks_tui.estimate.ranking import Point, best_within, per_second, scaling_efficiency
from dlbricks_tui.printable import printable
from dlbricks_tui.runtime.traits import runtime_title
from dlbricks_tui.runtime.variant import (
    Kernels,
    Precision,
    batch_in_words,
    remarks_on,
    threads_in_words,
)
from dlbricks_tui.wording.answers import engine_remarks, figure_text, short_combination
from dlbricks_tui.wording.numbers import (
    PREDICTED,
    PREDICTED_LEGEND,
    capitalised,
    counted,
    in_ms,
    milliseconds,
    or_dash,
    percent,
)

# Marks of the estimates of several series; measured latencies have the same letters as capitals.
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_ESTIMATED, _MEASURED = "o", "x"
_STYLES = ("accent", "good", "warn", "bad", "strong", "mark", "match", "bar")
# The room above the highest point, and beside the first and the last one.
_ABOVE, _BESIDE = 1.08, 1.2


def key_column(title: str, cell: Callable[[Point], str], kind: CellKind = CellKind.NUMBER) -> Column[Point]:
    """Return a column that tells variants apart."""
    return Column(title, cell, kind, is_key=True)


RUNTIME = key_column("runtime", lambda it: runtime_title(it.runtime or "default"), CellKind.NAME)
THREADS = key_column("threads", lambda it: "default" if it.threads is None else str(it.threads))
BATCH = key_column("batch", lambda it: str(it.batch_size))
PRECISION = key_column("precision", lambda it: it.precision.value)
INSTRUCTIONS = key_column("instructions", lambda it: it.kernels.instructions.value)
OPTIMISATION = key_column("optimisation", lambda it: it.kernels.optimisation.value)
LEVEL = key_column("level", lambda it: it.found.estimate.level.value)


class VariantAxis(NamedTuple):
    """A property of variants, shown as a column where they differ in it and in the heading where they do not."""

    column: Column[Point]
    # Empty for what is usual.
    words: Callable[[Point], str]


AXES = (
    VariantAxis(RUNTIME, RUNTIME.cell),
    VariantAxis(THREADS, lambda it: threads_in_words(it.threads)),
    VariantAxis(BATCH, lambda it: batch_in_words(it.batch_size)),
    VariantAxis(PRECISION, lambda it: it.precision.in_words),
    VariantAxis(INSTRUCTIONS, lambda it: it.kernels.instructions_in_words),
    VariantAxis(OPTIMISATION, lambda it: it.kernels.optimisation_in_words),
    VariantAxis(LEVEL, lambda it: f"{it.found.estimate.level.value} layers"),
)


def differing(points: Sequence[Point]) -> list[VariantAxis]:
    """Return what differs between variants."""
    return [axis for axis in AXES if len({axis.column.cell(it) for it in points}) > 1]


def words_of(axes: Iterable[VariantAxis], point: Point) -> str:
    """Return these properties of a variant; one without limits of its kernels is told from those that have some."""
    return ", ".join(filter(None, (axis.words(point) for axis in axes))) or "all kernels"


def variants_parts(points: Sequence[Point]) -> Iterator[Part]:
    """Yield the table of all variants, and remarks on them."""
    yield Table(variant_columns(points), points, missing=missing_figures)
    yield from variant_remarks(points)


def variant_remarks(points: Sequence[Point]) -> Iterator[Part]:
    """Yield what the marks mean, and what the figures leave out."""
    if any(it.found.estimate.coverage.predicted for it in points):
        yield Sentence(PREDICTED_LEGEND)
    yield from map(Sentence, remarks_on(it.precision for it in points))
    yield from map(Sentence, engine_remarks(it.found for it in points))


def variant_columns(points: Sequence[Point]) -> tuple[Column[Point], ...]:
    """Return a column for everything that varies, and the figures."""
    varying = [axis.column for axis in differing(points) if axis.column is not BATCH]
    efficiency: Column[Point] = Column("efficiency", lambda it: or_dash(percent, scaling_efficiency(it, points)))
    return (
        *varying,
        BATCH,
        Column("estimate", estimate_text),
        Column("95 %", interval_text, is_optional=True),
        Column("measured", lambda it: or_dash(in_ms, it.measured_ms)),
        Column("per second", lambda it: _answer_sign(it) + or_dash(milliseconds, it.per_second)),
        *[efficiency] * (THREADS in varying),
    )


def missing_figures(point: Point) -> Missing | None:
    """Return why a variant has no latency, and the command that measures it."""
    found = point.found.estimate
    if point.latency_ms is not None:
        return None
    if found.obstacle:
        return f"no estimate is possible: {found.obstacle}", ""
    reason = f"only {found.coverage.measured} of {counted(found.coverage.layers, 'layer')} measured"
    if found.composed is None:
        reason = "not measured"
    elif found.coverage.predicted:
        reason = "some layers are neither measured nor predicted"
    return (f"{reason}: ", point.cure) if point.cure else (reason, "")


def variant_name(point: Point) -> str:
    """Return the name of a variant where it is compared with others."""
    # The usual number of threads may be that of another row.
    variant = replace(point.found.variant, threads=point.threads)
    framework = point.runtime or point.found.way.runtime.partition("-")[0]
    return short_combination(runtime_title(framework), variant, point.found.estimate.level)


def variants_question(model: str) -> str:
    """Return the question that the variants of a model answer."""
    return f"Which runtime, batch size and number of threads suit {printable(model)}?"


def curve_answer(points: Sequence[Point]) -> str:
    """Return the variants of the least latency and of the highest throughput."""
    known = [it for it in points if it.latency_ms]
    if not known:
        return "Nothing was measured in any of these variants."
    quickest = min(known, key=lambda it: it.latency_ms or 0.0)
    busiest = max(known, key=lambda it: it.per_second or 0.0)
    if quickest is busiest or not varies_by_batch(points):
        # By throughput: an inference of a larger batch takes longer, and does more.
        slowest = min(known, key=lambda it: it.per_second or 0.0)
        times = (quickest.per_second or 0.0) / (slowest.per_second or 1.0)
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
    for name, held in curve_series(points):
        known = [(x, it) for x, it in held if it.latency_ms]
        if not known:
            continue
        (low, first), (high, last) = known[0], known[-1]
        in_words = batch_in_words if by_batch else threads_in_words
        if len(known) == 1:
            name = ", ".join(filter(None, (name, in_words(low))))
            latencies.append(f"{name}: {in_ms(first.latency_ms or 0.0)}")
            throughputs.append(f"{name}: {milliseconds(first.per_second or 0.0)} per second")
            continue
        name = name or f"{'batch' if by_batch else 'threads'} {low} to {high}"
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
    high_ms = best.latency_ms if best.found.figure is None else best.found.figure.latency.high_ms
    doubt = f", but its interval reaches {in_ms(high_ms)}" if high_ms > bound_ms else ""
    return f"best under {bound_ms:g} ms: {_name(best, points)}, {_figures(best)}{doubt}"


def _figures(point: Point) -> str:
    return f"{figure_text(point.found)}, {_answer_sign(point)}{milliseconds(point.per_second or 0.0)} per second"


def _answer_sign(point: Point) -> str:
    """Return the mark of predictions, if the latency that counts has any."""
    return _mark(point) if point.measured_ms is None else ""


def _mark(point: Point) -> str:
    return PREDICTED if point.estimate_ms is not None and point.found.estimate.coverage.predicted else ""


def _name(point: Point, points: Sequence[Point]) -> str:
    return words_of(differing(points) or AXES[2:3], point)


def estimate_text(point: Point) -> str:
    """Return the estimate of a variant, as a range if some of it is predicted."""
    return figure_text(replace(point.found, end_to_end=None)) or "-"


def interval_text(point: Point) -> str:
    """Return the 95 % interval of the estimate of a variant."""
    composed = point.found.estimate.composed
    if composed is None or point.estimate_ms is None:
        return "-"
    return " to ".join(milliseconds(it, precise=True) for it in (composed.latency.low_ms, composed.latency.high_ms))


def varies_by_batch(points: Sequence[Point]) -> bool:
    """Return whether a curve is one over batch sizes; else it is one over threads."""
    return len({it.batch_size for it in points}) > 1


def curve_series(points: Sequence[Point]) -> list[tuple[str, list[tuple[int, Point]]]]:
    """Return the variants that differ in their batch sizes only, or at a single one in their threads: each by that.

    They are in groups with names; the name of an only group is empty.
    """
    by_batch = varies_by_batch(points)
    groups: dict[tuple[str, Precision, Kernels, int | None], list[tuple[int, Point]]] = {}
    for it in points:
        alike = groups.setdefault((it.runtime, it.precision, it.kernels, it.threads if by_batch else None), [])
        alike.append((it.batch_size if by_batch else it.threads or 0, it))
    named = [it for it in differing(points) if it.column is not BATCH and (by_batch or it.column is not THREADS)]
    names = [words_of(named, held[0][1]) if len(groups) > 1 else "" for held in groups.values()]
    return [(name, [it for it in held if it[0]]) for name, held in zip(names, groups.values(), strict=True)]


def curve_pictures(points: Sequence[Point], bound_ms: float | None) -> tuple[Plot, Plot] | None:
    """Return the latency and the throughput over batch sizes or threads; None with fewer than two points."""
    series = curve_series(points)[: len(_LETTERS)]
    axis = sorted({x for _, held in series for x, it in held if it.latency_ms})
    if len(axis) < 2:
        return None
    against = "batch size" if varies_by_batch(points) else "threads"
    across = Axis(axis[0] / _BESIDE, axis[-1] * _BESIDE, True, tuple((float(x), str(x)) for x in axis))

    def plot(title: str, value_of: Callable[[int, float], float], says: str, bound: float | None) -> Plot:
        def placed(known: Iterable[tuple[int, int, float | None]]) -> tuple[tuple[float, float], ...]:
            return tuple((float(x), value_of(size, ms)) for x, size, ms in known if ms is not None)

        drawn: list[Series] = []
        for number, (name, held) in enumerate(series):
            style, letter = _STYLES[number % len(_STYLES)], _LETTERS[number]
            marks = (letter, letter.upper()) if name else (_ESTIMATED, _MEASURED)
            estimated = placed((x, it.batch_size, it.estimate_ms) for x, it in held)
            measured = placed((x, it.batch_size, it.measured_ms) for x, it in held)
            # Where nothing is estimated, the line joins what was measured.
            line, names = ("", ("estimated", "measured")) if estimated else (".", ("", "measured"))
            if name:
                names = (name, "" if estimated else name)
            drawn.append(Series(names[0], marks[0], style, estimated, "."))
            drawn.append(Series(names[1], marks[1], "strong" if estimated else style, measured, line))
        drawn = [it for it in drawn if it.points]
        most = max(y for it in drawn for _, y in it.points)
        up = Axis(0.0, _ABOVE * max(most, bound if bound is not None and bound <= 2 * most else 0.0))
        levels = () if bound is None or bound > up.high else (StraightLine(f"bound {bound:g} ms", bound),)
        legend = ("capitals: measured",) if any(name for name, _ in series) else ()
        return Plot(f"{title} by {against}", says, across, up, tuple(drawn), levels, legend=legend)

    of_latency, of_throughput = curve_sentences(points)
    latencies = plot("ms", lambda _, ms: ms, of_latency, bound_ms)
    throughputs = plot("Per second", lambda size, ms: per_second(size, ms) or 0.0, of_throughput, None)
    return latencies, throughputs
