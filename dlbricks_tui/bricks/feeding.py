"""The layers that run once in front of a brick, so that its inputs have the layouts and values of the model.

Values are made up such that the channels inside of a model are nearly alike, and so are the inputs of bricks. Only a
convolution of an image adds up so few values that the channels of its result differ. Max pooling in plain arrays
branches on the larger of two values, and its branches are predicted well where channels are alike.

Large convolutions in front of a brick read a few channels only: running them once would take longer than all timing of
the brick, and the class of the layout hardly depends on how many channels a convolution reads.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from dlbricks_tui.bricks.convolutions import convolves_an_image, fewest_channels, first_part
from dlbricks_tui.bricks.identity import outer_feeds
from dlbricks_tui.bricks.layouts import PLAIN, Layouts, layers_before, layout_of, way_up
from dlbricks_tui.models.graph import Feed, GraphInput, Layer, LayerGraph, Origin, TensorType, type_of

Item = TypeVar("Item")

_BRANCHING = "max_pool"
_COMPARING = "onnx.Equal"
_WHOLE_NUMBERS = ("int64", "int32")
# Operators that only reshape, convert or select numbers.
_HAND_ON = frozenset({"identity", "reshape", "onnx.Cast", "onnx.Gather", "onnx.Squeeze", "onnx.Unsqueeze"})


def feeding_layers(graph: LayerGraph, layers: Sequence[int], layouts: Layouts) -> tuple[int, ...]:
    """Return the layers that must run so that a sequence gets the inputs that it has in its model."""
    feeds = outer_feeds([graph.layers[index] for index in layers])
    return layers_before(graph, feeds, layouts, varied_feeds(graph, layers, layouts))


def varied_feeds(graph: LayerGraph, layers: Sequence[int], layouts: Layouts) -> frozenset[Feed]:
    """Return the plain inputs that a sequence max-pools and that stem from a convolution of an image."""
    chosen = [graph.layers[index] for index in layers]
    pooled = [feed for layer in chosen if _is_branching(layer) for feed in layer.feeds]
    if not graph.traits.branches_on_values or not pooled:
        return frozenset()
    plain = (feed for feed in outer_feeds(chosen) if layout_of(feed, layouts) == PLAIN)
    return frozenset(way_up(graph, pooled).intersection(feed for feed in plain if _stems_from_an_image(graph, feed)))


def expected_numbers(graph: LayerGraph) -> dict[str, int]:
    """Return the inputs that a model compares with a number, and that number: a sampling rate, for example.

    Other numbers would lead into a branch that real inputs never take.
    """
    found: dict[str, int] = {}
    for layer in graph.layers:
        told = [value for operator in layer.operators if operator.op == _COMPARING for _, value in operator.params]
        numbers = [value for value in told if type(value) is int]
        if len(numbers) != 1 or not layer.feeds:
            continue
        feed = layer.feeds[0]
        while feed.layer is not None and _hands_on(graph.layers[feed.layer]):
            feed = graph.layers[feed.layer].feeds[0]
        if feed.layer is None and type_of(graph, feed).dtype in _WHOLE_NUMBERS:
            found.setdefault(graph.inputs[feed.output].name, numbers[0])
    return found


def _hands_on(layer: Layer) -> bool:
    """True if a layer only passes on the numbers of its first input."""
    return bool(layer.feeds) and all(operator.op in _HAND_ON for operator in layer.operators)


def _is_branching(layer: Layer) -> bool:
    return any(first_part(operator) == _BRANCHING for operator in layer.operators)


def _stems_from_an_image(graph: LayerGraph, feed: Feed) -> bool:
    makers = (graph.layers[it.layer] for it in way_up(graph, [feed]) if it.layer is not None)
    return any(convolves_an_image(layer) for layer in makers)


def narrowed(graph: LayerGraph, layers: Iterable[int]) -> LayerGraph:
    """Return the graph in which large convolutions among the layers read inputs of their own, with few channels."""
    changed, inputs = [*graph.layers], [*graph.inputs]
    for index in layers:
        layer = graph.layers[index]
        channels = _enough_channels(layer)
        if channels is None:
            continue
        data, weight = (wire.number for wire in layer.operators[0].inputs[:2])
        changed[index] = replace(
            layer,
            feeds=_put(layer.feeds, data, Feed(None, len(inputs))),
            data=_put(layer.data, data, _of_channels(layer.data[data], channels)),
            weights=_put(layer.weights, weight, _of_channels(layer.weights[weight], channels)),
        )
        inputs.append(GraphInput(layer.name, changed[index].data[data]))
    return replace(graph, layers=tuple(changed), inputs=tuple(inputs))


def _enough_channels(layer: Layer) -> int | None:
    """Return the channels that are enough for a layer that is one convolution; None for other layers."""
    if len(layer.operators) != 1:
        return None
    read = layer.operators[0].inputs
    if [wire.origin for wire in read[:2]] != [Origin.DATA, Origin.WEIGHT] or read[0] in read[1:]:
        return None
    return fewest_channels(layer.operators[0], *(layer.type_of(wire).shape for wire in read[:2]))


def _of_channels(found: TensorType, channels: int) -> TensorType:
    """Return a type with another number of channels."""
    batch, _, *sizes = found.shape or ()
    return found._replace(shape=(batch, channels, *sizes))


def _put(items: Sequence[Item], place: int, item: Item) -> tuple[Item, ...]:
    return (*items[:place], item, *items[place + 1 :])
