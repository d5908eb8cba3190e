"""The rounds of a run: every program of a batch once per round, until each has been timed often enough."""

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from statistics import median
from typing import NamedTuple

from dlbricks_tui.bricks.programs import ProgramError
from dlbricks_tui.host.contention import since
from dlbricks_tui.measure.batching import Batch, BatchLimits, alone, batches
from dlbricks_tui.measure.errors import Stopped
from dlbricks_tui.measure.events import BatchStarted, BegunAnew, DriftNoted, Event, RoundDone, RoundRepeated
from dlbricks_tui.measure.jobs import Entry, Job, Target
from dlbricks_tui.measure.noise import Calmness, Circumstances, FeltRound, Mood
from dlbricks_tui.measure.results import Checkpoints, Keeper
from dlbricks_tui.measure.rounds import Rounds, Timed, in_turn
from dlbricks_tui.measure.stopping import FEWEST_SAMPLES, StoppingRule
from dlbricks_tui.measure.time_left import Pace, TimeLeft
from dlbricks_tui.measure.workbench import Task, Workbench
from dlbricks_tui.runtime.protocol import Reason
from dlbricks_tui.store.records import Statistics

_TIMED_RUNS = 1
# One run alone is too short to judge a round by: a single interrupt would have it repeated.
_UNTIMED_REFERENCE_RUNS, _REFERENCE_RUNS = 1, 5
_NULL_CALLS = 10
_NANOSECONDS_PER_MS = 1e6
_REFERENCE = "reference"
# On a quiet host the reference varies by one or two percent.
_NOTEWORTHY_DRIFT = 0.05
# Earlier samples are dropped if all readings of the reference are over so many times longer, or shorter, than then.
_SAME_HOST = 1.15
_READINGS_AT_FIRST = 5
# On a host that keeps changing a batch is to end all the same.
_MOST_NEW_BEGINNINGS = 1


class _Sampled(NamedTuple):
    """What one round has found, whether it counts or not."""

    taken_ms: Mapping[str, tuple[float, ...]]
    null_calls_ms: tuple[float, ...]
    references_ms: tuple[float, ...]
    circumstances: Circumstances


