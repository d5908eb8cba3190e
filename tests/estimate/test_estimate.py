import math
from dataclasses import replace
from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.bricks.decomposition import Cutting, Decomposition, decompose
from dlbricks_tui.estimate.compositions import parse_rules
from dlbricks_tui.estimate.estimate import Composed, Estimate, Options, estimate
from dlbricks_tui.estimate.explanation import unpredicted_operators
from dlbricks_tui.estimate.knowledge import NOTHING_KNOWN, Knowledge, Latency, MeasuredLatency, Predictor
from dlbricks_tui.estimate.parts import Chosen, Standing, Window, minimum_cover, slowest
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.store.records import ANY_CONTEXT
from dlbricks_tui.wording.answers import name_of, slowest_in_words, title_of
from tests.analysis.executions import knowing
from tests.bricks.graphs import DATA as GRAPH_INPUT
from tests.bricks.graphs import Spec, after, built, chain, graphs
from tests.estimate.knowledge_of import Guessing, latency_of, measured, with_predictions

CUTTINGS = st.builds(Cutting, st.integers(1, 5), st.sampled_from(Cut))


def composed(found: Estimate) -> Composed:
    assert found.composed is not None
    return found.composed


def branched(times: int = 1) -> LayerGraph:
    """A fork into a convolution and a relu with a pooling, and their sum."""
    return built(
        [
            Spec("conv", GRAPH_INPUT),
            Spec("conv", after(0), times=times),
            Spec("relu", after(0)),
            Spec("pool", after(2)),
            Spec("add", after(1, 3)),
        ]
    )


def ms(decomposition: Decomposition, *layers: int) -> float:
    """Return the sum of the made-up latencies of the sequences that begin with these layers."""
    by_layer = {it.sequence.layers[0]: it for it in decomposition.occurrences}
    return sum(latency_of((by_layer[layer].brick.key, by_layer[layer].context)).value_ms for layer in layers)


@given(graphs(), CUTTINGS, st.integers(1, 4))
def test_compositions_of_any_graph_are_in_order_and_in_their_interval(
    graph: LayerGraph, cutting: Cutting, workers: int
) -> None:
    decomposition = decompose(graph, cutting)
    knowledge = measured(decomposition)
    some = estimate(decomposition, knowledge, Options(workers)).composed
    one = estimate(decomposition, knowledge, Options(1)).composed
    many = estimate(decomposition, knowledge, Options(len(graph.layers) + 1)).composed
    if some and one and many:
        assert some.workers_ms is not None
        assert some.sequential_ms >= some.workers_ms >= some.parallel_ms
        assert one.workers_ms == one.sequential_ms
        assert many.workers_ms == many.parallel_ms
        assert 0 <= some.latency.low_ms <= some.sequential_ms <= some.latency.high_ms


def test_branches_are_summed_in_sequence_and_the_longer_one_counts_in_parallel() -> None:
    decomposition = decompose(branched())
    found = estimate(decomposition, measured(decomposition))
    branches = {ms(decomposition, 1): (1,), ms(decomposition, 2, 3): (2, 3)}
    assert composed(found).sequential_ms == pytest.approx(ms(decomposition, 0, 1, 2, 3, 4))
    assert composed(found).parallel_ms == pytest.approx(ms(decomposition, 0, 4) + max(branches))
    assert found.critical_layers == (0, *branches[max(branches)], 4)


def test_a_layer_that_runs_several_times_is_paid_several_times() -> None:
    once, thrice = (decompose(branched(times)) for times in (1, 3))
    once_ms, thrice_ms = (composed(estimate(it, measured(it))).sequential_ms for it in (once, thrice))
    assert thrice_ms - once_ms == pytest.approx(2 * ms(once, 1))


def test_a_constant_takes_no_time_unless_it_was_measured_to() -> None:
    decomposition = decompose(built([Spec("constant"), Spec("relu", after(0))]))
    knowledge = measured(decomposition)
    found = estimate(decomposition, knowledge)
    assert found.coverage.complete
    assert composed(found).sequential_ms == pytest.approx(ms(decomposition, 1))
    constant = next(it for it in decomposition.occurrences if it.sequence.layers == (0,))
    pair = (constant.brick.key, constant.context)
    with_constant = {**knowledge.measured, pair: MeasuredLatency(Latency(2, 2, 2), pair, 50)}
    more = composed(estimate(decomposition, replace(knowledge, measured=with_constant)))
    assert more.sequential_ms == pytest.approx(2 + ms(decomposition, 1))


