from dataclasses import replace

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.bricks.layouts import is_needed_after, layers_before, may_be_overwritten, output_layouts, way_up
from dlbricks_tui.models.graph import (
    Feed,
    LayerGraph,
    Origin,
    Params,
    ParamValue,
    Shape,
    TensorType,
    Wire,
    layer_digraph,
)
from tests.bricks.convolutions import convolving, named, with_layer
from tests.bricks.graphs import DATA, Spec, after, built, chain, graphs, wired


def layouts(graph: LayerGraph) -> list[str]:
    return [outputs[0] for outputs in output_layouts(graph)]


def set_by(data: Shape, weight: Shape, result: Shape, op: str = "conv", parts: str = "") -> str:
    return layouts(convolving(chain("conv"), 0, data, weight, result, op, parts))[0]


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        # Without a convolution in front.
        (["relu", "max_pool"], ["plain", "plain"]),
        *(
            (["relu", "conv", op], ["plain", "conv", "conv"])
            for op in ("relu", "batch_norm", "max_pool", "lrn", "leaky_relu", "identity", "mxnet.amp_cast")
        ),
        *(
            (["conv", op, "relu"], ["conv", "plain", "plain"])
            for op in ("flatten", "softmax", "linear", "reshape", "clip", "mxnet.where", "mxnet.Nobodys")
        ),
    ],
)
def test_a_convolution_sets_a_layout_that_onednn_operators_keep_and_others_do_not(
    ops: list[str], expected: list[str]
) -> None:
    assert layouts(named(chain(*["relu"] * len(ops)), *ops)) == expected


@pytest.mark.parametrize("op", ["exp", "mul", "dropout", "mxnet.relu", "mxnet._mul_scalar", "mxnet.LayerNorm"])
def test_mxnet_converts_results_of_in_place_operators_back(op: str) -> None:
    assert layouts(named(chain("conv", "relu"), "conv", op)) == ["conv", "conv"]
    assert layouts(named(wired("conv relu:0 relu:0"), "conv", op, op)) == ["conv", "plain", "conv"]


@pytest.mark.parametrize(
    ("read", "needed", "expected"),
    [
        ((0, 1), (), "conv"),
        ((0, 1), (0,), "plain"),
        ((0, 1), (0, 1), "conv"),
        ((1, 0), (), "plain"),
        ((1, 0), (1,), "conv"),
        ((1, 0), (0, 1), "plain&conv"),
    ],
)
def test_a_sum_of_two_has_the_layout_of_the_overwritten_input(
    read: tuple[int, ...], needed: tuple[int, ...], expected: str
) -> None:
    later = " ".join(f"relu:{layer}" for layer in needed)
    assert layouts(wired(f"conv relu add:{read[0]},{read[1]} {later}"))[2] == expected
    # An input of another size is never overwritten.
    graph = named(built([Spec("conv", DATA), Spec("sub", after(0), width=16)]), "conv", "sub")
    assert layouts(graph) == ["conv", "plain"]


@pytest.mark.parametrize(
    ("data", "weight", "result", "expected"),
    [
        ((1, 3, 224, 224), (64, 3, 7, 7), (1, 64, 112, 112), "conv"),
        ((1, 64, 56, 56), (64, 64, 3, 3), (1, 64, 56, 56), "conv"),
        ((1, 64, 56, 56), (24, 64, 3, 3), (1, 24, 56, 56), "conv/8"),
        ((1, 64, 56, 56), (5, 64, 3, 3), (1, 5, 56, 56), "conv/1"),
        ((1, 32, 14, 14), (32, 1, 3, 3), (1, 32, 14, 14), "depthwise"),
        ((1, 24, 14, 14), (24, 1, 3, 3), (1, 24, 7, 7), "depthwise/8"),
        ((1, 128, 14, 14), (128, 4, 3, 3), (1, 128, 14, 14), "grouped4"),
        ((1, 256, 14, 14), (64, 256, 1, 1), (1, 64, 14, 14), "conv1x1:256x14x14:64x14x14"),
        ((1, 500, 14, 14), (64, 500, 1, 1), (1, 64, 7, 7), "conv1x1:256x14x14:64x7x7~1"),
        ((1, 36, 28, 28), (8, 36, 1, 1), (1, 8, 28, 28), "conv1x1:32x28x28:8x28x28~1"),
        ((1, 48, 28, 28), (8, 48, 1, 1), (1, 8, 28, 28), "conv1x1:32x28x28:8x28x28"),
        ((1, 40, 14, 14), (64, 40, 3, 3), (1, 64, 14, 14), "conv~8"),
        ((1, 36, 14, 14), (24, 36, 3, 3), (1, 24, 14, 14), "conv/8~1"),
        ((8, 512, 14), (64, 512, 1), (8, 64, 14), "conv1x1:512x14:64x14"),
        # Numbers, as of a damaged file.
        ((), (), (), "conv"),
    ],
)
def test_convolutions_whose_layouts_may_differ_are_of_different_classes(
    data: Shape, weight: Shape, result: Shape, expected: str
) -> None:
    assert set_by(data, weight, result) == expected
    assert set_by(data, weight, result, parts="conv batch_norm relu") == expected


