"""What a brick meets where it stands in a model and that changes its speed: in which layouts its inputs arrive.

Inside MXNet oneDNN keeps tensors in layouts of its own. A convolution sets one, some operators pass on what they get,
all others give back the plain one. A brick that is fed another layout than in the model pays for a conversion that the
model does not pay, or runs another kernel. docs/measuring.md tells how the classes were found.
"""

from collections.abc import Iterator, Sequence

from dlbricks_tui.bricks.identity import outer_feeds
from dlbricks_tui.models.graph import Feed, Layer, LayerGraph, Operator, Origin, Shape, Wire

PLAIN = "plain"
NO_INPUTS = "none"
# Said of the tensor to which a fused convolution adds its own: where it is needed afterwards it has to be copied first.
KEPT = "kept"

# For each layer the class of the layout of each of its outputs.
Layouts = Sequence[Sequence[str]]

_SET = {"conv": "conv", "conv_transpose": "deconv"}
_PASS_ON = frozenset(
    {"relu", "sigmoid", "tanh", "softplus", "leaky_relu", "elu", "gelu", "batch_norm", "lrn", "max_pool", "mean_pool"}
    | {"global_max_pool", "global_mean_pool", "concat", "add", "sum", "identity"}
)
_ADD = frozenset({"add", "sum"})
# The results of these are the very tensors that they read.
_SAME_TENSOR = frozenset({"identity"})

# The blocks in which oneDNN counts channels.
_LARGE_BLOCK, _SMALL_BLOCK = 16, 8


def output_layouts(graph: LayerGraph) -> tuple[tuple[str, ...], ...]:
    """For each layer the class of the layout in which each of its outputs leaves it."""
    layouts: list[tuple[str, ...]] = []
    for layer in graph.layers:
        sources = [layout_of(feed, layouts) for feed in layer.feeds]
        made: list[str] = []
        for operator in layer.operators:
            read = [_layout_of_wire(wire, sources, made) for wire in operator.inputs]
            made.append(_output_layout(layer, operator, read))
        layouts.append(tuple([_layout_of_wire(wire, sources, made) for wire in layer.results]))
    return tuple(layouts)


def layout_of(feed: Feed, layouts: Layouts) -> str:
    """The class of one data input, given those of the layers; what enters the model is plain."""
    return PLAIN if feed.layer is None else layouts[feed.layer][feed.output]


def context_key(graph: LayerGraph, layers: Sequence[int], layouts: Layouts) -> str:
    """The classes of a sequence's data inputs in order, such as `conv` or `plain+depthwise`."""
    kept = {feed for index in layers for feed in _kept_summands(graph, graph.layers[index])}
    feeds = outer_feeds([graph.layers[index] for index in layers])
    classes = [layout_of(feed, layouts) + (f":{KEPT}" if feed in kept else "") for feed in feeds]
    return "+".join(classes) or NO_INPUTS


def layers_behind(graph: LayerGraph, feeds: Sequence[Feed], layouts: Layouts) -> tuple[int, ...]:
    """The layers that must run so that these tensors have their layouts: each way up to what sets a layout."""
    found: set[int] = set()
    waiting = [feed for feed in feeds if layout_of(feed, layouts) != PLAIN]
    while waiting:
        index = waiting.pop().layer
        if index is None or index in found:
            continue
        found.add(index)
        layer = graph.layers[index]
        if not any(_first_part(operator) in _SET for operator in layer.operators):
            waiting += [feed for feed in layer.feeds if layout_of(feed, layouts) != PLAIN]
    return tuple(sorted(found))


def _layout_of_wire(wire: Wire, sources: Sequence[str], made: Sequence[str]) -> str:
    if wire.origin is Origin.OPERATOR:
        return made[wire.number]
    return sources[wire.number] if wire.origin is Origin.DATA else PLAIN


def _output_layout(layer: Layer, operator: Operator, read: Sequence[str]) -> str:
    first = _first_part(operator)
    if first in _SET:
        return _set_by(first, [_shape_of(layer, wire) for wire in operator.inputs[:2]], operator.outputs[0].shape)
    if first not in _PASS_ON or all(layout == PLAIN for layout in read):
        return PLAIN
    # Of several the first decides; if it is plain, the next one has a say.
    return read[0] if read[0] != PLAIN else f"{PLAIN}&{next(layout for layout in read if layout != PLAIN)}"


def _first_part(operator: Operator) -> str:
    """A fused operator does what its first part does, then works in place."""
    return operator.parts[0] if operator.parts else operator.op


def _set_by(op: str, read: Sequence[Shape | None], result: Shape | None) -> str:
    """The class of the layout in which a convolution puts out what it has computed from data and weight."""
    data, weight = read if len(read) > 1 else (None, None)
    if data is None or weight is None or result is None:
        return _SET[op]
    depth = weight[1]
    if op == "conv_transpose":
        kind = _SET[op]
    elif depth < data[1]:
        kind = "depthwise" if depth == 1 else f"grouped{depth}"
    elif all(size == 1 for size in weight[2:]):
        # By these sizes oneDNN chooses between two kernels that differ in layout.
        return f"conv1x1:{_sizes(data)}:{_sizes(result)}"
    else:
        kind = _SET[op]
    if result[1] % _LARGE_BLOCK == 0:
        return kind
    return f"{kind}/{_SMALL_BLOCK if result[1] % _SMALL_BLOCK == 0 else 1}"


def _sizes(shape: Shape) -> str:
    return "x".join(str(size) for size in shape[1:])


def _shape_of(layer: Layer, wire: Wire) -> Shape | None:
    if wire.origin is Origin.OPERATOR:
        return layer.operators[wire.number].outputs[wire.output].shape
    return (layer.data if wire.origin is Origin.DATA else layer.weights)[wire.number].shape


def _kept_summands(graph: LayerGraph, layer: Layer) -> Iterator[Feed]:
    for operator in layer.operators:
        if operator.inner and _first_part(operator) in _SET and not _ADD.isdisjoint(operator.parts):
            read = [layer.feeds[wire.number] for wire in operator.inputs if wire.origin is Origin.DATA]
            # The convolution itself reads the first one.
            yield from (feed for feed in read[1:] if _is_needed_after(graph, feed, layer.index))


def _is_needed_after(graph: LayerGraph, feed: Feed, reader: int) -> bool:
    while feed.layer is not None and _is_same_tensor(graph.layers[feed.layer]):
        (feed,) = graph.layers[feed.layer].feeds
    names = [feed]
    for name in names:
        if name.layer is None or name in graph.heads:
            return True
        for index in graph.successors[name.layer]:
            if name not in graph.layers[index].feeds:
                continue
            if index > reader:
                return True
            if _is_same_tensor(graph.layers[index]):
                names.append(Feed(index, 0))
    return False


def _is_same_tensor(layer: Layer) -> bool:
    return len(layer.operators) == 1 and layer.operators[0].op in _SAME_TENSOR
