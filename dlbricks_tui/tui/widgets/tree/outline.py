"""A model as an outline of which only the open parts are rows; what is inside a part is found when it opens."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dlbricks_tui.bricks.regions import Leaf, Parallel, Region, Repeat
from dlbricks_tui.tui.widgets.tree.nesting import parts
from dlbricks_tui.tui.widgets.tree.titles import Titles

if TYPE_CHECKING:
    from dlbricks_tui.tui.opened import Opened

# How many rows `expand_below` adds at most: more than that nobody reads.
MOST_EXPANDED = 2000


@dataclass(slots=True, eq=False)
class Node:
    """One part of the model: all of it, a region, a sequence, or a layer of a sequence of several."""

    region: Region
    depth: int = 0
    parent: Node | None = field(default=None, repr=False)
    # Which part of its parent it is, counted from one.
    number: int = 1
    # The layer that it is, where its region is the sequence around it.
    layer: int | None = None
    is_open: bool = False

    @property
    def sequence(self) -> int | None:
        """The number of the sequence that it is, or is a layer of."""
        return self.region.layer if isinstance(self.region, Leaf) else None


class Outline:
    """The rows of one model; every change says where the cursor belongs then."""

    def __init__(self, opened: Opened) -> None:
        self.nesting = opened.nesting
        self.titles = Titles(opened)
        self._occurrences = opened.decomposition.occurrences
        self._root = Node(self.nesting.root)
        self._tree: list[Node] = [self._root]
        self._found: list[Node] | None = None
        self._sought = ""
        # Where the cursor was when a search began.
        self._left = self.nesting.root
        self.expand(0)

    @property
    def rows(self) -> Sequence[Node]:
        """What is to be seen: the open parts, or what a search has found."""
        return self._tree if self._found is None else self._found

    @property
    def is_searched(self) -> bool:
        """Whether the rows are what a search has found."""
        return self._found is not None

    @property
    def sought(self) -> str:
        """What is searched for, if anything is."""
        return "" if self._found is None else self._sought

    def title(self, node: Node) -> str:
        """What a part is."""
        return self.titles.region(node.region) if node.layer is None else self.titles.layer(node.layer)

    def size(self, node: Node) -> str:
        """How large a part is, where its title does not say so."""
        if node.sequence is not None or node is self._root or not node.region.size:
            return ""
        size = self.titles.size(node.region)
        return "" if size == self.title(node) else size

    def label(self, node: Node) -> str:
        """Which branch or which instance of a module a part is, if it is one."""
        if node.parent is None or node.layer is not None:
            return ""
        if isinstance(node.parent.region, Parallel):
            return f"branch {node.number}: "
        if isinstance(node.parent.region, Repeat):
            return f"{node.number} of {len(node.parent.region.instances)}: "
        return ""

    def names(self, node: Node) -> str:
        """What the model file calls it, from its first layer to its last."""
        return self.titles.names(node.region) if node.layer is None else self.titles.name(node.layer)

    def output(self, node: Node) -> str:
        """The shape that a sequence or layer puts out."""
        if node.sequence is None:
            return ""
        last = self._occurrences[node.sequence].sequence.layers[-1]
        return self.titles.output(last if node.layer is None else node.layer)

    def can_open(self, node: Node) -> bool:
        """Whether there is anything in it to be seen by itself."""
        if node.layer is not None or self._found is not None:
            return False
        if isinstance(node.region, Leaf):
            return len(self._occurrences[node.region.layer].sequence.layers) > 1
        return node.region.size > 0

    def sequences_in(self, node: Node) -> Sequence[int]:
        """The numbers of the sequences that it consists of."""
        return self.nesting.numbers(node.region)

    def occurs(self, node: Node) -> int:
        """How often the like of it stands in the model."""
        if node is self._root or node.layer is not None or not node.region.size:
            return 1
        return len(self.nesting.equal(node.region))

    def has_equal(self, node: Node) -> bool:
        """Whether the like of it stands anywhere else."""
        if node is self._root or not node.region.size:
            return False
        alike = self.nesting.equal(node.region)
        return len(alike) > (len(node.region.instances) if isinstance(node.region, Repeat) else 1)

    def expand(self, index: int) -> int:
        """Opens a part; one that is open already is entered, and what was found is shown where it stands."""
        node = self.rows[index]
        if self._found is not None:
            return self.reveal(node.region)
        if not self.can_open(node):
            return index
        if node.is_open:
            return index + 1
        self._open(index)
        return index

    def collapse(self, index: int) -> int:
        """Closes a part; from one that is closed already it goes to what it is part of."""
        node = self.rows[index]
        if self._found is not None or (node is self._root and node.is_open):
            return index
        if not node.is_open:
            return index if node.parent is None else self._tree.index(node.parent)
        del self._tree[index + 1 : self._end(index)]
        node.is_open = False
        return index

    def expand_below(self, index: int) -> int:
        """Opens all that is in a part, until that are more rows than anybody reads."""
        if self._found is not None:
            return index
        end = self._end(index)
        pending, rows, added = self._tree[index:end][::-1], list[Node](), 0
        while pending:
            node = pending.pop()
            rows.append(node)
            if not node.is_open and added < MOST_EXPANDED and self.can_open(node):
                inside = self._inside(node)
                node.is_open = True
                added += len(inside)
                pending += reversed(inside)
        self._tree[index:end] = rows
        return index

    def collapse_all(self) -> int:
        """Closes everything but the model, and ends a search."""
        self._tree, self._root.is_open, self._found = [self._root], False, None
        return self.expand(0)

    def reveal(self, region: Region) -> int:
        """Opens what a region is part of, and ends a search."""
        self._found = None
        index = 0
        for each in self.nesting.path_to(region):
            if not self._tree[index].is_open:
                self._open(index)
            index = next(at for at in range(index + 1, len(self._tree)) if self._tree[at].region is each)
        return index

    def reveal_layer(self, layer: int) -> int:
        """Opens what a layer is part of; of overlapping sequences that which begins with it."""
        holding = [it.sequence for it in self._occurrences if layer in it.sequence.layers]
        holding.sort(key=lambda sequence: sequence.layers.index(layer))
        return self.reveal(self.nesting.leaf(holding[0].index)) if holding else 0

    def seek(self, text: str, index: int) -> int:
        """Shows only the sequences of which every word is in an operator, a kind or a name; all again for no words."""
        here = self.rows[index] if self.rows else None
        self._sought, words = text, text.casefold().split()
        if not words:
            if self._found is None:
                return index
            return self.reveal(here.region if here else self._left)
        if self._found is None and here:
            self._left = here.region
        hits = self.titles.found(words)
        self._found = [Node(self.nesting.leaf(number)) for number in hits]
        sequence = here.sequence if here else None
        return hits.index(sequence) if sequence in hits else 0

    def next_equal(self, index: int, step: int) -> int:
        """Where the like of what the cursor is on stands next, round and round."""
        node = self.rows[index]
        if not self.has_equal(node):
            return index
        equal = self.nesting.equal(node.region)
        starts = [self.nesting.span_of(region).start for region in equal]
        here = self.nesting.span_of(node.region)
        # Of a repeat all instances are here.
        place = bisect_left(starts, here.stop) if step > 0 else bisect_left(starts, here.start) - 1
        return self.reveal(equal[place % len(equal)])

    def next_of(self, index: int, places: Sequence[int], step: int) -> int:
        """Where the next of some sequences is, which are given by where they stand, ascending; round and round."""
        if not places:
            return index
        node = self.rows[index]
        here = self.nesting.span_of(node.region).start
        # The first one in a region is ahead of whoever stands on its heading.
        ahead = bisect_left(places, here) if node.sequence is None else bisect_right(places, here)
        place = places[(ahead if step > 0 else bisect_left(places, here) - 1) % len(places)]
        return self.reveal(self.nesting.leaf(self.nesting.sequences[place]))

    def _open(self, index: int) -> None:
        node = self._tree[index]
        self._tree[index + 1 : index + 1] = self._inside(node)
        node.is_open = True

    def _inside(self, node: Node) -> list[Node]:
        depth = node.depth + 1
        if isinstance(node.region, Leaf):
            layers = self._occurrences[node.region.layer].sequence.layers
            return [Node(node.region, depth, node, number, layer) for number, layer in enumerate(layers, 1)]
        return [Node(part, depth, node, number) for number, part in enumerate(parts(node.region), 1)]

    def _end(self, index: int) -> int:
        """Where what is shown of a part ends."""
        depth = self._tree[index].depth
        return next((at for at in range(index + 1, len(self._tree)) if self._tree[at].depth <= depth), len(self._tree))
