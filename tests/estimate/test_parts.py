from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.estimate.estimate import estimate
from dlbricks_tui.estimate.parts import Chosen, Window, minimum_cover, slowest
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.wording.layers import name_of, sign_of_part, slowest_in_words, title_of
from tests.analysis.executions import knowing
from tests.bricks.graphs import chain, graphs
from tests.estimate.knowledge_of import measured, with_predictions

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
    mine = (
        sum(not known for _, known in chosen),
        cost(given_windows, [begin for begin, known in chosen if known]),
    )
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


def test_predicted_layers_are_marked() -> None:
    decomposition = decompose(chain("conv", "relu"))
    found = slowest(estimate(decomposition, with_predictions(measured(decomposition, without=decomposition.suite))), 5)
    assert found.parts and {sign_of_part(it) for it in found.parts} == {"~"}


def test_a_model_without_latencies_has_no_slowest_layer() -> None:
    decomposition = decompose(chain("conv", "relu"))
    found = slowest(estimate(decomposition, measured(decomposition, without=decomposition.suite)), 5)
    assert not found.parts and slowest_in_words(found) == "no layer has a latency"
