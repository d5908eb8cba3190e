"""An MXNet file with the types that inference found becomes a layer graph."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from dlbricks_tui.models.errors import ModelError, UnreadableModelError
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
from dlbricks_tui.models.kinds import Kind, heaviest, kind_of
from dlbricks_tui.models.literals import LiteralError
from dlbricks_tui.models.mxnet_file import Entry, SymbolFile, SymbolNode
from dlbricks_tui.models.mxnet_layers import Group, group_layers
from dlbricks_tui.models.mxnet_variables import LAYER_ATTRIBUTE, Role
from dlbricks_tui.models.nested import nested_graph
from dlbricks_tui.models.neutral import Neutral, Site, neutral_operator

# MXNet counts elements in 32 bits.
MOST_ELEMENTS = 2**31 - 1


@dataclass(frozen=True, slots=True)
class FusedFrom:
    """The model file of a fused graph, and for each node of that graph those of the file that it stands for."""

    file: SymbolFile
    parts: Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class InferredFile:
    """A symbol file with the role of every variable, the types of every output, and the nodes nobody knows."""

    file: SymbolFile
    roles: Mapping[int, Role]
    types: Sequence[Sequence[TensorType]]
    unknown: frozenset[int] = frozenset()
    origin: FusedFrom | None = None


def build_graph(inferred: InferredFile, name: str) -> LayerGraph:
    """The layers of a model; at level `written`, operators that share a `__layer__` are one layer."""
    return _Builder(inferred, name).graph()


class _Builder:
    def __init__(self, inferred: InferredFile, name: str) -> None:
        self._file = inferred.file
        self._types = inferred.types
        self._unknown = inferred.unknown
        self._origin = inferred.origin
        self._roles = inferred.roles
        self._name = name
        self._groups = group_layers(inferred.file, inferred.roles, name, composites=inferred.origin is None)
        inputs = (node for node, role in self._roles.items() if role is Role.INPUT)
        self._input_numbers = {node: number for number, node in enumerate(inputs)}
        # Where each node stands: layer, and its number among the operators of one repetition.
        self._place = {
            node: (layer, number)
            for layer, group in enumerate(self._groups)
            for repetition in group.repetitions
            for number, node in enumerate(repetition)
        }
        self._results = self._layer_results()

    def graph(self) -> LayerGraph:
        layers = tuple(self._layer(index, group) for index, group in enumerate(self._groups))
        inputs = tuple(GraphInput(self._label(n), self._type(Entry(n, 0))) for n in self._input_numbers)
        heads = tuple(self._feed(head) for head in self._file.heads if self._is_fed(head))
        level = Level.WRITTEN if self._origin is None else Level.FUSED
        return LayerGraph(self._name, level, layers, inputs, heads)

    def _layer_results(self) -> list[dict[tuple[int, int], int]]:
        """For each layer the outputs that leave it, (operator, output) to number."""
        leaving: list[set[tuple[int, int]]] = [set() for _ in self._groups]
        readers = [(node, entry) for node, read in enumerate(self._file.nodes) for entry in read.inputs]
        for reader, entry in [*readers, *((None, head) for head in self._file.heads)]:
            place = self._place.get(entry.node)
            if place is not None and (reader is None or self._place[reader][0] != place[0]):
                leaving[place[0]].add((place[1], entry.output))
        return [{result: number for number, result in enumerate(sorted(found))} for found in leaving]

    def _layer(self, index: int, group: Group) -> Layer:
        if self._file.nodes[group.members[0]].is_variable:
            return self._constant(index, group)
        operators, feeds, weights = self._operators(group)
        data = tuple([self._type(entry) for entry in feeds])
        ops = [op for operator in operators for op in operator.parts]
        results = self._results[index]
        return Layer(
            index,
            self._title(group),
            "+".join(ops),
            group.kind or heaviest(kind_of(op) for op in ops),
            operators,
            tuple([self._feed(entry) for entry in feeds]),
            data,
            tuple([self._type(Entry(node, 0)) for node in weights]),
            tuple([Wire(Origin.OPERATOR, operator, output) for operator, output in results]),
            tuple([self._type(Entry(group.members[operator], output)) for operator, output in results]),
            group.times,
            self._why_unmeasurable(group, data),
            self._original_nodes(group),
        )

    def _constant(self, index: int, group: Group) -> Layer:
        held = self._type(Entry(group.members[0], 0))
        wire = Wire(Origin.WEIGHT, 0)
        kind = group.kind or Kind.CONSTANT
        nodes = self._original_nodes(group)
        return Layer(
            index, self._title(group), "constant", kind, (), (), (), (held,), (wire,), (held,), group.times, nodes=nodes
        )

    def _operators(self, group: Group) -> tuple[tuple[Operator, ...], list[Entry], list[int]]:
        inside = {node: number for number, node in enumerate(group.members)}
        feeds: dict[Entry, int] = {}
        weights: dict[int, int] = {}
        operators = []
        for member in group.members:
            node = self._file.nodes[member]
            wires = []
            for entry in node.inputs:
                if entry.node in inside:
                    wires.append(Wire(Origin.OPERATOR, inside[entry.node], entry.output))
                elif self._roles.get(entry.node) is Role.WEIGHT:
                    wires.append(Wire(Origin.WEIGHT, weights.setdefault(entry.node, len(weights))))
                else:
                    wires.append(Wire(Origin.DATA, feeds.setdefault(entry, len(feeds))))
            operators.append(self._operator(member, node, tuple(wires)))
        return tuple(operators), list(feeds), list(weights)

    def _operator(self, number: int, node: SymbolNode, wires: tuple[Wire, ...]) -> Operator:
        inputs = tuple([self._type(entry) for entry in node.inputs])
        outputs = tuple(self._types[number])
        attributes = tuple([(key, text) for key, text in node.attributes.items() if not key.startswith("__")])
        try:
            neutral = _neutral(node.op, attributes, inputs, outputs)
            nested = [nested_graph(text) for text in node.subgraphs]
        except (LiteralError, ModelError) as error:
            raise UnreadableModelError(f"{self._name}: node {number} ({node.name[:80]!r}): {error}") from None
        native = NativeNode(node.op, attributes, node.subgraphs)
        inner = tuple([graph.canonical for graph in nested])
        # A loop is what it is; a fused operator is named for what it holds.
        holds = tuple([op for graph in nested for op in graph.ops]) if kind_of(neutral.op) is Kind.OTHER else ()
        return Operator(neutral.op, neutral.params, wires, outputs, native, inner, holds or (neutral.op,))

    def _feed(self, entry: Entry) -> Feed:
        place = self._place.get(entry.node)
        if place is None:
            return Feed(None, self._input_numbers[entry.node])
        layer, operator = place
        return Feed(layer, self._results[layer][operator, entry.output])

    def _is_fed(self, head: Entry) -> bool:
        """Some files put out a learned array as it is: no layer computes it."""
        return head.node in self._place or head.node in self._input_numbers

    def _original_nodes(self, group: Group) -> tuple[int, ...]:
        numbers = [number for repetition in group.repetitions for number in repetition]
        if self._origin is None:
            return tuple(numbers)
        return tuple(sorted({part for number in numbers for part in self._origin.parts[number]}))

    def _title(self, group: Group) -> str:
        """A fused layer is called what the first written layer in it is called."""
        originals = self._original_nodes(group)
        if self._origin is None or not originals:
            return group.name
        node = self._origin.file.nodes[originals[0]]
        return node.attributes.get(LAYER_ATTRIBUTE) or node.name or group.name

    def _label(self, number: int) -> str:
        """What the model file calls a node."""
        if self._origin is not None and self._origin.parts[number]:
            return self._origin.file.nodes[self._origin.parts[number][0]].name
        return self._file.nodes[number].name

    def _type(self, entry: Entry) -> TensorType:
        types = self._types[entry.node]
        if entry.output >= len(types):
            return TensorType(None)
        found = types[entry.output]
        if found.shape is not None:
            elements = 1
            for axis in found.shape:
                elements *= axis
            if elements > MOST_ELEMENTS:
                shown = "x".join(map(str, found.shape))
                label = self._label(entry.node)[:80]
                raise UnreadableModelError(f"{self._name}: {label!r} has a shape of {shown}: more than MXNet can hold")
        return found

    def _why_unmeasurable(self, group: Group, data: Sequence[TensorType]) -> str | None:
        for member in group.members:
            if member in self._unknown:
                return f"operator {self._file.nodes[member].op} is not known to the installed MXNet"
        types = [*data, *(found for member in group.members for found in self._types[member])]
        if any(found.shape is None for found in types):
            return "its shape depends on an operator that the installed MXNet does not know"
        return None


@lru_cache(maxsize=1 << 15)
def _neutral(
    op: str,
    attributes: tuple[tuple[str, str], ...],
    inputs: tuple[TensorType, ...],
    outputs: tuple[TensorType, ...],
) -> Neutral:
    return neutral_operator(op, dict(attributes), Site(inputs, outputs))
