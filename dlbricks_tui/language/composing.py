"""From the latencies of bricks to those of the whole model: each layer counts as often as the model has it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dlbricks_tui.language.decoder import Decoder
from dlbricks_tui.language.layers import ModelPart
from dlbricks_tui.language.stored import BrickTime
from dlbricks_tui.language.work import work_of
from dlbricks_tui.models.graph import LayerGraph

# However wide its interval is, a step takes at least this share of its latency.
_LEAST_SHARE = 0.05
# Returns the latency of a layer: measured, or predicted.
TimeOf = Callable[[LayerGraph, int], BrickTime]


@dataclass(frozen=True, slots=True)
class StepTime:
    """The latency of one step of a language model, with half of its 95 % interval."""

    ms: float
    half_ms: float
    parts_ms: Mapping[ModelPart, float]
    # The share of `ms` that rests on measurements, and the time of the newest.
    coverage: float
    when: str

    @property
    def bounds_ms(self) -> tuple[float, float]:
        """The 95 % interval."""
        return max(_LEAST_SHARE * self.ms, self.ms - self.half_ms), self.ms + self.half_ms


def step_time(found: Decoder, time_of: TimeOf) -> StepTime:
    """Return the latency of the model of which a decoder has some blocks."""
    parts: defaultdict[ModelPart, float] = defaultdict(float)
    total = measured = together = predicted = apart = 0.0
    when = ""
    for layer, part, count in zip(found.graph.layers, found.parts, found.counts, strict=True):
        brick = time_of(found.graph, layer.index)
        parts[part] += count * brick.ms
        total += count * brick.ms
        apart += (count * brick.half_ms) ** 2
        if brick.is_predicted:
            # Predictions are wrong alike.
            predicted += count * brick.shared_half_ms
        else:
            measured += count * brick.ms
            together += count * brick.shared_half_ms
            when = max(when, brick.when)
    half = math.hypot(together, math.sqrt(apart)) + predicted
    return StepTime(total, half, dict(parts), measured / total if total else 0.0, when)


def mean_step(first: StepTime, last: StepTime) -> StepTime:
    """Return the mean of all steps between two, whose latencies grow evenly."""
    parts = {it: (first.parts_ms.get(it, 0.0) + last.parts_ms.get(it, 0.0)) / 2 for it in ModelPart}
    return StepTime(
        (first.ms + last.ms) / 2,
        (first.half_ms + last.half_ms) / 2,
        {part: ms for part, ms in parts.items() if ms},
        (first.coverage + last.coverage) / 2,
        max(first.when, last.when),
    )


def bytes_read(found: Decoder) -> int:
    """Return the bytes of weights and caches that one step of the model reads."""
    layers = zip(found.graph.layers, found.counts, strict=True)
    return sum(count * work_of(layer).bytes_read for layer, count in layers)
