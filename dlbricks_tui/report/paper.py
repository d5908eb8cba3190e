"""The paper's table and figures of latencies: 1, 3 and 9 to 12, beside the published values."""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import NamedTuple

from dlbricks_tui.api.analyses import Cell
from dlbricks_tui.api.reported import (
    BEST_SPEEDUP,
    CLOSENESS,
    COMPOSED_SYSTEM,
    SPEEDUP,
    SYSTEMS,
    ModelResult,
    ReportContents,
    ReportedModel,
    ReportedSeries,
    geometric_mean,
    published_model,
)
from dlbricks_tui.documents.estimates import accuracy_columns
from dlbricks_tui.documents.parts import Column, Table, name_column
from dlbricks_tui.documents.pictures import Axis, BarRow, LegendSign, Mark, Piece, Rows
from dlbricks_tui.estimate.comparison import Accuracy
from dlbricks_tui.printable import shell_words
from dlbricks_tui.report.drawing import draw, series_meaning
from dlbricks_tui.report.page import CsvTable, Exhibit, Section
from dlbricks_tui.wording.numbers import counted, or_dash, percent, task_words

# With these, `dlbricks estimate` composes the same latency, and `bricks.csv` has the results behind it.
_TRACE = ("system", "runtime", "level", "protocol", "granularity", "cut", "order", "end_to_end_result")
_LATENCIES = ("sequential_ms", "parallel_ms", "end_to_end_ms")
_AXIS = "latency over the end-to-end latency (1 is equal)"
# The axis ends here: one model that is far off must not compress all others.
_MOST = 2.0
_LONGEST_SERIES = 38
# Within 5 % of one, behind the marks of a row.
_CLOSE = Piece(0.95, 1.05, "·", "░", "rest")
_PAPER = LegendSign("·", "the paper's four systems", "rest", "█")
_PUBLISHED_LAYERS = LegendSign("◇", "published, single layers", "muted")
_SEQUENTIAL, _PARALLEL = LegendSign("●", "sequential", "bar"), LegendSign("■", "parallel", "bad")
_PUBLISHED = LegendSign("○", "sequential, published", "muted"), LegendSign("□", "parallel, published", "muted")


def command(*words: str) -> str:
    """Return a command as pages show it."""
    return f"`{shell_words(['dlbricks', *words])}`"


def run_command(contents: ReportContents, *options: str) -> str:
    """Return the command that measures the models of a report."""
    return command("run", *contents.asked, *options)


def marked(meaning: LegendSign, value: float, most: float = float("inf")) -> Mark:
    """Return a mark at a value, or an arrow at the end of the axis for a value beyond it."""
    return Mark(min(value, most), meaning.mark if value <= most else "▶", meaning.style)


def thin_line(one: float, other: float, style: str) -> Piece:
    """Return a line between two values, such as the ends of an interval."""
    return Piece(min(one, other), max(one, other), "-", "─", style)


def bricks_table(contents: ReportContents) -> CsvTable:
    """Return the latency of every brick in the estimates of a report, with the results behind it."""
    columns = ("system", "runtime", "level", "protocol", "brick", "context", "latency_ms", "used_by", "results")
    return CsvTable(columns, list(_bricks(contents)))


def _bricks(contents: ReportContents) -> Iterator[tuple[Cell, ...]]:
    for series in contents.series:
        way = series.way
        # By brick and context: the latency, the models that use it, and the results behind it.
        used: dict[tuple[str, str], tuple[float, dict[str, None], tuple[str, ...]]] = {}
        for result in series.results:
            for part in result.found.estimate.parts:
                if part.measured is not None:
                    fresh = (part.measured.latency.value_ms, dict[str, None](), part.measured.results)
                    used.setdefault(part.pair, fresh)[1][result.reported.table1_id or result.reported.name] = None
        for (brick, context), (latency_ms, users, results) in used.items():
            named = (way.system, way.runtime, way.level.value, way.protocol)
            yield (*named, brick, context, latency_ms, "; ".join(users), " ".join(results))


