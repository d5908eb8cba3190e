"""Models at a batch size: the memory that they need, and layers that contradict the batch size."""

from collections.abc import Iterator
from math import prod

from dlbricks_tui.models.errors import InconsistentModelError, ModelError
from dlbricks_tui.models.graph import Feed, LayerGraph, type_of

_MEBIBYTE, _GIBIBYTE = 1 << 20, 1 << 30


def refuse_too_large_batch(graph: LayerGraph, batch_size: int, most_bytes: int) -> None:
    """Raise ModelError if a model at this batch size needs more memory; `graph` is the model at any batch size."""
    needed = forecast_bytes(graph, batch_size)
    if needed > most_bytes:
        raise ModelError(
            f"{graph.name} at batch size {batch_size:,} needs about {_size(needed)} of memory, and {_size(most_bytes)} "
            "are allowed: give a smaller --batch"
        )


def refuse_fixed_reshapes(graph: LayerGraph) -> None:
    """Raise InconsistentModelError if a layer reshapes to other sizes than it reads, which are of another batch."""
    for layer in graph.layers:
        shapes = [tensor.shape for tensor in (*layer.data[:1], *layer.outputs)]
        if layer.op == "reshape" and None not in shapes and len({prod(shape or ()) for shape in shapes}) > 1:
            raise InconsistentModelError(f"{graph.name}: layer {layer.name[:80]!r} reshapes to fixed sizes")


def forecast_bytes(graph: LayerGraph, batch_size: int) -> int:
    """Return the least memory that a model needs at a batch size: its weights, and the tensors that exist at once."""
    tensors = max(_bytes_at_once(graph), default=0)
    return graph.weight_bytes + tensors * batch_size // max(1, graph.batch_size)


def _bytes_at_once(graph: LayerGraph) -> Iterator[int]:
    """Yield for each layer the bytes of all tensors that exist while it runs."""
    last_read = {feed: layer.index for layer in graph.layers for feed in layer.feeds}
    # Outputs of the model stay until its end.
    last_read |= dict.fromkeys(graph.heads, len(graph.layers))
    inputs = [Feed(None, number) for number in range(len(graph.inputs))]
    alive = {feed: type_of(graph, feed).size_bytes for feed in inputs}
    total = sum(alive.values())
    for layer in graph.layers:
        made = {Feed(layer.index, number): tensor.size_bytes for number, tensor in enumerate(layer.outputs)}
        alive |= made
        total += sum(made.values())
        yield total
        over = [feed for feed in {*layer.feeds, *made} if last_read.get(feed, layer.index) <= layer.index]
        total -= sum(alive.pop(feed, 0) for feed in over)


def _size(memory_bytes: int) -> str:
    if memory_bytes < _GIBIBYTE:
        return f"{memory_bytes / _MEBIBYTE:,.0f} MiB"
    return f"{memory_bytes / _GIBIBYTE:,.1f} GiB"
