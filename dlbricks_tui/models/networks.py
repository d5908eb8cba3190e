"""Networks for a worker, written operator by operator.

A sheet, on which a network is written, has one implementation per file format.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence

from dlbricks_tui.errors import UserError
from dlbricks_tui.models.graph import (
    Feed,
    Layer,
    LayerGraph,
    NativeNode,
    Numbers,
    Origin,
    TensorType,
    Wire,
    numbers_of,
    type_of,
)
from dlbricks_tui.models.mxnet_file import NodeOutput, SymbolSheet
from dlbricks_tui.models.onnx_writer import OnnxSheet
from dlbricks_tui.runtime.protocol import ArrayType, Network
from dlbricks_tui.runtime.traits import Format

# A sheet collects the nodes of one network, which are known by number.
_SHEETS: Mapping[Format, Callable[[], SymbolSheet | OnnxSheet]] = {Format.MXNET: SymbolSheet, Format.ONNX: OnnxSheet}


class ProgramError(UserError):
    """Layers that cannot be run as a program."""


def whole_network(graph: LayerGraph) -> tuple[Network, Mapping[int, int]]:
    """Return a model as one network, and the layer of each operator by the number of the operator."""
    writer = NetworkWriter(graph)
    for number in range(len(graph.inputs)):
        writer.source(Feed(None, number))
    for layer in graph.layers:
        writer.write(layer, layer.times)
    return writer.network(graph.heads), writer.owners


def _found(
    wire: Wire, data: Sequence[NodeOutput], weights: Sequence[NodeOutput], operators: Sequence[int]
) -> NodeOutput:
    if wire.origin is Origin.OPERATOR:
        return NodeOutput(operators[wire.number], wire.output)
    return (data if wire.origin is Origin.DATA else weights)[wire.number]


class NetworkWriter:
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

    def _operator(self, native: NativeNode, name: str, inputs: Sequence[NodeOutput]) -> int:
        self._read.update(inputs)
        return self._sheet.operator(native, name, inputs)

    def _variable(self, arrays: dict[str, ArrayType], role: str, found: TensorType, where: str) -> NodeOutput:
        if found.shape is None or not found.is_known:
            raise ProgramError(f"{self._graph.name}: {where} cannot be run, because the shape of its {role} is unknown")
        name = self._sheet.fresh(f"{role}{len(arrays)}")
        arrays[name] = ArrayType(found.shape, found.dtype)
        return NodeOutput(self._sheet.variable(name, found, learned=arrays is not self._inputs), 0)
