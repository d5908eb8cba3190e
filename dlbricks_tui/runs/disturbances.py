"""Disturbances of a run by other programs, counted from its events."""

from dataclasses import dataclass
from functools import singledispatchmethod

from dlbricks_tui.measure.events import BegunAnew, DriftNoted, Event, RoundRepeated


@dataclass(slots=True)
class Disturbances:
    """The rounds that did not count, and how the host changed."""

    rounds: int = 0
    seconds: float = 0.0
    batches: int = 0
    # How much slower than at first the host is, as a share; None while it is as fast as it was.
    slower: float | None = None

    @singledispatchmethod
    def take(self, event: Event) -> bool:
        """Count what disturbed the run, and return whether the event tells of that."""
        return False

    @take.register
    def _(self, event: RoundRepeated) -> bool:
        self.rounds += 1
        self.seconds += event.seconds
        return True

    @take.register
    def _(self, event: BegunAnew) -> bool:
        self.batches += 1
        return True

    @take.register
    def _(self, event: DriftNoted) -> bool:
        self.slower = event.reference_ms / event.usual_ms - 1
        return True
