"""A model as an outline of which only the open parts are rows; what is inside a part is found when it opens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dlbricks_tui.bricks.regions import Chain, Irregular, Leaf, Parallel, Region, Repeat, children, layers_in
from dlbricks_tui.models.titles import layer_title

if TYPE_CHECKING:
    from dlbricks_tui.tui.opened import Opened

# What `expand_below` opens at most: more rows than that nobody reads.
MOST_EXPANDED = 2000


@dataclass(slots=True, eq=False)
class Node:
    """One part of the model: all of it, a region, a sequence, or a layer of a sequence of several."""

    title: str
    region: Region
    depth: int
    parent: Node | None = field(default=None, repr=False)
    # The layer that it is, where its region is the sequence around it.
    layer: int | None = None
    label: str = ""
    is_open: bool = False

    @property
    def sequence(self) -> int | None:
        """The number of the sequence that it is, or is a layer of."""
        return self.region.layer if isinstance(self.region, Leaf) else None


class Outline:
    """The rows of one model; every change says where the cursor belongs then."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened
        self._layers = opened.graph.layers
        self._occurrences = opened.decomposition.occurrences
        self._unit = "layer" if opened.decomposition.cutting.granularity == 1 else "sequence"
        self._root = Node(opened.graph.name, opened.regions.root, 0)
        self._paths: dict[int, tuple[Region, ...]] | None = None
        self._searched: list[str] | None = None
        self._places: dict[str, list[int]] | None = None
        self._tree: list[Node] = [self._root]
        self._found: list[Node] | None = None
        self.expand(0)

    @property
    def rows(self) -> Sequence[Node]:
        """What is to be seen: the open parts, or what a search has found."""
        return self._tree if self._found is None else self._found

    def can_open(self, node: Node) -> bool:
        """Whether there is anything in it to be seen by itself."""
        if node.layer is not None or self._found is not None:
            return False
        if isinstance(node.region, Leaf):
            return len(self._occurrences[node.region.layer].sequence.layers) > 1
        return node.region.size > 0

    def sequences_in(self, node: Node) -> Iterator[int]:
        """The numbers of the sequences that it consists of."""
        return layers_in(node.region)

    def occurs(self, node: Node) -> int:
        """How often the like of it stands in the model."""
        if node is self._root or node.layer is not None:
            return 1
        if isinstance(node.region, Leaf):
            return len(self._same_as(node.region.layer))
        return self._opened.regions.occurrences[node.region.key]

    def expand(self, index: int) -> int:
        """Opens a part; one that is open already is entered."""
        node = self.rows[index]
        if not self.can_open(node):
            return index
        if node.is_open:
            return index + 1
        self._tree[index + 1 : index + 1] = self._inside(node)
        node.is_open = True
        return index

    def collapse(self, index: int) -> int:
        """Closes a part; from one that is closed already it goes to what it is part of."""
        node = self.rows[index]
        if self._found is not None:
            return index
        if not node.is_open:
            return index if node.parent is None else self._tree.index(node.parent)
        if node is not self._root:
            self._close(index)
        return index

    def expand_below(self, index: int) -> int:
        """Opens all that is in a part, until there are more rows than anybody reads."""
        if self._found is not None:
            return index
        depth, end = self._tree[index].depth, index
        while end < len(self._tree) and (end == index or self._tree[end].depth > depth):
            if len(self._tree) >= MOST_EXPANDED:
                break
            if self.can_open(self._tree[end]) and not self._tree[end].is_open:
                self.expand(end)
            end += 1
        return index

    def collapse_all(self) -> int:
        """Closes everything but the model."""
        self._tree, self._root.is_open, self._found = [self._root], False, None
        return self.expand(0)

    def reveal(self, sequence: int) -> int:
        """Opens what a sequence is part of, and ends a search."""
        self._found = None
        index = 0
        for region in self._path_to(sequence):
            node = self._tree[index]
            if not node.is_open:
                self.expand(index)
            inside = (at for at in range(index + 1, len(self._tree)) if self._tree[at].parent is node)
            index = next((at for at in inside if self._tree[at].region is region), index)
        return index

    def seek(self, text: str, index: int) -> int:
        """Shows only the sequences of which every word is in an operator, a kind or a name; all again for no words."""
        here = self.rows[index].sequence if self.rows else None
        words = text.casefold().split()
        if not words:
            found, self._found = self._found, None
            return index if found is None or here is None else self.reveal(here)
        texts = self._texts()
        hits = [number for number, searched in enumerate(texts) if all(word in searched for word in words)]
        self._found = [Node(self._sequence_title(number), Leaf(-1, number), 0) for number in hits]
        return hits.index(here) if here in hits else 0

    def next_equal(self, index: int, step: int) -> int:
        """Where the brick that the cursor is on occurs next, round and round."""
        sequence = self.rows[index].sequence
        if sequence is None:
            return index
        places = self._same_as(sequence)
        return self.reveal(places[(places.index(sequence) + step) % len(places)])

    def next_of(self, index: int, wanted: Sequence[int]) -> int:
        """Where the next of the wanted sequences is, round and round."""
        if not wanted:
            return index
        inside = list(self.sequences_in(self.rows[index]))
        here = inside[-1] if inside and self.rows[index].sequence is not None else inside[0] - 1 if inside else -1
        return self.reveal(next((number for number in wanted if number > here), wanted[0]))

    def _inside(self, node: Node) -> list[Node]:
        if isinstance(node.region, Leaf):
            layers = self._occurrences[node.region.layer].sequence.layers
            return [Node(layer_title(self._layers[it]), node.region, node.depth + 1, node, it) for it in layers]
        parts = children(node.region)
        return [self._node(part, number, node) for number, part in enumerate(parts, 1)]

    def _node(self, region: Region, number: int, parent: Node) -> Node:
        label = f"branch {number}: " if isinstance(parent.region, Parallel) else ""
        if isinstance(parent.region, Repeat):
            label = f"{number} of {len(parent.region.instances)}: "
        # A chain of one part says nothing that the part does not.
        while isinstance(region, Chain) and len(region.parts) == 1:
            (region,) = region.parts
        return Node(self._title(region), region, parent.depth + 1, parent, label=label)

    def _title(self, region: Region) -> str:
        if isinstance(region, Leaf):
            return self._sequence_title(region.layer)
        size = f"{region.size:,} {self._unit}{'' if region.size == 1 else 's'}"
        if isinstance(region, Parallel):
            return f"{len(region.branches)} branches, {size}"
        if isinstance(region, Repeat):
            return f"module x{len(region.instances)}, {size}"
        if isinstance(region, Irregular):
            return f"irregular, {size}"
        return size if region.size else "passes by"

    def _sequence_title(self, number: int) -> str:
        layers = self._occurrences[number].sequence.layers
        return " > ".join(layer_title(self._layers[index]) for index in layers)

    def _close(self, index: int) -> None:
        node = self._tree[index]
        end = index + 1
        while end < len(self._tree) and self._tree[end].depth > node.depth:
            self._tree[end].is_open = False
            end += 1
        del self._tree[index + 1 : end]
        node.is_open = False

    def _path_to(self, sequence: int) -> tuple[Region, ...]:
        """The regions around a sequence as they are shown, from the outside, and its own."""
        if self._paths is None:
            self._paths = {}
            pending: list[tuple[Region, tuple[Region, ...]]] = [
                (part, ()) for part in children(self._opened.regions.root)
            ]
            while pending:
                region, around = pending.pop()
                while isinstance(region, Chain) and len(region.parts) == 1:
                    (region,) = region.parts
                path = (*around, region)
                if isinstance(region, Leaf):
                    self._paths[region.layer] = path
                pending += [(part, path) for part in children(region)]
        return self._paths[sequence]

    def _texts(self) -> list[str]:
        if self._searched is None:
            self._searched = [
                " ".join(
                    f"{layer_title(layer)} {layer.op} {layer.kind.value} {layer.name}"
                    for layer in (self._layers[index] for index in occurrence.sequence.layers)
                ).casefold()
                for occurrence in self._occurrences
            ]
        return self._searched

    def _same_as(self, sequence: int) -> list[int]:
        if self._places is None:
            self._places = {}
            for number, occurrence in enumerate(self._occurrences):
                self._places.setdefault(occurrence.brick.key, []).append(number)
        return self._places[self._occurrences[sequence].brick.key]
