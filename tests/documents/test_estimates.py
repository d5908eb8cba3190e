"""Estimates of one model and of several, and the scores of predictions."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.bricks.decomposition import Cutting, decompose
from dlbricks_tui.documents.estimate import EstimateDocument, way_words
from dlbricks_tui.documents.estimates import (
    accuracy_parts,
    estimates_parts,
    intervals_parts,
    judged_by_way,
    score_parts,
)
from dlbricks_tui.documents.layout import laid_out
from dlbricks_tui.documents.parts import Figures, Heading, Sentence, Table
from dlbricks_tui.estimate.estimate import Options, estimate
from dlbricks_tui.estimate.knowledge import Knowledge, Latency
from dlbricks_tui.estimate.score import PredictionBasis, Score
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.runtime.variant import Precision, Variant
from tests.analysis.executions import knowing
from tests.bricks.graphs import DATA, Spec, after, built, chain
from tests.documents.snapshots import check
from tests.estimate.knowledge_of import with_predictions
from tests.estimate.test_comparison import WAY

# A layer, two equal branches and a third one beside one another, their sum, and a layer that runs twice.
FORKED = built(
    [
        Spec("conv", DATA),
        *(Spec(op, after(0)) for op in ("relu", "relu", "pool")),
        Spec("add", after(1, 2, 3)),
        Spec("relu", after(4), 16, times=2),
        Spec("split", after(5)),
    ]
)
TIMES = {0: 6.0, 1: 1.0, 2: 1.0, 3: 2.0, 4: 0.5, 5: 0.25, 6: 0.101}


def document(
    graph: LayerGraph = FORKED,
    known: Knowledge | None = None,
    options: Options | None = None,
    cutting: Cutting | None = None,
    times: Mapping[int, float] = TIMES,
    **fields: Any,
) -> EstimateDocument:
    decomposition = decompose(graph, cutting)
    found = estimate(decomposition, known or knowing(decomposition, times), options)
    usual = {"way": WAY, "variant": Variant(threads=2, batch=4), "cores": 4, "runtime_name": "mxnet"}
    return EstimateDocument(graph, SystemEstimate(estimate=found, **{**usual, **fields}))


def lacking(layers: int, **options: Any) -> Knowledge:
    """All bricks but the last ones measured."""
    known = knowing(decompose(FORKED), TIMES)
    return replace(known, measured=dict(list(known.measured.items())[:-layers]), **options)


def with_estimate(found: EstimateDocument, **changed: Any) -> EstimateDocument:
    return replace(found, one=replace(found.one, estimate=replace(found.one.estimate, **changed)))


def test_an_estimate_has_its_answer_compositions_grounds_and_where_the_time_goes() -> None:
    timed = document(options=Options(2), end_to_end=Latency(11.5, 11.4, 11.6))
    predicted = document(known=with_predictions(lacking(2)), end_to_end=Latency(12.5, 12.4, 12.6))
    fused = document(chain("conv", "relu"), way=WAY._replace(level=Level.FUSED))
    check(
        "estimate",
        {
            "measured": timed.whole(),
            "predicted in part": predicted.whole(),
            "of a part": document(known=lacking(2)).whole(),
            "of two fused layers, as chosen": with_estimate(
                replace(fused, is_chosen=True), level=Level.FUSED, cutting=Cutting(3, Cut.OVERLAP)
            ).whole(),
        },
    )


def test_an_estimate_that_is_not_possible_says_why_with_what_was_measured() -> None:
    nothing = document(known=lacking(5))
    refused = with_estimate(nothing, obstacle="2 of 7 layers cannot be measured by themselves")
    timed = replace(refused, one=replace(refused.one, end_to_end=Latency(12.5, 12.4, 12.6)))
    obstacle = with_estimate(document(), obstacle="2 of 7 layers cannot be measured by themselves")
    check(
        "estimate-impossible",
        {
            "nothing": nothing.whole(),
            "no parts": [*nothing.compositions(), *nothing.path(), *nothing.cautions()],
            "refused": refused.whole(),
            "refused but timed": timed.whole(),
            "refused but composed": obstacle.whole(),
            "slowest of nothing": nothing.slowest(3),
            "slowest of what was refused": refused.slowest(3),
        },
    )


def test_the_slowest_layers_have_their_shares_and_sums() -> None:
    whole, predicted = document(cutting=Cutting(2)), document(known=with_predictions(lacking(2)))
    check("estimate-slowest", {"measured": whole.slowest(3), "predicted in part": predicted.slowest(3)})


def test_what_is_behind_a_residual_is_told() -> None:
    timed = document(end_to_end=Latency(9.0, 8.9, 9.1))
    exact = document(end_to_end=Latency(11.1, 11.0, 11.2))
    own = with_estimate(timed, coverage=replace(timed.one.estimate.coverage, own_carrier=7))
    coverage = replace(timed.one.estimate.coverage, own_carrier=1, other_models=1, unmeasurable=1)
    some = with_estimate(timed, coverage=coverage)
    lacks = with_estimate(timed, coverage=replace(coverage, measured=4, missing=2, predicted=2))
    slow = replace(timed, one=replace(timed.one, reference_ms=1.3, usual_reference_ms=1.0))
    check(
        "estimate-residual",
        {
            "unexplained": timed.remainder(),
            "explained": exact.remainder(),
            "without an error, another one is faster": [*replace(document(), fastest=exact.one).answer(on="c6i")],
            "all timed here": own.coverage(),
            "some timed here": some.coverage(),
            "some predicted": lacks.coverage(),
            "one predicted": with_estimate(timed, coverage=replace(coverage, predicted=1)).cautions(),
            "on a slow host": [*slow.remainder(), *slow.doubts()],
        },
    )


def test_an_error_of_the_estimate_has_a_style() -> None:
    styles = {11.6: "good", 10.6: "good", 11.7: "warn", 12.3: "warn", 10.1: "warn", 12.5: "bad", 10.0: "bad"}
    for measured_ms, style in styles.items():
        (figures,) = document(end_to_end=Latency(measured_ms, measured_ms, measured_ms)).compositions()
        assert isinstance(figures, Figures) and figures.rows[-1].style == style, measured_ms


def test_an_estimate_that_is_changing_has_no_error_while_it_is_predicted() -> None:
    whole = Latency(12.5, 12.4, 12.6)
    for known, is_changing, told in (
        (with_predictions(lacking(2)), True, ("measured",)),
        (lacking(2), False, ("measured",)),
        (None, True, ("measured, error -11.2 %", "error -11.2 %")),
    ):
        figures = next(iter(document(known=known, end_to_end=whole).compositions(is_changing=is_changing)))
        assert isinstance(figures, Figures) and figures.rows[-1].remarks == told


def test_the_most_frequent_kinds_and_the_costliest_of_many_regions_are_named() -> None:
    graph = chain(*["relu"] * 19)
    layers = [replace(it, kind=list(Kind)[it.index // 2]) for it in graph.layers]
    (told,) = document(replace(graph, layers=tuple(layers))).path()
    kinds = sorted(it.value for it in list(Kind)[:9])
    assert isinstance(told, Sentence)
    assert told.text.startswith(f"critical path: 19 layers, 2 {kinds[0]}, 2 {kinds[1]}")
    assert told.text.endswith(f"2 {kinds[7]} and others; nothing can run beside it")
    regions = [
        Spec(*layer)
        for at in range(0, 24, 4)
        for layer in (
            ("conv", after(at - 1) if at else DATA, at + 8),
            ("relu", after(at), at + 8),
            ("pool", after(at), at + 8),
            ("add", after(at + 1, at + 2), at + 8),
        )
    ]
    heading, table = document(built(regions), times={at: float(at + 1) for at in range(24)}).regions()
    assert heading == Heading("Costliest regions") and isinstance(table, Table)
    assert [it.layers[0] for it in table.rows] == [*range(5, 24, 2)]


def test_repeated_modules_are_counted_and_narrow_compositions_have_shorter_remarks() -> None:
    rows = document(chain(*["conv", "relu"] * 3, "pool"))
    parts = {"measured": document(end_to_end=Latency(11.5, 11.4, 11.6)), "of a part": document(known=lacking(2))}
    narrow = {name: found.compositions() for name, found in parts.items()}
    overlapping = with_estimate(document(), cutting=Cutting(3, Cut.OVERLAP))
    # What is usual of a way is not told.
    ways = [way_words(it.one) for it in (document(), overlapping)]
    check("estimate-narrow", {"repeats": rows.regions(), **narrow, "ways": ways}, width=42)


GRAPH = chain("conv", "relu", "pool")
KNOWN = knowing(decompose(GRAPH), {0: 4.0, 1: 1.0, 2: 1.0})
SOME = replace(KNOWN, measured=dict(list(KNOWN.measured.items())[:2]))


def one(name: str, known: Knowledge, timed_ms: float = 0.0, workers: int | None = None) -> SystemEstimate:
    found = estimate(decompose(replace(GRAPH, name=name)), known, Options(workers))
    timed = Latency(timed_ms, timed_ms, timed_ms) if timed_ms else None
    return SystemEstimate(WAY, found, timed, variant=Variant(threads=2))


EXACT, TIMED = one("exact", KNOWN), one("timed", KNOWN, 6.6)
PARTIAL, PREDICTED = one("partial", SOME), one("predicted", with_predictions(SOME))
UNKNOWN = one("unknown", replace(KNOWN, measured={}))
OTHER = replace(TIMED, way=TIMED.way._replace(runtime="onnxruntime-1.20 threads-2"))


def test_the_command_that_settles_doubts_finds_a_model_that_is_no_sample() -> None:
    slow = document(end_to_end=Latency(9.0, 8.99, 9.01))
    own = EstimateDocument(slow.graph.with_key("", Path("my models/own.onnx")), slow.one)
    for it, named in ((own, "'my models/own.onnx'"), (slow, FORKED.name)):
        (told,) = it.doubts()
        assert isinstance(told, Sentence) and f"`dlbricks run {named} --runtime mxnet" in told.text


def test_estimates_have_a_row_for_each_model_with_doubts_and_agreement() -> None:
    cut = replace(OTHER, estimate=replace(OTHER.estimate, cutting=Cutting(3, Cut.OVERLAP)))
    int8 = replace(EXACT, variant=Variant(threads=2, precision=Precision.INT8))
    check(
        "estimates",
        {
            "of two ways": estimates_parts([TIMED, PARTIAL, PREDICTED, UNKNOWN, cut]),
            "with workers": estimates_parts([one("workers", KNOWN, workers=2), one("none", SOME, workers=2)]),
            "of one way, in doubt": estimates_parts([replace(TIMED, timed_samples=3)] * 6),
            "with intervals": intervals_parts([int8, PREDICTED, PARTIAL, UNKNOWN]),
        },
        width=120,
    )


def test_runtimes_can_be_told_apart_in_a_narrow_terminal() -> None:
    identities = "onnxruntime-1.32.0 threads-1", "openvino-2026.4.1 threads-2"
    ways = [replace(TIMED, way=TIMED.way._replace(runtime=it)) for it in identities]
    shown = ["".join(span.text for span in line) for line in laid_out(accuracy_parts(judged_by_way(ways)), 80)]
    assert [line[:20] for line in shown[-2:]] == ["ONNX Runtime 1.32.0,", "OpenVINO 2026.4.1, 2"]
    assert max(map(len, shown)) <= 80


def test_estimates_without_an_end_to_end_latency_are_not_judged() -> None:
    assert judged_by_way([EXACT, PARTIAL]) == []
    ((_, found),) = judged_by_way([TIMED, EXACT])
    assert (found.models, round(found.mean_absolute_error, 4)) == (1, 0.0909)
    assert len([it for it in accuracy_parts(judged_by_way([TIMED])) if isinstance(it, Sentence)]) == 1


def test_the_worst_model_comes_first_below_the_summary() -> None:
    good = Score("resnet50_v1", PredictionBasis.HISTORY, 31.0, 27.0, 36.0, 0.4, 30.0, 0.0)
    bad = Score("mobilenet0.25", PredictionBasis.LEFT_OUT, 2.0, 1.5, 2.6, 1.0, 2.9, 0.02)
    check("scores", {"two models": score_parts([good, bad]), "nothing": score_parts([])}, width=120)
