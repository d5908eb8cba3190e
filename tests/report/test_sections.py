"""The sections of reports and of comparisons."""

import csv
import io
from dataclasses import replace
from xml.dom.minidom import parseString

import pytest

from dlbricks_tui.analysis.bounds import Gap, LayerPoint, Roof, Work
from dlbricks_tui.analysis.what_if import WhatIfKind
from dlbricks_tui.api.analyses import Cell
from dlbricks_tui.api.changes import compare, hosts_of
from dlbricks_tui.api.reported import ReportContents, ReportedModel
from dlbricks_tui.api.sides import facts_of, side_of
from dlbricks_tui.bricks.decomposition import corpus_of_bricks
from dlbricks_tui.documents.analysis import analyses_parts
from dlbricks_tui.documents.outline import letters
from dlbricks_tui.documents.parts import Table
from dlbricks_tui.documents.pictures import LegendSign
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.report.comparison import (
    DrawnRatio,
    changes_section,
    hosts_section,
    ratio_axis,
    ratio_rows,
    ratios_shown,
    row_labels,
    sides_section,
)
from dlbricks_tui.report.page import CsvTable, Exhibit, Section, cell_text
from dlbricks_tui.report.report import analysis_sections, origins_section, scenarios_section
from dlbricks_tui.store.statistics import pack_latencies
from tests.analysis.executions import analysed, executed, what_if
from tests.api.exports import DEFINITIONS, NEWER, TWO, layer, model, origin, side
from tests.bricks.graphs import chain
from tests.documents.snapshots import check
from tests.store.samples import load_test, provenance

ROOF = Roof(1, {"avx512": 100.0, "avx2": 60.0}, 10.0, 40.0, 1 << 25, 1 << 20)


def point(share: int, operations: float = 1e9) -> LayerPoint:
    return LayerPoint((share,), (Kind.CONVOLUTION,), 1, Work(operations, 1e6, 1e6), float(share), 0.5)


def told(section: Section) -> str:
    """All that a section says, with the rows of its files."""
    lines = [section.heading, section.answer, *section.missing]
    for it in section.exhibits:
        if it.svg:
            parseString(it.svg)
        rows = [", ".join(map(value_text, row)) for row in it.numbers.rows]
        lines += ["", f"{it.name}: {it.caption}", *shown(it), ", ".join(it.numbers.columns), *rows]
    return "\n".join(filter(None, lines))


def value_text(value: Cell) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def shown(found: Exhibit) -> list[str]:
    """The rows as the page shows them."""
    if found.table is None:
        return []
    return [" | ".join(str(it.cell(row)) for it in found.table.columns) for row in found.table.rows]


def test_models_have_their_bounds_gains_gaps_and_layers_under_the_roofline() -> None:
    gains = (
        what_if("threads-2", WhatIfKind.THREADS, 0.4, 0.35),
        what_if("runtime-mix", WhatIfKind.RUNTIME, 0.1, possible=False),
        what_if("batch-8", WhatIfKind.BATCH, -3.0),
    )
    bad = analysed("bad", best_ms=None, best_parallel_ms=None, gap=None, what_ifs=())
    below = analysed("below", gap=Gap(6.0, 0.0, -2.0, 4.0), what_ifs=())
    points = (point(90), point(9), point(1), point(50, operations=0.0))
    one, two = analysed("one", what_ifs=gains), analysed("two", measured_ms=40.0)
    cases = {
        "nothing": [],
        "no best": [bad],
        "several": [one, two, bad, below],
        "two executions of one model": [one, analysed("one", executed(chain("conv"), threads=2))],
        "with a roofline": [analysed("one", points=points, roof=ROOF), two],
    }
    sections = {name: analysis_sections(models) for name, models in cases.items()}
    check("report-analyses", {name: "\n\n".join(map(told, found)) for name, found in sections.items()})
    # The tables of the page are those of the command line, and a mean over models is in no file.
    tables = [it for it in analyses_parts(cases["several"]) if isinstance(it, Table)]
    page = [shown(it) for found in sections["several"] for it in found.exhibits if it.table is not None]
    assert [[" | ".join(str(of.cell(row)) for of in it.columns) for row in it.rows] for it in tables] == page
    assert all("geometric mean" not in it.numbers.csv() for found in sections["several"] for it in found.exhibits)


CONTENTS = ReportContents((), (ReportedModel("resnet50_v1", "14"),), {}, corpus_of_bricks([]), (), ())


def test_the_last_test_of_each_scenario_has_a_row_and_each_system_has_histograms_of_all_but_offline_latencies() -> None:
    newer = load_test(uuid="2d" * 16, when="2026-11-22T08:00:00+00:00", rate=44.0)
    offline = load_test(uuid="3d" * 16, kind="offline", rate=None, sought=False, bound_ms=None)
    one = load_test(uuid="1d" * 16, runtime="mxnet-1.9.1 threads-1")
    two = load_test(runtime="onnxruntime-1.32.0 python-3.11 threads-2")
    nothing, several, equal, runtimes = (
        scenarios_section(replace(CONTENTS, load_tests=tests))
        for tests in (
            (),
            (load_test(), newer, offline, replace(newer, system="m5.large")),
            # Requests of equal latency are drawn, too.
            (replace(one, latencies=pack_latencies([10_000_000] * 700)),),
            (one, two),
        )
    )
    check("report-scenarios", {"nothing": told(nothing), "several": told(several), "equal latencies": told(equal)})
    assert "bound" in several.exhibits[1].svg
    assert "mxnet" not in equal.exhibits[1].svg and "(onnxruntime-1.32.0, 2 threads)" in runtimes.exhibits[1].svg


