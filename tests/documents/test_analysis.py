from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.analysis.bounds import best_measured, gap_of, over_best
from dlbricks_tui.analysis.groups import MeasuredExecution
from dlbricks_tui.analysis.what_if import MeasuredGain
from dlbricks_tui.analysis.what_ifs import what_ifs_of
from dlbricks_tui.answers.analysing import Analysis
from dlbricks_tui.documents.analysis import AnalysisDocument, layer_columns
from dlbricks_tui.documents.layout import laid_out
from dlbricks_tui.documents.lines import width_of
from dlbricks_tui.documents.look import TEXT
from dlbricks_tui.documents.parts import Figures
from dlbricks_tui.estimate.knowledge import Latency
from dlbricks_tui.estimate.parts import Standing
from dlbricks_tui.models.library import ModelSource
from tests.analysis.executions import executed, some_executions, with_nodes
from tests.bricks.graphs import chain
from tests.documents.snapshots import check
from tests.documents.test_layout import texts

GRAPH = with_nodes(chain("conv", "relu", "pool"))
BASELINE = executed(GRAPH, {0: 4.0, 1: 1.0, 2: 1.0}, end_to_end=Latency(6.5, 6.4, 6.6))
FASTER = executed(GRAPH, {0: 2.0, 1: 1.0, 2: 1.0}, threads=2)


def analysed(baseline: MeasuredExecution, *others: MeasuredExecution, **changed: Any) -> AnalysisDocument:
    """The analysis of a model, with the best of these executions."""
    best = best_measured([baseline, *others])
    values: dict[str, Any] = {
        "source": ModelSource("model", Path("model.onnx")),
        "system": "here",
        "baseline": baseline,
        "executions": (baseline, *others),
        "best": best,
        "over_best": over_best(baseline, best),
        "gap": gap_of(baseline, best),
        "roof": None,
        "roofline_ms": None,
        "points": (),
        "what_ifs": what_ifs_of(baseline, others),
        "written": None,
        "missing": (),
    }
    return AnalysisDocument(Analysis(**(values | changed)))


def without_best(baseline: MeasuredExecution) -> AnalysisDocument:
    found = replace(analysed(BASELINE).found, baseline=baseline, best=None, over_best=None, gap=None)
    return AnalysisDocument(found)


def timed_beside(one: MeasuredExecution, reference_ms: float) -> MeasuredExecution:
    """The execution, measured when the reference took so long."""
    parts = [
        replace(it, measured=it.measured._replace(reference_ms=reference_ms))
        for it in one.parts
        if it.measured is not None
    ]
    return replace(one, found=replace(one.found, estimate=replace(one.estimate, parts=tuple(parts))))


def without_a_layer(one: MeasuredExecution) -> MeasuredExecution:
    """The execution with an estimate that leaves its last layer out."""
    *parts, last = one.parts
    parts.append(replace(last, standing=Standing.MISSING, measured=None))
    return replace(one, found=replace(one.found, estimate=replace(one.estimate, parts=tuple(parts))))


def test_the_analysis_tells_latency_bounds_gap_and_what_ifs() -> None:
    timed, one = analysed(BASELINE, FASTER, roofline_ms=3.5), analysed(executed(GRAPH, {0: 4.0, 1: 1.0, 2: 1.0}))
    partial = without_best(without_a_layer(one.found.baseline))
    check(
        "analysis",
        {
            "timed": timed.whole(with_layers=True),
            "the picture": timed.gap_picture,
            "with an end-to-end latency below the best": analysed(
                executed(GRAPH, {0: 4.0, 1: 1.0, 2: 1.0}, end_to_end=Latency(5.5, 5.4, 5.6)), FASTER
            ).gap(with_bar=True),
            "not timed": one.whole(),
            "not timed, the picture": one.gap_picture,
            "of a part": partial.whole(),
            "of a part, the picture": partial.gap_picture,
        },
    )
    assert partial.gap_sentence == "Not all layers were measured, so there is no best yet."
    assert not partial.groups and timed.roofline is None


