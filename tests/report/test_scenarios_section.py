from dataclasses import replace
from typing import Any
from xml.dom.minidom import parseString

from dlbricks_tui.answers.reported import ReportContents, ReportedModel
from dlbricks_tui.bricks.corpus import compare
from dlbricks_tui.report.measured import scenarios_section
from dlbricks_tui.report.page import Section
from dlbricks_tui.store.records import LoadTest
from dlbricks_tui.store.statistics import pack_latencies
from tests.store.samples import load_test

CONTENTS = ReportContents((), (ReportedModel("resnet50_v1", "14"),), {}, compare([]), (), ())


def section(*tests: LoadTest) -> Section:
    found = scenarios_section(CONTENTS, tests)
    for exhibit in found.exhibits:
        if exhibit.svg:
            parseString(exhibit.svg)
    return found


def cells(found: Section) -> list[dict[str, Any]]:
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
    other, row, there = cells(found)
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
