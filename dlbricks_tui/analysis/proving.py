"""Proofs: what-ifs that are carried out, with the model timed before and after the change; and jobs that measure peaks.

1. Read the model as each of the two executions has it.
2. Load it into one worker for each, from its file where the runtime runs files.
3. Time both in alternating rounds, and store the proof.
"""

import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from statistics import median
from typing import NamedTuple, NoReturn

from dlbricks_tui.analysis.what_if import Execution, Gain, MeasuredGain, WhatIf, measured_gain
from dlbricks_tui.analysis.whole_models import executed_model, execution_worker, job_of, load_whole, turn_on_host
from dlbricks_tui.errors import UserError
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.noise import contention_between
from dlbricks_tui.host.peaks import keep_peaks
from dlbricks_tui.host.queue import HostQueue, Ticket, WorkKind, host_queue, queued
from dlbricks_tui.jobs.control import JobStopped, StopSignals
from dlbricks_tui.jobs.events import Event, Waiting, event_kinds
from dlbricks_tui.jobs.kinds import JobKind
from dlbricks_tui.jobs.process import JobAtWork, work_in_process
from dlbricks_tui.measure.carriers import COPIES, PLACEMENT_SHARE, SECONDS_TO_COPY, SLOW_MS
from dlbricks_tui.measure.jobs import Job, timed_runs, untimed_runs
from dlbricks_tui.measure.noise import NoiseMonitor, Round
from dlbricks_tui.measure.results import runtime_record
from dlbricks_tui.measure.stopping import drifting_half_width_ms
from dlbricks_tui.measure.supervised_worker import SupervisedWorker, TimeLimits
from dlbricks_tui.models.graph import Numbers, Shape
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runs.results import model_digests, provenance, with_onednn
from dlbricks_tui.runs.work import Workplace
from dlbricks_tui.runtime.protocol import Described, Program
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Proof, Provenance, System, utc_now
from dlbricks_tui.store.statistics import summarise, trimmed_mean

# Looking after each round would stop at the first interval that is narrow by chance.
_GROWTH_BETWEEN_LOOKS = 1.2


class ProofError(UserError):
    """A what-if cannot be proved."""


@dataclass(frozen=True, slots=True)
class ProofRule:
    """Rounds until half of the interval that they leave is at most `target`, within bounds on rounds and time.

    Slow models get fewer rounds than `least`: those of `enough_seconds`, but `fewest` in any case.
    """

    target: float = 0.02
    fewest: int = 3
    least: int = 12
    most: int = 100
    enough_seconds: float = 15.0
    most_seconds: float = 60.0

    def is_done(self, rounds: int, seconds: float, gain: Gain) -> bool:
        """Return whether so many rounds, which took so long, tell the gain well enough."""
        if rounds < self.fewest:
            return False
        if rounds >= self.most or seconds >= self.most_seconds:
            return True
        if rounds < self.least and seconds < self.enough_seconds:
            return False
        look = self.fewest
        while look < rounds:
            look = math.ceil(look * _GROWTH_BETWEEN_LOOKS)
        return (gain.high - gain.low) / 2 <= self.target and look == rounds

    def seconds_left(self, rounds: int, seconds: float, gain: Gain) -> float:
        """Return about how long a proof goes on after some rounds in some seconds: the interval shrinks steadily."""
        per_round = seconds / rounds
        needed = rounds * ((gain.high - gain.low) / 2 / self.target) ** 2 if rounds >= self.fewest else math.inf
        least = min(self.least * per_round, max(self.enough_seconds, self.fewest * per_round))
        most = min(self.most * per_round, self.most_seconds)
        return max(0.0, min(max(needed * per_round, least), most) - seconds)


# The samples of both models in the rounds that count, in their order.
Rounds = Sequence[tuple[float, float]]


def paired_gain(rounds_ms: Rounds, items: float = 1.0) -> Gain:
    """Return the gain from the samples before and after a change in each round, with the interval that these leave.

    `items` is how many times as many items a run before the change computes.
    """
    # Of ratios, the mean of 2 and 1/2 is above 1.
    logarithms = [math.log(items * after / before) for before, after in rounds_ms]
    value, half = trimmed_mean(logarithms), drifting_half_width_ms(logarithms)
    return Gain(*(1.0 - math.exp(it) for it in (value, value + half, value - half)))