def test_equal_versions_on_equal_hosts_are_one_row_and_another_kernel_or_version_another_one() -> None:
    later = "2026-11-22T08:00:00+00:00"
    alike = [provenance(), provenance(run="r2", when=later), provenance(run="r2")]
    apart = [provenance(), provenance(host=(("kernel", "6.9"),)), provenance(packages=(("onnxruntime", "1.32.0"),))]
    cases = {"alike": alike, "apart": apart, "none": []}
    check("report-origins", {name: "\n\n".join(map(told, origins_section(of))) for name, of in cases.items()})


NUMBERS = CsvTable(("model", "latency_ms", "results"), [("a, b", 0.1, "e1 e2"), ("c", None, "")], details=("results",))


def test_csv_keeps_numbers_exact_and_pages_show_significant_digits_of_columns_for_people() -> None:
    assert list(csv.reader(io.StringIO(NUMBERS.csv()))) == [
        ["model", "latency_ms", "results"],
        ["a, b", "0.1", "e1 e2"],
        ["c", "", ""],
    ]
    shown = NUMBERS.shown()
    assert shown.columns == ("model", "latency_ms")
    assert shown.rows == (("a, b", 0.1), ("c", None))
    cells: tuple[Cell, ...] = None, 10815, 1234.56, 0.97234, "conv"
    assert [*map(cell_text, cells)] == ["-", "10,815", "1,235", "0.9723", "conv"]


SLOWER = LegendSign("▶", "slower", "bad")


def test_wide_intervals_leave_the_changes_visible() -> None:
    low, high = ratios_shown([DrawnRatio(SLOWER, 1.1, 0.0, 50.0), DrawnRatio(SLOWER, 0.9, 0.85, 0.95)])
    assert 0.8 < low < 0.9 and 1.1 < high < 1.25


@pytest.mark.parametrize("ratio", [1.0, 0.5, 64.0, 1e-5])
def test_one_and_all_ratios_are_on_the_axis(ratio: float) -> None:
    axis = ratio_rows("latency", "", ["m"], [[DrawnRatio(SLOWER, ratio, ratio, ratio)]]).across
    assert axis.low < min(1.0, ratio) and max(1.0, ratio) < axis.high


@pytest.mark.parametrize(
    ("low", "high", "told"), [(0.9, 1.2, "+10 %"), (0.45, 2.1, "2x"), (0.1, 2.1, "1/8x"), (1e-6, 4000.0, "2048x")]
)
def test_an_axis_has_few_ticks(low: float, high: float, told: str) -> None:
    ticks = ratio_axis(low, high).ticks
    assert 2 <= len(ticks) <= 7 and all(low <= it <= high for it, _ in ticks)
    assert told in [text for _, text in ticks]


def test_labels_keep_what_tells_rows_apart() -> None:
    assert row_labels([("m", ["mxnet", "1 thread"]), ("m", ["mxnet", "2 threads"])]) == ["m, 1 thread", "m, 2 threads"]
    assert row_labels([("m", ["mxnet", "1 thread"])]) == ["m"]
    name = "a very long name of a model of some data set"
    label, _ = row_labels([(name, ["2 threads"]), ("m", [])])
    assert len(label) <= 40 and label.endswith("…, 2 threads")


def test_limits_and_sides_of_a_comparison_are_named() -> None:
    shared, ours, theirs = layer(0, 0.0), model("m", 1.0), [model("m", 1.0, runtime=NEWER)]
    first = side("a", shared, model("gone", 1.0), layer(1, 0.0, protocol="cold"))
    limits = compare(first, side("b", shared, layer(2, 1.0)))
    threads = compare(side("a", layer(0, 0.0)), side("b", layer(0, 0.0, runtime=TWO)))
    sides = [side("a.json", ours, layer(0, 1.0)), side("b.json", *theirs)]
    broken = [side_of("a", [*DEFINITIONS, ours], ["line 7 of a is no JSON"])]
    other_system = [[side("a", model("m", 10.0)), side("b", model(it, 5.0, system="there"))] for it in "mn"]
    check(
        "report-comparison",
        {
            "limits": told(changes_section([limits])),
            "circumstances that are compared": told(changes_section([threads])),
            "sides": told(sides_section(sides, facts_of(sides))),
            "what a side does not tell": told(
                sides_section([side("a", ours), side("b", model("n", 1.0), origin())], ())
            ),
            "broken lines": told(sides_section(broken, facts_of(broken))),
            "no hosts": told(hosts_section(None)),
            "hosts": told(hosts_section(hosts_of(other_system[0], lambda _: None))),
            "hosts of other models": told(hosts_section(hosts_of(other_system[1], lambda _: None))),
        },
    )
    assert [letters(it) for it in (0, 1, 25, 26)] == ["A", "B", "Z", "AA"]
