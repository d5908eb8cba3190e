"""What a brick meets where it stands in a model and that changes its speed: the layout of its inputs.

oneDNN keeps tensors in blocked layouts inside MXNet. A convolution sets such a layout, some operators pass on what
they get, all others give back a plain one. A brick fed from a plain tensor pays a conversion, or runs another kernel.
"""

from collections.abc import Sequence
from enum import Enum

from dlbricks_tui.bricks.identity import outer_feeds
from dlbricks_tui.models.graph import Feed, Layer, LayerGraph


class Layout(str, Enum):
    """The class of layouts in which a tensor arrives."""

    PLAIN = "plain"
    BLOCKED = "blocked"


_SET_BLOCKED = frozenset({"conv", "conv_transpose"})
_PASS_ON = frozenset(
    {"relu", "sigmoid", "tanh", "softplus", "leaky_relu", "elu", "gelu", "batch_norm", "lrn", "max_pool", "mean_pool"}
    | {"global_max_pool", "global_mean_pool", "concat", "add", "sum", "dropout", "identity"}
)


def output_layouts(graph: LayerGraph) -> tuple[Layout, ...]:
    """For each layer the layout in which its outputs leave it."""
    layouts: list[Layout] = []
    for layer in graph.layers:
        blocked = any(layout_of(feed, layouts) is Layout.BLOCKED for feed in layer.feeds)
        for operator in layer.operators:
            # A fused operator does what its first part does, then works in place.
            first = operator.parts[0] if operator.parts else operator.op
            blocked = first in _SET_BLOCKED or (blocked and first in _PASS_ON)
        layouts.append(Layout.BLOCKED if blocked and layer.operators else Layout.PLAIN)
    return tuple(layouts)


def layout_of(feed: Feed, layouts: Sequence[Layout]) -> Layout:
    """The layout of one data input, given those of the layers; what enters the model is plain."""
    return Layout.PLAIN if feed.layer is None else layouts[feed.layer]


def context_key(graph: LayerGraph, layers: Sequence[int], layouts: Sequence[Layout]) -> str:
    """The layouts of a sequence's data inputs in order, such as `blocked` or `blocked+plain`."""
    feeds = outer_feeds([graph.layers[index] for index in layers])
    return "+".join(layout_of(feed, layouts).value for feed in feeds) or "none"


def layers_behind(graph: LayerGraph, feeds: Sequence[Feed], layouts: Sequence[Layout]) -> tuple[int, ...]:
    """The layers that must run so that these tensors have their layouts: each way up to what sets a layout."""
    found: set[int] = set()
    waiting = [feed for feed in feeds if layout_of(feed, layouts) is Layout.BLOCKED]
    while waiting:
        feed = waiting.pop()
        if feed.layer is None or feed.layer in found:
            continue
        found.add(feed.layer)
        layer = graph.layers[feed.layer]
        if not _sets_blocked(layer):
            waiting += [source for source in layer.feeds if layout_of(source, layouts) is Layout.BLOCKED]
    return tuple(sorted(found))


def _sets_blocked(layer: Layer) -> bool:
    return any((operator.parts[0] if operator.parts else operator.op) in _SET_BLOCKED for operator in layer.operators)
