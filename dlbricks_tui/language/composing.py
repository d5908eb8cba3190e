"""Latencies of language models from those of stored bricks: each layer counts as often as the model has it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import fmean

from dlbricks_tui.language.decoder import Decoder
from dlbricks_tui.language.layers import ModelPart
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.store.columns import Summary
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.index import SHARED_COLUMN
from dlbricks_tui.store.selections import OLDEST_FIRST, equal

# The id of the method under which bricks of language models are stored.
PROTOCOL = "decoder-1"
# However wide its interval is, a step takes at least this share of its latency.
_LEAST_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class BrickTime:
    """The latency of a brick, and half of its 95 % interval: by itself, and in common with bricks of its rounds."""

    ms: float
    half_ms: float
    shared_half_ms: float
    # Of the measurement; empty for a prediction.
    when: str = ""

    @property
    def is_predicted(self) -> bool:
        return not self.when


# Returns the latency of a layer: measured, or predicted.
TimeOf = Callable[[LayerGraph, int], BrickTime]


def known_bricks(store: ResultsDatabase, system: str, runtime: str) -> Mapping[str, BrickTime]:
    """Return the newest results of all bricks of language models, by key."""
    found = store.select(equal(system=system, runtime=runtime, protocol=PROTOCOL, good=True), order=OLDEST_FIRST)
    # The results of the newest run, one for each place of the brick.
    newest: dict[str, list[tuple[Summary, float]]] = {}
    for summary, share in zip(found, found.numbers(SHARED_COLUMN), strict=True):
        places = newest.get(summary.brick)
        if places is None or places[0][0].run != summary.run:
            places = newest[summary.brick] = []
        places.append((summary, float(share)))
    times = {}
    for brick, places in newest.items():
        ms = fmean(it.trimmed_mean_ms for it, _ in places)
        half_ms = fmean((it.high_ms - it.low_ms) / 2 for it, _ in places)
        times[brick] = BrickTime(ms, half_ms, max(0.0, *(share for _, share in places)) * ms, places[-1][0].when)
    return times


@dataclass(frozen=True, slots=True)
class StepTime:
    """The latency of one step of a language model, or of several, with half of its 95 % interval."""

    ms: float
    half_ms: float
    parts_ms: Mapping[ModelPart, float]
    # The share of `ms` that rests on measurements, and the time of the newest.
    coverage: float
    when: str

    @property
    def bounds_ms(self) -> tuple[float, float]:
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
    return StepTime(total, half, parts, measured / total if total else 0.0, when)


def steps_time(*steps: tuple[float, StepTime]) -> StepTime:
    """Return the latency of steps, each so many times, which are wrong alike."""
    ms = sum(times * it.ms for times, it in steps)
    names = dict.fromkeys(part for _, it in steps for part in it.parts_ms)
    parts = {name: sum(times * it.parts_ms.get(name, 0.0) for times, it in steps) for name in names}
    measured = sum(times * it.ms * it.coverage for times, it in steps)
    half = sum(times * it.half_ms for times, it in steps)
    return StepTime(ms, half, parts, measured / ms if ms else 0.0, max(it.when for _, it in steps))