@pytest.mark.parametrize("parts", ["", "conv batch_norm relu"])
@pytest.mark.parametrize(
    ("pads", "expected"), [(3, "conv"), (4, "conv~far"), ((1, 6, 1, 6), "conv~far"), ((3, 3, 3, 3), "conv")]
)
def test_convolutions_with_large_padding_have_their_own_class(pads: ParamValue, expected: str, parts: str) -> None:
    shape = (1, 64, 28, 28)
    graph = convolving(chain("conv"), 0, shape, (64, 64, 3, 3), shape, parts=parts, params=(("pads", pads),))
    assert layouts(graph) == [expected]


def test_a_deconvolution_sets_a_layout_of_its_own() -> None:
    assert set_by((1, 64, 8, 8), (64, 32, 4, 4), (1, 32, 16, 16), "conv_transpose") == "deconv"
    assert set_by((1, 64, 8, 8), (64, 3, 4, 4), (1, 3, 16, 16), "conv_transpose") == "deconv/1"


def test_a_sum_of_many_is_plain_if_one_input_is_plain() -> None:
    graph = wired("conv conv relu add:0,0 add:0,1 add:1,0 add:0,1,2 add:2,0 add:4,1 add:4,5")
    graph = named(graph, "conv", "conv", "relu", *["sum"] * 7)
    graph = convolving(graph, 1, (1, 3, 8, 8), (24, 3, 3, 3), (1, 24, 8, 8))
    many = "conv|conv/8"
    assert layouts(graph)[3:] == ["conv", many, "conv/8|conv", "plain", "plain", many, many]


def test_layouts_propagate_inside_a_layer() -> None:
    graph = named(chain("conv", "relu"), "conv", "relu")
    (one,) = graph.layers[1].operators
    second = replace(one, inputs=(Wire(Origin.OPERATOR, 0),))
    third = replace(second, op="flatten")
    results = (Wire(Origin.OPERATOR, 1), Wire(Origin.OPERATOR, 2))
    layer = replace(graph.layers[1], operators=(one, second, third), results=results)
    assert output_layouts(with_layer(graph, layer))[1] == ("conv", "plain")


ROUNDED_UP: Params = (("kernel", (3, 3)), ("rounding", "up"), ("stride", (2, 2)))


@pytest.mark.parametrize(
    ("op", "params", "size", "expected"),
    [
        ("mean_pool", ROUNDED_UP, 16, "plain"),
        ("mean_pool", ROUNDED_UP, 15, "conv"),
        ("mean_pool", (*ROUNDED_UP, ("pads", (0, 1, 0, 0))), 15, "plain"),
        ("mean_pool", (("kernel", (7, 7)), ("rounding", "up")), 7, "conv"),
        ("mean_pool", (("kernel", (3, 3)), ("stride", (2, 2))), 16, "conv"),
        ("max_pool", ROUNDED_UP, 16, "conv"),
    ],
)
def test_average_pooling_with_padding_is_not_done_by_onednn(op: str, params: Params, size: int, expected: str) -> None:
    graph = named(chain("conv", "pool"), "conv", op)
    pool = graph.layers[1]
    operators = (replace(pool.operators[0], params=params),)
    graph = with_layer(graph, replace(pool, operators=operators, data=(TensorType((1, 16, size, size)),)))
    assert layouts(graph)[1] == expected


