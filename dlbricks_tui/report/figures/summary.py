"""Figures 11 (accuracy over all models) and 12 (speed-up)."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dlbricks_tui.estimate.accuracy import Accuracy
from dlbricks_tui.report import drawing
from dlbricks_tui.report.contents import ReportContents, Series
from dlbricks_tui.report.drawing import Ink, series_style
from dlbricks_tui.report.exhibits import NOTHING, Cell, Exhibit, Section, Table, table
from dlbricks_tui.report.figures.rows import WIDTH, mark, row_axes, row_label, rows_height
from dlbricks_tui.report.missing import unjudged
from dlbricks_tui.report.published import BEST_SPEEDUP, CLOSENESS, SPEEDUP, geometric_mean
from dlbricks_tui.wording.numbers import percent, signed_percent

_TRACE = ("system", "runtime", "level", "protocol", "granularity")


class Judged(NamedTuple):
    """The accuracy of a series at a granularity, over all its models."""

    series: Series
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
        _around_one,
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
        _from_zero,
    )


def summary_table(found: Sequence[Judged]) -> Table:
    """Return the accuracy over all models, with a line for each series and granularity."""
    named = ("system", "G", "models", "geometric mean", "published", "mean error", "worst error", "within 5 %")
    rows = []
    for one in found:
        it, system = one.accuracy, one.paper_system
        means = (f"{it.geometric_mean:.3f}", _digits(geometric_mean(system), 3))
        errors = (percent(it.mean_absolute_error, 1), signed_percent(it.worst_error))
        rest = (percent(it.within_5_percent), _digits(it.speedup, 2), _digits(SPEEDUP.get(system), 2))
        rows.append((one.series.title, one.granularity, it.models, *means, *errors, *rest))
    return table((*named, "speed-up", "published"), rows)


def _digits(value: float | None, digits: int) -> str:
    return NOTHING if value is None else f"{value:.{digits}f}"


def _section(
    contents: ReportContents,
    found: Sequence[Judged],
    heading: str,
    name: str,
    explanation: str,
    published: str,
    value_of: Callable[[Accuracy], float],
    published_of: Callable[[str], float | None],
    scale: Callable[[Axes, Sequence[float]], None],
) -> Section:
    title = heading.partition(": ")[2]
    values = [value_of(it.accuracy) for it in found]
    all_series = list(dict.fromkeys(it.series for it in found))
    granularities = sorted({it.granularity for it in found})
    theirs = [(row, it) for row, series in enumerate(all_series) if (it := published_of(series.paper_system))]

    def paint() -> Figure:
        legend = [mark(f"G = {it}", *series_style(number)) for number, it in enumerate(granularities)]
        legend += [mark("published, single layers", Ink.STONE, "D", True)] if theirs else []
        # Two rows for each series, to space them out.
        figure = drawing.canvas(WIDTH, rows_height(2 * len(all_series), legend))
        axes = row_axes(figure, [""] * 2 * len(all_series), title, legend)
        for row, series in enumerate(all_series):
            row_label(axes, 2 * row + 0.5, _short(series.title))
        scale(axes, [*values, *(value for _, value in theirs)])
        for row, value in theirs:
            axes.plot(value, 2 * row + 0.5, "D", markersize=8, color=Ink.STONE.light, markerfacecolor="none")
        for it, value in zip(found, values, strict=True):
            ink, shape = series_style(granularities.index(it.granularity))
            place = (value, 2 * all_series.index(it.series) + 0.5)
            axes.plot(*place, shape, color=ink.light, markersize=5.5)
            if len(granularities) == 1:
                axes.annotate(f"{value:.3g}", place, (9, -2.8), textcoords="offset points", fontsize=7.5)
        return figure

    rows: list[tuple[Cell, ...]] = [
        (
            *(it.series.title, it.granularity, it.accuracy.models, value, published_of(it.paper_system)),
            *(it.series.way.system, it.series.way.runtime, it.series.way.level.value, it.series.way.protocol),
            it.granularity,
        )
        for it, value in zip(found, values, strict=True)
    ]
    columns = ("on", "G", "models", "value", "published_value", *_TRACE)
    told = "A row for each system, with a mark for each granularity."
    if not found:
        return Section(heading, name, explanation, (), published, unjudged(contents, ()))
    exhibit = Exhibit(name, title, told, table(columns, rows, _TRACE), drawing.draw(name, title, told, paint))
    return Section(heading, name, explanation, (exhibit,), published)


def _around_one(axes: Axes, values: Sequence[float]) -> None:
    axes.axvspan(0.95, 1.05, color=Ink.BAND.light, linewidth=0, zorder=0)
    axes.axvline(1.0, color=Ink.MUTED.light, linewidth=0.9, zorder=1)
    reach = max(0.1, *(abs(value - 1) for value in values)) * 1.25
    axes.set_xlim(1 - reach, 1 + reach)


def _from_zero(axes: Axes, values: Sequence[float]) -> None:
    axes.set_xlim(0, max(values) * 1.15)


def _short(text: str, most: int = 38) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
