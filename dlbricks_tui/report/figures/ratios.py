"""Latencies over end to end: figures 3 (sequential and parallel) and 10 (constructed, by granularity)."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dlbricks_tui.report import drawing
from dlbricks_tui.report.contents import ModelResult, ReportContents, ReportedModel, Series
from dlbricks_tui.report.drawing import Ink, series_style
from dlbricks_tui.report.exhibits import Cell, Exhibit, Section, table
from dlbricks_tui.report.figures.rows import WIDTH, mark, row_axes, rows_height
from dlbricks_tui.report.missing import coarser, unjudged
from dlbricks_tui.report.published import CLOSENESS, COMPOSED_SYSTEM, published_model
from dlbricks_tui.report.tracing import TRACE, trace
from dlbricks_tui.wording.numbers import percent

_AXIS = "latency over the end-to-end latency (1 is equal)"
_CLOSE = 0.05
# The axis ends here: one model that is far off must not compress all others.
_MOST = 2.0


def composed_section(contents: ReportContents) -> Section:
    """Figure 3: the sequential and the parallel sum of layers over the end-to-end latency."""
    exhibits = [_composed(series, judged) for series in contents.series if (judged := _judged(series, 1))]
    return Section(
        heading="Figure 3: sequential and parallel latency",
        anchor="figure-3",
        explanation="The sum of all layers, and the longest path through the model, each over the end-to-end latency. "
        "In a framework that runs layers one after another, the sum is near 1. The distance between both marks is the "
        "possible gain from running independent layers at the same time.",
        exhibits=tuple(exhibits),
        published=f"The authors' files have both sums for {COMPOSED_SYSTEM}, from their own layer times: hollow "
        "marks, if the system is the same.",
        missing=unjudged(contents, _judged_at(contents, 1)),
    )


def constructed_section(contents: ReportContents) -> Section:
    """Figure 10: estimates over end to end, by model and granularity."""
    exhibits = [_constructed(series) for series in contents.series if series.granularities]
    granularities = {it for series in contents.series for it in series.granularities}
    missing = unjudged(contents, {it for granularity in granularities for it in _judged_at(contents, granularity)})
    if granularities == {1}:
        missing += (coarser(contents),)
    return Section(
        heading="Figure 10: constructed latency by model and granularity",
        anchor="figure-10",
        explanation="The latency composed from bricks of at most G layers, over the end-to-end latency. Lines are 95 % "
        "intervals of the estimate at the smallest G, the band is 5 % to either side, and an arrow marks a value above "
        f"{_MOST:.0f}.",
        exhibits=tuple(exhibits),
        published=f"The paper calls its estimates {CLOSENESS}. Hollow diamonds: the sum of the layers that its "
        "authors timed one by one on the system of the same name.",
        missing=missing,
    )


def _judged_at(contents: ReportContents, granularity: int) -> set[ReportedModel]:
    return {it.reported for series in contents.series for it in _judged(series, granularity)}


def _judged(series: Series, granularity: int) -> list[ModelResult]:
    return [it for it in series.at(granularity) if it.judged]


def _composed(series: Series, judged: Sequence[ModelResult]) -> Exhibit:
    name = f"figure-3-{series.slug}"
    published = [
        it if series.paper_system == COMPOSED_SYSTEM and it is not None else None
        for it in (published_model(result.reported.table1_id) for result in judged)
    ]
    sequential = [result.found.ratio or 0.0 for result in judged]
    parallel = [_parallel_ratio(result) for result in judged]

    def paint() -> Figure:
        legend = [mark("sequential", Ink.BLUE, "o"), mark("parallel", Ink.ORANGE, "s")]
        if any(published):
            legend += [
                mark("sequential, published", Ink.STONE, "o", True),
                mark("parallel, published", Ink.STONE, "s", True),
            ]
        figure = drawing.canvas(WIDTH, rows_height(len(judged), legend))
        axes = row_axes(figure, [it.reported.label for it in judged], _AXIS, legend)
        _reference(axes)
        rows = range(len(judged))
        axes.hlines(rows, parallel, [min(it, _MOST) for it in sequential], color=Ink.STONE.light, linewidth=0.8)
        _hollow(axes, "s", [(row, it.parallel_ratio) for row, it in enumerate(published) if it])
        _hollow(axes, "o", [(row, it.sequential_ratio) for row, it in enumerate(published) if it])
        _marks(axes, Ink.ORANGE, "s", list(enumerate(parallel)))
        _marks(axes, Ink.BLUE, "o", list(enumerate(sequential)))
        axes.set_xlim(0, min(_MOST, max(1.1, *sequential, *parallel)) * 1.03)
        return figure

    rows: list[tuple[Cell, ...]] = [
        (
            *(result.reported.table1_id, result.reported.name),
            *(one, other, it.sequential_ratio if it else None, it.parallel_ratio if it else None),
            *_latencies(result),
            *trace(result),
        )
        for result, one, other, it in zip(judged, sequential, parallel, published, strict=True)
    ]
    ratios = ("sequential_ratio", "parallel_ratio", "published_sequential_ratio", "published_parallel_ratio")
    title = f"Sequential and parallel latency over end to end on {series.title}"
    return Exhibit(
        name,
        series.title,
        f"{len(judged)} models, single layers (G = 1).",
        table(("table1_id", "model", *ratios, *_LATENCIES, *TRACE), rows, TRACE),
        drawing.draw(name, title, "A row for each model, with the two latencies as marks.", paint),
    )


def _constructed(series: Series) -> Exhibit:
    name = f"figure-10-{series.slug}"
    results = [it for granularity in series.granularities for it in _judged(series, granularity)]
    known = {it.reported for it in results}
    reported_models = list(dict.fromkeys(it.reported for it in series.results if it.reported in known))
    row_of = {reported: row for row, reported in enumerate(reported_models)}
    published = {
        reported: ratio
        for reported in reported_models
        if (it := published_model(reported.table1_id)) and (ratio := it.ratio(series.paper_system)) is not None
    }

    def paint() -> Figure:
        legend = [mark(f"G = {it}", *series_style(number)) for number, it in enumerate(series.granularities)]
        if published:
            legend.append(mark("published, single layers", Ink.STONE, "D", True))
        figure = drawing.canvas(WIDTH, rows_height(len(reported_models), legend))
        axes = row_axes(figure, [it.label for it in reported_models], _AXIS, legend)
        _reference(axes)
        _hollow(axes, "D", [(row_of[reported], ratio) for reported, ratio in published.items()])
        for number, granularity in reversed(list(enumerate(series.granularities))):
            judged = _judged(series, granularity)
            ink, shape = series_style(number)
            if not number:
                rows = [row_of[it.reported] for it in judged]
                axes.hlines(rows, *zip(*map(_interval, judged), strict=True), color=ink.light, linewidth=1.1, alpha=0.6)
            _marks(axes, ink, shape, [(row_of[it.reported], it.found.ratio or 0.0) for it in judged])
        ratios = [it.found.ratio or 0.0 for it in results]
        least, most = min(0.9, *ratios, *published.values()), min(_MOST, max(1.1, *ratios, *published.values()))
        axes.set_xlim(least - 0.02, most + 0.02 * (most - least) + 0.02)
        return figure

    rows: list[tuple[Cell, ...]] = [
        (
            *(it.reported.table1_id, it.reported.name, it.granularity, it.found.ratio, *_interval(it)),
            published.get(it.reported) if it.granularity == 1 else None,
            *_latencies(it),
            *trace(it),
        )
        for it in results
    ]
    columns = ("table1_id", "model", "G", "ratio", "ratio_low", "ratio_high", "published_ratio", *_LATENCIES, *TRACE)
    accuracy = series.accuracy(series.granularities[0])
    told = (
        ""
        if accuracy is None
        else (
            f"G = {series.granularities[0]}: geometric mean {accuracy.geometric_mean:.3f}, mean absolute error "
            f"{percent(accuracy.mean_absolute_error, 1)}, {percent(accuracy.within_5_percent, 1)} of {accuracy.models} "
            "models within 5 %."
        )
    )
    title = f"Constructed latency over end to end on {series.title}"
    return Exhibit(
        name,
        series.title,
        told,
        table(columns, rows, TRACE),
        drawing.draw(name, title, f"A row for each model, with a mark for each granularity. {told}", paint),
    )


_LATENCIES = ("sequential_ms", "parallel_ms", "end_to_end_ms")


def _latencies(result: ModelResult) -> tuple[Cell, ...]:
    composed, whole = result.found.estimate.composed, result.found.end_to_end
    return (
        *((None, None) if composed is None else (composed.sequential_ms, composed.parallel_ms)),
        None if whole is None else whole.value_ms,
    )


def _parallel_ratio(result: ModelResult) -> float:
    composed, whole = result.found.estimate.composed, result.found.end_to_end
    return composed.parallel_ms / whole.value_ms if composed and whole else 0.0


def _interval(result: ModelResult) -> tuple[float, float]:
    composed, whole = result.found.estimate.composed, result.found.end_to_end
    if composed is None or whole is None:
        return 0.0, 0.0
    return composed.interval.low_ms / whole.value_ms, composed.interval.high_ms / whole.value_ms


def _reference(axes: Axes) -> None:
    axes.axvspan(1 - _CLOSE, 1 + _CLOSE, color=Ink.BAND.light, linewidth=0, zorder=0)
    axes.axvline(1.0, color=Ink.MUTED.light, linewidth=0.9, zorder=1)


def _marks(axes: Axes, ink: Ink, shape: str, places: Sequence[tuple[int, float]]) -> None:
    """Draw a mark in each row, or an arrow at the end of the axis for a value beyond it."""
    near = [(row, value) for row, value in places if value <= _MOST]
    rows, values = [row for row, _ in near], [value for _, value in near]
    axes.plot(values, rows, shape, color=ink.light, markersize=4.5, linestyle="none")
    beyond = [row for row, value in places if value > _MOST]
    axes.plot([_MOST] * len(beyond), beyond, ">", color=ink.light, markersize=4.5, linestyle="none")


def _hollow(axes: Axes, shape: str, places: Sequence[tuple[int, float]]) -> None:
    rows, values = [row for row, _ in places], [value for _, value in places]
    axes.plot(
        values, rows, shape, markersize=5.5, markerfacecolor="none", markeredgecolor=Ink.STONE.light, linestyle="none"
    )
