"""The samples that count after a brick or model was measured again: new ones, those of both runs, or the earlier ones.

New samples replace earlier ones if they are precise. On a host that is as fast as it was, imprecise ones add to them.
Samples of a slower host never do: of two imprecise results the better known one counts.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from dlbricks_tui.estimate.intervals import is_wide
from dlbricks_tui.estimate.knowledge import MOST_SLOWER
from dlbricks_tui.measure.jobs import Earlier
from dlbricks_tui.measure.noise import quick_mode
from dlbricks_tui.measure.results import CarrierOccurrence
from dlbricks_tui.measure.stopping import Adaptive, Samples, half_width_ms, samples_of
from dlbricks_tui.store.index import REFERENCE_COLUMN, SHARED_COLUMN
from dlbricks_tui.store.records import Facts, Measurement, Result

# The reason for doubt about a result that does not count.
LESS_KNOWN = "an earlier result is better known"


def renewed(
    earlier: Earlier, places: Sequence[CarrierOccurrence], rule: Adaptive, quick_ms: float | None
) -> Sequence[CarrierOccurrence]:
    """Return the new places of a job with the samples that count from now on, or with a reason for doubt.

    `quick_ms` is the latency of the reference on the quiet host.
    """
    new = _Candidate(places, quick_ms)
    before = _Candidate([_occurrence(it) for it in earlier.results], quick_ms)
    if new.is_precise or not before.places:
        return places
    best = new
    if new.is_of_same_host(before):
        best = min(new, _Candidate(_joined(before.places, places, rule), quick_ms), key=lambda it: it.doubt)
    if before.doubt < best.doubt or new.reference_ms > MOST_SLOWER * (before.reference_ms or math.inf):
        return [it._replace(samples=replace(it.samples, flags=(LESS_KNOWN,))) for it in places]
    return best.places


@dataclass(frozen=True, slots=True)
class _Candidate:
    """The samples of a job in all its places."""

    places: Sequence[CarrierOccurrence]
    quick_ms: float | None

    @property
    def latency_ms(self) -> float:
        return fmean(it.samples.statistics.trimmed_mean_ms for it in self.places)

    @property
    def reference_ms(self) -> float:
        return fmean(_number(it.noise, REFERENCE_COLUMN) for it in self.places)

    @property
    def doubt(self) -> float:
        """The share by which the latency may be wrong: by its interval, or as the host was slower than usual."""
        sampling = fmean(_sampling_doubt(it) for it in self.places)
        slower = self.reference_ms / self.quick_ms - 1 if self.quick_ms else 0.0
        return max(sampling, slower if slower > MOST_SLOWER - 1 else 0.0)

    @property
    def is_precise(self) -> bool:
        return not is_wide(self.latency_ms, self.doubt * self.latency_ms)

    def is_of_same_host(self, other: "_Candidate") -> bool:
        """True unless the host was clearly faster or slower for the other samples."""
        one, two = self.reference_ms, other.reference_ms
        return not (one and two) or max(one, two) <= MOST_SLOWER * min(one, two)


def _sampling_doubt(it: CarrierOccurrence) -> float:
    statistics = it.samples.statistics
    own = half_width_ms(statistics) / statistics.trimmed_mean_ms if statistics.trimmed_mean_ms else 0.0
    return max(own, _number(it.noise, SHARED_COLUMN))


def _joined(
    before: Sequence[CarrierOccurrence], places: Sequence[CarrierOccurrence], rule: Adaptive
) -> Sequence[CarrierOccurrence]:
    """Return the places with the earlier samples of the same ones in front of the new ones."""
    earlier = {it.where: it for it in before}
    return [_with_earlier(earlier[it.where], it, rule) if it.where in earlier else it for it in places]


def _with_earlier(before: CarrierOccurrence, new: CarrierOccurrence, rule: Adaptive) -> CarrierOccurrence:
    steady = before.samples.samples_ms[before.samples.warm_up :]
    both = [*steady, *new.samples.samples_ms[new.samples.warm_up :]]
    share = len(steady) / len(both)
    # The errors of two runs are independent.
    shared = math.hypot(share * _number(before.noise, SHARED_COLUMN), (1 - share) * _number(new.noise, SHARED_COLUMN))
    noise: Facts = (*(it for it in new.noise if it[0] != SHARED_COLUMN), (SHARED_COLUMN, shared))
    return CarrierOccurrence(new.where, samples_of([both[place] for place in quick_mode(both)], rule), noise)


def _occurrence(result: Result) -> CarrierOccurrence:
    where = result.occurrence if isinstance(result, Measurement) else ()
    warm_up = int(_number(result.noise, "warm_up"))
    return CarrierOccurrence(where, Samples(result.samples_ms, warm_up, result.statistics, 0), result.noise)


def _number(facts: Facts, name: str) -> float:
    value = dict(facts).get(name)
    return float(value) if isinstance(value, int | float) else 0.0
