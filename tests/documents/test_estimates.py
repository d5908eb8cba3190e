from dataclasses import replace

from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.bricks.decomposition import Cutting, decompose
from dlbricks_tui.documents.estimates import accuracy_parts, estimates_parts, intervals_parts, judged_by_way
from dlbricks_tui.documents.parts import Sentence
from dlbricks_tui.estimate.estimate import Options, estimate
from dlbricks_tui.estimate.knowledge import Knowledge, Latency
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.runtime.variant import Precision, Variant
from tests.analysis.executions import knowing
from tests.bricks.graphs import chain
from tests.documents.snapshots import check
from tests.estimate.knowledge_of import with_predictions
from tests.estimate.test_accuracy import WAY

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


def test_estimates_without_an_end_to_end_latency_are_not_judged() -> None:
    assert judged_by_way([EXACT, PARTIAL]) == []
    ((_, found),) = judged_by_way([TIMED, EXACT])
    assert (found.models, round(found.mean_absolute_error, 4)) == (1, 0.0909)
    parts = [it for it in accuracy_parts(judged_by_way([TIMED])) if isinstance(it, Sentence)]
    assert len(parts) == 1
