"""The method `inside`: bricks are timed where they stand in a network, by the runtime's own profiler.

1. Each whole model runs for about two seconds: that is what it takes, and people see it first.
2. Carriers, which hold every brick that the store lacks, run in rounds. In each round a carrier runs once plainly and
   then under the profiler. A layer's sample is its share of the profiled time, of what the plain run took.
   How quick a network is depends a little on where in memory its arrays lie, so carriers are loaded twice and take
   turns, and whole models are loaded anew for the rounds.
3. A carrier is done when its plain latency is known well enough; then its bricks are stored.
"""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median

from dlbricks_tui.bricks.carriers import Carrier
from dlbricks_tui.estimate.intervals import is_wide
from dlbricks_tui.measure.errors import Stopped
from dlbricks_tui.measure.events import BatchStarted, Event, RoundDone
from dlbricks_tui.measure.jobs import Job, JobKey
from dlbricks_tui.measure.layer_times import layer_times
from dlbricks_tui.measure.results import Checkpoints, Occurrence, OccurrenceSink
from dlbricks_tui.measure.stopping import (
    FEWEST_OF_THE_LONGEST,
    FEWEST_SAMPLES,
    Adaptive,
    drifting_half_width_ms,
    samples_of,
)
from dlbricks_tui.measure.supervised_worker import SupervisedWorker
from dlbricks_tui.measure.time_left import PLAIN_SECONDS, most_seconds_per_carrier
from dlbricks_tui.measure.warming import untimed_runs
from dlbricks_tui.runtime.protocol import Program
from dlbricks_tui.store.index import SHARED_COLUMN
from dlbricks_tui.store.records import Facts, Statistics
from dlbricks_tui.store.statistics import mean_statistics, trimmed_mean

# How often a whole model is timed before anything else, at least and at most.
_FEWEST_PLAIN_RUNS, _MOST_PLAIN_RUNS = 3, 100
_FEWEST_ROUNDS = FEWEST_SAMPLES
# Noise averages out within one run of a network that takes this long.
_SLOWEST_MS, _FEWEST_ROUNDS_OF_THE_SLOWEST = 1000.0, 2
# In each round a carrier runs so often under the profiler, untimed and then timed; slow ones have the second pair.
_PROFILED, _SLOW_PROFILED, _SLOW_MS = (1, 2), (1, 1), 150.0
# So many models are timed in the rounds of their carriers, too.
_FEW_MODELS = 3
_NULL_CALLS = 10
# The interval of fewer rounds is too often narrow by chance, unless they last long.
_ROUNDS_TO_BE_SURE, _SECONDS_TO_BE_SURE = 24, 4.0
_REFERENCE = "reference"
_REFERENCE_RUNS = 5
_NANOSECONDS_PER_MS = 1e6
# How often a carrier is loaded, unless it is slow or loading takes longer than this.
COPIES, _SECONDS_TO_COPY = 2, 2.5
# Of two networks that are loaded twice each, the means differ by no more than this share in 95 % of cases, because of
# where they lie (`python -m benchmarks.loads`).
PLACEMENT_SHARE = 0.027


@dataclass(frozen=True)
class CarrierJob:
    """A carrier to run: its program, the layer of each operator, and the bricks that it is to tell about by layer."""

    # What the worker calls it.
    name: str
    # The key of the model, where the carrier is all of it; empty otherwise.
    key: str
    carrier: Carrier
    program: Program
    expected_ms: float
    owners: Mapping[int, int]
    bricks: Mapping[int, Job]


@dataclass(slots=True)
class _Whole:
    """A whole model that is being timed."""

    job: Job
    program: Program
    first_run_ms: float
    samples_ms: list[float] = field(default_factory=list)


