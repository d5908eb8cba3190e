"""Figure 9: the end-to-end latency of every model on every system."""

from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from dlbricks_tui.report import drawing
from dlbricks_tui.report.contents import ModelResult, ReportContents, ReportedModel, Series
from dlbricks_tui.report.drawing import Ink, series_style
from dlbricks_tui.report.exhibits import Cell, Exhibit, Section, table
from dlbricks_tui.report.figures.rows import WIDTH, mark, row_axes, rows_height
from dlbricks_tui.report.missing import untimed
from dlbricks_tui.report.published import SYSTEMS, published_model
from dlbricks_tui.report.tracing import TRACE, trace

_NAME = "figure-9"


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


def _timed(series: Series) -> list[ModelResult]:
    return [it for it in series.at(1) if it.found.end_to_end is not None]


def _exhibit(contents: ReportContents, timed: list[tuple[Series, list[ModelResult]]]) -> Exhibit:
    known = {result.reported for _, found in timed for result in found}
    reported_models = [it for it in contents.reported_models if it in known]
    row_of = {reported: row for row, reported in enumerate(reported_models)}
    ranges = {reported: limits for reported in reported_models if (limits := _range_ms(reported)) is not None}

    def paint() -> Figure:
        legend: list[Artist] = [mark(it.title, *series_style(number)) for number, (it, _) in enumerate(timed)]
        legend += [Patch(color=Ink.GRID.light, label="the paper's four systems")] if ranges else []
        figure = drawing.canvas(WIDTH, rows_height(len(reported_models), legend))
        axes = row_axes(figure, [it.label for it in reported_models], "latency in ms (logarithmic)", legend)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}")
        if ranges:
            rows = [row_of[reported] for reported in ranges]
            axes.hlines(rows, *zip(*ranges.values(), strict=True), color=Ink.GRID.light, linewidth=7, zorder=1)
        for number, (_, found) in enumerate(timed):
            ink, shape = series_style(number)
            latencies = [it.found.end_to_end.value_ms for it in found if it.found.end_to_end]
            rows = [row_of[it.reported] for it in found]
            axes.plot(latencies, rows, shape, color=ink.light, markersize=4.5, linestyle="none")
        return figure

    rows = [_row(series, result) for series, found in timed for result in found]
    columns = ("table1_id", "model", "on", "end_to_end_ms", "low_ms", "high_ms", "published_ms", *TRACE)
    description = f"A row for each of {len(reported_models)} models, with a mark for each of {len(timed)} systems."
    svg = drawing.draw(_NAME, "End-to-end latency of the models", description, paint)
    return Exhibit(_NAME, "All systems", description, table(columns, rows, TRACE), svg)


def _row(series: Series, result: ModelResult) -> tuple[Cell, ...]:
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


def _range_ms(reported: ReportedModel) -> tuple[float, float] | None:
    published = published_model(reported.table1_id)
    if published is None:
        return None
    return min(published.end_to_end_ms.values()), max(published.end_to_end_ms.values())
