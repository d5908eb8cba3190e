"""Noise of the host in rounds: which rounds it disturbs, which are repeated, and what results say of it."""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from statistics import median
from typing import NamedTuple

from dlbricks_tui.host.contention import Crowding
from dlbricks_tui.store.records import Facts

# On a quiet host the threads of a worker are hardly ever stopped; a screen that is drawn a few times a second does it
# now and then. Where somebody computes beside them, they share the core that is left: as one asks the other for each
# run of a program, they stop one another that often, and somebody else stops them, too.
_MOST_STOPS_PER_SECOND, _MOST_STOPS_PER_RUN, _FEWEST_STOPS = 600.0, 0.5, 10
# In a round of programs that take next to nothing they share a core by themselves: a short round tells nothing of
# others.
_SHORTEST_SECONDS = 0.05
_MOST_WAITING = 0.01
# Threads of a worker stop one another, too, where the kernel puts them on the same core: nobody has disturbed a round
# in which others computed for less than this. The kernel counts that in hundredths of a second.
_LEAST_OF_OTHERS, _TICKS_SECONDS = 0.25, 0.02
# On a quiet host the reference varies by one or two percent. One whose neighbours come and go is slower or quicker by
# a third, for minutes.
_MOST_SLOWER = 1.15
_ROUNDS_TO_KNOW_THE_REFERENCE = 5
_ROUNDS_REMEMBERED = 200
# What has lasted for so many rounds, and for so long, is no accident.
_ROUNDS_TO_BE_SURE, _SECONDS_TO_BE_SURE = 5, 3.0
# A busy host does not become quiet soon: after so long without a break its rounds count as they are, until it was calm.
_PATIENCE_SECONDS = 60.0
# Repeated rounds take so long at most, and half as long as the rounds that count.
_FREE_SECONDS, _MOST_REPEATED_SHARE = 5.0, 0.5
# A fact of each result: what it took to call a runtime that computes nothing.
NULL_CALL_MS = "null_call_ms"


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What is known of one round of measuring; None where nobody could tell."""

    seconds: float
    # How often programs ran in it.
    runs: int
    crowding: Crowding | None
    reference_ms: float | None


class Change(NamedTuple):
    """The machine is another than it was: so many times as fast, and for so many rounds that count."""

    times_as_fast: float
    rounds: int


class _Felt(NamedTuple):
    """What the reference took in a round of so many seconds."""

    reference_ms: float
    seconds: float


class Calmness:
    """Judges the rounds of a run, one after another."""

    def __init__(self, most_seconds: float = math.inf) -> None:
        """However often the machine becomes quiet again, no more than so much is measured twice."""
        self._seconds_left = most_seconds
        self._counted_seconds = self._repeated_seconds = 0.0
        # Rounds that were calm, and all that nobody else computed in.
        self._calm: deque[_Felt] = deque(maxlen=_ROUNDS_REMEMBERED)
        self._felt: deque[_Felt] = deque(maxlen=_ROUNDS_REMEMBERED)
        self._lost_seconds = 0.0
        self._calm_in_a_row, self._calm_seconds = 0, 0.0
        self._change: Change | None = None

    @property
    def usual_reference_ms(self) -> float | None:
        """What the reference takes when the machine is calm; None until that is known."""
        return _usual_ms(self._calm) if len(self._calm) >= _ROUNDS_TO_KNOW_THE_REFERENCE else None

    @property
    def worth_repeating(self) -> bool:
        """Whether it still makes sense to measure again what was disturbed."""
        return self.most_repeated() > 0 and self._lost_seconds < _PATIENCE_SECONDS

    def most_repeated(self, more_counted_seconds: float = 0.0) -> float:
        """Seconds that may go into repeated rounds while rounds that count take so much longer."""
        counted = self._counted_seconds + more_counted_seconds
        in_proportion = _FREE_SECONDS + _MOST_REPEATED_SHARE * counted - self._repeated_seconds
        return max(0.0, min(in_proportion, self._seconds_left))

    @property
    def time_left(self) -> bool:
        """Whether anything may be measured twice."""
        return self._seconds_left > 0

    def disturbance(self, round_: Circumstances) -> str | None:
        """What disturbed a round, in words; None if nothing did."""
        waiting = self._waiting(round_)
        found = waiting or self._slowness(round_)
        felt = None if waiting or round_.reference_ms is None else _Felt(round_.reference_ms, round_.seconds)
        if felt is not None:
            self._felt.append(felt)
        if found is None:
            self._rest(round_.seconds)
            if felt is not None:
                self._calm.append(felt)
                self._notice_quickening()
        else:
            self._calm_in_a_row, self._calm_seconds = 0, 0.0
            self._lost_seconds += round_.seconds
            if not self.worth_repeating:
                self._give_in()
        return found

    def count(self, seconds: float) -> None:
        """What took so long counts."""
        self._counted_seconds += seconds

    def repeat(self, seconds: float) -> None:
        """What took so long is measured again."""
        self._seconds_left -= seconds
        self._repeated_seconds += seconds

    def take_change(self) -> Change | None:
        """How the machine has changed, where that has lasted and is news."""
        change, self._change = self._change, None
        return change

    def _rest(self, seconds: float) -> None:
        """After calm enough there is patience again."""
        self._calm_in_a_row += 1
        self._calm_seconds += seconds
        if self._calm_in_a_row >= _ROUNDS_TO_BE_SURE and self._calm_seconds >= _SECONDS_TO_BE_SURE:
            self._lost_seconds = 0.0

    def _notice_quickening(self) -> None:
        rounds = _lasting(self._calm)
        calm = list(self._calm)
        before, latest = calm[:-rounds], calm[-rounds:]
        if not rounds or len(before) < _ROUNDS_TO_KNOW_THE_REFERENCE:
            return
        if _MOST_SLOWER * max(it.reference_ms for it in latest) <= _usual_ms(before):
            # From now on that is what is usual, and who is as slow as before is disturbed.
            self._become(latest, _usual_ms(before), rounds)

    def _give_in(self) -> None:
        """Where the machine has been slower for as long as anybody waits, that is what is usual now."""
        usual_ms, rounds = self.usual_reference_ms, _lasting(self._felt)
        latest = list(self._felt)[-rounds:]
        if rounds and usual_ms is not None and _usual_ms(latest) > _MOST_SLOWER * usual_ms:
            self._become(latest, usual_ms, 0)

    def _become(self, latest: Sequence[_Felt], usual_ms: float, rounds: int) -> None:
        self._calm = deque(latest, maxlen=_ROUNDS_REMEMBERED)
        self._lost_seconds = 0.0
        self._change = Change(usual_ms / _usual_ms(latest), rounds)

    def _waiting(self, round_: Circumstances) -> str | None:
        if round_.crowding is None or round_.crowding.times_stopped < _FEWEST_STOPS:
            return None
        if round_.seconds < _SHORTEST_SECONDS:
            return None
        waited_seconds, stops, others_seconds = round_.crowding
        if others_seconds is not None and others_seconds < _LEAST_OF_OTHERS * round_.seconds + _TICKS_SECONDS:
            return None
        most = min(_MOST_STOPS_PER_SECOND * round_.seconds, _MOST_STOPS_PER_RUN * round_.runs)
        crowded = stops > most and waited_seconds > _MOST_WAITING * round_.seconds
        return f"others took the processor {stops:,} times in {round_.seconds:.2f} s" if crowded else None

    def _slowness(self, round_: Circumstances) -> str | None:
        usual_ms = self.usual_reference_ms
        if usual_ms is None or round_.reference_ms is None or round_.reference_ms <= _MOST_SLOWER * usual_ms:
            return None
        return f"the machine was {round_.reference_ms / usual_ms:.2f} times slower than usual"


def _usual_ms(rounds: Sequence[_Felt]) -> float:
    return median(it.reference_ms for it in rounds)


def _lasting(rounds: Sequence[_Felt]) -> int:
    """How many of the latest rounds it takes to be sure of what they show; 0 where they do not last long enough."""
    seconds = 0.0
    for number, it in enumerate(reversed(rounds), start=1):
        seconds += it.seconds
        if number >= _ROUNDS_TO_BE_SURE and seconds >= _SECONDS_TO_BE_SURE:
            return number
    return 0


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
