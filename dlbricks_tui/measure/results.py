"""Results of measuring as records of the store, and the interfaces through which a method hands them on."""

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from dlbricks_tui.measure.jobs import Job, JobKey
from dlbricks_tui.measure.known import Conditions
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.stopping import Samples
from dlbricks_tui.models.graph import TensorType
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import Traits
from dlbricks_tui.store import records
from dlbricks_tui.store.records import (
    BrickForm,
    EndToEnd,
    Facts,
    Failure,
    Measurement,
    Record,
    Statistics,
    System,
    utc_now,
)

_NO_INPUT = TensorType((1,))
_X86 = ("x86_64", "AMD64")


def conditions_of(system: str, runtime: Runtime, method: Method) -> Conditions:
    """Return the conditions under which a method measures now."""
    return Conditions(system, runtime.identity, method.id)


class Occurrence(NamedTuple):
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
        known = (("warm_up", samples.warm_up), ("outliers", samples.outliers), *noise)
        if job.whole:
            return self._of_model(job, samples, known)
        form = BrickForm(key=job.key.brick, canonical=job.canonical)
        return form, self._of_brick(job, samples, known)

    def occurrences(self, job: Job, found: Sequence[Occurrence], noise: Facts) -> tuple[Record, ...]:
        """Return the samples of a brick in each carrier as results, with its canonical form."""
        form = BrickForm(key=job.key.brick, canonical=job.canonical)
        return (form, *[self._of_brick(job, it.samples, (*noise, *it.noise), it.where) for it in found])

    def failed(self, job: Job, reason: str, message: str) -> Failure:
        """Return the record of a job that cannot be measured."""
        return Failure(
            brick=job.key.brick,
            context=job.key.context,
            model=job.key.model,
            system=self.conditions.system,
            runtime=self.conditions.runtime,
            level=job.graph.level,
            protocol=self.conditions.protocol,
            when=utc_now(),
            run=self.run,
            reason=reason,
            message=message,
        )

    def _of_brick(self, job: Job, samples: Samples, noise: Facts, occurrence: Facts = ()) -> Measurement:
        sample = _first_input(job)
        return Measurement(
            brick=job.key.brick,
            context=job.key.context,
            system=self.conditions.system,
            runtime=self.conditions.runtime,
            level=job.graph.level,
            protocol=self.conditions.protocol,
            when=utc_now(),
            run=self.run,
            statistics=samples.statistics,
            samples_ms=samples.samples_ms,
            batch_size=_batch_size(sample),
            dtype=sample.dtype,
            noise=noise,
            occurrence=occurrence,
        )

    def _of_model(self, job: Job, samples: Samples, noise: Facts) -> tuple[Record, ...]:
        sample = _first_input(job)
        result = EndToEnd(
            model=job.key.model,
            name=job.graph.name,
            system=self.conditions.system,
            runtime=self.conditions.runtime,
            level=job.graph.level,
            protocol=self.conditions.protocol,
            when=utc_now(),
            run=self.run,
            statistics=samples.statistics,
            samples_ms=samples.samples_ms,
            batch_size=_batch_size(sample),
            dtype=sample.dtype,
            noise=noise,
        )
        return (result,)


def runtime_record(runtime: Runtime, system: System) -> records.Runtime:
    """Return the runtime as a record of the store."""
    settings = runtime.settings
    return records.Runtime(
        id=runtime.identity,
        name=runtime.name,
        framework=runtime.framework,
        version=runtime.version,
        python=runtime.python_version,
        threads=_own_threads(runtime.traits, system.cores) if settings.threads is None else settings.threads,
        settings=tuple(sorted(settings.environment)),
    )


def _own_threads(traits: Traits, cores: int) -> int:
    """Return the number of threads that a framework starts by default on that many cores."""
    pairs = traits.halves_x86_threads and platform.machine() in _X86
    return max(1, cores // 2) if pairs else cores


def _first_input(job: Job) -> TensorType:
    if job.whole:
        return job.graph.inputs[0].type if job.graph.inputs else _NO_INPUT
    return next((tensor for index in job.layers for tensor in job.graph.layers[index].data), _NO_INPUT)


def _batch_size(tensor: TensorType) -> int:
    return tensor.shape[0] if tensor.shape else 1


class Checkpoints(Protocol):
    """Points at which measuring may be stopped or paused."""

    @property
    def seconds_left(self) -> float | None:
        """Seconds left of the time budget; None without one."""

    def checkpoint(self) -> None:
        """Raise `Stopped` if the run is to end; while it is paused, wait."""


class ResultSink(Protocol):
    """Takes the results of a method, in any order."""

    def loaded(self, job: Job, first_run_seconds: float, earlier_ms: Sequence[float]) -> None:
        """Take a program that is loaded, with the samples of an earlier run."""

    def keep(self, finished: Sequence[tuple[Job, Samples]], noise: Facts) -> None:
        """Take programs that have been timed often enough."""

    def keep_unfinished(self, stopped: Sequence[tuple[Job, Samples]], noise: Facts) -> None:
        """Take programs with too few samples, as the run stops."""

    def reopen(self, jobs: Sequence[Job]) -> None:
        """Take back finished programs, as the batch restarts."""

    def fail(self, job: Job, reason: str, message: str) -> None:
        """Take a program that cannot be measured."""

    def tell_estimates(self, provisional: Callable[[], Mapping[JobKey, Statistics]]) -> None:
        """Tell the estimates that have changed, with provisional statistics of unfinished bricks."""

    def save_counts(self) -> None:
        """Save in the run's state how many programs are finished."""


class OccurrenceSink(ResultSink, Protocol):
    """Takes the results of bricks that are timed in several carriers, too."""

    def keep(self, finished: Sequence[tuple[Job, Samples]], noise: Facts, *, again: bool = False) -> None:
        """Take programs that have been timed often enough; `again` if they have more samples than at the last time."""

    def keep_occurrences(self, found: Mapping[Job, Sequence[Occurrence]], noise: Facts, *, finished: bool) -> None:
        """Take bricks that have been timed in all of their carriers, often enough if `finished`."""
