"""What a run puts into the store: series as measurements, programs that do not run as failures."""

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dlbricks_tui.measure.jobs import Job
from dlbricks_tui.measure.known import Conditions
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.stopping import Series
from dlbricks_tui.models.graph import TensorType
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import Traits
from dlbricks_tui.store import records
from dlbricks_tui.store.records import BrickForm, EndToEnd, Facts, Failure, Measurement, Record, System, utc_now

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
