"""What the parts of a model are called."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from dlbricks_tui.bricks.regions import Irregular, Leaf, Parallel, Region, Repeat
from dlbricks_tui.models.titles import layer_title, shape_text
from dlbricks_tui.wording.numbers import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlbricks_tui.models.graph import Layer
    from dlbricks_tui.tui.opened import Opened


class Titles:
    """Made when they are asked for: of 18,000 layers few are ever seen."""

    def __init__(self, opened: Opened) -> None:
        self._model = opened.graph.name
        self._layers = opened.graph.layers
        self._occurrences = opened.decomposition.occurrences
        self._unit = "layer" if opened.decomposition.cutting.granularity == 1 else "sequence"
        self._nesting = opened.nesting
        # Sequences of one brick are called the same.
        self._by_brick: dict[str, str] = {}

    def layer(self, index: int) -> str:
        """`conv 3x3/2 64`, and how often it runs."""
        layer = self._layers[index]
        return layer_title(layer) + (f" (runs {layer.times:,} times)" if layer.times > 1 else "")

    def sequence(self, number: int) -> str:
        """The layers of a sequence one after another."""
        occurrence = self._occurrences[number]
        key = occurrence.brick.key
        if key not in self._by_brick:
            self._by_brick[key] = " > ".join(map(self.layer, occurrence.sequence.layers))
        return self._by_brick[key]

    def region(self, region: Region) -> str:
        """What a part of the model is; where nothing else is to be said, how large it is."""
        if region is self._nesting.root:
            return self._model
        if isinstance(region, Leaf):
            return self.sequence(region.layer)
        if not region.size:
            return "passes by"
        if isinstance(region, Repeat) and isinstance(region.instances[0], Leaf):
            return f"{self.sequence(region.instances[0].layer)}, {len(region.instances)} in a row"
        kind = f"{len(region.branches)} branches" if isinstance(region, Parallel) else ""
        if isinstance(region, Irregular):
            kind = "irregular"
        return ", ".join(filter(None, (self._module(region), kind))) or self.size(region)

    def size(self, region: Region) -> str:
        """How large a part of the model is."""
        return counted(region.size, self._unit)

    def names(self, region: Region) -> str:
        """What the model file calls the first and the last layer in it."""
        inside = self._nesting.numbers(region)
        if not inside:
            return ""
        first = self._occurrences[inside[0]].sequence.layers[0]
        last = self._occurrences[inside[-1]].sequence.layers[-1]
        name = self.name(first)
        return name if first == last else f"{name} .. {self.name(last)}"

    def name(self, layer: int) -> str:
        """What the model file calls a layer."""
        return self._layers[layer].name

    def output(self, layer: int) -> str:
        """The shape of what comes out of a layer."""
        outputs = self._layers[layer].outputs
        return shape_text(outputs[0]) if outputs else ""

    def found(self, words: Sequence[str]) -> list[int]:
        """The sequences of which every word is in an operator, a kind or a name of their layers."""
        hits: list[int] = []
        for numbers in self._numbers_by_brick.values():
            # What sequences of one brick have in common is asked of one of them.
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
