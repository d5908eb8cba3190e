"""Which tensors a brick must be fed as they are in its model, as their values change its speed.

Values are made up such that the channels inside of a model are nearly alike, and so are those that bricks are fed. Only
a convolution of an image adds up so few values that the channels it makes differ. Max pooling in plain arrays branches
on which of two values is larger, and learns in one channel what to expect of the next.
"""

from collections.abc import Sequence

from dlbricks_tui.bricks.convolutions import convolves_an_image, first_part
from dlbricks_tui.bricks.identity import outer_feeds
from dlbricks_tui.bricks.layouts import PLAIN, Layouts, layers_behind, layout_of, way_up
from dlbricks_tui.models.graph import Feed, Layer, LayerGraph
from dlbricks_tui.runtime.runtime import Format

_BRANCHING = "max_pool"


def feeding_layers(graph: LayerGraph, layers: Sequence[int], layouts: Layouts) -> tuple[int, ...]:
    """The layers that must run so that a sequence is fed what it is fed in its model."""
    feeds = outer_feeds([graph.layers[index] for index in layers])
    return layers_behind(graph, feeds, layouts, varied_feeds(graph, layers, layouts))


def varied_feeds(graph: LayerGraph, layers: Sequence[int], layouts: Layouts) -> frozenset[Feed]:
    """The plain tensors that a sequence takes the largest values of, and that stem from a convolution of an image."""
    chosen = [graph.layers[index] for index in layers]
    pooled = [feed for layer in chosen if _is_branching(layer) for feed in layer.feeds]
    if graph.format is Format.ONNX or not pooled:
        return frozenset()
    plain = (feed for feed in outer_feeds(chosen) if layout_of(feed, layouts) == PLAIN)
    return frozenset(way_up(graph, pooled).intersection(feed for feed in plain if _stems_from_an_image(graph, feed)))


def _is_branching(layer: Layer) -> bool:
    return any(first_part(operator) == _BRANCHING for operator in layer.operators)


def _stems_from_an_image(graph: LayerGraph, feed: Feed) -> bool:
    makers = (graph.layers[it.layer] for it in way_up(graph, [feed]) if it.layer is not None)
    return any(convolves_an_image(layer) for layer in makers)
