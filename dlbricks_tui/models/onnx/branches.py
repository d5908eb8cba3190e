"""Nodes that stand for others: the branch of an `If` that runs in its place, and layers composed of several nodes."""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dlbricks_tui.models.composites import AnnotatedNode, GroupedNodes, group_nodes
from dlbricks_tui.models.digraphs import needed_for, topological_order
from dlbricks_tui.models.graph import Feed, Layer, LayerGraph, LayerReads, Origin, Wire
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
    wanted_branch = "then_branch" if condition else "else_branch"
    graph = next((it.g for it in node.attribute if it.name == wanted_branch and it.HasField("g")), None)
    if graph is None:
        raise DamagedValueError(f"{_label(node)} has no {wanted_branch}")
    outputs = list(node.output)
    if len(graph.output) != len(outputs):
        raise DamagedValueError(f"a branch of {_label(node)} has another number of outputs than the node")
    for what, found in (("inputs", graph.input), ("sparse weights", graph.sparse_initializer)):
        if found:
            raise DamagedValueError(f"a branch of {_label(node)} has {what}, which are not supported")
    taken.add(filter(None, outputs))
    inside = _Inside(node, graph, taken)
    for made, wanted in zip(graph.output, outputs, strict=True):
        inside.put_out(made.name, wanted)
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
    read = [(*feed, layer.index) for layer in graph.layers for feed in layer.feeds]
    groups = GroupedNodes(group_nodes(annotated, graph.name), [*read, *((*head, None) for head in graph.heads)])
    layers = tuple([_composite_layer(graph, groups, index) for index in range(len(groups.layers))])
    return replace(graph, layers=layers, heads=tuple([_feed(groups, head) for head in graph.heads]))


def _feed(groups: GroupedNodes, feed: Feed) -> Feed:
    return feed if feed.layer is None else groups.feed(feed.layer, feed.output)


def _composite_layer(graph: LayerGraph, groups: GroupedNodes, index: int) -> Layer:
    group, results = groups.layers[index], groups.results[index]
    members = [graph.layers[member] for member in group.members]
    inside = {member: number for number, member in enumerate(group.members)}
    reads, operators = LayerReads(), []
    for layer in members:
        (operator,) = layer.operators
        wires = []
        for wire in operator.inputs:
            feed = layer.feeds[wire.number] if wire.origin is Origin.DATA else None
            if feed is None:
                wires.append(reads.weight(layer.arrays[wire.number], layer.weights[wire.number]))
            elif feed.layer is not None and feed.layer in inside:
                made = graph.layers[feed.layer].results[feed.output]
                wires.append(Wire(Origin.OPERATOR, inside[feed.layer], made.output))
            else:
                wires.append(reads.tensor(_feed(groups, feed), layer.data[wire.number]))
        operators.append(replace(operator, inputs=tuple(wires)))
    return Layer(
        index=index,
        name=group.name,
        op="+".join(member.op for member in members),
        kind=group.kind or heaviest([member.kind for member in members]),
        operators=tuple(operators),
        feeds=tuple(reads.feeds),
        data=tuple(reads.data),
        weights=tuple(reads.weights),
        results=tuple([Wire(Origin.OPERATOR, it, members[it].results[place].output) for it, place in results]),
        outputs=tuple([members[it].outputs[place] for it, place in results]),
        times=group.times,
        unmeasurable=next((it.unmeasurable for it in members if it.unmeasurable is not None), None),
        nodes=tuple(sorted(node for part in group.repetitions for it in part for node in graph.layers[it].nodes)),
        arrays=tuple(reads.arrays),
    )
