"""The nodes that OpenVINO executes, and the nodes of the ONNX model behind each of them.

OpenVINO keeps the name of the last node of those that it replaces by one, so some nodes are not named any more. Such a
node belongs to the executed node that its readers belong to. If these are several, it belongs to the one in front.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dlbricks_tui.runtime.inside.onnx_bytes import Node, source_of

# Names of our nodes and tensors, possibly with a suffix. The numbers of nodes count.
_OUR_NAME = re.compile(r"(?:node|t)(\d+)(?:$|[/_])")
_OWN_NUMBER = re.compile(r"node(\d+)$")
_INPUT, _OUTPUT, _CONSTANT, _CONVERSION = "Input", "Output", "Const", "Reorder"


# Nodes of this domain stand for conversions of layouts, which OpenVINO inserts by itself.
CONVERSIONS = "openvino"
# The number for what belongs to no node.
NO_NODE = 1 << 30


@dataclass(frozen=True)
class Conversion:
    """A conversion of a layout in a network: its number, and the numbers of the nodes before and behind it.

    `source` is None for an input of the network, and there are no readers if the result is an output.
    """

    number: int
    source: int | None
    readers: frozenset[int]


@dataclass(frozen=True)
class Executed:
    """A node that OpenVINO executes in each run: its name, kind, kernel, and the layout and data type of its results.

    `reads` are the places of the nodes that it reads, None for an input of the model. `numbers` are those of the ONNX
    nodes behind it, and `leaves` is true if its result is an output of the model. A conversion of a layout has no ONNX
    nodes.
    """

    name: str
    kind: str
    kernel: str
    layout: str
    dtype: str
    reads: tuple[int | None, ...]
    leaves: bool = False
    numbers: tuple[int, ...] = ()

    @property
    def is_conversion(self) -> bool:
        return self.kind == _CONVERSION


def number_of(node: Node) -> int | None:
    """Return the number in the name of one of our nodes."""
    match = _OWN_NUMBER.match(node.name)
    return int(match[1]) if match else None


def separated(nodes: Sequence[Node]) -> tuple[list[Node], list[Conversion]]:
    """Return the nodes of a network as OpenVINO reads them, and the conversions among them."""
    passed_on = {node.outputs[0]: node.inputs[0] for node in nodes if node.domain == CONVERSIONS}
    kept = [
        node._replace(inputs=tuple([source_of(name, passed_on) for name in node.inputs]))
        for node in nodes
        if node.domain != CONVERSIONS
    ]
    makers = {name: number_of(node) for node in kept for name in node.outputs}
    found = []
    for node in nodes:
        if node.domain == CONVERSIONS:
            readers = (number_of(it) for it in nodes if node.outputs[0] in it.inputs)
            known = frozenset(number for number in readers if number is not None)
            source, number = makers.get(source_of(node.inputs[0], passed_on)), number_of(node)
            found.append(Conversion(-1 if number is None else number, source, known))
    return kept, found


def numbers_of(executed: Sequence[Executed], conversions: Sequence[Conversion], nodes: Sequence[Node]) -> list[int]:
    """Return for each executed node the number of a node of the network: of a product, if there is one in it.

    A conversion that the network does not name belongs to its reader. NO_NODE stands for conversions of an input or
    output that it does not name: where a part of a model begins or ends, the whole model has none.
    """
    products = {number_of(it) for it in nodes if it.op.startswith("MatMul")}
    readers: list[set[int]] = [set() for _ in executed]
    for it in executed:
        for place in it.reads:
            if place is not None:
                readers[place].update(it.numbers)
    found = []
    for place, it in enumerate(executed):
        if not it.is_conversion:
            last = it.numbers[-1] if it.numbers else NO_NODE
            found.append(next((number for number in it.numbers if number in products), last))
            continue
        source = it.reads[0]
        # None for a conversion of an input.
        before: Sequence[int | None] = (None,) if source is None else executed[source].numbers
        named = [each for each in conversions if each.source in before]
        same = (it_.number for it_ in named if it_.readers & readers[place] or (it.leaves and not it_.readers))
        found.append(next(same, max(readers[place], default=NO_NODE) if source is not None else NO_NODE))
    return found


def executed_nodes(compiled: Any, nodes: Sequence[Node]) -> list[Executed]:
    """Return what OpenVINO executes of a model, in order. Nodes that read only constants run once and are left out."""
    found: list[Executed] = []
    named: list[set[int]] = []
    # The place of each node; None for inputs. Constants have none.
    places: dict[str, int | None] = {}
    for op in sorted(compiled.get_runtime_model().get_ordered_ops(), key=lambda op: int(_fact(op, "execOrder"))):
        kind, name = _fact(op, "layerType"), op.get_friendly_name()
        sources = [op.input_value(place).get_node().get_friendly_name() for place in range(op.get_input_size())]
        reads = tuple([places[source] for source in sources if source in places])
        if kind == _INPUT:
            places[name] = None
        elif kind == _OUTPUT:
            for place in reads:
                if place is not None:
                    found[place] = replace(found[place], leaves=True)
        elif kind != _CONSTANT and reads:
            places[name] = len(found)
            known = _fact(op, "primitiveType"), _fact(op, "outputLayouts"), _fact(op, "outputPrecisions")
            found.append(Executed(name, kind, *known, reads))
            names = () if kind == _CONVERSION else (*_fact(op, "originalLayersNames").split(","), name)
            named.append({int(match[1]) for match in map(_OUR_NAME.match, names) if match})
    return _shared_out(found, named, [node for node in nodes if number_of(node) is not None])


def _fact(op: Any, key: str) -> str:
    info = op.get_rt_info()
    return str(info[key].astype(str)) if key in info else ""


def _shared_out(found: Sequence[Executed], named: Sequence[set[int]], nodes: Sequence[Node]) -> list[Executed]:
    """Return the executed nodes with all ONNX nodes shared out among them."""
    owners: dict[int, int] = {}
    for place, numbers in enumerate(named):
        owners.update((number, place) for number in numbers if number not in owners)
    behind = [set(numbers) for numbers in named]
    for number, place in _places_of_unnamed(nodes, owners).items():
        behind[place].add(number)
    _give_numbers(found, behind)
    return [replace(it, numbers=tuple(sorted(behind[place]))) for place, it in enumerate(found)]


def _places_of_unnamed(nodes: Sequence[Node], owners: Mapping[int, int]) -> dict[int, int]:
    """Return the executed nodes that the nodes without a name in the executed graph belong to."""
    numbers = {output: number_of(node) for node in nodes for output in node.outputs if output}
    readers: dict[int, list[int]] = {}
    for node in nodes:
        reader = number_of(node)
        for name in node.inputs:
            source = numbers.get(name)
            if source is not None and reader is not None:
                readers.setdefault(source, []).append(reader)
    placed = dict(owners)
    known = [(number_of(node), node) for node in nodes]
    waiting = [(number, node) for number, node in known if number is not None and number not in owners]
    # Readers come first, so that a row of unnamed nodes ends up in one place.
    for number, _ in reversed(waiting):
        candidates = {placed[it] for it in readers.get(number, ()) if it in placed}
        if len(candidates) == 1:
            placed[number] = candidates.pop()
    for number, node in waiting:
        if number not in placed:
            sources = [placed[it] for it in map(numbers.get, node.inputs) if it is not None and it in placed]
            behind = sources or [placed[it] for it in readers.get(number, ()) if it in placed]
            if behind:
                placed[number] = behind[0]
    return {number: place for number, place in placed.items() if number not in owners}


def _give_numbers(found: Sequence[Executed], behind: Sequence[set[int]]) -> None:
    """Give executed nodes that OpenVINO has added the ONNX nodes of a neighbour, a reader if there is one.

    Conversions between the two do not count.
    """
    sources = [_beyond_conversions(it.reads, found) for it in found]
    readers: list[list[int]] = [[] for _ in found]
    for place, it in enumerate(found):
        for source in sources[place] if not it.is_conversion else ():
            readers[source].append(place)
    added = [place for place, it in enumerate(found) if not it.is_conversion and not behind[place]]
    for place in reversed(added):
        behind[place].update(next((behind[it] for it in readers[place] if behind[it]), ()))
    for place in added:
        if not behind[place]:
            behind[place].update(next((behind[it] for it in sources[place] if behind[it]), ()))


def _beyond_conversions(places: Iterable[int | None], found: Sequence[Executed]) -> list[int]:
    """Return the nodes that make these results, before any conversions."""
    made: list[int] = []
    for place in places:
        if place is not None:
            it = found[place]
            made += _beyond_conversions(it.reads, found) if it.is_conversion else [place]
    return made
