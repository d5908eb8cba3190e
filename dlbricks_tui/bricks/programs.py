"""Programs for a worker: layer sequences, carriers and whole models, written operator by operator."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

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
from dlbricks_tui.models.graph import Feed, LayerGraph, Level, NativeNode, Numbers, TensorType, type_of
from dlbricks_tui.models.mxnet_file import NodeOutput
from dlbricks_tui.models.networks import NetworkWriter, ProgramError, whole_network
from dlbricks_tui.models.onnx_operators import plain_native, version_among
from dlbricks_tui.runtime.protocol import ArrayType, Network, Program
from dlbricks_tui.runtime.traits import Format

# Enough channels to fill the blocks of any oneDNN layout.
_CHANNELS = 16
_SIDE = 4
# Short operators that use the same parts of MXNet as most layers: a convolution, and a conversion to the plain layout,
# which MXNet's own operators read. Each reads the result of the one before it and weights of these types.
_WAKERS: Mapping[Format, Sequence[tuple[NativeNode, Sequence[TensorType]]]] = {
    Format.MXNET: (
        (
            NativeNode("Convolution", (("kernel", "(1, 1)"), ("num_filter", str(_CHANNELS)), ("no_bias", "True"))),
            (TensorType((1, _CHANNELS, _SIDE, _SIDE)), TensorType((_CHANNELS, _CHANNELS, 1, 1))),
        ),
        (NativeNode("_plus_scalar", (("scalar", "1"),)), ()),
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
    network, _ = whole_network(graph)
    return Program(network)


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


class _Writer(NetworkWriter):
    """Writes a sequence of layers with what comes before it."""

    def wake(self) -> None:
        """Write tiny operators that run first and wake the threads that sleep between two runs."""
        traits = self._graph.traits
        for native, learned in _WAKERS[traits.format] if traits.sleeps_between_runs else ():
            weights = [self._variable(self._weights, "weight", found, "what wakes") for found in learned]
            self._ahead = [NodeOutput(self._operator(native, "wake", [*self._ahead, *weights]), 0)]

    def copy_all(self, feeds: Sequence[Feed], layouts: Layouts) -> None:
        """Write copies of these tensors, which layers read instead; without tensors, a copy that no layer reads."""
        self._sources |= {feed: [self._copy(feed, layouts)] for feed in feeds}
        if not feeds:
            nothing = self._variable(self._inputs, "data", _NOTHING, "")
            self._ahead.append(NodeOutput(self._operator(_COPIES[self._graph.format](), "copy", [nothing]), 0))

    def write_sequence(self, layers: Sequence[int]) -> None:
        """Write layers as often as one run of their sequence runs each."""
        paid = times_paid(self._graph, layers)
        for index in layers:
            self.write(self._graph.layers[index], self._graph.layers[index].times // paid)

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