def table1_section(contents: ReportContents) -> Section:
    """Table 1: number, task and layers of each model, with the latencies of the first series."""
    first = next(iter(contents.series), None)
    known: dict[ReportedModel, ModelResult] = {} if first is None else {it.reported: it for it in first.at(1)}
    rows: list[tuple[Cell, ...]] = []
    for reported, model in zip(contents.reported_models, contents.corpus.models, strict=True):
        theirs, result = published_model(reported.table1_id), known.get(reported)
        latencies: tuple[Cell, ...] = (None,) * (3 + len(_TRACE))
        if result is not None:
            found, is_complete = result.found, result.found.estimate.coverage.complete
            error = None if found.error is None or not is_complete else 100 * found.error
            sequential_ms = found.sequential_ms if is_complete else None
            latencies = (sequential_ms, _whole_ms(result), error, *_trace(result))
        named = (reported.table1_id, reported.name, task_words(reported.task))
        rows.append((*named, model.layers, theirs.layers if theirs else None, model.unique_layers, *latencies))
    columns = (
        *("table1_id", "model", "task", "layers", "published_layers", "unique_layers"),
        *("sequential_ms", "end_to_end_ms", "error_percent", *_TRACE),
    )
    where = "" if first is None else f" Latencies are of {first.title}, single layers (G = 1)."
    return Section(
        heading="Table 1: the models",
        anchor="table-1",
        explanation=f"Layers are those of the model files (level written).{where}",
        exhibits=(Exhibit("table-1", "All models", "", CsvTable(columns, rows, _TRACE)),),
    )


def end_to_end_section(contents: ReportContents) -> Section:
    """Figure 9: end-to-end latencies on all systems, over the range of the paper's four."""
    timed = [
        (series, found)
        for series in contents.series
        if (found := [it for it in series.at(1) if it.found.end_to_end is not None])
    ]
    missing = _lacking(contents, {it.reported for _, held in timed for it in held}, "end to end", "measures it here")
    if not timed:
        importing = command("results", "import", "--format", "dlbricks-2019", "CHECKOUT")
        missing = (*missing, f"Of the fifty, {importing} imports the measurements of the paper's authors.")
    return Section(
        heading="Figure 9: end-to-end latency",
        anchor="figure-9",
        explanation="The latency of one inference of the whole model at batch 1: the 20 % trimmed mean of its samples.",
        exhibits=(_end_to_end(contents, timed),) if timed else (),
        published="Grey bars: from the fastest to the slowest of the four EC2 systems in the authors' files "
        f"({', '.join(SYSTEMS)}).",
        missing=missing,
    )


def _end_to_end(contents: ReportContents, timed: Sequence[tuple[ReportedSeries, list[ModelResult]]]) -> Exhibit:
    meanings = [series_meaning(number, series.title) for number, (series, _) in enumerate(timed)]
    latencies: dict[ReportedModel, list[tuple[LegendSign, float]]] = {}
    cells: list[tuple[Cell, ...]] = []
    for meaning, (series, found) in zip(meanings, timed, strict=True):
        for it in found:
            latencies.setdefault(it.reported, []).append((meaning, _whole_ms(it) or 0.0))
            published = published_model(it.reported.table1_id)
            theirs = None if published is None else published.end_to_end_ms.get(series.paper_system)
            whole = it.found.end_to_end or (None, None, None)
            cells.append((it.reported.table1_id, it.reported.name, series.title, *whole, theirs, *_trace(it)))
    rows, ends = [], [ms for held in latencies.values() for _, ms in held]
    for reported in (it for it in contents.reported_models if it in latencies):
        published = published_model(reported.table1_id)
        pieces: tuple[Piece, ...] = ()
        if published is not None:
            of_paper = published.end_to_end_ms.values()
            ends += of_paper
            pieces = (_PAPER.piece(min(of_paper), max(of_paper)),)
        rows.append(BarRow(reported.label, pieces, tuple(marked(*it) for it in latencies[reported])))
    legend = (*meanings, *((_PAPER,) if any(it.pieces for it in rows) else ()))
    says = "A row for each model, with a mark for each way in which it was measured."
    axis = Axis(min(ends) / 1.1, max(ends) * 1.1, is_log=True)
    picture = Rows("latency in ms (logarithmic)", says, axis, tuple(rows), legend)
    columns = ("table1_id", "model", "on", "end_to_end_ms", "low_ms", "high_ms", "published_ms", *_TRACE)
    svg = draw("figure-9", "End-to-end latency of the models", picture)
    return Exhibit("figure-9", "All systems", says, CsvTable(columns, cells, _TRACE), svg)


