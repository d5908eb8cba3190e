"""How fast a run gets on, and so how long it will still take."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping

from dlbricks_tui.bench.jobs import Job
from dlbricks_tui.bench.stopping import Adaptive, StoppingRule

# A network that is calibrated on has a worker of its own, in which its bricks and it are sampled twenty times,
# or more often if they are quick and vary.
SECONDS_PER_NETWORK = 9.0
# To load a program compiles its kernels and runs it for the first time.
_LOAD_MS, _PASSES_TO_LOAD = 40.0, 1.5
# Of the samples that an adaptive rule allows, how many a quick program takes on an ordinary host.
_USUAL_SHARE = 0.4
_MORE_OF_THE_SAME = 0.5
# How much measuring it takes to trust the pace and no longer the guess.
_SECONDS_TO_TRUST = 5.0
# What is expected of small and of large programs is wrong by different factors, which shows after some of them.
_JOBS_TO_COMPARE = 8
_LEAST_SLOPE, _MOST_SLOPE = 0.4, 1.1
_QUICKEST_MS = 1e-3


class Pace:
    """Compares what programs took with what was expected of them."""

    def __init__(self, rule: StoppingRule) -> None:
        self._rule = rule
        self._loading_seconds = self._sampling_seconds = 0.0
        # How many samples of each loaded program were taken.
        self._taken = Counter[Job]()
        # Logarithms of what was expected of each program and of what it then took.
        self._compared: list[tuple[float, float]] = []
        self._slope, self._shift = 1.0, 0.0
        # What follows from these; it is asked for in every round.
        self._latencies_ms: dict[Job, float] = {}

    def learn(self, job: Job, latency_ms: float) -> None:
        """A program turned out to take so long."""
        self._compared.append((_log(job.expected_ms), _log(latency_ms)))
        if len(self._compared) >= _JOBS_TO_COMPARE:
            self._slope, self._shift = _line(self._compared)
            self._latencies_ms.clear()

    def loaded(self, job: Job, seconds: float) -> None:
        """To load a program took so long."""
        self._loading_seconds += seconds
        self._taken[job] += 0

    def sampled(self, jobs: Iterable[Job], seconds: float) -> None:
        """A round took so long in which these were timed once each; none of them where it has to be repeated."""
        self._sampling_seconds += seconds
        self._taken.update(jobs)

    def seconds_for(self, samples: Mapping[Job, int]) -> float:
        """How long jobs will still take that have so many samples already."""
        loading = sum(self._to_load(job) for job, taken in samples.items() if not taken)
        sampling = sum(self._to_sample(job, self._samples_left(job, taken)) for job, taken in samples.items())
        loaded = sum(map(self._to_load, self._taken))
        sampled = sum(self._to_sample(job, taken) for job, taken in self._taken.items())
        return _at_pace(loading, loaded, self._loading_seconds) + _at_pace(sampling, sampled, self._sampling_seconds)

    def _to_load(self, job: Job) -> float:
        return (_LOAD_MS + _PASSES_TO_LOAD * self._expected_ms(job)) / 1000

    def _to_sample(self, job: Job, samples: float) -> float:
        latency_ms = self._expected_ms(job)
        return samples * (job.untimed_runs(latency_ms) + 1) * latency_ms / 1000

    def _expected_ms(self, job: Job) -> float:
        if job not in self._latencies_ms:
            self._latencies_ms[job] = math.exp(self._slope * _log(job.expected_ms) + self._shift)
        return self._latencies_ms[job]

    def _samples_left(self, job: Job, taken: int) -> float:
        needed, most = self._bounds(job)
        # What varies more than usual has no end in sight: half as many again as it has taken, as far as it may.
        return max(needed - taken, min(_MORE_OF_THE_SAME * taken, most - taken), 0.0)

    def _bounds(self, job: Job) -> tuple[float, float]:
        if not isinstance(self._rule, Adaptive):
            return self._rule.runs, self._rule.runs
        needed, most = self._rule.bounds(self._expected_ms(job), job.share)
        quick = needed == self._rule.least
        return (max(needed, _USUAL_SHARE * min(most, self._rule.most)) if quick else needed), most


def _at_pace(left_seconds: float, expected_seconds: float, spent_seconds: float) -> float:
    """What is left, given what was expected of the same kind of work so far and what it took."""
    if not expected_seconds:
        return left_seconds
    trust = min(1.0, spent_seconds / _SECONDS_TO_TRUST)
    return left_seconds * (trust * spent_seconds / expected_seconds + (1 - trust))


def _log(milliseconds: float) -> float:
    return math.log(max(milliseconds, _QUICKEST_MS))


def _line(points: list[tuple[float, float]]) -> tuple[float, float]:
    """The slope, within reason, and the height of the line through points."""
    middle_x = sum(x for x, _ in points) / len(points)
    middle_y = sum(y for _, y in points) / len(points)
    spread = sum((x - middle_x) ** 2 for x, _ in points)
    together = sum((x - middle_x) * (y - middle_y) for x, y in points)
    slope = min(max(together / spread, _LEAST_SLOPE), _MOST_SLOPE) if spread else 1.0
    return slope, middle_y - slope * middle_x
