"""What the store has already of what a run would measure."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from dlbricks_tui.measure.jobs import Earlier, Job, Target
from dlbricks_tui.store.columns import Summary
from dlbricks_tui.store.conditions import where
from dlbricks_tui.store.errors import DamagedResultError
from dlbricks_tui.store.generation import Generation
from dlbricks_tui.store.queries import Pair, newest_good, records_of, select
from dlbricks_tui.store.records import EndToEnd, Failure, Measurement, Statistics


@dataclass(frozen=True, slots=True)
class Conditions:
    """On what and how a run measures: results under other conditions are no substitute."""

    system: str
    runtime: str
    protocol: str


@dataclass(frozen=True, slots=True)
class Known:
    """The newest good statistics, and why what was tried before cannot be measured."""

    measured: Mapping[Target, Statistics] = field(default_factory=dict)
    failed: Mapping[Target, str] = field(default_factory=dict)


def known_in(generation: Generation, conditions: Conditions, targets: Iterable[Target], since: str = "") -> Known:
    """What the store says of these targets; of what was measured, what was measured since then."""
    newest = ((target, _newest(generation, conditions, target)) for target in targets)
    found = {target: summary for target, summary in newest if summary is not None}
    failures = [it for it in records_of(generation, Failure) if _under(it, conditions)]
    return Known(
        {target: _statistics(summary) for target, summary in found.items() if summary.when >= since},
        {
            target: f"{it.reason}: {it.message}" if it.message else it.reason
            for it in sorted(failures, key=lambda failure: failure.when)
            # What has been measured for all that does not count as failed, however long ago that was.
            if (target := Target(it.brick, it.context, it.model)) not in found
        },
    )


def with_earlier(jobs: Iterable[Job], generation: Generation, conditions: Conditions, known: Known) -> tuple[Job, ...]:
    """The jobs, with the samples of what is known of them, but not well enough: a run goes on from these."""
    return tuple(
        replace(job, earlier=_earlier(generation, conditions, job.target)) if job.target in known.measured else job
        for job in jobs
    )


def _earlier(generation: Generation, conditions: Conditions, target: Target) -> Earlier | None:
    summary = _newest(generation, conditions, target)
    row = None if summary is None else generation.index.row_of(summary.id)
    # One that is damaged has joined the damage that the store reports.
    with suppress(DamagedResultError):
        result = None if row is None else generation.record(row)
        if isinstance(result, Measurement | EndToEnd):
            return Earlier(result.samples_ms, 0.0 if summary is None else summary.reference_ms)
    return None


def _newest(generation: Generation, conditions: Conditions, target: Target) -> Summary | None:
    if target.brick:
        pair = Pair(target.brick, target.context)
        return newest_good(generation, pair, conditions.system, conditions.runtime, conditions.protocol)
    asked = where(of="model", model=target.model, good=True)
    asked += where(system=conditions.system, runtime=conditions.runtime, protocol=conditions.protocol)
    found = select(generation, asked)
    return found.part(len(found) - 1, len(found)).summaries()[0] if len(found) else None


def _under(failure: Failure, conditions: Conditions) -> bool:
    return Conditions(failure.system, failure.runtime, failure.protocol) == conditions


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
