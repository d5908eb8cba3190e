"""Layers, and which run in parallel."""

from dataclasses import replace

import pytest

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.estimate.estimate import Options, estimate
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.runtime.variant import Variant
from dlbricks_tui.wording.answers import common_beginning, cores_in_words, parallel_sentences, usual_beginning
from tests.analysis.executions import knowing
from tests.bricks.graphs import DATA, Spec, after, built, chain
from tests.estimate.knowledge_of import with_predictions
from tests.estimate.test_comparison import WAY


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["net_conv0", "net_conv1"], "net_"),
        (["/a/b/c", "/a/bc"], "/a/"),
        (["net_conv0"], ""),
        (["conv", "relu"], ""),
        (["a.b", "a.c"], "a."),
        (["_a", "_b"], "_"),
        (["a_b", "a_b_c"], "a_"),
        ([], ""),
    ],
)
def test_the_words_that_all_names_begin_with_are_said_once(names: list[str], expected: str) -> None:
    assert common_beginning(names) == expected


def test_a_few_odd_names_do_not_count_for_the_usual_beginning() -> None:
    names = [f"net_conv{number}" for number in range(18)]
    assert usual_beginning(["data as acdb", *names, "output"]) == "net_"
    assert usual_beginning(["data as acdb", *names[:4]]) == ""
    assert usual_beginning(names[:1]) == usual_beginning([]) == ""


# Three independent layers of 4 ms between two of 1 ms; then one after another: 14 ms, and 6 ms at the same time.
FORKED = built(
    [
        Spec("relu", DATA),
        *[Spec(op, after(0), width) for op, width in (("conv", 8), ("conv", 16), ("pool", 8))],
        Spec("concat", after(1, 2, 3)),
    ]
)
TIMES = {0: 1.0, 1: 4.0, 2: 4.0, 3: 4.0, 4: 1.0}


def estimated(graph: LayerGraph, workers: int | None = None) -> SystemEstimate:
    composed = estimate(decompose(graph), knowing(decompose(graph), TIMES), Options(workers))
    return SystemEstimate(WAY, composed, variant=Variant(threads=2), cores=2)


def test_the_most_that_parallel_layers_gain_is_told_with_the_cores_that_bricks_used() -> None:
    assert parallel_sentences(estimated(FORKED)) == (
        "At most 2.33 times as fast, if independent layers had cores of their own; here each brick already used both "
        "cores."
    )


@pytest.mark.parametrize(
    ("threads", "cores", "told"),
    [
        (None, 2, "here each brick used the default threads of the runtime"),
        (1, None, "here each brick used 1 thread"),
        (1, 1, "this system has one core only"),
        (1, 8, "here each brick used one of 8 cores"),
        (4, 8, "here each brick used 4 of 8 cores"),
        (2, 2, "here each brick already used both cores"),
        (16, 8, "here each brick already used all 8 cores"),
    ],
)
def test_the_cores_of_a_brick_follow_from_its_threads(threads: int | None, cores: int | None, told: str) -> None:
    one = replace(estimated(FORKED), variant=Variant(threads=threads), cores=cores)
    assert cores_in_words(threads, cores) == told and f"; {told}." in parallel_sentences(one)


@pytest.mark.parametrize(
    ("workers", "told"),
    [
        (1, " With 1 worker: 1.00 times."),
        # Two of the layers share a worker.
        (2, " With 2 workers: 1.40 times."),
        (3, " 3 workers are enough for that."),
        (64, " 64 workers are enough for that."),
    ],
)
def test_some_workers_gain_less_than_a_core_for_each_layer(workers: int, told: str) -> None:
    assert parallel_sentences(estimated(FORKED, workers)).endswith(f"both cores.{told}")


def test_a_chain_of_layers_gains_nothing_with_any_number_of_workers() -> None:
    told = "No two layers can run at the same time: parallel execution gains nothing."
    assert {parallel_sentences(estimated(chain("conv", "relu", "pool"), it)) for it in (None, 1, 4)} == {told}


def test_a_tiny_gain_is_not_told_as_one_point_zero() -> None:
    times = {0: 500.0, 1: 1.0, 2: 1.0, 3: 1.0, 4: 1.0}
    found = estimate(decompose(FORKED), knowing(decompose(FORKED), times))
    told = parallel_sentences(replace(estimated(FORKED), estimate=found))
    assert told == "Parallel layers gain less than 1 %, even with cores of their own."


def test_predicted_and_partial_sums_are_marked() -> None:
    decomposition = decompose(FORKED)
    pairs = knowing(decomposition, TIMES)
    some = replace(pairs, measured=dict(list(pairs.measured.items())[:-1]))
    partly = replace(estimated(FORKED), estimate=estimate(decomposition, some))
    assert " times as fast for the part with a latency, if" in parallel_sentences(partly)
    predicted = replace(estimated(FORKED), estimate=estimate(decomposition, with_predictions(some)))
    assert "At most ~" in parallel_sentences(predicted)


def test_nothing_is_told_without_an_estimate() -> None:
    nothing = estimate(decompose(FORKED), replace(knowing(decompose(FORKED), TIMES), measured={}))
    assert parallel_sentences(replace(estimated(FORKED), estimate=nothing)) == ""
