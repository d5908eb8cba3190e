"""Results of the store that a run can reuse, and those that it can improve.

They are its own, as a run measures here what others have claimed.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from statistics import fmean
from typing import NamedTuple

from tinydb.queries import QueryInstance

from dlbricks_tui.estimate.estimate import is_wide
from dlbricks_tui.estimate.knowledge import HostSpeed, host_speed
from dlbricks_tui.measure.jobs import Earlier, Job, JobKey
from dlbricks_tui.models.graph import Level
from dlbricks_tui.store.columns import Summary
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import DamagedResultError
from dlbricks_tui.store.index import OWN, REFERENCE_COLUMN, SHARED_COLUMN
from dlbricks_tui.store.records import Failure, Result, Statistics
from dlbricks_tui.store.selections import OLDEST_FIRST, Selection, Way, equal

# A result is improved in at most so many runs, as long as the host is no quicker than it was.
MOST_TRIES = 3
# Facts of results: the rounds that count although other programs disturbed them, and a run that was stopped early.
DISTURBED_ROUNDS, UNFINISHED = "disturbed_rounds", "unfinished"


class Conditions(NamedTuple):
    """The system, runtime and method of a run: results under other conditions are not reused."""

    system: str
    runtime: str
    protocol: str

    @property
    def query(self) -> QueryInstance:
        """The query for records under these conditions."""
        return equal(system=self.system, runtime=self.runtime, protocol=self.protocol)

    def at(self, level: Level) -> Way:
        """Return the way of measuring at a level."""
        return Way(self.system, self.runtime, level, self.protocol)


class Why(str, Enum):
    """The reason why a result is measured again."""

    # Its interval is wider than a run asks for.
    IMPRECISE = "imprecise"
    # The host was slower than it usually is.
    SLOW_HOST = "slow host"


class Renewal(NamedTuple):
    """The reason why a result may be measured again, and the milliseconds by which it may be wrong."""

    why: Why
    doubt_ms: float


@dataclass(frozen=True, slots=True)
class Known:
    """The newest good statistics, and the reasons of earlier failures."""

    measured: Mapping[JobKey, Statistics] = field(default_factory=dict)
    failed: Mapping[JobKey, str] = field(default_factory=dict)
    # The measured ones that another run may improve.
    again: Mapping[JobKey, Renewal] = field(default_factory=dict)
    # The runs of the measured ones.
    runs: Mapping[JobKey, str] = field(default_factory=dict)


def known_in(
    store: ResultsDatabase, conditions: Conditions, keys: Iterable[JobKey], since: str = "", run: str | None = None
) -> Known:
    """Return what the store knows of these keys, with measurements since then, or of one run, only."""
    of_keys = ((key, _good(store, conditions, key)) for key in keys)
    results = {key: good for key, good in of_keys if good}
    found = {key: good[-1] for key, good in results.items()}
    counting = {key for key, newest in found.items() if newest.when >= since and run in (None, newest.run)}
    speed = host_speed(store, conditions.system, conditions.runtime, conditions.protocol)
    failures = store.records(Failure, conditions.query, own=True)
    return Known(
        {key: _statistics(summary) for key, summary in found.items() if key in counting},
        {
            key: f"{it.reason}: {it.message}" if it.message else it.reason
            for it in failures
            # A key with any good measurement has not failed.
            if (key := JobKey(it.brick, it.context, it.model)) not in found
        },
        {
            key: renewal
            for key, good in results.items()
            if key in counting and (renewal := _renewal(store, conditions, key, good, speed))
        },
        {key: found[key].run for key in counting},
    )


def _renewal(
    store: ResultsDatabase, conditions: Conditions, key: JobKey, good: Selection, speed: HostSpeed
) -> Renewal | None:
    """Return why a key may be measured again; None if another run would not improve its result.

    That ends: a result with all rounds of its run on a quiet host stays, and so does one of several tries, until the
    host turns out to be quicker.
    """
    run = good.values("run")[-1]
    newest = good.matching(equal(run=run))
    latency_ms = fmean(newest.values("trimmed_mean_ms"))
    reference_ms = float(newest.numbers(REFERENCE_COLUMN)[-1])
    halves_ms = (newest.numbers("high_ms") - newest.numbers("low_ms")) / 2
    doubt_ms = max(float(halves_ms.mean()), float(newest.numbers(SHARED_COLUMN).mean()) * latency_ms)
    is_slow = speed.was_slower(reference_ms)
    if not is_slow:
        result = _result_of(newest)
        # Results of older versions do not say it.
        facts = {} if result is None else dict(result.noise)
        # More rounds are of no use if it had all that its run allowed, on a quiet host.
        if not is_wide(latency_ms, doubt_ms) or (facts.get(DISTURBED_ROUNDS) == 0 and UNFINISHED not in facts):
            return None
    tries = store.select(_subject(key) & conditions.query & equal(origin=OWN), order=()).distinct("run")
    if len(tries) >= MOST_TRIES and not speed.quicker_since(int(newest.numbers("when")[-1]), reference_ms):
        return None
    if is_slow and speed.usual_ms:
        return Renewal(Why.SLOW_HOST, max(doubt_ms, latency_ms * (1 - speed.usual_ms / reference_ms)))
    return Renewal(Why.IMPRECISE, doubt_ms)


def with_earlier(jobs: Iterable[Job], store: ResultsDatabase, conditions: Conditions, known: Known) -> tuple[Job, ...]:
    """Return the jobs with their results in the store, which are too imprecise: the run goes on from these."""

    def earlier(key: JobKey) -> Earlier | None:
        results = results_of_newest_run(store, conditions, key)
        if not results:
            return None
        reference_ms = dict(results[-1].noise).get(REFERENCE_COLUMN)
        return Earlier(results[-1].samples_ms, reference_ms if isinstance(reference_ms, float) else 0.0, results)

    return tuple(replace(job, earlier=earlier(job.key)) if job.key in known.measured else job for job in jobs)


def results_of_newest_run(store: ResultsDatabase, conditions: Conditions, key: JobKey) -> tuple[Result, ...]:
    """Return the good results of the newest run: a method without contexts has one for each occurrence of a brick."""
    good = _good(store, conditions, key)
    of_run = good.matching(equal(run=good.values("run")[-1])) if good else good
    found = (_result_of(of_run[place:]) for place in range(len(of_run)))
    return tuple([result for result in found if result is not None])


def _result_of(newest: Selection) -> Result | None:
    """Return the first result of a selection; None if it is damaged, or there is none."""
    # The store reports damaged results by itself.
    with suppress(DamagedResultError):
        return newest.result(0) if newest else None
    return None


def _good(store: ResultsDatabase, conditions: Conditions, key: JobKey) -> Selection:
    """Return all good results, the oldest first; of equally old ones, the one stored last counts as the newest."""
    return store.select(_subject(key) & conditions.query & equal(good=True, origin=OWN), order=OLDEST_FIRST)


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
