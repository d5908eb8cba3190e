"""The parts of a model that are unfolded, as rows; or the sequences that a search has found."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from dlbricks_tui.documents.outline import Outline, OutlineNode

if TYPE_CHECKING:
    from dlbricks_tui.bricks.regions import Region

# The most rows that `expand_below` adds.
MOST_EXPANDED = 2000


class Unfolded:
    """The rows of one model; each change returns the new position of the cursor."""

    def __init__(self, outline: Outline) -> None:
        self.outline = outline
        self._tree: list[OutlineNode] = [outline.root]
        self._open: set[OutlineNode] = set()
        self._found: list[OutlineNode] | None = None
        self._search_text = ""
        # True if the rows are sequences by their time.
        self.is_sorted = False
        # The selected region before the search.
        self._left = outline.root.region
        self.expand(0)

    @property
    def rows(self) -> Sequence[OutlineNode]:
        """The expanded parts, or the matches of a search."""
        return self._tree if self._found is None else self._found

    @property
    def is_searched(self) -> bool:
        return self._found is not None

    @property
    def search_text(self) -> str:
        """The current search; empty if there is none."""
        return "" if self._found is None else self._search_text

    def is_open(self, node: OutlineNode) -> bool:
        return node in self._open

    def can_open(self, node: OutlineNode) -> bool:
        return self._found is None and node.can_open

    def has_equal(self, node: OutlineNode) -> bool:
        """Return whether an equal part occurs elsewhere."""
        # All repetitions of a repeated part are in it.
        here = self.outline.span_of(node.region)
        return bool(here) and any(self.outline.span_of(it).start not in here for it in self.outline.equal(node.region))

    def expand(self, index: int) -> int:
        """Expand a part, or go into an expanded one; a match of a search is shown in its place."""
        node = self.rows[index]
        if self._found is not None:
            return self.reveal(node.region)
        if not node.can_open:
            return index
        if node in self._open:
            return index + 1
        self._unfold(index)
        return index

    def collapse(self, index: int) -> int:
        """Collapse a part, or go to the parent of a collapsed one."""
        node = self.rows[index]
        if self._found is not None or (node is self.outline.root and node in self._open):
            return index
        if node not in self._open:
            return index if node.parent is None else self._tree.index(node.parent)
        end = self._end(index)
        self._open -= {*self._tree[index:end]}
        del self._tree[index + 1 : end]
        return index

    def expand_below(self, index: int) -> int:
        """Expand everything below a part, up to a limit."""
        if self._found is not None:
            return index
        end = self._end(index)
        pending, rows, added = self._tree[index:end][::-1], list[OutlineNode](), 0
        while pending:
            node = pending.pop()
            rows.append(node)
            if node not in self._open and added < MOST_EXPANDED and node.can_open:
                inside = node.inside
                self._open.add(node)
                added += len(inside)
                pending += reversed(inside)
        self._tree[index:end] = rows
        return index

    def collapse_all(self) -> int:
        """Collapse everything but the model, and end a search."""
        self._tree, self._found, self.is_sorted = [self.outline.root], None, False
        self._open.clear()
        return self.expand(0)

    def reveal(self, region: Region) -> int:
        """Expand everything around a region, and end a search."""
        self._found, self.is_sorted = None, False
        index = 0
        for each in self.outline.path_to(region):
            if self._tree[index] not in self._open:
                self._unfold(index)
            index = next(at for at in range(index + 1, len(self._tree)) if self._tree[at].region is each)
        return index

    def reveal_layer(self, layer: int) -> int:
        """Expand everything around a layer. If sequences overlap, reveal the one that begins with the layer."""
        holding = [it.sequence for it in self.outline.decomposition.occurrences if layer in it.sequence.layers]
        holding.sort(key=lambda sequence: sequence.layers.index(layer))
        return self.reveal(self.outline.leaf(holding[0].index)) if holding else 0

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
        hits, self.is_sorted = self.outline.found(words), False
        self._show_found(hits)
        return hits.index(here.sequence) if here and here.sequence in hits else 0

    def sort(self, slowest_first: Sequence[int], index: int) -> int:
        """Show all sequences, or those that a search has found, in this order; show the tree again if they are."""
        here = self.rows[index] if self.rows else None
        if self.is_sorted:
            return self.reveal(here.region if here else self._left)
        if self._found is None:
            self._search_text = ""
            self._left = here.region if here else self._left
        found = None if self._found is None else {node.sequence for node in self._found}
        self._show_found(number for number in slowest_first if found is None or number in found)
        self.is_sorted = True
        return 0

    def next_equal(self, index: int, step: int) -> int:
        """Go to the next equal part, cyclically."""
        node = self.rows[index]
        if not self.has_equal(node):
            return index
        equal = self.outline.equal(node.region)
        starts = [self.outline.span_of(region).start for region in equal]
        here = self.outline.span_of(node.region)
        # All repetitions are at the cursor.
        place = bisect_left(starts, here.stop) if step > 0 else bisect_left(starts, here.start) - 1
        return self.reveal(equal[place % len(equal)])

    def next_of(self, index: int, places: Sequence[int], step: int) -> int:
        """Go to the next of some positions, which are ascending, cyclically."""
        if not places:
            return index
        node = self.rows[index]
        here = self.outline.span_of(node.region).start
        # On a region its first sequence still lies ahead.
        ahead = bisect_left(places, here) if node.sequence is None else bisect_right(places, here)
        place = places[(ahead if step > 0 else bisect_left(places, here) - 1) % len(places)]
        return self.reveal(self.outline.leaf(self.outline.sequences[place]))

    def _show_found(self, sequences: Iterable[int]) -> None:
        self._found = [OutlineNode(self.outline, self.outline.leaf(number)) for number in sequences]

    def _unfold(self, index: int) -> None:
        node = self._tree[index]
        self._tree[index + 1 : index + 1] = node.inside
        self._open.add(node)

    def _end(self, index: int) -> int:
        """Return the index after the last row of a part."""
        depth = self._tree[index].depth
        return next((at for at in range(index + 1, len(self._tree)) if self._tree[at].depth <= depth), len(self._tree))
