"""How fast a run gets on, and so how long it will still take."""

from collections.abc import Mapping

from dlbricks_tui.bench.jobs import Job
from dlbricks_tui.bench.stopping import Adaptive, StoppingRule

# For each sample the producer runs, then the program once untimed and once timed.
_PASSES_PER_SAMPLE = 3.0
# Of the samples that an adaptive rule allows, how many a program takes on an ordinary host.
_USUAL_SHARE = 0.4
_MORE_OF_THE_SAME = 0.5
# How much measuring it takes to trust the pace and no longer the guess.
_SECONDS_TO_TRUST = 5.0


class Pace:
    """Compares what programs took with what was expected of them."""

    def __init__(self, rule: StoppingRule) -> None:
        self._most = float(rule.most if isinstance(rule, Adaptive) else rule.runs)
        self._samples = max(rule.least, _USUAL_SHARE * rule.most) if isinstance(rule, Adaptive) else self._most
        self._spent_seconds = 0.0
        self._done_ms = 0.0

    def note(self, shares: Mapping[Job, float], seconds: float) -> None:
        """These shares of jobs are done, and have taken so long together."""
        self._spent_seconds += seconds
        self._done_ms += sum(share * job.expected_ms for job, share in shares.items())

    def seconds_for(self, samples: Mapping[Job, int]) -> float:
        """How long jobs will still take that have so many samples already."""
        left_ms = sum(job.expected_ms * self._samples_left(taken) / self._samples for job, taken in samples.items())
        guess = self._samples * _PASSES_PER_SAMPLE / 1000
        if not self._done_ms:
            return left_ms * guess
        trust = min(1.0, self._spent_seconds / _SECONDS_TO_TRUST)
        return left_ms * (trust * self._spent_seconds / self._done_ms + (1 - trust) * guess)

    def _samples_left(self, taken: int) -> float:
        # What varies more than usual has no end in sight: half as many again as it has taken, as far as it may.
        return max(self._samples - taken, min(_MORE_OF_THE_SAME * taken, self._most - taken), 0.0)