class Measuring:
    """Works through jobs on a workbench; what it has measured is in the store before anybody hears of it."""

    def __init__(
        self,
        bench: Workbench,
        ledger: Keeper,
        control: Checkpoints,
        rule: StoppingRule,
        task_of: Callable[[Job], Task],
        tell: Callable[[Event], None],
        calmness: Calmness | None = None,
        time_left: TimeLeft | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._bench = bench
        self._ledger = ledger
        self._control = control
        self._task_of = task_of
        self._tell = tell
        self._calmness = calmness or Calmness()
        self._time_left = time_left or TimeLeft(0, 0.0)
        self._pace = Pace(rule, self._calmness, self._time_left.others)
        self._clock = clock
        self._usual_reference_ms: float | None = None
        self._references_at_first_ms: list[float] | None = None
        self._entries: dict[Job, Entry] = {}
        # Of the batch at hand, by the name that the worker knows; of a whole model that shares several, in all of them.
        self._batch: dict[str, Entry] = {}
        self._rounds = Rounds(rule)
        self._mood = Mood()
        self._new_beginnings = 0
        self._sampled_rounds = 0
        self._to_try_alone: list[Entry] = []
        # Whole models that could not be run layer by layer.
        self._from_file: set[Entry] = set()

    def take_reference(self, reference: Task) -> None:
        """Has this program run along, so that it shows whether the machine changes."""
        self._bench.load(_REFERENCE, reference, fixture=True)
        self._face_losses()

    def work_through(self, jobs: Sequence[Job], limits: BatchLimits, first_number: int = 0) -> None:
        """Measures all jobs; those that do not work beside others come last, each alone."""
        self._entries = {job: Entry(number, job) for number, job in enumerate(jobs, first_number)}
        waiting = deque(batches(jobs, limits))
        number = 0
        while waiting:
            number += 1
            batch = waiting.popleft()
            later = [job for rest in waiting for job in rest.jobs]
            left = self._seconds_left([*batch.jobs, *later])
            self._tell(
                BatchStarted(number=number, of=number + len(waiting), programs=len(batch.jobs), seconds_left=left)
            )
            self._measure(batch, later)
            waiting.extend(alone(entry.job) for entry in self._to_try_alone)
            self._ledger.save_counts()

    def _measure(self, batch: Batch, later: Sequence[Job]) -> None:
        # What goes on from the batch before is there already.
        fresh = batch.jobs if batch.part == 1 else batch.bricks
        self._rounds.begin(batch)
        self._batch = {entry.name: entry for entry in (self._entries[job] for job in batch.jobs)}
        self._mood, self._new_beginnings, self._to_try_alone = Mood(), 0, []
        try:
            for job in fresh:
                self._control.checkpoint()
                began = self._clock()
                self._load(self._entries[job])
                self._pace.loaded(job, self._clock() - began)
            while names := self._rounds.due():
                self._control.checkpoint()
                if self._sample(names, later):
                    self._keep_what_is_done()
                    self._ledger.tell_estimates(self._provisional)
        except Stopped:
            self._keep_what_there_is()
            raise
        self._bench.clear(keep=self._rounds.programs)
        self._note_drift()

    def _load(self, entry: Entry) -> None:
        try:
            task = self._task_of(replace(entry.job, from_file=True) if entry in self._from_file else entry.job)
        except ProgramError as error:
            self._give_up(entry, Reason.UNBUILDABLE.value, str(error))
            return
        loaded = self._bench.load(entry.name, task)
        if loaded is not None:
            earlier_ms = self._earlier_ms(entry.job)
            self._rounds.join(Timed(entry, loaded.first_run_seconds * 1000, earlier_ms))
            self._ledger.loaded(entry, loaded.first_run_seconds, earlier_ms)
        self._face_losses()

    def _earlier_ms(self, job: Job) -> tuple[float, ...]:
        """The samples that were taken of a job before, unless the host is clearly faster or slower than it was then."""
        if job.earlier is None:
            return ()
        then_ms = job.earlier.reference_ms
        if self._references_at_first_ms is None:
            readings = (self._reference_ms() for _ in range(_READINGS_AT_FIRST))
            self._references_at_first_ms = [reading for reading in readings if reading is not None]
        now_ms = self._references_at_first_ms
        # On a restless host readings are far apart, and tell of no change.
        changed = then_ms and now_ms and not min(now_ms) / _SAME_HOST < then_ms < max(now_ms) * _SAME_HOST
        return () if changed else job.earlier.samples_ms

    def _sample(self, names: Sequence[str], later: Sequence[Job]) -> bool:
        """One round; false where something disturbed it, so that it has to be repeated."""
        jobs, began = [self._batch[name].job for name in names], self._clock()
        sampled = self._sampled(names)
        seconds, reference_ms = sampled.circumstances.seconds, sampled.circumstances.reference_ms
        disturbance = self._calmness.disturbance(sampled.circumstances)
        if disturbance is not None and self._calmness.worth_repeating:
            self._calmness.repeat(seconds)
            self._pace.repeated(self._clock() - began)
            self._mood.repeated += 1
            self._face_losses()
            self._tell(RoundRepeated(reason=disturbance, seconds=seconds, seconds_left=self._seconds_left(later)))
            self._begin_anew_where_changed(later)
            return False
        self._calmness.count(seconds)
        self._pace.sampled(jobs, self._clock() - began, noisy=disturbance is not None)
        self._rounds.count(sampled.taken_ms)
        felt = FeltRound(seconds, sampled.null_calls_ms, sampled.references_ms, disturbance is not None)
        self._mood.rounds.append(felt)
        self._face_losses()
        taken = sampled.taken_ms.items()
        self._tell(
            RoundDone(
                samples_ms=tuple((self._batch[name].number, samples_ms) for name, samples_ms in taken),
                null_call_ms=median(felt.null_calls_ms) if felt.null_calls_ms else None,
                reference_ms=reference_ms,
                seconds_left=self._seconds_left(later),
            )
        )
        self._begin_anew_where_changed(later)
        return True

    def _sampled(self, names: Sequence[str]) -> _Sampled:
        turns = self._turns(names)
        before, began = self._bench.crowding(), self._clock()
        references_ms = [self._reference_ms()]
        taken: dict[str, tuple[int, ...]] = {}
        runs = 0
        for warm_runs, at_once in turns:
            taken |= self._bench.sample(at_once, warm_runs, _TIMED_RUNS)
            # What feeds a program runs as often, to be taken off.
            runs += 2 * len(at_once) * (warm_runs + _TIMED_RUNS)
        # Who comes in the middle of a round disturbs what is sampled last.
        references_ms.append(self._reference_ms())
        seconds, after = self._clock() - began, self._bench.crowding()
        known_ms = tuple(it for it in references_ms if it is not None)
        runs += len(known_ms) * (_UNTIMED_REFERENCE_RUNS + _REFERENCE_RUNS)
        return _Sampled(
            {name: _milliseconds(durations) for name, durations in taken.items()},
            _milliseconds(self._bench.null_calls(_NULL_CALLS)),
            known_ms,
            Circumstances(seconds, runs, since(before, after), max(known_ms, default=None)),
        )

    def _begin_anew_where_changed(self, later: Sequence[Job]) -> None:
        """All programs of a batch are to be of the same host: what another one took is measured again."""
        change = self._calmness.take_change()
        if change is None or len(self._mood.rounds) <= change.rounds:
            return
        if self._new_beginnings == _MOST_NEW_BEGINNINGS or not self._calmness.time_left:
            return
        self._new_beginnings += 1
        self._calmness.repeat(self._mood.keep_latest(change.rounds))
        self._ledger.take_back(self._rounds.begin_anew(change.rounds))
        programs = self._rounds.programs.values()
        self._tell(
            BegunAnew(
                times_as_fast=change.times_as_fast,
                samples_ms=tuple((it.entry.number, tuple(it.samples_ms)) for it in programs),
                seconds_left=self._seconds_left(later),
            )
        )

    def _turns(self, names: Sequence[str]) -> list[tuple[int, list[str]]]:
        """In which order they run in the next round: who runs untimed as often is asked for together."""
        self._sampled_rounds += 1
        warm_runs = {name: self._rounds.programs[name].warm_runs for name in names}
        ordered = sorted(names, key=warm_runs.__getitem__, reverse=True)
        lasting = [self._rounds.programs[name].usual_ms * (warm_runs[name] + _TIMED_RUNS) for name in ordered]
        order = in_turn(ordered, lasting, self._sampled_rounds)
        return [(runs, [*alike]) for runs, alike in groupby(order, warm_runs.__getitem__)]

    def _reference_ms(self) -> float | None:
        if not self._bench.holds(_REFERENCE):
            return None
        taken = self._bench.sample([_REFERENCE], _UNTIMED_REFERENCE_RUNS, _REFERENCE_RUNS)
        return median(_milliseconds(taken[_REFERENCE])) if taken else None

    def _face_losses(self) -> None:
        for name, loss in self._bench.take_losses().items():
            self._rounds.leave(name)
            if name == _REFERENCE:
                # Drift goes unseen, and every result says so by lacking the fact.
                continue
            if loss.try_alone:
                self._to_try_alone.append(self._batch[name])
            else:
                self._give_up(self._batch[name], loss.reason, loss.message)

    def _give_up(self, entry: Entry, reason: str, message: str) -> None:
        """Record that a program cannot be measured, unless it is a model whose own file is still to be tried."""
        if entry.job.file is None or entry.job.from_file or entry in self._from_file:
            self._ledger.fail(entry, reason, message)
        else:
            self._from_file.add(entry)
            self._load(entry)

    def _keep_what_is_done(self) -> None:
        done = self._rounds.take_done()
        self._ledger.keep(done, self._mood.facts)
        for entry, series in done:
            self._pace.learn(entry.job, series.statistics.trimmed_mean_ms)

    def _keep_what_there_is(self) -> None:
        self._ledger.keep_unfinished(self._rounds.added_to(), self._mood.facts)

    def _provisional(self) -> Mapping[Target, Statistics]:
        """What the samples so far say of bricks that are not timed often enough yet."""
        so_far = self._rounds.so_far()
        return {entry.job.target: series.statistics for entry, series in so_far if not entry.job.whole}

    def _seconds_left(self, later: Sequence[Job]) -> float:
        begun = {program.job: len(program.samples_ms) for program in self._rounds.programs.values()}
        return self._time_left.total(self._pace.seconds_for({**dict.fromkeys(later, 0), **begun}))

    def _note_drift(self) -> None:
        if len(self._mood.reference_ms) < FEWEST_SAMPLES:
            return
        reference_ms = median(self._mood.reference_ms)
        if self._usual_reference_ms is None:
            self._usual_reference_ms = reference_ms
        elif abs(reference_ms / self._usual_reference_ms - 1) > _NOTEWORTHY_DRIFT:
            self._tell(DriftNoted(reference_ms=reference_ms, usual_ms=self._usual_reference_ms))


def _milliseconds(durations_ns: Sequence[int]) -> tuple[float, ...]:
    return tuple(duration / _NANOSECONDS_PER_MS for duration in durations_ns)
