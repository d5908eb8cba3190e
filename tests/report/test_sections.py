"""The sections of reports and of comparisons."""

import csv
import io
from dataclasses import replace
from typing import Any
from xml.dom.minidom import parseString

import pytest

from dlbricks_tui.analysis.bounds import Gap, LayerPoint, Roof, Work
from dlbricks_tui.analysis.what_if import WhatIfKind
from dlbricks_tui.api.analyses import BestGain
from dlbricks_tui.api.changes import compare, hosts_of
from dlbricks_tui.api.reported import ReportContents, ReportedModel
from dlbricks_tui.api.sides import facts_of, side_of
from dlbricks_tui.bricks.decomposition import compare as compare_models
from dlbricks_tui.documents.analysis import analyses_parts
from dlbricks_tui.documents.parts import Table
from dlbricks_tui.documents.pictures import LegendSign
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.report.comparison import (
    DrawnRatio,
    changes_section,
    hosts_section,
    letters,
    ratio_axis,
    ratio_rows,
    ratios_shown,
    row_labels,
    sides_section,
)
from dlbricks_tui.report.page import CsvTable, Exhibit, Section, cell_text
from dlbricks_tui.report.report import analysis_sections, origins_section, scenarios_section
from dlbricks_tui.runtime.variant import Variant
from dlbricks_tui.store.records import LoadTest
from dlbricks_tui.store.statistics import pack_latencies
from tests.analysis.executions import analysed
from tests.api.exports import DEFINITIONS, NEWER, TWO, layer, model, origin, side
from tests.store.samples import load_test, provenance

ROOF = Roof(1, {"avx512": 100.0, "avx2": 60.0}, 10.0, 40.0, 1 << 25, 1 << 20)


def point(share: int, operations: float = 1e9) -> LayerPoint:
    return LayerPoint((share,), (Kind.CONVOLUTION,), 1, Work(operations, 1e6, 1e6), float(share), 0.5)


def exhibit(sections: tuple[Section, ...], anchor: str) -> Exhibit:
    (found,) = next(it for it in sections if it.anchor == anchor).exhibits
    if found.svg:
        parseString(found.svg)
    return found


def cells(found: Exhibit, model: str) -> dict[str, object]:
    """The row of a model in the file, by column."""
    columns, place = found.numbers.columns, found.numbers.columns.index("model")
    return dict(zip(columns, next(row for row in found.numbers.rows if row[place] == model), strict=True))


def shown(found: Exhibit) -> list[list[str]]:
    """The rows as the page shows them."""
    assert found.table is not None
    return [[str(it.cell(row)) for it in found.table.columns] for row in found.table.rows]


def test_a_store_with_nothing_to_analyse_gets_one_line() -> None:
    for models in ([], [analysed(best_ms=None, best_parallel_ms=None, gap=None, gains={})]):
        (section,) = analysis_sections(models)
        (line,) = section.missing
        assert section.exhibits == ()
        assert "`dlbricks analyze MODEL --measure`" in line


def test_bounds_gains_and_gaps_have_a_row_for_each_model() -> None:
    gains = {
        WhatIfKind.THREADS: BestGain("threads-2", 0.4, 0.35, False),
        WhatIfKind.RUNTIME: BestGain("runtime-mix", 0.1, None, True),
        WhatIfKind.BATCH: BestGain("batch-8", -3.0, None, False),
    }
    bad = analysed("bad", best_ms=None, best_parallel_ms=None, gap=None, gains={})
    below = analysed("below", gap=Gap(6 * 10**9, 0, -2 * 10**9), gains={})
    sections = analysis_sections([analysed("one", gains=gains), analysed("two", measured_ms=40.0), bad, below])
    bounds = exhibit(sections, "bounds")
    assert bounds.name == "figure-bounds-here-mxnet-fused"
    assert cells(bounds, "one")["best_over_latency"] == 0.6
    assert shown(bounds)[-2][0] == "geometric mean" and "geometric mean" not in bounds.numbers.csv()
    assert "sequential 0.38, parallel 0.31" in bounds.caption
    # Predicted and proved gains stand beside one another. Kinds without results have columns only in the file, and a
    # line that says so.
    gains_found = exhibit(sections, "gains")
    assert "+40/+35" in shown(gains_found)[0] and len(shown(gains_found)[0]) == 4
    row = cells(gains_found, "one")
    assert (row["best_threads"], row["threads_gain"], row["threads_proved"]) == ("threads-2", 0.4, 0.35)
    assert row["runtime_gain"] == 0.1 and row["fusion_gain"] is None
    (line,) = sections[1].missing
    assert "--kinds parallel,kernels,fusion,precision" in line
    # A model without a best is named and has an empty row; gaps may have a negative rest.
    assert "No best of bad" in sections[0].missing[0]
    gap = exhibit(sections, "gap")
    assert cells(gap, "bad")["best_share"] is None
    row = cells(gap, "below")
    shares = [row[f"{part}_share"] for part in ("best", "slower_layers", "conversions", "unexplained")]
    assert sum(shares) == 1.0  # type: ignore[arg-type]
    assert row["unexplained_share"] == -0.2


