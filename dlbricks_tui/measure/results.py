"""Results of measuring as records of the store, and the interfaces through which a method hands them on."""

import platform
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from dlbricks_tui.measure.jobs import Entry, Job, Target
from dlbricks_tui.measure.known import Conditions
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.stopping import Series
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
    """Those of what is measured now by a method."""
    return Conditions(system, runtime.identity, method.id)


class Occurrence(NamedTuple):
    """A brick where it stands in a carrier, and its samples there."""

    where: Facts
    series: Series
    # What bears on this carrier alone.
    noise: Facts = ()


@dataclass(frozen=True, slots=True)
class Recorder:
    """Makes the records of one run."""

    run: str
    conditions: Conditions

    def measured(self, job: Job, series: Series, noise: Facts) -> tuple[Record, ...]:
        """A series as a result, with what the brick's key stands for."""
        known = (("warm_up", series.warm_up), ("outliers", series.outliers), *noise)
        if job.whole:
            return self._of_model(job, series, known)
        form = BrickForm(key=job.target.brick, canonical=job.canonical)
        return form, self._of_brick(job, series, known)

    def occurrences(self, job: Job, found: Sequence[Occurrence], noise: Facts) -> tuple[Record, ...]:
        """A brick as it was timed in each place, with what its key stands for."""
        form = BrickForm(key=job.target.brick, canonical=job.canonical)
        return (form, *[self._of_brick(job, it.series, (*noise, *it.noise), it.where) for it in found])

    def failed(self, job: Job, reason: str, message: str) -> Failure:
        """Why a program cannot be measured."""
        return Failure(
            brick=job.target.brick,
            context=job.target.context,
            model=job.target.model,
            system=self.conditions.system,
            runtime=self.conditions.runtime,
            level=job.graph.level,
            protocol=self.conditions.protocol,
            when=utc_now(),
            run=self.run,
            reason=reason,
            message=message,
        )

    def _of_brick(self, job: Job, series: Series, noise: Facts, occurrence: Facts = ()) -> Measurement:
        sample = _first_input(job)
        return Measurement(
            brick=job.target.brick,
            context=job.target.context,
            system=self.conditions.system,
            runtime=self.conditions.runtime,
            level=job.graph.level,
            protocol=self.conditions.protocol,
            when=utc_now(),
            run=self.run,
            statistics=series.statistics,
            samples_ms=series.samples_ms,
            batch_size=_batch_size(sample),
            dtype=sample.dtype,
            noise=noise,
            occurrence=occurrence,
        )

    def _of_model(self, job: Job, series: Series, noise: Facts) -> tuple[Record, ...]:
        sample = _first_input(job)
        result = EndToEnd(
            model=job.target.model,
            name=job.graph.name,
            system=self.conditions.system,
            runtime=self.conditions.runtime,
            level=job.graph.level,
            protocol=self.conditions.protocol,
            when=utc_now(),
            run=self.run,
            statistics=series.statistics,
            samples_ms=series.samples_ms,
            batch_size=_batch_size(sample),
            dtype=sample.dtype,
            noise=noise,
        )
        return (result,)


def runtime_record(runtime: Runtime, system: System) -> records.Runtime:
    """What executed, as the store keeps it."""
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
    """Where measuring may be stopped or paused."""

    @property
    def seconds_left(self) -> float | None:
        """Seconds left of the time budget; None without one."""

    def checkpoint(self) -> None:
        """Raise `Stopped` if measuring is to end here; return later if it is paused."""


class Keeper(Protocol):
    """Takes what a method finds out."""

    def loaded(self, entry: Entry, first_run_seconds: float, earlier_ms: Sequence[float]) -> None:
        """A program runs; samples that were taken of it earlier count."""

    def keep(self, finished: Sequence[tuple[Entry, Series]], noise: Facts) -> None:
        """Programs were timed often enough."""

    def keep_unfinished(self, stopped: Sequence[tuple[Entry, Series]], noise: Facts) -> None:
        """The run stops before programs were timed often enough."""

    def take_back(self, entries: Sequence[Entry]) -> None:
        """Programs that were kept are timed once more."""

    def fail(self, entry: Entry, reason: str, message: str) -> None:
        """A program cannot be measured."""

    def tell_estimates(self, provisional: Callable[[], Mapping[Target, Statistics]]) -> None:
        """Tell how estimates stand, with provisional statistics of unfinished bricks."""

    def save_counts(self) -> None:
        """Note in the run's state how many programs are done."""


class PlaceKeeper(Keeper, Protocol):
    """Takes results of bricks that were timed in several places."""

    def keep(self, finished: Sequence[tuple[Entry, Series]], noise: Facts, *, again: bool = False) -> None:
        """Programs were timed often enough; `again` where they were kept before and have more samples now."""

    def keep_occurrences(
        self, found: Mapping[Entry, Sequence[Occurrence]], wide: Collection[Entry], noise: Facts, *, finished: bool
    ) -> None:
        """Bricks were timed in all of their places, often enough unless the run stops before.

        The latencies of `wide` ones are not well known, although they had as many samples as they get.
        """
