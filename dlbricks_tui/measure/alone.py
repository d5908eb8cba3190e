"""The method `alone`: each brick is timed as a separate program, as in the paper.

1. Programs are loaded into a worker in batches: bricks, and whole models that are compared with them.
2. In each round every program that needs more samples is timed once, in an order that changes from round to round. A
   reference program is timed at both ends of the round.
3. A round that other programs on the host disturb is repeated. A batch restarts if the host's speed has changed.
4. A program is finished when the stopping rule has enough samples; its result is stored at once.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass, replace
from itertools import groupby
from statistics import median

from dlbricks_tui.bricks.programs import file_program, model_program, sequence_program
from dlbricks_tui.host.noise import contention_between
from dlbricks_tui.jobs.errors import Stopped
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.measure.events import BatchRestarted, BatchStarted, DriftNoted, RoundDone, RoundRepeated
from dlbricks_tui.measure.jobs import Job, JobKey
from dlbricks_tui.measure.noise import BatchNoise, NoiseMonitor, Round
from dlbricks_tui.measure.results import Checkpoints, ResultSink
from dlbricks_tui.measure.rounds import Batch, BatchLimits, JobSamples, Rounds, batches, in_turn, single
from dlbricks_tui.measure.stopping import FEWEST_SAMPLES, StoppingRule
from dlbricks_tui.measure.supervised_worker import REFERENCE, RUNS_PER_READING, SupervisedWorker, reference_ms
from dlbricks_tui.measure.time_left import Pace
from dlbricks_tui.models.networks import ProgramError
from dlbricks_tui.runtime.protocol import Program, Reason
from dlbricks_tui.store.records import Statistics

_TIMED_RUNS = 1
_NULL_CALLS = 10
# On a quiet host the reference varies by one or two percent.
_NOTEWORTHY_DRIFT = 0.05
# Samples of an earlier run are dropped if all readings of the reference differ from its latency then by this factor.
_SAME_HOST = 1.15
_READINGS_AT_FIRST = 5
# A batch ends even on a host whose speed keeps changing.
_MOST_RESTARTS = 1


@dataclass(eq=False, kw_only=True)
class Alone:
    """Times jobs in a worker, batch by batch; results are stored before they are told."""

    worker: SupervisedWorker
    results: ResultSink
    control: Checkpoints
    rule: InitVar[StoppingRule]
    tell: Callable[[Event], None]
    reference: InitVar[Program]
    side_by_side: bool
    noise: NoiseMonitor
    # The number of competing threads per processor at the start of the run.
    others: InitVar[float]
    clock: Callable[[], float]

    def __post_init__(self, rule: StoppingRule, reference: Program, others: float) -> None:
        self._pace = Pace(rule, self.noise, others)
        self._usual_reference_ms: float | None = None
        self._references_at_first_ms: list[float] | None = None
        # The jobs of the current batch by their names in the worker; a model may be in several batches.
        self._batch: dict[str, Job] = {}
        self._rounds = Rounds(rule)
        self._batch_noise = BatchNoise()
        self._restarts = 0
        self._sampled_rounds = 0
        self._to_try_alone: list[Job] = []
        # Whole models whose files failed.
        self._without_file: set[Job] = set()
        self.worker.load(REFERENCE, reference, fixture=True)
        self._handle_losses()

    def measure(self, jobs: Sequence[Job], limits: BatchLimits) -> None:
        """Time all jobs; those that fail beside others are tried again at the end, each in a separate batch."""
        waiting = deque(batches(jobs, limits))
        number = 0
        while waiting:
            number += 1
            batch = waiting.popleft()
            later = [job for rest in waiting for job in rest.jobs]
            left = self._seconds_left([*batch.jobs, *later])
            self.tell(
                BatchStarted(number=number, of=number + len(waiting), programs=len(batch.jobs), seconds_left=left)
            )
            self._measure_batch(batch, later)
            waiting.extend(single(job) for job in self._to_try_alone)
            self.results.save_counts()

    def _measure_batch(self, batch: Batch, later: Sequence[Job]) -> None:
        # The models of the batch before are still loaded.
        to_load = batch.jobs if batch.part == 1 else batch.bricks
        self._rounds.begin(batch)
        self._batch = {job.name: job for job in batch.jobs}
        self._batch_noise, self._restarts, self._to_try_alone = BatchNoise(), 0, []
        try:
            for job in to_load:
                self.control.checkpoint()
                began = self.clock()
                self._load(job)
                self._pace.loaded(job, self.clock() - began)
            while names := self._rounds.due():
                self.control.checkpoint()
                if self._take_round(names, later):
                    finished = self._rounds.take_finished()
                    self.results.keep(finished, self._batch_noise.facts)
                    for job, samples in finished:
                        self._pace.learn(job, samples.statistics.trimmed_mean_ms)
                    self.results.tell_estimates(self._provisional)
        except Stopped:
            self.results.keep(self._rounds.added_to(), self._batch_noise.facts, finished=False)
            raise
        self.worker.clear(keep=self._rounds.unfinished)
        self._note_drift()

    def _load(self, job: Job) -> None:
        try:
            program = program_of(job, with_file=job not in self._without_file, side_by_side=self.side_by_side)
        except ProgramError as error:
            self._give_up(job, Reason.UNBUILDABLE.value, str(error))
            return
        loaded = self.worker.load(job.name, program, job.expected_ms)
        if loaded is not None:
            earlier_ms = self._earlier_ms(job)
            self._rounds.add(JobSamples(job, loaded.first_run_seconds * 1000, earlier_ms))
            self.results.loaded(job, loaded.first_run_seconds, earlier_ms, allocates=loaded.allocates)
        self._handle_losses()

    def _earlier_ms(self, job: Job) -> tuple[float, ...]:
        """Return the samples of an earlier run, unless the host is clearly faster or slower now."""
        if job.earlier is None:
            return ()
        then_ms = job.earlier.reference_ms
        if self._references_at_first_ms is None:
            readings = (reference_ms(self.worker) for _ in range(_READINGS_AT_FIRST))
            self._references_at_first_ms = [reading for reading in readings if reading is not None]
        now_ms = self._references_at_first_ms
        # On a noisy host the readings are far apart and prove no change.
        changed = then_ms and now_ms and not min(now_ms) / _SAME_HOST < then_ms < max(now_ms) * _SAME_HOST
        return () if changed else job.earlier.samples_ms

    def _take_round(self, names: Sequence[str], later: Sequence[Job]) -> bool:
        """Take one round; return False if it was disturbed and is to be repeated."""
        jobs, began = [self._batch[name] for name in names], self.clock()
        taken = self._sample(names)
        disturbance = self.noise.disturbance(taken)
        if disturbance is not None and self.noise.worth_repeating:
            self.noise.repeat(taken.seconds)
            self._pace.repeated(self.clock() - began)
            self._batch_noise.repeated += 1
            self._handle_losses()
            left = self._seconds_left(later)
            self.tell(RoundRepeated(reason=disturbance, seconds=taken.seconds, seconds_left=left))
            self._restart_if_speed_changed(later)
            return False
        self.noise.count(taken.seconds)
        self._pace.sampled(jobs, self.clock() - began, noisy=disturbance is not None)
        self._rounds.count(taken.samples_ms)
        self._batch_noise.rounds.append(taken)
        self._batch_noise.disturbed.append(disturbance is not None)
        self._handle_losses()
        self.tell(
            RoundDone(
                samples_ms=tuple((self._batch[name].number, of_one_ms) for name, of_one_ms in taken.samples_ms.items()),
                null_call_ms=median(taken.null_calls_ms) if taken.null_calls_ms else None,
                reference_ms=taken.reference_ms,
                seconds_left=self._seconds_left(later),
            )
        )
        self._restart_if_speed_changed(later)
        return True

    def _sample(self, names: Sequence[str]) -> Round:
        turns = self._turns(names)
        before, began = self.worker.contention(), self.clock()
        references_ms = [reference_ms(self.worker)]
        taken_ms: dict[str, tuple[float, ...]] = {}
        runs = 0
        for untimed_runs, together in turns:
            taken_ms |= self.worker.sample(together, untimed_runs, _TIMED_RUNS)
            # A brick's producer runs as often, so that its time can be subtracted.
            runs += 2 * len(together) * (untimed_runs + _TIMED_RUNS)
        # A disturbance that begins within the round shows in this second reading.
        references_ms.append(reference_ms(self.worker))
        seconds, after = self.clock() - began, self.worker.contention()
        known_ms = tuple(it for it in references_ms if it is not None)
        runs += len(known_ms) * RUNS_PER_READING
        contention = contention_between(before, after)
        return Round(seconds, runs, contention, known_ms, self.worker.null_calls(_NULL_CALLS), taken_ms)

    def _restart_if_speed_changed(self, later: Sequence[Job]) -> None:
        """Measure again the rounds of the batch that were taken at another speed of the host."""
        change = self.noise.take_change()
        if change is None or len(self._batch_noise.rounds) <= change.rounds:
            return
        if self._restarts == _MOST_RESTARTS or not self.noise.time_left:
            return
        self._restarts += 1
        self.noise.repeat(self._batch_noise.keep_latest(change.rounds))
        self.results.reopen(self._rounds.restart(change.rounds))
        self.tell(
            BatchRestarted(
                times_as_fast=change.times_as_fast,
                samples_ms=tuple((it.job.number, tuple(it.samples_ms)) for it in self._rounds.unfinished.values()),
                seconds_left=self._seconds_left(later),
            )
        )

    def _turns(self, names: Sequence[str]) -> list[tuple[int, list[str]]]:
        """Return the programs of the next round in their order, grouped by their number of untimed runs."""
        self._sampled_rounds += 1
        untimed = {name: self._rounds.unfinished[name].untimed_runs for name in names}
        ordered = sorted(names, key=untimed.__getitem__, reverse=True)
        lasting = [self._rounds.unfinished[name].usual_ms * (untimed[name] + _TIMED_RUNS) for name in ordered]
        order = in_turn(ordered, lasting, self._sampled_rounds)
        return [(runs, [*alike]) for runs, alike in groupby(order, untimed.__getitem__)]

    def _handle_losses(self) -> None:
        for name, loss in self.worker.take_losses().items():
            self._rounds.remove(name)
            if name == REFERENCE:
                # Results lack its latency then, and drift is not seen.
                continue
            if loss.try_alone:
                self._to_try_alone.append(self._batch[name])
            else:
                self._give_up(self._batch[name], loss.reason, loss.message)

    def _give_up(self, job: Job, reason: str, message: str) -> None:
        """Record that a program cannot be measured, unless it is a model that is still to be tried layer by layer."""
        if job.file is None or job.needs_file or job in self._without_file:
            self.results.fail(job, reason, message)
        else:
            self._without_file.add(job)
            self._load(job)

    def _provisional(self) -> Mapping[JobKey, Statistics]:
        """Return the statistics of bricks that need more samples."""
        return {job.key: samples.statistics for job, samples in self._rounds.so_far() if not job.whole}

    def _seconds_left(self, later: Sequence[Job]) -> float:
        current = {it.job: len(it.samples_ms) for it in self._rounds.unfinished.values()}
        seconds, budget = self._pace.seconds_for({**dict.fromkeys(later, 0), **current}), self.control.seconds_left
        return seconds if budget is None else min(seconds, budget)

    def _note_drift(self) -> None:
        if len(self._batch_noise.reference_ms) < FEWEST_SAMPLES:
            return
        now_ms = median(self._batch_noise.reference_ms)
        if self._usual_reference_ms is None:
            self._usual_reference_ms = now_ms
        elif abs(now_ms / self._usual_reference_ms - 1) > _NOTEWORTHY_DRIFT:
            self.tell(DriftNoted(reference_ms=now_ms, usual_ms=self._usual_reference_ms))


def program_of(job: Job, *, with_file: bool, side_by_side: bool) -> Program:
    """Build the program of a job.

    A whole model runs from its file if it has one, unless `with_file` is false, and with `side_by_side` it runs
    independent operators at the same time.
    """
    if not job.whole:
        return sequence_program(job.graph, job.layers)
    program = file_program(job.graph, job.file) if job.file and with_file else model_program(job.graph)
    return replace(program, side_by_side=side_by_side)
