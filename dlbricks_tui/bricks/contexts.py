"""The surroundings of a brick in a model that change its speed, as the key of a context.

A context says for each input in which oneDNN layout it arrives, whether it was written past the caches (`streamed`),
whether its values are hard to predict (`varied`), and whether the brick must leave it as it is (`kept`). `;cold` at the
end says that the weights of the brick are in no cache when it runs.

Some layers run once in front of a brick, so that its inputs have the layouts and values of the model. Values are made
up such that the channels inside of a model are nearly alike, and so are the inputs of bricks. Only a convolution of an
image adds up so few values that the channels of its result differ. Max pooling in plain arrays branches on the larger
of two values, and its branches are predicted well where channels are alike.

Large convolutions in front of a brick read a few channels only: running them once would take longer than all timing of
the brick, and the class of the layout hardly depends on how many channels a convolution reads.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import TypeVar

from dlbricks_tui.bricks.identity import outer_feeds, times_paid
from dlbricks_tui.bricks.layouts import (
    PLAIN,
    Layouts,
    convolves_an_image,
    fewest_channels,
    first_part,
    is_computed_in_place,
    is_convolution,
    is_needed_after,
    layers_before,
    layout_of,
    way_up,
)
from dlbricks_tui.models.graph import (
    Feed,
    GraphInput,
    Layer,
    LayerGraph,
    Operator,
    Origin,
    TensorType,
    bytes_read,
    type_of,
)

NO_INPUTS = "none"
KEPT = "kept"
STREAMED = "streamed"
VARIED = "varied"
COLD = "cold"

MEBIBYTE = 1 << 20
# The size of a core's own cache, and the part of the shared cache that other guests of the machine leave to weights.
# Hosts differ in both, but a store holds results of many hosts, so that contexts must not depend on the host.
# docs/log/bricks.md has the measurements.
NEAR_BYTES, FAR_BYTES = MEBIBYTE, 6 * MEBIBYTE

# The operator that oneDNN writes to memory directly, in its own layouts: the next reader finds the result in no cache.
_STREAMING = "batch_norm"
_SUMS = frozenset({"add", "sum"})


def context_key(graph: LayerGraph, layers: Sequence[int], layouts: Layouts) -> str:
    """Return the classes of a sequence's inputs, as in `conv`, `plain+depthwise:kept` or `conv:streamed;cold`."""
    feeds = outer_feeds([graph.layers[index] for index in layers])
    varied = varied_feeds(graph, layers, layouts)
    kept = kept_feeds(graph, layers, layouts)
    classes = [
        layout_of(feed, layouts)
        + (f":{STREAMED}" if streaming_operator(graph, feed, layouts) else "")
        + (f":{VARIED}" if feed in varied else "")
        + (f":{KEPT}" if feed in kept else "")
        for feed in feeds
    ]
    inputs = "+".join(classes) or NO_INPUTS
    return f"{inputs};{COLD}" if is_cold(graph, layers) else inputs


def is_cold_in(context: str) -> bool:
    """True if the weights of a brick in this context are in no cache."""
    return context.endswith(f";{COLD}")


def is_cold(graph: LayerGraph, layers: Sequence[int]) -> bool:
    """True if a sequence reads its weights from memory in the model, and from a cache when it is repeated alone.

    That is so where the weights of the whole model exceed a cache, unless the model reads hardly any other weights.
    Weights that a layer shortly before has read are never cold.
    """
    if graph.weight_bytes <= FAR_BYTES:
        return False
    read = bytes_read([graph.layers[index] for index in layers], times_paid(graph, layers))
    shared = {array: size for array, size in read.items() if array in graph.shared_arrays}
    own_bytes = sum(read.values()) - sum(shared[array] for array in _read_lately(graph, min(layers), shared))
    return own_bytes >= NEAR_BYTES and (own_bytes <= FAR_BYTES or graph.weight_bytes - own_bytes > NEAR_BYTES)


def _read_lately(graph: LayerGraph, first: int, wanted: Mapping[Hashable, int]) -> Set[Hashable]:
    """Return the wanted arrays that were read, in full, before more than a cache of other weights was read.

    One inference follows another: the last layers come before the first one.
    """
    found: set[Hashable] = set()
    read: dict[Hashable, int] = {}
    read_bytes = 0
    for distance in range(1, len(graph.layers)):
        if len(found) == len(wanted):
            break
        for array, size in bytes_read([graph.layers[first - distance]]).items():
            read_bytes += max(0, size - read.get(array, 0))
            read[array] = max(size, read.get(array, 0))
            if read_bytes > FAR_BYTES:
                return found
            if array in wanted and size >= wanted[array]:
                found.add(array)
    return found


def streaming_operator(graph: LayerGraph, feed: Feed, layouts: Layouts) -> Operator | None:
    """Return the operator that has written a tensor past the caches, if one has."""
    if feed.layer is None or layout_of(feed, layouts) == PLAIN:
        return None
    layer = graph.layers[feed.layer]
    wire = layer.results[feed.output]
    if wire.origin is not Origin.OPERATOR or wire.output:
        return None
    operator = layer.operators[wire.number]
    # An operator that gets its parameters from other layers cannot be copied by itself.
    learned = all(it.origin is Origin.WEIGHT for it in operator.inputs[1:])
    return operator if operator.op == _STREAMING and learned else None


def kept_feeds(graph: LayerGraph, layers: Sequence[int], layouts: Layouts) -> frozenset[Feed]:
    """Return the inputs that a sequence could write over if the model did not need them afterwards."""
    if not graph.traits.writes_in_place:
        return frozenset()
    found = ((feed, index) for index in layers for feed in _writable(graph.layers[index], layouts))
    return frozenset(feed for feed, index in found if is_needed_after(graph, feed, index))


def _writable(layer: Layer, layouts: Layouts) -> list[Feed]:
    """Return the inputs of a layer that change its computation if they may be written over."""
    found = []
    for operator in layer.operators:
        read = [layer.feeds[wire.number] for wire in operator.inputs if wire.origin is Origin.DATA]
        if not _SUMS.isdisjoint(operator.parts or (operator.op,)):
            # A convolution that is fused with a sum reads another input first.
            found += read[1:] if is_convolution(operator) else read
        elif is_computed_in_place(first_part(operator)):
            found += [feed for feed in read if layout_of(feed, layouts) != PLAIN]
    return found


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
    branching = [layer for layer in chosen if any(first_part(it) == _BRANCHING for it in layer.operators)]
    pooled = [feed for layer in branching for feed in layer.feeds]
    if not graph.traits.branches_on_values or not pooled:
        return frozenset()
    from_images = []
    for feed in outer_feeds(chosen):
        makers = {it.layer for it in way_up(graph, [feed])} if layout_of(feed, layouts) == PLAIN else set()
        if any(maker is not None and convolves_an_image(graph.layers[maker]) for maker in makers):
            from_images.append(feed)
    return frozenset(way_up(graph, pooled).intersection(from_images))


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
        while feed.layer is not None:
            before = graph.layers[feed.layer]
            if not before.feeds or any(operator.op not in _HAND_ON for operator in before.operators):
                break
            feed = before.feeds[0]
        if feed.layer is None and type_of(graph, feed).dtype in _WHOLE_NUMBERS:
            found.setdefault(graph.inputs[feed.output].name, numbers[0])
    return found


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
