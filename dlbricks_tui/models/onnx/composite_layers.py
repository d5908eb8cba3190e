"""Layers of several ONNX nodes: the metadata of the nodes declares them, as attributes do in symbol files."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dlbricks_tui.models.composites import AnnotatedNode, LayerNodes, group_nodes
from dlbricks_tui.models.graph import Feed, Layer, LayerGraph, Operator, Origin, TensorType, Wire
from dlbricks_tui.models.kinds import heaviest

if TYPE_CHECKING:
    from onnx import NodeProto


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
