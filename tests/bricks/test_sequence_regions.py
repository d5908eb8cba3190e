from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.bricks.decomposition import Cutting, decompose
from dlbricks_tui.bricks.ordering import Order
from dlbricks_tui.bricks.regions import Leaf, Parallel, Repeat, layers_in, region_tree, walk
from dlbricks_tui.bricks.sequence_regions import sequence_regions
from dlbricks_tui.models.graph import LayerGraph
from tests.bricks.graphs import chain, laid_out, random_graphs

cuttings = st.builds(Cutting, st.integers(1, 5), st.sampled_from(Cut), st.sampled_from(Order))


@given(random_graphs(), cuttings)
def test_every_sequence_stands_in_the_regions_once(graph: LayerGraph, how: Cutting) -> None:
    decomposition = decompose(graph, how)
    leaves = sorted(layers_in(sequence_regions(decomposition).root))
    assert leaves == [occurrence.sequence.index for occurrence in decomposition.occurrences]


@given(random_graphs())
def test_cut_into_single_layers_the_regions_are_those_of_the_layers(graph: LayerGraph) -> None:
    decomposition = decompose(graph, Cutting(1, order=Order.PAPER))
    by_layer = region_tree(graph, [occurrence.brick.key for occurrence in decomposition.occurrences])
    assert sequence_regions(decomposition).occurrences == by_layer.occurrences


def test_a_sequence_of_several_layers_is_one_leaf() -> None:
    tree = sequence_regions(decompose(chain("conv", "relu", "pool", "conv", "relu"), Cutting(2)))
    assert [type(part) for part in tree.root.parts] == [Leaf, Leaf, Leaf]


def test_equal_sequences_in_a_row_are_a_repeat() -> None:
    tree = sequence_regions(decompose(chain("conv", "relu", "conv", "relu"), Cutting(2)))
    (repeat,) = tree.root.parts
    assert isinstance(repeat, Repeat)
    assert len(repeat.instances) == 2


def test_overlapping_sequences_stand_where_their_first_layers_do() -> None:
    graph = laid_out((("add", (("conv", "relu"), ("pool",))), "relu"))
    tree = sequence_regions(decompose(graph, Cutting(3, Cut.OVERLAP)))
    assert sum(isinstance(region, Parallel) for _, region in walk(tree.root)) == 1
