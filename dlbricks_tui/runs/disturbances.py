"""Disturbances of a run by other programs, counted once for the run screen and the command line."""

from dataclasses import dataclass
from functools import singledispatchmethod

from dlbricks_tui.measure.events import BegunAnew, DriftNoted, Event, RoundRepeated

HINT = "close other programs, or measure when the host is quiet"


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

    @property
    def counts(self) -> str:
        """The counts in words; empty while nothing disturbed the run."""
        words = []
        if self.rounds:
            words.append(f"{self.rounds:,} round{'' if self.rounds == 1 else 's'} repeated ({self.seconds:.0f} s)")
        if self.batches:
            words.append(f"{self.batches:,} batch{'' if self.batches == 1 else 'es'} measured anew")
        if self.slower is not None:
            how = "slower" if self.slower > 0 else "faster"
            words.append(f"host {100 * abs(self.slower):.0f} % {how} than at first")
        return ", ".join(words)

    def __str__(self) -> str:
        """The counts with a hint at what helps."""
        return f"noise: {self.counts}; {HINT}" if self.counts else ""
