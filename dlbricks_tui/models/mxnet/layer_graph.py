"""From an MXNet file with inferred types to a layer graph."""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path

from dlbricks_tui.models.cache import ReadModel
from dlbricks_tui.models.composites import LAYER_ATTRIBUTE, AnnotatedNode, LayerNodes, group_nodes
from dlbricks_tui.models.content import without_cycle_search
from dlbricks_tui.models.errors import FusionRefusedError, InconsistentModelError, ModelError, UnreadableModelError
from dlbricks_tui.models.graph import (
    UNKNOWN_TYPE,
    Feed,
    GraphInput,
    Layer,
    LayerGraph,
    Level,
    NativeNode,
    Operator,
    Origin,
    Shape,
    TensorType,
    Wire,
)
from dlbricks_tui.models.input_shapes import missing_shapes
from dlbricks_tui.models.kinds import Kind, heaviest, kind_of
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.models.mxnet.neutral import NestedGraph, nested_graph, neutral_operator
from dlbricks_tui.models.mxnet.symbol_file import (
    Framework,
    GraphAnswer,
    NodeOutput,
    Subgraph,
    SymbolFile,
    SymbolNode,
    parse_symbol,
    unique_name,
)
from dlbricks_tui.models.mxnet.variables import MOST_ELEMENTS, Role, declared_axes, input_shapes, variable_roles
from dlbricks_tui.models.neutral import InnerForms, InnerGraphsTooLargeError, Site
from dlbricks_tui.models.type_cache import CachedTypes, cache_key, read_types, write_types
from dlbricks_tui.runtime.errors import WorkerRefusedError
from dlbricks_tui.runtime.protocol import Reason

SHAPE = "shape"
_SIZE = re.compile(r"-?\d+")


@dataclass(frozen=True, slots=True)
class FusedFrom:
    """The model file of a fused graph, and the nodes of that file behind each node of the graph."""

    file: SymbolFile
    parts: Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class InferredFile:
    """A symbol file with the role of each variable, the types of each output, and the nodes that MXNet lacks."""

    file: SymbolFile
    roles: Mapping[int, Role]
    types: Sequence[Sequence[TensorType]]
    unknown: frozenset[int] = frozenset()
    # Set if the file is a fused graph.
    fused_from: FusedFrom | None = None


@without_cycle_search()
def build_graph(inferred: InferredFile, name: str) -> LayerGraph:
    """Return the layers of a model. At level `written`, operators that share a `__layer__` are one layer."""
    return _Builder(inferred, name).graph()


def _annotated(inferred: InferredFile) -> Mapping[int, AnnotatedNode]:
    """Return the operators and constants of a file; a fused graph has no annotations."""
    return {
        number: AnnotatedNode(
            node.name,
            node.op,
            {} if inferred.fused_from is not None else node.attributes,
            [entry.node for entry in node.inputs],
        )
        for number, node in enumerate(inferred.file.nodes)
        if not node.is_variable or inferred.roles[number] is Role.CONSTANT
    }


