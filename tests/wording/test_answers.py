from dataclasses import replace

import pytest

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.estimate.estimate import estimate
from dlbricks_tui.estimate.knowledge import Knowledge, Latency
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.runtime.variant import InstructionSet, Precision, Variant
from dlbricks_tui.wording import numbers
from dlbricks_tui.wording.answers import answer_words, faster_words, figure_number, figure_text, origin_words, way_line
from tests.bricks.graphs import chain
from tests.estimate.knowledge_of import with_predictions
from tests.estimate.test_accuracy import WAY
from tests.estimate.test_explanation import knowledge_by_op

GRAPH = chain("conv", "pool")
KNOWN = knowledge_by_op(GRAPH, 0.01)
SOME = replace(KNOWN, measured=dict(list(KNOWN.measured.items())[:1]))


def one(known: Knowledge, timed_ms: float = 0.0) -> SystemEstimate:
    timed = Latency(timed_ms, timed_ms, timed_ms) if timed_ms else None
    return SystemEstimate(
        WAY, estimate(decompose(GRAPH), known), timed, timed_when=int(4e6), variant=Variant(threads=1, batch=2)
    )


TIMED, COMPOSED, PARTIAL = one(KNOWN, 9.0), one(KNOWN), one(SOME)
PREDICTED = one(with_predictions(SOME))
UNKNOWN, GUESSED = one(replace(KNOWN, measured={})), one(with_predictions(replace(KNOWN, measured={})))


@pytest.fixture(autouse=True)
def _four_minutes_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numbers, "now", lambda: 244.0)


@pytest.mark.parametrize(
    ("found", "number", "text", "origin"),
    [
        (TIMED, "9.000", "9.000 ms", "measured 4 min ago"),
        (COMPOSED, "6.000", "6.000 ms", "composed of bricks measured"),
        (PREDICTED, "~5.0-8.0", "~5.0 to 8.0 ms", "predicted, 50 % of its layers measured"),
        (GUESSED, "~2.4-7.2", "~2.4 to 7.2 ms", "predicted"),
        (PARTIAL, "", "", "1 of 2 layers measured: no figure yet"),
        (UNKNOWN, "", "", "not measured yet"),
    ],
)
def test_a_figure_has_its_number_its_unit_and_where_it_comes_from(
    found: SystemEstimate, number: str, text: str, origin: str
) -> None:
    assert (figure_number(found), figure_text(found), origin_words(found)) == (number, text, origin)


def test_the_answer_has_figure_combination_system_and_origin() -> None:
    assert answer_words(TIMED) == "9.000 ms: MXNet, 1 thread, batch 2, measured 4 min ago"
    unusual = replace(
        TIMED, variant=Variant(threads=None, batch=1, precision=Precision.INT8, instructions=InstructionSet.AVX2)
    )
    told = "MXNet, default threads, batch 1, int8, accuracy not checked, avx2 kernels, on c6i, as chosen"
    assert answer_words(unusual, chosen=True, on="c6i") == f"9.000 ms: {told}, measured 4 min ago"
    assert answer_words(PARTIAL) == "MXNet, 1 thread, batch 2, 1 of 2 layers measured: no figure yet"
    way = WAY._replace(runtime="onnxruntime-1.20 threads-1")
    assert way_line(way, Variant(threads=1)) == "c5.xlarge, ONNX Runtime 1.20, written layers, batch 1, 1 thread, f32"


def test_a_faster_combination_is_told_unless_the_chosen_one_is_as_fast() -> None:
    told = f"the fastest measured: {answer_words(TIMED)}"
    assert (
        faster_words(one(KNOWN, 9.5), TIMED) == faster_words(PREDICTED, TIMED) == faster_words(PARTIAL, TIMED) == told
    )
    assert faster_words(one(KNOWN, 9.0), TIMED) == faster_words(TIMED, None) == faster_words(TIMED, UNKNOWN) == ""
