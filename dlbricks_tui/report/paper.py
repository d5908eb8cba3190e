"""The paper's table and figures of latencies: 1, 3 and 9 to 12, beside the published values."""

import shlex
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from dlbricks_tui.analysis.tables import ModelRow, by_execution
from dlbricks_tui.answers.analysis import results
from dlbricks_tui.answers.analysis.results import Cell
from dlbricks_tui.answers.reported import (
    BEST_SPEEDUP,
    CLOSENESS,
    COMPOSED_SYSTEM,
    LONGEST_LABEL,
    SPEEDUP,
    SYSTEMS,
    ModelResult,
    ReportContents,
    ReportedModel,
    ReportedSeries,
    file_name,
    geometric_mean,
    published_model,
)
from dlbricks_tui.documents.estimates import accuracy_columns
from dlbricks_tui.documents.parts import Column, Table, name_column
from dlbricks_tui.documents.pictures import Axis, BarRow, LegendSign, Mark, Piece, Rows
from dlbricks_tui.estimate.comparison import Accuracy
from dlbricks_tui.report import drawing
from dlbricks_tui.report.drawing import series_style
from dlbricks_tui.report.page import CsvTable, Exhibit, Section, csv_table
from dlbricks_tui.wording.answers import way_line
from dlbricks_tui.wording.numbers import model_label, or_dash, percent, task_words


def unjudged(contents: ReportContents, judged: Collection[ReportedModel]) -> tuple[str, ...]:
    """Report the models without both an estimate and an end-to-end latency on any system."""
    return _lacking(contents, judged, "measured both by bricks and end to end", "measures both")


def untimed(contents: ReportContents, timed: Collection[ReportedModel]) -> tuple[str, ...]:
    """Report the models without an end-to-end latency on any system."""
    lines = _lacking(contents, timed, "measured end to end", "measures it here")
    if timed:
        return lines
    importing = command("results", "import", "--format", "dlbricks-2019", "CHECKOUT")
    return (*lines, f"Of the fifty, {importing} imports the measurements of the paper's authors.")


def without_latencies(contents: ReportContents, unknown: Sequence[ReportedModel]) -> tuple[str, ...]:
    """Report the models without a critical path, because they have no latencies."""
    if not unknown:
        return ()
    names = " and ".join(it.label for it in unknown)
    return (f"No critical path without latencies of {names}: {_run(contents)} measures every brick once.",)


def coarser(contents: ReportContents) -> str:
    """Report that only single layers were measured."""
    return f"Granularities beyond 1 were not measured: {_run(contents, '-g', '2', '--end-to-end')} measures pairs."


def command(*words: str) -> str:
    """Return a command as pages show it."""
    return f"`{shlex.join(['dlbricks', *words])}`"


def _lacking(contents: ReportContents, known: Collection[ReportedModel], what: str, cure: str) -> tuple[str, ...]:
    count, lacking = len(contents.reported_models), len(contents.reported_models) - len(known)
    if not lacking:
        return ()
    were = f"{lacking} of {count} models {'was' if lacking == 1 else 'were'} not" if known else "No model was"
    return (f"{were} {what}: {_run(contents, '--end-to-end')} {cure}.",)


def _run(contents: ReportContents, *options: str) -> str:
    return command("run", *contents.asked, *options)


# With these, `dlbricks estimate` composes the same latency, and `bricks.csv` has the results behind it.
TRACE = ("system", "runtime", "level", "protocol", "granularity", "cut", "order", "end_to_end_result")


def trace(result: ModelResult) -> tuple[Cell, ...]:
    """Return the values that identify an estimate and its end-to-end result."""
    way, cutting = result.found.way, result.found.estimate.cutting
    how = (cutting.granularity, cutting.cut.value, cutting.order.value)
    return (way.system, way.runtime, way.level.value, way.protocol, *how, result.result_id)


def bricks_table(contents: ReportContents) -> CsvTable:
    """Return the latency of every brick in the estimates of a report, with the results behind it."""
    columns = ("system", "runtime", "level", "protocol", "brick", "context", "latency_ms", "used_by", "results")
    return csv_table(columns, list(_bricks(contents)))


_Use = tuple[float, dict[str, None], tuple[str, ...]]


