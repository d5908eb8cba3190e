"""Models cut into sequences, their order, decompositions, and the repetition of layers."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.bricks import decomposition as decomposition_module
from dlbricks_tui.bricks.cutting import (
    Cut,
    DominatorTree,
    LayerOrder,
    LayerSequence,
    branch_order,
    continues_chain,
    cut,
    layer_order,
    sequence_edges,
)
from dlbricks_tui.bricks.decomposition import (
    Cutting,
    Decomposition,
    ModelBricks,
    RepeatedType,
    Uniqueness,
    corpus_of_bricks,
    decompose,
)
from dlbricks_tui.bricks.identity import times_paid
from dlbricks_tui.errors import UserError
from dlbricks_tui.models.cache import Cache
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
from dlbricks_tui.models.kinds import Kind
from tests.bricks.graphs import (
    DATA,
    MANY_LAYERS,
    Branch,
    Spec,
    after,
    built,
    chain,
    graphs,
    laid_out,
    rewritten,
    series_parallel_branches,
    topological_orders,
    wired,
)

granularities = st.integers(1, 6)
orders = st.sampled_from(LayerOrder)
partitions = st.sampled_from((Cut.CHAIN, Cut.RUNNABLE))


def layers_of(sequences: Sequence[LayerSequence]) -> list[tuple[int, ...]]:
    return [sequence.layers for sequence in sequences]


def runs(graph: LayerGraph, window: Sequence[int], kind: Cut) -> bool:
    """The definition of a runnable window, word by word."""
    layers = [graph.layers[index] for index in window]
    if len(layers) > 1 and any(layer.unmeasurable for layer in layers):
        return False
    if kind is Cut.RUNNABLE:
        return all(feed.layer is None or feed.layer in window for layer in layers[1:] for feed in layer.feeds)
    return all([feed.layer for feed in layer.feeds] == [before.index] for before, layer in pairwise(layers))


def split_model(
    graph: LayerGraph, order: Sequence[int], begin: int, end: int, kind: Cut
) -> tuple[list[tuple[int, ...]], int]:
    """Algorithm 2 of the paper with half-open ranges, as recursive as it is printed."""
    window = tuple(order[begin:end])
    if len(window) <= 1 or runs(graph, window, kind):
        return [window] if window else [], end
    rest, rest_end = split_model(graph, order, begin + 1, min(end + 1, len(order)), kind)
    return [window[:1], *rest], rest_end


def find_model_subgraphs(graph: LayerGraph, order: Sequence[int], granularity: int, kind: Cut) -> list[tuple[int, ...]]:
    """Algorithm 1 of the paper."""
    found: list[tuple[int, ...]] = []
    begin = 0
    while begin < len(order):
        sequences, begin = split_model(graph, order, begin, min(begin + granularity, len(order)), kind)
        found += sequences
    return found


@given(graphs(), granularities, partitions, orders)
def test_a_cut_into_parts_is_that_of_the_papers_algorithms_and_has_every_layer_once(
    graph: LayerGraph, granularity: int, kind: Cut, order: LayerOrder
) -> None:
    sequences = cut(graph, granularity, kind, order)
    assert layers_of(sequences) == find_model_subgraphs(graph, layer_order(graph, order), granularity, kind)
    assert sorted(layer for it in sequences for layer in it.layers) == list(range(len(graph.layers)))
    owner = {layer: it.index for it in sequences for layer in it.layers}
    between = {(owner[a], owner[b]) for a, b in graph.edges if owner[a] != owner[b]}
    assert sequence_edges(graph, sequences) == tuple(sorted(between))


@given(graphs(), granularities, st.sampled_from(Cut), orders)
def test_every_sequence_is_runnable_and_has_at_most_g_layers_and_its_place_in_a_runnable_order(
    graph: LayerGraph, granularity: int, kind: Cut, order: LayerOrder
) -> None:
    sequences = cut(graph, granularity, kind, order)
    assert [it.index for it in sequences] == list(range(len(sequences)))
    for sequence in sequences:
        assert 1 <= len(sequence.layers) <= granularity
        assert runs(graph, sequence.layers, kind)
    assert all(writer < reader for writer, reader in sequence_edges(graph, sequences))
    # A layer that cannot be measured is a sequence of its own.
    unmeasurable = {layer.index for layer in graph.layers if layer.unmeasurable}
    holders = [it.layers for it in sequences if unmeasurable.intersection(it.layers)]
    assert Counter(holders) == Counter((layer,) for layer in unmeasurable)
    assert layers_of(cut(graph, 1, kind, order)) == [(layer,) for layer in layer_order(graph, order)]


@given(graphs(), granularities, orders)
def test_overlapping_sequences_are_the_longest_chains_from_every_layer(
    graph: LayerGraph, granularity: int, order: LayerOrder
) -> None:
    layers = layer_order(graph, order)
    sequences = cut(graph, granularity, Cut.OVERLAP, order)
    assert [it.layers[0] for it in sequences] == list(layers)
    for begin, sequence in enumerate(sequences):
        longer = layers[begin : begin + len(sequence.layers) + 1]
        assert len(sequence.layers) == granularity or longer == sequence.layers or not runs(graph, longer, Cut.CHAIN)


@given(graphs(), granularities, st.sampled_from(Cut), orders, st.data())
def test_neither_names_nor_with_branch_order_the_order_of_the_file_affect_a_cut(
    graph: LayerGraph, granularity: int, kind: Cut, order: LayerOrder, data: st.DataObject
) -> None:
    renamed = rewritten(graph, range(len(graph.layers)), "{}".format)
    assert cut(renamed, granularity, kind, order) == cut(graph, granularity, kind, order)
    listed = data.draw(topological_orders(graph))
    sequences = cut(rewritten(graph, listed), granularity, kind, LayerOrder.BRANCH)
    assert [tuple(listed[it] for it in sequence.layers) for sequence in sequences] == layers_of(
        cut(graph, granularity, kind, LayerOrder.BRANCH)
    )


def test_edges_between_overlapping_sequences_start_at_every_producer() -> None:
    graph = chain("conv", "relu", "pool")
    sequences = cut(graph, 2, Cut.OVERLAP)
    assert layers_of(sequences) == [(0, 1), (1, 2), (2,)]
    assert sequence_edges(graph, sequences) == ((0, 1), (0, 2), (1, 2))
    with pytest.raises(UserError, match="granularity 0"):
        cut(graph, 0)


def test_no_layers_and_thousands_of_layers_are_cut() -> None:
    assert cut(built([]), 3) == ()
    graph = chain(*["conv", "relu"] * (MANY_LAYERS // 2))
    assert len(cut(graph, 4)) == MANY_LAYERS // 4
    assert len(cut(graph, MANY_LAYERS, Cut.RUNNABLE)) == 1


def test_a_sequence_is_paid_as_often_as_its_layers() -> None:
    graph = built([Spec("conv", DATA), Spec("relu", after(0), times=2), Spec("pool", after(1), times=4)])
    assert [times_paid(graph, layers) for layers in ((0, 1, 2), (1, 2), (2,))] == [1, 2, 4]


# Decompositions.


CUTTINGS = st.builds(Cutting, st.integers(1, 4), st.sampled_from(Cut), st.sampled_from(LayerOrder))


@given(graph=graphs(), cutting=CUTTINGS)
def test_a_decomposition_from_the_cache_is_the_computed_one(
    graph: LayerGraph, cutting: Cutting, tmp_path_factory: pytest.TempPathFactory
) -> None:
    cache, graph = Cache(tmp_path_factory.mktemp("cache")), graph.with_key("a file")
    computed = decompose(graph, cutting)
    assert decompose(graph, cutting, cache) == computed
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decomposition_module, "_decomposed", no_cutting)
        known = decompose(graph, cutting, cache)
    assert known == computed


def no_cutting(graph: LayerGraph, cutting: Cutting) -> Decomposition:
    raise AssertionError("a known model is cut again")


def test_each_cutting_of_each_model_has_its_own_entry_and_a_changed_graph_is_cut_anew(tmp_path: Path) -> None:
    cache, graph = Cache(tmp_path), chain("conv", "relu")
    for key in ("one", "other"):
        for cutting in (Cutting(), Cutting(2), Cutting(2, Cut.OVERLAP), Cutting(2, order=LayerOrder.PAPER)):
            decompose(graph.with_key(key), cutting, cache)
    assert len(list((tmp_path / "models").iterdir())) == 8
    changed = replace(graph.with_key("one"), layers=graph.layers[:1], heads=())
    assert changed.key == ""
    assert len(decompose(changed, cache=cache).occurrences) == 1
    assert graph.with_key("one").named("other").key == "one"


# The repetition of layers within and across models.

KIND_OF = {"c3": Kind.CONVOLUTION, "c5": Kind.CONVOLUTION, "r": Kind.ELEMENTWISE, "p": Kind.POOLING}


def model(name: str, bricks: Sequence[str], contexts: str = "") -> ModelBricks:
    found = tuple(contexts.split()) or ("plain",) * len(bricks)
    return ModelBricks(name, tuple(bricks), found, tuple([KIND_OF[brick] for brick in bricks]))


models = st.builds(model, st.text(max_size=3), st.lists(st.sampled_from(sorted(KIND_OF)), max_size=8))


def test_bricks_of_several_models_are_counted_and_compared() -> None:
    vgg = model("vgg", ("c3", "r", "c3", "r", "p"), "plain blocked blocked blocked blocked")
    corpus = corpus_of_bricks([vgg, model("lenet", ("c5", "r", "p"))])
    assert corpus.models == (Uniqueness("vgg", 5, 3, 4), Uniqueness("lenet", 3, 3, 3))
    assert [it.share for it in corpus.models] == [0.6, 1.0]
    # Seven contexts: c3 in two; r and p in one in vgg and another in lenet; c5.
    assert (corpus.layers, corpus.unique_layers, corpus.contexts) == (8, 4, 7)
    assert corpus.repeated_types == (
        RepeatedType(Kind.CONVOLUTION, layers=3, repeated=2),
        RepeatedType(Kind.ELEMENTWISE, layers=3, repeated=2),
        RepeatedType(Kind.POOLING, layers=2, repeated=0),
    )
    assert corpus.jaccard == ((1.0, 0.5), (0.5, 1.0))


@given(st.lists(models, max_size=5))
def test_similarity_is_a_symmetric_grid_and_a_model_listed_twice_adds_nothing_unique(corpus: list[ModelBricks]) -> None:
    once, twice = corpus_of_bricks(corpus), corpus_of_bricks([*corpus, *corpus])
    assert twice.layers == 2 * once.layers
    assert (twice.unique_layers, twice.contexts) == (once.unique_layers, once.contexts)
    assert [it.repeated for it in twice.repeated_types] == [2 * it.repeated for it in once.repeated_types]
    assert [row[index] for index, row in enumerate(once.jaccard)] == [1.0] * len(corpus)
    assert once.jaccard == tuple(zip(*once.jaccard, strict=True))
    for row, one in zip(once.jaccard, corpus, strict=True):
        for similarity, other in zip(row, corpus, strict=True):
            assert (similarity == 1.0) == (set(one.bricks) == set(other.bricks))
            assert (similarity == 0.0) == (set(one.bricks).isdisjoint(other.bricks) and one.bricks != other.bricks)


# The order of layers.


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
    assert branch_order(wired("constant conv relu:1 add:2,0 pool:3")) == (1, 2, 0, 3, 4)


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


# Graphs of numbered nodes.


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
