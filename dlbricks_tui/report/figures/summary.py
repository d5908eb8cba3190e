"""Figures 11 (accuracy over all models) and 12 (speed-up)."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from dlbricks_tui.answers.analyses import Cell
from dlbricks_tui.answers.reported import (
    BEST_SPEEDUP,
    CLOSENESS,
    SPEEDUP,
    ReportContents,
    ReportedSeries,
    geometric_mean,
)
from dlbricks_tui.documents.estimates import accuracy_columns
from dlbricks_tui.documents.parts import Column, Table, name_column
from dlbricks_tui.documents.pictures import Axis, BarRow, Rows
from dlbricks_tui.estimate.comparison import Accuracy
from dlbricks_tui.report import drawing
from dlbricks_tui.report.exhibits import Exhibit, Section, csv_table
from dlbricks_tui.report.figures.executions import CLOSE, PUBLISHED_LAYERS, marked, series_meaning
from dlbricks_tui.report.missing import unjudged
from dlbricks_tui.wording.numbers import or_dash

_TRACE = ("system", "runtime", "level", "protocol", "granularity")


class Judged(NamedTuple):
    """The accuracy of a series at a granularity, over all its models."""

    series: ReportedSeries
    granularity: int
    accuracy: Accuracy

    @property
    def paper_system(self) -> str:
        """The system in the paper; empty for other granularities, of which the paper has no values."""
        return self.series.paper_system if self.granularity == 1 else ""


def judged(contents: ReportContents) -> list[Judged]:
    """Return the accuracy of every series at every granularity with judged models."""
    return [
        Judged(series, granularity, found)
        for series in contents.series
        for granularity in series.granularities
        if (found := series.accuracy(granularity)) is not None
    ]


def closeness_section(contents: ReportContents, found: Sequence[Judged]) -> Section:
    """Figure 11: the geometric mean of estimates over end to end."""
    return _section(
        contents,
        found,
        "Figure 11: geometric mean over the models",
        "figure-11",
        "The geometric mean, over all models, of the constructed latency over the end-to-end latency: 1 is exact on "
        "average. The band is 5 % to either side.",
        f"The paper calls its estimates {CLOSENESS}. Hollow diamonds: the same mean from the authors' files, of single "
        "layers.",
        lambda it: it.geometric_mean,
        geometric_mean,
        is_around_one=True,
    )


def speedup_section(contents: ReportContents, found: Sequence[Judged]) -> Section:
    """Figure 12: the sum of end-to-end latencies over that of the unique bricks."""
    return _section(
        contents,
        [it for it in found if it.accuracy.speedup is not None],
        "Figure 12: speed-up of benchmarking",
        "figure-12",
        "The sum of all end-to-end latencies over the sum of all unique bricks: how many times less there is to run "
        "when every brick is run as often as every model would have been.",
        f"The paper says {BEST_SPEEDUP}. Hollow diamonds: the same quotient from the authors' files, of single layers.",
        lambda it: it.speedup or 0.0,
        SPEEDUP.get,
        is_around_one=False,
    )


def summary_table(found: Sequence[Judged]) -> Table[Judged]:
    """Return the accuracy over all models, with a line for each series and granularity."""
    return Table(
        (
            name_column("system", lambda it: it.series.title),
            Column("G", lambda it: it.granularity),
            *accuracy_columns(lambda it: it.accuracy),
            Column("published mean", lambda it: or_dash("{:.3f}".format, geometric_mean(it.paper_system))),
            Column("published speed-up", lambda it: or_dash("{:.2f}".format, SPEEDUP.get(it.paper_system))),
        ),
        found,
    )


def _section(
    contents: ReportContents,
    found: Sequence[Judged],
    heading: str,
    name: str,
    explanation: str,
    published: str,
    value_of: Callable[[Accuracy], float],
    published_of: Callable[[str], float | None],
    *,
    is_around_one: bool,
) -> Section:
    if not found:
        return Section(heading, name, explanation, (), published, unjudged(contents, ()))
    title = heading.partition(": ")[2]
    values = [value_of(it.accuracy) for it in found]
    granularities = sorted({it.granularity for it in found})
    styles = {it: series_meaning(number, f"G = {it}") for number, it in enumerate(granularities)}
    drawn, theirs = [], []
    for series in dict.fromkeys(it.series for it in found):
        held = [(it, value) for it, value in zip(found, values, strict=True) if it.series is series]
        known = published_of(series.paper_system)
        theirs += [known] if known else []
        marks = [marked(PUBLISHED_LAYERS, known)] if known else []
        marks += [marked(styles[it.granularity], value) for it, value in held]
        told = f"{held[0][1]:.3g}" if len(granularities) == 1 else ""
        drawn.append(BarRow(_short(series.title), (CLOSE,) if is_around_one else (), tuple(marks), told))
    axis = Axis(0.0, 1.15 * max([*values, *theirs]))
    if is_around_one:
        reach = max(0.1, *(abs(it - 1.0) for it in (*values, *theirs))) * 1.25
        axis = Axis(1.0 - reach, 1.0 + reach)
    legend = (*styles.values(), *((PUBLISHED_LAYERS,) if theirs else ()))
    says = "A row for each system, with a mark for each granularity."
    picture = Rows(title, says, axis, tuple(drawn), legend, 1.0 if is_around_one else None)
    rows: list[tuple[Cell, ...]] = [
        (
            *(it.series.title, it.granularity, it.accuracy.models, value, published_of(it.paper_system)),
            *(it.series.way.system, it.series.way.runtime, it.series.way.level.value, it.series.way.protocol),
            it.granularity,
        )
        for it, value in zip(found, values, strict=True)
    ]
    columns = ("on", "G", "models", "value", "published_value", *_TRACE)
    svg = drawing.draw(name, title, picture)
    exhibit = Exhibit(name, title, says, csv_table(columns, rows, _TRACE), svg)
    return Section(heading, name, explanation, (exhibit,), published)


def _short(text: str, most: int = 38) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
