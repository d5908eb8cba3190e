"""Scenarios: the load that models serve, measured by LoadGen, and the latencies of their requests."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dlbricks_tui.answers.analyses import Cell
from dlbricks_tui.answers.reported import ReportContents, file_name
from dlbricks_tui.documents.load_pictures import histogram_plot
from dlbricks_tui.documents.pictures import Plot
from dlbricks_tui.printable import printable
from dlbricks_tui.report import drawing
from dlbricks_tui.report.exhibits import Exhibit, Section, csv_table
from dlbricks_tui.report.missing import command
from dlbricks_tui.runtime.variant import stated_threads, threads_in_words
from dlbricks_tui.scenarios.scenario import latencies_ms, measured_load, meets_bound, percentile_ms
from dlbricks_tui.store.records import LoadTest
from dlbricks_tui.wording.numbers import counted, minute_of, model_label
from dlbricks_tui.wording.scenarios import percentile_name, scenario_line, scenario_of

_NAME = "scenarios"
_COLUMNS = (
    *("table1_id", "model", "kind", "percentile", "bound_ms", "bound_met", "rate", "batch", "instances"),
    *("per_second", "p50_ms", "p90_ms", "p99_ms", "p99.9_ms", "valid"),
)
_DETAILS = (
    *("percentile_ms", "sought", "queries", "seconds", "passing_ms", "wake_up_ms", "reasons"),
    *("runtime", "level", "id"),
)
_LONGEST_TITLE = 56
# The histograms of a page; a report of the fifty would have hundreds.
_MOST_HISTOGRAMS = 60


def scenarios_section(contents: ReportContents, tests: Sequence[LoadTest]) -> Section:
    """Return the section of the load tests, the last of each scenario; without any it says how to measure them."""
    heading, explanation = (
        "Scenarios: how much load the models serve",
        "Requests that MLPerf LoadGen sent, and their latencies from when they were due to their answers. `valid` is "
        "LoadGen's verdict. Of several tests of one scenario, the newest counts.",
    )
    if not tests:
        how = command("scenario", "MODEL", "--kind", "server", "--bound-ms", "50")
        return Section(heading, _NAME, explanation, missing=(f"No scenario was measured: {how} measures one.",))
    ids = {it.name: it.table1_id for it in contents.reported_models}
    newest = _last_of_each(tests)
    exhibits = [_table(newest, ids)]
    by_system: dict[str, list[tuple[LoadTest, Plot]]] = {}
    for it in newest:
        plot = histogram_plot(it, latencies_ms(it), None)
        if plot is not None:
            by_system.setdefault(it.system, []).append((it, plot))
    exhibits += [_histograms(system, found, ids) for system, found in by_system.items()]
    return Section(heading, _NAME, explanation, tuple(exhibits))


def _last_of_each(tests: Sequence[LoadTest]) -> list[LoadTest]:
    """Return the last test of each scenario of a model on a system and runtime, in the order of the models."""
    found: dict[object, LoadTest] = {}
    for it in tests:
        rate = None if it.sought else it.rate
        asked = (it.kind, it.percentile, it.bound_ms, rate, it.batch_size, it.instances)
        found[it.name, it.system, it.runtime, it.level, asked] = it
    return sorted(found.values(), key=lambda it: (it.name, it.system, it.runtime, it.kind, it.instances, it.when))


def _table(tests: Sequence[LoadTest], ids: Mapping[str, str | None]) -> Exhibit:
    rows = [_row(it, ids.get(it.name)) for it in tests]
    caption = f"{counted(len(tests), 'scenario')} by LoadGen."
    columns = (*_COLUMNS, "system", "when", *_DETAILS)
    return Exhibit(f"table-{_NAME}", "Percentiles and throughput", caption, csv_table(columns, rows, _DETAILS))


def _row(it: LoadTest, table1_id: str | None) -> tuple[Cell, ...]:
    found = measured_load(it)
    met = None if it.bound_ms is None else _yes(meets_bound(it))
    return (
        *(table1_id, it.name, it.kind, percentile_name(it.percentile), it.bound_ms, met, it.rate),
        *(it.batch_size, it.instances, it.per_second, found.p50_ms, found.p90_ms, found.p99_ms, found.p999_ms),
        *(_yes(it.valid), it.system, minute_of(it.when), percentile_ms(it), _yes(it.sought), it.queries, it.seconds),
        *(it.passing_ms, it.wake_up_ms, "; ".join(it.reasons), it.runtime, it.level.value, it.uuid),
    )


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _histograms(system: str, found: Sequence[tuple[LoadTest, Plot]], ids: Mapping[str, str | None]) -> Exhibit:
    shown = found[:_MOST_HISTOGRAMS]
    name, title = f"figure-{_NAME}-{file_name(system)}", f"Latencies on {printable(system)}"
    left_out = f" The first {len(shown)} of {len(found)} are drawn." if len(shown) < len(found) else ""
    told = f"{counted(len(shown), 'histogram')} of latencies.{left_out}"
    several = len({it.runtime for it, _ in shown}) > 1
    plots, rows = [], []
    for it, plot in shown:
        model = model_label(it.name, ids.get(it.name), _LONGEST_TITLE)
        scenario = scenario_line(scenario_of(it))
        by = f" ({_runtime(it)})" if several else ""
        plots.append(replace(plot, title=f"{model}: {scenario}{by}, requests by ms"))
        for steps in plot.series:
            for (left, count), (right, _) in zip(steps.points[::2], steps.points[1::2], strict=True):
                rows.append((it.name, scenario, it.runtime, left, right, int(count)))
    says = " ".join([told, *(f"{it.title}: {it.says}" for it in plots)])
    columns = ("model", "scenario", "runtime", "from_ms", "to_ms", "requests")
    return Exhibit(name, title, told, csv_table(columns, rows), drawing.draw(name, title, *plots, says=says))


def _runtime(it: LoadTest) -> str:
    """Return a runtime in short: `onnxruntime-1.32.0, 1 thread`."""
    threads = stated_threads(it.runtime)
    name = it.runtime.partition(" ")[0]
    return name if threads is None else f"{name}, {threads_in_words(threads)}"
