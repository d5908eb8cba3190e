"""Results of measuring as records of the store, and the interfaces between a method and its run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from dlbricks_tui.measure.jobs import Job, JobKey
from dlbricks_tui.measure.known import Conditions
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.stopping import Samples
from dlbricks_tui.models.graph import TensorType
from dlbricks_tui.models.input_shapes import value_advice
from dlbricks_tui.runtime.runtime import Runtime
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
        return self.occurrences(job, [CarrierOccurrence((), samples)], noise)

    def occurrences(self, job: Job, found: Sequence[CarrierOccurrence], noise: Facts) -> tuple[Record, ...]:
        """Return the samples of a brick in each carrier as results, with its canonical form."""
        results = (
            Measurement(
                brick=job.key.brick,
                context=job.key.context,
                occurrence=it.where,
                **self._result(job, it.samples, (*noise, *it.noise)),
            )
            for it in found
        )
        return (BrickForm(key=job.key.brick, canonical=job.canonical), *results)

    def failed(self, job: Job, reason: str, message: str) -> Failure:
        """Return the record of a job that cannot be measured."""
        advice = value_advice(job.graph.inputs) if job.whole and message else ""
        return Failure(reason=reason, message=f"{message}{advice}", **job.key._asdict(), **self._origin(job))

    def _result(self, job: Job, samples: Samples, noise: Facts) -> dict[str, Any]:
        first = _first_input(job)
        return {
            **self._origin(job),
            "statistics": samples.statistics,
            "samples_ms": samples.samples_ms,
            "batch_size": job.graph.batch_size if job.whole else first.shape[0] if first.shape else 1,
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


def _first_input(job: Job) -> TensorType:
    if job.whole:
        return job.graph.inputs[0].type if job.graph.inputs else _NO_INPUT
    return next((tensor for index in job.layers for tensor in job.graph.layers[index].data), _NO_INPUT)


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

    def keep(self, finished: Sequence[tuple[Job, Samples]], noise: Facts, *, again: bool = False) -> None:
        """Take programs that have been timed often enough; `again` if they have more samples than at the last time."""

    def keep_occurrences(
        self, found: Mapping[Job, Sequence[CarrierOccurrence]], noise: Facts, *, finished: bool
    ) -> None:
        """Take bricks that have been timed in all of their carriers, often enough if `finished`."""

    def keep_unfinished(self, stopped: Sequence[tuple[Job, Samples]], noise: Facts) -> None:
        """Take programs with too few samples because the run stops."""

    def reopen(self, jobs: Sequence[Job]) -> None:
        """Take back finished programs because the batch restarts. Their results stay until they are replaced."""

    def fail(self, job: Job, reason: str, message: str) -> None:
        """Take a program that cannot be measured."""

    def tell_estimates(self, provisional: Callable[[], Mapping[JobKey, Statistics]]) -> None:
        """Tell the estimates that have changed, with provisional statistics of unfinished bricks."""

    def save_counts(self) -> None:
        """Save in the run's state how many programs are finished."""
