"""Answers: how fast a model is, doubts about it, its engine, its layers, changes, and the best systems."""

from dataclasses import replace
from typing import Any

import pytest

from dlbricks_tui.bricks.cutting import Cut, LayerOrder
from dlbricks_tui.bricks.decomposition import Cutting, decompose
from dlbricks_tui.documents.parts import Sentence
from dlbricks_tui.documents.variants import variant_remarks
from dlbricks_tui.estimate.estimate import Options, estimate
from dlbricks_tui.estimate.knowledge import Knowledge, Latency
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.measure.method import Method
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.variant import AskedVariant, InstructionSet, Optimisation, Precision, Variant
from dlbricks_tui.store.change import Verdict
from dlbricks_tui.wording import numbers
from dlbricks_tui.wording.answers import (
    answer_words,
    change_words,
    check_heading,
    common_beginning,
    doubt_in_short,
    doubts_about,
    engine_remarks,
    faster_words,
    figure_number,
    figure_text,
    options_of,
    origin_words,
    p_phrase,
    parallel_sentences,
    settling_command,
    short_combination,
    unmeasured_line,
    usual_beginning,
    verdict_counts,
    verdict_line,
    way_line,
    what_if_words,
)
from dlbricks_tui.wording.jobs import machines_answer, machines_question
from tests.analysis.executions import RUNTIME, executed, knowing
from tests.bricks.graphs import DATA, Spec, after, built, chain
from tests.documents.snapshots import check
from tests.estimate.knowledge_of import with_predictions
from tests.estimate.test_comparison import WAY, incomplete, on, ranked
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


def test_the_answer_has_figure_combination_system_and_origin() -> None:
    found = {
        "timed": TIMED,
        "composed": COMPOSED,
        "predicted in part": PREDICTED,
        "predicted": GUESSED,
        "of a part": PARTIAL,
        "unknown": UNKNOWN,
        "small": one(KNOWN, 0.001825),
    }
    figures = {name: [figure_number(it), figure_text(it), origin_words(it)] for name, it in found.items()}
    variant = Variant(threads=None, batch=1, precision=Precision.INT8, instructions=InstructionSet.AVX2)
    unusual = replace(TIMED, variant=variant)
    way = WAY._replace(runtime="onnxruntime-1.20 threads-1")
    check(
        "answers",
        {
            **figures,
            "answers": [answer_words(TIMED), answer_words(PARTIAL), answer_words(unusual, chosen=True, on="c6i")],
            "a way": way_line(way, Variant(threads=1)),
            "faster": [faster_words(it, TIMED) for it in (one(KNOWN, 9.5), PREDICTED, PARTIAL)],
            "not faster": [
                faster_words(one(KNOWN, 9.0), TIMED),
                faster_words(TIMED, None),
                faster_words(TIMED, UNKNOWN),
            ],
        },
        width=140,
    )


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