def test_errors_of_all_uses_of_a_brick_add_up_and_so_do_those_of_different_bricks() -> None:
    same, different = decompose(chain(*["relu"] * 4)), decompose(chain("relu", "pool"))
    first, *_ = same.occurrences
    relu_ms = latency_of((first.brick.key, first.context)).value_ms
    of_same = composed(estimate(same, measured(same, doubt=0.1))).doubt
    assert of_same.sampling_above_ms == pytest.approx(4 * 0.1 * relu_ms)
    of_different = composed(estimate(different, measured(different, doubt=0.1))).doubt
    assert of_different.sampling_below_ms == pytest.approx(sum(0.1 * ms(different, layer) for layer in (0, 1)))


def test_errors_of_one_result_for_several_contexts_add_up() -> None:
    decomposition = decompose(chain("relu", "relu"))
    contexts = ["plain", "blocked"]
    two = replace(
        decomposition,
        occurrences=tuple(
            replace(it, context=context) for it, context in zip(decomposition.occurrences, contexts, strict=True)
        ),
    )
    brick = decomposition.occurrences[0].brick.key
    pooled = MeasuredLatency(Latency(1.0, 0.9, 1.2), (brick, ANY_CONTEXT), 50)
    found = composed(estimate(two, Knowledge({(brick, context): pooled for context in contexts})))
    assert found.sequential_ms == 2
    assert found.doubt.sampling_above_ms == pytest.approx(0.4)


def test_the_error_of_a_method_widens_the_interval() -> None:
    decomposition = decompose(chain("conv", "relu", "pool"), Cutting(2))
    exact = measured(decomposition, doubt=0.0)
    found = composed(estimate(decomposition, replace(exact, method_doubt=0.2)))
    assert found.doubt.method_ms == pytest.approx(0.2 * found.sequential_ms)
    assert found.latency.low_ms == pytest.approx(0.8 * found.sequential_ms)
    assert found.latency.high_ms == pytest.approx(1.2 * found.sequential_ms)


@given(graphs(), CUTTINGS, st.data())
def test_an_estimate_with_missing_bricks_counts_every_layer_says_so_and_has_a_wider_interval(
    graph: LayerGraph, cutting: Cutting, data: st.DataObject
) -> None:
    decomposition = decompose(graph, cutting)
    everything = measured(decomposition)
    gone = (
        data.draw(st.sets(st.sampled_from(sorted(everything.measured)), min_size=1)) if everything.measured else set()
    )
    whole, part = estimate(decomposition, everything), estimate(decomposition, measured(decomposition, without=gone))
    for found in (whole, part):
        assert found.coverage.layers == len(graph.layers)
        assert found.coverage.unmeasurable == sum(
            graph.layers[it.layers[0]].unmeasurable is not None and not it.known for it in found.parts
        )
    if part.composed is None or whole.composed is None or part.coverage == whole.coverage:
        # Where windows overlap, others may cover what is gone.
        return
    assert not part.coverage.complete
    # What stands only where no runtime can run it, though it was measured elsewhere, is nothing left to run.
    assert part.remaining.pairs or part.coverage.unmeasurable > whole.coverage.unmeasurable
    assert part.composed.sequential_ms <= whole.composed.sequential_ms or cutting.cut is Cut.OVERLAP
    assert part.composed.latency.high_ms > part.composed.sequential_ms
    assert part.composed.doubt.lacking_ms > 0


def test_without_results_there_is_no_latency_and_all_bricks_remain() -> None:
    decomposition = decompose(branched())
    found = estimate(decomposition, NOTHING_KNOWN)
    assert found.composed is None
    assert set(found.remaining.pairs) == decomposition.pairs
    assert found.remaining.seconds is None
    assert found.critical_layers == ()


def test_the_time_for_missing_bricks_follows_from_the_samples_so_far() -> None:
    decomposition = decompose(chain("conv", "relu", "relu"))
    relu = decomposition.occurrences[1]
    found = estimate(decomposition, measured(decomposition, without=[(relu.brick.key, relu.context)]))
    assert found.remaining.pairs == ((relu.brick.key, relu.context),)
    assert found.remaining.seconds is not None
    assert found.remaining.seconds > 0
    complete = estimate(decomposition, measured(decomposition))
    assert (complete.remaining.pairs, complete.remaining.seconds) == ((), 0.0)


def test_an_unmeasurable_layer_is_named_with_its_reason_even_if_predicted_and_not_left_to_run() -> None:
    decomposition = decompose(chain("conv", "relu"))
    conv, relu = decomposition.occurrences
    key = (conv.brick.key, conv.context)
    knowledge = replace(measured(decomposition, without=[key]), failed={key: "crashed: signal 11"})
    for known, predicted in ((knowledge, 0), (with_predictions(knowledge), 1)):
        found = estimate(decomposition, known)
        assert (found.coverage.unmeasurable, found.coverage.predicted) == (1, predicted)
        assert [part.reason for part in found.parts] == ["crashed: signal 11", ""]
        assert found.remaining.pairs == ()
        assert relu.brick.key == found.parts[1].brick.key


