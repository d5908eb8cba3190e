"""The outline of a model: its regions, layer sequences and layers as nested nodes with their words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from string import ascii_uppercase
from typing import TYPE_CHECKING

from dlbricks_tui.bricks.regions import Chain, Irregular, Leaf, Parallel, Region, Repeat
from dlbricks_tui.wording.answers import layer_title, shape_text
from dlbricks_tui.wording.numbers import counted

if TYPE_CHECKING:
    from dlbricks_tui.bricks.decomposition import Decomposition, Occurrence
    from dlbricks_tui.models.graph import Layer

# A smaller module is easier to read in place than to look up by a letter.
SMALLEST_MODULE = 4


@dataclass(slots=True, eq=False)
class OutlineNode:
    """A part of the model: the model, a region, a sequence, or a layer of a longer sequence.

    Its words are made on demand: of 18,000 layers few are ever seen.
    """

    outline: Outline = field(repr=False)
    region: Region
    depth: int = 0
    parent: OutlineNode | None = field(default=None, repr=False)
    # The number of the part among those of its parent, from 1.
    number: int = 1
    # The layer, if the part is one; `region` is then the sequence around it.
    layer: int | None = None

    @property
    def sequence(self) -> int | None:
        """The number of the sequence that it is, or that contains the layer."""
        return self.region.layer if isinstance(self.region, Leaf) else None

    @property
    def occurrence(self) -> Occurrence | None:
        """The sequence that it is, or that contains the layer, with its brick."""
        return None if self.sequence is None else self.outline.decomposition.occurrences[self.sequence]

    @property
    def layers(self) -> Sequence[int]:
        """The layers inside, each once; sequences may overlap."""
        if self.layer is not None:
            return (self.layer,)
        occurrences = self.outline.decomposition.occurrences
        inside = self.outline.numbers(self.region)
        return list(dict.fromkeys(layer for number in inside for layer in occurrences[number].sequence.layers))

    @property
    def title(self) -> str:
        """The label of the part, and all of its words with the count of a module."""
        return self.label + ", ".join(self._words(self.module))

    @property
    def label(self) -> str:
        """The name of the branch or repetition."""
        if self.parent is None or self.layer is not None:
            return ""
        if isinstance(self.parent.region, Parallel):
            return f"branch {self.number}: "
        if isinstance(self.parent.region, Repeat):
            return f"{self.number} of {len(self.parent.region.parts)}: "
        return ""

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the part in a row with a column for the count; each says less than those before."""
        return self._words(self._lettered)

    def _words(self, module: str) -> tuple[str, ...]:
        if self.layer is not None:
            return (layer_text(self.outline.layers[self.layer]),)
        if self.region is self.outline.root.region:
            return (self.outline.decomposition.graph.name,)
        region = _repeated(self.region)
        if not region.size:
            return ("skip connection",)
        if isinstance(region, Leaf):
            return tuple(filter(None, (self.outline.sequence_text(region.layer), self.in_a_row)))
        return tuple(filter(None, (module, self.in_a_row, shape_of(region), self.size)))

    @property
    def module(self) -> str:
        """`module A x4` if an equal region is elsewhere; the parts of a module occur as often, and have no letter."""
        return self._lettered and _counted(self._lettered, self.occurs)

    @property
    def _lettered(self) -> str:
        region = _repeated(self.region)
        is_in_a_row = region is not self.region or (self.parent is not None and isinstance(self.parent.region, Repeat))
        is_module = is_in_a_row or region.size >= SMALLEST_MODULE
        return self.outline.modules.get(region.key, "") if is_module else ""

    @property
    def in_a_row(self) -> str:
        """The number of equal parts in a row, unless the model has no others."""
        if not isinstance(self.region, Repeat):
            return ""
        row, region = len(self.region.parts), _repeated(self.region)
        return "in a row" if row == self.outline.times(region) and not isinstance(region, Leaf) else f"{row} in a row"

    @property
    def size(self) -> str:
        """The number of its layers or sequences; of a repeated part, those of one."""
        return counted(_repeated(self.region).size, self.outline.unit)

    @property
    def names(self) -> str:
        """The names of the first and the last layer in the model file."""
        if self.layer is not None:
            return self.outline.layers[self.layer].name
        inside, occurrences = self.outline.numbers(self.region), self.outline.decomposition.occurrences
        if not inside:
            return ""
        first = occurrences[inside[0]].sequence.layers[0]
        last = occurrences[inside[-1]].sequence.layers[-1]
        name = self.outline.layers[first].name
        return name if first == last else f"{name} .. {self.outline.layers[last].name}"

    @property
    def output(self) -> str:
        """The shape of the output of a sequence or layer, and the number of its other outputs."""
        if self.occurrence is None:
            return ""
        last = self.occurrence.sequence.layers[-1] if self.layer is None else self.layer
        outputs = self.outline.layers[last].outputs
        more = f" +{len(outputs) - 1}" if len(outputs) > 1 else ""
        return shape_text(outputs[0]) + more if outputs else ""

    @property
    def occurs(self) -> int:
        """The number of equal parts in the model."""
        is_counted = self.layer is None and self.region.size
        return self.outline.times(_repeated(self.region)) if is_counted else 1

    @property
    def is_unmeasurable(self) -> bool:
        """True for a sequence with a layer that the runtime cannot run by itself."""
        return self.sequence is not None and any(self.outline.layers[it].unmeasurable is not None for it in self.layers)

    @property
    def can_open(self) -> bool:
        """True if it has parts to show."""
        if self.layer is None and self.occurrence is not None:
            return len(self.occurrence.sequence.layers) > 1
        return self.layer is None and self.region.size > 0

    @property
    def inside(self) -> list[OutlineNode]:
        """The parts inside of this one."""
        if not self.can_open:
            return []
        if self.occurrence is not None:
            layers = self.occurrence.sequence.layers
            return [self._part(self.region, number, layer) for number, layer in enumerate(layers, 1)]
        return [self._part(part, number) for number, part in enumerate(_parts(self.region), 1)]

    def _part(self, region: Region, number: int, layer: int | None = None) -> OutlineNode:
        return OutlineNode(self.outline, region, self.depth + 1, self, number, layer)