class _Builder:
    def __init__(self, inferred: InferredFile, name: str) -> None:
        self._nodes = inferred.file.nodes
        self._heads = inferred.file.heads
        self._types = inferred.types
        self._unknown = inferred.unknown
        self._fused_from = inferred.fused_from
        self._roles = inferred.roles
        self._name = name
        self._forms = InnerForms()
        self._groups = group_nodes(_annotated(inferred), name)
        inputs = (node for node, role in self._roles.items() if role is Role.INPUT)
        self._input_numbers = {node: number for number, node in enumerate(inputs)}
        # The place of each node: its layer, and its number among the nodes of one repetition.
        self._place = {
            node: (layer, number)
            for layer, group in enumerate(self._groups)
            for repetition in group.repetitions
            for number, node in enumerate(repetition)
        }
        self._results = self._layer_results()
        # Many outputs share few types.
        self._distinct_types = {found for types in self._types for found in types}
        self._all_known = not self._unknown and all(found.is_known for found in self._distinct_types)

    def graph(self) -> LayerGraph:
        if not self._groups:
            raise UnreadableModelError(f"{self._name} has no operators: there is nothing to run")
        self._refuse_what_mxnet_cannot_hold()
        inputs = [GraphInput(self._label(number), self._type(NodeOutput(number, 0))) for number in self._input_numbers]
        return LayerGraph(
            self._name,
            Level.WRITTEN if self._fused_from is None else Level.FUSED,
            tuple([self._layer(index, group) for index, group in enumerate(self._groups)]),
            tuple(inputs),
            # Some files put out a weight, which no layer computes.
            tuple([self._feed(head) for head in self._heads if self._roles.get(head.node) is not Role.WEIGHT]),
        )

    def _layer_results(self) -> list[dict[tuple[int, int], int]]:
        """Return the outputs that leave each layer: (node within the repetition, output) to number."""
        leaving: list[set[tuple[int, int]]] = [set() for _ in self._groups]
        place = self._place
        for number, node in enumerate(self._nodes):
            reader = place.get(number)
            for entry in node.inputs:
                source = place.get(entry.node)
                if source is not None and (reader is None or reader[0] != source[0]):
                    leaving[source[0]].add((source[1], entry.output))
        for head in self._heads:
            if head.node in place:
                layer, member = place[head.node]
                leaving[layer].add((member, head.output))
        return [{result: number for number, result in enumerate(sorted(found))} for found in leaving]

    def _layer(self, index: int, group: LayerNodes) -> Layer:
        nodes = self._original_nodes(group)
        reads = _Reads()
        if self._nodes[group.members[0]].is_variable:
            operators: tuple[Operator, ...] = ()
            reads.weights = {node: number for number, node in enumerate(group.members)}
            ops, kinds, origin = ["constant"], [Kind.CONSTANT], Origin.WEIGHT
        else:
            operators = self._operators(group, reads)
            ops = [op for operator in operators for op in operator.parts]
            kinds, origin = [kind_of(op) for op in ops], Origin.OPERATOR
        weights = tuple([self._type(NodeOutput(node, 0)) for node in reads.weights])
        results = self._results[index]
        return Layer(
            index=index,
            name=self._title(group, nodes),
            op="+".join(ops),
            kind=group.kind or heaviest(kinds),
            operators=operators,
            feeds=tuple(reads.feeds),
            data=tuple(reads.data),
            weights=weights,
            results=tuple([Wire(origin, member, output) for member, output in results]),
            outputs=tuple([self._type(NodeOutput(group.members[member], output)) for member, output in results]),
            times=group.times,
            unmeasurable=self._why_unmeasurable(group, (*reads.data, *weights)),
            nodes=nodes,
            # Fused operators keep copies of their weights, in a layout that they choose in their first run.
            arrays=() if any(operator.inner for operator in operators) else tuple(reads.weights),
        )

    def _operators(self, group: LayerNodes, reads: "_Reads") -> tuple[Operator, ...]:
        """Return the operators of a layer, and add their inputs to `reads`."""
        inside = {node: number for number, node in enumerate(group.members)}
        operators = []
        for member in group.members:
            wires = []
            for entry in self._nodes[member].inputs:
                if entry.node in inside:
                    wires.append(Wire(Origin.OPERATOR, inside[entry.node], entry.output))
                elif self._roles.get(entry.node) is Role.WEIGHT:
                    wires.append(Wire(Origin.WEIGHT, reads.weight(entry.node)))
                else:
                    wires.append(Wire(Origin.DATA, reads.tensor(self._feed(entry), self._type(entry))))
            operators.append(self._operator(member, tuple(wires)))
        return tuple(operators)

    def _operator(self, number: int, wires: tuple[Wire, ...]) -> Operator:
        node = self._nodes[number]
        outputs = tuple(self._types[number])
        params = _with_sizes(node, outputs)
        neutral = neutral_operator(node.op, params, Site(tuple([self._type(entry) for entry in node.inputs]), outputs))
        native = NativeNode(node.op, tuple(params.items()), tuple([subgraph.text for subgraph in node.subgraphs]))
        parts: tuple[str, ...] = (neutral.op,)
        inner: tuple[str, ...] = ()
        if node.subgraphs:
            nested = [self._nested(subgraph) for subgraph in node.subgraphs]
            inner = tuple([graph.canonical for graph in nested])
            # A loop keeps its own name. A fused operator gets the names of its parts.
            if kind_of(neutral.op) is Kind.OTHER:
                parts = tuple([op for graph in nested for op in graph.ops]) or parts
        return Operator(neutral.op, neutral.params, wires, outputs, native, inner, parts)

    def _nested(self, subgraph: Subgraph) -> NestedGraph:
        try:
            return nested_graph(subgraph.file, self._forms)
        except InnerGraphsTooLargeError as too_large:
            raise UnreadableModelError(f"{self._name}: {too_large}") from None

    def _feed(self, entry: NodeOutput) -> Feed:
        place = self._place.get(entry.node)
        if place is None:
            return Feed(None, self._input_numbers[entry.node])
        layer, member = place
        return Feed(layer, self._results[layer][member, entry.output])

    def _original_nodes(self, group: LayerNodes) -> tuple[int, ...]:
        """Return the nodes of the model file behind a layer, ascending."""
        if self._fused_from is None and len(group.members) == group.times == 1:
            return group.members
        numbers = [number for repetition in group.repetitions for number in repetition]
        if self._fused_from is not None:
            numbers = [part for number in numbers for part in self._fused_from.parts[number]]
        return tuple(sorted(numbers))

    def _title(self, group: LayerNodes, nodes: Sequence[int]) -> str:
        """Return the name of the first written layer in a fused layer."""
        if self._fused_from is None or not nodes:
            return group.name
        node = self._fused_from.file.nodes[nodes[0]]
        return node.attributes.get(LAYER_ATTRIBUTE) or node.name or group.name

    def _label(self, number: int) -> str:
        """Return the name of a node in the model file."""
        if self._fused_from is not None and self._fused_from.parts[number]:
            return self._fused_from.file.nodes[self._fused_from.parts[number][0]].name
        return self._nodes[number].name

    def _type(self, entry: NodeOutput) -> TensorType:
        types = self._types[entry.node]
        return types[entry.output] if entry.output < len(types) else UNKNOWN_TYPE

    def _refuse_what_mxnet_cannot_hold(self) -> None:
        shapes = {found.shape for found in self._distinct_types if found.shape is not None}
        too_large = {shape for shape in shapes if prod(shape) > MOST_ELEMENTS}
        for number, types in enumerate(self._types if too_large else ()):
            for found in types:
                if found.shape in too_large:
                    label, shown = self._label(number)[:80], "x".join(map(str, found.shape))[:80]
                    what = f"{label!r} has a shape of {shown}: more than MXNet can hold"
                    raise UnreadableModelError(f"{self._name}: {what}")

    def _why_unmeasurable(self, group: LayerNodes, inputs: Sequence[TensorType]) -> str | None:
        if self._all_known and UNKNOWN_TYPE not in inputs:
            return None
        for member in group.members:
            if member in self._unknown:
                return f"operator {self._nodes[member].op} is not known to the installed MXNet"
        outputs = (found for member in group.members for found in self._types[member])
        if all(found.is_known for found in inputs) and all(found.is_known for found in outputs):
            return None
        if self._unknown:
            return "its shape depends on an operator that the installed MXNet does not know"
        return "MXNet does not find out its shape"