def test_doubts_say_what_to_doubt_and_the_command_that_settles_it() -> None:
    """A measurement outside of the interval of the estimate, or a host that was slower than usual."""
    slow = replace(doubted(6.0, bricks_reference_ms=0.77), reference_ms=0.77)
    outside = {
        "slower for its bricks": doubted(3.0, bricks_reference_ms=1.28),
        "slower for the model": doubted(9.0, bricks_reference_ms=0.40),
        "few samples": doubted(samples=3),
        "a wide estimate": doubted(doubt=0.2),
        "a wide measurement": doubted(half_ms=2.0),
        "an older measurement": doubted(bricks_when=10 * HOUR),
        "other networks": doubted(bricks_when=HOUR // 1000),
        "inside of the interval": doubted(6.01),
        "not timed": replace(doubted(), end_to_end=None),
        "a slow host": slow,
        "slow bricks": doubted(6.0, bricks_reference_ms=0.77),
        "a slow model": replace(doubted(6.0), reference_ms=0.77),
        "a small model": doubted(0.001825, half_ms=0.00001),
        "nothing usual is known": replace(slow, usual_reference_ms=0.0),
    }
    check("doubts", {name: [*doubts_about(it), doubt_in_short(it)] for name, it in outside.items()}, width=160)


def test_the_command_repeats_the_variant_kernels_and_cutting() -> None:
    command = "dlbricks run generated --runtime onnxruntime --threads 2 --batch 4 --level written --again --end-to-end"
    assert settling_command(doubted()) == command
    way = WAY._replace(runtime="onnxruntime-1.32.0 threads-1")
    found = replace(doubted(), way=way, variant=Variant(threads=1, batch=1, precision=Precision.INT8))
    told = command.replace("generated", "table1:16").replace("--threads 2 --batch 4", "--threads 1 --precision int8")
    assert settling_command(found, "table1:16") == told
    limited = AskedVariant(instructions=InstructionSet.AVX2, optimisation=Optimisation.BASIC)
    cutting = Cutting(3, Cut.OVERLAP, LayerOrder.PAPER)
    options = "--instructions avx2 --optimisation basic --granularity 3 --cut overlap --order paper"
    assert options_of("", limited, Level.FUSED, cutting) == options.split()
    assert options_of("", AskedVariant(precision=Precision.F32), Level.FUSED, cutting, cutting) == []


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


def test_changes_verdicts_and_what_if_are_told() -> None:
    unusual = Variant(threads=1, batch=2, precision=Precision.BF16, instructions=InstructionSet.AVX2)
    words = change_words(0.072, 0.061, -0.083)
    what_ifs = "parallel-2 kernels-avx2 kernels-default kernels-basic runtime-onnxruntime runtime-mix"
    what_ifs += " runtime-default-engine fusion fusion-off precision-int8 threads-1 batch-8 runtime-of-a-later-version"
    check(
        "changes",
        {
            "p-values": map(p_phrase, (None, 0.0421, 0.0001)),
            "combinations": [
                short_combination("mxnet", Variant(threads=None), Level.FUSED),
                short_combination("mxnet", unusual, Level.WRITTEN),
            ],
            "a change": words,
            "verdicts": [
                verdict_line(Verdict.SLOWER, "net", 1.0, 1.072, words, 0.042, ["why", "turbo"]),
                verdict_line(Verdict.UNKNOWN, "net", 1, 1, "", None, []),
                unmeasured_line("net", "it failed"),
                verdict_counts([Verdict.SAME, Verdict.SLOWER, Verdict.SAME]),
            ],
            "checks": [
                check_heading("a.toml", "", 1, 1, 0.03),
                check_heading("a.toml", "3 d ago", 2, 4, 0.03),
            ],
            "what-ifs": map(what_if_words, what_ifs.split()),
        },
        width=140,
    )


def test_the_quickest_and_the_cheapest_system_are_told_with_latency_and_cost() -> None:
    incomplete_one = replace(incomplete(), end_to_end=None)
    systems = {
        "several": [on("c5.xlarge", 6), on("c5.2xlarge", 4), on("mine", 5)],
        "the quickest is the cheapest": [on("c5.xlarge", 4), on("mine", 5)],
        "a single one": [on("mine", 5)],
        "without prices": [on("mine", 5), incomplete_one],
    }
    answers = {name: machines_answer("net", ranked(*each)) for name, each in systems.items()}
    questions = [machines_question("net"), machines_question("")]
    check("machines", {"questions": questions, **answers, "none": machines_answer("net", ())}, width=200)


def test_the_words_that_names_begin_with_are_said_once() -> None:
    for names, expected in (
        (["net_conv0", "net_conv1"], "net_"),
        (["/a/b/c", "/a/bc"], "/a/"),
        (["net_conv0"], ""),
        (["conv", "relu"], ""),
        (["a.b", "a.c"], "a."),
        (["_a", "_b"], "_"),
        (["a_b", "a_b_c"], "a_"),
        ([], ""),
    ):
        assert common_beginning(names) == expected, names
    # A few odd names do not count for the usual beginning.
    names = [f"net_conv{number}" for number in range(18)]
    assert usual_beginning(["data as acdb", *names, "output"]) == "net_"
    assert usual_beginning(["data as acdb", *names[:4]]) == usual_beginning(names[:1]) == usual_beginning([]) == ""


# Three independent layers of 4 ms between two of 1 ms; then one after another: 14 ms, and 6 ms at the same time.
FORKED = built(
    [
        Spec("relu", DATA),
        *[Spec(op, after(0), width) for op, width in (("conv", 8), ("conv", 16), ("pool", 8))],
        Spec("concat", after(1, 2, 3)),
    ]
)
TIMES = {0: 1.0, 1: 4.0, 2: 4.0, 3: 4.0, 4: 1.0}


def parallel(graph: LayerGraph, workers: int | None = None, **changed: Any) -> SystemEstimate:
    composed = estimate(decompose(graph), knowing(decompose(graph), TIMES), Options(workers))
    return replace(SystemEstimate(WAY, composed, variant=Variant(threads=2), cores=2), **changed)


def test_the_most_that_parallel_layers_gain_is_told_with_the_cores_that_bricks_used() -> None:
    decomposition = decompose(FORKED)
    known = knowing(decomposition, TIMES)
    some, none = replace(known, measured=dict(list(known.measured.items())[:-1])), replace(known, measured={})
    tiny = knowing(decomposition, {0: 500.0, 1: 1.0, 2: 1.0, 3: 1.0, 4: 1.0})
    others = {"tiny": tiny, "of a part": some, "predicted": with_predictions(some), "unknown": none}
    cores: tuple[tuple[int | None, int | None], ...] = ((None, 2), (1, None), (1, 1), (1, 8), (4, 8), (2, 2), (16, 8))
    chains = [parallel(chain("conv", "relu", "pool"), it) for it in (None, 1, 4)]
    check(
        "parallel",
        {
            "threads and cores": [
                parallel_sentences(parallel(FORKED, variant=Variant(threads=threads), cores=of))
                for threads, of in cores
            ],
            # Two of the layers share one of two workers.
            "workers": [parallel_sentences(parallel(FORKED, it)) for it in (1, 2, 3, 64)],
            "a chain": map(parallel_sentences, chains),
            **{
                name: parallel_sentences(parallel(FORKED, estimate=estimate(decomposition, it)))
                for name, it in others.items()
            },
        },
        width=200,
    )
