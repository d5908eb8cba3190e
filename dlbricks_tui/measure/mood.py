"""How the machine felt in the rounds of a batch that count, and how many did not."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from statistics import median

from dlbricks_tui.store.records import Facts

# A fact of each result: what it took to call a runtime that computes nothing.
NULL_CALL_MS = "null_call_ms"


@dataclass(frozen=True, slots=True)
class FeltRound:
    """What one round has shown of the machine."""

    seconds: float
    null_calls_ms: Sequence[float]
    reference_ms: Sequence[float]
    disturbed: bool


@dataclass(slots=True)
class Mood:
    """The rounds of a batch, in their order."""

    rounds: list[FeltRound] = field(default_factory=list)
    repeated: int = 0

    @property
    def reference_ms(self) -> tuple[float, ...]:
        """What the reference took, at either end of each round."""
        return tuple(chain.from_iterable(it.reference_ms for it in self.rounds))

    @property
    def facts(self) -> Facts:
        """What of it is kept with each result."""
        null_calls_ms = tuple(chain.from_iterable(it.null_calls_ms for it in self.rounds))
        found = ((NULL_CALL_MS, null_calls_ms), ("reference_ms", self.reference_ms))
        medians = tuple((name, median(values)) for name, values in found if values)
        disturbed = sum(it.disturbed for it in self.rounds)
        rounds = (("repeated_rounds", self.repeated), ("disturbed_rounds", disturbed))
        return medians + tuple((name, count) for name, count in rounds if count)

    def keep_latest(self, rounds: int) -> float:
        """All rounds before the latest are to be repeated; how many seconds these took."""
        first = max(0, len(self.rounds) - rounds)
        forgotten, self.rounds = self.rounds[:first], self.rounds[first:]
        self.repeated += len(forgotten)
        return sum(it.seconds for it in forgotten)
