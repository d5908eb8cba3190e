"""The combinations of a model, the best first: their table, what it says in words, and their picture."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from dlbricks_tui.documents.parts import BLANK_LINE, Column, Part, Sentence, Table
from dlbricks_tui.documents.pictures import Axis, BarRow, LegendSign, Mark, Piece, Rows
from dlbricks_tui.documents.variants import (
    BATCH,
    INSTRUCTIONS,
    OPTIMISATION,
    PRECISION,
    RUNTIME,
    THREADS,
    estimate_text,
    key_column,
    missing_figures,
)
from dlbricks_tui.estimate.curve import Point
from dlbricks_tui.estimate.ranking import Ranked, Ranking
from dlbricks_tui.printable import printable
from dlbricks_tui.runtime.variant import batch_in_words, remarks_on, threads_in_words
from dlbricks_tui.store.change import Verdict
from dlbricks_tui.wording.checks import verdict_counts
from dlbricks_tui.wording.numbers import PREDICTED, PREDICTED_LEGEND, counted, in_ms, milliseconds, or_dash, percent

# Smaller differences get a decimal.
_GREAT_DIFFERENCE = 0.1
_MEASURED_BAR, _PREDICTED_BAR = ("=", "█"), ("~", "░")


class _Axis(NamedTuple):
    """A property of combinations, shown as a column where they differ in it and in the heading where they do not."""

    column: Column[Point]
    # Empty for what is usual.
    words: Callable[[Point], str]


_AXES = (
    _Axis(RUNTIME, lambda it: it.runtime),
    _Axis(THREADS, lambda it: threads_in_words(it.threads)),
    _Axis(BATCH, lambda it: batch_in_words(it.batch_size)),
    _Axis(PRECISION, lambda it: it.precision.in_words),
    _Axis(INSTRUCTIONS, lambda it: it.kernels.instructions_in_words),
    _Axis(OPTIMISATION, lambda it: it.kernels.optimisation_in_words),
    _Axis(
        key_column("level", lambda it: it.found.estimate.level.value),
        lambda it: f"{it.found.estimate.level.value} layers",
    ),
)


def ranking_parts(ranking: Ranking) -> Iterator[Part]:
    """Yield a row for each combination, with a column for everything that differs, and what its words mean."""
    yield Table(ranking_columns(ranking), ranking.combinations, missing=lambda it: missing_figures(it.point))
    if remarks := list(ranking_remarks(ranking)):
        yield BLANK_LINE
        yield from remarks


def ranking_columns(ranking: Ranking) -> tuple[Column[Ranked], ...]:
    """Return a column for everything that differs, and the figures; a single combination is compared with nothing."""
    found = ranking.combinations

    def of_combination(column: Column[Point]) -> Column[Ranked]:
        return Column(column.title, lambda it: column.cell(it.point), column.kind, _style, is_key=True)

    are_measured = all(it.point.measured_ms is not None for it in found if it.ratio is not None)
    against: Column[Ranked] = Column("against best", against_best, style=_style)
    return (
        *(of_combination(axis.column) for axis in _differing(found)),
        Column(
            "estimate",
            lambda it: estimate_text(it.point),
            style=_style,
            is_optional=are_measured,
            goes_last=True,
        ),
        Column("95 %", _interval, style=_style, is_optional=True),
        Column("measured", lambda it: or_dash(in_ms, it.point.measured_ms), style=_style),
        Column(
            "per second",
            lambda it: PREDICTED * it.comparable.is_predicted + or_dash(milliseconds, it.per_second),
            style=_style,
        ),
        *[against] * (not _is_alone(found)),
    )


def ranking_remarks(ranking: Ranking) -> Iterator[Part]:
    """Yield what the words and marks mean, and what the figures leave out."""
    found = ranking.combinations
    for reason in dict.fromkeys(it.change.reason for it in found if it.change is not None and it.change.reason):
        yield Sentence(f"unknown: {reason}")
    if any(it.comparable.is_predicted for it in found):
        yield Sentence(PREDICTED_LEGEND)
    yield from map(Sentence, remarks_on(it.point.precision for it in found))


def _style(it: Ranked) -> str:
    return "good" if it.is_best else "text"


def _is_alone(found: Sequence[Ranked]) -> bool:
    """Return whether there is only one combination, and it is known well."""
    return len(found) == 1 and found[0].is_best


def ranking_heading(ranking: Ranking) -> str:
    """Return the system, what all combinations have in common, and by what they are ordered."""
    found = ranking.combinations
    common = [axis.words(found[0].point) for axis in _AXES if axis not in _differing(found)]
    common = [words for words in common if words]
    several_batches = len({it.point.batch_size for it in found}) > 1
    order = f"; the best first, by {'throughput' if several_batches else 'latency'}"
    return ", ".join([ranking.system, *common]) + (order if sum(it.ratio is not None for it in found) > 1 else "")


def combination_name(it: Ranked, found: Sequence[Ranked]) -> str:
    """Return everything in which a combination differs from the others: `openvino, 2 threads, batch 4`."""
    return ", ".join(words for words in (axis.words(it.point) for axis in _differing(found)) if words)


def bar_name(it: Ranked, found: Sequence[Ranked]) -> str:
    """Return the same in fewer words, for pictures: `openvino, default, batch 4`."""
    return combination_name(it, found).replace(threads_in_words(None), "default")


def ranking_answer(ranking: Ranking) -> str:
    """Return the best combination, and what the others lose against it, as a sentence."""
    found = [it for it in ranking.combinations if it.ratio is not None]
    if not found:
        return f"{printable(ranking.model)} was not measured in any combination."
    best, *others = found
    sign = PREDICTED * best.comparable.is_predicted
    latency = "" if best.comparable.latency is None else f"{sign}{in_ms(best.comparable.latency.value_ms)}"
    rate = f"{sign}{milliseconds(best.per_second or 0.0)} per second"
    name = combination_name(best, ranking.combinations)
    left = len(ranking.combinations) - 1
    if not best.comparable.is_predicted and all(it.comparable.is_predicted for it in others):
        told = f"; {counted(left, 'other')} {'was' if left == 1 else 'were'} not" if left else ""
        return f"Only {name} was measured: {latency}, {rate}{told}."
    if not best.is_best:
        return f"{name} may be best, but it is predicted too uncertainly: {latency}, {rate}."
    slower = [it.ratio or 1.0 for it in others if it.verdict is Verdict.SLOWER]
    counts = verdict_counts([it.verdict for it in others if it.verdict is not None])
    if slower:
        counts = counts.replace(Verdict.SLOWER.value, f"slower by up to {percent(max(slower) - 1.0)}")
    told = f"; of {counted(len(others), 'other')} {counts}" if others else ""
    verdict = "is predicted to be best" if best.comparable.is_predicted else "is best"
    return f"{name} {verdict}: {latency}, {rate}{told}.{_usual_answer(ranking, best)}"


def _usual_answer(ranking: Ranking, best: Ranked) -> str:
    """Return the answer of all other places as a sentence, if the best combination is another one."""
    answer = ranking.answer
    if answer is None or answer is best or answer.comparable.latency is None:
        return ""
    name = combination_name(answer, ranking.combinations)
    return f" At batch {ranking.own_batch}, as the model is: {in_ms(answer.comparable.latency.value_ms)}, {name}."


def _differing(found: Sequence[Ranked]) -> list[_Axis]:
    """Return what differs between the combinations; the runtime of a single one."""
    return [axis for axis in _AXES if len({axis.column.cell(it.point) for it in found}) > 1] or [_AXES[0]]


def _interval(it: Ranked) -> str:
    """Return half of the 95 % interval of the estimate, as a share of it."""
    composed, estimate_ms = it.point.found.estimate.composed, it.point.estimate_ms
    if composed is None or not estimate_ms:
        return "-"
    return f"+-{percent((composed.interval.high_ms - composed.interval.low_ms) / 2 / estimate_ms, 1)}"


def ranking_sentence(ranking: Ranking, *, by_rate: bool) -> str:
    """Return the range of the combinations, by throughput or by latency, as a sentence."""
    found = [it for it in ranking.combinations if it.comparable.latency is not None]
    values = [it.per_second if by_rate else it.comparable.latency.value_ms for it in found if it.comparable.latency]
    known = [it for it in values if it is not None]
    unit = "per second" if by_rate else "ms"
    ends = dict.fromkeys(milliseconds(it) for it in (min(known), max(known)))
    return f"{counted(len(found), 'combination')}: {' to '.join(ends)} {unit}."


def against_best(it: Ranked) -> str:
    """Return the additional time of a combination and what that means: `+14 % slower`."""
    if it.is_first:
        return "best" if it.is_best else "uncertain"
    more = (it.ratio or 1.0) - 1.0
    verdict = "" if it.verdict is None else it.verdict.value
    sign = "-" if more < 0 else "+"
    return f"{sign}{percent(abs(more), 0 if abs(more) >= _GREAT_DIFFERENCE else 1)} {verdict}"


def ranking_picture(ranking: Ranking) -> Rows | None:
    """Return all combinations with a latency as bars, the best first."""
    found = [it for it in ranking.combinations if it.comparable.latency is not None]
    if not found:
        return None
    by_rate = len({it.point.batch_size for it in ranking.combinations}) > 1
    rows = tuple(_bar(it, ranking.combinations, by_rate=by_rate) for it in found)
    values = [piece.high for row in rows for piece in row.pieces]
    meanings = [LegendSign(_MEASURED_BAR[0], "measured", "bar", _MEASURED_BAR[1])]
    if any(it.comparable.is_predicted for it in found):
        meanings.append(LegendSign(_PREDICTED_BAR[0], "predicted", "muted", _PREDICTED_BAR[1]))
    title, unit = ("Per second, longer", "per second") if by_rate else ("ms, shorter", "ms")
    ends = " to ".join(dict.fromkeys(milliseconds(it) for it in (min(values), max(values))))
    says = f"{counted(len(found), 'combination')}: {ends} {unit}."
    return Rows(f"{title} is better", says, Axis(0.0, max(values)), rows, tuple(meanings))


def _bar(it: Ranked, found: Sequence[Ranked], *, by_rate: bool) -> BarRow:
    latency = it.comparable.latency
    value = (it.per_second or 0.0) if by_rate else 0.0 if latency is None else latency.value_ms
    (mark, block), style = (_PREDICTED_BAR, "muted") if it.comparable.is_predicted else (_MEASURED_BAR, "bar")
    style = "good" if it.is_best else style
    text = milliseconds(value) if by_rate else in_ms(value)
    alone = _is_alone(found)
    marks = (Mark(value, "*", "good"),) if it.is_best and not alone else ()
    text += "" if alone else f" {against_best(it)}"
    bar = (Piece(0.0, value, mark, block, style),)
    return BarRow(bar_name(it, found), bar, marks, text, "good" if it.is_best else "text")
