"""The time left of a run, predicted from the pace of the work so far."""

import math
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from statistics import fmean
from typing import NamedTuple

from dlbricks_tui.measure.carriers import COPIES, CarrierJob, carrier_seconds, round_seconds, usual_rounds
from dlbricks_tui.measure.events import END_SECONDS
from dlbricks_tui.measure.jobs import Job
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.noise import NoiseMonitor
from dlbricks_tui.measure.stopping import Adaptive, StoppingRule

# Starting a worker imports its framework.
WORKER_START_SECONDS = 1.0
# Loading a program compiles its kernels and runs it for the first time.
_LOAD_MS, _PASSES_TO_LOAD = 40.0, 1.5
# Each sample of a brick also runs the program that makes its inputs.
_RUNS_WITH_PRODUCER = 2
# On an ordinary host, a quick program takes this share of the samples that an adaptive rule allows.
_USUAL_SHARE = 0.6
# A program that has enough samples and is still not finished needs more: this share of those that it has.
_MORE_OF_THE_SAME = 0.5
# The load of the host before the run has the weight of this many rounds.
_ROUNDS_OF_FIRST_GUESS = 10
# After this much work only its pace counts, and no longer the first guess.
_SECONDS_TO_TRUST = 2.0
# A line through guessed and measured latencies (as logarithms) corrects the former; of fewer programs, a factor does.
_PROGRAMS_FOR_A_LINE = 8
# Whole models take this share of what their shapes suggest: on three hosts 0.41 to 0.85 by MXNet and ONNX Runtime.
_USUAL_SHARE_OF_GUESS = 0.55
# Bounds of its slope: expected latencies have different errors for small and for large programs.
_LEAST_SLOPE, _MOST_SLOPE = 0.4, 1.1
# Shorter latencies count as this one: zero has no logarithm.
_QUICKEST_MS = 1e-3


class PlainTime(NamedTuple):
    """How often and for how long, at least, a whole model is timed before anything else."""

    runs: int
    seconds: float


PLAIN, BEFORE_ROUNDS = PlainTime(3, 2.0), PlainTime(2, 1.0)
# The longest time for a carrier that is timed alone, and for each of many.
_SECONDS_PER_CARRIER, _SECONDS_PER_CARRIER_OF_MANY = 15.0, 3.0
# In each round a reference is timed, and the host is looked at.
_ROUND_SECONDS = 0.1
# Other work slows the end by half as much as the rounds: mostly new processes start there.
_END_SLOWED = 0.5
# A run waits this long for a quiet host, by more rounds: neighbours on shared hosts are often busy for half a minute.
PATIENCE_SECONDS = 30.0


class Guesses:
    """Latencies guessed from shapes, corrected by those that were measured."""

    def __init__(self, usual_share: float = 1.0) -> None:
        # Logarithms of the guessed and the measured latency of each finished program.
        self._compared: list[tuple[float, float]] = []
        self._slope, self._shift = 1.0, math.log(usual_share)

    def learn(self, guessed_ms: float, measured_ms: float) -> None:
        """Compare a guess with what was measured."""
        self._compared.append((_log(guessed_ms), _log(measured_ms)))
        if len(self._compared) >= _PROGRAMS_FOR_A_LINE:
            self._slope, self._shift = _line(self._compared)
        else:
            self._shift = fmean(measured - guessed for guessed, measured in self._compared)

    def corrected_ms(self, guessed_ms: float) -> float:
        """Return what a program probably takes."""
        return math.exp(self._slope * _log(guessed_ms) + self._shift)