def test_a_missing_brick_is_predicted_and_stays_missing() -> None:
    decomposition = decompose(built([Spec("conv", GRAPH_INPUT), Spec("conv", after(0), width=16)]))
    wide = decomposition.occurrences[1]
    knowledge = measured(decomposition, without=[(wide.brick.key, wide.context)])
    part, whole = estimate(decomposition, knowledge), estimate(decomposition, with_predictions(knowledge))
    assert (part.parts[1].standing, whole.parts[1].standing) == (Standing.MISSING, Standing.PREDICTED)
    assert composed(whole).sequential_ms == pytest.approx(composed(part).sequential_ms + 2.0)
    assert (whole.coverage.missing, whole.coverage.predicted, whole.coverage.bridged) == (1, 1, 1)
    assert whole.predicted_share == pytest.approx(2.0 / composed(whole).sequential_ms)
    assert not whole.coverage.complete and not whole.is_partial
    assert whole.remaining.pairs == part.remaining.pairs


def test_a_measurement_replaces_a_prediction_and_a_complete_model_needs_no_predictor() -> None:
    def never() -> Predictor:
        raise AssertionError("it takes time to train")

    decomposition = decompose(built([Spec("constant"), Spec("conv", GRAPH_INPUT), Spec("add", after(0, 1))]))
    found = estimate(decomposition, replace(measured(decomposition), predictor=never))
    assert found == estimate(decomposition, measured(decomposition))
    assert found.coverage.complete
    assert (found.coverage.predicted, found.predicted_share) == (0, 0.0)


def test_errors_of_predictions_have_a_part_in_common_and_widen_the_interval() -> None:
    decomposition = decompose(built([Spec("conv", GRAPH_INPUT), Spec("conv", after(0), width=16)]))
    knowledge = Knowledge()
    together, apart = (
        composed(estimate(decomposition, with_predictions(knowledge, Guessing(shared=shared)))).latency
        for shared in (1.0, 0.0)
    )
    assert (together.low_ms, together.high_ms) == pytest.approx((2.0, 8.0))
    assert (apart.low_ms, apart.high_ms) == pytest.approx((4.0 - math.hypot(1, 1), 4.0 + math.hypot(2, 2)))


def test_layers_that_could_not_be_predicted_are_left_out_and_named() -> None:
    decomposition = decompose(chain("conv", "relu", "pool"))
    found = estimate(decomposition, with_predictions(Knowledge(), Guessing(unknown=("pool",))))
    assert found.is_partial
    assert (found.coverage.missing, found.coverage.predicted) == (3, 2)
    assert unpredicted_operators(decomposition.graph, found) == ("pool",)
    assert composed(found).doubt.lacking_ms > 0
    asked = estimate(decomposition, measured(decomposition), Options(measured_only=True))
    assert unpredicted_operators(decomposition.graph, asked) == ()


def test_a_sequence_is_predicted_by_its_layers() -> None:
    decomposition = decompose(chain("conv", "relu", "pool", "relu"), Cutting(2))
    found = estimate(decomposition, with_predictions(Knowledge()))
    assert [part.latency.value_ms for part in found.parts] == [4.0, 4.0]
    partly = estimate(decomposition, with_predictions(Knowledge(), Guessing(unknown=("pool",))))
    assert [part.predicted for part in partly.parts] == [True, False]


def test_an_estimate_at_level_written_is_marked_unfused() -> None:
    decomposition = decompose(chain("conv", "relu"))
    assert estimate(decomposition, measured(decomposition)).is_unfused is (decomposition.graph.level is Level.WRITTEN)
    fused = replace(decomposition, graph=replace(decomposition.graph, level=Level.FUSED))
    assert not estimate(fused, measured(decomposition)).is_unfused


def test_rules_limit_the_parallel_composition_and_the_workers() -> None:
    decomposition = decompose(branched())
    knowledge = measured(decomposition)
    rules = parse_rules("[[rule]]\nparallel = false", "here")
    bound = composed(estimate(decomposition, knowledge, Options(2, rules)))
    assert bound.parallel_ms == bound.workers_ms == bound.sequential_ms


@pytest.mark.parametrize("op", ["onnx.If", "onnx.Loop", "_while_loop"])
def test_a_model_with_control_flow_has_no_estimate_and_names_the_layer(op: str) -> None:
    # It runs layers inside it, and cannot be measured.
    first, second, third = chain("conv", "relu", "conv").layers
    gate = replace(second, op=op, name="gate", unmeasurable="its shapes follow from values")
    decomposition = decompose(replace(chain("conv", "relu", "conv"), layers=(first, gate, third)))
    found = estimate(decomposition, measured(decomposition))
    assert found.composed is None
    assert found.obstacle.startswith("layer 'gate' (") and "runs layers inside it" in found.obstacle


