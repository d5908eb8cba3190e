"""The sequences that an estimate is composed of, each with its latency and where that comes from; the slowest ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.bricks.decomposition import Decomposition, Occurrence
from dlbricks_tui.bricks.identity import Brick, brick_of, times_paid
from dlbricks_tui.estimate.compositions import from_picoseconds, to_picoseconds
from dlbricks_tui.estimate.knowledge import Knowledge, Latency, MeasuredLatency, Pair, Predictor, Unmeasured
from dlbricks_tui.models.graph import LayerGraph

if TYPE_CHECKING:
    from dlbricks_tui.estimate.estimate import Estimate


class Standing(str, Enum):
    """The source of a part's latency.

    `free`: a stored array, which takes no time. `predicted`: derived from other bricks. `missing`: not measured yet.
    `unmeasurable`: the runtime cannot run it.
    """

    MEASURED = "measured"
    FREE = "free"
    PREDICTED = "predicted"
    MISSING = "missing"
    UNMEASURABLE = "unmeasurable"


_KNOWN = (Standing.FREE, Standing.MEASURED)
_COUNTING = (*_KNOWN, Standing.PREDICTED)
_NOTHING = Latency(0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Part:
    """Layers of a model, and the latency of one run of them; the model runs them `times` times."""

    layers: tuple[int, ...]
    brick: Brick
    context: str
    times: int
    standing: Standing
    # Zero if the latency is not known: then `most_ms` is an upper bound.
    latency: Latency = _NOTHING
    most_ms: float = 0.0
    measured: MeasuredLatency | None = None
    # The reason why it cannot be measured, also if its latency is predicted.
    reason: str = ""

    @property
    def pair(self) -> Pair:
        """The brick and context that it needs."""
        return self.brick.key, self.context

    @property
    def source(self) -> Pair:
        """The brick and context of its measurement; parts of one source have the same error."""
        return self.pair if self.measured is None else self.measured.pair

    @property
    def measurements(self) -> Iterator[tuple[int, MeasuredLatency]]:
        """The measurements behind its latency, each with the number of times that the model runs what was measured."""
        if self.measured is not None:
            for times, of_layer in self.measured.layers or ((1, self.measured),):
                yield self.times * times, of_layer

    @property
    def free(self) -> bool:
        """True if it computes nothing."""
        return self.standing is Standing.FREE

    @property
    def known(self) -> bool:
        """True if its latency is zero or measured."""
        return self.standing in _KNOWN

    @property
    def predicted(self) -> bool:
        """True if its latency is derived from other bricks."""
        return self.standing is Standing.PREDICTED

    @property
    def counts(self) -> bool:
        """True if it has a latency, predicted or not."""
        return self.standing in _COUNTING

    @property
    def paid_ps(self) -> int:
        """The part of the sequential latency of the model."""
        return self.times * to_picoseconds(self.latency.value_ms)


def parts_of(decomposition: Decomposition, knowledge: Knowledge) -> tuple[Part, ...]:
    """Return the sequences that cover the model, in order; of overlapping ones those with the least cost."""
    graph = decomposition.graph
    found = [_part(graph, occurrence, knowledge) for occurrence in decomposition.occurrences]
    if decomposition.cutting.cut is Cut.OVERLAP:
        windows = [Window(len(part.layers), part.paid_ps if part.known else None) for part in found]
        cover = [(found[begin], known) for begin, known in minimum_cover(windows)]
        found = [
            part if known else replace(part, layers=part.layers[:1], times=times_paid(graph, part.layers[:1]))
            for part, known in cover
        ]
    if all(part.known for part in found):
        return tuple(found)
    if knowledge.predictor is not None:
        found = list(_with_predictions(graph, found, knowledge.predictor()))
    if all(part.counts for part in found):
        return tuple(found)
    # Loaded here: a model that is known in full needs no bounds.
    from dlbricks_tui.estimate.features import UpperBounds

    bounds = UpperBounds((part.brick.canonical, part.latency.high_ms) for part in found if part.counts)

    def most_ms(part: Part) -> float:
        # Of a window that is reduced to one layer, only that layer counts.
        return math.fsum(bounds.most_ms(brick_of(graph, (index,)).canonical) for index in part.layers)

    return tuple([part if part.counts else replace(part, most_ms=most_ms(part)) for part in found])


def _part(graph: LayerGraph, occurrence: Occurrence, knowledge: Knowledge) -> Part:
    indices, brick, context = occurrence.sequence.layers, occurrence.brick, occurrence.context
    layers = [graph.layers[index] for index in indices]
    times = times_paid(graph, indices)
    measured = knowledge.measured.get((brick.key, context))
    if measured is not None:
        return Part(indices, brick, context, times, Standing.MEASURED, measured.latency, measured=measured)
    if not any(layer.operators for layer in layers):
        return Part(indices, brick, context, times, Standing.FREE)
    reasons = [layer.unmeasurable for layer in layers if layer.unmeasurable is not None]
    if not reasons and (brick.key, context) in knowledge.failed:
        reasons = [knowledge.failed[brick.key, context]]
    if reasons:
        return Part(indices, brick, context, times, Standing.UNMEASURABLE, reason=reasons[0])
    return Part(indices, brick, context, times, Standing.MISSING)


class Window(NamedTuple):
    """A sequence that begins at a position of the layer order: its length, and its latency if known."""

    length: int
    latency_ps: int | None


class Chosen(NamedTuple):
    """A part of the cover: the window that begins at a position, or (known False) the one layer there, uncovered."""

    begin: int
    known: bool


def minimum_cover(windows: Sequence[Window]) -> tuple[Chosen, ...]:
    """Return the cheapest windows that cover all positions, given the window that begins at each (paper, section 6).

    Layers in two windows count twice. Positions that no known window reaches stay uncovered, each by itself.
    """
    # The cost of covering everything before each position: the uncovered layers, then the latency.
    costs = [(0, 0)]
    last: list[Chosen] = []
    longest = max((window.length for window in windows), default=0)
    for position in range(len(windows)):
        uncovered, latency_ps = costs[position]
        best, chosen = (uncovered + 1, latency_ps), Chosen(position, False)
        # The last window of a cover begins at most its length before its end. Of equal costs the one that reaches
        # further is taken, then the one that begins first.
        reach = position
        for begin in range(max(0, position - longest + 1), position + 1):
            window = windows[begin]
            if window.latency_ps is not None and begin + window.length > position:
                cost = costs[begin][0], costs[begin][1] + window.latency_ps
                if cost < best or (cost == best and chosen.known and begin + window.length > reach):
                    best, chosen, reach = cost, Chosen(begin, True), begin + window.length
        costs.append(best)
        last.append(chosen)
    cover: list[Chosen] = []
    position = len(last)
    while position:
        cover.append(last[position - 1])
        position = cover[-1].begin
    return tuple(reversed(cover))


def _with_predictions(graph: LayerGraph, parts: Sequence[Part], predictor: Predictor) -> Iterator[Part]:
    """Yield the parts, of which those without a measurement have a predicted latency if one is possible.

    A sequence of several layers takes as long as its layers.
    """
    # Equal parts have one prediction, and equal layers, too.
    lacking = {part.pair: part for part in parts if not part.known}
    unknown = {pair: _unmeasured(graph, part) for pair, part in lacking.items()}
    wanted = dict.fromkeys(brick for bricks in unknown.values() for brick in bricks)
    found = dict(zip(wanted, predictor.predict(list(wanted)), strict=True))
    predicted: dict[Pair, Latency] = {}
    for pair in lacking:
        layers_ms = [latency for brick in unknown[pair] if (latency := found[brick]) is not None]
        if layers_ms and len(layers_ms) == len(unknown[pair]):
            predicted[pair] = Latency(*map(math.fsum, zip(*layers_ms, strict=True)))
    for part in parts:
        latency = None if part.known else predicted.get(part.pair)
        if latency is None:
            yield part
        else:
            # Models may have ten thousand parts: `replace` takes three times as long.
            layers, brick, context, times, reason = part.layers, part.brick, part.context, part.times, part.reason
            yield Part(layers, brick, context, times, Standing.PREDICTED, latency, reason=reason)


def _unmeasured(graph: LayerGraph, part: Part) -> Sequence[Unmeasured]:
    """Return the layers of a part that compute something, each as a brick."""
    if len(part.layers) == 1:
        # A window that a cover has reduced to one layer has another brick than that layer.
        return (Unmeasured(brick_of(graph, part.layers).canonical, part.context),)
    layers = [layer for layer in part.layers if graph.layers[layer].operators]
    return [Unmeasured(brick_of(graph, (layer,)).canonical, part.context) for layer in layers]


class SlowPart(NamedTuple):
    """A sequence of layers, its part in the sequential latency, and the part of it and of all slower ones together."""

    part: Part
    latency_ms: float
    share: float
    cumulative: float


class Slowest(NamedTuple):
    """The slowest sequences, the slowest first, of all sequences of a model with their latency."""

    parts: tuple[SlowPart, ...]
    sequences: int
    total_ms: float


def slowest(estimate: Estimate, most: int) -> Slowest:
    """Return so many of the slowest sequences; of equally slow ones the first in the model.

    Sequences that take no time are left out. A model that runs a sequence several times pays for it each time.
    """
    paid = sorted((it for it in estimate.parts if it.paid_ps), key=lambda it: (-it.paid_ps, it.layers))
    total_ps = estimate.paid_ps
    sums_ps = accumulate(it.paid_ps for it in paid[:most])
    parts = tuple(
        SlowPart(it, from_picoseconds(it.paid_ps), it.paid_ps / total_ps, sum_ps / total_ps)
        for it, sum_ps in zip(paid[:most], sums_ps, strict=True)
    )
    return Slowest(parts, len(estimate.parts), from_picoseconds(total_ps))