class Pace:
    """Predicts the time of jobs: at first from their shapes, later also from the work done so far.

    `others` is the number of competing threads per processor at the start of the run: they slow down each round, and
    noise causes more samples and repeated rounds.
    """

    def __init__(self, rule: StoppingRule, noise_monitor: NoiseMonitor | None = None, others: float = 0.0) -> None:
        self._rule = rule
        self._noise_monitor = noise_monitor or NoiseMonitor()
        self._others = others
        self._rounds = self._noisy_rounds = 0
        self._loading_seconds = self._sampling_seconds = self._repeated_seconds = 0.0
        # The number of samples of each loaded program.
        self._taken = Counter[Job]()
        self._guesses = Guesses()

    def learn(self, job: Job, latency_ms: float) -> None:
        """Correct the expected latencies by a measured one."""
        self._guesses.learn(job.expected_ms, latency_ms)

    def loaded(self, job: Job, seconds: float) -> None:
        """Note the time that a program took to load."""
        self._loading_seconds += seconds
        self._taken[job] += 0

    def sampled(self, jobs: Iterable[Job], seconds: float, *, noisy: bool = False) -> None:
        """Note the time of a round that timed each of these jobs once."""
        self._rounds += 1
        self._noisy_rounds += noisy
        self._sampling_seconds += seconds
        self._taken.update(jobs)

    def repeated(self, seconds: float) -> None:
        """Note the time of a repeated round."""
        self._rounds += 1
        self._noisy_rounds += 1
        self._repeated_seconds += seconds

    def seconds_for(self, samples: Mapping[Job, int]) -> float:
        """Return the seconds that these jobs still take, given the number of samples of each."""
        loading = sum(self._to_load(job) for job, taken in samples.items() if not taken and job not in self._taken)
        sampling = sum(self._to_sample(job, self._samples_left(job, taken)) for job, taken in samples.items())
        loaded = sum(map(self._to_load, self._taken))
        sampled = sum(self._to_sample(job, taken) for job, taken in self._taken.items())
        counted = self._at_pace(sampling, sampled, self._sampling_seconds)
        return self._at_pace(loading, loaded, self._loading_seconds) + counted + self._repeats_beside(counted)

    @property
    def disturbed_share(self) -> float:
        """The expected share of disturbed rounds, from the load at first and then from the rounds."""
        guess = min(1.0, self._others) * _ROUNDS_OF_FIRST_GUESS
        return (guess + self._noisy_rounds) / (_ROUNDS_OF_FIRST_GUESS + self._rounds)

    def _at_pace(self, left_seconds: float, expected_seconds: float, spent_seconds: float) -> float:
        """Return the time left, corrected by the ratio of spent and expected time so far."""
        guess = 1 + self._others
        if not expected_seconds:
            return left_seconds * guess
        trust = min(1.0, spent_seconds / _SECONDS_TO_TRUST)
        return left_seconds * (trust * spent_seconds / expected_seconds + (1 - trust) * guess)

    def _repeats_beside(self, counted_seconds: float) -> float:
        """Return the expected seconds of repeated rounds beside this many seconds of rounds that count."""
        if not counted_seconds:
            return 0.0
        repeated_seconds = self._repeated_seconds + min(1.0, self._others) * _SECONDS_TO_TRUST
        share = repeated_seconds / (self._sampling_seconds + _SECONDS_TO_TRUST)
        return min(share * counted_seconds, self._noise_monitor.most_repeated(counted_seconds))

    def _to_load(self, job: Job) -> float:
        return (_LOAD_MS + _PASSES_TO_LOAD * self._expected_ms(job)) / 1000

    def _to_sample(self, job: Job, samples: float) -> float:
        latency_ms = self._expected_ms(job)
        runs = (job.untimed_runs(latency_ms) + 1) * (1 if job.whole else _RUNS_WITH_PRODUCER)
        return samples * runs * latency_ms / 1000

    def _expected_ms(self, job: Job) -> float:
        return self._guesses.corrected_ms(job.expected_ms)

    def _samples_left(self, job: Job, taken: int) -> float:
        needed, most = self._bounds(job)
        needed += self.disturbed_share * (most - needed)
        # A program that varies more than usual needs more samples: assume half as many as it has.
        return max(needed - taken, min(_MORE_OF_THE_SAME * taken, most - taken), 0.0)

    def _bounds(self, job: Job) -> tuple[float, float]:
        if not isinstance(self._rule, Adaptive):
            return self._rule.runs, self._rule.runs
        needed, _ = self._rule.bounds(self._expected_ms(job))
        most = self._rule.most_samples(self._expected_ms(job), job.share)
        quick = needed == self._rule.least
        return (max(needed, _USUAL_SHARE * min(most, self._rule.most)) if quick else needed), most


class Stage(NamedTuple):
    """Programs that `inside` times together, by guessed latencies: a whole model, or carriers beside whole models."""

    wholes_ms: tuple[float, ...]
    carriers_ms: tuple[float, ...] = ()


