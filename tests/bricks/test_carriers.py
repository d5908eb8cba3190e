from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.bricks.carriers import Carrier, carrier_of, cover, kept_places, segments_of
from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.models.graph import Feed, LayerGraph
from tests.bricks.graphs import DATA, Spec, after, built, chain, graphs


def bricks_of(graph: LayerGraph) -> list[str]:
    return [brick_of(graph, (layer.index,)).key for layer in graph.layers]


def whole_carrier(graph: LayerGraph) -> Carrier:
    carrier = carrier_of(graph)
    assert carrier is not None
    return carrier


def residual(blocks: int) -> LayerGraph:
    """A convolution, blocks of two convolutions with a short cut, and a pooling."""
    specs = [Spec("conv", DATA)]
    for _ in range(blocks):
        entry = len(specs) - 1
        specs += [Spec("conv", after(entry)), Spec("relu", after(entry + 1)), Spec("add", after(entry, entry + 2))]
    specs.append(Spec("pool", after(len(specs) - 1)))
    return built(specs)


def test_a_chain_is_cut_at_every_single_tensor_and_a_short_cut_keeps_its_block_in_one_segment() -> None:
    assert [list(it.layers) for it in segments_of(chain("conv", "relu", "pool"))] == [[0], [1], [2]]
    assert [list(it.layers) for it in segments_of(residual(2))] == [[0], [1, 2, 3], [4, 5, 6], [7]]


def test_one_copy_of_a_repeated_module_stays() -> None:
    carrier = whole_carrier(residual(5))
    assert [layer.op for layer in carrier.graph.layers] == ["conv", "conv", "relu", "add", "pool"]
    assert carrier.origin == (0, 1, 2, 3, 16)
    # The pooling reads what the block that stayed computes.
    assert carrier.graph.layers[4].feeds == (Feed(3, 0),)
    # A module may have several segments, and shorter ones inside.
    assert [kept_places(text, [True] * len(text)) for text in ("xababab", "aabaabaab", "abc")] == [
        *([0, 1, 2], [0, 2], [0, 1, 2])
    ]
    graph = chain("conv", "relu", "pool")
    assert whole_carrier(graph).is_whole
    assert whole_carrier(graph).graph == graph


def test_ends_without_needed_bricks_are_left_out_except_for_weights_that_set_a_layout() -> None:
    graph = chain("conv", "pool", "conv", "relu", "split", "conv")
    keys = bricks_of(graph)
    carrier = carrier_of(graph, lambda layer: keys[layer] == keys[4])
    assert carrier is not None
    assert carrier.origin == (2, 3, 4)
    assert carrier.graph.layers[0].feeds == (Feed(None, 0),)
    assert carrier.graph.heads == (Feed(2, 0),)
    assert not carrier.is_whole
    assert carrier_of(chain("conv"), lambda layer: False) is None


@given(graphs(), st.integers(1, 4))
def test_a_carrier_holds_every_brick_and_reads_only_earlier_nodes(graph: LayerGraph, copies: int) -> None:
    carrier = whole_carrier(graph)
    assert set(bricks_of(carrier.graph)) == set(bricks_of(graph))
    assert [layer.index for layer in carrier.graph.layers] == list(range(len(carrier.origin)))
    for layer in carrier.graph.layers:
        for feed in layer.feeds:
            assert feed.layer is None or feed.layer < layer.index
    # Each layer stands for the one that it says.
    keys, origin = bricks_of(graph), bricks_of(carrier.graph)
    assert [keys[index] for index in carrier.origin] == origin


def test_carriers_of_several_models_share_what_they_can_and_a_short_model_keeps_its_repeated_modules() -> None:
    long, short, other = residual(6), residual(2), chain("pool", "split")
    needed = {*bricks_of(long), *bricks_of(short), *bricks_of(other)}
    carriers = cover([long, short, other], needed, lambda graph, layer: 1.0)
    assert {key for it in carriers for key in bricks_of(it.graph)} == needed
    # Both residual networks have the same bricks, so one of them is enough.
    assert len(carriers) == 2
    needed, count = set(bricks_of(long)[:2]), len(long.layers)
    (whole,), (shortened,) = (cover([long], needed, lambda graph, layer: 1.0, limit) for limit in (count, count - 1))
    assert whole.is_whole
    assert len(shortened.origin) < count
