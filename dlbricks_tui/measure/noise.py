"""Noise of the host: which rounds it disturbs, which of these are repeated, and what results say of it."""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain
from statistics import fmean, median
from typing import NamedTuple

from dlbricks_tui.estimate.knowledge import MOST_SLOWER
from dlbricks_tui.host.noise import Contention
from dlbricks_tui.measure.stopping import FEWEST_SAMPLES
from dlbricks_tui.store.records import Facts

# On a quiet host the threads of a worker are hardly ever preempted, a few times a second while a screen is drawn. With
# another program beside them they share the remaining core: they preempt one another about once per run of a program,
# and the other program preempts them too.
_MOST_PREEMPTIONS_PER_SECOND, _MOST_PREEMPTIONS_PER_RUN, _FEWEST_PREEMPTIONS = 600.0, 0.5, 10
# In a round of very short programs the worker's threads share a core by themselves: a short round proves nothing.
_SHORTEST_SECONDS = 0.05
_MOST_WAITING = 0.01
# The worker's threads preempt one another where the kernel puts them on the same core. A round is undisturbed if other
# processes computed for a smaller share of it than this, or for two ticks, by which the kernel counts.
_LEAST_OF_OTHERS, _TICKS_SECONDS = 0.25, 0.02
_ROUNDS_TO_KNOW_THE_REFERENCE = 5
_ROUNDS_REMEMBERED = 200
# A change of speed is real if it lasts for this many rounds and this long (docs/log/hosts.md).
_ROUNDS_TO_BE_SURE, _SECONDS_TO_BE_SURE = 5, 3.0
# A busy host stays busy: after this much disturbed time in a row rounds count as they are, until the host is quiet.
_PATIENCE_SECONDS = 60.0
# Repeated rounds take at most this long, plus this share of the time of rounds that count.
_FREE_SECONDS, _MOST_REPEATED_SHARE = 5.0, 0.5

# Other programs that compute for a larger share of all processors may slow down a program without preempting it.
_MOST_OF_OTHERS = 0.2
# A program beside them may take longer by this share than it would alone, if nothing says how fast the host is alone.
_BESIDE_OTHERS = 0.25
# Quiet samples count alone if they are this share of all.
_LEAST_QUIET = 0.25
# Samples have two modes if these are apart by this factor, explain this share of the variance, and each has this share
# of the samples; fewer samples look so by chance. A trimmed mean drops a smaller slow mode.
_MODES_APART, _EXPLAINED, _SMALLEST_SLOW_MODE, _FEWEST_FOR_MODES = 1.1, 0.8, 0.15, 16

# A fact of each result: the latency of a call of the runtime that computes nothing.
NULL_CALL_MS = "null_call_ms"


@dataclass(frozen=True, slots=True)
class Round:
    """The samples of one round, and the readings that tell whether it was disturbed."""

    seconds: float
    # The number of runs of programs in the round.
    runs: int
    contention: Contention | None
    # The latencies of the reference at both ends, and those of calls that compute nothing, as far as there are any.
    references_ms: tuple[float, ...]
    null_calls_ms: tuple[float, ...] = ()
    # By the names of the programs.
    samples_ms: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    @property
    def reference_ms(self) -> float | None:
        """The longer latency of the reference."""
        return max(self.references_ms, default=None)


class SpeedChange(NamedTuple):
    """A lasting change of the host's speed: the factor, and how many of the latest rounds have the new speed."""

    times_as_fast: float
    rounds: int


