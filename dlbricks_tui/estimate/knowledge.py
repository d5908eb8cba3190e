"""The measurements of bricks on one system and runtime: the input of an estimate."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from dlbricks_tui.estimate.calibration import UNCALIBRATED, Correction

# A brick and a context, by their keys.
Pair = tuple[str, str]


class Latency(NamedTuple):
    """A latency with its 95 % interval."""

    value_ms: float
    low_ms: float
    high_ms: float

    def shifted(self, by_ms: float) -> "Latency":
        """Return the latency with a time added everywhere; it does not fall below zero."""
        return Latency(*(max(0.0, each + by_ms) for each in self))


class MeasuredLatency(NamedTuple):
    """A measured latency, and the results that it comes from."""

    latency: Latency
    pair: Pair
    samples: int
    # The ids of its results.
    results: tuple[str, ...] = ()
    # The latency of the reference in the same rounds; 0 if not known.
    reference_ms: float = 0.0
    # Half of the interval, as a share of the latency, that all results of the same rounds have in common; None: all.
    shared: float | None = None
    # In microseconds since 1970.
    when: int = 0
    # The key of the model in which it was timed, if that was one whole model; else empty.
    carrier: str = ""


class Similar(NamedTuple):
    """A measured brick, by its canonical form, from which others can be predicted."""

    canonical: str
    latency: Latency


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Measurements by brick and context, with all else that an estimate uses."""

    measured: Mapping[Pair, MeasuredLatency] = field(default_factory=dict)
    # Bricks that failed, with the reason.
    failed: Mapping[Pair, str] = field(default_factory=dict)
    # Measured bricks of other models, for predictions.
    similar: tuple[Similar, ...] = ()
    correction: Correction = UNCALIBRATED


NOTHING_KNOWN = Knowledge()
