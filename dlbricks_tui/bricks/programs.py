"""Programs for a worker: layer sequences, carriers and whole models, written operator by operator.

A sheet, on which a network is written, has one implementation per file format.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from dlbricks_tui.bricks.contexts import (
    expected_numbers,
    feeding_layers,
    is_cold,
    kept_feeds,
    narrowed,
    streaming_operator,
    varied_feeds,
)
from dlbricks_tui.bricks.identity import outer_feeds, times_paid
from dlbricks_tui.bricks.layouts import Layouts, output_layouts
from dlbricks_tui.errors import UserError
from dlbricks_tui.models.graph import (
    Feed,
    Layer,
    LayerGraph,
    Level,
    NativeNode,
    Numbers,
    Origin,
    TensorType,
    Wire,
    numbers_of,
    type_of,
)
from dlbricks_tui.models.mxnet_file import NodeOutput, SymbolSheet
from dlbricks_tui.models.onnx_operators import plain_native, version_among
from dlbricks_tui.models.onnx_writer import OnnxSheet
from dlbricks_tui.runtime.protocol import ArrayType, Network, Program
from dlbricks_tui.runtime.traits import Format


class Waker(NamedTuple):
    """An operator that reads the result of the one before it and these weights."""

    native: NativeNode
    weights: Sequence[TensorType]


# A sheet collects the nodes of one network, which are known by number.
_SHEETS: Mapping[Format, Callable[[], SymbolSheet | OnnxSheet]] = {Format.MXNET: SymbolSheet, Format.ONNX: OnnxSheet}

# Enough channels to fill the blocks of any oneDNN layout.
_CHANNELS = 16
_SIDE = 4
# Short operators that use the same parts of MXNet as most layers: a convolution, and a conversion to the plain layout,
# which MXNet's own operators read.
_WAKERS: Mapping[Format, Sequence[Waker]] = {
    Format.MXNET: (
        Waker(
            NativeNode("Convolution", (("kernel", "(1, 1)"), ("num_filter", str(_CHANNELS)), ("no_bias", "True"))),
            (TensorType((1, _CHANNELS, _SIDE, _SIDE)), TensorType((_CHANNELS, _CHANNELS, 1, 1))),
        ),
        Waker(NativeNode("_plus_scalar", (("scalar", "1"),)), ()),
    )
}
_COPIES: Mapping[Format, Callable[[], NativeNode]] = {
    Format.MXNET: lambda: NativeNode("_copy"),
    Format.ONNX: lambda: plain_native("Identity"),
}
# Operators that keep positive values. MXNet's copy converts a tensor to the plain layout. Its relu keeps the layout.
_RELUS: Mapping[Format, Callable[[], NativeNode]] = {
    Format.MXNET: lambda: NativeNode("Activation", (("act_type", "relu"),)),
    Format.ONNX: lambda: plain_native("Relu"),
}


_NOTHING = TensorType((1,))


class ProgramError(UserError):
    """Layers that cannot be run as a program."""


class CarrierProgram(NamedTuple):
    """A program, and the layer of each operator of its network, by the number of the operator."""

    program: Program
    owners: Mapping[int, int]


def sequence_program(
    graph: LayerGraph,
    layers: Sequence[int],
    awake: bool = True,
) -> Program:
    """Return a sequence of layers as a program with the inputs that it has in the model.

    The layers in front of the sequence bring its inputs into their layouts. The sequence reads copies of them, since a
    framework never writes over the inputs of a network, but does inside of a model. Making the copies is the prelude,
    whose time is subtracted. Copies that the model needs afterwards are outputs too, so that they stay as they are.
    Where a framework sleeps between two runs, the prelude wakes it up, unless the sequence is not to find it `awake`.
    """
    feeds = outer_feeds([graph.layers[index] for index in layers])
    if graph.traits.always_fuses:
        # It would fuse a copy with the layers, and it never writes over the inputs of a network.
        network = _Writer(graph)
        network.write_sequence(layers)
        return Program(network.network(results_of(graph, layers), in_passing=True))
    layouts = output_layouts(graph)
    network, prelude = _Writer(graph), _Writer(graph)
    for writer in (network, prelude):
        if awake:
            writer.wake()
        writer.copy_all(feeds, layouts)
    network.write_sequence(layers)
    kept = kept_feeds(graph, layers, layouts)
    return Program(
        network.network([*results_of(graph, layers), *(feed for feed in feeds if feed in kept)], in_passing=True),
        _producer(graph, feeds, layers, layouts),
        prelude.network(feeds),
        cold=is_cold(graph, layers),
    )


def model_program(graph: LayerGraph) -> Program:
    """Return a whole model as a program."""
    return carrier_program(graph).program


def carrier_program(graph: LayerGraph) -> CarrierProgram:
    """Return a whole network as a program, with the layer of each operator."""
    writer = _Writer(graph)
    for number in range(len(graph.inputs)):
        writer.source(Feed(None, number))
    for layer in graph.layers:
        writer.write(layer, layer.times)
    return CarrierProgram(Program(writer.network(graph.heads)), writer.owners)


def file_program(graph: LayerGraph, file: Path) -> Program:
    """Return a model file as a program; the framework optimises it unless the graph is as written."""
    inputs: dict[str, ArrayType] = {}
    values: dict[str, Numbers] = {name: (number,) for name, number in expected_numbers(graph).items()}
    for given in graph.inputs:
        if given.type.shape is None or not given.type.is_known:
            raise ProgramError(f"{graph.name} cannot be run: the shape of its input {given.name} is not known")
        inputs[given.name] = ArrayType(given.type.shape, given.type.dtype)
        if given.value:
            values[given.name] = given.value
    return Program(Network("", inputs, {}, str(file), graph.level is Level.FUSED, values))


def _producer(graph: LayerGraph, feeds: Sequence[Feed], layers: Sequence[int], layouts: Layouts) -> Network | None:
    """Return the network that gives the inputs of a sequence their layouts and values; other inputs pass through it."""
    behind = feeding_layers(graph, layers, layouts)
    if not behind:
        return None
    # Where values matter, the number of channels that a convolution adds up matters, too.
    if not varied_feeds(graph, layers, layouts):
        graph = narrowed(graph, behind)
    producer = _Writer(graph)
    for index in behind:
        producer.write(graph.layers[index], 1)
    return producer.network(feeds)


def results_of(graph: LayerGraph, layers: Sequence[int]) -> list[Feed]:
    """Return the tensors of a sequence that other layers or the model read, in the order of its layers."""
    readers = {reader for index in layers for reader in graph.successors[index]}.difference(layers)
    read = {feed for reader in readers for feed in graph.layers[reader].feeds}.union(graph.heads)
    made = [Feed(index, number) for index in layers for number in range(len(graph.layers[index].results))]
    return [feed for feed in made if feed in read]


def _found(
    wire: Wire, data: Sequence[NodeOutput], weights: Sequence[NodeOutput], operators: Sequence[int]
) -> NodeOutput:
    if wire.origin is Origin.OPERATOR:
        return NodeOutput(operators[wire.number], wire.output)
    return (data if wire.origin is Origin.DATA else weights)[wire.number]


class _Writer:
    """Writes layers to a network; a tensor that no written layer makes becomes an input."""

    def __init__(self, graph: LayerGraph) -> None:
        self._graph = graph
        self._sheet = _SHEETS[graph.format]()
        self._read: set[NodeOutput] = set()
        self._inputs: dict[str, ArrayType] = {}
        self._weights: dict[str, ArrayType] = {}
        # The inputs that hold given numbers.
        self._values: dict[str, Numbers] = {}
        # By array and repetition, as layers may share them.
        self._stored: dict[tuple[Hashable, int], NodeOutput] = {}
        # The results of each repetition of a layer, by tensor.
        self._sources: dict[Feed, list[NodeOutput]] = {}
        # The layer of each operator, by the number of the operator in the network.
        self.owners: dict[int, int] = {}
        # Outputs that are computed before all others and that no layer reads.
        self._ahead: list[NodeOutput] = []

    def wake(self) -> None:
        """Write tiny operators that run first and wake the threads that sleep between two runs."""
        traits = self._graph.traits
        for waker in _WAKERS[traits.format] if traits.sleeps_between_runs else ():
            weights = [self._variable(self._weights, "weight", found, "what wakes") for found in waker.weights]
            self._ahead = [NodeOutput(self._operator(waker.native, "wake", [*self._ahead, *weights]), 0)]

    def copy_all(self, feeds: Sequence[Feed], layouts: Layouts) -> None:
        """Write copies of these tensors, which layers read instead; without tensors, a copy that no layer reads."""
        self._sources |= {feed: [self._copy(feed, layouts)] for feed in feeds}
        if not feeds:
            nothing = self._variable(self._inputs, "data", _NOTHING, "")
            self._ahead.append(NodeOutput(self._operator(_COPIES[self._graph.format](), "copy", [nothing]), 0))

    def source(self, feed: Feed) -> list[NodeOutput]:
        """Return the entries of a tensor, one for each repetition of its layer."""
        if feed not in self._sources:
            found = type_of(self._graph, feed)
            source = self._variable(self._inputs, "data", found, f"input {feed.output}")
            if numbers := numbers_of(self._graph, feed):
                self._values[next(reversed(self._inputs))] = numbers
            self._sources[feed] = [source]
        return self._sources[feed]

    def write(self, layer: Layer, times: int) -> None:
        """Write a layer `times` times; each reads the same repetition of an input, or the last if there are fewer."""
        sources = [self.source(feed) for feed in layer.feeds]
        results = [self._sources.setdefault(Feed(layer.index, number), []) for number in range(len(layer.results))]
        for repetition in range(times):
            data = [entries[repetition if len(entries) == times else -1] for entries in sources]
            weights = []
            for number, found in enumerate(layer.weights):
                which = (layer.array(number), repetition)
                if which not in self._stored:
                    self._stored[which] = self._variable(self._weights, "weight", found, layer.name)
                weights.append(self._stored[which])
            operators: list[int] = []
            for operator in layer.operators:
                entries = [_found(wire, data, weights, operators) for wire in operator.inputs]
                operators.append(self._operator(operator.native, layer.name, entries))
                self.owners[operators[-1]] = layer.index
            for result, wire in zip(results, layer.results, strict=True):
                result.append(_found(wire, data, weights, operators))

    def write_sequence(self, layers: Sequence[int]) -> None:
        """Write layers as often as one run of their sequence runs each."""
        paid = times_paid(self._graph, layers)
        for index in layers:
            self.write(self._graph.layers[index], self._graph.layers[index].times // paid)

    def network(self, heads: Sequence[Feed], *, in_passing: bool = False) -> Network:
        """Return the network with these outputs; `in_passing`: outputs that cost no more than inside of a model."""
        results = [self.source(feed)[-1] for feed in heads]
        # MXNet computes only what some output needs: results that no layer reads are outputs, too.
        sources = self._sources.values()
        unread = [entry for entries in sources for entry in entries[:-1] if entry not in self._read]
        entries = [*self._ahead, *results, *unread]
        if in_passing:
            entries = list(
                dict.fromkeys(NodeOutput(*shown) for entry in entries for shown in self._sheet.in_passing(entry))
            )
        return Network(self._sheet.text(entries), self._inputs, self._weights, values=self._values)

    def _copy(self, feed: Feed, layouts: Layouts) -> NodeOutput:
        """Write a copy of a tensor.

        If the operator that made the tensor writes past the caches, the same operator makes the copy.
        """
        read = self.source(feed)
        operator = streaming_operator(self._graph, feed, layouts)
        if operator is None or feed.layer is None:
            return NodeOutput(self._operator(self._copier(type_of(self._graph, feed).dtype), "copy", read), 0)
        weights = self._graph.layers[feed.layer].weights
        learned = [
            self._variable(self._weights, "weight", weights[wire.number], "a copy") for wire in operator.inputs[1:]
        ]
        return NodeOutput(self._operator(operator.native, "copy", [*read, *learned]), 0)

    def _copier(self, dtype: str) -> NativeNode:
        """Return an operator that copies positive values with all cores, and in their layout where possible."""
        graph = self._graph
        # No runtime computes with the other floats.
        if dtype not in ("float16", "float32", "float64"):
            return _COPIES[graph.format]()
        if dtype == "float32":
            # An operator that computes small tensors with all cores, too: each core's caches hold its part.
            version = version_among(operator.native for layer in graph.layers for operator in layer.operators)
            for op, since in graph.traits.parallel_operators:
                if version is None or version >= since:
                    return plain_native(op)
        return _RELUS[graph.format]()

    def _operator(self, native: NativeNode, name: str, inputs: Sequence[NodeOutput]) -> int:
        self._read.update(inputs)
        return self._sheet.operator(native, name, inputs)

    def _variable(self, arrays: dict[str, ArrayType], role: str, found: TensorType, where: str) -> NodeOutput:
        if found.shape is None or not found.is_known:
            raise ProgramError(f"{self._graph.name}: {where} cannot be run, because the shape of its {role} is unknown")
        name = self._sheet.fresh(f"{role}{len(arrays)}")
        arrays[name] = ArrayType(found.shape, found.dtype)
        return NodeOutput(self._sheet.variable(name, found, learned=arrays is not self._inputs), 0)
