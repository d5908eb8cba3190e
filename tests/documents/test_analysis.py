"""Analyses of one model and of many: what they say, kernels, what-ifs and the roofline."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.analysis.bounds import LayerPoint, Roof, Work, best_measured, gap_of, over_best
from dlbricks_tui.analysis.groups import MeasuredExecution
from dlbricks_tui.analysis.kernels import LayerKernel, TimedKernel
from dlbricks_tui.analysis.what_if import Correction, Gain, MeasuredGain, WhatIf, WhatIfKind
from dlbricks_tui.analysis.what_ifs import what_ifs_of
from dlbricks_tui.api.analyses import BestGain, ModelRow
from dlbricks_tui.api.analysing import Analysis
from dlbricks_tui.documents.analysis import (
    AnalysisDocument,
    analyses_parts,
    kernels_table,
    layer_columns,
    layer_kernels_table,
)
from dlbricks_tui.documents.layout import TEXT, laid_out
from dlbricks_tui.documents.lines import width_of
from dlbricks_tui.documents.parts import Figures, Table
from dlbricks_tui.documents.pictures import Plot
from dlbricks_tui.documents.what_ifs import (
    ShownWhatIf,
    change_facts,
    change_reasons,
    gains_picture,
    gains_sentence,
    interval_of,
    largest_gain,
    remarks_on,
    roofline_plot,
    what_if_columns,
    what_ifs_parts,
)
from dlbricks_tui.estimate.knowledge import Latency
from dlbricks_tui.estimate.parts import Standing
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runtime.variant import Variant
from tests.analysis.executions import analysed as model_row
from tests.analysis.executions import executed, some_executions, with_nodes
from tests.bricks.graphs import chain
from tests.documents.snapshots import check
from tests.documents.test_drawing import text_of
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


EVERY_KIND = {kind: BestGain(f"{kind.value}-x", 0.25, -0.125, False) for kind in WhatIfKind}


def tables_of(models: Sequence[ModelRow]) -> list[str]:
    return texts(80, *analyses_parts(models), look=TEXT)


def row(lines: list[str], beginning: str) -> list[str]:
    """The cells of the first line that begins so."""
    return next(line for line in lines if line.startswith(beginning)).removeprefix(beginning).split()


def after(lines: list[str], title: str) -> list[str]:
    start = next(number for number, line in enumerate(lines) if line.startswith(title))
    return lines[start:]


def test_each_table_has_a_row_for_each_model_their_mean_and_the_models_without_a_value() -> None:
    bad = model_row("bad", best_ms=None, best_parallel_ms=None, gap=None, gains={})
    bound = {WhatIfKind.FUSION: BestGain("fusion", 0.03, None, True), WhatIfKind.BATCH: BestGain("x", 0.0, -0.1, False)}
    partial = model_row(measured_ms=None, partial=True, best_ms=None, best_parallel_ms=None, gap=None, gains={})
    check(
        "analyses",
        {
            "several": analyses_parts([model_row("one"), model_row("two", measured_ms=40.0), bad]),
            "not timed, predicted": analyses_parts([model_row(measured_ms=None, predicted=True, gains=bound)]),
            "of a part": analyses_parts([partial]),
            "every kind": analyses_parts([model_row(gains=EVERY_KIND)]),
        },
    )


def test_all_kinds_fit_on_a_terminal_of_80_columns() -> None:
    long = model_row("A network with a very long name that no column holds", table1_id="17", gains=EVERY_KIND)
    huge = model_row("net", measured_ms=123_456.0, best_ms=99_999.0, roofline_ms=88_888.0, gains=EVERY_KIND)
    lines = tables_of([long, huge])
    assert max(map(len, lines)) <= 80
    assert row(after(lines, "GAINS"), "17 A net")[-7:] == ["+25/-12"] * 7


def test_models_of_different_executions_have_tables_of_their_own() -> None:
    lines = tables_of([model_row("one"), model_row("two", variant=Variant(threads=2))])
    assert [line for line in lines if line.endswith(": 1 model")] == [
        "here, MXNet 1.9.1, fused layers, batch 1, 1 thread, f32: 1 model",
        "here, MXNet 1.9.1, fused layers, batch 1, 2 threads, f32: 1 model",
    ]


def test_signs_are_explained_once_and_tables_without_a_value_are_left_out() -> None:
    unknown = model_row("two", variant=Variant(threads=2), best_ms=None, best_parallel_ms=None, gap=None, gains={})
    lines = tables_of([model_row("one"), unknown])
    assert sum(line.startswith("x: ") for line in lines) == 1
    assert [line.split()[0] for line in lines if line.startswith(("BOUNDS", "GAINS", "GAP"))] == [
        *("BOUNDS", "GAINS", "GAP"),
        "BOUNDS",
    ]


(FOUND,) = what_ifs_of(BASELINE, [FASTER])
PARALLEL = replace(FOUND, id="parallel-2", kind=WhatIfKind.PARALLEL)
NOISY = Gain(0.26, 0.05, 0.47)


def change(found: WhatIf = FOUND, proof: Gain | None = None) -> ShownWhatIf:
    measured = None if proof is None else MeasuredGain(4.81, proof.value, (proof.low, proof.high), 6.5, "2026-11-27T00")
    return ShownWhatIf(found, measured, None if found.change is None else FASTER)


def change_lines(changes: Sequence[ShownWhatIf], width: int = 80) -> list[str]:
    return texts(width, *what_ifs_parts(changes), look=TEXT)


def remarks(found: WhatIf = FOUND, proof: Gain | None = None) -> list[str]:
    return list(remarks_on(change(found, proof)))


def test_what_ifs_show_gain_proof_setting_and_layers() -> None:
    loss, bound = Gain(-1.2, -3.0, -0.9), replace(FOUND, change=None)
    both = [change(PARALLEL, loss), change(bound)]
    check(
        "what-ifs",
        {
            "none": what_ifs_parts([]),
            "proved": what_ifs_parts([change(proof=NOISY)]),
            "not proved": what_ifs_parts([change()]),
            "under way": [Table(what_if_columns(both, {"parallel-2": "running"}), both)],
            "the picture": gains_picture(both),
            "the picture of small gains": gains_picture([change(), change(replace(FOUND, gain=Gain(0.0, -0.05, 0.9)))]),
            "no picture": gains_picture([]),
            "facts": [*change_facts(both[0]), *change_reasons(both[0])],
            "facts of a bound": [*change_facts(both[1]), *change_reasons(both[1])],
        },
    )
    titles, row, *_ = change_lines([change(proof=NOISY)], 55)
    assert titles.endswith("PROVED") and row.endswith("+26.0 %")


def test_one_line_says_which_unproved_what_ifs_are_not_to_be_trusted() -> None:
    found = replace(FOUND, layers=())
    small, loss = (replace(found, id=str(gain), gain=Gain(gain, gain, gain)) for gain in (0.05, -0.5))
    parallel = replace(PARALLEL, layers=())
    told = "to be proved first: branches at once (never gained), gains below 10 %"
    unproved = change_lines([change(it) for it in (loss, small, found, parallel)])
    assert (len(unproved), unproved[-1]) == (10, told)
    assert len(change_lines([change(it, NOISY) for it in (loss, small, found, parallel)])) == 9
    # Nobody can prove a bound.
    assert len(change_lines([change(found), change(replace(parallel, change=None))])) == 5


@pytest.mark.parametrize(
    ("found", "under_way", "expected"),
    [
        (change(), {}, ("not yet", "muted")),
        (change(replace(FOUND, change=None)), {}, ("cannot", "muted")),
        (change(proof=NOISY), {}, ("+26.0 %", "good")),
        (change(proof=Gain(-0.1, -0.2, 0.0)), {}, ("-10.0 %", "bad")),
        (change(proof=NOISY), {"threads-2": "running"}, ("running", "warn")),
    ],
)
def test_the_column_of_proofs_tells_bounds_and_what_is_under_way(
    found: ShownWhatIf, under_way: Mapping[str, str], expected: tuple[str, str]
) -> None:
    (proved,) = (it for it in what_if_columns([found], under_way) if it.title == "proved")
    assert callable(proved.style)
    assert (proved.cell(found), proved.style(found)) == expected


def test_the_largest_gain_is_to_be_proved_where_it_is_not_to_be_trusted() -> None:
    assert largest_gain([change(PARALLEL)]).endswith("), to be proved")
    told = "largest gain: run 2 branches at once, +26.0 % (+5 to +47), proved"
    assert largest_gain([change(replace(FOUND, change=None)), change(PARALLEL, NOISY)]) == told
    assert largest_gain([change()]).endswith(")")


def test_a_sentence_counts_the_changes_that_save_time() -> None:
    unsure = change(PARALLEL, Gain(0.2, -0.1, 0.5))
    assert gains_sentence([change(), unsure]).startswith(
        "1 of 2 changes saves time; largest gain: use 2 threads, +33.3 %"
    )
    assert gains_sentence([unsure]) == "No change is worth making: none of 1 change saves time for certain."
    assert gains_sentence([]).startswith("Which change is worth making is not known")


def test_a_what_if_that_is_not_to_be_trusted_says_so_until_it_is_proved() -> None:
    small = replace(FOUND, gain=Gain(0.05, 0.01, 0.09))
    remark = "A gain below 10 % can be a loss: prove it."
    assert remark in remarks(small)
    assert remark not in remarks(small, Gain(0.05, 0.04, 0.06))
    assert remark not in remarks()


def test_a_proof_that_may_have_gained_nothing_is_no_largest_gain() -> None:
    assert largest_gain([change(proof=Gain(0.26, -0.05, 0.57))]) == ""
    assert "The interval contains 0: the change may gain nothing." in remarks(proof=Gain(0.2, -0.1, 0.5))


def test_an_unproved_prediction_says_whether_the_whole_model_was_timed_after_the_change() -> None:
    assert remarks() == ["It compares sums of layers: the whole model was not timed after the change."]
    timed = replace(FASTER, found=replace(FASTER.found, end_to_end=Latency(4.1, 4.0, 4.2)))
    (remark,) = remarks_on(change()._replace(changed=timed))
    assert remark == "The whole model took 4.100 ms after the change, in another run."
    assert "No runtime can do it, so it is a limit, and cannot be proved." in remarks(replace(FOUND, change=None))


def test_a_predicted_loss_is_no_gain_and_no_limit_however_large() -> None:
    slower = replace(FOUND, gain=Gain(-0.54, -0.64, -0.45), change=None)
    assert change_lines([change(slower)])[1].split("  ")[1:3] == ["no gain", "-64 to -45"]
    assert remarks(slower) == ["No runtime can do it, and it would gain nothing."]
    picture = gains_picture([change(slower)])
    assert picture is not None and picture.rows[0].text == "no gain"


def test_a_prediction_that_proofs_of_other_models_corrected_says_so_until_it_is_proved_itself() -> None:
    taught = replace(FOUND, correction=Correction(2, Gain(0.4, 0.3, 0.5)))
    assert "Corrected by proofs of 2 other models on this host; without them: +40.0 % (+30 to +50)." in remarks(taught)
    assert not any("Corrected" in remark for remark in remarks(taught, proof=NOISY))


def test_a_noisy_proof_does_not_judge_a_prediction() -> None:
    assert FOUND.gain.value == pytest.approx(1 / 3)
    assert remarks(proof=NOISY) == ["The proof is noisy: its interval is +5 to +47. Repeat it on a quiet host."]
    (remark,) = remarks(proof=Gain(0.26, 0.2, 0.32))
    assert remark == "The proof agrees with the prediction: they differ by 7 points."
    (remark,) = remarks(proof=Gain(0.13, 0.1, 0.16))
    assert remark == "The proof refutes the prediction: they differ by 20 points."


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (-0.21, 0.012, "-21 to +1"),
        (-0.004, 0.3, "+0 to +30"),
        (-9.99, 0.77, "-999 to +77"),
        (-699.92, 0.77, "<-999 to +77"),
        (-700.0, -20.0, "below -999"),
        (-2.09, 1.81, "-209 to +100"),
    ],
)
def test_intervals_end_at_a_loss_of_999_percent_and_at_a_gain_of_100(low: float, high: float, expected: str) -> None:
    assert interval_of(Gain((low + high) / 2, low, high)) == expected


ROOF = Roof(2, {"avx512": 230.0, "avx2": 130.0}, 16.5, 22.7, 32 << 20, 4 << 20)
LAYERS = chain("conv", "relu", "pool", "add")
AMOUNTS = st.floats(0.0, 1e12)


def point(layer: int, operations: float, moved: float, latency_ms: float, kind: Kind | None = None) -> LayerPoint:
    kind = LAYERS.layers[layer].kind if kind is None else kind
    work = Work(operations, moved, 0.0)
    return LayerPoint((layer,), (kind,), 1, work, latency_ms, ROOF.least_ms(work, 0.0))


def letters(plot: Plot) -> dict[str, tuple[tuple[float, float], ...]]:
    """The places of the layers by their letters."""
    return {it.mark: it.points for it in plot.series if it.mark.isalpha()}


CONVOLUTION, RELU = point(0, 2e9, 8e6, 10.0), point(1, 2e6, 64e6, 5.0)


@given(st.lists(st.builds(point, st.integers(0, 3), AMOUNTS, AMOUNTS, st.floats(1e-6, 1e6)), max_size=30))
def test_any_layers_fit_on_a_screen_of_80_columns_and_24_lines(points: list[LayerPoint]) -> None:
    lines = text_of(roofline_plot(points, ROOF), 80, 21)
    assert len(lines) == 21
    assert max(map(len, lines)) <= 80


def test_layers_stand_by_their_intensity_and_speed_under_the_roofs() -> None:
    small, slow, intense = replace(RELU, latency_ms=0.2), point(2, 2e2, 64e6, 500.0), point(3, 2e12, 8.0, 9.0)
    check(
        "roofline",
        {
            "two layers": roofline_plot([CONVOLUTION, RELU], ROOF),
            "a small one": roofline_plot([CONVOLUTION, small], ROOF),
            "beyond the edges": roofline_plot([CONVOLUTION, slow, intense], ROOF),
            "without a shared cache": roofline_plot([replace(RELU, times=2)], replace(ROOF, shared_cache=None)),
            "nothing": roofline_plot([], ROOF),
        },
    )


def test_views_are_left_out() -> None:
    assert letters(roofline_plot([CONVOLUTION, point(2, 5.0, 0.0, 0.1)], ROOF)).keys() == {"C"}


def test_all_kinds_of_layers_are_explained_at_80_columns() -> None:
    plot = roofline_plot([point(0, 2e9, 8e6, 10.0, kind) for kind in Kind], ROOF)
    text = " ".join(text_of(plot, 80, 21))
    assert len(plot.legend) > 10 and all(name in text for name in plot.legend)


@pytest.mark.parametrize("kind", Kind)
def test_each_kind_of_layer_has_a_letter_that_is_explained(kind: Kind) -> None:
    plot = roofline_plot([replace(CONVOLUTION, kinds=(kind,))], ROOF)
    (letter,) = letters(plot)
    assert any(name.startswith(f"{letter.lower()} ") for name in plot.legend)


WIDE = [TimedKernel(LayerKernel(number, "brgconv:avx512_core", "avx512"), f"wide{number}", 1.0) for number in range(3)]
NARROW = TimedKernel(
    LayerKernel(3, "jit_1x1:avx2", "avx2", ("acdb -> aBcd8b",), ("24 output channels are too few",), is_derived=True),
    "narrow",
    5.0,
)
SILENT = TimedKernel(LayerKernel(4, "", ""), "silent", 0.0)


def test_kernels_and_layers_are_ordered_by_their_time_with_the_reasons_against_others() -> None:
    found = [*WIDE, NARROW, SILENT]
    check("kernels", {"by kernel": [kernels_table(found)], "by layer": [layer_kernels_table(found)]}, width=80)
    assert texts(80, kernels_table([SILENT]))[1].split()[-2:] == ["0.000", "-"]


def test_reasons_that_several_layers_share_are_told_once_and_whole() -> None:
    told = [
        TimedKernel(LayerKernel(number, "ref", "", (), ("a long reason " * 9,)), f"layer{number}", 1.0)
        for number in range(4)
    ]
    _, _, *reason = texts(80, kernels_table(told))
    assert " ".join(" ".join(reason).split()) == f"4 layers: {'a long reason ' * 9}".strip()
    assert max(map(len, reason)) <= 80


def test_of_a_long_name_of_a_layer_its_end_is_shown() -> None:
    long = NARROW._replace(name=f"{'stage_' * 20}conv7")
    _, row = texts(60, layer_kernels_table([long]))
    assert row.startswith("…") and "_conv7  5.000  jit_1x1:avx2  acdb -> aBcd8b" in row and len(row) <= 60