def with_placement(gain: Gain) -> Gain:
    """Return a gain with an interval that also holds for other loads of the same models.

    The latency of each depends on the places of its arrays in memory.
    """
    half = math.hypot((gain.high - gain.low) / 2, PLACEMENT_SHARE * (1.0 - gain.value))
    return Gain(gain.value, gain.value - half, gain.value + half)


class ModelSample(NamedTuple):
    """The latency of a model in a round, the seconds that it took to get it, and whether others disturbed it."""

    latency_ms: float
    seconds: float
    disturbed: bool


class TimedModel:
    """A whole model in a worker: loaded twice, unless it is slow, since the places of its arrays change its speed."""

    def __init__(self, worker: SupervisedWorker, program: Program, expected_ms: float, copies: int = COPIES) -> None:
        self._worker = worker
        self._names: list[str] = []
        self._samples_ms: list[float] = []
        self._usual_ms = 0.0
        while len(self._names) < copies:
            name, began = f"copy {len(self._names) + 1}", time.monotonic()
            loaded = worker.load(name, program, expected_ms)
            if loaded is None and self._names:
                # The first copy was loaded: the latency of one is enough.
                break
            if loaded is None:
                self._refuse(name)
            self._usual_ms = loaded.first_run_seconds * 1000
            slow_to_load = time.monotonic() - began > SECONDS_TO_COPY
            self._names.append(name)
            # The first run also compiles kernels.
            self._usual_ms = self._run(name)
            if slow_to_load or self._usual_ms > SLOW_MS:
                copies = 1

    @property
    def _latency_ms(self) -> float:
        return median(self._samples_ms) if self._samples_ms else self._usual_ms

    def sample(self, number: int, noise: NoiseMonitor) -> ModelSample:
        """Run the model for the round of that number, and return the median of the timed runs."""
        began, before = time.monotonic(), self._worker.contention()
        sample_ms = self._run(self._names[number // 2 % len(self._names)])
        seconds, counted = time.monotonic() - began, contention_between(before, self._worker.contention())
        runs = untimed_runs(self._latency_ms, whole=True) + timed_runs(self._latency_ms)
        self._samples_ms.append(sample_ms)
        disturbed = noise.disturbance(Round(seconds, runs, counted, ())) is not None
        # The other model runs next.
        self._worker.wait_until_idle()
        return ModelSample(sample_ms, seconds, disturbed)

    def _run(self, name: str) -> float:
        latency_ms = self._latency_ms
        taken = self._worker.sample([name], untimed_runs(latency_ms, whole=True), timed_runs(latency_ms))
        if name not in taken:
            self._refuse(name)
        return median(taken[name])

    def _refuse(self, name: str) -> NoReturn:
        loss = self._worker.take_losses().get(name)
        raise ProofError("the worker was lost" if loss is None else loss.message)


def time_in_turns(
    before: TimedModel,
    after: TimedModel,
    rule: ProofRule,
    tell: Callable[[int, Gain], None],
    items: float = 1.0,
) -> Rounds:
    """Time both models in alternating rounds until the gain is known well enough.

    The order changes from round to round. A round that other programs disturb is repeated, as far as that is worth it.
    """
    rounds_ms: list[tuple[float, float]] = []
    noise, began = NoiseMonitor(), time.monotonic()
    for number in count():
        taken = {model: model.sample(number, noise) for model in ((before, after), (after, before))[number % 2]}
        seconds = sum(it.seconds for it in taken.values())
        if any(it.disturbed for it in taken.values()) and noise.worth_repeating:
            noise.repeat(seconds)
            continue
        noise.count(seconds)
        rounds_ms.append((taken[before].latency_ms, taken[after].latency_ms))
        gain = paired_gain(rounds_ms, items)
        tell(len(rounds_ms), gain)
        if rule.is_done(len(rounds_ms), time.monotonic() - began, gain):
            break
    return rounds_ms


_LOG = "proofs.log"
# Of the memory of the host, both models together may take this share.
_MOST_MEMORY = 0.9


@dataclass(frozen=True, slots=True)
class RoundsDone(Event):
    """The rounds so far of a what-if that is being proved, and the gain that they show."""

    what_if: str
    rounds: int
    gain: Gain
    # None until there is a second round.
    seconds_left: float | None = None


@dataclass(frozen=True, slots=True)
class ProofOrder:
    """The what-ifs of a model to prove, and the shapes and values of its inputs."""

    source: ModelSource
    what_ifs: tuple[WhatIf, ...]
    inputs: Mapping[str, Shape] = field(default_factory=dict)
    values: Mapping[str, Numbers] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProofDone(Event):
    """The end of a proof: its gain after so many rounds, or the reason why there is none."""

    what_if: str
    gain: MeasuredGain | None
    failure: str
    rounds: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Prover:
    """Proves the what-ifs of an order; results are those that a user of each runtime gets."""

    order: ProofOrder
    place: Workplace
    signals: StopSignals
    tell: Callable[[Event], None]
    rule: ProofRule = field(default_factory=ProofRule)
    limits: TimeLimits = field(default_factory=TimeLimits)

    def prove_all(self, queue: HostQueue) -> None:
        """Prove each what-if, and store its proof before it is told.

        No run measures meanwhile. `JobStopped` ends it early: the proofs until then are in the store.
        """
        what_ifs = self.order.what_ifs
        task = queued(WorkKind.PROOF, [self.order.source.name], self.place.data.path)
        with turn_on_host(queue, task, self.signals, lambda ahead: self.tell(Waiting(holder=ahead))) as ticket:
            for number, what_if in enumerate(what_ifs):
                self.signals.check()
                try:
                    proof = self.prove(what_if, ticket, (number, len(what_ifs)))
                except UserError as error:
                    self.tell(ProofDone(what_if.id, None, str(error)))
                else:
                    self.tell(ProofDone(what_if.id, measured_gain(proof), "", proof.before.count))

    def prove(self, what_if: WhatIf, ticket: Ticket, place: tuple[int, int]) -> Proof:
        """Prove a what-if, and store the proof; `place` is the number of proofs before it, and of all."""
        if what_if.change is None:
            raise ProofError("no runtime can run it: it is a bound")
        system, log = fingerprint(), self.place.data.log / _LOG
        order, executions = self.order, (what_if.baseline, what_if.change)
        how = self.place, log, order.inputs, order.values
        with self.signals.waiting():
            before, after = (job_of(executed_model(order.source, it, *how)) for it in executions)
        items = before.graph.batch_size / after.graph.batch_size
        copies = int(_MOST_MEMORY * system.memory_bytes / (before.memory_bytes + after.memory_bytes))
        if not copies:
            raise ProofError("the memory of this host does not hold the model twice, for both executions")

        first = 0.0

        def tell(rounds: int, gain: Gain) -> None:
            nonlocal first
            self.signals.check()
            now, left = time.monotonic(), None
            if rounds == 1:
                first = now
            else:
                # The time of the first round is that of the others.
                seconds = (now - first) * rounds / (rounds - 1)
                left = self.rule.seconds_left(rounds, seconds, gain)
                # Those after it are expected to take as long.
                later = (place[1] - place[0] - 1) * (seconds + left)
                ticket.progress((place[0] + seconds / (seconds + left)) / place[1], left + later)
            self.tell(RoundsDone(what_if.id, rounds, gain, left))

        described: list[Described] = []
        with (
            self._loaded(what_if.baseline, before, system, min(copies, COPIES), described) as timed_before,
            self._loaded(what_if.change, after, system, min(copies, COPIES), described) as timed_after,
        ):
            rounds_ms = time_in_turns(timed_before, timed_after, self.rule, tell, items)
        proof = _proof(what_if, what_if.change, before, after, rounds_ms, system)
        runtimes = (runtime_record(it.runtime, system) for it in executions)
        origins = self._origins(proof, executions, (before, after), described, system)
        with ResultsDatabase(self.place.data.store) as store:
            store.add(system, *runtimes, proof)
            store.add(*origins)
        return proof

    def _origins(
        self,
        proof: Proof,
        executions: Sequence[Execution],
        jobs: Sequence[Job],
        described: Sequence[Described],
        system: System,
    ) -> Iterator[Provenance]:
        """Yield where the samples on each runtime come from."""
        for runtime, versions in {it.runtime: known for it, known in zip(executions, described, strict=True)}.items():
            path = self.order.source.in_format(runtime.traits.format).path
            own = [job.key.model for it, job in zip(executions, jobs, strict=True) if it.runtime == runtime]
            found = provenance(proof.uuid, system, runtime, versions, model_digests((key, path) for key in own))
            log, program = self.place.data.log / _LOG, self.place.worker_program
            # It is measured and stored: an interrupt only leaves this version out.
            with suppress(JobStopped), self.signals.waiting():
                found = with_onednn(found, runtime, self.place.data.cache, log, program)
            yield found

    @contextmanager
    def _loaded(
        self, execution: Execution, job: Job, system: System, copies: int, described: list[Described]
    ) -> Iterator[TimedModel]:
        """Load a model into a new worker, in up to so many copies; add the versions in the worker to `described`."""
        log, waiting = self.place.data.log / _LOG, self.signals.waiting
        with execution_worker(execution, self.place, log, waiting, system.memory_bytes, self.limits) as worker:
            described.append(worker.describe())
            yield load_whole(job, execution, lambda program: TimedModel(worker, program, job.expected_ms, copies))


def _proof(what_if: WhatIf, change: Execution, before: Job, after: Job, rounds_ms: Rounds, system: System) -> Proof:
    items = before.graph.batch_size / after.graph.batch_size
    gain, predicted = with_placement(paired_gain(rounds_ms, items)), what_if.uncorrected_gain
    before_ms, after_ms = zip(*rounds_ms, strict=True)
    return Proof(
        when=utc_now(),
        model=before.key.model,
        name=before.graph.name,
        system=system.id,
        what_if=what_if.id,
        kind=what_if.kind.value,
        runtime=what_if.baseline.runtime.identity,
        level=before.graph.level,
        batch_size=before.graph.batch_size,
        changed_runtime=change.runtime.identity,
        changed_level=after.graph.level,
        changed_batch_size=after.graph.batch_size,
        before=summarise(before_ms),
        after=summarise(after_ms),
        gain=gain.value,
        gain_low=gain.low,
        gain_high=gain.high,
        predicted_gain=predicted.value,
        predicted_low=predicted.low,
        predicted_high=predicted.high,
        samples_ms=before_ms,
        changed_samples_ms=after_ms,
    )


# A viewer that draws after each round would disturb the next one.
_SECONDS_BETWEEN_ROUNDS = 1.0

PROOF = JobKind(WorkKind.PROOF, ProofOrder, event_kinds(RoundsDone, ProofDone), f"{__name__}:work_on_proofs")


def thinned(tell: Callable[[Event], None], clock: Callable[[], float] = time.monotonic) -> Callable[[Event], None]:
    """Return the function that tells the rounds of each proof at most once a second, and all other events."""
    what_if, due = "", 0.0

    def tell_some(event: Event) -> None:
        nonlocal what_if, due
        if isinstance(event, RoundsDone):
            now = clock()
            if event.what_if == what_if and event.rounds > 1 and now < due:
                return
            what_if, due = event.what_if, now + _SECONDS_BETWEEN_ROUNDS
        tell(event)

    return tell_some


def carry_out_proofs(job: JobAtWork[ProofOrder]) -> None:
    """Prove the what-ifs of a job; the proofs before an error or a signal are stored."""
    place, tell = Workplace(job.data), thinned(job.tell)
    Prover(order=job.request, place=place, signals=job.signals, tell=tell).prove_all(host_queue())


def work_on_proofs(folder: str, data: str) -> None:
    """Prove the what-ifs of a job; the entry point of its process."""
    sys.exit(work_in_process(PROOF, folder, data, carry_out_proofs))


@dataclass(frozen=True, slots=True)
class PeaksOrder:
    """The number of threads whose peaks are to be measured."""

    threads: int


PEAKS = JobKind(WorkKind.PEAKS, PeaksOrder, event_kinds(), f"{__name__}:work_on_peaks")


def measure_peaks_of_host(threads: int, data: DataFolder, tell_waiting: Callable[[str], None]) -> None:
    """Measure the peaks of this host once it is their turn, and store them."""
    keep_peaks(data.store, fingerprint(), threads, host_queue(), data.path, tell_waiting)


def work_on_peaks(folder: str, data: str) -> None:
    """Measure the peaks that a job asks for; the entry point of its process."""

    def measure(job: JobAtWork[PeaksOrder]) -> None:
        measure_peaks_of_host(job.request.threads, job.data, lambda ahead: job.tell(Waiting(holder=ahead)))

    sys.exit(work_in_process(PEAKS, folder, data, measure))
