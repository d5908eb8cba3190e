import random
from collections import Counter

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.bricks.cutting import DominatorTree, LayerOrder, branch_order, continues_chain, cut, layer_order
from dlbricks_tui.models.graph import LayerGraph, layer_digraph
from tests.bricks.graphs import (
    DATA,
    MANY_LAYERS,
    Branch,
    Spec,
    after,
    built,
    graphs,
    laid_out,
    series_parallel_branches,
)


@given(graphs())
def test_every_layer_occurs_once_after_its_inputs_and_chains_break_only_at_forks_and_joins(graph: LayerGraph) -> None:
    assert layer_order(graph, LayerOrder.PAPER) == tuple(range(len(graph.layers)))
    order = branch_order(graph)
    assert layer_order(graph, LayerOrder.BRANCH) == order
    place = {layer: position for position, layer in enumerate(order)}
    assert sorted(order) == list(range(len(graph.layers)))
    assert all(place[writer] < place[reader] for writer, reader in graph.edges)
    for layer in graph.layers:
        readers = [it for it in graph.successors[layer.index] if continues_chain(graph.layers[it], layer)]
        if readers:
            assert order[place[layer.index] + 1] in readers


def cuts_of(graph: LayerGraph, granularity: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(graph.layers[layer].op for layer in it.layers) for it in cut(graph, granularity))


@given(series_parallel_branches(), st.integers(1, 5), st.randoms(use_true_random=False))
def test_the_sequences_do_not_depend_on_which_branch_the_file_lists_or_joins_first(
    branch: Branch, granularity: int, shuffle: random.Random
) -> None:
    def shuffled(count: int) -> list[int]:
        return shuffle.sample(range(count), count)

    expected = cuts_of(laid_out(branch), granularity)
    assert cuts_of(laid_out(branch, listed=shuffled), granularity) == expected
    assert cuts_of(laid_out(branch, listed=shuffled, joined=shuffled), granularity) == expected
    # Equal modules have the same order anywhere: each of the four lists and joins its branches in another order.
    graph = laid_out(("pool", *branch) * 4, listed=shuffled, joined=shuffled)
    ops = [graph.layers[layer].op for layer in branch_order(graph)[1:]]
    assert ops == ops[: len(ops) // 4] * 4


@pytest.mark.parametrize("nested_first", [True, False])
def test_the_longest_chain_continues_at_a_fork_beside_a_longer_branch(nested_first: bool) -> None:
    nested: Branch = ("relu", ("add", (("relu",), ("relu",))), "relu", "relu")
    straight: Branch = ("conv", "conv", "conv")
    graph = laid_out((("concat", (nested, straight) if nested_first else (straight, nested)),))
    assert [graph.layers[layer].op for layer in branch_order(graph)[1:3]] == ["conv", "conv"]
    # A constant comes right before its reader.
    chained = [Spec("conv", DATA), Spec("relu", after(1)), Spec("add", after(2, 0)), Spec("pool", after(3))]
    assert branch_order(built([Spec("constant"), *chained])) == (1, 2, 0, 3, 4)


def test_a_model_of_thousands_of_joins_meets_no_recursion_limit() -> None:
    graph = built([Spec("conv", DATA), *(Spec("add", after(i, max(i - 7, 0))) for i in range(MANY_LAYERS - 1))])
    assert branch_order(graph) == tuple(range(MANY_LAYERS))


@given(graphs())
def test_dominators_are_those_that_networkx_finds(graph: LayerGraph) -> None:
    tree = DominatorTree(len(graph.layers))
    digraph = layer_digraph(graph)
    digraph.add_edges_from((tree.root, layer) for layer, sources in enumerate(graph.predecessors) if not sources)
    expected = nx.immediate_dominators(digraph, tree.root)
    for layer, sources in enumerate(graph.predecessors):
        assert tree.add(layer, sources) == expected[layer]
        assert tree.depth[layer] == tree.depth[expected[layer]] + 1
