"""The classes of oneDNN layouts in which MXNet keeps tensors, as far as they follow from a model.

A convolution sets a layout, some operators pass on that of their input, all others return the plain one. The layout
itself depends on the processor, but tensors of one class are alike on any. docs/log/bricks.md tells how the classes
were found. MXNet lets an operator write over a tensor that is not needed any more, so this module also knows how long
tensors are needed.
"""

from collections.abc import Callable, Iterable, Sequence

from dlbricks_tui.bricks.convolutions import first_part, is_convolution, layout_set_by
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

    def has_a_layout(feed: Feed) -> bool:
        return layout_of(feed, layouts) != PLAIN

    found = way_up(graph, feeds, has_a_layout) | way_up(graph, varied)
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
                return _summed(layouts)
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


def _summed(layouts: Sequence[str]) -> str:
    """Return the class of a sum of any number of tensors: oneDNN adds them only if none is plain."""
    if PLAIN in layouts:
        return PLAIN
    return OR.join(dict.fromkeys(each for layout in layouts for each in layout.split(OR)))


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
