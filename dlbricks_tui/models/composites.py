"""The operators of a model file that form one layer, and its repetitions."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, NoReturn

from dlbricks_tui.models.errors import UnreadableModelError
from dlbricks_tui.models.graph import (
    Feed,
    Layer,
    LayerGraph,
    LayerReads,
    Operator,
    Origin,
    TensorType,
    Wire,
    depth_first,
    topological_order,
)
from dlbricks_tui.models.kinds import Kind, heaviest

LAYER_ATTRIBUTE = "__layer__"
KIND_ATTRIBUTE = "__kind__"
TIMES_ATTRIBUTE = "__times__"
MOST_TIMES = 1_000_000
_KINDS = {kind.value: kind for kind in Kind}


class _Group(NamedTuple):
    """The layers of a file that are one. Each repetition has the same order."""

    name: str
    kind: Kind | None
    repetitions: tuple[tuple[int, ...], ...]


def with_composites(graph: LayerGraph, annotations: Sequence[Mapping[str, str]]) -> LayerGraph:
    """Return a graph with the layers that its file declares: there is a layer for each node and stored array so far.

    Layers that share a `__layer__` are one, or several repetitions of one. They are in topological order, otherwise in
    the order of the file.
    """
    if not any(LAYER_ATTRIBUTE in said or TIMES_ATTRIBUTE in said for said in annotations):
        return graph
    old = graph.layers
    members: dict[str | int, list[int]] = defaultdict(list)
    for layer, said in zip(old, annotations, strict=True):
        declared = said.get(LAYER_ATTRIBUTE)
        if declared is None and TIMES_ATTRIBUTE in said:
            label = f"node {layer.nodes[0]} ({layer.name[:80]!r})"
            raise UnreadableModelError(
                f"{graph.name}: {label} has {TIMES_ATTRIBUTE} but no {LAYER_ATTRIBUTE} to repeat"
            )
        members[layer.index if declared is None else declared].append(layer.index)
    groups = [
        _Group(old[key].name, None, ((key,),)) if isinstance(key, int) else _declared(graph, annotations, key, numbers)
        for key, numbers in members.items()
    ]
    owner = {layer: number for number, group in enumerate(groups) for part in group.repetitions for layer in part}
    sources = [
        {owner[source] for layer in group.repetitions[0] for source in graph.predecessors[layer]} - {number}
        for number, group in enumerate(groups)
    ]
    order = topological_order(sources)
    if len(order) < len(groups):
        stuck = groups[min(set(range(len(groups))).difference(order))]
        what = f"layer {stuck.name[:80]!r} is part of a cycle of layers, or depends on one"
        raise UnreadableModelError(f"{graph.name}: {what}")
    groups = [groups[number] for number in order]
    joined, _ = joined_groups(graph, [group.repetitions for group in groups])
    layers = [
        replace(layer, name=name, kind=kind or layer.kind, times=len(repetitions))
        for layer, (name, kind, repetitions) in zip(joined.layers, groups, strict=True)
    ]
    return replace(joined, layers=tuple(layers))


def joined_groups(
    graph: LayerGraph, groups: Sequence[Sequence[Sequence[int]]]
) -> tuple[LayerGraph, Mapping[Feed, Feed]]:
    """Return a graph with one layer for each group of layers, in the order of the groups, and its tensors by old ones.

    A group has one or several repetitions of its layers, each in the same order.
    """
    # The group of each layer, and its number among the layers of one repetition.
    place = {
        layer: (number, member)
        for number, repetitions in enumerate(groups)
        for repetition in repetitions
        for member, layer in enumerate(repetition)
    }
    # The outputs of members that leave each group.
    leaving: list[set[tuple[int, int]]] = [set() for _ in groups]
    read = [(feed, place[layer.index][0]) for layer in graph.layers for feed in layer.feeds]
    for feed, reader in (*read, *((head, -1) for head in graph.heads)):
        if feed.layer is not None and place[feed.layer][0] != reader:
            number, member = place[feed.layer]
            leaving[number].add((member, feed.output))
    results = [sorted(found) for found in leaving]
    moved = {feed: feed for feed in (Feed(None, number) for number in range(len(graph.inputs)))}
    for number, repetitions in enumerate(groups):
        for part in repetitions:
            tensors = enumerate(results[number])
            moved |= {Feed(part[member], output): Feed(number, at) for at, (member, output) in tensors}
    layers = []
    for number, (first, *others) in enumerate(groups):
        left = [Feed(first[member], output) for member, output in results[number]]
        found = joined_layer([graph.layers[it] for it in first], left, moved.__getitem__)
        nodes = [node for part in (first, *others) for layer in part for node in graph.layers[layer].nodes]
        layers.append(replace(found, index=number, nodes=tuple(sorted(nodes))))
    return replace(graph, layers=tuple(layers), heads=tuple([moved[head] for head in graph.heads])), moved


def _declared(graph: LayerGraph, annotations: Sequence[Mapping[str, str]], name: str, numbers: list[int]) -> _Group:
    """Return the group of the layers that share a `__layer__`."""

    def refuse(what: str) -> NoReturn:
        raise UnreadableModelError(f"{graph.name}: layer {name[:80]!r} {what}")

    def agreed(attribute: str) -> str | None:
        found = {annotations[number].get(attribute) for number in numbers}
        if len(found) > 1:
            shown = " and ".join(sorted(repr(text and text[:40]) for text in found)[:2])
            refuse(f"has operators of different {attribute}: {shown}")
        return found.pop()

    said_times, said_kind = agreed(TIMES_ATTRIBUTE), agreed(KIND_ATTRIBUTE)
    text = "1" if said_times is None else said_times
    # Check the length first: Python takes long to read a long row of digits.
    if len(text) > 7 or not (text.isascii() and text.isdigit()) or not 1 <= int(text) <= MOST_TIMES:
        refuse(f"has {TIMES_ATTRIBUTE} {text[:20]!r}; give a number from 1 to {MOST_TIMES}")
    if said_kind is not None and said_kind not in _KINDS:
        refuse(f"has {KIND_ATTRIBUTE} {said_kind[:40]!r}; it must be one of {', '.join(_KINDS)}")
    times, kind = int(text), None if said_kind is None else _KINDS[said_kind]
    if len(numbers) == times == 1:
        return _Group(name, kind, (tuple(numbers),))
    size, rest = divmod(len(numbers), times)
    if rest:
        refuse(f"has {len(numbers)} operators, which is not {times} times the same")
    parts = [numbers[start : start + size] for start in range(0, len(numbers), size)]
    written = [[[it.native.op for it in graph.layers[number].operators] for number in part] for part in parts]
    if any(ops != written[0] for ops in written):
        refuse(f"is repeated {times} times, but its repetitions differ")
    # An order that depends on the wiring only, as files list equal layers differently.
    place = {number: position for position, number in enumerate(parts[0])}
    sources = [[place[it] for it in graph.predecessors[number] if it in place] for number in parts[0]]
    read = {source for found in sources for source in found}
    unread = [position for position in range(size) if position not in read]
    order = depth_first([*sources, unread])[:-1]
    return _Group(name, kind, tuple([tuple([part[position] for position in order]) for part in parts]))


def joined_layer(members: Sequence[Layer], results: Sequence[Feed], outside: Callable[[Feed], Feed]) -> Layer:
    """Return layers as one, with the index and name of the first; `results` are the tensors that leave it.

    `outside` returns a tensor of another layer as the new one reads it. Layers that share an array share the weight.
    """
    reads, operators = LayerReads(), list[Operator]()
    # Each tensor of a member: the operator that makes it, and its type.
    made: dict[Feed, tuple[Wire, TensorType]] = {}
    for layer in members:
        begin = len(operators)
        feeds = zip(layer.feeds, layer.data, strict=True)
        data = [made[it][0] if it in made else reads.tensor(outside(it), found) for it, found in feeds]
        arrays = layer.arrays or [(layer.index, number) for number in range(len(layer.weights))]
        weights = [reads.weight(*it) for it in zip(arrays, layer.weights, strict=True)]
        for operator in layer.operators:
            wires = [
                wire._replace(number=begin + wire.number)
                if wire.origin is Origin.OPERATOR
                else (data if wire.origin is Origin.DATA else weights)[wire.number]
                for wire in operator.inputs
            ]
            operators.append(replace(operator, inputs=tuple(wires)))
        for place, (wire, found) in enumerate(zip(layer.results, layer.outputs, strict=True)):
            is_weight = wire.origin is Origin.WEIGHT
            leaves = weights[wire.number] if is_weight else wire._replace(number=begin + wire.number)
            made[Feed(layer.index, place)] = leaves, found
    return Layer(
        index=members[0].index,
        name=members[0].name,
        op="+".join(part for operator in operators for part in operator.parts) or members[0].op,
        kind=heaviest([layer.kind for layer in members]),
        operators=tuple(operators),
        feeds=tuple(reads.feeds),
        data=tuple(reads.data),
        weights=tuple(reads.weights),
        results=tuple([made[it][0] for it in results]),
        outputs=tuple([made[it][1] for it in results]),
        unmeasurable=next((layer.unmeasurable for layer in members if layer.unmeasurable is not None), None),
        nodes=tuple(sorted(node for layer in members for node in layer.nodes)),
        # Without numbers of arrays, each weight has its own.
        arrays=tuple(reads.arrays) if all(layer.arrays or not layer.weights for layer in members) else (),
    )