class NoiseMonitor:
    """Judges the rounds of a run, one after another; at most `most_seconds` are measured twice."""

    def __init__(self, most_seconds: float = math.inf) -> None:
        self._seconds_left = most_seconds
        self._counted_seconds = self._repeated_seconds = 0.0
        # Quiet rounds, and all rounds without contention, as far as they have readings of the reference.
        self._quiet: deque[Round] = deque(maxlen=_ROUNDS_REMEMBERED)
        self._uncontended: deque[Round] = deque(maxlen=_ROUNDS_REMEMBERED)
        self._lost_seconds = 0.0
        self._quiet_in_a_row, self._quiet_seconds = 0, 0.0
        self._change: SpeedChange | None = None

    @property
    def usual_reference_ms(self) -> float | None:
        """The reference latency on the quiet host; None until it is known."""
        return _usual_ms(self._quiet) if len(self._quiet) >= _ROUNDS_TO_KNOW_THE_REFERENCE else None

    @property
    def worth_repeating(self) -> bool:
        """True if disturbed rounds are to be repeated."""
        return self.most_repeated() > 0 and self._lost_seconds < _PATIENCE_SECONDS

    def most_repeated(self, more_counted_seconds: float = 0.0) -> float:
        """Return the seconds left for repeated rounds, if rounds that count take so much longer."""
        counted = self._counted_seconds + more_counted_seconds
        in_proportion = _FREE_SECONDS + _MOST_REPEATED_SHARE * counted - self._repeated_seconds
        return max(0.0, min(in_proportion, self._seconds_left))

    @property
    def time_left(self) -> bool:
        """True if anything may be measured twice."""
        return self._seconds_left > 0

    def disturbance(self, taken: Round) -> str | None:
        """Return in words what disturbed a round; None if nothing did."""
        contended, reference_ms, usual_ms = _contended(taken), taken.reference_ms, self.usual_reference_ms
        found = contended
        if not contended and reference_ms and usual_ms and reference_ms > MOST_SLOWER * usual_ms:
            found = f"the host was {reference_ms / usual_ms:.2f} times slower than usual"
        if not contended and taken.references_ms:
            self._uncontended.append(taken)
        if found is None:
            self._quiet_in_a_row += 1
            self._quiet_seconds += taken.seconds
            if self._quiet_in_a_row >= _ROUNDS_TO_BE_SURE and self._quiet_seconds >= _SECONDS_TO_BE_SURE:
                # From now on disturbed rounds are repeated again.
                self._lost_seconds = 0.0
            if taken.references_ms:
                self._quiet.append(taken)
                self._detect_speed_up()
        else:
            self._quiet_in_a_row, self._quiet_seconds = 0, 0.0
            self._lost_seconds += taken.seconds
            if not self.worth_repeating:
                self._detect_slow_down()
        return found

    def count(self, seconds: float) -> None:
        """Note the length of a round that counts."""
        self._counted_seconds += seconds

    def repeat(self, seconds: float) -> None:
        """Note the length of rounds that are measured again."""
        self._seconds_left -= seconds
        self._repeated_seconds += seconds

    def take_change(self) -> SpeedChange | None:
        """Return a lasting change of speed, once."""
        change, self._change = self._change, None
        return change

    def _detect_speed_up(self) -> None:
        rounds = _lasting(self._quiet)
        quiet = list(self._quiet)
        before, latest = quiet[:-rounds], quiet[-rounds:]
        if not rounds or len(before) < _ROUNDS_TO_KNOW_THE_REFERENCE:
            return
        if MOST_SLOWER * max(max(it.references_ms) for it in latest) <= _usual_ms(before):
            # From now on a round at the former speed counts as disturbed.
            self._change_speed(latest, _usual_ms(before), rounds)

    def _detect_slow_down(self) -> None:
        """Accept the lower speed of a host that stayed slower until repeating was given up."""
        usual_ms, rounds = self.usual_reference_ms, _lasting(self._uncontended)
        latest = list(self._uncontended)[-rounds:]
        if rounds and usual_ms is not None and _usual_ms(latest) > MOST_SLOWER * usual_ms:
            self._change_speed(latest, usual_ms, 0)

    def _change_speed(self, latest: Sequence[Round], usual_ms: float, rounds: int) -> None:
        self._quiet = deque(latest, maxlen=_ROUNDS_REMEMBERED)
        self._lost_seconds = 0.0
        self._change = SpeedChange(usual_ms / _usual_ms(latest), rounds)


