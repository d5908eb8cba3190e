"""The method `inside`: time bricks where they stand in a network, by the runtime's own profiler.

1. Time each whole model for about two seconds. The user sees its latency first.
2. Run carriers in rounds; together they hold every brick that the store lacks. In each round a carrier runs once
   plainly and then under the profiler. A layer's sample is the plain latency times its share of the profiled time.
   The latency of a network depends a little on the addresses of its arrays. So carriers are loaded twice and their
   copies take turns, and whole models are loaded again for the rounds.
3. Store the bricks of a carrier when its plain latency is known well enough.
"""

import math
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median

from dlbricks_tui.bricks.carriers import Carrier
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

# A whole model is timed at least and at most this often before anything else.
_FEWEST_PLAIN_RUNS, _MOST_PLAIN_RUNS = 3, 100
_FEWEST_ROUNDS = FEWEST_SAMPLES
# Noise averages out within one run of a network slower than this.
_SLOWEST_MS, _FEWEST_ROUNDS_OF_THE_SLOWEST = 1000.0, 2
# Untimed and timed runs under the profiler in each round: of a carrier, and of a slow one.
_PROFILED, _SLOW_PROFILED, _SLOW_MS = (1, 2), (1, 1), 150.0
# Up to this many models are also timed in the rounds of their carriers.
_FEW_MODELS = 3
_NULL_CALLS = 10
# With fewer rounds an interval is too often narrow by chance, unless the rounds last long.
_ROUNDS_TO_BE_SURE, _SECONDS_TO_BE_SURE = 24, 4.0
_REFERENCE = "reference"
_REFERENCE_RUNS = 5
_NANOSECONDS_PER_MS = 1e6
# A carrier is loaded this often, unless it is slow or loading takes longer than this many seconds.
COPIES, _SECONDS_TO_COPY = 2, 2.5
# The mean latencies of two loads of a network and of two others differ by less than this share in 95 % of cases
# (`python -m benchmarks.loads`).
PLACEMENT_SHARE = 0.027


@dataclass(frozen=True)
class CarrierJob:
    """A carrier as a program, with the layer of each operator and the bricks to time by layer."""

    # Its name in the worker.
    name: str
    # The key of the model if the carrier is the whole model; empty otherwise.
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
    # Before anything else, and beside the carriers.
    at_first_ms: list[float] = field(default_factory=list)
    in_rounds_ms: list[float] | None = None

    @property
    def samples_ms(self) -> list[float]:
        """The samples that count: of the same minutes as the carriers' where there are any."""
        return self.at_first_ms if self.in_rounds_ms is None else self.in_rounds_ms


@dataclass(slots=True)
class _Running:
    """A carrier that is being timed: its plain runs, and the samples of each of its layers."""

    what: CarrierJob
    # The names of its copies in the worker.
    copies: tuple[str, ...]
    first_run_ms: float
    # It is timed for no longer than this, unless its fewest rounds take longer.
    most_seconds: float
    plain_ms: list[float] = field(default_factory=list)
    layers_ms: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    seconds: float = 0.0

    @property
    def copy(self) -> str:
        """The copy to run next."""
        return self.copies[len(self.plain_ms) % len(self.copies)]

    @property
    def untimed_runs(self) -> int:
        """Untimed runs before a timed run."""
        return untimed_runs(median(self.plain_ms) if self.plain_ms else self.first_run_ms, whole=True)

    @property
    def profiled_runs(self) -> tuple[int, int]:
        """Untimed and timed runs under the profiler in a round."""
        return _SLOW_PROFILED if self.first_run_ms > _SLOW_MS else _PROFILED

    @property
    def fewest_rounds(self) -> int:
        """The rounds it takes part in at least."""
        if self.first_run_ms > _SLOWEST_MS:
            return _FEWEST_ROUNDS_OF_THE_SLOWEST
        return FEWEST_OF_THE_LONGEST if self.seconds > self.most_seconds else _FEWEST_ROUNDS

    @property
    def seconds_per_round(self) -> float:
        """Seconds that it takes in a round."""
        return self.seconds / len(self.plain_ms) if self.plain_ms else 0.0

    def samples_ms(self) -> dict[int, list[float]]:
        """The samples of one pass of each layer, scaled so that the layers add up to the carrier.

        The trimmed mean of a layer drops the rounds in which that layer was interrupted. In most rounds some layer is,
        so that the trimmed mean of all layers together is longer than the sum of theirs.
        """
        together_ms = [math.fsum(layers) for layers in zip(*self.layers_ms.values(), strict=True)]
        apart_ms = math.fsum(map(trimmed_mean, self.layers_ms.values()))
        factor = trimmed_mean(together_ms) / apart_ms if apart_ms else 1.0
        layers = self.what.carrier.graph.layers
        return {
            layer: [sample_ms * factor / layers[layer].times for sample_ms in samples_ms]
            for layer, samples_ms in self.layers_ms.items()
        }

    @property
    def shared_doubt(self) -> float:
        """Half of the interval that all of its layers share, as a share of their latencies."""
        return math.hypot(drifting_half_width_ms(self.plain_ms) / median(self.plain_ms), PLACEMENT_SHARE)


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
        """Time each whole model for about two seconds, and store its latency.

        A few models are timed in the rounds of the carriers too, so that an estimate and the latency it is compared
        with come from the same minutes.
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
        """Time these carriers in the same rounds; `of` is the number of carriers of the whole run."""
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
            if len(whole.samples_ms) >= FEWEST_OF_THE_LONGEST:
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
            if self._worker.load(whole.job.name, whole.program, whole.job.expected_ms):
                whole.in_rounds_ms = []
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
        """Run a carrier plainly and under the profiler, and yield a sample for each needed brick in it."""
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
        """Store the bricks that no running carrier holds."""
        going_on = {job for it in running for job in it.what.bricks.values()}
        found: dict[Job, list[Occurrence]] = defaultdict(list)
        for it, bricks in self._timed(started):
            samples_ms, doubt = it.samples_ms(), it.shared_doubt
            for layer, job in bricks.items():
                if job not in going_on:
                    found[job].append(self._occurrence(it, layer, samples_ms[layer], doubt))
        self._results.keep_occurrences(found, self._noise, finished=finished)
        self._kept.update(found)
        self._results.save_counts()

    def _timed(self, started: Sequence[_Running]) -> Iterator[tuple[_Running, Mapping[int, Job]]]:
        """Carriers with enough rounds, and the bricks in them that are not stored yet, by layer."""
        for it in started:
            bricks = {layer: job for layer, job in it.what.bricks.items() if job not in self._kept}
            if bricks and len(it.plain_ms) >= it.fewest_rounds:
                yield it, bricks

    def _occurrence(self, it: _Running, layer: int, samples_ms: Sequence[float], doubt: float) -> Occurrence:
        carrier = it.what.carrier
        where: Facts = (
            ("model", carrier.model.name),
            ("layer", carrier.graph.layers[layer].name),
            ("carrier", it.what.key),
        )
        return Occurrence(where, samples_of(samples_ms, self._rule), ((SHARED_COLUMN, doubt),))

    def _provisional(self, started: Sequence[_Running]) -> Mapping[JobKey, Statistics]:
        found: dict[Job, list[Statistics]] = defaultdict(list)
        for it, bricks in self._timed(started):
            samples_ms = it.samples_ms()
            for layer, job in bricks.items():
                found[job].append(samples_of(samples_ms[layer], self._rule).statistics)
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
