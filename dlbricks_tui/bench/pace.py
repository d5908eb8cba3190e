"""How fast a run gets on, and so how long it will still take."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping

from dlbricks_tui.bench.jobs import Job
from dlbricks_tui.bench.stopping import Adaptive, StoppingRule
from dlbricks_tui.bench.warming import untimed_runs

# A network that is calibrated on has a worker of its own, in which its bricks and it are sampled twenty times.
SECONDS_PER_NETWORK = 4.0
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
        self._spent_seconds = 0.0
        # How many samples of each loaded program were taken.
        self._taken = Counter[Job]()
        # Logarithms of what was expected of each program and of what it then took.
        self._compared: list[tuple[float, float]] = []
        self._slope, self._shift = 1.0, 0.0

    def learn(self, job: Job, latency_ms: float) -> None:
        """A program turned out to take so long."""
        self._compared.append((_log(job.expected_ms), _log(latency_ms)))
        if len(self._compared) >= _JOBS_TO_COMPARE:
            self._slope, self._shift = _line(self._compared)

    def loaded(self, job: Job, seconds: float) -> None:
        """To load a program took so long."""
        self._spent_seconds += seconds
        self._taken[job] += 0

    def sampled(self, jobs: Iterable[Job], seconds: float) -> None:
        """A round took so long in which these were timed once each; none of them where it has to be repeated."""
        self._spent_seconds += seconds
        self._taken.update(jobs)

    def seconds_for(self, samples: Mapping[Job, int]) -> float:
        """How long jobs will still take that have so many samples already."""
        left_seconds = sum(self._seconds_left(job, taken) for job, taken in samples.items())
        done_seconds = sum(self._seconds(job, taken, load=True) for job, taken in self._taken.items())
        if not done_seconds:
            return left_seconds
        trust = min(1.0, self._spent_seconds / _SECONDS_TO_TRUST)
        return left_seconds * (trust * self._spent_seconds / done_seconds + (1 - trust))

    def _seconds_left(self, job: Job, taken: int) -> float:
        return self._seconds(job, self._samples_left(self._expected_ms(job), taken), load=not taken)

    def _seconds(self, job: Job, samples: float, *, load: bool) -> float:
        latency_ms = self._expected_ms(job)
        load_ms = _LOAD_MS + _PASSES_TO_LOAD * latency_ms if load else 0.0
        passes = untimed_runs(latency_ms, whole=job.whole) + 1
        return (load_ms + samples * passes * latency_ms) / 1000

    def _expected_ms(self, job: Job) -> float:
        return math.exp(self._slope * _log(job.expected_ms) + self._shift)

    def _samples_left(self, latency_ms: float, taken: int) -> float:
        needed, most = self._bounds(latency_ms)
        # What varies more than usual has no end in sight: half as many again as it has taken, as far as it may.
        return max(needed - taken, min(_MORE_OF_THE_SAME * taken, most - taken), 0.0)

    def _bounds(self, latency_ms: float) -> tuple[float, float]:
        if not isinstance(self._rule, Adaptive):
            return self._rule.runs, self._rule.runs
        needed, most = self._rule.bounds(latency_ms)
        quick = needed == self._rule.least
        return (max(needed, _USUAL_SHARE * most) if quick else needed), most


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
