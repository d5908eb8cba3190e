"""The operators of a model file that form one layer, and its number of repetitions."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

from dlbricks_tui.models.digraphs import depth_first, topological_order
from dlbricks_tui.models.errors import UnreadableModelError
from dlbricks_tui.models.kinds import Kind

LAYER_ATTRIBUTE = "__layer__"
KIND_ATTRIBUTE = "__kind__"
TIMES_ATTRIBUTE = "__times__"
MOST_TIMES = 1_000_000
_KINDS = {kind.value: kind for kind in Kind}


@dataclass(frozen=True, slots=True)
class LayerNodes:
    """The nodes of one layer: operators or a stored array. Each repetition has the same order."""

    name: str
    kind: Kind | None
    repetitions: tuple[tuple[int, ...], ...]

    @property
    def members(self) -> tuple[int, ...]:
        """The nodes of the first repetition."""
        return self.repetitions[0]

    @property
    def times(self) -> int:
        return len(self.repetitions)


class AnnotatedNode(NamedTuple):
    """An operator or stored array of a model file: its annotations, and the numbers of the nodes that it reads."""

    name: str
    op: str
    annotations: Mapping[str, str]
    sources: Sequence[int]


def group_nodes(nodes: Mapping[int, AnnotatedNode], where: str) -> tuple[LayerNodes, ...]:
    """Return the layers of these nodes, given by their numbers, in topological order; `where` names the file."""
    members: dict[str | int, list[int]] = defaultdict(list)
    for number, node in nodes.items():
        declared = node.annotations.get(LAYER_ATTRIBUTE)
        if declared is None and TIMES_ATTRIBUTE in node.annotations:
            label = f"node {number} ({node.name[:80]!r})"
            raise UnreadableModelError(f"{where}: {label} has {TIMES_ATTRIBUTE} but no {LAYER_ATTRIBUTE} to repeat")
        members[number if declared is None else declared].append(number)
    groups = [
        _single(nodes[key], key) if isinstance(key, int) else _Composite(nodes, key, numbers, where).group()
        for key, numbers in members.items()
    ]
    return _in_order(nodes, groups, where)


def _single(node: AnnotatedNode, number: int) -> LayerNodes:
    return LayerNodes(node.name or f"{node.op.lower()}{number}", None, ((number,),))


class _Composite:
    """The nodes that share a `__layer__`."""

    def __init__(self, nodes: Mapping[int, AnnotatedNode], name: str, numbers: list[int], where: str) -> None:
        self._nodes = nodes
        self._name = name
        self._numbers = numbers
        self._where = where

    def group(self) -> LayerNodes:
        times, kind = self._times(), self._kind()
        if len(self._numbers) == times == 1:
            return LayerNodes(self._name, kind, (tuple(self._numbers),))
        size, rest = divmod(len(self._numbers), times)
        if rest:
            self._refuse(f"has {len(self._numbers)} operators, which is not {times} times the same")
        parts = [self._numbers[start : start + size] for start in range(0, len(self._numbers), size)]
        written = [[self._nodes[number].op for number in part] for part in parts]
        if any(ops != written[0] for ops in written):
            self._refuse(f"is repeated {times} times, but its repetitions differ")
        order = _depth_first(self._nodes, parts[0])
        return LayerNodes(self._name, kind, tuple([tuple([part[place] for place in order]) for part in parts]))

    def _times(self) -> int:
        text = self._agreed(TIMES_ATTRIBUTE)
        if text is None:
            return 1
        # Check the length first: Python takes long to read a long row of digits.
        if len(text) > 7 or not (text.isascii() and text.isdigit()) or not 1 <= int(text) <= MOST_TIMES:
            self._refuse(f"has {TIMES_ATTRIBUTE} {text[:20]!r}; give a number from 1 to {MOST_TIMES}")
        return int(text)

    def _kind(self) -> Kind | None:
        text = self._agreed(KIND_ATTRIBUTE)
        if text is not None and text not in _KINDS:
            self._refuse(f"has {KIND_ATTRIBUTE} {text[:40]!r}; it must be one of {', '.join(_KINDS)}")
        return None if text is None else _KINDS[text]

    def _agreed(self, attribute: str) -> str | None:
        found = {self._nodes[number].annotations.get(attribute) for number in self._numbers}
        if len(found) > 1:
            shown = " and ".join(sorted(repr(text and text[:40]) for text in found)[:2])
            self._refuse(f"has operators of different {attribute}: {shown}")
        return found.pop()

    def _refuse(self, what: str) -> NoReturn:
        raise UnreadableModelError(f"{self._where}: layer {self._name[:80]!r} {what}")


def _depth_first(nodes: Mapping[int, AnnotatedNode], members: Sequence[int]) -> list[int]:
    """Return the places of the members in an order that depends on the wiring only, as files list equal layers
    differently.
    """
    place = {number: position for position, number in enumerate(members)}
    sources = [[place[source] for source in nodes[number].sources if source in place] for number in members]
    read = {source for found in sources for source in found}
    unread = [position for position in range(len(members)) if position not in read]
    return depth_first([*sources, unread])[:-1]


def _in_order(nodes: Mapping[int, AnnotatedNode], groups: Sequence[LayerNodes], where: str) -> tuple[LayerNodes, ...]:
    """Return the groups in topological order, otherwise in the order of the file."""
    owner = {node: number for number, group in enumerate(groups) for part in group.repetitions for node in part}
    sources = [
        {owner[source] for node in group.members for source in nodes[node].sources if source in owner} - {number}
        for number, group in enumerate(groups)
    ]
    order = topological_order(sources)
    if len(order) < len(groups):
        stuck = groups[min(set(range(len(groups))).difference(order))]
        raise UnreadableModelError(
            f"{where}: layer {stuck.name[:80]!r} is part of a cycle of layers, or depends on one"
        )
    return tuple([groups[number] for number in order])
