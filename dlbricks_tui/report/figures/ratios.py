"""Latencies over end to end: figures 3 (sequential and parallel) and 10 (constructed, by granularity)."""

from collections.abc import Sequence

from dlbricks_tui.answers.analyses import Cell
from dlbricks_tui.answers.reported import (
    CLOSENESS,
    COMPOSED_SYSTEM,
    ModelResult,
    ReportContents,
    ReportedModel,
    ReportedSeries,
    published_model,
)
from dlbricks_tui.documents.pictures import Axis, BarRow, LegendSign, Rows
from dlbricks_tui.report import drawing
from dlbricks_tui.report.exhibits import Exhibit, Section, csv_table
from dlbricks_tui.report.figures.executions import CLOSE, PUBLISHED_LAYERS, marked, series_meaning, thin_line
from dlbricks_tui.report.missing import coarser, unjudged
from dlbricks_tui.report.tracing import TRACE, trace
from dlbricks_tui.wording.numbers import percent

_AXIS = "latency over the end-to-end latency (1 is equal)"
# The axis ends here: one model that is far off must not compress all others.
_MOST = 2.0
_SEQUENTIAL, _PARALLEL = LegendSign("●", "sequential", "bar"), LegendSign("■", "parallel", "bad")
_PUBLISHED = LegendSign("○", "sequential, published", "muted"), LegendSign("□", "parallel, published", "muted")


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


def _judged(series: ReportedSeries, granularity: int) -> list[ModelResult]:
    return [it for it in series.at(granularity) if it.judged]


def _composed(series: ReportedSeries, judged: Sequence[ModelResult]) -> Exhibit:
    name = f"figure-3-{series.slug}"
    published = [
        it if series.paper_system == COMPOSED_SYSTEM and it is not None else None
        for it in (published_model(result.reported.table1_id) for result in judged)
    ]
    sequential = [result.found.ratio or 0.0 for result in judged]
    parallel = [_parallel_ratio(result) for result in judged]

    rows = [
        BarRow(
            result.reported.label,
            (CLOSE, thin_line(other, min(one, _MOST), "muted")),
            (
                *((marked(_PUBLISHED[1], it.parallel_ratio), marked(_PUBLISHED[0], it.sequential_ratio)) if it else ()),
                marked(_PARALLEL, other, _MOST),
                marked(_SEQUENTIAL, one, _MOST),
            ),
        )
        for result, one, other, it in zip(judged, sequential, parallel, published, strict=True)
    ]
    legend = (_SEQUENTIAL, _PARALLEL, *(_PUBLISHED if any(published) else ()))
    says = "A row for each model, with the two latencies as marks."
    picture = Rows(
        _AXIS, says, Axis(0.0, 1.03 * min(_MOST, max(1.1, *sequential, *parallel))), tuple(rows), legend, 1.0
    )
    cells: list[tuple[Cell, ...]] = [
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
        csv_table(("table1_id", "model", *ratios, *_LATENCIES, *TRACE), cells, TRACE),
        drawing.draw(name, title, picture),
    )


def _constructed(series: ReportedSeries) -> Exhibit:
    name = f"figure-10-{series.slug}"
    results = [it for granularity in series.granularities for it in _judged(series, granularity)]
    reported_models = dict.fromkeys(it.reported for it in series.results if it.judged)
    published = {
        reported: ratio
        for reported in reported_models
        if (it := published_model(reported.table1_id)) and (ratio := it.ratio(series.paper_system)) is not None
    }

    styles = {it: series_meaning(number, f"G = {it}") for number, it in enumerate(series.granularities)}
    rows = []
    for reported in reported_models:
        held = [it for it in results if it.reported is reported]
        least = [it for it in held if it.granularity == series.granularities[0]]
        theirs = published.get(reported)
        rows.append(
            BarRow(
                reported.label,
                (CLOSE, *(thin_line(*_interval(it), "bar") for it in least)),
                (
                    *([] if theirs is None else [marked(PUBLISHED_LAYERS, theirs, _MOST)]),
                    *(marked(styles[it.granularity], it.found.ratio or 0.0, _MOST) for it in reversed(held)),
                ),
            )
        )
    ratios = [*(it.found.ratio or 0.0 for it in results), *published.values()]
    axis = Axis(min(0.9, *ratios) - 0.02, min(_MOST, max(1.1, *ratios)) + 0.02)
    legend = (*styles.values(), *((PUBLISHED_LAYERS,) if published else ()))
    cells: list[tuple[Cell, ...]] = [
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
    says = f"A row for each model, with a mark for each granularity. {told}"
    picture = Rows(_AXIS, says, axis, tuple(rows), legend, 1.0)
    title = f"Constructed latency over end to end on {series.title}"
    return Exhibit(
        name,
        series.title,
        told,
        csv_table(columns, cells, TRACE),
        drawing.draw(name, title, picture),
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
