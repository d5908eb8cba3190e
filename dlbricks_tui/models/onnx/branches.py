"""Nodes that stand for others: the branch of an `If` that runs in its place, and layers composed of several nodes."""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dlbricks_tui.models.composites import AnnotatedNode, LayerNodes, group_nodes
from dlbricks_tui.models.digraphs import needed_for, topological_order
from dlbricks_tui.models.graph import Feed, Layer, LayerGraph, Operator, Origin, TensorType, Wire
from dlbricks_tui.models.kinds import heaviest
from dlbricks_tui.models.onnx.model_file import NAMES_OF_ONNX, graphs_inside, reads
from dlbricks_tui.models.onnx.stored_arrays import DamagedValueError, array_of

if TYPE_CHECKING:
    from onnx import GraphProto, NodeProto, TensorProto


@dataclass(frozen=True, slots=True)
class Branch:
    """The arrays and the nodes of a branch, in topological order, which write the outputs of the `If`."""

    weights: "tuple[TensorProto, ...]"
    nodes: "tuple[NodeProto, ...]"


class TakenNames:
    """The names of tensors and nodes so far."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._names = set(names)
        # The next number for a path that occurs several times.
        self._numbers: Counter[str] = Counter()

    def add(self, names: Iterable[str]) -> None:
        """Take these names."""
        self._names.update(names)

    def fresh(self, name: str, path: str) -> str:
        """Take a name, and return it: with the path before it if it is taken already."""
        fresh, inside = name, f"{path}/{name}"
        while fresh in self._names:
            number = self._numbers[inside]
            self._numbers[inside] += 1
            fresh = f"{inside}_{number}" if number else inside
        self._names.add(fresh)
        return fresh


def is_if(node: "NodeProto") -> bool:
    """Return true for an `If` of ONNX itself."""
    return bool(node.op_type == "If") and not node.domain and len(node.input) == 1


def holds(condition: "TensorProto") -> bool | None:
    """Return the condition of an `If` as a flag; None if it is not a single number."""
    try:
        array = array_of(condition)
    except DamagedValueError:
        return None
    return bool(array.reshape(-1)[0]) if array.size == 1 and array.dtype.kind in "biu" else None


def branch_of(node: "NodeProto", condition: bool, taken: TakenNames, domains: Container[str]) -> Branch:
    """Return the branch of an `If` that runs under a condition, and take its names.

    A name inside the branch that is taken already becomes a path, with the name of the `If` before it. `domains` are
    those whose version the file declares.
    """
    graph = _graph_of(node, condition)
    outputs = list(node.output)
    if len(graph.output) != len(outputs):
        raise DamagedValueError(f"a branch of {_label(node)} has another number of outputs than the node")
    _refuse_inputs_and_sparse_weights(node, graph)
    taken.add(filter(None, outputs))
    inside = _Inside(node, graph, taken)
    for found, wanted in zip(graph.output, outputs, strict=True):
        inside.put_out(found.name, wanted)
    return inside.branch(domains)


class _Inside:
    """The nodes of a branch under the names that they get outside of it."""

    def __init__(self, node: "NodeProto", graph: "GraphProto", taken: TakenNames) -> None:
        self._if = node
        self._path = node.name or next(filter(None, node.output), "if")
        self._graph = graph
        self._taken = taken
        self._written = {name for it in graph.node for name in it.output if name}
        if len(self._written) < sum(1 for it in graph.node for name in it.output if name):
            raise DamagedValueError(f"a branch of {_label(node)} writes a tensor twice")
        # The names that tensors of the branch get outside of it.
        self._names: dict[str, str] = {}
        self._copies: list[tuple[str, str]] = []

    def put_out(self, found: str, wanted: str) -> None:
        """Let a tensor be an output of the `If`: under that name, or as a copy."""
        if not wanted:
            return
        if found in self._written and found not in self._names:
            self._names[found] = wanted
        else:
            self._copies.append((found, wanted))

    def branch(self, domains: Container[str]) -> Branch:
        """Return the nodes that some output needs, and the arrays."""
        from onnx import NodeProto, TensorProto

        weights = []
        for weight in self._graph.initializer:
            copy = TensorProto()
            copy.CopyFrom(weight)
            copy.name = self._outside(weight.name)
            weights.append(copy)
        for name in sorted(self._written):
            self._outside(name)
        nodes = [self._moved(node, domains) for node in self._graph.node]
        for number, (found, wanted) in enumerate(self._copies):
            name, read = self._fresh(f"copy{number}"), self._names.get(found, found)
            nodes.append(NodeProto(op_type="Identity", name=name, input=[read], output=[wanted]))
        return Branch(tuple(weights), tuple(self._ordered(nodes)))

    def _ordered(self, nodes: "list[NodeProto]") -> "list[NodeProto]":
        writers = {name: number for number, node in enumerate(nodes) for name in node.output if name}
        sources = [{writers[name] for name in reads(node) if name in writers} for node in nodes]
        order = topological_order(sources)
        if len(order) < len(nodes):
            raise DamagedValueError(f"a branch of {_label(self._if)} has a cycle")
        needed = needed_for((writers[name] for name in self._if.output if name in writers), sources)
        return [nodes[number] for number in order if number in needed]

    def _moved(self, node: "NodeProto", domains: Container[str]) -> "NodeProto":
        from onnx import NodeProto

        moved = NodeProto()
        moved.CopyFrom(node)
        if moved.domain in NAMES_OF_ONNX:
            moved.domain = ""
        if moved.domain not in domains:
            raise DamagedValueError(
                f"{_label(node)} is of the domain {moved.domain[:80]!r}, whose version the file does not declare"
            )
        moved.name = self._fresh(node.name) if node.name else ""
        _rename_all(moved.input, self._names)
        _rename_all(moved.output, self._names)
        for graph in graphs_inside(moved):
            rename_reads(graph, self._names)
        return moved

    def _outside(self, name: str) -> str:
        """Return the name of a tensor outside of the branch."""
        if name not in self._names:
            self._names[name] = self._fresh(name)
        return self._names[name]

    def _fresh(self, name: str) -> str:
        return self._taken.fresh(name, self._path)


def rename_reads(graph: "GraphProto", names: Mapping[str, str]) -> None:
    """Rename the outer tensors that a subgraph reads. A name of its own hides the outer one."""
    own = {it.name for it in graph.input} | {it.name for it in graph.initializer}
    own |= {name for node in graph.node for name in node.output}
    outer = {old: new for old, new in names.items() if old not in own}
    if not outer:
        return
    for node in graph.node:
        _rename_all(node.input, outer)
        for inner in graphs_inside(node):
            rename_reads(inner, outer)
    for output in graph.output:
        output.name = outer.get(output.name, output.name)


def _rename_all(found: "list[str]", names: Mapping[str, str]) -> None:
    for place, name in enumerate(found):
        if name in names:
            found[place] = names[name]


def _graph_of(node: "NodeProto", condition: bool) -> "GraphProto":
    wanted = "then_branch" if condition else "else_branch"
    for attribute in node.attribute:
        if attribute.name == wanted and attribute.HasField("g"):
            graph: GraphProto = attribute.g
            return graph
    raise DamagedValueError(f"{_label(node)} has no {wanted}")


def _refuse_inputs_and_sparse_weights(node: "NodeProto", graph: "GraphProto") -> None:
    for what, found in (("inputs", graph.input), ("sparse weights", graph.sparse_initializer)):
        if found:
            raise DamagedValueError(f"a branch of {_label(node)} has {what}, which are not supported")


def _label(node: "NodeProto") -> str:
    return repr((node.name or node.op_type)[:80])


def with_composites(graph: LayerGraph, nodes: "Sequence[NodeProto]") -> LayerGraph:
    """Return the graph with the layers that the metadata of its nodes declares; `nodes` has one for each layer."""
    annotations = [{it.key: it.value for it in node.metadata_props} for node in nodes]
    if not any(annotations):
        return graph
    annotated = {
        layer.index: AnnotatedNode(layer.name, layer.op, said, [it.layer for it in layer.feeds if it.layer is not None])
        for layer, said in zip(graph.layers, annotations, strict=True)
    }
    return _Merger(graph, group_nodes(annotated, graph.name)).graph()


class _Merger:
    def __init__(self, graph: LayerGraph, groups: Sequence[LayerNodes]) -> None:
        self._graph = graph
        self._groups = groups
        # The composite layer of each layer, and its number among the members of a repetition.
        self._place = {
            layer: (index, number)
            for index, group in enumerate(groups)
            for repetition in group.repetitions
            for number, layer in enumerate(repetition)
        }
        self._results = self._leaving()

    def graph(self) -> LayerGraph:
        old = self._graph
        layers = tuple([self._layer(index, group) for index, group in enumerate(self._groups)])
        return replace(old, layers=layers, heads=tuple([self._feed(head) for head in old.heads]))

    def _leaving(self) -> Sequence[Mapping[tuple[int, int], int]]:
        """Return the outputs that leave each layer: (member, output) to number."""
        leaving: list[set[tuple[int, int]]] = [set() for _ in self._groups]
        read = [(feed, self._place[layer.index][0]) for layer in self._graph.layers for feed in layer.feeds]
        for feed, reader in [*read, *((head, -1) for head in self._graph.heads)]:
            if feed.layer is not None:
                source, member = self._place[feed.layer]
                if source != reader:
                    leaving[source].add((member, feed.output))
        return [{result: number for number, result in enumerate(sorted(found))} for found in leaving]

    def _layer(self, index: int, group: LayerNodes) -> Layer:
        members = [self._graph.layers[member] for member in group.members]
        inside = {member: number for number, member in enumerate(group.members)}
        data: dict[Feed, TensorType] = {}
        # The weights by the number of their array.
        weights: dict[int, TensorType] = {}
        operators = tuple([self._operator(member, inside, data, weights) for member in members])
        results = self._results[index]
        return Layer(
            index=index,
            name=group.name,
            op="+".join(member.op for member in members),
            kind=group.kind or heaviest([member.kind for member in members]),
            operators=operators,
            feeds=tuple(data),
            data=tuple(data.values()),
            weights=tuple(weights.values()),
            results=tuple([Wire(Origin.OPERATOR, it, members[it].results[place].output) for it, place in results]),
            outputs=tuple([members[it].outputs[place] for it, place in results]),
            times=group.times,
            unmeasurable=next((it.unmeasurable for it in members if it.unmeasurable is not None), None),
            nodes=self._nodes(group),
            arrays=tuple(weights),
        )

    def _operator(
        self, layer: Layer, inside: Mapping[int, int], data: dict[Feed, TensorType], weights: dict[int, TensorType]
    ) -> Operator:
        """Return the operator of a member, and add its inputs to those of the layer."""
        (operator,) = layer.operators
        wires = []
        for wire in operator.inputs:
            if wire.origin is Origin.WEIGHT:
                array = layer.arrays[wire.number]
                weights.setdefault(array, layer.weights[wire.number])
                wires.append(Wire(Origin.WEIGHT, list(weights).index(array)))
                continue
            feed = layer.feeds[wire.number]
            if feed.layer is not None and feed.layer in inside:
                source = self._graph.layers[feed.layer]
                wires.append(Wire(Origin.OPERATOR, inside[feed.layer], source.results[feed.output].output))
            else:
                read = self._feed(feed)
                data.setdefault(read, layer.data[wire.number])
                wires.append(Wire(Origin.DATA, list(data).index(read)))
        return replace(operator, inputs=tuple(wires))

    def _feed(self, feed: Feed) -> Feed:
        if feed.layer is None:
            return feed
        index, member = self._place[feed.layer]
        return Feed(index, self._results[index][member, feed.output])

    def _nodes(self, group: LayerNodes) -> tuple[int, ...]:
        layers = [layer for repetition in group.repetitions for layer in repetition]
        return tuple(sorted(node for layer in layers for node in self._graph.layers[layer].nodes))