# What has to run so that a tensor has its layout.


def behind(graph: LayerGraph, *feeds: Feed) -> tuple[int, ...]:
    return layers_before(graph, feeds, output_layouts(graph))


@given(graphs(), st.data())
def test_the_search_for_producers_finds_the_ancestors_of_networkx(graph: LayerGraph, data: st.DataObject) -> None:
    layer = data.draw(st.integers(0, len(graph.layers) - 1))
    digraph = layer_digraph(graph)
    # The way ends at convolutions.
    digraph.remove_edges_from([(source, it) for source, it in graph.edges if graph.layers[it].op == "conv"])
    found = {feed.layer for feed in way_up(graph, [Feed(layer, 0)])} - {None}
    assert found == {layer, *nx.ancestors(digraph, layer)}


def test_the_search_for_producers_ends_where_the_layout_is_set_and_follows_all_inputs_that_are_not_plain() -> None:
    graph = named(chain("conv", "relu", "conv", "pool", "relu"), "conv", "relu", "conv", "max_pool", "relu")
    assert behind(graph, Feed(4, 0)) == (2, 3, 4)
    assert behind(graph, Feed(1, 0)) == (0, 1)
    assert behind(graph, Feed(None, 0)) == ()
    graph = wired("conv conv relu concat:0,2,1 relu:3")
    assert behind(graph, Feed(4, 0), Feed(2, 0)) == (0, 1, 3, 4)


def test_a_convolution_of_unknown_output_shape_sets_a_layout() -> None:
    (layer,) = convolving(chain("conv"), 0, (1, 8, 8, 8), (8, 8, 3, 3), (1, 8, 8, 8)).layers
    without = replace(layer, operators=(replace(layer.operators[0], outputs=()),), results=(), outputs=())
    assert output_layouts(with_layer(chain("conv"), without)) == ((),)


def reading(*sources: int, op: str = "relu") -> LayerGraph:
    """A first layer, and more that read these ones; the second is of that kind."""
    graph = wired(" ".join(["conv", *(f"relu:{source}" for source in sources)]))
    return named(graph, "conv", op, *["relu"] * (len(sources) - 1))


@pytest.mark.parametrize(
    ("graph", "feed", "readers"),
    [
        (reading(0, 0, 2), Feed(0, 0), [1]),
        # Only readers of the same output count.
        (built([Spec("split", DATA), Spec("relu", (Feed(0, 0),)), Spec("relu", (Feed(0, 1),))]), Feed(0, 0), []),
        # Inputs and outputs of a model are always needed, and so are tensors that have another name.
        (reading(0), Feed(None, 0), [1]),
        (replace(reading(0), heads=after(0, 1)), Feed(0, 0), [1]),
        (reading(0, op="identity"), Feed(0, 0), [1]),
        (reading(0, 1, 0, op="identity"), Feed(1, 0), [1, 2]),
        (reading(0, 0, 1, op="identity"), Feed(0, 0), [1, 2]),
    ],
)
def test_a_tensor_is_needed_until_the_last_reader_of_it_and_its_aliases(
    graph: LayerGraph, feed: Feed, readers: list[int]
) -> None:
    behind = range(1, len(graph.layers))
    assert [reader for reader in behind if is_needed_after(graph, feed, reader)] == readers
    assert not may_be_overwritten(graph, graph.layers[0], 0, Wire(Origin.WEIGHT, 0))


def test_inside_a_layer_a_tensor_may_be_overwritten_by_its_last_reader() -> None:
    graph = chain("conv", "relu")
    (one,) = graph.layers[1].operators
    made = Wire(Origin.OPERATOR, 0)
    layer = replace(graph.layers[1], operators=(one, replace(one, inputs=(made,)), replace(one, inputs=(made,))))
    layer = replace(layer, results=(Wire(Origin.OPERATOR, 2),))
    graph = with_layer(graph, layer)
    assert [may_be_overwritten(graph, layer, number, made) for number in (1, 2)] == [False, True]
    assert may_be_overwritten(graph, layer, 0, Wire(Origin.DATA, 0))
    layer = replace(layer, results=(*layer.results, made))
    assert not may_be_overwritten(with_layer(graph, layer), layer, 2, made)
