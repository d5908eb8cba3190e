"""Results of measuring as records of the store, and the interfaces between a method and its run."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, NamedTuple, Protocol

from dlbricks_tui.estimate.estimate import is_wide
from dlbricks_tui.estimate.knowledge import MOST_SLOWER
from dlbricks_tui.measure.jobs import Earlier, Job, JobKey
from dlbricks_tui.measure.known import Conditions
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.noise import quick_mode
from dlbricks_tui.measure.stopping import Adaptive, Samples, half_width_ms, samples_of
from dlbricks_tui.models.graph import TensorType
from dlbricks_tui.models.input_shapes import value_advice
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.store import records
from dlbricks_tui.store.index import REFERENCE_COLUMN, SHARED_COLUMN
from dlbricks_tui.store.records import (
    BrickForm,
    EndToEnd,
    Facts,
    Failure,
    Measurement,
    Record,
    Result,
    Statistics,
    System,
    utc_now,
)

_NO_INPUT = TensorType((1,))


def conditions_of(system: str, runtime: Runtime, method: Method) -> Conditions:
    """Return the conditions under which a method measures now."""
    return Conditions(system, runtime.identity, method.id)


class CarrierOccurrence(NamedTuple):
    """An occurrence of a brick in a carrier, and its samples there."""

    where: Facts
    samples: Samples
    # Facts about this carrier alone.
    noise: Facts = ()


@dataclass(frozen=True, slots=True)
class Recorder:
    """Makes the records of one run for the store."""

    run: str
    conditions: Conditions

    def measured(self, job: Job, samples: Samples, noise: Facts) -> tuple[Record, ...]:
        """Return the samples of a job as a result, with the canonical form of its brick."""
        if job.whole:
            return (EndToEnd(model=job.key.model, name=job.graph.name, **self._result(job, samples, noise)),)
        return self.occurrences(job, [CarrierOccurrence((), samples, noise)])

    def occurrences(self, job: Job, found: Sequence[CarrierOccurrence]) -> tuple[Record, ...]:
        """Return the samples of a brick in each carrier as results, with its canonical form."""
        results = (
            Measurement(
                brick=job.key.brick,
                context=job.key.context,
                occurrence=it.where,
                **self._result(job, it.samples, it.noise),
            )
            for it in found
        )
        return (BrickForm(key=job.key.brick, canonical=job.canonical), *results)

    def failed(self, job: Job, reason: str, message: str) -> Failure:
        """Return the record of a job that cannot be measured."""
        advice = value_advice(job.graph.inputs, message) if job.whole and message else ""
        return Failure(reason=reason, message=f"{message}{advice}", **job.key._asdict(), **self._origin(job))

    def _result(self, job: Job, samples: Samples, noise: Facts) -> dict[str, Any]:
        if job.whole:
            first = job.graph.inputs[0].type if job.graph.inputs else _NO_INPUT
            batch_size = job.graph.batch_size
        else:
            first = next((tensor for index in job.layers for tensor in job.graph.layers[index].data), _NO_INPUT)
            batch_size = first.shape[0] if first.shape else 1
        return {
            **self._origin(job),
            "statistics": samples.statistics,
            "samples_ms": samples.samples_ms,
            "batch_size": batch_size,
            "dtype": first.dtype,
            "noise": (("warm_up", samples.warm_up), ("outliers", samples.outliers), *noise),
            "flags": samples.flags,
        }

    def _origin(self, job: Job) -> dict[str, Any]:
        return {
            "system": self.conditions.system,
            "runtime": self.conditions.runtime,
            "protocol": self.conditions.protocol,
            "level": job.graph.level,
            "run": self.run,
            "when": utc_now(),
        }


def runtime_record(runtime: Runtime, system: System) -> records.RuntimeRecord:
    """Return the runtime as a record."""
    settings = runtime.settings
    return records.RuntimeRecord(
        id=runtime.identity,
        name=runtime.name,
        framework=runtime.framework,
        version=runtime.version,
        python=runtime.python_version,
        threads=settings.threads or 0,
        settings=tuple(sorted(settings.environment)),
    )


class Checkpoints(Protocol):
    """Points at which measuring may be stopped or paused."""

    @property
    def seconds_left(self) -> float | None:
        """Seconds left of the time budget; None without one."""

    def checkpoint(self) -> None:
        """Raise `Stopped` if the run is to end; while it is paused, wait."""


class ResultSink:
    """Takes the results of a method, in any order; this base ignores them."""

    def loaded(
        self, job: Job, first_run_seconds: float, earlier_ms: Sequence[float], *, allocates: bool = False
    ) -> None:
        """Take a program that is loaded, with the samples of an earlier run.

        With `allocates`, each of its runs makes new arrays for the outputs.
        """

    def keep(self, timed: Sequence[tuple[Job, Samples]], noise: Facts, *, finished: bool = True) -> None:
        """Take programs that have been timed: often enough if `finished`, which may come again with more samples."""

    def keep_occurrences(self, found: Mapping[Job, Sequence[CarrierOccurrence]], *, finished: bool) -> None:
        """Take bricks that have been timed in all of their carriers, often enough if `finished`."""

    def reopen(self, jobs: Sequence[Job]) -> None:
        """Take back finished programs because the batch restarts. Their results stay until they are replaced."""

    def fail(self, job: Job, reason: str, message: str) -> None:
        """Take a program that cannot be measured."""

    def tell_estimates(self, provisional: Callable[[], Mapping[JobKey, Statistics]]) -> None:
        """Tell the estimates that have changed, with provisional statistics of unfinished bricks."""

    def save_counts(self) -> None:
        """Save in the run's state how many programs are finished."""


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
    if not is_wide(new.latency_ms, new.doubt * new.latency_ms) or not before.places:
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