def test_there_is_no_estimate_if_unmeasurable_layers_may_take_most_of_the_time() -> None:
    graph = chain("relu", "conv", "conv", "conv")
    cannot = [replace(layer, unmeasurable="nobody knows its shape") for layer in graph.layers[1:]]
    decomposition = decompose(replace(graph, layers=(graph.layers[0], *cannot)))
    found = estimate(decomposition, measured(decomposition))
    assert found.composed is None
    assert found.obstacle.startswith("3 of 4 layers cannot be measured by themselves")


UNKNOWN = None


@st.composite
def windows(draw: st.DrawFn) -> list[Window]:
    count = draw(st.integers(0, 7))
    return [
        Window(draw(st.integers(1, min(3, count - begin))), draw(st.none() | st.integers(0, 9)))
        for begin in range(count)
    ]


def covered(given_windows: list[Window], chosen: tuple[Chosen, ...]) -> set[int]:
    return {
        position for begin, known in chosen if known for position in range(begin, begin + given_windows[begin].length)
    }


def cost(given_windows: list[Window], begins: list[int]) -> int:
    return sum(given_windows[begin].latency_ps or 0 for begin in begins)


@pytest.mark.parametrize(
    ("given_windows", "expected"),
    [
        # Beginning with the first two, or with the first three of which the third is paid twice.
        ([Window(2, 10), Window(2, 50), Window(2, 10), Window(1, 1)], ((0, True), (2, True))),
        ([Window(2, 10), Window(3, 5), Window(2, 10), Window(1, 1)], ((0, True), (1, True))),
        # Others cover the layers of a missing one.
        ([Window(2, 10), Window(2, 9), Window(2, UNKNOWN), Window(1, 3)], ((0, True), (1, True), (3, True))),
        ([Window(2, UNKNOWN), Window(2, 7), Window(1, UNKNOWN)], ((0, False), (1, True))),
    ],
)
def test_the_cheapest_known_windows_cover_a_chain(
    given_windows: list[Window], expected: tuple[tuple[int, bool], ...]
) -> None:
    assert minimum_cover(given_windows) == expected


@given(windows())
def test_every_position_is_covered_or_listed_and_no_other_choice_leaves_fewer_uncovered_or_costs_less(
    given_windows: list[Window],
) -> None:
    chosen = minimum_cover(given_windows)
    gaps = {begin for begin, known in chosen if not known}
    assert covered(given_windows, chosen) | gaps == set(range(len(given_windows)))
    assert not covered(given_windows, chosen) & gaps
    mine = (sum(not known for _, known in chosen), cost(given_windows, [begin for begin, known in chosen if known]))
    known_begins = [begin for begin, window in enumerate(given_windows) if window.latency_ps is not None]
    others = []
    for picks in product([False, True], repeat=len(known_begins)):
        begins = [begin for begin, pick in zip(known_begins, picks, strict=True) if pick]
        reached = covered(given_windows, tuple(Chosen(begin, True) for begin in begins))
        others.append((len(given_windows) - len(reached), cost(given_windows, begins)))
    assert mine == min(others)


@given(graphs(), st.integers(1, 12))
def test_the_slowest_come_first_and_their_shares_add_up(graph: LayerGraph, most: int) -> None:
    found = estimate(decompose(graph), measured(decompose(graph)))
    slow = slowest(found, most)
    times_ms = [it.latency_ms for it in slow.parts]
    assert times_ms == sorted(times_ms, reverse=True) and len(times_ms) <= most
    left_out = [it for it in found.parts if it not in [slow.part for slow in slow.parts]]
    if slow.parts:
        assert all(it.paid_ps <= slow.parts[-1].part.paid_ps for it in left_out)
        for before, it in pairwise(slow.parts):
            assert abs(it.cumulative - before.cumulative - it.share) < 1e-9
    everything = slowest(found, len(found.parts))
    if everything.parts:
        assert everything.parts[-1].cumulative == 1.0


def test_layers_are_named_with_their_share_of_the_whole() -> None:
    graph = chain("conv", "relu", "pool")
    slow = slowest(estimate(decompose(graph), knowing(decompose(graph), {0: 6.0, 1: 1.0, 2: 3.0})), 2)
    assert [(title_of(graph, it), name_of(graph, it)) for it in slow.parts] == [
        ("conv 8", "layer0"),
        ("pool", "layer2"),
    ]
    assert [(it.share, it.cumulative) for it in slow.parts] == [(0.6, 0.6), (0.3, 0.9)]
    assert slowest_in_words(slow) == "2 of 3 layers take 90 % of 10.00 ms"


def test_a_model_without_latencies_has_no_slowest_layer() -> None:
    decomposition = decompose(chain("conv", "relu"))
    found = slowest(estimate(decomposition, measured(decomposition, without=decomposition.pairs)), 5)
    assert not found.parts and slowest_in_words(found) == "no layer has a latency"
