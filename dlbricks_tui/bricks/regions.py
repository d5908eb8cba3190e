"""The regions of a model: chains, parallel modules and repeated parts, with equal keys for equal regions.

They follow from the decomposition of a directed acyclic graph into parts in series and in parallel.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
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


class _Part(NamedTuple):
    """Connected vertices between two others, and the stretch that they become."""

    stretch: Stretch
    start: int
    end: int
    vertices: Sequence[int]


class _Web:
    """The vertices of a graph in topological order that remain, and the stretches between each pair with edges.

    They become one stretch from a virtual entry to a virtual exit. Series-parallel parts take linear time at any depth.
    A tangle takes time in proportion to its size for each level of nesting around it.
    """

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


# Regions compare by identity (`eq=False`) and print without their parts, since models may nest deeper than Python
# recurses. Regions of one model have equal keys if their structure and layers are equal.


@dataclass(frozen=True, slots=True, eq=False)
class Region:
    """A part of a model; those with equal keys are equal."""

    key: int
    # The number of its layers.
    size: int
    # Its first layer; for an empty part, the number of all layers.
    layer: int
    parts: tuple["Region", ...] = field(default=(), repr=False)


class Leaf(Region):
    """A region of a single layer."""


class Chain(Region):
    """Regions one after another; a branch that bypasses the others is a chain without parts."""


class Parallel(Region):
    """Chains that begin behind the same layer and end at the same join; both are outside."""


class Irregular(Region):
    """Regions, in topological order, that are connected neither in series nor in parallel."""


class Repeat(Region):
    """A module several times in a row. Each copy is one region: a chain if the module has several parts."""


@dataclass(frozen=True, slots=True, eq=False)
class RegionTree:
    """All regions of a model, and how often each key occurs among them."""

    root: Chain
    occurrences: Mapping[int, int] = field(repr=False)


def regions_of(predecessors: Sequence[Sequence[int]], signatures: Sequence[Hashable]) -> RegionTree:
    """Return the regions of an acyclic graph with layers in topological order; those of equal signatures are equal."""
    web = _Web(predecessors)
    web.reduce()
    root = _Builder(signatures).built(web.untangled())
    return RegionTree(root, Counter(region.key for region in walk(root)))


def walk(region: Region) -> Iterator[Region]:
    """Yield a region and all regions inside of it, in pre-order."""
    pending = [region]
    while pending:
        yield (found := pending.pop())
        pending += reversed(found.parts)


def layers_in(region: Region) -> Iterator[int]:
    """Yield the layers of a region, from left to right."""
    return (found.layer for found in walk(region) if isinstance(found, Leaf))


_FIRST_LAYER = attrgetter("layer")


class _Builder:
    """Builds regions from stretches, inner ones first, with equal keys for equal regions."""

    def __init__(self, signatures: Sequence[Hashable]) -> None:
        self._signatures = signatures
        self._keys: dict[Hashable, int] = {}
        self._chains: dict[int, Chain] = {}

    def built(self, whole: Stretch) -> Chain:
        for stretch in reversed(_with_all_inside(whole)):
            parts: list[Region] = []
            for piece in stretch:
                if isinstance(piece, int):
                    parts.append(self._leaf(piece))
                else:
                    parts.append(self._parallel(piece) if isinstance(piece, Fork) else self._irregular(piece))
            self._chains[id(stretch)] = self._chain(parts)
        return self._chains[id(whole)]

    def _key(self, *content: Hashable) -> int:
        return self._keys.setdefault(content, len(self._keys))

    def _leaf(self, layer: int) -> Leaf:
        return Leaf(self._key("layer", self._signatures[layer]), 1, layer)

    def _chain(self, parts: Sequence[Region]) -> Chain:
        key = self._key("chain", *(part.key for part in parts))
        first = parts[0].layer if parts else len(self._signatures)
        return Chain(key, sum(part.size for part in parts), first, self._grouped(parts))

    def _parallel(self, fork: Fork) -> Parallel:
        branches = sorted((self._chains[id(branch)] for branch in fork.branches), key=_FIRST_LAYER)
        key = self._key("parallel", *sorted(branch.key for branch in branches))
        return Parallel(key, sum(branch.size for branch in branches), branches[0].layer, tuple(branches))

    def _irregular(self, tangle: Tangle) -> Irregular:
        leaves = {vertex: self._leaf(vertex) for vertex in tangle.vertices}
        between = [chain for tie in tangle.ties if (chain := self._chains[id(tie.stretch)]).parts]
        parts: list[Region] = [*leaves.values(), *(it.parts[0] if len(it.parts) == 1 else it for it in between)]
        parts.sort(key=_FIRST_LAYER)
        key = self._key("irregular", *self._wiring(tangle, leaves))
        return Irregular(key, sum(part.size for part in parts), parts[0].layer, self._grouped(parts))

    def _wiring(self, tangle: Tangle, leaves: Mapping[int, Leaf]) -> list[int]:
        """Return sorted keys of the layers of a tangle: each depends on all paths to and from its layer."""
        into: dict[int, list[tuple[int, int]]] = {vertex: [] for vertex in tangle.vertices}
        out_of: dict[int, list[tuple[int, int]]] = {vertex: [] for vertex in tangle.vertices}
        for source, target, stretch in tangle.ties:
            chain = self._chains[id(stretch)].key
            into.get(target, []).append((source, chain))
            out_of.get(source, []).append((target, chain))
        # A vertex that is not in the dictionary is an end of the tangle.
        reached: dict[int, int] = {}
        for vertex in tangle.vertices:
            ways = sorted((reached.get(source, -1), chain) for source, chain in into[vertex])
            reached[vertex] = self._key("reached", leaves[vertex].key, *ways)
        reaching: dict[int, int] = {}
        for vertex in reversed(tangle.vertices):
            ways = sorted((reaching.get(target, -1), chain) for target, chain in out_of[vertex])
            reaching[vertex] = self._key("reaching", reached[vertex], *ways)
        return sorted(reaching.values())

    def _grouped(self, parts: Sequence[Region]) -> tuple[Region, ...]:
        """Return the parts with equal neighbours grouped into repeats."""
        runs = repeated_runs([part.key for part in parts], [not isinstance(part, Leaf) for part in parts])
        grouped: list[Region] = []
        done = 0
        for start, period, times in runs:
            grouped += parts[done:start]
            done = start + period * times
            modules = [parts[first : first + period] for first in range(start, done, period)]
            # A module may hold repeats of its own; each is at most half as long, so that this recursion is shallow.
            instances = [module[0] if period == 1 else self._chain(module) for module in modules]
            key = self._key("repeat", instances[0].key, times)
            grouped.append(Repeat(key, instances[0].size * times, instances[0].layer, tuple(instances)))
        return (*grouped, *parts[done:])


def _with_all_inside(whole: Stretch) -> list[Stretch]:
    """Return the stretch and all inside of it, outer ones first."""
    found = [whole]
    for stretch in found:
        for piece in stretch:
            if isinstance(piece, Fork):
                found += piece.branches
            elif isinstance(piece, Tangle):
                found += [tie.stretch for tie in piece.ties]
    return found


# The longest piece to search for: people would not recognise a longer one as a module.
_LONGEST_PERIOD = 64
# The number of later occurrences of an item at which its piece may begin again. Both limits keep the search linear.
_MOST_RETURNS = 8


class Repetition(NamedTuple):
    """`times` equal pieces of `period` items each, one after another from `start` on."""

    start: int
    period: int
    times: int


def repeated_runs(keys: Sequence[Hashable], opening: Sequence[bool]) -> list[Repetition]:
    """Return disjoint runs of at least two equal pieces, from left to right; of overlapping runs the longest.

    A run that could start at several items starts at the last `opening` one, or else at the last: a module usually
    begins where the model forks, and ends with its join.
    """
    runs = []
    free = [True] * len(keys)
    for shortness, period, start in sorted(_stretches(keys)):
        end = start - shortness
        while start < end and not free[start]:
            start += 1
        while start < end and not free[end - 1]:
            end -= 1
        times, spare = divmod(end - start, period)
        if times > 1 and all(free[start:end]):
            start += next((shift for shift in range(spare, -1, -1) if opening[start + shift]), spare)
            runs.append(Repetition(start, period, times))
            free[start : start + period * times] = [False] * (period * times)
    return sorted(runs)


def _stretches(keys: Sequence[Hashable]) -> Iterator[tuple[int, int, int]]:
    """Yield ranges in which each item equals the one a period later: the negated length, the period and the start."""
    places: dict[Hashable, list[int]] = {}
    for place, key in enumerate(keys):
        places.setdefault(key, []).append(place)
    known_to: dict[int, int] = {}
    for start, key in enumerate(keys):
        returns = places[key]
        following = bisect_right(returns, start)
        for place in returns[following : following + _MOST_RETURNS]:
            period = place - start
            if period > _LONGEST_PERIOD:
                break
            if known_to.get(period, 0) > place:
                continue
            end = place
            while end < len(keys) and keys[end] == keys[end - period]:
                end += 1
            known_to[period] = end
            if end - start >= 2 * period:
                yield start - end, period, start
