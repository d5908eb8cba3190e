"""Layer graphs, and other graphs of numbered nodes, as digraphs of networkx."""

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
    numbers = draw(st.permutations(range(draw(st.integers(1, 12)))))
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
    assert nx.is_isomorphic(
        layer_digraph(graph),
        layer_digraph(rewritten(graph, data.draw(topological_orders(graph)))),
        node_match=lambda one, two: one["layer"].operators == two["layer"].operators,
        edge_match=lambda one, two: one["tensors"] == two["tensors"],
    )


@given(acyclic(), st.data())
def test_orders_follow_the_sources_and_leave_cycles_out(sources: Sources, data: st.DataObject) -> None:
    numbers = range(len(sources))
    expected: list[int] = []
    while len(expected) < len(sources):
        expected.append(next(it for it in numbers if it not in expected and set(sources[it]) <= set(expected)))
    # The first one by number.
    assert topological_order(sources) == expected
    heads = data.draw(st.sets(st.integers(0, len(sources) - 1), max_size=3))
    digraph = digraph_of(sources)
    assert needed_for(heads, sources) == heads.union(*(nx.ancestors(digraph, head) for head in heads))
    order = depth_first([*sources, list(numbers)])
    assert sorted(order) == [*numbers, len(sources)]
    assert all(order.index(source) < order.index(reader) for reader in numbers for source in sources[reader])
    cyclic = data.draw(st.integers(0, len(sources) - 1))
    sources[cyclic].append(cyclic)
    assert set(topological_order(sources)) == set(numbers) - {cyclic, *nx.descendants(digraph, cyclic)}