def _bricks(contents: ReportContents) -> Iterator[tuple[Cell, ...]]:
    for series in contents.series:
        way = series.way
        # By brick and context: the latency, the models that use it, and the results behind it.
        used: dict[tuple[str, str], _Use] = {}
        for result in series.results:
            for part in result.found.estimate.parts:
                if part.measured is not None:
                    fresh: _Use = (part.measured.latency.value_ms, {}, part.measured.results)
                    used.setdefault(part.pair, fresh)[1][result.reported.table1_id or result.reported.name] = None
        for (brick, context), (latency_ms, users, ids) in used.items():
            named = (way.system, way.runtime, way.level.value, way.protocol)
            yield (*named, brick, context, latency_ms, "; ".join(users), " ".join(ids))


# The columns that tell the execution of a row.
EXECUTION_COLUMNS = results.MODEL_COLUMNS[1:]


class ExecutedModels(NamedTuple):
    """The models of one execution, its name for people, and one for files."""

    models: Sequence[ModelRow]
    title: str
    slug: str

    @property
    def labels(self) -> list[str]:
        """The names of the models as figures show them."""
        return [model_label(it.name, it.table1_id, LONGEST_LABEL) for it in self.models]


def executed_models(models: Sequence[ModelRow]) -> list[ExecutedModels]:
    """Return the models of each execution."""
    found: list[ExecutedModels] = []
    for alike in by_execution(models):
        way = alike[0].way
        slug = file_name(f"{way.system}-{way.runtime.partition('-')[0]}-{way.level.value}")
        beside = sum(it.slug == slug or it.slug.startswith(f"{slug}-no") for it in found)
        found.append(
            ExecutedModels(alike, way_line(way, alike[0].variant), f"{slug}-no{beside + 1}" if beside else slug)
        )
    return found


def table_row(it: ModelRow, *cells: tuple[Cell, ...]) -> tuple[Cell, ...]:
    """Return the row of a model: its name, some cells, and its execution."""
    return (it.table1_id, it.name, *(cell for held in cells for cell in held), *results.model_cells(it)[1:])


# Within 5 % of one, behind the marks of a row.
CLOSE = Piece(0.95, 1.05, "·", "░", "rest")
PUBLISHED_LAYERS = LegendSign("◇", "published, single layers", "muted")


def series_meaning(number: int, name: str) -> LegendSign:
    """Return the meaning of the sign of a series."""
    found = series_style(number)
    return LegendSign(found.sign, name, found.style)


def marked(meaning: LegendSign, value: float, most: float = float("inf")) -> Mark:
    """Return a mark at a value, or an arrow at the end of the axis for a value beyond it."""
    return Mark(min(value, most), meaning.mark if value <= most else "▶", meaning.style)


def bar_from_zero(high: float, meaning: LegendSign) -> Piece:
    """Return a bar from zero."""
    return Piece(0.0, high, meaning.mark, meaning.block, meaning.style)


def thin_line(one: float, other: float, style: str) -> Piece:
    """Return a line between two values, such as the ends of an interval."""
    return Piece(min(one, other), max(one, other), "-", "─", style)


def table1_section(contents: ReportContents) -> Section:
    """Table 1: number, task and layers of each model, with the latencies of the first series."""
    first = next(iter(contents.series), None)
    known: dict[ReportedModel, ModelResult] = {} if first is None else {it.reported: it for it in first.at(1)}
    rows: list[tuple[Cell, ...]] = []
    for reported, model in zip(contents.reported_models, contents.corpus.models, strict=True):
        theirs, task = published_model(reported.table1_id), task_words(reported.task)
        rows.append(
            (
                *(reported.table1_id, reported.name, task, model.layers, theirs.layers if theirs else None),
                model.unique_layers,
                *_latency_cells(known.get(reported)),
            )
        )
    named = ("table1_id", "model", "task", "layers", "published_layers", "unique_layers")
    columns = (*named, "sequential_ms", "end_to_end_ms", "error_percent", *TRACE)
    where = "" if first is None else f" Latencies are of {first.title}, single layers (G = 1)."
    return Section(
        heading="Table 1: the models",
        anchor="table-1",
        explanation=f"Layers are those of the model files (level written).{where}",
        exhibits=(Exhibit("table-1", "All models", "", csv_table(columns, rows, TRACE)),),
    )


def _latency_cells(result: ModelResult | None) -> tuple[Cell, ...]:
    if result is None:
        return (None,) * (3 + len(TRACE))
    found = result.found
    whole_ms = None if found.end_to_end is None else found.end_to_end.value_ms
    complete = found.estimate.coverage.complete
    error = None if found.error is None or not complete else 100 * found.error
    return (found.sequential_ms if complete else None, whole_ms, error, *trace(result))


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
