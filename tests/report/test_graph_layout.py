from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.report.graph_files import GraphLayout, lay_out
from tests.estimate.table1 import table1

# A module of two branches and a shortcut around it.
MODULE = ((), (0,), (1,), (2,), (1,), (3, 4, 0))


@st.composite
def graphs(draw: st.DrawFn) -> tuple[tuple[int, ...], ...]:
    """Each layer reads some of those before it."""
    count = draw(st.integers(0, 24))
    return tuple(
        tuple(sorted(draw(st.sets(st.integers(0, layer - 1), max_size=3)))) if layer else () for layer in range(count)
    )


def check(predecessors: tuple[tuple[int, ...], ...], layout: GraphLayout) -> None:
    places = list(zip(layout.ranks, layout.lanes, strict=True))
    assert len(set(places)) == len(predecessors), "two layers stand in one place"
    assert [(wire.source, wire.reader) for wire in layout.wires] == [
        (source, reader) for reader, sources in enumerate(predecessors) for source in sources
    ]
    for wire in layout.wires:
        assert wire.points[0] == places[wire.source]
        assert wire.points[-1] == places[wire.reader]
        assert [rank for rank, _ in wire.points] == sorted(rank for rank, _ in wire.points)
        passed = {(rank, wire.points[1][1]) for rank in range(wire.points[0][0] + 1, wire.points[-1][0])}
        assert not passed & set(places), "an edge runs through a layer"


@given(graphs())
def test_layers_have_distinct_places_and_no_edge_crosses_a_layer(
    predecessors: tuple[tuple[int, ...], ...],
) -> None:
    check(predecessors, lay_out(predecessors))


def test_the_longest_path_is_straight_and_parallel_layers_are_beside_it() -> None:
    layout = lay_out(MODULE)
    assert [layout.lanes[layer] for layer in (0, 1, 2, 3, 5)] == [0] * 5
    assert layout.lanes[4] != 0
    assert layout.ranks == (0, 1, 2, 3, 2, 4)


def test_another_spine_can_be_chosen() -> None:
    layout = lay_out(MODULE, spine=(0, 1, 4, 5))
    assert [layout.lanes[layer] for layer in (0, 1, 4, 5)] == [0] * 4
    assert layout.lanes[2] == layout.lanes[3] != 0


@pytest.mark.parametrize("number", ["4", "9", "14", "42", "47"])
def test_models_of_table_1_are_laid_out_in_lines_that_end_where_little_is_cut(number: str) -> None:
    predecessors = table1()[number].predecessors
    layout = lay_out(predecessors, line=46)
    check(predecessors, layout)
    begins = (*layout.breaks, max(layout.ranks) + 1)
    assert all(0 < later - earlier <= 46 for earlier, later in pairwise(begins))