class Agenda:
    """The stages that `inside` has yet to time, one after another, and the time that they and the run's end take."""

    def __init__(self, stages: Iterable[Stage] = (), others: float = 0.0, end_seconds: float = 0.0) -> None:
        self._stages = deque(stages)
        self._others = others
        self._end_seconds = (1 + _END_SLOWED * others) * end_seconds
        has_rounds = any(it.carriers_ms for it in self._stages)
        self._most_seconds = most_seconds_per_carrier(sum(len(it.carriers_ms) for it in self._stages))
        self._plain = BEFORE_ROUNDS if has_rounds else PLAIN
        # How long the run will wait for a quiet host, as far as is known before its rounds. Until half of the
        # processors are taken it has one of its own. Without rounds a quarter of quiet samples is enough: models are
        # timed about as long again.
        longest_seconds = PATIENCE_SECONDS if has_rounds else min(PATIENCE_SECONDS, PLAIN.seconds * len(self._stages))
        self.wait_seconds = min(1.0, max(0.0, 2 * others - 1)) * longest_seconds
        self._guesses = Guesses(_USUAL_SHARE_OF_GUESS)
        # What the stages that are over have taken, and what they were expected to take.
        self._spent_seconds = self._expected_seconds = 0.0

    def learn(self, guessed_ms: float, measured_ms: float) -> None:
        """Correct the guesses by a measured latency."""
        self._guesses.learn(guessed_ms, measured_ms)

    def end_stage(self, seconds: float) -> None:
        """Note how long the first stage has taken."""
        if self._stages:
            self._expected_seconds += self._seconds_of(self._stages.popleft())
            self._spent_seconds += seconds

    @property
    def seconds(self) -> float:
        """The time that all stages will take at the pace so far, with the wait for a quiet host."""
        return self._at_pace(self._stages) + self.wait_seconds

    @property
    def later_seconds(self) -> float:
        """The time that the stages after the first will take."""
        return self._at_pace(islice(self._stages, 1, None))

    def _at_pace(self, stages: Iterable[Stage]) -> float:
        pace = (self._spent_seconds + _SECONDS_TO_TRUST) / (self._expected_seconds + _SECONDS_TO_TRUST)
        return pace * sum(map(self._seconds_of, stages)) + self._end_seconds

    def _seconds_of(self, stage: Stage) -> float:
        """Return what a stage takes: models are timed no longer on a busy host, and all else is slower there."""
        wholes_ms, carriers_ms = (
            [(1 + self._others) * self._guesses.corrected_ms(it) for it in latencies_ms]
            for latencies_ms in (stage.wholes_ms, stage.carriers_ms)
        )
        loaded_ms = wholes_ms + carriers_ms * COPIES
        loading = sum((1 + self._others) * _LOAD_MS + _PASSES_TO_LOAD * it for it in loaded_ms) / 1000
        if not carriers_ms:
            runs, seconds = self._plain
            return loading + sum(max(seconds, runs * round_seconds(it)) for it in wholes_ms)
        rounds = [usual_rounds(it, self._most_seconds) for it in carriers_ms]
        carriers = sum(carrier_seconds(it) * times for it, times in zip(carriers_ms, rounds, strict=True))
        # A model is in the rounds of its own carriers, which take about as long as it does.
        wholes = sum(round_seconds(it) * min(max(rounds), usual_rounds(it, self._most_seconds)) for it in wholes_ms)
        return loading + carriers + wholes + max(rounds) * _ROUND_SECONDS


def stages(wholes: Sequence[Job], groups: Iterable[Sequence[CarrierJob]]) -> Iterator[Stage]:
    """Yield the stages of a run: whole models, then groups of carriers, beside whose first its model is timed again."""
    left = list(wholes)
    for job in wholes:
        yield Stage((job.expected_ms,))
    for group in groups:
        used = {use.model for it in group for job in it.bricks.values() for use in job.uses}
        beside = [job for job in left if any(use.model in used for use in job.uses)]
        left = [job for job in left if job not in beside]
        yield Stage(tuple(job.expected_ms for job in beside), tuple(it.expected_ms for it in group))


def expected_seconds(method: Method, rule: StoppingRule, jobs: Iterable[Job], others: float = 0.0) -> float:
    """Return a first guess of the time of a run of these jobs, with the start of its worker; `others` as for `Pace`."""
    jobs = tuple(jobs)
    if not jobs:
        return 0.0
    start_seconds = WORKER_START_SECONDS * (1 + others)
    if method is Method.ALONE:
        return start_seconds + Pace(rule, others=others).seconds_for(dict.fromkeys(jobs, 0))
    # About as many carriers as models with a brick of their own.
    carriers_ms: defaultdict[tuple[str, int | None], float] = defaultdict(float)
    for job in jobs:
        if not job.whole:
            carriers_ms[job.graph.name, job.graph.batch_size] += job.expected_ms
    wholes_ms = tuple(job.expected_ms for job in jobs if job.whole)
    stages = [Stage((it,)) for it in wholes_ms]
    if carriers_ms:
        stages.append(Stage(wholes_ms, tuple(carriers_ms.values())))
    return start_seconds + Agenda(stages, others, END_SECONDS).seconds


def most_seconds_per_carrier(carriers: int) -> float:
    """Return the longest time for each carrier, given their number."""
    return max(_SECONDS_PER_CARRIER_OF_MANY, _SECONDS_PER_CARRIER / max(1, carriers))


def _log(milliseconds: float) -> float:
    return math.log(max(milliseconds, _QUICKEST_MS))


def _line(points: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the slope, within bounds, and the intercept of the line through points."""
    middle_x = sum(x for x, _ in points) / len(points)
    middle_y = sum(y for _, y in points) / len(points)
    spread = sum((x - middle_x) ** 2 for x, _ in points)
    together = sum((x - middle_x) * (y - middle_y) for x, y in points)
    slope = min(max(together / spread, _LEAST_SLOPE), _MOST_SLOPE) if spread else 1.0
    return slope, middle_y - slope * middle_x
