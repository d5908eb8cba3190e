"""The combinations of a model as a table of plain characters, the best first."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from dlbricks_tui.estimate.curve import Point
from dlbricks_tui.estimate.ranking import Ranked, Ranking
from dlbricks_tui.printable import printable
from dlbricks_tui.runtime.variant import batch_in_words, remarks_on, threads_in_words
from dlbricks_tui.store.contrast import Verdict
from dlbricks_tui.wording.numbers import PREDICTED, PREDICTED_LEGEND, counted, in_ms, milliseconds, percent
from dlbricks_tui.wording.tables import Column, Table, or_dash
from dlbricks_tui.wording.text_tables import TextTable

# Smaller differences get a decimal.
_GREAT_DIFFERENCE = 0.1
# Short enough for a table.
_VERDICTS = {Verdict.SLOWER: "slower", Verdict.ALIKE: "alike", Verdict.TOO_FEW: "?"}
_LEGEND = {
    Verdict.ALIKE: "alike: not significantly slower than the best",
    Verdict.TOO_FEW: "?: too few samples to compare",
}


class _Axis(NamedTuple):
    """A property of combinations, shown as a column where they differ in it and in the heading where they do not."""

    column: Column[Ranked]
    # Empty for what is usual.
    words: Callable[[Ranked], str]


_AXES = (
    _Axis(Column("RUNTIME", lambda it: it.point.runtime, holds_names=True), lambda it: it.point.runtime),
    _Axis(
        Column("THREADS", lambda it: "default" if it.point.threads is None else str(it.point.threads)),
        lambda it: threads_in_words(it.point.threads),
    ),
    _Axis(Column("BATCH", lambda it: str(it.point.batch_size)), lambda it: batch_in_words(it.point.batch_size)),
    _Axis(
        Column("PRECISION", lambda it: it.point.found.variant.precision.value),
        lambda it: it.point.found.variant.precision.in_words,
    ),
    _Axis(
        Column("INSTRUCTIONS", lambda it: it.point.found.variant.kernels.instructions.value),
        lambda it: it.point.found.variant.kernels.instructions_in_words,
    ),
    _Axis(
        Column("OPTIMISATION", lambda it: it.point.found.variant.kernels.optimisation.value),
        lambda it: it.point.found.variant.kernels.optimisation_in_words,
    ),
    _Axis(
        Column("LEVEL", lambda it: it.point.found.estimate.level.value),
        lambda it: f"{it.point.found.estimate.level.value} layers",
    ),
)


def ranking_heading(ranking: Ranking) -> str:
    """Return the system, what all combinations have in common, and by what they are ordered."""
    found = ranking.combinations
    common = [axis.words(found[0]) for axis in _AXES if axis not in _differing(found)]
    common = [words for words in common if words]
    several_batches = len({it.point.batch_size for it in found}) > 1
    order = f"; the best first, by {'throughput' if several_batches else 'latency'}"
    return ", ".join([ranking.system, *common]) + (order if sum(it.ratio is not None for it in found) > 1 else "")


def combination_name(it: Ranked, found: Sequence[Ranked]) -> str:
    """Return everything in which a combination differs from the others: `openvino, 2 threads, batch 4`."""
    return ", ".join(words for words in (axis.words(it) for axis in _differing(found)) if words)


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
    alike = [it for it in others if it.verdict is Verdict.ALIKE]
    slower = [it.ratio or 1.0 for it in others if it.verdict is Verdict.SLOWER]
    words = [f"{len(alike)} alike"] if alike else []
    words += [f"{len(slower)} slower, by up to {percent(max(slower) - 1.0)}"] if slower else []
    told = f"; of {counted(len(others), 'other')} {' and '.join(words)}" if words else ""
    verdict = "is predicted to be best" if best.comparable.is_predicted else "is best"
    return f"{name} {verdict}: {latency}, {rate}{told}.{_usual_answer(ranking, best)}"


def _usual_answer(ranking: Ranking, best: Ranked) -> str:
    """Return the answer of all other places as a sentence, if the best combination is another one."""
    answer = ranking.answer
    if answer is None or answer is best or answer.comparable.latency is None:
        return ""
    name = combination_name(answer, ranking.combinations)
    return f" At batch {ranking.own_batch}, as the model is: {in_ms(answer.comparable.latency.value_ms)}, {name}."


def ranking_lines(ranking: Ranking, width: int) -> list[str]:
    """Return a row for each combination, with a column for everything that differs, and what its words mean."""
    found = ranking.combinations
    keys = [axis.column for axis in _differing(found)]
    figures = _figures(found)
    lines = Table(keys, figures, _without_latency).lines(found, width)
    are_measured = all(it.point.measured_ms is not None for it in found if it.ratio is not None)
    for least in (_INTERVAL, *([_ESTIMATE] if are_measured else [])):
        if len(lines[0]) > width:
            figures = [column for column in figures if column is not least]
            lines = Table(keys, figures, _without_latency).lines(found, width)
    verdicts = {it.verdict for it in found}
    legend = [text for verdict, text in _LEGEND.items() if verdict in verdicts]
    below = ["; ".join(legend)] if legend else []
    below += [PREDICTED_LEGEND] if any(it.comparable.is_predicted for it in found) else []
    below += remarks_on(it.point.found.variant.precision for it in found)
    return [*lines, *(["", *below] if below else [])]


def ranking_texts(ranking: Ranking) -> TextTable:
    """Return the same rows as texts."""
    keys = [axis.column for axis in _differing(ranking.combinations)]
    return Table(keys, _figures(ranking.combinations), _without_latency).as_texts(ranking.combinations)


def _figures(found: Sequence[Ranked]) -> list[Column[Ranked]]:
    """Return the columns of figures; a single combination that is known well is compared with nothing."""
    alone = len(found) == 1 and found[0].is_best
    return [column for column in _FIGURES if column is not _AGAINST_BEST or not alone]


def _differing(found: Sequence[Ranked]) -> list[_Axis]:
    """Return what differs between the combinations; the runtime of a single one."""
    return [axis for axis in _AXES if len({axis.column.cell(it) for it in found}) > 1] or [_AXES[0]]


def _without_latency(it: Ranked) -> Point | None:
    return it.point if it.ratio is None else None


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
    verdict = "" if it.verdict is None else _VERDICTS.get(it.verdict, it.verdict.value)
    sign = "-" if more < 0 else "+"
    return f"{sign}{percent(abs(more), 0 if abs(more) >= _GREAT_DIFFERENCE else 1)} {verdict}"


def _estimate(it: Ranked) -> str:
    predicted = it.point.estimate_ms is not None and it.point.found.estimate.coverage.predicted > 0
    return PREDICTED * predicted + or_dash(in_ms, it.point.estimate_ms)


_ESTIMATE = Column("ESTIMATE", _estimate)
_INTERVAL = Column("95 %", _interval)
_AGAINST_BEST = Column("AGAINST BEST", against_best)
_FIGURES: tuple[Column[Ranked], ...] = (
    _ESTIMATE,
    _INTERVAL,
    Column("MEASURED", lambda it: or_dash(in_ms, it.point.measured_ms)),
    Column("PER SECOND", lambda it: PREDICTED * it.comparable.is_predicted + or_dash(milliseconds, it.per_second)),
    _AGAINST_BEST,
)
