"""The decomposition of a directed acyclic graph into parts in series and in parallel."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True, eq=False)
class Fork:
    """Branches between the same two vertices; an empty one is an edge that bypasses the others."""

    branches: tuple["Stretch", ...]


class Tie(NamedTuple):
    """A stretch from one vertex of a tangle to another; its ends may be the vertices around the tangle."""

    source: int
    target: int
    stretch: "Stretch"


@dataclass(frozen=True, slots=True, eq=False)
class Tangle:
    """Vertices, in topological order, that are neither in series nor in parallel, and the ties between them."""

    vertices: tuple[int, ...]
    ties: tuple[Tie, ...]


# Vertices, forks and tangles in series.
Stretch = list[int | Fork | Tangle]


def decompose(predecessors: Sequence[Sequence[int]]) -> Stretch:
    """Return a graph, whose vertices are in topological order, as one stretch from a virtual entry to a virtual exit.

    Series-parallel parts take linear time at any depth. A tangle takes time in proportion to its size for each level of
    nesting around it.
    """
    web = _Web(predecessors)
    web.reduce()
    return web.untangled()


class _Part(NamedTuple):
    """Connected vertices between two others, and the stretch that they become."""

    stretch: Stretch
    start: int
    end: int
    vertices: Sequence[int]


class _Web:
    """The remaining vertices, and the stretches between each pair with edges."""

    def __init__(self, predecessors: Sequence[Sequence[int]]) -> None:
        count = len(predecessors)
        self.entry, self.exit = count, count + 1
        self.sources: list[set[int]] = [set(found) or {self.entry} for found in predecessors]
        self.sources += [set(), set()]
        self.targets: list[dict[int, list[Stretch]]] = [{} for _ in self.sources]
        for target, sources in enumerate(self.sources):
            for source in sources:
                self.targets[source][target] = [[]]
        # Without vertices the entry leads to the exit.
        for vertex in range(count) if count else (self.entry,):
            if not self.targets[vertex]:
                self.targets[vertex][self.exit] = [[]]
                self.sources[self.exit].add(vertex)

    def reduce(self) -> None:
        """Move every vertex with one neighbour on each side into the stretch between these, until none is left."""
        pending = list(range(self.entry))[::-1]
        while pending:
            vertex = pending.pop()
            if len(self.sources[vertex]) != 1 or len(self.targets[vertex]) != 1:
                continue
            source = self.sources[vertex].pop()
            target, behind = self.targets[vertex].popitem()
            stretch = _in_series(self.targets[source].pop(vertex))
            # The part behind is short, since vertices come in topological order: copying it is cheap.
            stretch += [vertex, *_in_series(behind)]
            self.sources[target].remove(vertex)
            if target in self.targets[source]:
                # Both ends lose a neighbour, and may have one on each side now.
                pending += [end for end in (source, target) if end < self.entry]
            self.targets[source].setdefault(target, []).append(stretch)
            self.sources[target].add(source)

    def untangled(self) -> Stretch:
        """Return the remaining graph as a stretch, from the outside to the inside."""
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
        """Return the stretches from start to end; each connected part of the vertices becomes a task."""
        parts = [_Part([], start, end, vertices) for vertices in self._connected(inner)]
        tasks += parts
        return [*self.targets[start].get(end, ()), *(part.stretch for part in parts)]

    def _connected(self, vertices: Sequence[int]) -> list[list[int]]:
        """Return the connected components of these vertices without the two that enclose them."""
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
        """Return the pieces between the vertices that every path passes: start, end and the vertices between."""
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
