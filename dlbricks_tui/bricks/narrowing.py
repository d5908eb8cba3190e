"""Convolutions that read few channels in the place of those that read many, where only their layout is asked for.

To load a brick, what feeds it runs once. Behind large convolutions that took longer than all that was timed of the
brick. A layout hardly depends on how many channels a convolution reads: its class is the same with a few of them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from dlbricks_tui.bricks.convolutions import fewest_channels
from dlbricks_tui.models.graph import Feed, GraphInput, Layer, LayerGraph, Origin, TensorType

Item = TypeVar("Item")


def narrowed(graph: LayerGraph, layers: Iterable[int]) -> LayerGraph:
    """The graph in which those of the layers that are large convolutions read inputs of their own, of few channels."""
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
    """How many are enough for a layer that is one convolution, of what nothing else in it reads."""
    if len(layer.operators) != 1:
        return None
    read = layer.operators[0].inputs
    if [wire.origin for wire in read[:2]] != [Origin.DATA, Origin.WEIGHT] or read[0] in read[1:]:
        return None
    return fewest_channels(layer.operators[0], *(layer.type_of(wire).shape for wire in read[:2]))


def _of_channels(found: TensorType, channels: int) -> TensorType:
    """What is read, or a weight, with so many channels."""
    batch, _, *sizes = found.shape or ()
    return found._replace(shape=(batch, channels, *sizes))


def _put(items: Sequence[Item], place: int, item: Item) -> tuple[Item, ...]:
    return (*items[:place], item, *items[place + 1 :])
