"""An estimate on a system and a runtime, beside the end-to-end latency."""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from dlbricks_tui.estimate.estimate import Estimate
from dlbricks_tui.estimate.knowledge import Latency
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.variant import USUAL_VARIANT, Variant

_MICROSECONDS = 1e6


class Way(NamedTuple):
    """A way of measuring: only results of one way are combined."""

    system: str
    runtime: str
    level: Level
    protocol: str


class FigureBasis(str, Enum):
    """The origin of the latency that answers for a model.

    MEASURED: the whole model was timed.
    ESTIMATED: composed of measured bricks.
    PREDICTED: composed of bricks that were not all measured.
    """

    MEASURED = "measured"
    ESTIMATED = "estimated"
    PREDICTED = "predicted"


class Figure(NamedTuple):
    """The latency that answers for a model, its origin, and the times of its measurements."""

    latency: Latency
    basis: FigureBasis
    # The oldest and the newest, in seconds since 1970; None if nothing was measured.
    between: tuple[float, float] | None

    @property
    def is_measured(self) -> bool:
        """True if nothing in it is predicted."""
        return self.basis is not FigureBasis.PREDICTED


@dataclass(frozen=True)
class SystemEstimate:
    """The estimate of a model on a system, and its end-to-end latency."""

    way: Way
    estimate: Estimate
    end_to_end: Latency | None = None
    # The latency of the reference while the model was timed end to end, and its usual one there; 0 if not known.
    reference_ms: float = 0.0
    usual_reference_ms: float = 0.0
    # The time of the end-to-end measurement, in microseconds since 1970, and its samples; 0 if there is none.
    timed_when: int = 0
    timed_samples: int = 0
    # The name of the runtime; empty if the store does not have it.
    runtime_name: str = ""
    variant: Variant = USUAL_VARIANT
    # The usable cores of the system; None if it is not in the store.
    cores: int | None = None

    @property
    def figure(self) -> Figure | None:
        """The end-to-end latency, else the estimate of all layers; None for a sum that lacks layers."""
        if self.end_to_end is not None:
            moment = self.timed_when / _MICROSECONDS
            return Figure(self.end_to_end, FigureBasis.MEASURED, (moment, moment) if self.timed_when else None)
        composed = self.estimate.composed
        if composed is None or self.estimate.is_partial:
            return None
        latency = Latency(composed.sequential_ms, composed.interval.low_ms, composed.interval.high_ms)
        basis = FigureBasis.PREDICTED if self.estimate.coverage.predicted else FigureBasis.ESTIMATED
        return Figure(latency, basis, self.measured_between)

    @property
    def is_measured(self) -> bool:
        """True if the model or any brick of it was measured."""
        return self.end_to_end is not None or any(part.measured is not None for part in self.estimate.parts)

    @property
    def per_second(self) -> float | None:
        """The images, sentences or rows that the model computes in a second, by the sequential estimate.

        None if layers are missing in that.
        """
        if not self.sequential_ms or self.estimate.is_partial:
            return None
        return self.variant.batch_size / self.sequential_ms * 1000

    @property
    def measured_between(self) -> tuple[float, float] | None:
        """The times of its oldest and its newest measurement, in seconds since 1970; None if nothing was measured."""
        moments = [it.measured.when for it in self.estimate.parts if it.measured is not None and it.measured.when]
        return (min(moments) / _MICROSECONDS, max(moments) / _MICROSECONDS) if moments else None

    @property
    def sequential_ms(self) -> float | None:
        """The estimate that is compared with the end-to-end latency."""
        return self.estimate.composed.sequential_ms if self.estimate.composed else None

    @property
    def ratio(self) -> float | None:
        """Estimate over end to end; 1 is perfect."""
        if self.sequential_ms is None or self.end_to_end is None or not self.end_to_end.value_ms:
            return None
        return self.sequential_ms / self.end_to_end.value_ms

    @property
    def error(self) -> float | None:
        """The estimate minus the end-to-end latency, as a share of the latter; None for a sum that lacks layers."""
        return None if self.ratio is None or self.estimate.is_partial else self.ratio - 1.0
