"""The answer to how fast a model is, doubts about it, and its engine."""

from dataclasses import replace

import pytest

from dlbricks_tui.bricks.cutting import Cut, LayerOrder
from dlbricks_tui.bricks.decomposition import Cutting, decompose
from dlbricks_tui.documents.parts import Sentence
from dlbricks_tui.documents.variants import variant_remarks
from dlbricks_tui.estimate.estimate import estimate
from dlbricks_tui.estimate.knowledge import Knowledge, Latency
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.variant import AskedVariant, InstructionSet, Optimisation, Precision, Variant
from dlbricks_tui.wording import numbers
from dlbricks_tui.wording.answers import (
    answer_words,
    doubts_about,
    engine_remarks,
    faster_words,
    figure_number,
    figure_text,
    options_of,
    origin_words,
    settling_command,
    slow_host,
    way_line,
)
from tests.analysis.executions import RUNTIME, executed
from tests.bricks.graphs import chain
from tests.estimate.knowledge_of import with_predictions
from tests.estimate.test_comparison import WAY
from tests.estimate.test_explanation import knowledge_by_op
from tests.estimate.test_ranking import point

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


HOUR = 3_600_000_000


def doubted(
    measured_ms: float = 9.0,
    *,
    doubt: float = 0.01,
    bricks_reference_ms: float = 0.64,
    samples: int = 24,
    bricks_when: int = HOUR,
    half_ms: float = 0.05,
) -> SystemEstimate:
    """A model that is estimated at 6 ms, and was timed end to end."""
    graph = chain("conv", "pool")
    known = knowledge_by_op(graph, doubt)
    measured = {
        pair: it._replace(reference_ms=bricks_reference_ms, when=bricks_when) for pair, it in known.measured.items()
    }
    return SystemEstimate(
        WAY._replace(runtime="onnxruntime-1.32.0 threads-2"),
        estimate(decompose(graph), Knowledge(measured)),
        Latency(measured_ms, measured_ms - half_ms, measured_ms + half_ms),
        reference_ms=0.64,
        usual_reference_ms=0.64,
        timed_when=HOUR,
        timed_samples=samples,
        variant=Variant(threads=2, batch=4),
        runtime_name="onnxruntime",
    )


COMMAND = "dlbricks run generated --runtime onnxruntime --threads 2 --batch 4 --level written --again --end-to-end"


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (doubted(3.0, bricks_reference_ms=1.28), "the host was 2.00 times as slow for its bricks than for the model"),
        (doubted(9.0, bricks_reference_ms=0.40), "the host was 1.60 times as slow for the model than for its bricks"),
        (doubted(samples=3), "Doubt the measurement: it has 3 samples only"),
        (doubted(doubt=0.2), "Doubt the estimate: its interval is wider than that of the measurement"),
        (doubted(half_ms=2.0), "Doubt the measurement: its interval is wider than that of the estimate"),
        (doubted(bricks_when=10 * HOUR), "Doubt the measurement: it is older"),
        (doubted(bricks_when=HOUR // 1000), "Doubt the estimate: some of its bricks were timed in other networks"),
    ],
)
def test_a_measurement_outside_of_the_interval_says_which_of_the_two_to_doubt(
    found: SystemEstimate, reason: str
) -> None:
    (told,) = (it for it in doubts_about(found) if "outside" in it)
    assert f". {reason}. `" in told or f": {reason}. `" in told
    assert f"`{COMMAND}` measures both anew." in told


def test_a_measurement_inside_of_the_interval_needs_no_sentence() -> None:
    assert doubts_about(doubted(6.01)) == ()
    assert doubts_about(replace(doubted(), end_to_end=None)) == ()


def test_the_command_repeats_the_variant() -> None:
    assert settling_command(doubted()) == COMMAND
    way = WAY._replace(runtime="onnxruntime-1.32.0 threads-1")
    found = replace(doubted(), way=way, variant=Variant(threads=1, batch=1, precision=Precision.INT8))
    told = settling_command(found, "table1:16")
    assert told == COMMAND.replace("generated", "table1:16").replace(
        "--threads 2 --batch 4", "--threads 1 --precision int8"
    )


def test_the_command_repeats_kernels_and_cutting() -> None:
    limited = AskedVariant(instructions=InstructionSet.AVX2, optimisation=Optimisation.BASIC)
    cutting = Cutting(3, Cut.OVERLAP, LayerOrder.PAPER)
    told = options_of("", limited, Level.FUSED, cutting)
    assert " ".join(told) == "--instructions avx2 --optimisation basic --granularity 3 --cut overlap --order paper"
    assert options_of("", AskedVariant(precision=Precision.F32), Level.FUSED, cutting, cutting) == []


def test_a_host_that_was_slower_than_usual_is_named_with_the_share() -> None:
    assert slow_host(doubted(6.0)) == ""
    slow = replace(doubted(6.0, bricks_reference_ms=0.77), reference_ms=0.77)
    assert slow_host(slow).startswith("The host was 20 % slower than usual when this was measured")
    (told,) = doubts_about(slow)
    assert told.endswith("on a quiet host replaces them.")
    bricks = doubted(6.0, bricks_reference_ms=0.77)
    assert slow_host(bricks).startswith("The host was 20 % slower than usual when the bricks were measured")
    model = replace(doubted(6.0), reference_ms=0.77)
    assert slow_host(model).startswith("The host was 20 % slower than usual when the model was measured")
    # It is not known what is usual.
    assert slow_host(replace(slow, usual_reference_ms=0.0)) == ""


REMARK = "end to end with MXNET_ENGINE_TYPE=NaiveEngine; MXNet's default can be slower"


def timed(
    runtime: Runtime = RUNTIME, threads: int = 2, method: Method = Method.INSIDE, *, whole: bool = True
) -> SystemEstimate:
    end_to_end = Latency(1.0, 0.9, 1.1) if whole else None
    found = executed(chain("conv"), runtime=runtime, threads=threads, end_to_end=end_to_end).found
    return replace(found, way=found.way._replace(protocol=method.id))


def test_one_line_says_with_which_engine_end_to_end_latencies_on_several_threads_hold() -> None:
    assert engine_remarks([timed(), timed(threads=4), timed(threads=1)]) == [REMARK]
    assert len(REMARK) <= 80
    assert Sentence(REMARK) in variant_remarks([replace(point(1, 10.0), found=timed())])


def test_other_latencies_need_no_remark_on_the_engine() -> None:
    by_default = RUNTIME.with_default_engine()
    assert by_default is not None
    others = [
        timed(threads=1),
        timed(whole=False),
        timed(by_default),
        timed(method=Method.ALONE),
        timed(replace(RUNTIME, framework="onnxruntime")),
    ]
    assert engine_remarks(others) == []
