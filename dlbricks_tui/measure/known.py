"""Results of the store that a run can reuse: its own, as a run measures here what others have claimed."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from tinydb.queries import QueryInstance

from dlbricks_tui.measure.jobs import Earlier, Job, JobKey
from dlbricks_tui.store.columns import Summary
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.errors import DamagedResultError
from dlbricks_tui.store.filters import equal
from dlbricks_tui.store.index import OWN
from dlbricks_tui.store.records import Failure, Result, Statistics
from dlbricks_tui.store.selections import OLDEST_FIRST, Selection


@dataclass(frozen=True, slots=True)
class Conditions:
    """The system, runtime and method of a run: results under other conditions are not reused."""

    system: str
    runtime: str
    protocol: str

    @property
    def query(self) -> QueryInstance:
        """The query for records under these conditions."""
        return equal(system=self.system, runtime=self.runtime, protocol=self.protocol)


@dataclass(frozen=True, slots=True)
class Known:
    """The newest good statistics, and the reasons of earlier failures."""

    measured: Mapping[JobKey, Statistics] = field(default_factory=dict)
    failed: Mapping[JobKey, str] = field(default_factory=dict)


def known_in(store: ResultsDatabase, conditions: Conditions, keys: Iterable[JobKey], since: str = "") -> Known:
    """Return what the store knows of these keys, with measurements since then only."""
    newest = ((key, _newest(store, conditions, key)) for key in keys)
    found = {key: result[0] for key, result in newest if result}
    failures = store.records(Failure, conditions.query, own=True)
    return Known(
        {key: _statistics(summary) for key, summary in found.items() if summary.when >= since},
        {
            key: f"{it.reason}: {it.message}" if it.message else it.reason
            for it in sorted(failures, key=lambda failure: failure.when)
            # A key with any good measurement has not failed.
            if (key := JobKey(it.brick, it.context, it.model)) not in found
        },
    )


def with_earlier(jobs: Iterable[Job], store: ResultsDatabase, conditions: Conditions, known: Known) -> tuple[Job, ...]:
    """Return the jobs with their samples in the store, which are too few: the run goes on from these."""

    def earlier(key: JobKey) -> Earlier | None:
        newest = _newest(store, conditions, key)
        result = _result_of(newest)
        return Earlier(result.samples_ms, newest[0].reference_ms) if result else None

    return tuple(replace(job, earlier=earlier(job.key)) if job.key in known.measured else job for job in jobs)


def newest_result(store: ResultsDatabase, conditions: Conditions, key: JobKey) -> Result | None:
    """Return the newest good result under these conditions; None if there is none, or if it is damaged."""
    return _result_of(_newest(store, conditions, key))


def results_of_newest_run(store: ResultsDatabase, conditions: Conditions, key: JobKey) -> tuple[Result, ...]:
    """Return the good results of the newest run: a method without contexts has one for each occurrence of a brick."""
    newest = newest_result(store, conditions, key)
    if newest is None:
        return ()
    subject = _subject(key) & conditions.query & equal(good=True, run=newest.run, origin=OWN)
    of_run = store.select(subject, order=OLDEST_FIRST)
    found = []
    for place in range(len(of_run)):
        # The store reports damaged results by itself.
        with suppress(DamagedResultError):
            found.append(of_run.result(place))
    return tuple(found)


def _result_of(newest: Selection) -> Result | None:
    # The store reports damaged results by itself.
    with suppress(DamagedResultError):
        return newest.result(0) if newest else None
    return None


def _newest(store: ResultsDatabase, conditions: Conditions, key: JobKey) -> Selection:
    """Return the newest good result; empty if there is none."""
    # Of equally old results, the one stored last counts.
    return store.select(_subject(key) & conditions.query & equal(good=True, origin=OWN), order=OLDEST_FIRST)[-1:]


def _subject(key: JobKey) -> QueryInstance:
    return equal(brick=key.brick, context=key.context) if key.brick else equal(of="model", model=key.model)


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
