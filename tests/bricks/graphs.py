"""Layer graphs made by hand and by hypothesis."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st

from dlbricks_tui.models.graph import (
    Feed,
    GraphInput,
    Layer,
    LayerGraph,
    Level,
    NativeNode,
    Operator,
    Origin,
    TensorType,
    Wire,
)
from dlbricks_tui.models.kinds import Kind

KINDS: Mapping[str, Kind] = {
    "conv": Kind.CONVOLUTION,
    "relu": Kind.ELEMENTWISE,
    "pool": Kind.POOLING,
    "add": Kind.COMBINE,
    "sub": Kind.COMBINE,
    "concat": Kind.CONCAT,
    "split": Kind.SLICE,
    "constant": Kind.CONSTANT,
}
UNARY = ("conv", "relu", "pool", "split")
JOINS = ("add", "sub", "concat")
WIDTHS = (8, 16)
# More than the recursion limit of Python.
MANY_LAYERS = 1_600


@dataclass(frozen=True)
class Spec:
    """One layer to build: its op and what it reads (a layer with an output, or None for the graph input)."""

    op: str
    feeds: tuple[Feed, ...] = ()
    width: int = 8
    times: int = 1


def after(*layers: int) -> tuple[Feed, ...]:
    """The first outputs of some layers."""
    return tuple(Feed(layer, 0) for layer in layers)


DATA = (Feed(None, 0),)


def weighing(graph: LayerGraph, layer: int, mebibytes: int) -> LayerGraph:
    """The graph with one layer that has so many weights."""
    weights = (TensorType((mebibytes, 256, 1024)),)
    layers = [replace(it, weights=weights) if it.index == layer else it for it in graph.layers]
    return replace(graph, layers=tuple(layers))


def of_weights(*mebibytes: int, shared: Collection[int] = ()) -> LayerGraph:
    """Layers one after another that have so many weights; some share theirs."""
    graph = chain(*["conv" for _ in mebibytes])
    for layer, size in enumerate(mebibytes):
        graph = weighing(graph, layer, size)
    layers = [replace(it, arrays=(-1 if it.index in shared else it.index,)) for it in graph.layers]
    return replace(graph, layers=tuple(layers))


def built(specs: Sequence[Spec], names: Callable[[int], str] = "layer{}".format) -> LayerGraph:
    """The graph of the layers in their order; every layer but a reader's own inputs ends up a head."""
    layers = [_layer(index, spec, names(index)) for index, spec in enumerate(specs)]
    inputs = {feed.output for spec in specs for feed in spec.feeds if feed.layer is None}
    read = {feed for spec in specs for feed in spec.feeds}
    return LayerGraph(
        name="generated",
        level=Level.WRITTEN,
        layers=tuple(layers),
        inputs=tuple(GraphInput(f"data{number}", TensorType((1, 8))) for number in range(max(inputs, default=-1) + 1)),
        heads=tuple(Feed(index, 0) for index in range(len(specs)) if Feed(index, 0) not in read),
    )


def _layer(index: int, spec: Spec, name: str) -> Layer:
    tensor = TensorType((1, spec.width))
    outputs = (tensor, tensor) if spec.op == "split" else (tensor,)
    constant = spec.op == "constant"
    # A tensor that is read twice is one feed.
    feeds = tuple(dict.fromkeys(spec.feeds))
    operator = Operator(
        op=spec.op,
        params=(("width", spec.width),),
        inputs=tuple(Wire(Origin.DATA, feeds.index(feed)) for feed in spec.feeds),
        outputs=outputs,
        native=NativeNode(spec.op),
    )
    return Layer(
        index=index,
        name=name,
        op=spec.op,
        kind=KINDS[spec.op],
        operators=() if constant else (operator,),
        feeds=feeds,
        data=tuple(TensorType((1, 8)) for _ in feeds),
        weights=(tensor,) if constant or spec.op == "conv" else (),
        results=tuple(Wire(Origin.WEIGHT if constant else Origin.OPERATOR, 0, n) for n in range(len(outputs))),
        outputs=outputs,
        times=spec.times,
    )


def wired(text: str) -> LayerGraph:
    """The layers of a text such as `split relu:0 add:0,1`: each with those that it reads, or else the graph input.

    `pool:i1` reads the second input, and a constant reads nothing.
    """
    specs = []
    for word in text.split():
        op, _, sources = word.partition(":")
        named = sources.split(",") if sources else ["i0"] if op != "constant" else []
        feeds = [Feed(None, int(it[1:])) if it[0] == "i" else Feed(int(it), 0) for it in named]
        specs.append(Spec(op, tuple(feeds)))
    return built(specs)


def chain(*ops: str) -> LayerGraph:
    """Layers one after another, the first fed from the graph input."""
    return built([Spec(op, after(index - 1) if index else DATA) for index, op in enumerate(ops)])


def rewritten(graph: LayerGraph, order: Sequence[int], names: Callable[[int], str] = "other{}".format) -> LayerGraph:
    """The same model from a file that lists its layers in another topological order, under other names."""
    place = {layer: index for index, layer in enumerate(order)}
    moved = _moved(graph, place)
    layers = [replace(moved.layers[layer], name=names(place[layer])) for layer in order]
    return replace(moved, layers=tuple(layers))


