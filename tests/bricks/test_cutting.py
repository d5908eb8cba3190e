from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.bricks import decomposition as decomposition_module
from dlbricks_tui.bricks.cutting import Cut, CuttingError, LayerOrder, LayerSequence, cut, layer_order, sequence_edges
from dlbricks_tui.bricks.decomposition import Cutting, Decomposition, decompose
from dlbricks_tui.bricks.identity import times_paid
from dlbricks_tui.bricks.regions import RegionTree, rows_of, tree_of
from dlbricks_tui.models.cache import Cache
from dlbricks_tui.models.graph import LayerGraph
from tests.bricks.graphs import (
    DATA,
    MANY_LAYERS,
    Spec,
    after,
    built,
    chain,
    graphs,
    rewritten,
    topological_orders,
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


def test_a_granularity_below_one_is_refused() -> None:
    with pytest.raises(CuttingError, match="granularity 0"):
        cut(chain("conv"), 0)


def test_a_model_without_layers_has_no_sequences() -> None:
    assert cut(built([]), 3) == ()


def test_a_chain_of_thousands_of_layers_meets_no_recursion_limit() -> None:
    graph = chain(*["conv", "relu"] * (MANY_LAYERS // 2))
    assert len(cut(graph, 4)) == MANY_LAYERS // 4
    assert len(cut(graph, MANY_LAYERS, Cut.RUNNABLE)) == 1


def test_a_sequence_is_paid_as_often_as_its_layers() -> None:
    graph = built([Spec("conv", DATA), Spec("relu", after(0), times=2), Spec("pool", after(1), times=4)])
    assert [times_paid(graph, layers) for layers in ((0, 1, 2), (1, 2), (2,))] == [1, 2, 4]


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
    assert rows_of(known.regions) == rows_of(computed.regions)
    assert known.regions.occurrences == computed.regions.occurrences


def no_cutting(graph: LayerGraph, cutting: Cutting) -> Decomposition:
    raise AssertionError("a known model is cut again")


def test_each_cutting_of_each_model_has_its_own_entry(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    for key in ("one", "other"):
        for cutting in (Cutting(), Cutting(2), Cutting(2, Cut.OVERLAP), Cutting(2, order=LayerOrder.PAPER)):
            decompose(chain("conv", "relu").with_key(key), cutting, cache)
    assert len(list((tmp_path / "models").iterdir())) == 8


def test_a_graph_that_was_changed_after_reading_is_cut_anew(tmp_path: Path) -> None:
    cache, graph = Cache(tmp_path), chain("conv", "relu").with_key("a file")
    decompose(graph, cache=cache)
    changed = replace(graph, layers=graph.layers[:1], heads=())
    assert changed.key == ""
    assert len(decompose(changed, cache=cache).occurrences) == 1
    assert graph.named("other").key == "a file"


def test_regions_nested_deeper_than_python_recurses_become_rows_and_back() -> None:
    # Each join ends a module that holds all of the modules before it.
    specs = [Spec("conv", DATA)]
    for index in range(1, 1_600, 2):
        specs += [Spec("relu", after(index - 1)), Spec("add", (*after(index), *DATA))]
    tree: RegionTree = decompose(built(specs)).regions
    assert rows_of(tree_of(rows_of(tree))) == rows_of(tree)
