"""Whether the machine was left to a round of measuring alone, and how long to wait for one that is."""

import math
from collections import deque
from dataclasses import dataclass
from statistics import median

from dlbricks_tui.bench.crowding import Crowding

# On a quiet host the threads of a worker are hardly ever stopped; a screen that is drawn a few times a second does it
# now and then. Where somebody computes beside them, they share the core that is left: as one asks the other for each
# run of a program, they stop one another that often, and somebody else stops them, too.
_MOST_STOPS_PER_SECOND, _MOST_STOPS_PER_RUN, _FEWEST_STOPS = 600.0, 0.5, 10
# In a round of programs that take next to nothing they share a core by themselves: a short round tells nothing of
# others.
_SHORTEST_SECONDS = 0.05
_MOST_WAITING = 0.01
# On a quiet host the reference varies by one or two percent.
_MOST_SLOWER = 1.15
_ROUNDS_TO_KNOW_THE_REFERENCE = 5
_ROUNDS_REMEMBERED = 200
# One that was slowed by its neighbours and is no more is quicker by a third, for a minute or for good.
_QUICKER = 1.1
ROUNDS_TO_BE_SURE = 5
# A busy host will not become quiet because somebody waits: after so long in a row its rounds are taken as they are,
# until so many in a row were calm. And beyond that time no more is measured twice than once, however often it is.
_PATIENCE_SECONDS = 60.0
_CALM_ROUNDS_FOR_NEW_PATIENCE = 5


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What is known of one round of measuring; None where nobody could tell."""

    seconds: float
    # How often programs ran in it.
    runs: int
    crowding: Crowding | None
    reference_ms: float | None


class Calmness:
    """Judges the rounds of a run, one after another."""

    def __init__(self, most_seconds: float = math.inf) -> None:
        """However often the machine becomes quiet again, no more than so much is measured twice."""
        self._seconds_left = most_seconds
        self._counted_seconds = self._repeated_seconds = 0.0
        self._references: deque[float] = deque(maxlen=_ROUNDS_REMEMBERED)
        self._lost_seconds = 0.0
        self._calm_in_a_row = 0
        self._times_quicker: float | None = None

    @property
    def usual_reference_ms(self) -> float | None:
        """What the reference takes when the machine is calm; None until that is known."""
        return median(self._references) if len(self._references) >= _ROUNDS_TO_KNOW_THE_REFERENCE else None

    @property
    def worth_repeating(self) -> bool:
        """Whether it still makes sense to measure again what was disturbed."""
        in_proportion = self._repeated_seconds < _PATIENCE_SECONDS + self._counted_seconds
        return in_proportion and self._lost_seconds < _PATIENCE_SECONDS and self._seconds_left > 0

    def disturbance(self, round_: Circumstances) -> str | None:
        """What disturbed a round, in words; None if nothing did."""
        found = self._waiting(round_) or self._slowness(round_)
        if found is None:
            self._calm_in_a_row += 1
            if round_.reference_ms is not None:
                self._references.append(round_.reference_ms)
                self._notice_quickening()
            if self._calm_in_a_row >= _CALM_ROUNDS_FOR_NEW_PATIENCE:
                self._lost_seconds = 0.0
        else:
            self._calm_in_a_row = 0
            self._lost_seconds += round_.seconds
        return found

    def take_quickening(self) -> float | None:
        """How many times quicker the machine has become, as its latest rounds show; None if that is known already."""
        times_quicker, self._times_quicker = self._times_quicker, None
        return times_quicker

    def count(self, seconds: float) -> None:
        """What took so long counts."""
        self._counted_seconds += seconds

    def repeat(self, seconds: float) -> None:
        """What took so long is measured again."""
        self._seconds_left -= seconds
        self._repeated_seconds += seconds

    def _notice_quickening(self) -> None:
        references = list(self._references)
        before, latest = references[:-ROUNDS_TO_BE_SURE], references[-ROUNDS_TO_BE_SURE:]
        if len(before) < _ROUNDS_TO_KNOW_THE_REFERENCE:
            return
        usual_ms = median(before)
        if _QUICKER * max(latest) <= usual_ms:
            self._times_quicker = usual_ms / median(latest)
            # From now on that is what is usual, and who is as slow as before is disturbed.
            self._references = deque(latest, maxlen=_ROUNDS_REMEMBERED)

    def _waiting(self, round_: Circumstances) -> str | None:
        if round_.crowding is None or round_.crowding.times_stopped < _FEWEST_STOPS:
            return None
        if round_.seconds < _SHORTEST_SECONDS:
            return None
        waited_seconds, stops = round_.crowding
        most = min(_MOST_STOPS_PER_SECOND * round_.seconds, _MOST_STOPS_PER_RUN * round_.runs)
        crowded = stops > most and waited_seconds > _MOST_WAITING * round_.seconds
        return f"others took the processor {stops:,} times in {round_.seconds:.2f} s" if crowded else None

    def _slowness(self, round_: Circumstances) -> str | None:
        usual_ms = self.usual_reference_ms
        if usual_ms is None or round_.reference_ms is None or round_.reference_ms <= _MOST_SLOWER * usual_ms:
            return None
        return f"the machine was {round_.reference_ms / usual_ms:.2f} times slower than usual"
