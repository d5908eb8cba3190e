"""The combinations of a model, the best first, and as a matrix by runtime, threads and batch size."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from dlbricks_tui.documents.parts import BLANK_LINE, Column, Fact, Part, Sentence, Table
from dlbricks_tui.documents.variants import (
    AXES,
    BATCH,
    RUNTIME,
    THREADS,
    VariantAxis,
    differing,
    estimate_text,
    interval_text,
    missing_figures,
    words_of,
)
from dlbricks_tui.estimate.ranking import Point, Ranked, Ranking
from dlbricks_tui.printable import printable
from dlbricks_tui.runtime.variant import batch_in_words, remarks_on
from dlbricks_tui.store.change import Verdict
from dlbricks_tui.wording.answers import figure_number, figure_text, verdict_counts
from dlbricks_tui.wording.numbers import (
    PREDICTED,
    PREDICTED_LEGEND,
    age_words,
    counted,
    in_ms,
    milliseconds,
    or_dash,
    percent,
)

# Smaller differences get a decimal.
_GREAT_DIFFERENCE = 0.1


def ranking_parts(ranking: Ranking) -> Iterator[Part]:
    """Yield a row for each combination, with a column for everything that differs, and what its words mean."""
    found = ranking.combinations
    yield Table(ranking_columns(ranking), found, missing=lambda it: missing_figures(it.point))
    reasons = dict.fromkeys(it.change.reason for it in found if it.change is not None and it.change.reason)
    if remarks := [*(Sentence(f"unknown: {reason}") for reason in reasons), *figure_remarks(ranking)]:
        yield BLANK_LINE
        yield from remarks


def ranking_columns(ranking: Ranking) -> tuple[Column[Ranked], ...]:
    """Return a column for everything that differs, and the figures; a single combination is compared with nothing."""
    found = ranking.combinations

    def of_combination(column: Column[Point]) -> Column[Ranked]:
        return Column(column.title, lambda it: column.cell(it.point), column.kind, _style, is_key=True)

    def rate(it: Ranked) -> str:
        return PREDICTED * it.point.is_predicted + or_dash(milliseconds, it.point.per_second)

    are_measured = all(it.point.measured_ms is not None for it in found if it.ratio is not None)
    against: Column[Ranked] = Column("against best", against_best, style=_style)
    return (
        *(of_combination(axis.column) for axis in _differing(found)),
        Column("estimate", lambda it: estimate_text(it.point), style=_style, is_optional=are_measured, goes_last=True),
        Column("95 %", _interval, style=_style, is_optional=True),
        Column("measured", lambda it: or_dash(in_ms, it.point.measured_ms), style=_style),
        Column("per second", rate, style=_style),
        # A single combination that is known well is compared with nothing.
        *[against] * (len(found) > 1 or not all(it.is_best for it in found)),
    )


def figure_remarks(ranking: Ranking) -> Iterator[Part]:
    """Yield what the mark of predictions means, and what the figures leave out."""
    found = ranking.combinations
    if any(it.point.is_predicted for it in found):
        yield Sentence(PREDICTED_LEGEND)
    if _same_for_all_threads(found):
        yield Sentence("Where nothing was measured with a number of threads, its prediction is the same as for others")
    yield from map(Sentence, remarks_on(it.point.precision for it in found))


def _same_for_all_threads(found: Sequence[Ranked]) -> bool:
    """Return whether predictions of a runtime are the same with different threads, of which nothing was measured."""
    alike: dict[tuple[str, int, float | None], set[int | None]] = defaultdict(set)
    for it in (it.point for it in found if it.point.is_predicted):
        alike[it.found.way.runtime.partition(" ")[0], it.batch_size, it.latency_ms].add(it.threads)
    return any(len(threads) > 1 for threads in alike.values())


def _style(it: Ranked) -> str:
    return "good" if it.is_best else "text"


def ranking_heading(ranking: Ranking) -> str:
    """Return the system, what all combinations have in common, and by what they are ordered."""
    found = ranking.combinations
    several_batches = len({it.point.batch_size for it in found}) > 1
    order = f"; the best first, by {'throughput' if several_batches else 'latency'}"
    return common_words(ranking) + (order if sum(it.ratio is not None for it in found) > 1 else "")


def common_words(ranking: Ranking) -> str:
    """Return the system, and what all combinations have in common."""
    found = ranking.combinations
    common = [axis.words(found[0].point) for axis in AXES if axis not in _differing(found)]
    return ", ".join([ranking.system, *(words for words in common if words)])


def combination_name(it: Ranked, found: Sequence[Ranked]) -> str:
    """Return everything in which a combination differs from the others: `OpenVINO, 2 threads, batch 4`."""
    return words_of(_differing(found), it.point)


def ranking_answer(ranking: Ranking, bound_ms: float | None = None) -> str:
    """Return the best combination, within a bound of the latency, and what the others lose against it, as a sentence.

    Of a ranking within a bound, the combinations with a ratio are those that stay below it.
    """
    found = [it for it in ranking.combinations if it.ratio is not None]
    if not found:
        nothing = f"{printable(ranking.model)} was not measured in any combination."
        return nothing if bound_ms is None else f"No combination is known to stay under {bound_ms:g} ms."
    best, *others = found
    under = "" if bound_ms is None else f"Under {bound_ms:g} ms: "
    name, figures = combination_name(best, ranking.combinations), _figures(best)
    left = len(ranking.combinations) - 1
    if not under and not best.point.is_predicted and all(it.point.is_predicted for it in others):
        told = f"; {counted(left, 'other')} {'was' if left == 1 else 'were'} not" if left else ""
        return f"Only {name} was measured: {figures}{told}.{_quicker_prediction(ranking)}"
    if not best.is_best:
        return f"{under}{name} may be best, but it is predicted too uncertainly: {figures}."
    measured = ""
    if not best.point.is_predicted and any(it.point.is_predicted for it in others):
        # Where predictions fill a matrix, most of the others are some.
        others, measured = [it for it in others if not it.point.is_predicted], " measured"
    slower = [it.ratio or 1.0 for it in others if it.verdict is Verdict.SLOWER]
    counts = verdict_counts([it.verdict for it in others if it.verdict is not None])
    if slower:
        counts = counts.replace(Verdict.SLOWER.value, f"slower by up to {percent(max(slower) - 1.0)}")
    told = f"; of {counted(len(others), 'other')}{measured} {counts}" if others else ""
    by = " by throughput" if len({it.point.batch_size for it in ranking.combinations}) > 1 else ""
    verdict = f"{'is predicted to be' if best.point.is_predicted else 'is'} best{by}"
    # The answer of all other places, if the best combination is another one.
    usual, answer = "", ranking.answer
    if not under and answer is not None and answer is not best and answer.point.latency is not None:
        named = combination_name(answer, ranking.combinations)
        usual = f" At batch {ranking.own_batch}, as the model is: {figure_text(answer.point.found)}, {named}."
    return f"{under}{name} {verdict}: {figures}{told}.{_quicker_prediction(ranking)}{usual}"


def _figures(it: Ranked) -> str:
    sign = PREDICTED * it.point.is_predicted
    return f"{figure_text(it.point.found)}, {sign}{milliseconds(it.point.per_second or 0.0)} per second"


def _quicker_prediction(ranking: Ranking) -> str:
    """Return the combination that is predicted to be faster than the best measured one, as a sentence."""
    found = (it for it in ranking.combinations if it.point.is_predicted and it.verdict is Verdict.FASTER)
    quicker = next(found, None)
    if quicker is None:
        return ""
    return f" {combination_name(quicker, ranking.combinations)} is predicted to be faster: {_figures(quicker)}."


def _differing(found: Sequence[Ranked]) -> list[VariantAxis]:
    """Return what differs between the combinations; the runtime of a single one."""
    return differing([it.point for it in found]) or [AXES[0]]


def _interval(it: Ranked) -> str:
    """Return half of the 95 % interval of the estimate, as a share of it."""
    composed, estimate_ms = it.point.found.estimate.composed, it.point.estimate_ms
    if composed is None or not estimate_ms:
        return "-"
    return f"+-{percent((composed.latency.high_ms - composed.latency.low_ms) / 2 / estimate_ms, 1)}"


def against_best(it: Ranked) -> str:
    """Return the additional time of a combination and what that means: `+14 % slower`."""
    if it.is_first:
        return "best" if it.is_best else "uncertain"
    return difference_words(it.ratio or 1.0, it.verdict)


def difference_words(ratio: float, verdict: Verdict | None) -> str:
    """Return the additional time that a ratio says, and what it means: `+14 % slower`."""
    more, sign = abs(ratio - 1.0), "-" if ratio < 1.0 else "+"
    return f"{sign}{percent(more, 0 if more >= _GREAT_DIFFERENCE else 1)} {'' if verdict is None else verdict.value}"


BEST, UNKNOWN, UNREAD = "best", "-", "reading"
_ROW_AXES = tuple(it for it in AXES if it.column is not BATCH)


def row_key(point: Point) -> tuple[str, ...]:
    """Return the runtime, threads, precision, instruction set and level of a combination, as its row shows them."""
    return tuple(it.column.cell(point) for it in _ROW_AXES)


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """The combinations that differ in the batch size only, by that."""

    cells: Mapping[int, Ranked]

    @property
    def point(self) -> Point:
        """One of the combinations, which has what all of them have in common."""
        return next(iter(self.cells.values())).point

    @property
    def key(self) -> tuple[str, ...]:
        """The runtime, threads, precision, instruction set and level, which no other row has."""
        return row_key(self.point)


def matrix_rows(ranking: Ranking) -> tuple[MatrixRow, ...]:
    """Return the rows of a ranking: those of the best runtime first, by the number of threads."""
    rows: dict[tuple[str, ...], dict[int, Ranked]] = {}
    for it in ranking.combinations:
        rows.setdefault(row_key(it.point), {}).setdefault(it.point.batch_size, it)
    runtimes = list(dict.fromkeys(it.point.runtime for it in ranking.combinations))
    found = [MatrixRow(cells) for cells in rows.values()]
    return tuple(sorted(found, key=lambda it: (runtimes.index(it.point.runtime), it.point.threads or 0, it.key)))


def batch_sizes(ranking: Ranking) -> tuple[int, ...]:
    """Return the batch sizes of a ranking, which are the columns."""
    return tuple(sorted({it.point.batch_size for it in ranking.combinations}))


def matrix_parts(ranking: Ranking) -> Iterator[Part]:
    """Yield the matrix of a ranking; nothing where it has a single row or column."""
    rows = matrix_rows(ranking)
    if len(rows) > 1 and len(batch_sizes(ranking)) > 1:
        yield Sentence("Latency in ms by batch size:")
        yield Table(matrix_columns(ranking), rows)


CellStyle = Callable[[MatrixRow, int], str]


def matrix_columns(
    ranking: Ranking, *, by_rate: bool = False, style: CellStyle | None = None
) -> tuple[Column[MatrixRow], ...]:
    """Return a column for everything that differs between rows, and one for each batch size.

    Columns without room are left out, those of which nothing was measured first.
    """
    best = next(iter(ranking.combinations), None)
    kept = {ranking.own_batch} if best is None else {ranking.own_batch, best.point.batch_size}
    sizes = batch_sizes(ranking)
    measured = {it.point.batch_size for it in ranking.combinations if it.point.measured_ms is not None}

    def of_size(size: int) -> Column[MatrixRow]:
        unknown, is_optional = UNKNOWN if ranking.is_read else UNREAD, size not in kept
        return Column(
            batch_in_words(size) if size == sizes[0] else str(size),
            lambda row: cell_text(row.cells.get(size), by_rate=by_rate, unknown=unknown),
            style=lambda row: (style or cell_style)(row, size),
            is_optional=is_optional,
            goes_last=size in measured,
        )

    def of_row(axis: VariantAxis) -> Column[MatrixRow]:
        return Column(axis.column.title, lambda row: axis.column.cell(row.point), axis.column.kind, is_key=True)

    return (*map(of_row, _axes_of_rows(ranking)), *map(of_size, sizes))


def cell_text(it: Ranked | None, *, by_rate: bool = False, unknown: str = UNKNOWN) -> str:
    """Return the latency of a cell in ms, or its throughput: `15.00`, `~8.1-15`, `best 15.00`."""
    if it is None or it.point.latency is None:
        return unknown
    rate = PREDICTED * it.point.is_predicted + milliseconds(it.point.per_second or 0.0)
    return f"{BEST} " * it.is_best + (rate if by_rate else figure_number(it.point.found))


def cell_style(row: MatrixRow, batch_size: int) -> str:
    """Return the style of a cell: predictions, and what a bound leaves out, are muted."""
    it = row.cells.get(batch_size)
    if it is None or it.ratio is None:
        return "muted"
    return "good" if it.is_best else "muted" if it.point.is_predicted else "text"


def cell_parts(ranking: Ranking, row: MatrixRow, batch_size: int, bound_ms: float | None = None) -> Iterator[Part]:
    """Yield what is known of a cell: its measured and its estimated latency, and how it compares with the best."""
    it = row.cells.get(batch_size)
    yield Sentence(f"{words_of(_axes_of_rows(ranking), row.point)}, {batch_in_words(batch_size)}", "strong")
    if it is None or it.point.latency is None:
        reason = None if it is None else missing_figures(it.point)
        told = "; ".join(ranking.refusals) or "not measured" if reason is None else reason[0].removesuffix(": ")
        yield Sentence(told if ranking.is_read else "the model is being read in this combination")
        return
    point, found = it.point, it.point.found
    rate = f", {milliseconds(it.point.per_second or 0.0)} per second"
    age = age_words(None if found.figure is None else found.figure.between)
    told = f", {age}" if age else ""
    if point.measured_ms is not None:
        yield Fact("measured", in_ms(point.measured_ms) + rate, told)
        rate = told = ""
    if point.estimate_ms is not None:
        name = "predicted" if found.estimate.coverage.predicted else "estimate"
        yield Fact(name, estimate_text(point) + rate, f", 95 % {interval_text(point)}{told}")
    if bound_ms is not None and it.point.latency.value_ms > bound_ms:
        yield Fact("against best", f"above the bound of {bound_ms:g} ms")
    elif it.ratio is not None and len(ranking.combinations) > 1:
        reason_why = it.change.reason if it.change is not None else ""
        yield Fact("against best", against_best(it), f": {reason_why}" if reason_why else "")


def repeat_sentence(ranking: Ranking) -> str:
    """Return that the best combination is not sure yet, if another one may be as fast; else nothing."""
    rival = ranking.rival
    if rival is None:
        return ""
    return f"Repeat: {combination_name(rival, [ranking.combinations[0], rival])} may be as fast;"


def row_points(row: MatrixRow) -> list[Point]:
    """Return a row by batch size."""
    return [row.cells[size].point for size in sorted(row.cells)]


def column_points(rows: Sequence[MatrixRow], batch_size: int) -> list[Point]:
    """Return a column by number of threads, one runtime after another."""
    return [row.cells[batch_size].point for row in rows if batch_size in row.cells]


def _axes_of_rows(ranking: Ranking) -> list[VariantAxis]:
    """Return what tells rows apart: the runtime, the threads, and everything else that differs."""
    differ = _differing(ranking.combinations)
    return [it for it in _ROW_AXES if it in differ or it.column in (RUNTIME, THREADS)]
