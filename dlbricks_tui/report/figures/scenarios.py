"""Scenarios: the load that models serve, measured by LoadGen, and the latencies of their requests."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dlbricks_tui.printable import printable
from dlbricks_tui.report import drawing
from dlbricks_tui.report.contents import ReportContents
from dlbricks_tui.report.drawing import Ink
from dlbricks_tui.report.exhibits import Cell, Exhibit, Section, table
from dlbricks_tui.report.figures.rows import WIDTH
from dlbricks_tui.report.missing import command
from dlbricks_tui.runtime.variant import stated_threads, threads_in_words
from dlbricks_tui.scenarios.outcome import latencies_ms, measured_load, meets_bound, percentile_ms
from dlbricks_tui.scenarios.scenario import Kind
from dlbricks_tui.store.records import LoadTest
from dlbricks_tui.wording.ages import minute_of
from dlbricks_tui.wording.numbers import counted, milliseconds, model_label
from dlbricks_tui.wording.scenarios import in_us, percentile_name, scenario_line, scenario_of

_NAME = "scenarios"
_COLUMNS = (
    *("table1_id", "model", "kind", "percentile", "bound_ms", "bound_met", "rate", "batch", "instances"),
    *("per_second", "p50_ms", "p90_ms", "p99_ms", "p99.9_ms", "valid"),
)
_DETAILS = (
    "percentile_ms",
    "sought",
    "queries",
    "seconds",
    "passing_ms",
    "wake_up_ms",
    "reasons",
    "runtime",
    "level",
    "id",
)
# Sizes in inches.
_PANEL, _ABOVE, _BELOW, _LEFT, _BETWEEN, _LEGEND = 1.0, 0.34, 0.34, 0.5, 0.34, 0.3
_LONGEST_TITLE = 56
_BINS = 60
# The panels of a page; a report of the fifty would have hundreds.
_MOST_PANELS = 60


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
    numbers = {it.name: it.table1_id for it in contents.reported_models}
    newest = _last_of_each(tests)
    drawn = [it for it in newest if it.kind != Kind.OFFLINE.value]
    exhibits = [_table(newest, numbers)]
    systems = list(dict.fromkeys(it.system for it in drawn))
    exhibits += [_histograms(system, [it for it in drawn if it.system == system], numbers) for system in systems]
    return Section(heading, _NAME, explanation, tuple(exhibits))


def _last_of_each(tests: Sequence[LoadTest]) -> list[LoadTest]:
    """Return the last test of each scenario of a model on a system and runtime, in the order of the models."""
    found: dict[object, LoadTest] = {}
    for it in tests:
        rate = None if it.sought else it.rate
        asked = (it.kind, it.percentile, it.bound_ms, rate, it.batch_size, it.instances)
        found[it.name, it.system, it.runtime, it.level, asked] = it
    return sorted(found.values(), key=lambda it: (it.name, it.system, it.runtime, it.kind, it.instances, it.when))


def _table(tests: Sequence[LoadTest], numbers: Mapping[str, str | None]) -> Exhibit:
    rows = [_row(it, numbers.get(it.name)) for it in tests]
    caption = f"{counted(len(tests), 'scenario')} by LoadGen."
    columns = (*_COLUMNS, "system", "when", *_DETAILS)
    return Exhibit(f"table-{_NAME}", "Percentiles and throughput", caption, table(columns, rows, _DETAILS))


def _row(it: LoadTest, table1_id: str | None) -> tuple[Cell, ...]:
    found = measured_load(it)
    met = None if it.bound_ms is None else _yes(meets_bound(it))
    return (
        *(table1_id, it.name, it.kind, percentile_name(it.percentile), it.bound_ms, met, it.rate),
        *(it.batch_size, it.instances, it.per_second, found.p50_ms, found.p90_ms, found.p99_ms, found.p999_ms),
        *(_yes(it.valid), it.system, minute_of(it.when), percentile_ms(it), _yes(it.sought)),
        *(
            it.queries,
            it.seconds,
            it.passing_ms,
            it.wake_up_ms,
            "; ".join(it.reasons),
            it.runtime,
            it.level.value,
            it.uuid,
        ),
    )


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _histograms(system: str, tests: Sequence[LoadTest], numbers: Mapping[str, str | None]) -> Exhibit:
    shown = tests[:_MOST_PANELS]
    slug = "".join(char if char.isascii() and (char.isalnum() or char in ".-") else "-" for char in system)
    name, title = f"figure-{_NAME}-{slug}", f"Latencies on {printable(system)}"
    left_out = f" The first {len(shown)} of {len(tests)} are drawn." if len(shown) < len(tests) else ""
    told = f"{counted(len(shown), 'histogram')} of latencies, on a logarithmic scale of requests.{left_out}"

    several = len({it.runtime for it in shown}) > 1

    def paint() -> Figure:
        figure = drawing.canvas(WIDTH, _LEGEND + len(shown) * (_ABOVE + _PANEL + _BELOW))
        for row, it in enumerate(shown):
            top = _LEGEND + row * (_ABOVE + _PANEL + _BELOW) + _ABOVE
            axes = drawing.axes(figure, _LEFT, top, WIDTH - _LEFT - _BETWEEN, _PANEL)
            name = model_label(it.name, numbers.get(it.name), _LONGEST_TITLE)
            by = f" ({_runtime(it)})" if several else ""
            _panel(axes, it, f"{name}: {_scenario(it)}{by}")
        legend = [
            Line2D([], [], color=Ink.SKY.light, linewidth=3, label="requests"),
            Line2D([], [], color=Ink.GREEN.light, linestyle=":", label="percentile"),
            Line2D([], [], color=Ink.ORANGE.light, linestyle="--", label="bound"),
        ]
        figure.legend(handles=legend, loc="upper left", ncols=3)
        return figure

    about = f"{told} {' '.join(map(_in_words, shown))}"
    rows = [(it.name, _scenario(it), it.runtime, *each) for it in shown for each in _bins_of(it)]
    numbers_shown = table(("model", "scenario", "runtime", "from_ms", "to_ms", "requests"), rows)
    return Exhibit(name, title, told, numbers_shown, drawing.draw(name, title, about, paint))


def _panel(axes: Axes, it: LoadTest, title: str) -> None:
    bins = _bins_of(it)
    counts = [count for *_, count in bins]
    edges = [bins[0][0], *(end for _, end, _ in bins)]
    axes.stairs(counts, edges, fill=True, color=Ink.SKY.light)
    axes.axvline(percentile_ms(it), color=Ink.GREEN.light, linestyle=":", linewidth=1.4)
    if it.bound_ms is not None:
        axes.axvline(it.bound_ms, color=Ink.ORANGE.light, linestyle="--", linewidth=1.2)
    axes.set_yscale("log")
    axes.set_ylim(0.7, 1.5 * max(counts))
    ends = [*edges, *([] if it.bound_ms is None else [it.bound_ms])]
    axes.set_xlim(max(0.0, min(ends) - 0.03 * max(ends)), 1.03 * max(ends) or 1.0)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_formatter(lambda *_: "")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g} ms")
    axes.set_title(printable(title), loc="left", fontsize=8, parse_math=False)


def _bins_of(it: LoadTest) -> list[tuple[float, float, int]]:
    """Return equal parts of the range of the latencies, each with its number of requests."""
    counts, edges = np.histogram(np.asarray(latencies_ms(it)), bins=_BINS)
    return [(float(low), float(high), int(count)) for low, high, count in zip(edges, edges[1:], counts, strict=False)]


def _runtime(it: LoadTest) -> str:
    """Return a runtime in short: `onnxruntime-1.32.0, 1 thread`."""
    threads = stated_threads(it.runtime)
    name = it.runtime.partition(" ")[0]
    return name if threads is None else f"{name}, {threads_in_words(threads)}"


def _scenario(it: LoadTest) -> str:
    return scenario_line(scenario_of(it))


def _in_words(it: LoadTest) -> str:
    name = percentile_name(it.percentile)
    return f"{it.name}, {_scenario(it)}: {name} {in_us(percentile_ms(it))}, {milliseconds(it.per_second)} per second."
