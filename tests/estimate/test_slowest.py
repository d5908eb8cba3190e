from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.estimate.estimate import estimate
from dlbricks_tui.estimate.parts import slowest
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.wording.layers import name_of, sign_of_part, slowest_in_words, title_of
from tests.analysis.executions import knowing
from tests.bricks.graphs import chain, graphs
from tests.estimate.knowledge_of import measured, with_predictions


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


def test_predicted_layers_are_marked() -> None:
    decomposition = decompose(chain("conv", "relu"))
    found = slowest(estimate(decomposition, with_predictions(measured(decomposition, without=decomposition.suite))), 5)
    assert found.parts and {sign_of_part(it) for it in found.parts} == {"~"}


def test_a_model_without_latencies_has_no_slowest_layer() -> None:
    decomposition = decompose(chain("conv", "relu"))
    found = slowest(estimate(decomposition, measured(decomposition, without=decomposition.suite)), 5)
    assert not found.parts and slowest_in_words(found) == "no layer has a latency"
