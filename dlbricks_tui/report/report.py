"""A report of what was measured, as a page."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from dlbricks_tui.analysis.bounds import LayerPoint, Roof
from dlbricks_tui.analysis.what_if import WhatIfKind
from dlbricks_tui.api import analyses
from dlbricks_tui.api.analyses import Analysis, Cell, by_execution, known, mean_gain, mean_ratio, middle, model_cells
from dlbricks_tui.api.reported import LONGEST_LABEL, ReportContents, ReportedModel, file_name
from dlbricks_tui.documents.analysis import (
    BEST,
    GAP_PARTS,
    bounds_remarks,
    bounds_table,
    gains_remarks,
    gains_table,
    gaps_table,
    stacked,
)
from dlbricks_tui.documents.load_pictures import histogram_plot
from dlbricks_tui.documents.parts import Table
from dlbricks_tui.documents.pictures import Axis, BarRow, LegendSign, Mark, Plot, Rows
from dlbricks_tui.documents.what_ifs import roofline_plot
from dlbricks_tui.printable import printable
from dlbricks_tui.report.drawing import draw, series_meaning
from dlbricks_tui.report.page import CsvTable, Exhibit, PageHeading, Report, Section, written
from dlbricks_tui.report.paper import (
    bricks_table,
    closeness_section,
    command,
    composed_section,
    constructed_section,
    end_to_end_section,
    judged,
    marked,
    speedup_section,
    summary_table,
    table1_section,
)
from dlbricks_tui.report.paper_models import graph_section, repetition_section, similarity_section, uniqueness_section
from dlbricks_tui.runtime.traits import TRAITS
from dlbricks_tui.runtime.variant import stated_threads, threads_in_words
from dlbricks_tui.scenarios.scenario import measured_load, meets_bound, percentile_ms
from dlbricks_tui.store.records import LoadTest, Provenance
from dlbricks_tui.wording.answers import way_line
from dlbricks_tui.wording.jobs import percentile_name, scenario_line, scenario_of
from dlbricks_tui.wording.numbers import capitalised, counted, minute_of, model_label, percent

# The columns that tell the execution of a row.
_EXECUTION_COLUMNS = analyses.MODEL_COLUMNS[1:]
# Greater losses, in percent, are arrows at the edge.
_MOST_LOSS = -100.0
_BOUNDS = (
    LegendSign("=", "sequential", "bar", "█"),
    LegendSign("■", "parallel", "bad"),
    LegendSign("◇", "roofline", "text"),
)
_KINDS = {kind: series_meaning(number, kind.value) for number, kind in enumerate(WhatIfKind)}
_PROVED = LegendSign("◇", "measured", "text")
# Layers with a smaller share of the time of their model are left out.
_LEAST_SHARE = 0.02


class _Executed(NamedTuple):
    """The models of one execution, its name for people, and one for files."""

    models: Sequence[Analysis]
    title: str
    slug: str

    @property
    def labels(self) -> list[str]:
        """The names of the models as figures show them."""
        return [model_label(it.answer.model, it.source.table1_id, LONGEST_LABEL) for it in self.models]

    @property
    def counted(self) -> str:
        return f"{counted(len(self.models), 'model')}."


def analysis_sections(models: Sequence[Analysis]) -> tuple[Section, ...]:
    """Return the sections of the analysis; one that says what to do if there is nothing to analyse."""
    shown = [it for it in models if it.answer.best_ms is not None or it.answer.measured_ms is not None]
    if not any(it.answer.best_ms is not None for it in shown):
        how = command("analyze", "MODEL", "--measure")
        line = f"No bounds, gains and gaps: no model has results of all of its layers. {how} measures what they need."
        about = "How fast the models could be, and why they are not."
        return (Section("Analysis", "analysis", about, missing=(line,)),)
    groups: list[_Executed] = []
    for alike in by_execution(shown):
        way, variant = alike[0].baseline.found.way, alike[0].baseline.found.variant
        slug = file_name(f"{way.system}-{way.runtime.partition('-')[0]}-{way.level.value}")
        beside = sum(it.slug == slug or it.slug.startswith(f"{slug}-no") for it in groups)
        slug = f"{slug}-no{beside + 1}" if beside else slug
        groups.append(_Executed(alike, way_line(way, variant), slug))
    bounds = Section(
        heading="Bounds: how fast the models could be",
        anchor="bounds",
        explanation="The best measured latency takes each group of layers from the execution that was fastest, without "
        "conversions: summed, and along the critical path. Both stand over the end-to-end latency, or over "
        "the estimate if the model was not timed. The roofline is the arithmetic and the bytes of the layers over the "
        "peaks of the system.",
        exhibits=tuple(map(_bounds, groups)),
        published="Benanza (arXiv:1911.06922) has a geometric mean of 0.88 sequential and 0.76 parallel, of 30 models "
        "in MXNet on a V100 at batch 1.",
        missing=tuple(f"{capitalised(it)}." for it in bounds_remarks(shown)),
    )
    gains = Section(
        heading="Gains: what changes would save",
        anchor="gains",
        explanation="The share of the latency that the best change of each kind saves, predicted from measured layers, "
        "and measured where the change was carried out (diamonds). A negative gain is a loss.",
        exhibits=tuple(_gains(group) for group in groups if any(it.gains for it in group.models)),
        published="Benanza found on GPUs: 12 % to 24 % with other convolution algorithms at batch 32, 13 % without "
        "MXNet's padding, and for ResNet-50 8 % with fusion, 42 % with Tensor Cores and 49 % with both.",
        missing=tuple(f"{capitalised(it)}." for it in gains_remarks(shown)),
    )
    gaps = Section(
        heading="Gap: where the time beyond the best goes",
        anchor="gap",
        explanation="The latency in parts: the best measured, the time by which layers are slower than in the fastest "
        "execution, conversions of layouts, and the unexplained rest, which is the end-to-end "
        "latency minus the estimate. The parts add up to the latency; a negative rest stands left of zero.",
        exhibits=tuple(map(_gaps, groups)),
    )
    return bounds, gains, gaps, _roofline_section(groups)


def _bounds(group: _Executed) -> Exhibit:
    answers = [(it, it.answer) for it in group.models]
    ratios = [[*map(it.over, (own.best_ms, own.best_parallel_ms, own.roofline_ms))] for it, own in answers]
    bounds = [[1.0 / it if it else None for it in held] for held in ratios]
    rows = []
    for label, (sequential, *others) in zip(group.labels, bounds, strict=True):
        pieces = () if sequential is None else (_BOUNDS[0].piece(0.0, sequential),)
        marks = [marked(it, value) for it, value in zip(_BOUNDS[1:], others, strict=True) if value is not None]
        rows.append(BarRow(label, pieces, tuple(marks)))
    by_bound = dict(zip(_BOUNDS, zip(*bounds, strict=True), strict=True))
    axis = Axis(0.0, 1.03 * max(1.05, *(value for held in bounds for value in known(held))))
    legend = tuple(it for it, values in by_bound.items() if known(values))
    means = ((it.name, mean_ratio(values)) for it, values in by_bound.items())
    told = f"{group.counted} {_told('Geometric mean', means, '{:.2f}'.format)}"
    picture = Rows("bound over the latency (1 is equal)", told, axis, tuple(rows), legend, 1.0)
    columns = (*analyses.BOUND_COLUMNS, "best_over_latency", "parallel_over_latency", "roofline_over_latency")
    cells = [(*analyses.bound_cells(it), *held) for it, held in zip(group.models, bounds, strict=True)]
    return _exhibit("bounds", group, columns, cells, picture, bounds_table(group.models))


def _gains(group: _Executed) -> Exhibit:
    rows, values = [], [-5.0, 10.0]
    for label, it in zip(group.labels, group.models, strict=True):
        marks: list[Mark] = []
        for kind, gain in it.gains.items():
            for meaning, share in ((_KINDS[kind], gain.gain), (_PROVED, gain.proved)):
                if share is not None and gain.possible:
                    # An arrow at the edge stands for a loss beyond it.
                    sign = meaning.mark if 100 * share >= _MOST_LOSS else "◀"
                    marks.append(Mark(max(_MOST_LOSS, 100 * share), sign, _KINDS[kind].style))
        values += [mark.value for mark in marks]
        rows.append(BarRow(label, marks=tuple(marks)))
    kinds = [kind for kind in WhatIfKind if any(kind in it.gains for it in group.models)]
    told = " ".join(
        f"{kind.value}: {counted(len(held), 'model')}, on average {percent(mean_gain(held) or 0.0, 1)}."
        for kind in kinds
        if (held := known(it.gain(kind) for it in group.models))
    )
    gains = [gain for it in group.models for gain in it.gains.values()]
    if not all(gain.possible for gain in gains):
        told += " Bounds that nobody can run are in the table only."
    legend = (*(_KINDS[kind] for kind in kinds), *((_PROVED,) if any(it.proved is not None for it in gains) else ()))
    room = 0.05 * (max(values) - min(values))
    axis, says = Axis(min(values) - room, max(values) + room), f"{group.counted} {told}"
    picture = Rows("share of the latency that is saved, in percent", says, axis, tuple(rows), legend, 0.0)
    cells = map(analyses.gain_cells, group.models)
    return _exhibit("gains", group, analyses.GAIN_COLUMNS, cells, picture, gains_table(group.models))


def _gaps(group: _Executed) -> Exhibit:
    meanings = (BEST, *GAP_PARTS)
    shares: list[Sequence[float]] = [it.shares or () for it in group.models]
    rows, ends = [], [0.0, 100.0]
    for label, parts in zip(group.labels, shares, strict=True):
        held = zip(meanings, parts, strict=False)
        pieces = stacked([(meaning, 100 * share) for meaning, share in held if share])
        ends += [end for it in pieces for end in (it.low, it.high)]
        rows.append(BarRow(label, pieces))
    by_part = list(zip(*filter(None, shares), strict=True)) or [()] * len(meanings)
    medians = [(meaning.name, middle(values)) for meaning, values in zip(meanings, by_part, strict=True)]
    told = f"{group.counted} {_told('Median', medians, lambda share: percent(share, 1))}"
    axis = Axis(1.03 * min(ends), 1.03 * max(ends))
    picture = Rows("share of the latency in percent", told, axis, tuple(rows), meanings, 100.0)
    cells = map(analyses.gap_cells, group.models)
    return _exhibit("gap", group, analyses.GAP_COLUMNS, cells, picture, gaps_table(group.models))


def _exhibit(
    what: str,
    group: _Executed,
    columns: Sequence[str],
    cells: Iterable[tuple[Cell, ...]],
    picture: Rows,
    table: Table[Sequence[str]],
) -> Exhibit:
    name = f"figure-{what}-{group.slug}"
    models = zip(group.models, cells, strict=True)
    rows = [(it.source.table1_id, it.answer.model, *held, *model_cells(it)[1:]) for it, held in models]
    exact = CsvTable(("table1_id", "model", *columns, *_EXECUTION_COLUMNS), rows)
    return Exhibit(name, group.title, picture.says, exact, draw(name, group.title, picture), table)


def _told(what: str, values: Iterable[tuple[str, float | None]], written: Callable[[float], str]) -> str:
    told = [f"{name} {written(value)}" for name, value in values if value is not None]
    return f"{what}: {', '.join(told)}." if told else ""


def _roofline_section(groups: Sequence[_Executed]) -> Section:
    """Return the figures of each execution, one for each number of threads."""
    found = [
        (group, roof, [it for it in group.models if it.roof == roof])
        for group in groups
        for roof in {it.roof.threads: it.roof for it in group.models if it.roof is not None}.values()
    ]
    lacking = sum(it.roof is None for group in groups for it in group.models)
    how = command("doctor", "--peaks")
    missing = f"No peaks of the system for {counted(lacking, 'model')}: {how} measures those of this host."
    return Section(
        heading="Roofline: layers under the peaks of the system",
        anchor="roofline",
        explanation="Each letter is a layer sequence: its floating-point operations for each byte that it moves, and "
        "the operations per second that it reaches. The lines are the measured peaks of arithmetic and bandwidth.",
        exhibits=tuple(_roofline(*it) for it in found),
        missing=(missing,) if lacking else (),
    )


def _roofline(group: _Executed, roof: Roof, models: Sequence[Analysis]) -> Exhibit:
    name = f"figure-roofline-{group.slug}-{roof.threads}"
    points: list[LayerPoint] = []
    rows: list[tuple[Cell, ...]] = []
    for it in models:
        total_ms = sum(point.times * point.latency_ms for point in it.points) or 1.0
        for point in it.points:
            work, share = point.work, point.times * point.latency_ms / total_ms
            if share >= _LEAST_SHARE and work.operations and work.bytes:
                points.append(point)
                of_layer = it.source.table1_id, it.answer.model, point.layers[0], len(point.layers), point.times
                moved = work.operations, work.tensor_bytes, work.weight_bytes, work.intensity
                reached = point.billions_per_second, point.latency_ms, point.least_ms, share
                rows.append((*of_layer, *moved, *reached, *model_cells(it)[1:]))
    plot = roofline_plot(points, roof)
    told = (
        f"{counted(len(points), 'layer sequence')} with {percent(_LEAST_SHARE)} of the time of their model or more, on "
        f"{counted(roof.threads, 'thread')}. {plot.says}"
    )
    columns = (
        *("table1_id", "model", "first_layer", "layers", "times", "operations", "tensor_bytes", "weight_bytes"),
        *("operations_per_byte", "billions_per_second", "latency_ms", "least_ms", "share_of_time"),
    )
    details = ("tensor_bytes", "weight_bytes", *_EXECUTION_COLUMNS)
    numbers = CsvTable((*columns, *_EXECUTION_COLUMNS), rows, details)
    return Exhibit(name, group.title, told, numbers, draw(name, f"Roofline of {group.title}", plot, says=told))


_LONGEST_TITLE = 56
# The histograms of a page; a report of the fifty would have hundreds.
_MOST_HISTOGRAMS = 60


def scenarios_section(contents: ReportContents) -> Section:
    """Return the section of the load tests, the last of each scenario; without any it says how to measure them."""
    heading, explanation = (
        "Scenarios: how much load the models serve",
        "Requests that MLPerf LoadGen sent, and their latencies from when they were due to their answers. `valid` is "
        "LoadGen's verdict. Of several tests of one scenario, the newest counts.",
    )
    if not contents.load_tests:
        how = command("scenario", "MODEL", "--kind", "server", "--bound-ms", "50")
        return Section(heading, "scenarios", explanation, missing=(f"No scenario was measured: {how} measures one.",))
    ids = {it.name: it.table1_id for it in contents.reported_models}
    last: dict[object, LoadTest] = {}
    for it in contents.load_tests:
        rate = None if it.sought else it.rate
        asked = (it.kind, it.percentile, it.bound_ms, rate, it.batch_size, it.instances)
        last[it.name, it.system, it.runtime, it.level, asked] = it
    shown = sorted(last.values(), key=lambda it: (it.name, it.system, it.runtime, it.kind, it.instances, it.when))
    by_system: dict[str, list[tuple[LoadTest, Plot]]] = {}
    for it in shown:
        plot = histogram_plot(it, None)
        if plot is not None:
            by_system.setdefault(it.system, []).append((it, plot))
    histograms = [_histograms(system, found, ids) for system, found in by_system.items()]
    return Section(heading, "scenarios", explanation, (_load_tests(shown, ids), *histograms))


def _load_tests(tests: Sequence[LoadTest], ids: Mapping[str, str | None]) -> Exhibit:
    rows: list[tuple[Cell, ...]] = []
    for it in tests:
        found, met = measured_load(it), None if it.bound_ms is None else _yes(meets_bound(it))
        asked = it.kind, percentile_name(it.percentile), it.bound_ms, met, it.rate, it.batch_size, it.instances
        reached = it.per_second, found.p50_ms, found.p90_ms, found.p99_ms, found.p999_ms, _yes(it.valid)
        costs = percentile_ms(it), _yes(it.sought), it.queries, it.seconds, it.passing_ms, it.wake_up_ms
        told = *costs, "; ".join(it.reasons), it.runtime, it.level.value, it.uuid
        rows.append((ids.get(it.name), it.name, *asked, *reached, it.system, minute_of(it.when), *told))
    details = (
        *("percentile_ms", "sought", "queries", "seconds", "passing_ms", "wake_up_ms", "reasons"),
        *("runtime", "level", "id"),
    )
    columns = (
        *("table1_id", "model", "kind", "percentile", "bound_ms", "bound_met", "rate", "batch", "instances"),
        *("per_second", "p50_ms", "p90_ms", "p99_ms", "p99.9_ms", "valid", "system", "when", *details),
    )
    caption = f"{counted(len(tests), 'scenario')} by LoadGen."
    return Exhibit("table-scenarios", "Percentiles and throughput", caption, CsvTable(columns, rows, details))


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _histograms(system: str, found: Sequence[tuple[LoadTest, Plot]], ids: Mapping[str, str | None]) -> Exhibit:
    shown = found[:_MOST_HISTOGRAMS]
    name, title = f"figure-scenarios-{file_name(system)}", f"Latencies on {printable(system)}"
    left_out = f" The first {len(shown)} of {len(found)} are drawn." if len(shown) < len(found) else ""
    told = f"{counted(len(shown), 'histogram')} of latencies.{left_out}"
    several = len({it.runtime for it, _ in shown}) > 1
    plots, rows = [], []
    for it, plot in shown:
        threads, runtime = stated_threads(it.runtime), it.runtime.partition(" ")[0]
        by = f" ({', '.join([runtime, *([] if threads is None else [threads_in_words(threads)])])})" if several else ""
        model, scenario = model_label(it.name, ids.get(it.name), _LONGEST_TITLE), scenario_line(scenario_of(it))
        plots.append(replace(plot, title=f"{model}: {scenario}{by}, requests by ms"))
        for steps in plot.series:
            for (left, count), (right, _) in zip(steps.points[::2], steps.points[1::2], strict=True):
                rows.append((it.name, scenario, it.runtime, left, right, int(count)))
    says = " ".join([told, *(f"{it.title}: {it.says}" for it in plots)])
    columns = ("model", "scenario", "runtime", "from_ms", "to_ms", "requests")
    return Exhibit(name, title, told, CsvTable(columns, rows), draw(name, title, *plots, says=says))


_PACKAGES = ("dlbricks", "python", "numpy", "onednn")
_HOST = ("kernel", "os", "container", "governor", "turbo", "microcode", "cpu")


def origins_section(origins: Sequence[Provenance]) -> Iterator[Section]:
    """Yield the section of where results come from; none if no run has recorded it."""
    if not origins:
        return
    found: dict[object, list[Provenance]] = {}
    for it in sorted(origins, key=lambda each: (each.system, each.runtime, each.when)):
        found.setdefault((it.system, it.runtime, it.packages, it.host), []).append(it)
    rows: list[tuple[Cell, ...]] = []
    for alike in found.values():
        newest = alike[-1]
        packages, host = dict(newest.packages), dict(newest.host)
        framework = next((f"{TRAITS[name].title} {packages[name]}" for name in TRAITS if name in packages), None)
        facts = (*map(packages.get, _PACKAGES), *map(host.get, _HOST))
        told = (_yes(it) if isinstance(it, bool) else it for it in facts)
        rows.append((newest.system, newest.runtime, framework, *told, len({it.run for it in alike}), newest.when))
    columns = ("system", "runtime", "framework", *_PACKAGES, *_HOST, "runs", "last_run")
    numbers = CsvTable(columns, rows, ("numpy", "container", "microcode", "cpu", "last_run"))
    caption = f"{counted(len(rows), 'combination')} of versions and state of the host."
    yield Section(
        "Versions: where the results come from",
        "origins",
        "Each combination of versions, kernel and settings of the host under which runs measured the results.",
        (Exhibit("table-origins", "Versions and hosts", caption, numbers),),
    )


_TITLE = "The evaluation of DLBricks, measured again"
_BRICKS = "bricks.csv"
_ABOUT_FILES = "`bricks.csv` there lists the stored results behind each latency; `dlbricks results show ID` shows them."


def make_report(contents: ReportContents, folder: Path, analysed: Sequence[Analysis] = ()) -> Report:
    """Draw all figures and write the report into a folder; `analysed` are the models in each analysed execution."""
    found = judged(contents)
    sections = (
        table1_section(contents),
        graph_section(contents),
        composed_section(contents),
        uniqueness_section(contents),
        repetition_section(contents),
        similarity_section(contents),
        end_to_end_section(contents),
        constructed_section(contents),
        closeness_section(contents, found),
        speedup_section(contents, found),
        *analysis_sections(analysed),
        scenarios_section(contents),
        *origins_section(contents.origins),
    )
    heading = PageHeading(_TITLE, _lead(contents), _ABOUT_FILES)
    bricks = {_BRICKS: bricks_table(contents).csv()}
    return written(folder, heading, summary_table(found) if found else None, sections, bricks)


def _lead(contents: ReportContents) -> tuple[str, ...]:
    models = counted(len(contents.reported_models), "model")
    whole = [it for it in contents.series if it.measured]
    series = whole or contents.series
    ways = f"{counted(len(series), 'way')}: {'; '.join(it.title for it in series)}"
    measured = len(frozenset[ReportedModel]().union(*(it.measured for it in whole)))
    if not series:
        about = (
            f"{models}. None of them was measured yet. The figures without latencies are here; each other figure names "
            "the command that measures its data."
        )
    elif not measured:
        about = f"{models}, none of them measured. Some of their bricks were measured in other models, in {ways}."
    elif measured == len(contents.reported_models):
        about = f"{models}, measured in {ways}."
    else:
        about = f"{models}, {measured} of them measured, in {ways}."
    paper = (
        "The tables and figures are those of DLBricks: Composable Benchmark Generation to Reduce Deep Learning "
        "Benchmarking Effort on CPUs (Li, Dakkak, Xiong and Hwu, ICPE 2020, arXiv:1911.07967), from the results in "
        "this store, beside the published values."
    )
    return (paper, about)