def _with_sizes(node: SymbolNode, outputs: Sequence[TensorType]) -> Mapping[str, str]:
    """Return the parameters of an operator. The size of a new array counts only if its readers do not determine it."""
    declared = node.params.get(SHAPE)
    if node.inputs or declared is None or not outputs[0].is_known:
        return node.params
    sizes = [int(size) for size in _SIZE.findall(declared)]
    return node.params if sizes and min(sizes) > 0 else {**node.params, SHAPE: str(outputs[0].shape)}


class _Reads:
    """The inputs of a layer, each once, numbered in the order of reading."""

    def __init__(self) -> None:
        self.feeds: dict[Feed, int] = {}
        self.data: list[TensorType] = []
        self.weights: dict[int, int] = {}

    def tensor(self, feed: Feed, found: TensorType) -> int:
        if feed not in self.feeds:
            self.feeds[feed] = len(self.data)
            self.data.append(found)
        return self.feeds[feed]

    def weight(self, node: int) -> int:
        return self.weights.setdefault(node, len(self.weights))


class InferredGraphs:
    """Reads symbol files with the types that a framework infers."""

    def __init__(self, cache: Path, framework: Framework) -> None:
        self._cache = cache
        self._framework = framework

    def read(
        self, source: ModelSource, content: bytes, level: Level, given: Mapping[str, Shape], batch_size: int | None
    ) -> ReadModel:
        """Return the layer graph of a model file."""
        file = parse_symbol(content, source.name)
        roles = variable_roles(file, {*given, *source.inputs})
        shapes = input_shapes(file, roles, given, source.inputs, source.name, batch_size)
        model = _Model(source, content, file, shapes, roles)
        inferred = self._fused(model) if level is Level.FUSED else self._written(model)
        graph = build_graph(inferred, source.name)
        first = graph.inputs[0].type.shape if graph.inputs else None
        return ReadModel(replace(graph, batch_size=first[0] if first else 1))

    def _written(self, model: "_Model") -> InferredFile:
        key = cache_key(model.content, model.shapes)
        path = self._cache / "inferred" / f"{key}.json"
        known = model.delivered_types(key) or read_types(path, key)
        if known is None or len(known.types) != len(model.file.nodes) or self._may_know_more_than(known):
            if not model.shapes:
                model.refuse_open_inputs(model.inputs)
            answer = model.ask(self._framework.infer)
            known = CachedTypes(_frozen(answer.types), answer.unknown, self._framework.identity)
            model.check(known.types, model.file)
            _keep(path, key, known)
        model.refuse_open_inputs([n for n in model.inputs if all(found.shape is None for found in known.types[n])])
        return InferredFile(model.file, model.roles, known.types, known.unknown)

    def _may_know_more_than(self, known: CachedTypes) -> bool:
        return bool(known.unknown) and known.framework != self._framework.identity

    def _fused(self, model: "_Model") -> InferredFile:
        key = cache_key(model.content, model.shapes, "fused", self._framework.identity)
        path = self._cache / "fused" / f"{key}.json"
        known = read_types(path, key)
        if known is None or known.symbol is None:
            # Inference first: its errors name inputs without a shape and unknown operators.
            self._written(model)
            answer = model.ask(self._framework.fuse)
            parts = tuple([tuple(numbers) for numbers in answer.parts])
            known = CachedTypes(_frozen(answer.types), answer.unknown, self._framework.identity, answer.symbol, parts)
            _keep(path, key, known)
        fused = parse_symbol(known.symbol or "", f"{model.source.name}, fused")
        model.check(known.types, fused)
        model.check(known.parts, fused)
        roles = {
            number: next((model.roles[part] for part in known.parts[number] if part in model.roles), Role.WEIGHT)
            for number, node in enumerate(fused.nodes)
            if node.is_variable
        }
        return InferredFile(fused, roles, known.types, known.unknown, FusedFrom(model.file, known.parts))