def test_the_tables_of_the_page_are_those_of_the_command_line() -> None:
    models = [analysed("one"), analysed("two", measured_ms=40.0)]
    sections = analysis_sections(models)
    page = [shown(exhibit(sections, anchor)) for anchor in ("bounds", "gains", "gap")]
    tables = [it for it in analyses_parts(models) if isinstance(it, Table)]
    assert [[[str(column.cell(row)) for column in it.columns] for row in it.rows] for it in tables] == page


def test_the_roofline_has_the_layers_that_take_some_time() -> None:
    points = (point(90), point(9), point(1), point(50, operations=0.0))
    sections = analysis_sections([analysed("one", points=points, roof=ROOF), analysed("two")])
    found = exhibit(sections, "roofline")
    assert [row[found.numbers.columns.index("first_layer")] for row in found.numbers.rows] == [90, 9]
    assert "dlbricks doctor --peaks" in sections[-1].missing[0]


def test_each_execution_has_figures_with_names_of_their_own() -> None:
    models = [analysed("one"), analysed("one", variant=Variant(threads=2))]
    names = [it.name for section in analysis_sections(models) for it in section.exhibits]
    assert len(names) == len(set(names)) == 6
    assert all(name.startswith("figure-") for name in names)


CONTENTS = ReportContents((), (ReportedModel("resnet50_v1", "14"),), {}, compare_models([]), (), ())


def section(*tests: LoadTest) -> Section:
    found = scenarios_section(CONTENTS, tests)
    for exhibit in found.exhibits:
        if exhibit.svg:
            parseString(exhibit.svg)
    return found


def scenario_cells(found: Section) -> list[dict[str, Any]]:
    """The rows of the table as the page shows it, by column."""
    shown = found.exhibits[0].numbers.shown()
    return [dict(zip(shown.columns, row, strict=True)) for row in shown.rows]


def test_a_store_without_load_tests_gets_one_line() -> None:
    found = section()
    assert found.exhibits == ()
    assert "`dlbricks scenario MODEL --kind server --bound-ms 50`" in found.missing[0]


def test_the_last_test_of_each_scenario_has_a_row_and_each_system_has_histograms_of_all_but_offline_latencies() -> None:
    newer = load_test(when="2026-11-22T08:00:00+00:00", rate=44.0)
    offline = load_test(kind="offline", rate=None, sought=False, bound_ms=None)
    found = section(load_test(), newer, offline, replace(newer, system="m5.large"))
    other, row, there = scenario_cells(found)
    assert (row["table1_id"], row["model"], row["kind"], row["percentile"]) == ("14", "resnet50_v1", "server", "p99")
    assert (row["bound_ms"], row["bound_met"], row["rate"], row["valid"]) == (20.0, "yes", 44.0, "yes")
    assert (row["p50_ms"], row["p99_ms"]) == (10.000307, 12.00045)
    assert [(it["kind"], it["rate"]) for it in (other, there)] == [("offline", None), ("server", 44.0)]
    assert [it.name for it in found.exhibits] == [
        "table-scenarios",
        "figure-scenarios-c5.xlarge",
        "figure-scenarios-m5.large",
    ]
    requests = [row[-1] for row in found.exhibits[1].numbers.rows]
    assert sum(it for it in requests if isinstance(it, int)) == 700
    assert "bound" in found.exhibits[1].svg


def test_histograms_of_several_runtimes_name_them_and_requests_of_equal_latency_are_drawn_too() -> None:
    one, two = load_test(runtime="mxnet-1.9.1 threads-1"), load_test(runtime="onnxruntime-1.32.0 python-3.11 threads-2")
    assert "mxnet" not in section(replace(one, latencies=pack_latencies([10_000_000] * 700))).exhibits[1].svg
    assert "(onnxruntime-1.32.0, 2 threads)" in section(one, two).exhibits[1].svg


def rows(*origins: Any) -> list[dict[str, Any]]:
    (section,) = origins_section(origins)
    table = section.exhibits[0].numbers
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def test_results_without_provenance_get_no_section() -> None:
    assert list(origins_section(())) == []