def composed_section(contents: ReportContents) -> Section:
    """Figure 3: the sequential and the parallel sum of layers over the end-to-end latency."""
    return Section(
        heading="Figure 3: sequential and parallel latency",
        anchor="figure-3",
        explanation="The sum of all layers, and the longest path through the model, each over the end-to-end latency. "
        "In a framework that runs layers one after another, the sum is near 1. The distance between both marks is the "
        "possible gain from running independent layers at the same time.",
        exhibits=tuple(_composed(series, judged) for series in contents.series if (judged := _judged(series, 1))),
        published=f"The authors' files have both sums for {COMPOSED_SYSTEM}, from their own layer times: hollow "
        "marks, if the system is the same.",
        missing=_unjudged(contents, {it.reported for series in contents.series for it in _judged(series, 1)}),
    )


def constructed_section(contents: ReportContents) -> Section:
    """Figure 10: estimates over end to end, by model and granularity."""
    granularities = {it for series in contents.series for it in series.granularities}
    judged = {it.reported for series in contents.series for each in granularities for it in _judged(series, each)}
    missing = _unjudged(contents, judged)
    if granularities == {1}:
        run = run_command(contents, "-g", "2", "--end-to-end")
        missing = (*missing, f"Granularities beyond 1 were not measured: {run} measures pairs.")
    return Section(
        heading="Figure 10: constructed latency by model and granularity",
        anchor="figure-10",
        explanation="The latency composed from bricks of at most G layers, over the end-to-end latency. Lines are 95 % "
        "intervals of the estimate at the smallest G, the band is 5 % to either side, and an arrow marks a value above "
        f"{_MOST:.0f}.",
        exhibits=tuple(_constructed(series) for series in contents.series if series.granularities),
        published=f"The paper calls its estimates {CLOSENESS}. Hollow diamonds: the sum of the layers that its "
        "authors timed one by one on the system of the same name.",
        missing=missing,
    )


def _judged(series: ReportedSeries, granularity: int) -> list[ModelResult]:
    return [it for it in series.at(granularity) if it.judged]


def _composed(series: ReportedSeries, judged: Sequence[ModelResult]) -> Exhibit:
    name = f"figure-3-{series.slug}"
    rows: list[BarRow] = []
    cells: list[tuple[Cell, ...]] = []
    for result in judged:
        one, other = result.found.ratio or 0.0, _over_whole(result)[0]
        it = published_model(result.reported.table1_id) if series.paper_system == COMPOSED_SYSTEM else None
        theirs = () if it is None else (it.sequential_ratio, it.parallel_ratio)
        published = tuple(map(marked, _PUBLISHED, theirs))[::-1]
        marks = (*published, marked(_PARALLEL, other, _MOST), marked(_SEQUENTIAL, one, _MOST))
        rows.append(BarRow(result.reported.label, (_CLOSE, thin_line(other, min(one, _MOST), "muted")), marks))
        ratios = (one, other, *(theirs or (None, None)))
        cells.append((result.reported.table1_id, result.reported.name, *ratios, *_latencies(result), *_trace(result)))
    legend = (_SEQUENTIAL, _PARALLEL, *(_PUBLISHED if any(len(it.marks) > 2 for it in rows) else ()))
    most = max(1.1, *(float(ratio or 0.0) for row in cells for ratio in row[2:4]))
    says = "A row for each model, with the two latencies as marks."
    picture = Rows(_AXIS, says, Axis(0.0, 1.03 * min(_MOST, most)), tuple(rows), legend, 1.0)
    columns = ("sequential_ratio", "parallel_ratio", "published_sequential_ratio", "published_parallel_ratio")
    numbers = CsvTable(("table1_id", "model", *columns, *_LATENCIES, *_TRACE), cells, _TRACE)
    svg = draw(name, f"Sequential and parallel latency over end to end on {series.title}", picture)
    return Exhibit(name, series.title, f"{counted(len(judged), 'model')}, single layers (G = 1).", numbers, svg)


