"""The surroundings of a brick in a model that change its speed, as the key of a context.

A context says for each input in which oneDNN layout it arrives, whether it was written past the caches (`streamed`),
whether its values are hard to predict (`varied`), and whether the brick must leave it as it is (`kept`). `;cold` at the
end says that the weights of the brick are in no cache when it runs.
"""

from collections.abc import Collection, Hashable, Mapping, Sequence, Set

from dlbricks_tui.bricks.convolutions import first_part, is_convolution
from dlbricks_tui.bricks.feeding import varied_feeds
from dlbricks_tui.bricks.identity import outer_feeds, times_paid
from dlbricks_tui.bricks.layouts import PLAIN, Layouts, is_computed_in_place, is_needed_after, layout_of
from dlbricks_tui.models.graph import Feed, Layer, LayerGraph, Operator, Origin, bytes_read

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


def context_key(
    graph: LayerGraph,
    layers: Sequence[int],
    layouts: Layouts,
    kept: Collection[Feed] | None = None,
    cold: bool | None = None,
) -> str:
    """Return the classes of a sequence's inputs in order, as in `conv`, `plain+depthwise:kept` or `conv:streamed;cold`.

    Inputs that are kept, and whether the weights are cold, follow from the graph unless they are given.
    """
    feeds = outer_feeds([graph.layers[index] for index in layers])
    varied = varied_feeds(graph, layers, layouts)
    if kept is None:
        kept = kept_feeds(graph, layers, layouts)
    classes = [
        layout_of(feed, layouts)
        + (f":{STREAMED}" if streaming_operator(graph, feed, layouts) else "")
        + (f":{VARIED}" if feed in varied else "")
        + (f":{KEPT}" if feed in kept else "")
        for feed in feeds
    ]
    inputs = "+".join(classes) or NO_INPUTS
    if cold is None:
        cold = is_cold(graph, layers)
    return f"{inputs};{COLD}" if cold else inputs


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
    own_bytes = _own_bytes(graph, layers)
    return own_bytes >= NEAR_BYTES and (own_bytes <= FAR_BYTES or graph.weight_bytes - own_bytes > NEAR_BYTES)


def _own_bytes(graph: LayerGraph, layers: Sequence[int]) -> int:
    """Return the bytes of weights that a sequence reads and that no layer shortly before has read."""
    read = bytes_read([graph.layers[index] for index in layers], times_paid(graph, layers))
    shared = {array: size for array, size in read.items() if array in graph.shared_arrays}
    return sum(read.values()) - sum(shared[array] for array in _read_lately(graph, min(layers), shared))


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
        if _is_sum(operator):
            # A convolution that is fused with a sum reads another input first.
            found += read[1:] if is_convolution(operator) else read
        elif is_computed_in_place(first_part(operator)):
            found += [feed for feed in read if layout_of(feed, layouts) != PLAIN]
    return found


def _is_sum(operator: Operator) -> bool:
    return not _SUMS.isdisjoint(operator.parts or (operator.op,))
