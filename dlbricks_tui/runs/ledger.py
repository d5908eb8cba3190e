"""Keeps what a run finds out: in the store first, then in the estimates, then in everybody's ears."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

from dlbricks_tui.measure.events import Event
from dlbricks_tui.measure.jobs import Entry, Job, Target
from dlbricks_tui.measure.results import Occurrence, Recorder
from dlbricks_tui.measure.stopping import Series, Stop
from dlbricks_tui.runs.events import ProgramFailed, ProgramLoaded, ProgramMeasured, ProgramUnfinished
from dlbricks_tui.runs.outlook import Outlook
from dlbricks_tui.runs.run_folder import Tally
from dlbricks_tui.runtime.protocol import Reason
from dlbricks_tui.store.records import Facts, Statistics
from dlbricks_tui.store.statistics import mean_statistics
from dlbricks_tui.store.store import Store


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