def _constructed(series: ReportedSeries) -> Exhibit:
    name, least = f"figure-10-{series.slug}", series.granularities[0]
    results = [it for granularity in series.granularities for it in _judged(series, granularity)]
    reported_models = dict.fromkeys(it.reported for it in series.results if it.judged)
    published = {
        reported: ratio
        for reported in reported_models
        if (own := published_model(reported.table1_id)) and (ratio := own.ratio(series.paper_system)) is not None
    }
    styles = {it: series_meaning(number, f"G = {it}") for number, it in enumerate(series.granularities)}
    rows = []
    for reported in reported_models:
        held = [it for it in results if it.reported is reported]
        intervals = [thin_line(*_over_whole(it)[1:], "bar") for it in held if it.granularity == least]
        marks = [marked(_PUBLISHED_LAYERS, published[reported], _MOST)] if reported in published else []
        marks += [marked(styles[it.granularity], it.found.ratio or 0.0, _MOST) for it in reversed(held)]
        rows.append(BarRow(reported.label, (_CLOSE, *intervals), tuple(marks)))
    cells: list[tuple[Cell, ...]] = []
    for it in results:
        theirs = published.get(it.reported) if it.granularity == 1 else None
        ratios = (it.found.ratio, *_over_whole(it)[1:], theirs)
        named = (it.reported.table1_id, it.reported.name, it.granularity)
        cells.append((*named, *ratios, *_latencies(it), *_trace(it)))
    told = ""
    if (found := series.accuracy(least)) is not None:
        told = (
            f"G = {least}: geometric mean {found.geometric_mean:.3f}, mean absolute error "
            f"{percent(found.mean_absolute_error, 1)}, {percent(found.within_5_percent, 1)} of "
            f"{counted(found.models, 'model')} within 5 %."
        )
    values = [*(it.found.ratio or 0.0 for it in results), *published.values()]
    axis = Axis(min(0.9, *values) - 0.02, min(_MOST, max(1.1, *values)) + 0.02)
    legend = (*styles.values(), *((_PUBLISHED_LAYERS,) if published else ()))
    says = f"A row for each model, with a mark for each granularity. {told}"
    picture = Rows(_AXIS, says, axis, tuple(rows), legend, 1.0)
    columns = ("table1_id", "model", "G", "ratio", "ratio_low", "ratio_high", "published_ratio", *_LATENCIES, *_TRACE)
    svg = draw(name, f"Constructed latency over end to end on {series.title}", picture)
    return Exhibit(name, series.title, told, CsvTable(columns, cells, _TRACE), svg)


def _unjudged(contents: ReportContents, judged: Collection[ReportedModel]) -> tuple[str, ...]:
    """Report the models without both an estimate and an end-to-end latency on any system."""
    return _lacking(contents, judged, "both by bricks and end to end", "measures both")


def _lacking(contents: ReportContents, known: Collection[ReportedModel], what: str, cure: str) -> tuple[str, ...]:
    count, lacking = len(contents.reported_models), len(contents.reported_models) - len(known)
    if not lacking:
        return ()
    were = f"{lacking} of {count} models {'was' if lacking == 1 else 'were'} not" if known else "No model was"
    return (f"{were} measured {what}: {run_command(contents, '--end-to-end')} {cure}.",)


def _trace(result: ModelResult) -> tuple[Cell, ...]:
    """Return the values that identify an estimate and its end-to-end result."""
    way, cutting = result.found.way, result.found.estimate.cutting
    how = (cutting.granularity, cutting.cut.value, cutting.order.value)
    return (way.system, way.runtime, way.level.value, way.protocol, *how, result.result_id)


def _whole_ms(result: ModelResult) -> float | None:
    return None if result.found.end_to_end is None else result.found.end_to_end.value_ms


def _latencies(result: ModelResult) -> tuple[Cell, ...]:
    composed = result.found.estimate.composed
    both = (None, None) if composed is None else (composed.sequential_ms, composed.parallel_ms)
    return (*both, _whole_ms(result))


