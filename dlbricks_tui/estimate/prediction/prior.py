"""The prior: bricks that were measured on the committed hosts, for operators about which a store knows too little.

`python -m benchmarks.prior` makes its files from the committed results.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import median

from dlbricks_tui.estimate.knowledge import Latency, Unmeasured
from dlbricks_tui.estimate.prediction.nearest import FEWEST, NearestBricks
from dlbricks_tui.estimate.prediction.saved import read_trained
from dlbricks_tui.models.graph import Level

PRIORS = Path(__file__).parent / "priors"
# A system of which nothing is known takes up to so many times as long as by the prior, or as little.
_UNKNOWN_SYSTEM = 3.0


@lru_cache(maxsize=8)
def prior_of(framework: str, level: Level) -> NearestBricks | None:
    """Return the prior of a framework at a level; None if the committed results have none."""
    found = read_trained(PRIORS / f"{framework}-{level.value}.npz")
    return None if found is None else found.own


def speed_by(prior: NearestBricks | None, measured: Sequence[tuple[Unmeasured, float]]) -> float | None:
    """Return how many times as long measured bricks take as by the prior; None if too few can be compared."""
    if prior is None:
        return None
    expected = prior.predict([brick for brick, _ in measured])
    ratios = [
        latency_ms / each.value_ms
        for (_, latency_ms), each in zip(measured, expected, strict=True)
        if each is not None and latency_ms
    ]
    return median(ratios) if len(ratios) >= FEWEST else None


@dataclass(frozen=True, slots=True, eq=False)
class WithPrior:
    """Predicts by the measured bricks of a store, and operators of which these are too few by the prior."""

    own: NearestBricks
    prior: NearestBricks
    # How many times as long bricks take on the system as by the prior; None if not known.
    speed: float | None

    @property
    def shared(self) -> float:
        """The share of the half intervals that all predictions of a model have in common."""
        return max(self.own.shared, self.prior.shared) if self.speed is not None else 1.0

    def predict(self, bricks: Sequence[Unmeasured]) -> list[Latency | None]:
        """Return the latency of each brick; None if neither knows bricks like it."""
        found = self.own.predict(bricks)
        left = [place for place, latency in enumerate(found) if latency is None]
        for place, latency in zip(left, self.prior.predict([bricks[place] for place in left]), strict=True):
            found[place] = None if latency is None else self._scaled(latency)
        return found

    def _scaled(self, latency: Latency) -> Latency:
        speed, unknown = (1.0, _UNKNOWN_SYSTEM) if self.speed is None else (self.speed, 1.0)
        # Both errors are independent.
        factor = math.exp(math.hypot(math.log(latency.high_ms / latency.value_ms), math.log(unknown)))
        value_ms = speed * latency.value_ms
        return Latency(value_ms, value_ms / factor, value_ms * factor)
