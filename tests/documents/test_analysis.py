"""Analyses of one model and of many: what they say, kernels, what-ifs and the roofline."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.analysis.bounds import LayerPoint, Roof, Work
from dlbricks_tui.analysis.groups import MeasuredExecution
from dlbricks_tui.analysis.what_if import Correction, Gain, MeasuredGain, WhatIf, WhatIfKind
from dlbricks_tui.analysis.what_ifs import what_ifs_of
from dlbricks_tui.api.analyses import ModelKernel
from dlbricks_tui.documents.analysis import (
    AnalysisDocument,
    analyses_parts,
    kernels_table,
    layer_kernels_table,
)
from dlbricks_tui.documents.layout import TEXT, laid_out
from dlbricks_tui.documents.lines import width_of
from dlbricks_tui.documents.parts import Part, Table
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
from dlbricks_tui.wording.answers import figure_number, figure_text
from tests.analysis.executions import analysed as model_row
from tests.analysis.executions import analysis_of, executed, some_executions, what_if, with_nodes
from tests.bricks.graphs import chain
from tests.documents.snapshots import check
from tests.documents.test_drawing import text_of
from tests.documents.test_layout import texts

GRAPH = with_nodes(chain("conv", "relu", "pool"))
BASELINE = executed(GRAPH, {0: 4.0, 1: 1.0, 2: 1.0}, end_to_end=Latency(6.5, 6.4, 6.6))
FASTER = executed(GRAPH, {0: 2.0, 1: 1.0, 2: 1.0}, threads=2)


def analysed(baseline: MeasuredExecution, *others: MeasuredExecution, **changed: Any) -> AnalysisDocument:
    return AnalysisDocument(analysis_of(baseline, *others, **changed))


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


def predicted(one: MeasuredExecution) -> MeasuredExecution:
    """The execution with predictions in place of measurements."""
    parts = [replace(it, standing=Standing.PREDICTED, measured=None) for it in one.parts]
    composed, coverage = one.estimate.composed, replace(one.estimate.coverage, predicted=3, measured=0)
    assert composed is not None
    composed = composed._replace(latency=Latency(composed.sequential_ms, 3.0, 30.0))
    estimate = replace(one.estimate, parts=tuple(parts), coverage=coverage, composed=composed)
    return replace(one, found=replace(one.found, estimate=estimate))


PREDICTED = predicted(executed(GRAPH))


def test_the_analysis_tells_latency_bounds_gap_and_what_ifs() -> None:
    times = {0: 4.0, 1: 1.0, 2: 1.0}
    timed, one = analysed(BASELINE, FASTER, roofline_ms=3.5), analysed(executed(GRAPH, times))
    partial = without_best(without_a_layer(one.found.baseline))
    below = analysed(executed(GRAPH, times, end_to_end=Latency(5.5, 5.4, 5.6)), FASTER)
    unknown = replace(executed(GRAPH).found.estimate, composed=None)
    nothing = replace(BASELINE, found=replace(executed(GRAPH).found, estimate=unknown))
    obstacle = replace(unknown, obstacle="2 of 3 layers cannot be measured by themselves")
    impossible = replace(nothing, found=replace(nothing.found, estimate=obstacle))
    calm, other = timed_beside(BASELINE, 1.0), executed(GRAPH, {0: 2.0, 1: 1.0, 2: 1.0})
    named = [replace(it, name=f"a_network_with_a_long_name_stage{it.index}") for it in GRAPH.layers]
    graph = replace(GRAPH, layers=tuple(named))
    long = analysed(executed(graph, times), executed(graph, {0: 2.0, 1: 1.5, 2: 1.5}, threads=2))
    check(
        "analysis",
        {
            "timed": timed.whole(with_layers=True),
            "the picture": timed.gap_picture,
            "with an end-to-end latency below the best": below.gap(with_bar=True),
            "not timed": one.whole(),
            "not timed, the picture": one.gap_picture,
            "of a part": partial.whole(),
            "of a part, the picture": partial.gap_picture,
            "gaps in a sentence": [it.gap_sentence for it in (timed, analysed(FASTER), partial)],
            "without an estimate": [without_best(it).headline for it in (impossible, nothing)],
            "without an estimate, the picture": without_best(impossible).gap_picture,
            "peaks of a busy host": analysed(BASELINE, roofline_ms=3.0, lacks_peaks=True).latencies(),
            "measured at another speed of the host": analysed(calm, timed_beside(other, 1.3)).latencies(),
            "at about the same speed": analysed(calm, timed_beside(other, 1.05)).latencies(),
            # References of runtimes with other settings are not compared.
            "with other settings": analysed(calm, timed_beside(FASTER, 0.5)).latencies(),
            "layers with long names": long.layers(),
        },
    )
    assert not partial.found.groups and timed.roofline is None


def test_a_prediction_is_the_range_that_the_estimate_shows() -> None:
    document, told = without_best(PREDICTED), figure_text(PREDICTED.found)
    assert "to" in told and document.headline == f"model: {told} predicted"
    assert told in [it.text for it in document.bounds]
    table = texts(80, *analyses_parts([document.found]), look=TEXT)
    assert any(f"({figure_number(PREDICTED.found)})" in line for line in table)


def test_a_new_proof_is_part_of_the_analysis() -> None:
    document = analysed(BASELINE, FASTER)
    (before,) = document.changes
    proof = MeasuredGain(4.8, 0.26, (0.2, 0.32), 6.5, "2026-11-27T00:00:00+00:00")
    (after,) = document.with_proof(before.what_if.id, proof).changes
    assert (before.proof, after.proof) == (None, proof) and after.changed is FASTER


@given(some_executions(), st.integers(60, 120))
def test_lines_keep_to_the_width(executions: list[MeasuredExecution], width: int) -> None:
    document = analysed(*executions)
    parts = *document.latencies(), *document.gap(with_bar=True), *document.layers()
    assert all(width_of(line) <= width for line in laid_out(parts, width))


EVERY_KIND = tuple(what_if(f"{kind.value}-x", kind, 0.25, -0.125) for kind in WhatIfKind)
NO_BEST: dict[str, Any] = {"best_ms": None, "best_parallel_ms": None, "gap": None, "what_ifs": ()}


def test_each_table_has_a_row_for_each_model_their_mean_and_the_models_without_a_value() -> None:
    bad = model_row("bad", **NO_BEST)
    bound = what_if("fusion", WhatIfKind.FUSION, 0.03, possible=False), what_if("x", WhatIfKind.BATCH, 0.0, -0.1)
    partial = model_row(baseline=without_a_layer(executed(GRAPH)), measured_ms=None, **NO_BEST)
    long = model_row("A network with a very long name that no column holds", table1_id="17", what_ifs=EVERY_KIND)
    huge = model_row("net", measured_ms=123_456.0, best_ms=99_999.0, roofline_ms=88_888.0, what_ifs=EVERY_KIND)
    wide = model_row("bad", executed(GRAPH, threads=2), **NO_BEST)
    check(
        "analyses",
        {
            "several": analyses_parts([model_row("one"), model_row("two", measured_ms=40.0), bad]),
            "not timed, predicted": analyses_parts([model_row(baseline=PREDICTED, measured_ms=None, what_ifs=bound)]),
            "of a part": analyses_parts([partial]),
            "every kind": analyses_parts([model_row(what_ifs=EVERY_KIND)]),
            # Tables without a value are left out, and signs are explained once.
            "different executions": analyses_parts([model_row("one"), wide]),
        },
    )
    check("analyses-narrow", {"long names and large numbers": analyses_parts([long, huge])}, width=80)
    assert max(map(len, texts(80, *analyses_parts([long, huge]), look=TEXT))) <= 80


(FOUND,) = what_ifs_of(BASELINE, [FASTER])
PARALLEL = replace(FOUND, id="parallel-2", kind=WhatIfKind.PARALLEL)
NOISY = Gain(0.26, 0.05, 0.47)


def change(found: WhatIf = FOUND, proof: Gain | None = None) -> ShownWhatIf:
    measured = None if proof is None else MeasuredGain(4.81, proof.value, (proof.low, proof.high), 6.5, "2026-11-27T00")
    return ShownWhatIf(found, measured, None if found.change is None else FASTER)


def test_what_ifs_show_gain_proof_setting_and_layers() -> None:
    loss, bound = Gain(-1.2, -3.0, -0.9), replace(FOUND, change=None)
    both = [change(PARALLEL, loss), change(bound)]
    slower = change(replace(FOUND, gain=Gain(-0.54, -0.64, -0.45), change=None))
    # A line says which unproved ones are not to be trusted. Nobody can prove a bound.
    bare, parallel = replace(FOUND, layers=()), replace(PARALLEL, layers=())
    proofs = [change(), change(bound), *(change(proof=it) for it in (NOISY, Gain(-0.1, -0.2, 0.0))), change(PARALLEL)]
    small, lost = (replace(bare, id=str(gain), gain=Gain(gain, gain, gain)) for gain in (0.05, -0.5))
    several = (lost, small, bare, parallel)
    check(
        "what-ifs",
        {
            "none": what_ifs_parts([]),
            "proved": what_ifs_parts([change(proof=NOISY)]),
            "not proved": what_ifs_parts([change()]),
            "several": what_ifs_parts([change(it) for it in several]),
            "several proved": what_ifs_parts([change(it, NOISY) for it in several]),
            "one and a bound": what_ifs_parts([change(bare), change(replace(parallel, change=None))]),
            "a predicted loss": what_ifs_parts([slower]),
            "a predicted loss, the picture": gains_picture([slower]),
            "under way": [Table(what_if_columns(both, {"parallel-2": "running"}), both)],
            "the picture": gains_picture(both),
            "the picture of small gains": gains_picture([change(), change(replace(FOUND, gain=Gain(0.0, -0.05, 0.9)))]),
            "no picture": gains_picture([]),
            "proofs": [Table(what_if_columns(proofs, {"parallel-2": "running"}), proofs)],
            "facts": [*change_facts(both[0]), *change_reasons(both[0])],
            "facts of a bound": [*change_facts(both[1]), *change_reasons(both[1])],
        },
    )


def test_what_ifs_are_told_in_sentences() -> None:
    small, bound = replace(FOUND, gain=Gain(0.05, 0.01, 0.09)), replace(FOUND, change=None)
    unsure = change(PARALLEL, Gain(0.2, -0.1, 0.5))
    timed = replace(FASTER, found=replace(FASTER.found, end_to_end=Latency(4.1, 4.0, 4.2)))
    taught = replace(FOUND, correction=Correction(2, Gain(0.4, 0.3, 0.5)))
    slower = replace(FOUND, gain=Gain(-0.54, -0.64, -0.45), change=None)
    remarks = {
        "not proved": change(),
        "timed after the change": change()._replace(changed=timed),
        "a bound": change(bound),
        "a predicted loss": change(slower),
        "a small gain": change(small),
        "a small gain, proved": change(small, Gain(0.05, 0.04, 0.06)),
        "it may gain nothing": change(proof=Gain(0.2, -0.1, 0.5)),
        "corrected by other models": change(taught),
        "corrected, and proved": change(taught, NOISY),
        "a noisy proof": change(proof=NOISY),
        "a proof that agrees": change(proof=Gain(0.26, 0.2, 0.32)),
        "a proof that refutes": change(proof=Gain(0.13, 0.1, 0.16)),
    }
    largest = [change(PARALLEL)], [change(bound), change(PARALLEL, NOISY)], [change()]
    intervals = (-0.21, 0.012), (-0.004, 0.3), (-9.99, 0.77), (-699.92, 0.77), (-700.0, -20.0), (-2.09, 1.81)
    check(
        "what-if-words",
        {
            **{f"remarks: {name}": list(remarks_on(it)) for name, it in remarks.items()},
            "largest gains": map(largest_gain, largest),
            # A proof that may have gained nothing is none.
            "no largest gain": largest_gain([change(proof=Gain(0.26, -0.05, 0.57))]),
            "gains": map(gains_sentence, ([change(), unsure], [unsure], [])),
            "intervals": [interval_of(Gain(0.0, low, high)) for low, high in intervals],
        },
        width=140,
    )


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
            "views are left out": roofline_plot([CONVOLUTION, point(2, 5.0, 0.0, 0.1)], ROOF),
        },
    )


def test_each_kind_of_layer_has_a_letter_that_is_explained_at_80_columns() -> None:
    plot = roofline_plot([point(0, 2e9, 8e6, 10.0, kind) for kind in Kind], ROOF)
    text = " ".join(text_of(plot, 80, 21))
    assert len(plot.legend) > 10 and all(name in text for name in plot.legend)
    for kind in Kind:
        plot = roofline_plot([replace(CONVOLUTION, kinds=(kind,))], ROOF)
        (letter,) = letters(plot)
        assert any(name.startswith(f"{letter.lower()} ") for name in plot.legend)


WIDE = [ModelKernel(f"wide{number}", 1.0, "brgconv:avx512_core", "avx512") for number in range(3)]
REFUSED = ("24 output channels are too few",)
NARROW = ModelKernel("narrow", 5.0, "jit_1x1:avx2", "avx2", ("acdb -> aBcd8b",), REFUSED, derived=True)
SILENT = ModelKernel("silent", 0.0, "", "")


def test_kernels_and_layers_are_ordered_by_their_time_with_the_reasons_against_others() -> None:
    found = [*WIDE, NARROW, SILENT]
    # Reasons that several layers share are told once, and whole.
    reason = ("a long reason " * 9,)
    shared = [ModelKernel(f"layer{number}", 1.0, "ref", "", (), reason) for number in range(4)]
    tables: dict[str, Part] = {
        "by kernel": kernels_table(found),
        "by layer": layer_kernels_table(found),
        "silent": kernels_table([SILENT]),
        "a shared reason": kernels_table(shared),
    }
    tables["a long name"] = layer_kernels_table([replace(NARROW, layer=f"{'stage_' * 20}conv7")])
    check("kernels", {name: [table] for name, table in tables.items()}, width=80)
