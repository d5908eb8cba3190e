"""Results of the store that a run can reuse."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from dlbricks_tui.measure.jobs import Earlier, Job, JobKey
from dlbricks_tui.store.columns import Summary
from dlbricks_tui.store.conditions import where
from dlbricks_tui.store.errors import DamagedResultError
from dlbricks_tui.store.generation import Generation
from dlbricks_tui.store.queries import Pair, newest_good, records_of, select
from dlbricks_tui.store.records import Calibration, EndToEnd, Failure, Measurement, Result, Statistics


@dataclass(frozen=True, slots=True)
class Conditions:
    """The system, runtime and method of a run: results under other conditions are not reused."""

    system: str
    runtime: str
    protocol: str

    @classmethod
    def of(cls, record: Failure | Calibration) -> "Conditions":
        """Return the conditions of a record."""
        return cls(record.system, record.runtime, record.protocol)


@dataclass(frozen=True, slots=True)
class Known:
    """The newest good statistics, and the reasons of earlier failures."""

    measured: Mapping[JobKey, Statistics] = field(default_factory=dict)
    failed: Mapping[JobKey, str] = field(default_factory=dict)


def known_in(generation: Generation, conditions: Conditions, keys: Iterable[JobKey], since: str = "") -> Known:
    """Return what the store knows of these keys, with measurements since then only."""
    newest = ((key, _newest(generation, conditions, key)) for key in keys)
    found = {key: summary for key, summary in newest if summary is not None}
    failures = [it for it in records_of(generation, Failure) if Conditions.of(it) == conditions]
    return Known(
        {key: _statistics(summary) for key, summary in found.items() if summary.when >= since},
        {
            key: f"{it.reason}: {it.message}" if it.message else it.reason
            for it in sorted(failures, key=lambda failure: failure.when)
            # A key with any good measurement has not failed.
            if (key := JobKey(it.brick, it.context, it.model)) not in found
        },
    )


def with_earlier(jobs: Iterable[Job], generation: Generation, conditions: Conditions, known: Known) -> tuple[Job, ...]:
    """Return the jobs with their samples in the store, which are too few: the run goes on from these."""

    def earlier(key: JobKey) -> Earlier | None:
        summary, result = _newest(generation, conditions, key), newest_result(generation, conditions, key)
        return Earlier(result.samples_ms, summary.reference_ms) if summary and result else None

    return tuple(replace(job, earlier=earlier(job.key)) if job.key in known.measured else job for job in jobs)


def newest_result(generation: Generation, conditions: Conditions, key: JobKey) -> Result | None:
    """Return the newest good result under these conditions; None if there is none, or if it is damaged."""
    summary = _newest(generation, conditions, key)
    row = None if summary is None else generation.index.row_of(summary.id)
    # The store reports damaged results by itself.
    with suppress(DamagedResultError):
        result = None if row is None else generation.record(row)
        return result if isinstance(result, Measurement | EndToEnd) else None
    return None


def _newest(generation: Generation, conditions: Conditions, key: JobKey) -> Summary | None:
    if key.brick:
        pair = Pair(key.brick, key.context)
        return newest_good(generation, pair, conditions.system, conditions.runtime, conditions.protocol)
    asked = where(of="model", model=key.model, good=True)
    asked += where(system=conditions.system, runtime=conditions.runtime, protocol=conditions.protocol)
    found = select(generation, asked)
    return found.part(len(found) - 1, len(found)).summaries()[0] if len(found) else None


def _statistics(summary: Summary) -> Statistics:
    return Statistics(
        trimmed_mean_ms=summary.trimmed_mean_ms,
        median_ms=summary.median_ms,
        minimum_ms=summary.minimum_ms,
        spread_ms=summary.spread_ms,
        low_ms=summary.low_ms,
        high_ms=summary.high_ms,
        count=summary.samples,
    )