def side_by_side(one: LayerGraph, other: LayerGraph) -> LayerGraph:
    """Both as one model; no layer reads one of the other graph."""
    count = len(one.layers)
    behind = _moved(other, {layer.index: layer.index + count for layer in other.layers})
    return replace(one, layers=(*one.layers, *behind.layers), heads=(*one.heads, *behind.heads))


def _moved(graph: LayerGraph, place: Mapping[int, int]) -> LayerGraph:
    """The graph whose layers have these numbers."""

    def feeds(found: Sequence[Feed]) -> tuple[Feed, ...]:
        return tuple([it if it.layer is None else it._replace(layer=place[it.layer]) for it in found])

    layers = [replace(layer, index=place[layer.index], feeds=feeds(layer.feeds)) for layer in graph.layers]
    return replace(graph, layers=tuple(layers), heads=feeds(graph.heads))


@st.composite
def topological_orders(draw: st.DrawFn, graph: LayerGraph) -> tuple[int, ...]:
    """Any order in which a file could list the layers."""
    waiting = [len(sources) for sources in graph.predecessors]
    ready = [layer for layer, count in enumerate(waiting) if not count]
    found = []
    while ready:
        layer = ready.pop(draw(st.integers(0, len(ready) - 1)))
        found.append(layer)
        for reader in graph.successors[layer]:
            waiting[reader] -= 1
            if not waiting[reader]:
                ready.append(reader)
    return tuple(found)


def chains(max_size: int = 12) -> st.SearchStrategy[LayerGraph]:
    """Layers one after another, with repeats."""
    return st.lists(st.sampled_from(UNARY), min_size=1, max_size=max_size).map(lambda ops: chain(*ops))


@st.composite
def random_graphs(draw: st.DrawFn, max_size: int = 12) -> LayerGraph:
    """Any graph: several graph inputs, constants, joins, layers with two outputs, heads anywhere."""
    specs: list[Spec] = []
    tensors = [Feed(None, 0), Feed(None, 1)]
    for index in range(draw(st.integers(1, max_size))):
        # Half of the time one of the last tensors, so that chains and small modules come about.
        sources = st.sampled_from(tensors[-2:]) | st.sampled_from(tensors)
        op = draw(st.sampled_from((*UNARY, *JOINS, "constant")))
        arity = 0 if op == "constant" else 1 if op in UNARY else draw(st.integers(2, 3))
        feeds = tuple(draw(sources) for _ in range(arity))
        specs.append(Spec(op, feeds, width=draw(st.sampled_from(WIDTHS))))
        tensors += [Feed(index, output) for output in range(2 if op == "split" else 1)]
    return built(specs)


# A series-parallel model as nested lists: an op is a layer; a list of branches forks and is followed by its join.
Piece = str | tuple[str, tuple["Branch", ...]]
Branch = tuple[Piece, ...]


def series_parallel_branches() -> st.SearchStrategy[Branch]:
    """Branches from which `laid_out` makes series-parallel models; no join reads a tensor twice."""
    layer = st.sampled_from(("conv", "relu", "pool"))

    def with_forks(branch: st.SearchStrategy[Branch]) -> st.SearchStrategy[Branch]:
        branches = st.lists(branch, min_size=2, max_size=3).filter(lambda found: found.count(()) < 2)
        return st.lists(layer | st.tuples(st.sampled_from(JOINS), branches.map(tuple)), max_size=3).map(tuple)

    return st.recursive(st.lists(layer, max_size=3).map(tuple), with_forks, max_leaves=8)


def laid_out(
    branch: Branch,
    listed: Callable[[int], Sequence[int]] = range,
    joined: Callable[[int], Sequence[int]] = range,
) -> LayerGraph:
    """The model of a branch; `listed` and `joined` say in which order a fork's branches stand in file and join."""
    specs: list[Spec] = []

    def write(branch: Branch, feed: Feed) -> Feed:
        for piece in branch:
            if isinstance(piece, str):
                specs.append(Spec(piece, (feed,)))
            else:
                join, branches = piece
                ends = {number: write(branches[number], feed) for number in listed(len(branches))}
                specs.append(Spec(join, tuple(ends[number] for number in joined(len(branches)))))
            feed = Feed(len(specs) - 1, 0)
        return feed

    # A layer of its own at the start, so that no branch reads the graph input itself.
    specs.append(Spec("conv", DATA))
    write(branch, Feed(0, 0))
    return built(specs)


def series_parallel() -> st.SearchStrategy[LayerGraph]:
    """Forks and joins, nested, with empty branches and repeats."""
    return series_parallel_branches().map(laid_out)


def sound_graphs() -> st.SearchStrategy[LayerGraph]:
    """Graphs of every form."""
    return st.one_of(random_graphs(), random_graphs(), series_parallel(), chains())


@st.composite
def graphs(draw: st.DrawFn) -> LayerGraph:
    """Graphs of every form, in which some layers cannot be run or are paid more than once."""
    graph = draw(sound_graphs())
    odd = draw(st.sets(st.integers(0, len(graph.layers) - 1), max_size=3))
    layers = list(graph.layers)
    for index in odd:
        if draw(st.booleans()):
            layers[index] = replace(layers[index], unmeasurable="no runtime knows it")
        else:
            layers[index] = replace(layers[index], times=2)
    return replace(graph, layers=tuple(layers))
