"""Figure 9: the end-to-end latency of every model on every system."""

from dlbricks_tui.answers.analyses import Cell
from dlbricks_tui.answers.reported import (
    SYSTEMS,
    ModelResult,
    ReportContents,
    ReportedModel,
    ReportedSeries,
    published_model,
)
from dlbricks_tui.documents.pictures import Axis, BarRow, LegendSign, Piece, Rows
from dlbricks_tui.report import drawing
from dlbricks_tui.report.exhibits import Exhibit, Section, csv_table
from dlbricks_tui.report.figures.executions import marked, series_meaning
from dlbricks_tui.report.missing import untimed
from dlbricks_tui.report.tracing import TRACE, trace

_NAME = "figure-9"
_PAPER = LegendSign("·", "the paper's four systems", "rest", "█")


def end_to_end_section(contents: ReportContents) -> Section:
    """Figure 9: end-to-end latencies on all systems, over the range of the paper's four."""
    timed = [(series, found) for series in contents.series if (found := _timed(series))]
    return Section(
        heading="Figure 9: end-to-end latency",
        anchor=_NAME,
        explanation="The latency of one inference of the whole model at batch 1: the 20 % trimmed mean of its samples.",
        exhibits=(_exhibit(contents, timed),) if timed else (),
        published="Grey bars: from the fastest to the slowest of the four EC2 systems in the authors' files "
        f"({', '.join(SYSTEMS)}).",
        missing=untimed(contents, {it.reported for _, found in timed for it in found}),
    )


def _timed(series: ReportedSeries) -> list[ModelResult]:
    return [it for it in series.at(1) if it.found.end_to_end is not None]


def _exhibit(contents: ReportContents, timed: list[tuple[ReportedSeries, list[ModelResult]]]) -> Exhibit:
    meanings = [series_meaning(number, series.title) for number, (series, _) in enumerate(timed)]
    latencies: dict[ReportedModel, list[tuple[LegendSign, float]]] = {}
    for meaning, (_, found) in zip(meanings, timed, strict=True):
        for it in found:
            if it.found.end_to_end is not None:
                latencies.setdefault(it.reported, []).append((meaning, it.found.end_to_end.value_ms))
    rows, ends = [], [ms for held in latencies.values() for _, ms in held]
    for reported in (it for it in contents.reported_models if it in latencies):
        published = published_model(reported.table1_id)
        pieces: tuple[Piece, ...] = ()
        if published is not None:
            theirs = published.end_to_end_ms.values()
            ends += theirs
            pieces = (Piece(min(theirs), max(theirs), _PAPER.mark, _PAPER.block, _PAPER.style),)
        rows.append(BarRow(reported.label, pieces, tuple(marked(*it) for it in latencies[reported])))
    legend = (*meanings, *((_PAPER,) if any(it.pieces for it in rows) else ()))
    says = f"A row for each of {len(rows)} models, with a mark for each of {len(timed)} systems."
    axis = Axis(min(ends) / 1.1, max(ends) * 1.1, is_log=True)
    picture = Rows("latency in ms (logarithmic)", says, axis, tuple(rows), legend)
    svg = drawing.draw(_NAME, "End-to-end latency of the models", picture)
    cells = [_row(series, result) for series, found in timed for result in found]
    columns = ("table1_id", "model", "on", "end_to_end_ms", "low_ms", "high_ms", "published_ms", *TRACE)
    return Exhibit(_NAME, "All systems", says, csv_table(columns, cells, TRACE), svg)


def _row(series: ReportedSeries, result: ModelResult) -> tuple[Cell, ...]:
    reported, latency = result.reported, result.found.end_to_end
    published = published_model(reported.table1_id)
    theirs = None if published is None else published.end_to_end_ms.get(series.paper_system)
    return (
        reported.table1_id,
        reported.name,
        series.title,
        *(latency or (None, None, None)),
        theirs,
        *trace(result),
    )