class Outline:
    """The parts of a model, found in one walk. A region that holds only one part is replaced by it."""

    def __init__(self, decomposition: Decomposition) -> None:
        self.decomposition = decomposition
        self.layers = decomposition.graph.layers
        self.unit = "layer" if decomposition.cutting.granularity == 1 else "sequence"
        self.root = OutlineNode(self, decomposition.regions.root)
        # The numbers of all sequences from left to right; each region spans some of them.
        self.sequences: list[int] = []
        # `module A` by the key of its regions.
        self.modules: dict[int, str] = {}
        self._starts: dict[Region, int] = {}
        self._around: dict[Region, Region] = {}
        self._leaves: dict[int, Leaf] = {}
        self._equal: dict[int, list[Region]] = {}
        # One walk over all regions.
        pending = [self.root.region]
        while pending:
            region = pending.pop()
            self._starts[region] = len(self.sequences)
            self._equal.setdefault(region.key, []).append(region)
            if isinstance(region, Leaf):
                self.sequences.append(region.layer)
                self._leaves[region.layer] = region
                continue
            if self._is_module(region):
                self.name_module(region)
            inside = _parts(region)
            for part in inside:
                self._around[part] = region
            pending += reversed(inside)

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

    def times(self, region: Region) -> int:
        """Return how often a region occurs in the model."""
        return self.decomposition.regions.occurrences[region.key]

    def equal(self, region: Region) -> Sequence[Region]:
        """Return all regions equal to this one, itself included; for a repeat, those equal to what it repeats."""
        return self._equal[_repeated(region).key]

    def path_to(self, region: Region) -> list[Region]:
        """Return the surrounding regions from the outside, without the model, and the region itself."""
        path = []
        each: Region | None = region
        while each is not None and each is not self.root.region:
            path.append(each)
            each = self._around.get(each)
        return path[::-1]

    def name_module(self, region: Region) -> str:
        """Return the name of a region as a module, with a new letter if it has none."""
        module = self.modules.setdefault(region.key, f"block {letters(len(self.modules))}")
        return _counted(module, self.times(region))

    def sequence_text(self, number: int) -> str:
        """Return the titles of the layers of a sequence."""
        layers = self.decomposition.occurrences[number].sequence.layers
        return " > ".join([layer_text(self.layers[index]) for index in layers])

    def found(self, words: Sequence[str]) -> list[int]:
        """Return the sequences whose operators, kinds or names contain every word."""
        return [number for number, text in enumerate(self._texts) if all(word in text for word in words)]

    @cached_property
    def _texts(self) -> list[str]:
        """The text of each sequence, in which words are searched."""
        # Sequences of one brick have the same operators and kinds.
        titles: dict[str, str] = {}
        texts = []
        for it in self.decomposition.occurrences:
            layers = [self.layers[index] for index in it.sequence.layers]
            if it.brick.key not in titles:
                titles[it.brick.key] = " ".join(f"{layer_title(each)} {each.op} {each.kind.value}" for each in layers)
            texts.append(" ".join([titles[it.brick.key], *(each.name for each in layers)]).casefold())
        return texts

    def _is_module(self, region: Region) -> bool:
        around = self._around.get(region)
        if around is None or isinstance(region, Repeat):
            return False
        # A region that occurs only within a lettered one needs no letter.
        recurs = region.size >= SMALLEST_MODULE and self.times(region) > self.times(around)
        return recurs or isinstance(around, Repeat)


def layer_text(layer: Layer) -> str:
    """Return `conv 3x3/2 64`, how often the layer runs, and whether it cannot."""
    text = layer_title(layer)
    if layer.times > 1:
        text += f" (runs {layer.times:,} times)"
    if layer.is_recorded:
        text += ", shape recorded from one run"
    return text if layer.unmeasurable is None else f"! {text}, unmeasurable"


def shape_of(region: Region) -> str:
    """Return how the parts of a region are connected, unless they follow one another."""
    if isinstance(region, Parallel):
        return f"{len(region.parts)} branches"
    return "crossing branches" if isinstance(region, Irregular) else ""


def _counted(module: str, times: int) -> str:
    return f"{module} x{times}" if times > 1 else module


def _parts(region: Region) -> tuple[Region, ...]:
    """Return the parts of a region; a part with a single part is replaced by it."""
    return tuple([_alone(part) for part in region.parts])


def _alone(region: Region) -> Region:
    while isinstance(region, Chain) and len(region.parts) == 1:
        (region,) = region.parts
    return region


def _repeated(region: Region) -> Region:
    return _alone(region.parts[0]) if isinstance(region, Repeat) else region


def letters(number: int) -> str:
    """Return A to Z, then AA, AB and so on, for 0, 1, 2."""
    around, place = divmod(number, len(ascii_uppercase))
    return (letters(around - 1) if around else "") + ascii_uppercase[place]
