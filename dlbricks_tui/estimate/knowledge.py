"""What is known of bricks on one system and runtime: all that an estimate may look at."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from dlbricks_tui.estimate.calibration import UNCALIBRATED, Correction

# A brick and a context, by their keys.
Pair = tuple[str, str]


class Latency(NamedTuple):
    """How long a brick takes: the value that is used, and its 95 % interval."""

    value_ms: float
    low_ms: float
    high_ms: float

    def shifted(self, by_ms: float) -> "Latency":
        """The same with so much added everywhere; no latency falls below nothing."""
        return Latency(*(max(0.0, each + by_ms) for each in self))


class Measured(NamedTuple):
    """A latency that was measured, and what exactly was measured to get it."""

    latency: Latency
    pair: Pair
    samples: int
    # The ids of the results that it is made of.
    results: tuple[str, ...] = ()
    # What the reference took in the same rounds; 0 where nobody knows.
    reference_ms: float = 0.0
    # Half of the interval, as a share of the latency, that all results of the same rounds have in common; None: all.
    shared: float | None = None
    # In microseconds since 1970.
    when: int = 0
    # The key of the model in which it was timed, where that was one whole model; empty otherwise.
    carrier: str = ""


class Similar(NamedTuple):
    """A measured brick that some other may resemble, by its canonical form."""

    canonical: str
    latency: Latency


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Measurements by the (brick, context) that they stand for, and what else bears on an estimate."""

    measured: Mapping[Pair, Measured] = field(default_factory=dict)
    # Bricks that were tried and cannot run, with the reason.
    failed: Mapping[Pair, str] = field(default_factory=dict)
    # Bricks of other models, to bridge with.
    similar: tuple[Similar, ...] = ()
    correction: Correction = UNCALIBRATED


NOTHING_KNOWN = Knowledge()
