from dataclasses import replace

from dlbricks_tui.bricks.lifetimes import is_needed_after, may_be_overwritten
from dlbricks_tui.models.graph import Feed, Origin, Wire
from tests.bricks.convolutions import named, with_layer
from tests.bricks.graphs import DATA, Spec, after, built, chain

FIRST = Feed(0, 0)


def test_a_tensor_is_needed_until_its_last_reader() -> None:
    graph = built([Spec("relu", DATA), Spec("relu", after(0)), Spec("relu", after(0)), Spec("relu", after(2))])
    assert is_needed_after(graph, FIRST, 1)
    assert not is_needed_after(graph, FIRST, 2)
    assert not is_needed_after(graph, FIRST, 3)


def test_what_enters_and_leaves_a_model_is_always_needed() -> None:
    graph = replace(chain("relu", "relu"), heads=after(0, 1))
    assert is_needed_after(graph, Feed(None, 0), 0)
    assert is_needed_after(graph, FIRST, 1)


def test_only_readers_of_that_output_count() -> None:
    graph = built([Spec("split", DATA), Spec("relu", (Feed(0, 0),)), Spec("relu", (Feed(0, 1),))])
    assert not is_needed_after(graph, Feed(0, 0), 1)


def test_a_tensor_is_needed_by_those_who_know_it_by_another_name() -> None:
    specs = [Spec("conv", DATA), Spec("relu", after(0)), Spec("relu", after(1)), Spec("relu", after(0))]
    graph = named(built(specs), "conv", "identity", "relu", "relu")
    assert is_needed_after(graph, Feed(1, 0), 2)
    specs = [Spec("conv", DATA), Spec("relu", after(0)), Spec("relu", after(0)), Spec("relu", after(1))]
    graph = named(built(specs), "conv", "identity", "relu", "relu")
    assert is_needed_after(graph, FIRST, 2)
    assert not is_needed_after(graph, FIRST, 3)


def test_another_name_of_what_enters_a_model_is_always_needed() -> None:
    assert is_needed_after(named(chain("relu", "relu"), "identity", "relu"), FIRST, 1)


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


def test_weights_are_never_overwritten() -> None:
    graph = chain("conv")
    assert not may_be_overwritten(graph, graph.layers[0], 0, Wire(Origin.WEIGHT, 0))