@dataclass(slots=True)
class _Running:
    """A carrier that is being timed: its plain runs, and the samples of each of its layers."""

    what: CarrierJob
    # The names of its copies in the worker.
    copies: tuple[str, ...]
    first_run_ms: float
    # How long it is timed at most, unless fewer rounds than needed take longer.
    most_seconds: float
    plain_ms: list[float] = field(default_factory=list)
    layers_ms: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    seconds: float = 0.0

    @property
    def copy(self) -> str:
        """The copy whose turn it is."""
        return self.copies[len(self.plain_ms) % len(self.copies)]

    @property
    def untimed_runs(self) -> int:
        """How often it runs before a timed run."""
        return untimed_runs(median(self.plain_ms) if self.plain_ms else self.first_run_ms, whole=True)

    @property
    def profiled_runs(self) -> tuple[int, int]:
        """How often it runs under the profiler in a round: untimed, and then timed."""
        return _SLOW_PROFILED if self.first_run_ms > _SLOW_MS else _PROFILED

    @property
    def fewest_rounds(self) -> int:
        """How many rounds it takes part in at least."""
        if self.first_run_ms > _SLOWEST_MS:
            return _FEWEST_ROUNDS_OF_THE_SLOWEST
        return FEWEST_OF_THE_LONGEST if self.seconds > self.most_seconds else _FEWEST_ROUNDS

    @property
    def seconds_per_round(self) -> float:
        """How long its part of a round takes."""
        return self.seconds / len(self.plain_ms) if self.plain_ms else 0.0

    @property
    def is_wide(self) -> bool:
        """True if its latency is not well known."""
        return is_wide(median(self.plain_ms), drifting_half_width_ms(self.plain_ms)) if self.plain_ms else True

    def samples_ms(self, layer: int) -> list[float]:
        """The samples of one pass of a layer, so that all layers add up to what they take together."""
        factor = self.interruptions / self.what.carrier.graph.layers[layer].times
        return [sample_ms * factor for sample_ms in self.layers_ms[layer]]

    @property
    def interruptions(self) -> float:
        """How many times longer the carrier takes than its layers one by one.

        A trimmed mean drops the runs in which a layer was interrupted. Of many layers one is in most runs.
        """
        together_ms = [math.fsum(of_all) for of_all in zip(*self.layers_ms.values(), strict=True)]
        return trimmed_mean(together_ms) / math.fsum(map(trimmed_mean, self.layers_ms.values()))


