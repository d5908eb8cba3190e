"""A model by runtime, threads and batch size as a matrix, and what one of its cells says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dlbricks_tui.documents.parts import Column, Fact, Part, Sentence, Table
from dlbricks_tui.documents.ranking import AXES, VariantAxis, against_best, combination_name, differing
from dlbricks_tui.documents.variants import BATCH, RUNTIME, THREADS, interval_text, missing_figures
from dlbricks_tui.runtime.variant import batch_in_words
from dlbricks_tui.wording.numbers import PREDICTED, age_words, in_ms, milliseconds

if TYPE_CHECKING:
    from dlbricks_tui.estimate.ranking import Point, Ranked, Ranking

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
        return Column(
            batch_in_words(size) if size == sizes[0] else str(size),
            lambda row: cell_text(row.cells.get(size), by_rate=by_rate, unknown=UNKNOWN if ranking.is_read else UNREAD),
            style=lambda row: (style or cell_style)(row, size),
            is_optional=size not in kept,
            goes_last=size in measured,
        )

    def of_row(axis: VariantAxis) -> Column[MatrixRow]:
        return Column(axis.column.title, lambda row: axis.column.cell(row.point), axis.column.kind, is_key=True)

    return (*map(of_row, _axes_of_rows(ranking)), *map(of_size, sizes))


def cell_text(it: Ranked | None, *, by_rate: bool = False, unknown: str = UNKNOWN) -> str:
    """Return the latency of a cell in ms, or its throughput: `15.00`, `~15.00`, `best 15.00`."""
    if it is None or it.comparable.latency is None:
        return unknown
    value = it.per_second or 0.0 if by_rate else it.comparable.latency.value_ms
    return f"{BEST} " * it.is_best + PREDICTED * it.comparable.is_predicted + milliseconds(value)


def cell_style(row: MatrixRow, batch_size: int) -> str:
    """Return the style of a cell: predictions, and what a bound leaves out, are muted."""
    it = row.cells.get(batch_size)
    if it is None or it.ratio is None:
        return "muted"
    return "good" if it.is_best else "muted" if it.comparable.is_predicted else "text"


def cell_parts(ranking: Ranking, row: MatrixRow, batch_size: int, bound_ms: float | None = None) -> Iterator[Part]:
    """Yield what is known of a cell: its measured and its estimated latency, and how it compares with the best."""
    it = row.cells.get(batch_size)
    words = [each for axis in _axes_of_rows(ranking) if (each := axis.words(row.point))]
    yield Sentence(", ".join([*words, batch_in_words(batch_size)]), "strong")
    if not ranking.is_read and (it is None or it.comparable.latency is None):
        yield Sentence("the model is being read in this combination")
        return
    if it is None or it.comparable.latency is None:
        reason = None if it is None else missing_figures(it.point)
        yield Sentence(
            "; ".join(ranking.refusals) or "not measured" if reason is None else reason[0].removesuffix(": ")
        )
        return
    point, found = it.point, it.point.found
    rate, age = f", {milliseconds(it.per_second or 0.0)} per second", age_words(found.measured_between)
    told = f", {age}" if age else ""
    if point.measured_ms is not None:
        yield Fact("measured", in_ms(point.measured_ms) + rate, told)
        rate = told = ""
    if point.estimate_ms is not None:
        name = "predicted" if found.estimate.coverage.predicted else "estimate"
        yield Fact(name, in_ms(point.estimate_ms) + rate, f", 95 % {interval_text(point)}{told}")
    if bound_ms is not None and it.comparable.latency.value_ms > bound_ms:
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
    differ = differing(ranking.combinations)
    return [it for it in _ROW_AXES if it in differ or it.column in (RUNTIME, THREADS)]
