"""Results of a run: stored first, then counted in the estimates, then told as events."""

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from dlbricks_tui.estimate.estimate import Estimate, estimate
from dlbricks_tui.estimate.knowledge import Knowledge, Latency, Measured, Pair
from dlbricks_tui.estimate.lookup import BrickResults
from dlbricks_tui.estimate.system_estimate import Way
from dlbricks_tui.measure.events import Event
from dlbricks_tui.measure.jobs import Entry, Job, Subject, Target
from dlbricks_tui.measure.known import Conditions
from dlbricks_tui.measure.results import Occurrence, Recorder
from dlbricks_tui.measure.stopping import Series, Stop
from dlbricks_tui.runs.events import EstimateChanged, ProgramFailed, ProgramLoaded, ProgramMeasured, ProgramUnfinished
from dlbricks_tui.runs.run_folder import Tally
from dlbricks_tui.runtime.protocol import Reason
from dlbricks_tui.store.generation import Generation
from dlbricks_tui.store.records import ANY_CONTEXT, Facts, Statistics
from dlbricks_tui.store.statistics import mean_statistics
from dlbricks_tui.store.store import Store

# Composing may take this share of the time that passes: what is computed here is not measured meanwhile.
_SHARE_OF_TIME = 0.02


class Outlook:
    """Follows what becomes known of bricks, whether for good or for now, and tells which estimates have changed."""

    def __init__(
        self,
        subjects: Sequence[Subject],
        generation: Generation,
        conditions: Conditions,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._subjects = {subject.name: subject for subject in subjects}
        self._knowledge: dict[str, Knowledge] = {}
        self._users: defaultdict[Target, list[str]] = defaultdict(list)
        # By model and brick; inside of a network a brick is timed for all of them at once.
        self._contexts: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for subject in subjects:
            decomposition = subject.decomposition
            way = Way(conditions.system, conditions.runtime, decomposition.graph.level, conditions.protocol)
            self._knowledge[subject.name] = BrickResults(generation, decomposition).knowledge(way)
            for brick in decomposition.bricks:
                self._users[Target(brick, ANY_CONTEXT)].append(subject.name)
            # A twin corrects what its brick takes, so it changes the estimate too.
            for brick, context in decomposition.suite | decomposition.twins:
                self._users[Target(brick, context)].append(subject.name)
                self._contexts[subject.name, brick].append(context)
        self._changed: dict[str, None] = dict.fromkeys(self._subjects)
        # The models that were last told of with what was only provisionally known.
        self._unsettled: tuple[str, ...] = ()
        self._not_before = 0.0

    def learn(self, found: Mapping[Target, Statistics]) -> None:
        """Takes up what is known of bricks for good."""
        for model, measured in self._by_model(found).items():
            known = self._knowledge[model]
            self._knowledge[model] = replace(known, measured={**known.measured, **measured})
            self._changed[model] = None

    def give_up(self, target: Target, reason: str) -> None:
        """Takes up that a brick cannot be measured."""
        for model in self._users.get(target, ()):
            known = self._knowledge[model]
            failed = {**known.failed, **{(target.brick, it): reason for it in self._contexts_of(model, target)}}
            self._knowledge[model] = replace(known, failed=failed)
            self._changed[model] = None

    def changes(
        self, provisional: Callable[[], Mapping[Target, Statistics]] | None = None
    ) -> tuple[EstimateChanged, ...]:
        """The estimates that have changed, with what is only provisionally known; none where it would be too soon.

        Without anything provisional it is the end, for which it is never too soon.
        """
        begin = self._clock()
        if provisional is not None and begin < self._not_before:
            return ()
        so_far = {} if provisional is None else self._by_model(provisional())
        changed = dict.fromkeys((*self._changed, *self._unsettled, *so_far))
        self._changed, self._unsettled = {}, tuple(so_far)
        found = tuple(self._told(model, so_far.get(model, {})) for model in changed)
        end = self._clock()
        self._not_before = end + (end - begin) / _SHARE_OF_TIME
        return found

    def _by_model(self, found: Mapping[Target, Statistics]) -> dict[str, dict[Pair, Measured]]:
        by_model: defaultdict[str, dict[Pair, Measured]] = defaultdict(dict)
        for target, statistics in found.items():
            pair = target.brick, target.context
            latency = Latency(statistics.trimmed_mean_ms, statistics.low_ms, statistics.high_ms)
            for model in self._users.get(target, ()):
                for context in self._contexts_of(model, target):
                    by_model[model][target.brick, context] = Measured(latency, pair, statistics.count)
        return by_model

    def _contexts_of(self, model: str, target: Target) -> Sequence[str]:
        """The contexts of a model that a result stands for."""
        return self._contexts[model, target.brick] if target.context == ANY_CONTEXT else (target.context,)

    def _told(self, model: str, so_far: Mapping[Pair, Measured]) -> EstimateChanged:
        known = self._knowledge[model]
        now = estimate(self._subjects[model].decomposition, replace(known, measured={**so_far, **known.measured}))
        settled = {layer for part in now.parts if part.pair in known.measured for layer in part.layers}
        sampled = {layer for part in now.parts if part.pair in so_far for layer in part.layers} - settled
        return _told(now, len(sampled))


def _told(now: Estimate, sampled_layers: int) -> EstimateChanged:
    composed, coverage = now.composed, now.coverage
    return EstimateChanged(
        model=now.model,
        sequential_ms=None if composed is None else composed.sequential_ms,
        parallel_ms=None if composed is None else composed.parallel_ms,
        low_ms=None if composed is None else composed.interval.low_ms,
        high_ms=None if composed is None else composed.interval.high_ms,
        measured_layers=coverage.measured - sampled_layers,
        sampled_layers=sampled_layers,
        missing_layers=coverage.missing,
        unmeasurable_layers=coverage.unmeasurable,
    )


class Counts(NamedTuple):
    """Of bricks in their contexts, and apart from them of whole models."""

    bricks: Tally
    whole_models: Tally


class Ledger:
    """What is finished goes in here, in whatever order it comes."""

    def __init__(
        self,
        store: Store,
        recorder: Recorder,
        outlook: Outlook,
        tell: Callable[[Event], None],
        counts: Counts,
        save: Callable[[Tally, Tally], None],
    ) -> None:
        self._store = store
        self._recorder = recorder
        self._outlook = outlook
        self._tell = tell
        self.counts = counts
        self._save = save

    def save_counts(self) -> None:
        """Note in the run's state how many programs are done."""
        self._save(*self.counts)

    def loaded(self, entry: Entry, first_run_seconds: float, earlier_ms: Sequence[float]) -> None:
        """A program runs; samples that were taken of it earlier count."""
        used_by = tuple(use.model for use in entry.job.uses)
        self._tell(
            ProgramLoaded(
                first_run_ms=first_run_seconds * 1000, used_by=used_by, samples_ms=tuple(earlier_ms), **entry.about
            )
        )

    def keep(self, finished: Sequence[tuple[Entry, Series]], noise: Facts, *, again: bool = False) -> None:
        """Programs were timed often enough; `again` where they were kept before and have more samples now."""
        self._store_all(finished, noise)
        for entry, series in finished:
            self._count(entry.job, measured=int(not again))
            self._tell(_measured(entry, series.statistics, series.stop, series.warm_up, series.outliers))

    def keep_occurrences(
        self, found: Mapping[Entry, Sequence[Occurrence]], wide: Collection[Entry], noise: Facts, *, finished: bool
    ) -> None:
        """Bricks were timed in all of their places, often enough unless the run stops before.

        The latencies of `wide` ones are not well known, although they had as many samples as they get.
        """
        if not found:
            return
        records = (self._recorder.occurrences(entry.job, places, noise) for entry, places in found.items())
        self._store.add(*chain.from_iterable(records))
        means = {entry: mean_statistics([it.series.statistics for it in places]) for entry, places in found.items()}
        self._outlook.learn({entry.job.target: statistics for entry, statistics in means.items()})
        for entry, statistics in means.items():
            self._count(entry.job, measured=int(finished), unfinished=int(not finished))
            stop = Stop.MOST_SAMPLES if entry in wide else Stop.NARROW
            self._tell(_measured(entry, statistics, stop) if finished else _unfinished(entry, statistics))

    def keep_unfinished(self, stopped: Sequence[tuple[Entry, Series]], noise: Facts) -> None:
        """The run stops before programs were timed often enough: keep what their samples say so far."""
        self._store_all(stopped, noise)
        for entry, series in stopped:
            self._count(entry.job, unfinished=1)
            self._tell(_unfinished(entry, series.statistics))

    def take_back(self, entries: Sequence[Entry]) -> None:
        """What was kept of these is measured once more; until then it stands."""
        for entry in entries:
            self._count(entry.job, measured=-1)

    def fail(self, entry: Entry, reason: str, message: str) -> None:
        """A program cannot be measured."""
        if reason != Reason.MALFORMED.value:
            # What the worker did not understand is our fault and not the program's: the next run tries again.
            self._store.add(self._recorder.failed(entry.job, reason, message))
        self._outlook.give_up(entry.job.target, f"{reason}: {message}")
        self._count(entry.job, failed=1)
        self._tell(ProgramFailed(reason=reason, message=message, **entry.about))

    def tell_estimates(self, provisional: Callable[[], Mapping[Target, Statistics]] | None = None) -> None:
        """Tells how estimates stand with what is known so far, unless that was told just now; at the end, for good."""
        for event in self._outlook.changes(provisional):
            self._tell(event)

    def _store_all(self, results: Sequence[tuple[Entry, Series]], noise: Facts) -> None:
        if results:
            self._store.add(
                *[it for entry, found in results for it in self._recorder.measured(entry.job, found, noise)]
            )
            self._outlook.learn({entry.job.target: found.statistics for entry, found in results})

    def _count(self, job: Job, measured: int = 0, failed: int = 0, unfinished: int = 0) -> None:
        def counted(tally: Tally) -> Tally:
            return replace(
                tally,
                measured=tally.measured + measured,
                failed=tally.failed + failed,
                unfinished=tally.unfinished + unfinished,
            )

        bricks, models = self.counts
        self.counts = Counts(bricks, counted(models)) if job.whole else Counts(counted(bricks), models)


def _unfinished(entry: Entry, statistics: Statistics) -> ProgramUnfinished:
    return ProgramUnfinished(
        trimmed_mean_ms=statistics.trimmed_mean_ms,
        low_ms=statistics.low_ms,
        high_ms=statistics.high_ms,
        samples=statistics.count,
        **entry.about,
    )


def _measured(
    entry: Entry, statistics: Statistics, stop: Stop | None, warm_up: int = 0, outliers: int = 0
) -> ProgramMeasured:
    return ProgramMeasured(
        trimmed_mean_ms=statistics.trimmed_mean_ms,
        low_ms=statistics.low_ms,
        high_ms=statistics.high_ms,
        samples=statistics.count,
        warm_up=warm_up,
        outliers=outliers,
        stop="" if stop is None else stop.value,
        **entry.about,
    )