@dataclass(frozen=True, slots=True)
class _Model:
    source: ModelSource
    content: bytes
    file: SymbolFile
    shapes: Mapping[int, Shape]
    roles: Mapping[int, Role]

    @property
    def inputs(self) -> list[int]:
        return [number for number, role in self.roles.items() if role is Role.INPUT]

    def delivered_types(self, key: str) -> CachedTypes | None:
        return read_types(self.source.types, key) if self.source.types is not None else None

    def refuse_open_inputs(self, numbers: Sequence[int]) -> None:
        if numbers:
            nodes = [self.file.nodes[number] for number in numbers]
            raise missing_shapes({node.name: declared_axes(node) for node in nodes}, self.source.name)

    def ask(self, question: Callable[[str, Mapping[str, Shape]], GraphAnswer]) -> GraphAnswer:
        """Return the framework's answer. A refusal is reworded with the names of the model file."""
        try:
            return question(self.file.render(), {unique_name(number): shape for number, shape in self.shapes.items()})
        except WorkerRefusedError as refused:
            kind = FusionRefusedError if refused.reason in _REFUSED_TO_FUSE else InconsistentModelError
            raise kind(f"{self.source.name}: {self._in_its_own_names(str(refused))}") from None

    def check(self, answered: Sequence[object], file: SymbolFile) -> None:
        if len(answered) != len(file.nodes):
            where = self.source.name
            raise ModelError(f"{where}: {len(answered)} nodes were answered for a graph of {len(file.nodes)}")

    def _in_its_own_names(self, text: str) -> str:
        nodes = self.file.nodes

        def named(found: re.Match[str]) -> str:
            number = int(found[1])
            return repr(nodes[number].name[:80]) if number < len(nodes) and nodes[number].name else found[0]

        return _UNIQUE_NAME.sub(named, text)


_UNIQUE_NAME = re.compile(r"\bn(\d{1,9})\b")
_REFUSED_TO_FUSE = (Reason.UNFUSABLE, Reason.UNKNOWN_OPERATOR)


def _frozen(types: Sequence[Sequence[TensorType]]) -> tuple[tuple[TensorType, ...], ...]:
    return tuple([tuple(outputs) for outputs in types])


def _keep(path: Path, key: str, known: CachedTypes) -> None:
    # Without a cache, the next read asks the framework again.
    with suppress(OSError):
        write_types(path, key, known)