def test_equal_versions_on_equal_hosts_are_one_row() -> None:
    later = "2026-11-22T08:00:00+00:00"
    (row,) = rows(provenance(), provenance(run="r2", when=later), provenance(run="r2"))
    assert (row["runs"], row["last_run"], row["framework"]) == (2, later, "MXNet 1.9.1")
    assert (row["onednn"], row["kernel"], row["turbo"]) == ("2.4.0", "6.1.0-13-cloud-amd64", "yes")
    assert (row["numpy"], row["microcode"]) == (None, None)


def test_another_kernel_or_version_is_another_row() -> None:
    found = rows(provenance(), provenance(host=(("kernel", "6.9"),)), provenance(packages=(("onnxruntime", "1.32.0"),)))
    assert sorted((str(it["framework"]), str(it["kernel"])) for it in found) == [
        ("MXNet 1.9.1", "6.1.0-13-cloud-amd64"),
        ("MXNet 1.9.1", "6.9"),
        ("ONNX Runtime 1.32.0", "6.1.0-13-cloud-amd64"),
    ]


NUMBERS = CsvTable(("model", "latency_ms", "results"), [("a, b", 0.1, "e1 e2"), ("c", None, "")], details=("results",))


def test_csv_keeps_numbers_exact_and_leaves_unknown_cells_empty() -> None:
    assert list(csv.reader(io.StringIO(NUMBERS.csv()))) == [
        ["model", "latency_ms", "results"],
        ["a, b", "0.1", "e1 e2"],
        ["c", "", ""],
    ]


def test_columns_for_machines_are_not_shown() -> None:
    shown = NUMBERS.shown()
    assert shown.columns == ("model", "latency_ms")
    assert shown.rows == (("a, b", 0.1), ("c", None))


def test_tables_show_significant_digits() -> None:
    assert [cell_text(cell) for cell in (None, 10815, 1234.56, 0.97234, "conv")] == [
        "-",
        "10,815",
        "1,235",
        "0.9723",
        "conv",
    ]


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


def test_limits_of_a_comparison_are_named() -> None:
    shared = layer(0, 0.0)
    first = side("a", shared, model("gone", 1.0), layer(1, 0.0, protocol="cold"))
    section = changes_section([compare(first, side("b", shared, layer(2, 1.0)))])
    assert section.answer == "From A to B, nothing can be compared."
    assert section.missing == (
        "Of A and not compared with B: 1 model (gone) and 2 bricks: a latency of zero (1); "
        "no corresponding execution there (1); no result there (1).",
        "Of B and not compared with A: 2 bricks: a latency of zero (1); no result there (1).",
        "Results of methods that only one of A and B has are not compared: cold.",
        "A and B share 1 result.",
        "A or B has results of one run only, so the intervals leave out how much processes differ, often some percent. "
        "Measure twice before you trust a small change.",
    )


def test_circumstances_that_are_compared_are_named() -> None:
    first, second = side("a", layer(0, 0.0)), side("b", layer(0, 0.0, runtime=TWO))
    section = changes_section([compare(first, second)])
    assert "Different, and compared all the same: threads (1 thread in A, 2 threads in B)." in section.missing


def test_sides_have_letters() -> None:
    assert [letters(it) for it in (0, 1, 25, 26)] == ["A", "B", "Z", "27"]


def test_only_differences_are_repeated() -> None:
    sides = [side("a.json", model("m", 1.0), layer(0, 1.0)), side("b.json", model("m", 1.0, runtime=NEWER))]
    section = sides_section(sides, facts_of(sides))
    assert section.answer == "A is a.json, B is b.json. They differ in: framework."
    assert [row[0] for row in section.exhibits[1].numbers.rows] == ["framework"]


def test_a_side_that_does_not_tell_is_named() -> None:
    section = sides_section([side("a", model("m", 1.0)), side("b", model("n", 1.0), origin())], ())
    assert section.missing == (
        "A does not tell the versions of packages and the state of the host for 1 of its 1 run.",
    )


def test_lines_without_a_record_are_counted() -> None:
    broken = side_of("a", [*DEFINITIONS, model("m", 1.0)], ["line 7 of a is no JSON"])
    section = sides_section([broken], facts_of([broken]))
    assert "A has 1 line without a record, the first: line 7 of a is no JSON." in section.missing


def test_hosts_are_told_how_fast_they_are_or_why_not() -> None:
    assert hosts_section(None).answer == "All results are of one system."
    first = side("a", model("m", 10.0))
    for other, said in (("m", "there takes 0.500 times as long"), ("n", "there has no model to compare with here.")):
        second = side("b", model(other, 5.0, system="there"))
        section = hosts_section(hosts_of([first, second], lambda _: None))
        assert section.answer.startswith(said)
        told = "No estimate by system of 1 model (m)" if other == "m" else "Of there and not compared with here"
        assert section.missing[-1].startswith(told)