class HostTrack:
    """The host while programs of a run are timed, in moments between two readings of the reference.

    `usual_ms` is the reference latency in earlier runs; None if there were none. With `counts_all` samples of slow
    moments count, too: what they are compared with runs so long that each of its samples has quick and slow moments.
    """

    def __init__(self, usual_ms: float | None = None, processors: int = 1, *, counts_all: bool = False) -> None:
        self.counts_all = counts_all
        self._usual_ms = usual_ms
        self._processors = processors
        self._readings_ms: list[float | None] = []
        # For each moment that has ended, whether other programs disturbed it.
        self._disturbed: list[bool] = []

    @property
    def now(self) -> int:
        """The number of the moment that has begun last."""
        return len(self._readings_ms) - 1

    @property
    def quick_ms(self) -> float | None:
        """The reference latency of the quick host: the usual one, or less if a quarter of the readings are below it.

        None until it is known.
        """
        return min((it for it in (self._usual_ms, self._quick_quarter_ms) if it is not None), default=None)

    @property
    def was_quick(self) -> bool:
        """True if a quarter of the readings are those of the quick host."""
        quarter_ms, quick_ms = self._quick_quarter_ms, self.quick_ms
        return quarter_ms is not None and quick_ms is not None and quarter_ms <= MOST_SLOWER * quick_ms

    @property
    def _quick_quarter_ms(self) -> float | None:
        known = sorted(it for it in self._readings_ms if it is not None)
        return known[(len(known) - 1) // 4] if len(known) >= _ROUNDS_TO_KNOW_THE_REFERENCE else None

    def read(self, reference_ms: float | None, ended: Round | None = None, own_seconds: float = 0.0) -> None:
        """Begin a moment by a reading of the reference.

        The moment that `ended` has its contention, of which `own_seconds` are those of this process.
        """
        if self._readings_ms:
            self._disturbed.append(ended is not None and self._is_disturbed(ended, own_seconds))
        self._readings_ms.append(reference_ms)

    def reference_ms(self, moment: int) -> float | None:
        """Return the longer latency of the reference at both ends of a moment."""
        return max((it for it in self._readings_ms[moment : moment + 2] if it is not None), default=None)

    def slow(self, moments: Sequence[int]) -> list[bool]:
        """Return for each of these moments whether the host was slower, or other programs disturbed it."""
        quick_ms = self.quick_ms
        most_ms = math.inf if quick_ms is None else MOST_SLOWER * quick_ms
        return [(self.reference_ms(it) or 0.0) > most_ms or self._was_disturbed(it) for it in moments]

    def times_slower(self, moments: Sequence[int]) -> float:
        """Return the factor by which the reference was slower in these moments than on the quick host."""
        found = [reading for it in moments if (reading := self.reference_ms(it)) is not None]
        quick_ms = self.quick_ms
        return median(found) / quick_ms if found and quick_ms else 1.0

    def share_beside_others(self, moments: Sequence[int]) -> float:
        """Return the share of these moments that other programs disturbed."""
        return sum(map(self._was_disturbed, moments)) / len(moments)

    def _was_disturbed(self, moment: int) -> bool:
        return moment < len(self._disturbed) and self._disturbed[moment]

    def _is_disturbed(self, ended: Round, own_seconds: float) -> bool:
        if _contended(ended):
            return True
        # The reference tells how fast the host is beside others, if it is known how fast it is without them.
        if self._usual_ms is not None or ended.contention is None or ended.contention.others_seconds is None:
            return False
        if ended.seconds < _SHORTEST_SECONDS:
            return False
        others_seconds = ended.contention.others_seconds - own_seconds
        return others_seconds > _MOST_OF_OTHERS * self._processors * ended.seconds + _TICKS_SECONDS


class Counting(NamedTuple):
    """The places of the samples that count, in their order, and the noise in them."""

    places: tuple[int, ...]
    # The share by which the latency may be too long, as the host was not quiet; 0 if it was.
    doubt: float
    reference_ms: float | None
    disturbed: int

    def of(self, samples_ms: Sequence[float]) -> list[float]:
        """Return the samples that count."""
        return [samples_ms[place] for place in self.places]

    def facts(self, samples: int) -> Facts:
        """Return the facts that are stored with the result of so many samples."""
        found: Facts = (("reference_ms", self.reference_ms),) if self.reference_ms is not None else ()
        dropped = samples - len(self.places)
        return (*found, *((("repeated_rounds", dropped),) * bool(dropped)), ("disturbed_rounds", self.disturbed))


def counting(samples_ms: Sequence[float], moments: Sequence[int], track: HostTrack) -> Counting:
    """Return the samples of the quick host, if there are enough of them and not all count; else all, with a doubt.

    `moments` has the number of the moment of each sample.
    """
    slow = track.slow(moments)
    everything = range(len(samples_ms))
    enough = max(FEWEST_SAMPLES, math.ceil(_LEAST_QUIET * len(samples_ms)))
    quiet = [place for place in everything if not slow[place]]
    found = quiet if len(quiet) >= min(enough, len(samples_ms)) else everything
    places = tuple(found[place] for place in quick_mode([samples_ms[place] for place in found]))
    if track.counts_all:
        places = tuple(everything)
    disturbed = sum(slow[place] for place in places)
    doubt = _doubt(samples_ms, moments, track, places, quiet) if disturbed else 0.0
    readings = [it for place in places if (it := track.reference_ms(moments[place])) is not None]
    return Counting(places, doubt, median(readings) if readings else None, disturbed)


def _doubt(
    samples_ms: Sequence[float], moments: Sequence[int], track: HostTrack, places: Sequence[int], quiet: Sequence[int]
) -> float:
    """Return the share by which samples of a host that was not quiet may be too long."""
    of_places = [moments[place] for place in places]
    least = max(MOST_SLOWER - 1, _BESIDE_OTHERS * track.share_beside_others(of_places))
    quickest_ms = [samples_ms[place] for place in quiet]
    if not quickest_ms and track.was_quick:
        # No moment was quick at both ends.
        quickest_ms = sorted(samples_ms)[: math.ceil(_LEAST_QUIET * len(samples_ms))]
    if not quickest_ms:
        return max(least, track.times_slower(of_places) - 1)
    quick_ms = fmean(quickest_ms)
    return max(least, fmean(samples_ms[place] for place in places) / quick_ms - 1 if quick_ms else 0.0)


def quick_mode(samples_ms: Sequence[float]) -> tuple[int, ...]:
    """Return the places of the samples in the quick one of two modes, in their order; all if there is one mode."""
    everything = tuple(range(len(samples_ms)))
    if len(samples_ms) < _FEWEST_FOR_MODES or min(samples_ms) <= 0:
        return everything
    order = sorted(everything, key=samples_ms.__getitem__)
    # Of logarithms: the slow mode varies by the same share, and by more milliseconds.
    logs = [math.log(samples_ms[place]) for place in order]
    sums, count = list(accumulate(logs)), len(logs)
    mean = sums[-1] / count
    variance = math.fsum((it - mean) ** 2 for it in logs) / count
    first, last = math.ceil(_LEAST_QUIET * count), math.floor((1 - _SMALLEST_SLOW_MODE) * count)

    def between(quick: int) -> float:
        quick_mean, slow_mean = sums[quick - 1] / quick, (sums[-1] - sums[quick - 1]) / (count - quick)
        return quick / count * (1 - quick / count) * (slow_mean - quick_mean) ** 2

    quick = max(range(first, last + 1), key=between)
    apart = (sums[-1] - sums[quick - 1]) / (count - quick) - sums[quick - 1] / quick
    if apart < math.log(_MODES_APART) or between(quick) < _EXPLAINED * variance:
        return everything
    return tuple(sorted(order[:quick]))


@dataclass(slots=True)
class BatchNoise:
    """The rounds of a batch that count, in their order, and the number of repeated ones."""

    rounds: list[Round] = field(default_factory=list)
    # For each of them, whether it counts although it was disturbed.
    disturbed: list[bool] = field(default_factory=list)
    repeated: int = 0

    @property
    def reference_ms(self) -> tuple[float, ...]:
        """The latencies of the reference at both ends of each round."""
        return tuple(chain.from_iterable(it.references_ms for it in self.rounds))

    @property
    def facts(self) -> Facts:
        """The facts that are stored with each result."""
        null_calls_ms = tuple(chain.from_iterable(it.null_calls_ms for it in self.rounds))
        found = ((NULL_CALL_MS, null_calls_ms), ("reference_ms", self.reference_ms))
        medians = tuple((name, median(values)) for name, values in found if values)
        rounds = (("repeated_rounds", self.repeated), ("disturbed_rounds", sum(self.disturbed)))
        return medians + tuple((name, count) for name, count in rounds if count)

    def keep_latest(self, rounds: int) -> float:
        """Count all rounds but the latest as repeated, and return how many seconds they took."""
        first = max(0, len(self.rounds) - rounds)
        dropped, self.rounds = self.rounds[:first], self.rounds[first:]
        del self.disturbed[:first]
        self.repeated += len(dropped)
        return sum(it.seconds for it in dropped)


def _contended(taken: Round) -> str | None:
    """Return in words how other programs took the processor in a round; None if they did not."""
    if taken.contention is None or taken.contention.preemptions < _FEWEST_PREEMPTIONS:
        return None
    if taken.seconds < _SHORTEST_SECONDS:
        return None
    waited_seconds, preemptions, others_seconds = taken.contention
    if others_seconds is not None and others_seconds < _LEAST_OF_OTHERS * taken.seconds + _TICKS_SECONDS:
        return None
    most = min(_MOST_PREEMPTIONS_PER_SECOND * taken.seconds, _MOST_PREEMPTIONS_PER_RUN * taken.runs)
    contended = preemptions > most and waited_seconds > _MOST_WAITING * taken.seconds
    return f"others took the processor {preemptions:,} times in {taken.seconds:.2f} s" if contended else None


def _usual_ms(rounds: Sequence[Round]) -> float:
    return median(max(it.references_ms) for it in rounds)


def _lasting(rounds: Sequence[Round]) -> int:
    """Return how many of the latest rounds prove a change of speed; 0 where they are too few or too short."""
    seconds = 0.0
    for number, it in enumerate(reversed(rounds), start=1):
        seconds += it.seconds
        if number >= _ROUNDS_TO_BE_SURE and seconds >= _SECONDS_TO_BE_SURE:
            return number
    return 0
