"""The time left of a run, predicted from the pace of the work so far."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from dlbricks_tui.measure.jobs import Job
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.noise import NoiseMonitor
from dlbricks_tui.measure.stopping import Adaptive, StoppingRule

# Starting a worker imports its framework.
WORKER_START_SECONDS = 3.0
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
# A line through expected and measured latencies (as logarithms) corrects the former. It needs this many programs.
_JOBS_TO_COMPARE = 8
# Bounds of its slope: expected latencies have different errors for small and for large programs.
_LEAST_SLOPE, _MOST_SLOPE = 0.4, 1.1
# Shorter latencies count as this one: zero has no logarithm.
_QUICKEST_MS = 1e-3
# The method `inside` times each whole model first, for this long.
PLAIN_SECONDS = 2.0
# The longest time for a carrier that is timed alone, and for each of many.
_SECONDS_PER_CARRIER, _SECONDS_PER_CARRIER_OF_MANY = 15.0, 3.0
# The runs of a carrier until it is finished: for a quick carrier on an ordinary host, and for a slow one.
_RUNS_OF_A_CARRIER, _RUNS_OF_A_SLOW_CARRIER = 200, 5
# However short a carrier is, it settles for a while in each of its rounds.
_LEAST_SECONDS_PER_CARRIER = 10.0


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
        # Logarithms of the expected and the measured latency of each finished program.
        self._compared: list[tuple[float, float]] = []
        self._slope, self._shift = 1.0, 0.0
        # A cache: every round needs these values.
        self._latencies_ms: dict[Job, float] = {}

    def learn(self, job: Job, latency_ms: float) -> None:
        """Correct the expected latencies by a measured one."""
        self._compared.append((_log(job.expected_ms), _log(latency_ms)))
        if len(self._compared) >= _JOBS_TO_COMPARE:
            self._slope, self._shift = _line(self._compared)
            self._latencies_ms.clear()

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
        if job not in self._latencies_ms:
            self._latencies_ms[job] = math.exp(self._slope * _log(job.expected_ms) + self._shift)
        return self._latencies_ms[job]

    def _samples_left(self, job: Job, taken: int) -> float:
        needed, most = self._bounds(job)
        needed += self.disturbed_share * (most - needed)
        # A program that varies more than usual needs more samples: assume half as many as it has.
        return max(needed - taken, min(_MORE_OF_THE_SAME * taken, most - taken), 0.0)

    def _bounds(self, job: Job) -> tuple[float, float]:
        if not isinstance(self._rule, Adaptive):
            return self._rule.runs, self._rule.runs
        needed, _ = self._rule.bounds(self._expected_ms(job), job.share)
        most = self._rule.most_samples(self._expected_ms(job), job.share)
        quick = needed == self._rule.least
        return (max(needed, _USUAL_SHARE * min(most, self._rule.most)) if quick else needed), most


def expected_seconds(method: Method, rule: StoppingRule, jobs: Iterable[Job], others: float = 0.0) -> float:
    """Return a first guess of the time of a run of these jobs, with the start of its worker; `others` as for `Pace`."""
    jobs = tuple(jobs)
    if not jobs:
        return 0.0
    start_seconds = WORKER_START_SECONDS * (1 + others)
    if method is Method.ALONE:
        return start_seconds + Pace(rule, others=others).seconds_for(dict.fromkeys(jobs, 0))
    return start_seconds + _expected_inside_seconds(jobs, 1 + others)


def _expected_inside_seconds(jobs: Sequence[Job], slowdown: float) -> float:
    """Return the expected time of the method `inside`.

    A busy host slows down each run. Models and carriers are timed for as long as on a quiet host, with fewer runs.
    """
    seconds = {job: slowdown * job.expected_ms / 1000 for job in jobs}
    bricks_seconds = sum(seconds[job] for job in jobs if not job.whole)
    wholes = sum(max(PLAIN_SECONDS, _RUNS_OF_A_SLOW_CARRIER * seconds[job]) for job in jobs if job.whole)
    # About as many carriers as models with a brick of their own.
    carriers = len({(job.graph.name, job.graph.batch_size) for job in jobs if not job.whole})
    least = _LEAST_SECONDS_PER_CARRIER if bricks_seconds else 0.0
    timing = min(carriers * most_seconds_per_carrier(carriers), max(least, _RUNS_OF_A_CARRIER * bricks_seconds))
    loading = slowdown * _LOAD_MS / 1000 * len(jobs)
    return wholes + max(timing, _RUNS_OF_A_SLOW_CARRIER * bricks_seconds) + loading


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
