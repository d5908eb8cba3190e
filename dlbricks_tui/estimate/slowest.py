"""The layer sequences of a model that take most of its time."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from dlbricks_tui.estimate.compositions import milliseconds

if TYPE_CHECKING:
    from dlbricks_tui.estimate.estimate import Estimate
    from dlbricks_tui.estimate.parts import Part


@dataclass(frozen=True, slots=True)
class SlowPart:
    """A sequence of layers, its part in the sequential latency, and the part of it and of all slower ones together."""

    part: Part
    latency_ms: float
    share: float
    cumulative: float


@dataclass(frozen=True, slots=True)
class Slowest:
    """The slowest sequences, the slowest first, of all sequences of a model with their latency."""

    parts: tuple[SlowPart, ...]
    sequences: int
    total_ms: float


def slowest(estimate: Estimate, most: int) -> Slowest:
    """Return so many of the slowest sequences; of equally slow ones the first in the model.

    Sequences that take no time are left out. A model that runs a sequence several times pays for it each time.
    """
    paid = sorted((it for it in estimate.parts if it.counts and it.paid_ps), key=lambda it: (-it.paid_ps, it.layers))
    total_ps = sum(it.paid_ps for it in paid)
    sums_ps = accumulate(it.paid_ps for it in paid[:most])
    parts = tuple(
        SlowPart(it, milliseconds(it.paid_ps), it.paid_ps / total_ps, sum_ps / total_ps)
        for it, sum_ps in zip(paid[:most], sums_ps, strict=True)
    )
    return Slowest(parts, len(estimate.parts), milliseconds(total_ps))