def _over_whole(result: ModelResult) -> tuple[float, float, float]:
    """Return the longest path and both ends of the interval of the estimate, over the end-to-end latency."""
    composed, whole_ms = result.found.estimate.composed, _whole_ms(result)
    if composed is None or whole_ms is None:
        return 0.0, 0.0, 0.0
    low, high = composed.latency.low_ms / whole_ms, composed.latency.high_ms / whole_ms
    return composed.parallel_ms / whole_ms if whole_ms else 0.0, low, high


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
    return _summary(
        contents,
        found,
        "Figure 11: geometric mean over the models",
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
    return _summary(
        contents,
        [it for it in found if it.accuracy.speedup is not None],
        "Figure 12: speed-up of benchmarking",
        "The sum of all end-to-end latencies over the sum of all unique bricks: how many times less there is to run "
        "when every brick is run as often as every model would have been.",
        f"The paper says {BEST_SPEEDUP}. Hollow diamonds: the same quotient from the authors' files, of single layers.",
        lambda it: it.speedup or 0.0,
        SPEEDUP.get,
        is_around_one=False,
    )


def summary_table(found: Sequence[Judged]) -> Table[Judged]:
    """Return the accuracy over all models, with a line for each series and granularity."""
    columns: tuple[Column[Judged], ...] = (
        name_column("system", lambda it: it.series.title),
        Column("G", lambda it: it.granularity),
        *accuracy_columns(lambda it: it.accuracy),
        Column("published mean", lambda it: or_dash("{:.3f}".format, geometric_mean(it.paper_system))),
        Column("published speed-up", lambda it: or_dash("{:.2f}".format, SPEEDUP.get(it.paper_system))),
    )
    return Table(columns, found)


def _summary(
    contents: ReportContents,
    found: Sequence[Judged],
    heading: str,
    explanation: str,
    published: str,
    value_of: Callable[[Accuracy], float],
    published_of: Callable[[str], float | None],
    *,
    is_around_one: bool,
) -> Section:
    number, _, title = heading.partition(": ")
    name = number.lower().replace(" ", "-")
    if not found:
        return Section(heading, name, explanation, (), published, _unjudged(contents, ()))
    values = [value_of(it.accuracy) for it in found]
    granularities = sorted({it.granularity for it in found})
    styles = {it: series_meaning(place, f"G = {it}") for place, it in enumerate(granularities)}
    drawn, theirs, half = [], [], _LONGEST_SERIES // 2
    # What all rows have in common needs no room.
    common = set.intersection(*(set(it.series.title.split(", ")) for it in found))
    for series in dict.fromkeys(it.series for it in found):
        held = [(it, value) for it, value in zip(found, values, strict=True) if it.series is series]
        known = published_of(series.paper_system)
        theirs += [known] if known else []
        marks = [marked(_PUBLISHED_LAYERS, known)] if known else []
        marks += [marked(styles[it.granularity], value) for it, value in held]
        told = f"{held[0][1]:.3g}" if len(granularities) == 1 else ""
        label = ", ".join(it for it in series.title.split(", ") if it not in common) or series.title
        # The system stands at the beginning, and the runtime with its threads at the end.
        label = label if len(label) <= _LONGEST_SERIES else f"{label[: half - 1]}…{label[-half:]}"
        drawn.append(BarRow(label, (_CLOSE,) if is_around_one else (), tuple(marks), told))
    axis = Axis(0.0, 1.15 * max([*values, *theirs]))
    if is_around_one:
        reach = max(0.1, *(abs(it - 1.0) for it in (*values, *theirs))) * 1.25
        axis = Axis(1.0 - reach, 1.0 + reach)
    legend = (*styles.values(), *((_PUBLISHED_LAYERS,) if theirs else ()))
    says = "A row for each way of measuring, with a mark for each granularity."
    picture = Rows(title, says, axis, tuple(drawn), legend, 1.0 if is_around_one else None)
    rows: list[tuple[Cell, ...]] = []
    for it, value in zip(found, values, strict=True):
        way, size = it.series.way, it.granularity
        measured = (it.series.title, size, it.accuracy.models, value, published_of(it.paper_system))
        rows.append((*measured, way.system, way.runtime, way.level.value, way.protocol, size))
    trace = _TRACE[:5]
    numbers = CsvTable(("on", "G", "models", "value", "published_value", *trace), rows, trace)
    exhibit = Exhibit(name, title, says, numbers, draw(name, title, picture))
    return Section(heading, name, explanation, (exhibit,), published)
