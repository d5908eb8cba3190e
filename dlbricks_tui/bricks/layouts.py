"""The classes of oneDNN layouts in which MXNet keeps tensors, as far as they follow from a model.

A convolution sets a layout, some operators pass on that of their input, all others return the plain one. The layout
itself depends on the processor, but tensors of one class are alike on any. docs/log/bricks.md tells how the classes
were found. MXNet lets an operator write over a tensor that is not needed any more, so this module also knows how long
tensors are needed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeGuard

from dlbricks_tui.bricks.identity import operators_inside
from dlbricks_tui.models.graph import Feed, Layer, LayerGraph, Operator, Origin, ParamValue, Shape, Wire
from dlbricks_tui.models.kinds import Kind, kind_of

PLAIN = "plain"

# The class of each output of each layer.
Layouts = Sequence[Sequence[str]]

# Operators that oneDNN computes in any layout.
_PASS_ON = frozenset(
    {"relu", "sigmoid", "tanh", "softplus", "leaky_relu", "elu", "gelu", "batch_norm", "lrn", "max_pool", "mean_pool"}
    | {"global_max_pool", "global_mean_pool", "concat", "add", "sum", "identity", "mxnet.amp_cast", "mxnet.BlockGrad"}
)
# Operators that MXNet computes itself, in the plain layout. It converts the result back if it writes over its input.
_IN_PLACE_KINDS = (Kind.ELEMENTWISE, Kind.COMBINE, Kind.DROPOUT)
_IN_PLACE = frozenset({"mxnet.LayerNorm", "mxnet.GroupNorm", "mxnet.SoftmaxActivation"})
_NEVER_IN_PLACE = frozenset({"clip", "mxnet.where", "mxnet.zeros_like", "mxnet.ones_like"})

_AFTER_PLAIN = f"{PLAIN}&"
# Separates the classes of several tensors, each of which may decide.
OR = "|"


def output_layouts(graph: LayerGraph) -> tuple[tuple[str, ...], ...]:
    """Return the class of the layout of each output of each layer."""
    if not graph.traits.keeps_onednn_layouts:
        return tuple([(PLAIN,) * len(layer.outputs) for layer in graph.layers])
    layouts: list[tuple[str, ...]] = []
    for layer in graph.layers:
        layouts.append(_Tracing(graph, layer, [layout_of(feed, layouts) for feed in layer.feeds]).results())
    return tuple(layouts)


def layout_of(feed: Feed, layouts: Layouts) -> str:
    """Return the class of a tensor, given those of the layers; inputs of the model are plain."""
    return PLAIN if feed.layer is None else layouts[feed.layer][feed.output]


def layers_before(
    graph: LayerGraph, feeds: Iterable[Feed], layouts: Layouts, varied: Iterable[Feed] = ()
) -> tuple[int, ...]:
    """Return the layers to run first: they give tensors the layouts of the model, and `varied` ones also its values."""
    found = way_up(graph, feeds, lambda feed: layout_of(feed, layouts) != PLAIN) | way_up(graph, varied)
    return tuple(sorted({feed.layer for feed in found if feed.layer is not None}))


def way_up(graph: LayerGraph, feeds: Iterable[Feed], passes: Callable[[Feed], bool] = lambda _: True) -> set[Feed]:
    """Return tensors and those that they are computed from, up to a convolution or to a tensor that does not pass."""
    found: set[Feed] = set()
    waiting = list(feeds)
    while waiting:
        feed = waiting.pop()
        if feed in found or not passes(feed):
            continue
        found.add(feed)
        layer = None if feed.layer is None else graph.layers[feed.layer]
        if layer and not any(is_convolution(operator) for operator in layer.operators):
            waiting += layer.feeds
    return found


def is_computed_in_place(op: str) -> bool:
    """True if MXNet computes an operator without oneDNN and writes over its input where it can."""
    if op in _PASS_ON or op in _NEVER_IN_PLACE:
        return False
    return op in _IN_PLACE or kind_of(op) in _IN_PLACE_KINDS


class _Tracing:
    """The layouts inside of a layer, operator by operator."""

    def __init__(self, graph: LayerGraph, layer: Layer, sources: Sequence[str]) -> None:
        self._graph = graph
        self._layer = layer
        self._sources = sources
        self._made: list[str] = []

    def results(self) -> tuple[str, ...]:
        for number, operator in enumerate(self._layer.operators):
            self._made.append(self._made_by(number, operator))
        return tuple([self._of(wire) for wire in self._layer.results])

    def _made_by(self, number: int, operator: Operator) -> str:
        if is_convolution(operator):
            return layout_set_by(operator, [self._layer.type_of(wire).shape for wire in operator.inputs[:2]])
        op = first_part(operator)
        layouts = [self._of(wire) for wire in operator.inputs]
        if all(layout == PLAIN for layout in layouts):
            return PLAIN
        if op in _PASS_ON:
            shape = self._layer.type_of(operator.inputs[0]).shape
            if _takes_a_mean_beyond_the_edge(operator, shape):
                return PLAIN
            if op == "sum":
                # oneDNN adds any number of tensors only if none is plain.
                each = dict.fromkeys(each for layout in layouts for each in layout.split(OR))
                return PLAIN if PLAIN in layouts else OR.join(each)
            over = self._overwritten(number, operator) if op == "add" else None
            return _joined(layouts) if over is None else self._of(over)
        if is_computed_in_place(op):
            over = self._overwritten(number, operator)
            return PLAIN if over is None else self._of(over)
        return PLAIN

    def _overwritten(self, number: int, operator: Operator) -> Wire | None:
        """Return the first input of the type of the result that is not needed any more."""
        for wire in operator.inputs:
            alike = operator.outputs[:1] == (self._layer.type_of(wire),)
            if alike and may_be_overwritten(self._graph, self._layer, number, wire):
                return wire
        return None

    def _of(self, wire: Wire) -> str:
        if wire.origin is Origin.OPERATOR:
            return self._made[wire.number]
        return self._sources[wire.number] if wire.origin is Origin.DATA else PLAIN


def _joined(layouts: Sequence[str]) -> str:
    """Return the class of a concatenation or sum: the first input decides, or the next one if that is plain."""
    if layouts[0] != PLAIN:
        return layouts[0]
    second = next(layout for layout in layouts if layout != PLAIN)
    return second if second.startswith(_AFTER_PLAIN) else f"{_AFTER_PLAIN}{second}"


def _takes_a_mean_beyond_the_edge(operator: Operator, shape: Shape | None) -> bool:
    """True if windows reach beyond the padded image: oneDNN does not compute means over fewer values there."""
    params = dict(operator.params)
    kernel = params.get("kernel")
    if operator.op != "mean_pool" or params.get("rounding") != "up" or shape is None or not isinstance(kernel, tuple):
        return False
    axes = len(kernel)
    windows, steps = _numbers(kernel, axes), _numbers(params.get("stride", 1), axes)
    pads = _numbers(params.get("pads", 0), 2 * axes)
    return any((shape[2 + axis] + pads[axis] + pads[axes + axis] - windows[axis]) % steps[axis] for axis in range(axes))


def _numbers(value: ParamValue, count: int) -> list[int]:
    """Return `count` numbers; a single one counts for all."""
    items = value if isinstance(value, tuple) else (value,) * count
    return [item for item in items if isinstance(item, int)]


# Operators whose result is the very tensor that they read.
_SAME_TENSOR = frozenset({"identity", "mxnet.BlockGrad"})


def is_needed_after(graph: LayerGraph, feed: Feed, reader: int) -> bool:
    """True if a tensor is needed after a reader; inputs of the model always are."""
    while feed.layer is not None and _returns_its_input(graph.layers[feed.layer]):
        feed = graph.layers[feed.layer].feeds[0]
    # All names of the same tensor.
    names = [feed]
    for name in names:
        if name.layer is None or name in graph.heads:
            return True
        for index in graph.successors[name.layer]:
            if name not in graph.layers[index].feeds:
                continue
            if index > reader:
                return True
            if _returns_its_input(graph.layers[index]):
                names.append(Feed(index, 0))
    return False


def may_be_overwritten(graph: LayerGraph, layer: Layer, number: int, wire: Wire) -> bool:
    """True if the operator of that number in a layer is the last one that needs its input."""
    if wire.origin is Origin.WEIGHT or wire in layer.results:
        return False
    if any(wire in operator.inputs for operator in layer.operators[number + 1 :]):
        return False
    return wire.origin is Origin.OPERATOR or not is_needed_after(graph, layer.feeds[wire.number], layer.index)


def _returns_its_input(layer: Layer) -> bool:
    return len(layer.operators) == 1 and layer.operators[0].op in _SAME_TENSOR and bool(layer.feeds)


# The operators that set a layout, and its class if no shapes are known.
_SET = {"conv": "conv", "conv_transpose": "deconv"}

# The blocks into which oneDNN groups channels. At most this few channels, as of an image, are read in the plain layout.
_LARGE_BLOCK, _SMALL_BLOCK, _FEW = 16, 8, 4
# The largest padding that its special kernels support on processors without AVX-512.
_FAR = 3

# Separates a layout class from its details, as in `conv~far`.
MARK = "~"


def first_part(operator: Operator) -> str:
    """Return the operator that decides about a fused one: the first in it; the others change its result in place."""
    return operator.parts[0] if operator.parts else operator.op


def is_convolution(operator: Operator) -> bool:
    """True if an operator sets a layout, whatever it is fused with."""
    return first_part(operator) in _SET


def convolves_an_image(layer: Layer) -> bool:
    """True if a layer convolves a tensor with as few channels as an image."""
    read = [wire for operator in layer.operators if is_convolution(operator) for wire in operator.inputs[:1]]
    shapes = [layer.type_of(wire).shape for wire in read]
    return any(_has_channels(shape) and shape[1] <= _FEW for shape in shapes)


def layout_set_by(operator: Operator, read: Sequence[Shape | None]) -> str:
    """Return the class of the result of a convolution that reads data and a weight of these shapes."""
    op = first_part(operator)
    data, weight = read if len(read) > 1 else (None, None)
    # A model file or a framework may give no types.
    result = operator.outputs[0].shape if operator.outputs else None
    if not (_has_channels(data) and _has_channels(weight) and _has_channels(result)):
        return _SET[op]
    # The parameters of the convolution, which may be inside of a fused operator.
    params: Mapping[str, Any] = dict(operator.params)
    if operator.op not in _SET:
        inside = (found for graph in operator.inner for found in operators_inside(graph))
        params = next((params for part, params in inside if part in _SET), {})
    pads = params.get("pads", 0)
    is_far = any(pad > _FAR for pad in (pads if isinstance(pads, Sequence) else [pads]) if isinstance(pad, int))
    return f"{_by_sizes(op, data, weight, result)}{f'{MARK}far' if is_far else ''}"


def fewest_channels(operator: Operator, data: Shape | None, weight: Shape | None) -> int | None:
    """Return the fewest input channels with which a convolution gives the same layout; None for other operators.

    The class of an ungrouped convolution of more than one pixel does not depend on how many whole blocks it reads.
    """
    if first_part(operator) != "conv" or not (_has_channels(data) and _has_channels(weight)):
        return None
    read = weight[1]
    one_by_one = all(size == 1 for size in weight[2:])
    if read != data[1] or one_by_one or read < 2 * _LARGE_BLOCK:
        return None
    return _LARGE_BLOCK + read % _LARGE_BLOCK


def _has_channels(shape: Shape | None) -> TypeGuard[Shape]:
    """Return whether a shape is known, and that of a tensor that can be convolved: a damaged file may give others."""
    return shape is not None and len(shape) > 1


def _by_sizes(op: str, data: Shape, weight: Shape, result: Shape) -> str:
    put_out, depth = _partly(result[1], "/"), weight[1]
    if op == "conv_transpose":
        return f"{_SET[op]}{put_out}"
    if depth < data[1]:
        return f"{'depthwise' if depth == 1 else f'grouped{depth}'}{put_out}"
    if any(size > 1 for size in weight[2:]):
        return f"{_SET[op]}{put_out}{_partly(depth, MARK) if depth > _FEW else ''}"
    # oneDNN chooses kernels of different layouts by the sizes; the channels read count to a power of two only.
    channels = 1 << (data[1].bit_length() - 1)
    return f"conv1x1:{_sizes(channels, data)}:{_sizes(result[1], result)}{_partly(data[1], MARK)}"


def _partly(channels: int, sign: str) -> str:
    """Return the size of the blocks that these channels fill; empty for large blocks."""
    if channels % _LARGE_BLOCK == 0:
        return ""
    return f"{sign}{_SMALL_BLOCK if channels % _SMALL_BLOCK == 0 else 1}"


def _sizes(channels: int, shape: Shape) -> str:
    return "x".join(str(size) for size in (channels, *shape[2:]))