class Inside:
    """Times whole models and carriers in a worker; results are stored before they are told."""

    def __init__(
        self,
        worker: SupervisedWorker,
        results: OccurrenceSink,
        control: Checkpoints,
        rule: Adaptive,
        tell: Callable[[Event], None],
        reference: Program,
    ) -> None:
        self._worker = worker
        self._results = results
        self._control = control
        self._rule = rule
        self._tell = tell
        self._wholes: list[_Whole] = []
        self._references_ms: list[float] = []
        # The bricks that are in the store by now.
        self._kept: set[Job] = set()
        self._worker.load(_REFERENCE, reference, fixture=True)
        self._worker.take_losses()

    def time_models(self, models: Sequence[tuple[Job, Program]]) -> None:
        """Time each whole model for about two seconds, and store what it takes.

        A few models go on in the rounds of the carriers, so that an estimate and what it is compared with are of the
        same minutes.
        """
        for job, program in models:
            self._control.checkpoint()
            loaded = self._worker.load(job.name, program, job.expected_ms)
            if loaded is None:
                self._fail(job)
                continue
            self._results.loaded(job, loaded.first_run_seconds, ())
            whole = _Whole(job, program, loaded.first_run_seconds * 1000)
            self._sample_for_a_while(whole)
            if whole.samples_ms:
                self._keep_whole(whole)
            if self._worker.holds(job.name) and len(models) <= _FEW_MODELS:
                self._wholes.append(whole)
            self._worker.clear()

    @property
    def kept(self) -> Collection[Job]:
        """The bricks that were timed well enough."""
        return self._kept

    def time_carriers(self, carriers: Sequence[CarrierJob], of: int = 0) -> None:
        """Time carriers, all in the same rounds; they are some `of` all that a run has to time."""
        running = self._load(carriers, most_seconds_per_carrier(max(of, len(carriers))))
        started = list(running)
        try:
            while running:
                self._control.checkpoint()
                self._round(running)
                done = [it for it in running if self._is_done(it)]
                running = [it for it in running if it not in done and all(map(self._worker.holds, it.copies))]
                self._keep_bricks(started, running)
                self._results.tell_estimates(lambda: self._provisional(started))
        except Stopped:
            self._keep_bricks(started, [], finished=False)
            raise
        for whole in self._wholes:
            self._keep_whole(whole, again=True)
        self._worker.clear()

    def _load(self, carriers: Sequence[CarrierJob], most_seconds: float) -> list[_Running]:
        bricks = dict.fromkeys(job for it in carriers for job in it.bricks.values())
        self._tell(BatchStarted(number=1, of=1, programs=len(bricks)))
        running = []
        for what in carriers:
            self._control.checkpoint()
            began = time.monotonic()
            loaded = self._worker.load(what.name, what.program, what.expected_ms)
            if loaded is None:
                continue
            slow = loaded.first_run_seconds * 1000 > _SLOW_MS or time.monotonic() - began > _SECONDS_TO_COPY
            copies = 1 if slow else COPIES
            names = [f"{what.name}, copy {number}" for number in range(2, copies + 1)]
            names = [name for name in names if self._worker.load(name, what.program, what.expected_ms)]
            running.append(_Running(what, (what.name, *names), loaded.first_run_seconds * 1000, most_seconds))
            for job in dict.fromkeys(what.bricks.values()):
                self._results.loaded(job, loaded.first_run_seconds, ())
        for whole in self._wholes:
            self._worker.load(whole.job.name, whole.program, whole.job.expected_ms)
        self._worker.take_losses()
        return running

    def _round(self, running: Sequence[_Running]) -> None:
        """One sample of each whole model and each layer."""
        began = time.monotonic()
        samples: dict[int, list[float]] = defaultdict(list)
        self._sample_reference()
        for whole in self._wholes:
            if self._worker.holds(whole.job.name) and self._sample_whole(whole):
                samples[whole.job.number].append(whole.samples_ms[-1])
        for it in running:
            for job, sample_ms in self._sample_carrier(it):
                samples[job.number].append(sample_ms)
        self._worker.take_losses()
        calls_ms = [duration / _NANOSECONDS_PER_MS for duration in self._worker.null_calls(_NULL_CALLS)]
        seconds = time.monotonic() - began
        self._tell(
            RoundDone(
                samples_ms=tuple((number, (fmean(taken),)) for number, taken in samples.items()),
                null_call_ms=median(calls_ms) if calls_ms else None,
                reference_ms=self._references_ms[-1] if self._references_ms else None,
                seconds_left=self._seconds_left(running, seconds),
            )
        )

    def _sample_carrier(self, it: _Running) -> Iterator[tuple[Job, float]]:
        """Run a carrier plainly and under the profiler; what each of its layers took, by the brick it belongs to."""
        began = time.monotonic()
        taken = self._worker.sample([it.copy], it.untimed_runs, 1).get(it.copy)
        profile = self._worker.profile(it.copy, *it.profiled_runs) if taken else None
        it.seconds += time.monotonic() - began
        if taken is None or profile is None:
            return
        plain_ms = taken[0] / _NANOSECONDS_PER_MS
        times = layer_times(profile, it.what.owners, plain_ms)
        it.plain_ms.append(plain_ms)
        for layer in it.what.carrier.graph.layers:
            it.layers_ms[layer.index].append(times.get(layer.index, 0.0))
        for index, job in it.what.bricks.items():
            yield job, it.layers_ms[index][-1] / it.what.carrier.graph.layers[index].times

    def _sample_for_a_while(self, whole: _Whole) -> None:
        until = time.monotonic() + PLAIN_SECONDS
        while len(whole.samples_ms) < _FEWEST_PLAIN_RUNS or (
            time.monotonic() < until and len(whole.samples_ms) < _MOST_PLAIN_RUNS
        ):
            self._control.checkpoint()
            if not self._sample_whole(whole):
                return

    def _sample_whole(self, whole: _Whole) -> bool:
        usual_ms = median(whole.samples_ms) if whole.samples_ms else whole.first_run_ms
        name = whole.job.name
        taken = self._worker.sample([name], untimed_runs(usual_ms, whole=True), 1).get(name)
        if taken is None:
            self._fail(whole.job)
            return False
        whole.samples_ms.append(taken[0] / _NANOSECONDS_PER_MS)
        return True

    def _sample_reference(self) -> None:
        if self._worker.holds(_REFERENCE):
            taken = self._worker.sample([_REFERENCE], 1, _REFERENCE_RUNS).get(_REFERENCE)
            if taken:
                self._references_ms.append(median(taken) / _NANOSECONDS_PER_MS)

    def _is_done(self, it: _Running) -> bool:
        rounds = len(it.plain_ms)
        if rounds < it.fewest_rounds:
            return False
        usual_ms = median(it.plain_ms)
        fewest, most = self._rule.bounds(usual_ms)
        if rounds >= most or it.seconds > it.most_seconds:
            return True
        sure = rounds >= _ROUNDS_TO_BE_SURE or (rounds >= fewest and it.seconds > _SECONDS_TO_BE_SURE)
        return sure and drifting_half_width_ms(it.plain_ms) <= self._rule.target * usual_ms

    def _seconds_left(self, running: Sequence[_Running], round_seconds: float) -> float:
        """Seconds that the carriers still need at most; `round_seconds` is what the last round took."""
        rounds = {it.what.name: self._rounds_left(it) for it in running}
        beside = max(0.0, round_seconds - math.fsum(it.seconds_per_round for it in running))
        carriers = math.fsum(rounds[it.what.name] * it.seconds_per_round for it in running)
        left = carriers + beside * max(rounds.values(), default=0)
        budget = self._control.seconds_left
        return left if budget is None else min(left, budget)

    def _rounds_left(self, it: _Running) -> int:
        most = self._rule.bounds(median(it.plain_ms))[1] if it.plain_ms else _FEWEST_ROUNDS
        within = it.most_seconds / it.seconds_per_round if it.seconds_per_round else math.inf
        return max(0, math.ceil(max(it.fewest_rounds, min(most, within))) - len(it.plain_ms))

    def _keep_bricks(self, started: Sequence[_Running], running: Sequence[_Running], *, finished: bool = True) -> None:
        """Store the bricks that no running carrier says more about."""
        going_on = {job for it in running for job in it.what.bricks.values()}
        found: dict[Job, list[Occurrence]] = defaultdict(list)
        for it in started:
            for layer, job in it.what.bricks.items():
                if job not in going_on and job not in self._kept and len(it.plain_ms) >= it.fewest_rounds:
                    found[job].append(self._occurrence(it, layer))
        wide = {job for it in started if it.is_wide for job in it.what.bricks.values()}
        self._results.keep_occurrences(found, wide, self._noise, finished=finished)
        self._kept.update(found)
        self._results.save_counts()

    def _occurrence(self, it: _Running, layer: int) -> Occurrence:
        carrier = it.what.carrier
        where: Facts = (
            ("model", carrier.model.name),
            ("layer", carrier.graph.layers[layer].name),
            ("carrier", it.what.key),
        )
        shared = math.hypot(drifting_half_width_ms(it.plain_ms) / median(it.plain_ms), PLACEMENT_SHARE)
        return Occurrence(where, samples_of(it.samples_ms(layer), self._rule), ((SHARED_COLUMN, shared),))

    def _provisional(self, started: Sequence[_Running]) -> Mapping[JobKey, Statistics]:
        found: dict[Job, list[Statistics]] = defaultdict(list)
        for it in started:
            for layer, job in it.what.bricks.items():
                if job not in self._kept and len(it.plain_ms) >= it.fewest_rounds:
                    found[job].append(samples_of(it.samples_ms(layer), self._rule).statistics)
        return {job.key: mean_statistics(those) for job, those in found.items()}

    def _keep_whole(self, whole: _Whole, *, again: bool = False) -> None:
        self._results.keep([(whole.job, samples_of(whole.samples_ms, self._rule))], self._noise, again=again)

    def _fail(self, job: Job) -> None:
        loss = self._worker.take_losses().get(job.name)
        if loss is not None:
            self._results.fail(job, loss.reason, loss.message)

    @property
    def _noise(self) -> Facts:
        return (("reference_ms", median(self._references_ms)),) if self._references_ms else ()
