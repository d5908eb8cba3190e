"""Which operators of an MXNet file form one layer, and how often it is paid."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from dlbricks_tui.models.errors import UnreadableModelError
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.models.mxnet_file import SymbolFile
from dlbricks_tui.models.mxnet_variables import LAYER_ATTRIBUTE, Role

KIND_ATTRIBUTE = "__kind__"
TIMES_ATTRIBUTE = "__times__"


@dataclass(frozen=True, slots=True)
class Group:
    """The nodes of one layer: of its first repetition, and of all of them in order."""

    name: str
    kind: Kind | None
    times: int
    members: tuple[int, ...]
    repetitions: tuple[tuple[int, ...], ...]


def group_layers(file: SymbolFile, roles: Mapping[int, Role], where: str, composites: bool) -> tuple[Group, ...]:
    """The layers of a file in a topological order; `composites` says whether `__layer__` is heeded."""
    members: dict[str | int, list[int]] = defaultdict(list)
    for number, node in enumerate(file.nodes):
        if node.is_variable and roles[number] is not Role.CONSTANT:
            continue
        declared = node.attributes.get(LAYER_ATTRIBUTE) if composites else None
        members[number if declared is None else declared].append(number)
    groups = [_group(file, key, nodes, where) for key, nodes in members.items()]
    return _in_order(file, groups, where)


def _group(file: SymbolFile, key: str | int, nodes: list[int], where: str) -> Group:
    first = file.nodes[nodes[0]]
    if isinstance(key, int):
        kind = Kind.CONSTANT if first.is_variable else None
        return Group(first.name or f"{first.op.lower()}{key}", kind, 1, (key,), ((key,),))
    label = f"{where}: layer {key[:80]!r}"
    times = _times(first.attributes.get(TIMES_ATTRIBUTE, "1"), label)
    if len(nodes) % times:
        raise UnreadableModelError(f"{label} has {len(nodes)} operators, which is not {times} times the same")
    size = len(nodes) // times
    repetitions = tuple(tuple(nodes[start : start + size]) for start in range(0, len(nodes), size))
    written = [[file.nodes[number].op for number in repetition] for repetition in repetitions]
    if any(ops != written[0] for ops in written):
        raise UnreadableModelError(f"{label} is repeated {times} times, but its repetitions differ")
    return Group(key, _kind(first.attributes.get(KIND_ATTRIBUTE), label), times, repetitions[0], repetitions)


def _times(text: str, label: str) -> int:
    if not text.isdigit() or not 1 <= int(text[:9]) <= 1_000_000:
        raise UnreadableModelError(f"{label} has {TIMES_ATTRIBUTE} {text[:20]!r}; give a number from 1 to 1000000")
    return int(text)


def _kind(text: str | None, label: str) -> Kind | None:
    if text is None:
        return None
    try:
        return Kind(text)
    except ValueError:
        known = ", ".join(kind.value for kind in Kind)
        raise UnreadableModelError(f"{label} has {KIND_ATTRIBUTE} {text[:40]!r}; it must be one of {known}") from None


def _in_order(file: SymbolFile, groups: Sequence[Group], where: str) -> tuple[Group, ...]:
    """Producers before readers, otherwise as the file has them."""
    owner = {node: number for number, group in enumerate(groups) for nodes in group.repetitions for node in nodes}
    sources = [
        {owner[entry.node] for node in group.members for entry in file.nodes[node].inputs if entry.node in owner}
        - {number}
        for number, group in enumerate(groups)
    ]
    if all(source < number for number, found in enumerate(sources) for source in found):
        return tuple(groups)
    order = _topological(sources)
    if len(order) < len(groups):
        stuck = groups[min(set(range(len(groups))) - set(order))]
        raise UnreadableModelError(f"{where}: layer {stuck.name[:80]!r} depends on itself through other layers")
    return tuple(groups[number] for number in order)


def _topological(sources: Sequence[set[int]]) -> list[int]:
    readers: list[list[int]] = [[] for _ in sources]
    for number, found in enumerate(sources):
        for source in found:
            readers[source].append(number)
    waits_for = [len(found) for found in sources]
    ready = [number for number, count in enumerate(waits_for) if not count]
    heapify(ready)
    order: list[int] = []
    while ready:
        number = heappop(ready)
        order.append(number)
        for reader in readers[number]:
            waits_for[reader] -= 1
            if not waits_for[reader]:
                heappush(ready, reader)
    return order
