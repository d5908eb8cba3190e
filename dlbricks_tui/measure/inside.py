"""The method `inside`: time bricks where they stand in a network, by the runtime's own profiler.

1. Time each whole model for about a second. The user sees its latency first.
2. Run carriers in rounds; together they hold every brick that the store lacks. In each round a carrier runs once
   plainly and then under the profiler. A layer's sample is the plain latency times its share of the profiled time.
   The whole models of these bricks run in the same rounds.
   The latency of a network depends a little on the addresses of its arrays. So carriers are loaded twice and their
   copies take turns, and whole models are loaded again for the rounds.
3. Store the bricks of a carrier when its plain latency is known well enough.

The reference is timed at least once per round. Rounds in which it shows a slower host, or in which other programs take
the processor, do not count if there are enough others: on such a host a carrier takes more rounds.

A worker may be killed from outside, and programs may not fit beside each other: a whole model or a carrier that is lost
so is tried once more, by itself, at the end of its stage.
"""

import math
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import InitVar, dataclass, field, replace
from itertools import chain
from statistics import fmean, median
from typing import Protocol

from dlbricks_tui.host.noise import Contention, contention_between
from dlbricks_tui.jobs.errors import Stopped
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.measure.alone import program_of
from dlbricks_tui.measure.carriers import (
    COPIES,
    FIRST_RUN_TELLS_MS,
    MOST_TIMES_LONGER,
    PROFILES_OF_HEAVY,
    ROUNDS_TO_PREDICT,
    SECONDS_TO_COPY,
    SLOW_MS,
    CarrierJob,
    TimedCarrier,
    layer_times,
    round_seconds,
)
from dlbricks_tui.measure.events import BatchStarted, RoundDone, RoundRepeated
from dlbricks_tui.measure.jobs import Job, JobKey, timed_runs, untimed_runs
from dlbricks_tui.measure.known import UNFINISHED
from dlbricks_tui.measure.noise import HostTrack, NoiseMonitor, Round, counting
from dlbricks_tui.measure.results import CarrierOccurrence, Checkpoints, ResultSink, renewed
from dlbricks_tui.measure.stopping import Adaptive, samples_of
from dlbricks_tui.measure.supervised_worker import REFERENCE, RUNS_PER_READING, SupervisedWorker, reference_ms
from dlbricks_tui.measure.time_left import BEFORE_ROUNDS, PATIENCE_SECONDS, PLAIN, Agenda, most_seconds_per_carrier
from dlbricks_tui.models.networks import ProgramError
from dlbricks_tui.runtime.protocol import Profiled, Program, Reason
from dlbricks_tui.store.index import SHARED_COLUMN
from dlbricks_tui.store.records import Facts, Statistics
from dlbricks_tui.store.statistics import mean_statistics

# A whole model is timed at most this often before anything else.
_MOST_PLAIN_RUNS = 100
_NULL_CALLS = 10
# In a longer round the reference is timed more than once.
_SECONDS_PER_MOMENT = 1.0


@dataclass(slots=True)
class _Whole:
    """A whole model that is being timed."""

    job: Job
    program: Program
    first_run_ms: float
    allocates: bool
    samples_ms: list[float] = field(default_factory=list)
    # The moment of the host in which each sample was taken.
    moments: list[int] = field(default_factory=list)
    # False: before anything else. Samples of the same minutes as the carriers' replace the first ones.
    in_rounds: bool = False

    def begin_rounds(self) -> None:
        """Drop the first samples."""
        self.samples_ms, self.moments, self.in_rounds = [], [], True

    def shares_bricks_with(self, carriers: Sequence[CarrierJob]) -> bool:
        models = {use.model for use in self.job.uses}
        return any(use.model in models for it in carriers for job in it.bricks.values() for use in job.uses)


class Beside(Protocol):
    """A program in a process of its own that is timed in the same rounds."""

    @property
    def wants_more(self) -> bool:
        """True if another run would tell more."""

    def sample(self, moment: int) -> float:
        """Run it once in a moment of the host, and return the processor time that it took, in seconds."""


