"""The lines of a model's tree: regions, and in them the layer sequences; of equal modules only the first is drawn."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from string import ascii_uppercase
from typing import TYPE_CHECKING

from dlbricks_tui.bricks.regions import Chain, Irregular, Leaf, Parallel, Region, RegionTree, Repeat, children
from dlbricks_tui.bricks.sequence_regions import sequence_regions
from dlbricks_tui.models.titles import layer_title

if TYPE_CHECKING:
    from dlbricks_tui.bricks.decomposition import Decomposition, Occurrence
    from dlbricks_tui.models.graph import Layer

# What is smaller is quicker read where it stands than looked up.
SMALLEST_MODULE = 4


@dataclass(frozen=True, slots=True)
class TreeLine:
    """One line: what it says, and the sequence that it stands for if it is no region.

    `hangs` says of what it is part of, from the outside to itself, whether each is the last one there; a heading,
    which begins a tree of its own, hangs on nothing.
    """

    text: str
    hangs: tuple[bool, ...]
    occurrence: Occurrence | None = None
    is_unmeasurable: bool = False


def tree_lines(decomposition: Decomposition, deepest: int) -> list[TreeLine]:
    """The whole tree; what would hang deeper than `deepest` is drawn below it, under a heading."""
    return _Drawing(decomposition, deepest).lines()


class _Drawing:
    def __init__(self, decomposition: Decomposition, deepest: int) -> None:
        self._layers = decomposition.graph.layers
        self._occurrences = decomposition.occurrences
        self._tree: RegionTree = sequence_regions(decomposition)
        self._unit = "layer" if decomposition.cutting.granularity == 1 else "sequence"
        self._deepest = deepest
        self._modules: dict[int, str] = {}
        self._drawn_below: deque[tuple[str, Region]] = deque()
        self._lines: list[TreeLine] = []

    def lines(self) -> list[TreeLine]:
        self._draw_parts(self._tree.root, ())
        while self._drawn_below:
            heading, region = self._drawn_below.popleft()
            self._lines.append(TreeLine(heading, ()))
            self._draw_parts(region, ())
        return self._lines

    def _draw_parts(self, region: Region, hangs: tuple[bool, ...]) -> None:
        parts = children(region)
        around = self._tree.occurrences[region.key]
        for number, part in enumerate(parts, 1):
            label = f"branch {number}: " if isinstance(region, Parallel) else ""
            self._draw(part, label, around, (*hangs, number == len(parts)))

    def _draw(self, region: Region, label: str, around: int, hangs: tuple[bool, ...]) -> None:
        """One part of a region that itself occurs `around` times."""
        while isinstance(region, Chain) and len(region.parts) == 1:
            (region,) = region.parts
        in_a_row = 1
        if isinstance(region, Repeat):
            in_a_row, region = len(region.instances), region.instances[0]
        if isinstance(region, Leaf):
            self._draw_sequence(region, label, in_a_row, hangs)
        elif region.size == 0:
            self._lines.append(TreeLine(f"{label}passes by", hangs))
        else:
            self._draw_region(region, label, in_a_row, around, hangs)

    def _draw_region(self, region: Region, label: str, in_a_row: int, around: int, hangs: tuple[bool, ...]) -> None:
        times = self._tree.occurrences[region.key]
        is_large = region.size >= SMALLEST_MODULE
        # The branches of a module need room as well.
        is_too_deep = is_large and len(hangs) >= self._deepest - isinstance(region, Parallel)
        row = "" if in_a_row == 1 else "in a row" if in_a_row == times else f"{in_a_row} in a row"
        size = f"1 {self._unit}" if region.size == 1 else f"{region.size:,} {self._unit}s"
        name = ""
        if is_too_deep or in_a_row > 1 or (is_large and times > around):
            known = self._modules.get(region.key)
            if known is not None:
                self._lines.append(TreeLine(label + _listed(f"{known} again", row, size), hangs))
                return
            name = f"module {_letters(len(self._modules))}" + (f" x{times}" if times > 1 else "")
            self._modules[region.key] = name
        if is_too_deep:
            self._lines.append(TreeLine(label + _listed(name, row, size, "below"), hangs))
            self._drawn_below.append((_listed(name, _shape(region), size), region))
            return
        self._lines.append(TreeLine(label + _listed(name, row, _shape(region), size), hangs))
        self._draw_parts(region, hangs)

    def _draw_sequence(self, leaf: Leaf, label: str, in_a_row: int, hangs: tuple[bool, ...]) -> None:
        occurrence = self._occurrences[leaf.layer]
        layers = [self._layers[index] for index in occurrence.sequence.layers]
        is_unmeasurable = any(layer.unmeasurable is not None for layer in layers)
        text = label + " > ".join(_layer_text(layer) for layer in layers)
        text += f", {in_a_row} in a row" if in_a_row > 1 else ""
        self._lines.append(TreeLine(text, hangs, occurrence, is_unmeasurable))


def _shape(region: Region) -> str:
    if isinstance(region, Parallel):
        return f"{len(region.branches)} branches"
    return "irregular" if isinstance(region, Irregular) else ""


def _listed(*words: str) -> str:
    return ", ".join(filter(None, words))


def _layer_text(layer: Layer) -> str:
    text = layer_title(layer)
    if layer.times > 1:
        text += f" (runs {layer.times:,} times)"
    return text if layer.unmeasurable is None else f"! {text}, unmeasurable"


def _letters(number: int) -> str:
    """A to Z, then AA, AB and so on."""
    text = ""
    number += 1
    while number:
        number, place = divmod(number - 1, len(ascii_uppercase))
        text = ascii_uppercase[place] + text
    return text
