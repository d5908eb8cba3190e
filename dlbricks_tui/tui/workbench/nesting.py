"""The nesting of the regions of a model, found in one walk."""

from __future__ import annotations

from string import ascii_uppercase
from typing import TYPE_CHECKING

from dlbricks_tui.bricks.regions import Chain, Leaf, Region, Repeat, children

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlbricks_tui.bricks.regions import RegionTree

# A smaller region is easier to read in place than to look up by a letter.
SMALLEST_MODULE = 4


class Nesting:
    """The regions of a model in order. A region that holds only one part is replaced by it."""

    def __init__(self, regions: RegionTree) -> None:
        self.root: Region = regions.root
        # The numbers of all sequences from left to right; each region spans some of them.
        self.sequences: list[int] = []
        self._starts: dict[Region, int] = {}
        self._around: dict[Region, Region] = {}
        self._leaves: dict[int, Leaf] = {}
        self._equal: dict[int, list[Region]] = {}
        self._walk()
        self._letters: dict[int, str] = {}
        self._give_letters()

    def leaf(self, sequence: int) -> Leaf:
        return self._leaves[sequence]

    def span_of(self, region: Region) -> range:
        """Return the positions in `sequences` that a region spans."""
        start = self._starts[region]
        return range(start, start + region.size)

    def numbers(self, region: Region) -> Sequence[int]:
        """Return the numbers of the sequences in a region."""
        span = self.span_of(region)
        return self.sequences[span.start : span.stop]

    def equal(self, region: Region) -> Sequence[Region]:
        """Return all regions equal to this one, itself included; for a repeat, those equal to what it repeats."""
        return self._equal[_repeated(region).key]

    def path_to(self, region: Region) -> list[Region]:
        """Return the surrounding regions from the outside, without the model, and the region itself."""
        path = []
        each: Region | None = region
        while each is not None and each is not self.root:
            path.append(each)
            each = self._around.get(each)
        return path[::-1]

    def letter(self, region: Region) -> str:
        """Return the letter of a module that occurs several times; empty for other regions."""
        return self._letters.get(_repeated(region).key, "")

    def _walk(self) -> None:
        pending = [self.root]
        while pending:
            region = pending.pop()
            self._starts[region] = len(self.sequences)
            self._equal.setdefault(region.key, []).append(region)
            if isinstance(region, Leaf):
                self.sequences.append(region.layer)
                self._leaves[region.layer] = region
                continue
            inside = parts(region)
            for part in inside:
                self._around[part] = region
            pending += reversed(inside)

    def _give_letters(self) -> None:
        # In the order of the walk, so that A comes first.
        for region, around in self._around.items():
            if isinstance(region, Leaf | Repeat) or not region.size or region.key in self._letters:
                continue
            # A region that occurs only within a lettered one needs no letter.
            recurs = len(self._equal[region.key]) > len(self._equal[around.key])
            if recurs and (region.size >= SMALLEST_MODULE or isinstance(around, Repeat)):
                self._letters[region.key] = _letters(len(self._letters))


def parts(region: Region) -> tuple[Region, ...]:
    """Return the parts of a region; a part with a single part is replaced by it."""
    return tuple([_alone(part) for part in children(region)])


def _alone(region: Region) -> Region:
    while isinstance(region, Chain) and len(region.parts) == 1:
        (region,) = region.parts
    return region


def _repeated(region: Region) -> Region:
    return _alone(region.instances[0]) if isinstance(region, Repeat) else region


def _letters(number: int) -> str:
    """Return A to Z, then AA, AB and so on."""
    text = ""
    number += 1
    while number:
        number, place = divmod(number - 1, len(ascii_uppercase))
        text = ascii_uppercase[place] + text
    return text
