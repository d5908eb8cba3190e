import networkx as nx
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.models.graph import (
    Feed,
    LayerGraph,
    TensorType,
    depth_first,
    digraph_of,
    layer_digraph,
    needed_for,
    topological_order,
)
from tests.bricks.graphs import DATA, Spec, after, built, graphs, rewritten, topological_orders

Sources = list[list[int]]


@st.composite
def acyclic(draw: st.DrawFn) -> Sources:
    """The sources of each node, under shuffled numbers."""
    count = draw(st.integers(1, 12))
    numbers = draw(st.permutations(range(count)))
    found: Sources = [[] for _ in numbers]
    for place, number in enumerate(numbers):
        found[number] = draw(st.lists(st.sampled_from(numbers[:place]), max_size=3)) if place else []
    return found


def test_nodes_of_a_digraph_carry_layers_and_edges_carry_tensors() -> None:
    graph = built([Spec("split", DATA), Spec("add", (Feed(0, 0), Feed(0, 1))), Spec("relu", after(1))])
    digraph = layer_digraph(graph)
    assert [digraph.nodes[number]["layer"] for number in digraph] == list(graph.layers)
    assert list(digraph.edges) == [(0, 1), (1, 2)]
    assert digraph.edges[0, 1]["tensors"] == {0: TensorType((1, 8)), 1: TensorType((1, 8))}


@given(graphs(), st.data())
def test_the_digraph_of_a_reordered_file_is_isomorphic(graph: LayerGraph, data: st.DataObject) -> None:
    other = rewritten(graph, data.draw(topological_orders(graph)))
    assert nx.is_isomorphic(
        layer_digraph(graph),
        layer_digraph(other),
        node_match=lambda one, two: one["layer"].operators == two["layer"].operators,
        edge_match=lambda one, two: one["tensors"] == two["tensors"],
    )


@given(acyclic())
def test_a_topological_order_is_the_first_one_by_number(sources: Sources) -> None:
    waiting = list(range(len(sources)))
    expected: list[int] = []
    while waiting:
        number = next(it for it in waiting if set(sources[it]) <= set(expected))
        expected.append(number)
        waiting.remove(number)
    assert topological_order(sources) == expected


@given(acyclic(), st.data())
def test_a_cycle_and_all_that_depends_on_it_are_left_out_of_the_order(sources: Sources, data: st.DataObject) -> None:
    cyclic = data.draw(st.integers(0, len(sources) - 1))
    graph = digraph_of(sources)
    stuck = {cyclic, *nx.descendants(graph, cyclic)}
    sources[cyclic].append(cyclic)
    assert set(topological_order(sources)) == set(range(len(sources))) - stuck


@given(acyclic(), st.data())
def test_needed_numbers_are_the_heads_and_their_sources(sources: Sources, data: st.DataObject) -> None:
    heads = data.draw(st.sets(st.integers(0, len(sources) - 1), max_size=3))
    found = set(heads)
    for _ in sources:
        found |= {source for number in found for source in sources[number]}
    assert needed_for(heads, sources) == found


@given(acyclic())
def test_depth_first_order_puts_each_number_after_its_sources(sources: Sources) -> None:
    sources.append(list(range(len(sources))))
    order = depth_first(sources)
    place = {number: position for position, number in enumerate(order)}
    assert sorted(order) == list(range(len(sources)))
    assert all(place[source] < place[reader] for reader, read in enumerate(sources) for source in read)