def test_a_model_without_an_estimate_says_why() -> None:
    found = executed(GRAPH).found
    impossible = replace(found.estimate, composed=None, obstacle="2 of 3 layers cannot be measured by themselves")
    document = without_best(replace(BASELINE, found=replace(found, estimate=impossible)))
    assert document.headline == f"model: no estimate is possible: {impossible.obstacle}"
    assert document.gap_picture is None
    unknown = replace(found, estimate=replace(impossible, obstacle=""))
    assert without_best(replace(BASELINE, found=unknown)).headline == "model: nothing was measured"


def test_a_gap_is_told_in_a_sentence_also_where_there_is_none() -> None:
    told = analysed(BASELINE, FASTER).gap_sentence
    assert told == "The best measured takes 4.000 ms; above it are slower layers 2.000 ms, unexplained 0.500 ms."
    assert analysed(FASTER).gap_sentence == "The best measured takes 4.000 ms; there is no gap above it."


def test_peaks_of_a_busy_host_are_a_doubt() -> None:
    (figures,) = analysed(BASELINE, roofline_ms=3.0, lacks_peaks=True).latencies()
    assert isinstance(figures, Figures)
    roofline = figures.rows[-1]
    assert roofline.style == "warn" and roofline.remarks[0].startswith("the peaks were measured on a busy host")


def test_an_execution_that_was_measured_at_another_speed_of_the_host_is_named() -> None:
    calm, other = timed_beside(BASELINE, 1.0), executed(GRAPH, {0: 2.0, 1: 1.0, 2: 1.0})
    told = "MXNet unfused on 1 thread was measured when the host was 30 % faster or slower: measure both in one run"
    assert texts(120, *analysed(calm, timed_beside(other, 1.3)).latencies())[5:] == [told]
    assert len(texts(120, *analysed(calm, timed_beside(other, 1.05)).latencies())) == 5


def test_references_of_runtimes_with_other_settings_are_not_compared() -> None:
    calm, two_threads = timed_beside(BASELINE, 1.0), timed_beside(FASTER, 0.5)
    assert len(texts(120, *analysed(calm, two_threads).latencies())) == 5


def test_a_new_proof_is_part_of_the_analysis() -> None:
    document = analysed(BASELINE, FASTER)
    (before,) = document.changes
    proof = MeasuredGain(4.8, 0.26, (0.2, 0.32), 6.5, "2026-11-27T00:00:00+00:00")
    (after,) = document.with_proof(before.what_if.id, proof).changes
    assert (before.proof, after.proof) == (None, proof) and after.changed is FASTER


def test_each_group_of_layers_has_a_row_with_its_end_in_few_columns() -> None:
    named = [replace(it, name=f"a_network_with_a_long_name_stage{it.index}") for it in GRAPH.layers]
    graph = replace(GRAPH, layers=tuple(named))
    one, other = executed(graph, {0: 4.0, 1: 1.0, 2: 1.0}), executed(graph, {0: 2.0, 1: 1.5, 2: 1.5}, threads=2)
    document = analysed(one, other)
    assert texts(100, *document.layers(), look=TEXT) == [
        "Layers of a_network_with_a_long_name_...",
        "LAYERS  HERE MS  BEST MS    SLOWER  FASTEST",
        "stage0    4.000    2.000  +100.0 %  MXNet unfused on 2 threads",
        "stage1    1.000    1.000    +0.0 %  MXNet unfused on 1 thread",
        "stage2    1.000    1.000    +0.0 %  MXNet unfused on 1 thread",
    ]
    slower = layer_columns("")[3]
    assert callable(slower.style)
    assert [slower.style(it) for it in document.groups] == ["bad", "muted", "muted"]


@given(some_executions(), st.integers(60, 120))
def test_lines_keep_to_the_width(executions: list[MeasuredExecution], width: int) -> None:
    document = analysed(*executions)
    parts = *document.latencies(), *document.gap(with_bar=True), *document.layers()
    assert all(width_of(line) <= width for line in laid_out(parts, width))
