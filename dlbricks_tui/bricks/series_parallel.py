"""Takes a directed acyclic graph apart into what stands in series and what stands in parallel."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True, eq=False)
class Fork:
    """Branches between the same two vertices; an empty one is an edge that passes the others by."""

    branches: tuple["Stretch", ...]


class Tie(NamedTuple):
    """What leads from one vertex of a tangle to another; its ends may be the vertices around the tangle."""

    source: int
    target: int
    stretch: "Stretch"


@dataclass(frozen=True, slots=True, eq=False)
class Tangle:
    """Vertices, in topological order, that are neither in series nor in parallel, and all that leads between them."""

    vertices: tuple[int, ...]
    ties: tuple[Tie, ...]


# Vertices, forks and tangles in series.
Stretch = list[int | Fork | Tangle]


def decompose(predecessors: Sequence[Sequence[int]]) -> Stretch:
    """The whole graph, whose vertices stand in topological order, as one stretch from a virtual entry to an exit.

    What is series-parallel takes linear time, however deep it nests; a tangle costs once more its size for each level
    of nesting around it.
    """
    web = _Web(predecessors)
    web.reduce()
    return web.untangled()


class _Part(NamedTuple):
    """Vertices that hang together, between two others, and the stretch that they are to become."""

    stretch: Stretch
    start: int
    end: int
    vertices: Sequence[int]


class _Web:
    """The vertices that are left, and for each pair with edges the stretches between the two."""

    def __init__(self, predecessors: Sequence[Sequence[int]]) -> None:
        count = len(predecessors)
        self.entry, self.exit = count, count + 1
        self.sources: list[set[int]] = [set(found) or {self.entry} for found in predecessors]
        self.sources += [set(), set()]
        self.targets: list[dict[int, list[Stretch]]] = [{} for _ in self.sources]
        for target, sources in enumerate(self.sources):
            for source in sources:
                self.targets[source][target] = [[]]
        # Without any vertex, the entry itself leads to the exit.
        for vertex in range(count) if count else (self.entry,):
            if not self.targets[vertex]:
                self.targets[vertex][self.exit] = [[]]
                self.sources[self.exit].add(vertex)

    def reduce(self) -> None:
        """Puts every vertex with one neighbour on either side into the stretch between them, until none is left."""
        pending = list(range(self.entry))[::-1]
        while pending:
            vertex = pending.pop()
            if len(self.sources[vertex]) != 1 or len(self.targets[vertex]) != 1:
                continue
            source = self.sources[vertex].pop()
            target, behind = self.targets[vertex].popitem()
            stretch = _in_series(self.targets[source].pop(vertex))
            # What is behind is short, as vertices come in topological order: nothing long is copied.
            stretch += [vertex, *_in_series(behind)]
            self.sources[target].remove(vertex)
            if target in self.targets[source]:
                # Both ends lose a neighbour, so that now they may have one on either side.
                pending += [end for end in (source, target) if end < self.entry]
            self.targets[source].setdefault(target, []).append(stretch)
            self.sources[target].add(source)

    def untangled(self) -> Stretch:
        """What is left, from the outside to the inside."""
        left = [vertex for vertex in range(self.entry) if self.sources[vertex]]
        tasks: list[_Part] = []
        whole = _in_series(self._branches(self.entry, self.exit, left, tasks))
        while tasks:
            part = tasks.pop()
            gaps = self._gaps(part)
            if len(gaps) == 1:
                part.stretch.append(self._tangle(part.end, part.vertices))
                continue
            for start, end, inner in gaps:
                inner_tasks: list[_Part] = []
                branches = self._branches(start, end, inner, inner_tasks)
                if len(branches) == 1 and inner:
                    # All vertices through which every path leads are between the gaps.
                    part.stretch.append(self._tangle(end, inner))
                else:
                    part.stretch.extend(_in_series(branches))
                    tasks += inner_tasks
                if end != part.end:
                    part.stretch.append(end)
        return whole

    def _branches(self, start: int, end: int, inner: Sequence[int], tasks: list["_Part"]) -> list[Stretch]:
        """What leads from start to end directly or through the vertices, which become tasks, part by part."""
        parts = [_Part([], start, end, vertices) for vertices in self._connected(inner)]
        tasks += parts
        return [*self.targets[start].get(end, ()), *(part.stretch for part in parts)]

    def _connected(self, vertices: Sequence[int]) -> list[list[int]]:
        """The vertices by which of them hang together without the two that enclose them all."""
        inside = set(vertices)
        parts = []
        for first in vertices:
            if first not in inside:
                continue
            inside.remove(first)
            part, pending = [], [first]
            while pending:
                vertex = pending.pop()
                part.append(vertex)
                near = inside.intersection((*self.sources[vertex], *self.targets[vertex]))
                inside -= near
                pending += near
            parts.append(sorted(part))
        return parts

    def _gaps(self, part: "_Part") -> list[tuple[int, int, list[int]]]:
        """The part between the vertices through which every path leads: start, end and what lies between them."""
        gaps = []
        start = part.start
        inner: list[int] = []
        open_edges = sum(vertex in self.targets[start] for vertex in part.vertices)
        for vertex in part.vertices:
            if open_edges == len(self.sources[vertex]):
                gaps.append((start, vertex, inner))
                start, inner = vertex, []
            else:
                inner.append(vertex)
            open_edges += len(self.targets[vertex]) - len(self.sources[vertex])
        return [*gaps, (start, part.end, inner)]

    def _tangle(self, exit_: int, vertices: Sequence[int]) -> Tangle:
        pairs = [(source, vertex) for vertex in vertices for source in self.sources[vertex]]
        pairs += [(vertex, exit_) for vertex in vertices if exit_ in self.targets[vertex]]
        ties = [Tie(source, target, _in_series(self.targets[source][target])) for source, target in pairs]
        return Tangle(tuple(vertices), tuple(ties))


def _in_series(branches: Sequence[Stretch]) -> Stretch:
    return branches[0] if len(branches) == 1 else [Fork(tuple(branches))]
