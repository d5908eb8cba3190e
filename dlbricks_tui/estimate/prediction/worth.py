"""The unmeasured bricks whose measurement narrows an interval most, and how many of them a target needs."""

import math
from collections import defaultdict
from typing import NamedTuple

from dlbricks_tui.estimate.estimate import Estimate
from dlbricks_tui.estimate.knowledge import Pair


class Needed(NamedTuple):
    """Bricks to measure, the most uncertain first, and half of today's interval as a share of the estimate.

    The method's error does not count: no measurement of bricks reduces it.
    """

    pairs: tuple[Pair, ...]
    half_width: float


def needed_for(found: Estimate, shared: float, target: float) -> Needed:
    """Return the bricks without which half of the interval would exceed the target, a share of the estimate.

    `shared` is the share of the half intervals that all predictions have in common. Bricks without any latency come
    first.
    """
    lacking = dict.fromkeys(part.pair for part in found.parts if not part.counts and not part.reason)
    halves_ms: defaultdict[Pair, float] = defaultdict(float)
    for part in found.parts:
        if part.predicted and not part.reason:
            value_ms, low_ms, high_ms = part.latency
            halves_ms[part.pair] += part.times * max(value_ms - low_ms, high_ms - value_ms)
    if found.composed is None or not found.composed.sequential_ms:
        return Needed((*lacking, *halves_ms), math.inf)
    doubt, whole_ms = found.composed.doubt, found.composed.sequential_ms
    sampling_ms = max(doubt.sampling_below_ms, doubt.sampling_above_ms)
    linear, squares = math.fsum(halves_ms.values()), math.fsum(half**2 for half in halves_ms.values())

    def half_width() -> float:
        own = max(0.0, (1.0 - shared**2) * squares)
        return math.hypot(sampling_ms, shared * linear, math.sqrt(own)) / whole_ms

    today = math.inf if lacking else half_width()
    chosen = list(lacking)
    for pair, half_ms in sorted(halves_ms.items(), key=lambda it: -it[1]):
        if half_width() <= target:
            break
        chosen.append(pair)
        linear, squares = linear - half_ms, squares - half_ms**2
    return Needed(tuple(chosen), today)