@dataclass(eq=False)
class Inside:
    """Times whole models and carriers in a worker; results are stored before they are told."""

    worker: SupervisedWorker
    results: ResultSink
    control: Checkpoints
    rule: Adaptive
    tell: Callable[[Event], None]
    reference: InitVar[Program]
    noise: NoiseMonitor
    usual_reference_ms: InitVar[float | None] = None
    # What is timed in the rounds besides programs of the worker.
    beside: Beside | None = None
    agenda: Agenda = field(default_factory=Agenda)

    def __post_init__(self, reference: Program, usual_reference_ms: float | None) -> None:
        # The whole models that were timed, and those that run in the rounds of the carriers now.
        self._timed_wholes: list[_Whole] = []
        self._wholes: list[_Whole] = []
        # The whole models to try once more.
        self._again: list[Job] = []
        # The host, moment by moment. The program beside the carriers takes seconds, in which it is quick and slow.
        self.track = HostTrack(usual_reference_ms, os.cpu_count() or 1, counts_all=self.beside is not None)
        # Since the reference was timed last: the time, the processor time of this process, and the runs of programs.
        self._read_at, self._own_seconds, self._runs = -math.inf, 0.0, 0
        self._contention: Contention | None = None
        self._waited_seconds = self._paused_seconds = 0.0
        # The bricks that were timed well enough, and are in the store.
        self.kept: set[Job] = set()
        self.worker.load(REFERENCE, reference, fixture=True)
        self.worker.take_losses()

    def time_models(self, models: Sequence[Job], *, before_carriers: bool = False) -> None:
        """Time each whole model for about two seconds, and store its latency.

        If carriers come next, for about one second: it is timed in their rounds, too, so that an estimate and the
        latency it is compared with come from the same minutes.
        """
        self._again = []
        # The list grows meanwhile.
        for number, job in enumerate(chain(models, self._again)):
            self._checkpoint()
            began = self._worked_seconds
            self.tell(BatchStarted(number=1, of=1, programs=1, seconds_left=self._within_budget(self.agenda.seconds)))
            whole = self._loaded(job)
            if whole is not None:
                self.results.loaded(job, whole.first_run_ms / 1000, (), allocates=whole.allocates)
                self._sample_for_a_while(whole, before_rounds=before_carriers)
                # If its worker is lost after enough samples, these count.
                if len(whole.samples_ms) >= BEFORE_ROUNDS.runs:
                    self._keep_whole(whole)
                    self.agenda.learn(job.expected_ms, median(whole.samples_ms))
                else:
                    self._fail(job)
                if self.worker.holds(job.name):
                    self._timed_wholes.append(whole)
                self.worker.clear()
            if number < len(models):
                self.agenda.end_stage(self._worked_seconds - began)

    def _checkpoint(self) -> None:
        """Let the run be stopped or paused; a pause is no work."""
        began = time.monotonic()
        self.control.checkpoint()
        self._paused_seconds += time.monotonic() - began

    @property
    def _worked_seconds(self) -> float:
        """The time of a clock that stands still in pauses, and while programs wait for a quiet host."""
        return time.monotonic() - self._paused_seconds - self._waited_seconds

    def _loaded(self, job: Job) -> _Whole | None:
        """Load the file of a model, or else its layers; store the reason if neither runs."""
        for with_file in dict.fromkeys((job.file is not None, job.needs_file)):
            self.worker.take_losses()
            try:
                program = program_of(job, with_file=with_file, side_by_side=False)
            except ProgramError as error:
                if with_file is job.needs_file:
                    self.results.fail(job, Reason.UNBUILDABLE.value, str(error))
                continue
            loaded = self.worker.load(job.name, program, job.expected_ms)
            if loaded is not None:
                return _Whole(job, program, loaded.first_run_seconds * 1000, loaded.allocates)
            if self._may_run_alone(job.name):
                break
        self._fail(job)
        return None

    def time_carriers(
        self, carriers: Sequence[CarrierJob], of: int = 0, most_bytes: float = math.inf, *, again: bool = False
    ) -> None:
        """Time these carriers in the same rounds; `of` is the number of carriers of the whole run.

        The whole models that share bricks with them may take `most_bytes` of memory together. Carriers that may have
        been lost by no fault of theirs are timed once more, each by itself, unless they are timed `again`.
        """
        began = self._worked_seconds
        self._wholes = self._sharing_bricks_with(carriers, most_bytes)
        running = self._load(carriers, most_seconds_per_carrier(max(of, len(carriers))))
        started = list(running)
        # The carriers that have had their time.
        over: list[TimedCarrier] = []
        try:
            while running:
                self._checkpoint()
                self._round(running, waits=len(over) == len(running))
                over = [it for it in running if it.is_done()]
                done = [it for it in over if not (self._is_patient and it.lacks_quiet_rounds())]
                over = [it for it in over if it not in done]
                running = [it for it in running if it not in done and all(map(self.worker.holds, it.programs))]
                self._keep_bricks(started, running)
                self.results.tell_estimates(lambda: self._provisional(started))
        except Stopped:
            # A run that stops while it waits for the worker gets no answer from it any more.
            with suppress(Stopped):
                self._read_reference()
            self._keep_bricks(started, [], finished=False)
            raise
        for whole in self._wholes:
            if len(whole.samples_ms) >= BEFORE_ROUNDS.runs:
                self._keep_whole(whole)
        for it in started:
            if it.plain_ms:
                self.agenda.learn(it.what.expected_ms, median(it.plain_ms))
        self.worker.clear()
        if again:
            return
        for what in carriers:
            if self._may_run_alone(what.name) and not self.kept.issuperset(what.bricks.values()):
                self.time_carriers([what], max(of, len(carriers)), most_bytes, again=True)
        self.agenda.end_stage(self._worked_seconds - began)

    def _may_run_alone(self, name: str) -> bool:
        """Return True if a program, or each lost program of a carrier, is not known to be at fault."""
        lost = [loss for it, loss in self.worker.reasons.items() if it.partition(",")[0] == name]
        return bool(lost) and all(it.try_alone for it in lost)

    def _sharing_bricks_with(self, carriers: Sequence[CarrierJob], most_bytes: float) -> list[_Whole]:
        """Return the whole models that share bricks with these carriers, and were in no rounds before."""
        left = most_bytes
        found = []
        for whole in self._timed_wholes:
            is_new = not whole.in_rounds and whole.shares_bricks_with(carriers)
            if is_new and whole.job.memory_bytes <= left:
                left -= whole.job.memory_bytes
                found.append(whole)
        return found

    def _load(self, carriers: Sequence[CarrierJob], most_seconds: float) -> list[TimedCarrier]:
        bricks = dict.fromkeys(job for it in carriers for job in it.bricks.values())
        left = self._within_budget(self.agenda.seconds)
        self.tell(BatchStarted(number=1, of=1, programs=len(bricks), seconds_left=left))
        firsts: list[tuple[CarrierJob, float, int]] = []
        for what in carriers:
            self._checkpoint()
            began = time.monotonic()
            loaded = self.worker.load(what.name, what.plain, what.expected_ms)
            if loaded is None and what.file is not None and not self._may_run_alone(what.name):
                what = replace(what, file=None)
                loaded = self.worker.load(what.name, what.plain, what.expected_ms)
            if loaded is None:
                continue
            seconds = time.monotonic() - began
            latency_ms = loaded.first_run_seconds * 1000
            if SLOW_MS < latency_ms < FIRST_RUN_TELLS_MS:
                # The first run of a carrier with many layers takes most of its time to load.
                taken_ms = self.worker.sample([what.name], 0, 1).get(what.name)
                if not taken_ms:
                    continue
                latency_ms = taken_ms[0]
            slow = what.is_heavy or latency_ms > SLOW_MS or seconds > SECONDS_TO_COPY
            firsts.append((what, latency_ms, 1 if slow else COPIES))
            for job in dict.fromkeys(what.bricks.values()):
                # An earlier group may have had carriers of it.
                if job not in self.kept:
                    self.results.loaded(job, loaded.first_run_seconds, ())
        # A network that is loaded later is faster, so whole models are loaded between the copies of carriers.
        for whole in self._wholes:
            if self.worker.load(whole.job.name, whole.program, whole.job.expected_ms):
                whole.begin_rounds()
        running = []
        for what, latency_ms, copies in firsts:
            names = [f"{what.name}, copy {number}" for number in range(2, copies + 1)]
            names = [name for name in names if self.worker.load(name, what.plain, what.expected_ms)]
            it = TimedCarrier(what, (what.name, *names), latency_ms, most_seconds, self.track, self.rule)
            # The profiler tells of the layers, which a file does not show.
            if what.file is None or self.worker.load(it.layers, what.program, what.expected_ms):
                running.append(it)
        self.worker.take_losses()
        return running

    def _round(self, running: Sequence[TimedCarrier], *, waits: bool) -> None:
        """One sample of each whole model and each layer; it `waits` for a quiet host if all of these had their time."""
        began = time.monotonic()
        samples: dict[int, list[float]] = defaultdict(list)
        self._read_reference()
        for whole in self._wholes:
            shares = whole.shares_bricks_with([it.what for it in running])
            if shares and self.worker.holds(whole.job.name) and self._sample_whole(whole):
                samples[whole.job.number].append(whole.samples_ms[-1])
        for it in running:
            for job, sample_ms in self._sample_carrier(it):
                samples[job.number].append(sample_ms)
        self.worker.take_losses()
        calls_ms = self.worker.null_calls(_NULL_CALLS)
        if self.beside is not None and self.beside.wants_more:
            # It runs in a moment of its own, which it does not disturb.
            self._read_reference()
            self.worker.wait_until_idle()
            self._own_seconds -= self.beside.sample(self.track.now)
        seconds = time.monotonic() - began
        seconds_left = self._seconds_left(running, seconds)
        self.tell(
            RoundDone(
                samples_ms=tuple((number, (fmean(taken),)) for number, taken in samples.items()),
                null_call_ms=median(calls_ms) if calls_ms else None,
                reference_ms=self.track.reference_ms(self.track.now),
                seconds_left=seconds_left,
            )
        )
        if waits:
            # It stands for one that was disturbed.
            self._wait(seconds, seconds_left)

    @property
    def _is_patient(self) -> bool:
        """True if programs may still be timed for longer, until the host is quiet."""
        return self._waited_seconds < PATIENCE_SECONDS and self.noise.time_left

    def _wait(self, seconds: float, seconds_left: float) -> None:
        """Note the time that programs were timed for longer, as the host was not quiet."""
        self._waited_seconds += seconds
        self.noise.repeat(seconds)
        self.tell(RoundRepeated(reason="the host was not quiet", seconds=seconds, seconds_left=seconds_left))

    def _read_reference(self, seconds: float = 0.0) -> None:
        """Time the reference, unless it was timed in the last `seconds`."""
        now = time.monotonic()
        if now - self._read_at < seconds:
            return
        contention, own_seconds = self.worker.contention(), time.process_time()
        counted = contention_between(self._contention, contention)
        ended = Round(now - self._read_at, self._runs, counted, ())
        self.track.read(reference_ms(self.worker), ended, own_seconds - self._own_seconds)
        self._read_at, self._own_seconds, self._runs, self._contention = now, own_seconds, RUNS_PER_READING, contention

    def _sample_carrier(self, it: TimedCarrier) -> Iterator[tuple[Job, float]]:
        """Run a carrier plainly and under the profiler, and yield a sample for each needed brick in it."""
        self._read_reference(_SECONDS_PER_MOMENT)
        began = time.monotonic()
        taken_ms = self.worker.sample([it.copy], *it.plain_runs).get(it.copy)
        profile = self._profile(it) if taken_ms else None
        it.seconds += time.monotonic() - began
        self._runs += sum(it.plain_runs) + sum(it.profiled_runs)
        if taken_ms is None or profile is None:
            return
        plain_ms = median(taken_ms)
        times = layer_times(profile, it.what.owners, plain_ms)
        it.plain_ms.append(plain_ms)
        it.moments.append(self.track.now)
        for layer in it.what.carrier.graph.layers:
            it.layers_ms[layer.index].append(times.get(layer.index, 0.0))
        for index, job in it.what.bricks.items():
            yield job, it.layers_ms[index][-1] / it.what.carrier.graph.layers[index].times

    def _profile(self, it: TimedCarrier) -> Profiled | None:
        """Run a carrier under the profiler, unless an earlier profile is to count."""
        if it.what.is_heavy and len(it.profiles) >= PROFILES_OF_HEAVY:
            return it.profiles[len(it.plain_ms) % len(it.profiles)]
        found = self.worker.profile(it.layers, *it.profiled_runs)
        if found is not None:
            it.profiles.append(found)
        return found

    def _sample_for_a_while(self, whole: _Whole, *, before_rounds: bool) -> None:
        """Time a whole model; for longer if the host is not quiet and no rounds follow."""
        plain = BEFORE_ROUNDS if before_rounds else PLAIN
        self._read_reference()
        until = time.monotonic() + plain.seconds
        while len(whole.samples_ms) < plain.runs or (
            time.monotonic() < until and len(whole.samples_ms) < _MOST_PLAIN_RUNS
        ):
            self._checkpoint()
            if not self._sample_whole(whole):
                return
        self._read_reference()
        most = MOST_TIMES_LONGER * _MOST_PLAIN_RUNS
        while (
            not before_rounds
            and self._is_patient
            and len(whole.samples_ms) < most
            and counting(whole.samples_ms, whole.moments, self.track).doubt
        ):
            self._checkpoint()
            began = time.monotonic()
            if not self._sample_whole(whole):
                return
            # As long as so far: most waits are short, and few last until the patience ends.
            waited = self._waited_seconds
            left = min(PATIENCE_SECONDS - waited, max(PLAIN.seconds, waited)) + self.agenda.later_seconds
            self._wait(time.monotonic() - began, self._within_budget(left))
        self._read_reference()

    def _sample_whole(self, whole: _Whole) -> bool:
        self._read_reference(_SECONDS_PER_MOMENT)
        usual_ms = median(whole.samples_ms) if whole.samples_ms else whole.first_run_ms
        name, runs = whole.job.name, (untimed_runs(usual_ms, whole=True), timed_runs(usual_ms))
        taken_ms = self.worker.sample([name], *runs).get(name)
        self._runs += sum(runs)
        if taken_ms is None:
            return False
        whole.samples_ms.append(median(taken_ms))
        whole.moments.append(self.track.now)
        return True

    def _seconds_left(self, running: Sequence[TimedCarrier], last_seconds: float) -> float:
        """Seconds that these carriers and all after them probably need; the last round took `last_seconds`."""
        rounds = {it.what.name: it.rounds_left() for it in running}
        most = max(rounds.values(), default=0.0)
        if self._is_patient:
            # Its first rounds tell too little of the host.
            known = {
                it.what.name
                for it in running
                if len(it.plain_ms) >= max(it.fewest_rounds, min(ROUNDS_TO_PREDICT, rounds[it.what.name]))
            }
            guess = math.inf if self.agenda.wait_seconds else 0.0
            lacking = {it.what.name: it.quiet_rounds_lacking() if it.what.name in known else guess for it in running}
            # Those that lack quiet rounds stay in the rounds of the others.
            more = {name: min(it, most - rounds[name]) for name, it in lacking.items()}
            rounds = {name: it + more[name] for name, it in rounds.items()}
            if known:
                wait_seconds = last_seconds * max(lacking[name] - more[name] for name in known)
                self.agenda.wait_seconds = min(wait_seconds, PATIENCE_SECONDS - self._waited_seconds)
        other_seconds = max(0.0, last_seconds - math.fsum(it.seconds_per_round for it in running))
        left = math.fsum(rounds[it.what.name] * it.seconds_per_round for it in running)
        for whole in self._wholes:
            # It leaves the rounds with the last carrier of its bricks.
            own = [rounds[it.what.name] for it in running if whole.shares_bricks_with([it.what])]
            if own and whole.samples_ms:
                seconds = min(other_seconds, round_seconds(median(whole.samples_ms)))
                other_seconds -= seconds
                left += seconds * max(own)
        left += other_seconds * most + self.agenda.later_seconds
        if self._is_patient:
            left += self.agenda.wait_seconds
        return self._within_budget(left)

    def _within_budget(self, seconds: float) -> float:
        budget = self.control.seconds_left
        return seconds if budget is None else min(seconds, budget)

    def _keep_bricks(
        self, started: Sequence[TimedCarrier], running: Sequence[TimedCarrier], *, finished: bool = True
    ) -> None:
        """Store the bricks that no running carrier holds."""
        going_on = {job for it in running for job in it.what.bricks.values()}
        found: dict[Job, list[CarrierOccurrence]] = defaultdict(list)
        for it, bricks in self._timed(started):
            over = {layer: job for layer, job in bricks.items() if job not in going_on}
            if not over:
                continue
            counted = it.counting
            samples_ms, doubt, facts = it.samples_ms(counted), it.shared_doubt(counted), counted.facts(len(it.plain_ms))
            facts += ((SHARED_COLUMN, doubt),)
            if not finished or it.what.share < 1.0 or not all(map(self.worker.holds, it.programs)):
                # Another model may need these bricks to be known better, or the carrier was lost.
                facts += ((UNFINISHED, True),)
            carrier = it.what.carrier
            for layer, job in over.items():
                name = carrier.graph.layers[layer].name
                where: Facts = (("model", carrier.model.name), ("layer", name), ("carrier", it.what.key))
                found[job].append(CarrierOccurrence(where, samples_of(samples_ms[layer], self.rule), facts))
        renewed_places = {job: self._renewed(job, places) for job, places in found.items()}
        self.results.keep_occurrences(renewed_places, finished=finished)
        self.kept.update(found)
        self.results.save_counts()

    def _timed(self, started: Sequence[TimedCarrier]) -> Iterator[tuple[TimedCarrier, Mapping[int, Job]]]:
        """Carriers with enough rounds, and the bricks in them that are not stored yet, by layer."""
        for it in started:
            bricks = {layer: job for layer, job in it.what.bricks.items() if job not in self.kept}
            if bricks and len(it.plain_ms) >= it.fewest_rounds:
                yield it, bricks

    def _renewed(self, job: Job, places: Sequence[CarrierOccurrence]) -> Sequence[CarrierOccurrence]:
        """Return the samples of a job that count, with those of an earlier run."""
        if job.earlier is None:
            return places
        return renewed(job.earlier, places, self.rule, self.track.quick_ms)

    def _provisional(self, started: Sequence[TimedCarrier]) -> Mapping[JobKey, Statistics]:
        found: dict[Job, list[Statistics]] = defaultdict(list)
        for it, bricks in self._timed(started):
            samples_ms = it.samples_ms(it.counting)
            for layer, job in bricks.items():
                found[job].append(samples_of(samples_ms[layer], self.rule).statistics)
        return {job.key: mean_statistics(those) for job, those in found.items()}

    def _keep_whole(self, whole: _Whole) -> None:
        counted = counting(whole.samples_ms, whole.moments, self.track)
        samples_ms = counted.of(whole.samples_ms)
        facts = (*counted.facts(len(whole.samples_ms)), (SHARED_COLUMN, counted.doubt))
        found = CarrierOccurrence((), samples_of(samples_ms, self.rule), facts)
        (found,) = self._renewed(whole.job, [found])
        self.results.keep([(whole.job, found.samples)], found.noise)

    def _fail(self, job: Job) -> None:
        """Store why a whole model fails, unless it is to be tried once more."""
        loss = self.worker.take_losses().get(job.name)
        if loss is None:
            return
        if loss.try_alone:
            self._again.append(job)
        else:
            self.results.fail(job, loss.reason, loss.message)
