"""An estimate where it belongs: on a system and a runtime, beside what was measured end to end."""

from dataclasses import dataclass
from typing import NamedTuple

from dlbricks_tui.estimate.estimate import Estimate
from dlbricks_tui.estimate.knowledge import Latency
from dlbricks_tui.models.graph import Level


class Way(NamedTuple):
    """How things were measured: what can be put together is of one way."""

    system: str
    runtime: str
    level: Level
    protocol: str


@dataclass(frozen=True)
class SystemEstimate:
    """All there is to say about one model on one system."""

    way: Way
    estimate: Estimate
    end_to_end: Latency | None = None
    # What the reference took while the model was timed end to end; 0 where nobody knows.
    reference_ms: float = 0.0

    @property
    def sequential_ms(self) -> float | None:
        """The estimate that is compared with what was measured."""
        return self.estimate.composed.sequential_ms if self.estimate.composed else None

    @property
    def ratio(self) -> float | None:
        """Estimate over end to end; 1 is perfect."""
        if self.sequential_ms is None or self.end_to_end is None or not self.end_to_end.value_ms:
            return None
        return self.sequential_ms / self.end_to_end.value_ms

    @property
    def error(self) -> float | None:
        """By what share of the end-to-end latency the estimate is too high (or, negative, too low).

        None, too, of a sum that leaves layers out: what it lacks is no error.
        """
        return None if self.ratio is None or self.estimate.is_partial else self.ratio - 1.0
