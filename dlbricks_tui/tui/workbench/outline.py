"""The outline of a model: named parts that can be expanded."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from dlbricks_tui.bricks.regions import Irregular, Leaf, Parallel, Region, Repeat
from dlbricks_tui.models.titles import layer_title, shape_text
from dlbricks_tui.tui.workbench.nesting import parts
from dlbricks_tui.wording.numbers import counted

if TYPE_CHECKING:
    from dlbricks_tui.models.graph import Layer
    from dlbricks_tui.tui.open_model import OpenModel


class Titles:
    """Titles of the parts, made on demand: of 18,000 layers few are ever seen."""

    def __init__(self, opened: OpenModel) -> None:
        self._model = opened.graph.name
        self._layers = opened.graph.layers
        self._occurrences = opened.decomposition.occurrences
        self._unit = "layer" if opened.decomposition.cutting.granularity == 1 else "sequence"
        self._nesting = opened.nesting
        # Sequences of one brick share a title.
        self._by_brick: dict[str, str] = {}

    def layer(self, index: int) -> str:
        """Return `conv 3x3/2 64` and how often it runs."""
        layer = self._layers[index]
        return layer_title(layer) + (f" (runs {layer.times:,} times)" if layer.times > 1 else "")

    def sequence(self, number: int) -> str:
        """Return the titles of its layers."""
        occurrence = self._occurrences[number]
        key = occurrence.brick.key
        if key not in self._by_brick:
            self._by_brick[key] = " > ".join(map(self.layer, occurrence.sequence.layers))
        return self._by_brick[key]

    def region(self, region: Region) -> str:
        """Return the title of a region, or its size if it has no other title."""
        if region is self._nesting.root:
            return self._model
        if isinstance(region, Leaf):
            return self.sequence(region.layer)
        if not region.size:
            return "skip connection"
        if isinstance(region, Repeat) and isinstance(region.instances[0], Leaf):
            return f"{self.sequence(region.instances[0].layer)}, {len(region.instances)} in a row"
        kind = f"{len(region.branches)} branches" if isinstance(region, Parallel) else ""
        if isinstance(region, Irregular):
            kind = "irregular"
        return ", ".join(filter(None, (self._module(region), kind))) or self.size(region)

    def size(self, region: Region) -> str:
        return counted(region.size, self._unit)

    def names(self, region: Region) -> str:
        """Return the names of the first and the last layer in the model file."""
        inside = self._nesting.numbers(region)
        if not inside:
            return ""
        first = self._occurrences[inside[0]].sequence.layers[0]
        last = self._occurrences[inside[-1]].sequence.layers[-1]
        name = self.name(first)
        return name if first == last else f"{name} .. {self.name(last)}"

    def name(self, layer: int) -> str:
        return self._layers[layer].name

    def output(self, layer: int) -> str:
        """Return the shape of the output of a layer."""
        outputs = self._layers[layer].outputs
        return shape_text(outputs[0]) if outputs else ""

    def found(self, words: Sequence[str]) -> list[int]:
        """Return the sequences whose operators, kinds or names contain every word."""
        hits: list[int] = []
        for numbers in self._numbers_by_brick.values():
            # Sequences of one brick have the same operators and kinds.
            indices = self._occurrences[numbers[0]].sequence.layers
            common = " ".join(_words(self._layers[index]) for index in indices).casefold()
            found: Sequence[int] = numbers
            for word in words:
                if word not in common:
                    found = [number for number in found if word in self._names[number]]
            hits += found
        return sorted(hits)

    @cached_property
    def _numbers_by_brick(self) -> dict[str, list[int]]:
        numbers: dict[str, list[int]] = {}
        for number, occurrence in enumerate(self._occurrences):
            numbers.setdefault(occurrence.brick.key, []).append(number)
        return numbers

    @cached_property
    def _names(self) -> list[str]:
        names = [layer.name.casefold() for layer in self._layers]
        return [" ".join([names[index] for index in it.sequence.layers]) for it in self._occurrences]

    def _module(self, region: Region) -> str:
        letter = self._nesting.letter(region)
        times = len(region.instances) if isinstance(region, Repeat) else 1
        name = f"module {letter}".rstrip() if letter or times > 1 else ""
        return f"{name} x{times}" if times > 1 else name


def _words(layer: Layer) -> str:
    return f"{layer_title(layer)} {layer.op} {layer.kind.value}"


# The most rows that `expand_below` adds.
MOST_EXPANDED = 2000


@dataclass(slots=True, eq=False)
class Node:
    """A part of the model: the model, a region, a sequence, or a layer of a longer sequence."""

    region: Region
    depth: int = 0
    parent: Node | None = field(default=None, repr=False)
    # The number of the part among those of its parent, from 1.
    number: int = 1
    # The layer, if the part is one; `region` is then the sequence around it.
    layer: int | None = None
    is_open: bool = False

    @property
    def sequence(self) -> int | None:
        """The number of the sequence that it is, or that contains the layer."""
        return self.region.layer if isinstance(self.region, Leaf) else None


class Outline:
    """The rows of one model; each change returns the new position of the cursor."""

    def __init__(self, opened: OpenModel) -> None:
        self.opened = opened
        self.nesting = opened.nesting
        self.titles = Titles(opened)
        self._occurrences = opened.decomposition.occurrences
        self._root = Node(self.nesting.root)
        self._tree: list[Node] = [self._root]
        self._found: list[Node] | None = None
        self._search_text = ""
        # True if the rows are sequences by their time.
        self.is_sorted = False
        # The selected region before the search.
        self._left = self.nesting.root
        self.expand(0)

    @property
    def rows(self) -> Sequence[Node]:
        """The expanded parts, or the matches of a search."""
        return self._tree if self._found is None else self._found

    @property
    def is_searched(self) -> bool:
        return self._found is not None

    @property
    def search_text(self) -> str:
        """The current search; empty if there is none."""
        return "" if self._found is None else self._search_text

    def title(self, node: Node) -> str:
        return self.titles.region(node.region) if node.layer is None else self.titles.layer(node.layer)

    def size(self, node: Node) -> str:
        """Return the size of a part if its title does not contain it."""
        if node.sequence is not None or node is self._root or not node.region.size:
            return ""
        size = self.titles.size(node.region)
        return "" if size == self.title(node) else size

    def label(self, node: Node) -> str:
        """Return which branch or which repetition a part is."""
        if node.parent is None or node.layer is not None:
            return ""
        if isinstance(node.parent.region, Parallel):
            return f"branch {node.number}: "
        if isinstance(node.parent.region, Repeat):
            return f"{node.number} of {len(node.parent.region.instances)}: "
        return ""

    def names(self, node: Node) -> str:
        """Return its names in the model file."""
        return self.titles.names(node.region) if node.layer is None else self.titles.name(node.layer)

    def output(self, node: Node) -> str:
        """Return the shape of the output of a sequence or layer."""
        if node.sequence is None:
            return ""
        last = self._occurrences[node.sequence].sequence.layers[-1]
        return self.titles.output(last if node.layer is None else node.layer)

    def can_open(self, node: Node) -> bool:
        """Return whether it has parts to show."""
        if node.layer is not None or self._found is not None:
            return False
        if isinstance(node.region, Leaf):
            return len(self._occurrences[node.region.layer].sequence.layers) > 1
        return node.region.size > 0

    def sequences_in(self, node: Node) -> Sequence[int]:
        return self.nesting.numbers(node.region)

    def occurs(self, node: Node) -> int:
        """Return how often an equal part occurs in the model."""
        if node is self._root or node.layer is not None or not node.region.size:
            return 1
        return len(self.nesting.equal(node.region))

    def has_equal(self, node: Node) -> bool:
        """Return whether an equal part occurs elsewhere."""
        if node is self._root or not node.region.size:
            return False
        alike = self.nesting.equal(node.region)
        return len(alike) > (len(node.region.instances) if isinstance(node.region, Repeat) else 1)

    def expand(self, index: int) -> int:
        """Expand a part, or go into an expanded one; a match of a search is shown in its place."""
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
        """Collapse a part, or go to the parent of a collapsed one."""
        node = self.rows[index]
        if self._found is not None or (node is self._root and node.is_open):
            return index
        if not node.is_open:
            return index if node.parent is None else self._tree.index(node.parent)
        del self._tree[index + 1 : self._end(index)]
        node.is_open = False
        return index

    def expand_below(self, index: int) -> int:
        """Expand everything below a part, up to a limit."""
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
        """Collapse everything but the model, and end a search."""
        self._tree, self._root.is_open, self._found = [self._root], False, None
        self.is_sorted = False
        return self.expand(0)

    def reveal(self, region: Region) -> int:
        """Expand everything around a region, and end a search."""
        self._found, self.is_sorted = None, False
        index = 0
        for each in self.nesting.path_to(region):
            if not self._tree[index].is_open:
                self._open(index)
            index = next(at for at in range(index + 1, len(self._tree)) if self._tree[at].region is each)
        return index

    def reveal_layer(self, layer: int) -> int:
        """Expand everything around a layer. If sequences overlap, reveal the one that begins with the layer."""
        holding = [it.sequence for it in self._occurrences if layer in it.sequence.layers]
        holding.sort(key=lambda sequence: sequence.layers.index(layer))
        return self.reveal(self.nesting.leaf(holding[0].index)) if holding else 0

    def seek(self, text: str, index: int) -> int:
        """Show only the sequences that contain every word; without words, show the tree again."""
        here = self.rows[index] if self.rows else None
        self._search_text, words = text, text.casefold().split()
        if not words:
            if self._found is None:
                return index
            return self.reveal(here.region if here else self._left)
        if self._found is None and here:
            self._left = here.region
        hits, self.is_sorted = self.titles.found(words), False
        self._found = [Node(self.nesting.leaf(number)) for number in hits]
        sequence = here.sequence if here else None
        return hits.index(sequence) if sequence in hits else 0

    def sort(self, slowest_first: Sequence[int], index: int) -> int:
        """Show all sequences, or those that a search has found, in this order; show the tree again if they are."""
        here = self.rows[index] if self.rows else None
        if self.is_sorted:
            return self.reveal(here.region if here else self._left)
        if self._found is None:
            self._search_text = ""
            self._left = here.region if here else self._left
        found = None if self._found is None else {node.sequence for node in self._found}
        kept = [number for number in slowest_first if found is None or number in found]
        self._found, self.is_sorted = [Node(self.nesting.leaf(number)) for number in kept], True
        return 0

    def next_equal(self, index: int, step: int) -> int:
        """Go to the next equal part, cyclically."""
        node = self.rows[index]
        if not self.has_equal(node):
            return index
        equal = self.nesting.equal(node.region)
        starts = [self.nesting.span_of(region).start for region in equal]
        here = self.nesting.span_of(node.region)
        # All repetitions are at the cursor.
        place = bisect_left(starts, here.stop) if step > 0 else bisect_left(starts, here.start) - 1
        return self.reveal(equal[place % len(equal)])

    def next_of(self, index: int, places: Sequence[int], step: int) -> int:
        """Go to the next of some positions, which are ascending, cyclically."""
        if not places:
            return index
        node = self.rows[index]
        here = self.nesting.span_of(node.region).start
        # On a region its first sequence still lies ahead.
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
        """Return the index after the last row of a part."""
        depth = self._tree[index].depth
        return next((at for at in range(index + 1, len(self._tree)) if self._tree[at].depth <= depth), len(self._tree))
