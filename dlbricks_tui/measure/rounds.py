"""The programs of the next round in their order, and the programs that have enough samples.

A model and its bricks are compared, so both are timed in the same minutes of a host whose speed changes: programs that
need fewer samples take them spread over all rounds.

A round counts if the host was quiet at both of its ends. So the order changes from round to round: a program that
always ran next to an end would be timed in quieter moments than the others.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain
from statistics import median
from typing import TypeVar

from dlbricks_tui.measure.batching import Batch
from dlbricks_tui.measure.jobs import Job
from dlbricks_tui.measure.stopping import FEWEST_SAMPLES, Samples, StoppingRule, samples_of

# In its first run a program converts weights and compiles kernels.
_FIRST_RUN_SLOWER = 4.0
# The fractional parts of its multiples lie evenly between 0 and 1.
_GOLDEN_RATIO = 0.618

T = TypeVar("T")


@dataclass(slots=True)
class JobSamples:
    """The samples of a job so far; those of an earlier run come first."""

    job: Job
    first_run_ms: float
    earlier_ms: tuple[float, ...] = ()
    samples_ms: list[float] = field(default_factory=list)
    # The number of samples that were taken before this batch.
    before: int = 0

    def __post_init__(self) -> None:
        self.samples_ms = [*self.earlier_ms, *self.samples_ms]
        self.before = len(self.samples_ms)

    @property
    def usual_ms(self) -> float:
        """The latency of the job, as far as it is known."""
        return median(self.samples_ms) if self.samples_ms else self.first_run_ms / _FIRST_RUN_SLOWER

    @property
    def untimed_runs(self) -> int:
        return self.job.untimed_runs(self.usual_ms)

    def is_due(self, expected: float) -> bool:
        """True if it has fewer samples of this batch than `expected`; jobs are staggered, so that not all are due."""
        stagger = self.job.number * _GOLDEN_RATIO % 1
        return len(self.samples_ms) - self.before + stagger < expected


class Rounds:
    """The jobs that are timed in turns, batch after batch, by their names in the worker."""

    def __init__(self, rule: StoppingRule) -> None:
        self._rule = rule
        self._unfinished: dict[str, JobSamples] = {}
        # The jobs that were finished in this batch.
        self._finished: dict[str, JobSamples] = {}
        self._batch = Batch(())
        # The samples of all rounds of the batch that count.
        self._taken_ms: list[Mapping[str, Sequence[float]]] = []

    @property
    def unfinished(self) -> Mapping[str, JobSamples]:
        return self._unfinished

    def begin(self, batch: Batch) -> None:
        """Begin a batch; jobs that are not finished go on in it."""
        self._batch, self._finished, self._taken_ms = batch, {}, []
        for it in self._unfinished.values():
            it.before = len(it.samples_ms)

    def add(self, samples: JobSamples) -> None:
        """Let a job take part."""
        self._unfinished[samples.job.name] = samples

    def remove(self, name: str) -> None:
        """Let a job take part no more, and drop its samples."""
        self._unfinished.pop(name, None)
        self._finished.pop(name, None)

    def due(self) -> list[str]:
        """Return the jobs of the next round; none when the batch is finished."""
        wholes = [it for it in self._unfinished.values() if it.job.whole]
        if len(wholes) == len(self._unfinished):
            # Before its last batch a whole model takes only its share of the samples; in the last it takes all that are
            # missing.
            return list(self._unfinished) if self._batch.last else []
        if not wholes:
            return list(self._unfinished)
        quotas = {
            name: self._rule.most_samples(it.usual_ms, it.job.share) * self._batch.portion(it.job).here
            for name, it in self._unfinished.items()
            if not it.job.whole or self._batch.parts == 1 or self._lacks_its_share(it)
        }
        passed = (len(self._taken_ms) + 1) / max(quotas.values())
        return [name for name, quota in quotas.items() if self._unfinished[name].is_due(quota * passed)]

    def count(self, taken_ms: Mapping[str, Sequence[float]]) -> None:
        """Add the samples of a round that counts."""
        self._taken_ms.append(taken_ms)
        for name, samples_ms in taken_ms.items():
            self._unfinished[name].samples_ms += samples_ms

    def take_finished(self) -> list[tuple[Job, Samples]]:
        """Return the jobs that have just been timed often enough; they take part no more."""
        finished: list[tuple[Job, Samples]] = []
        for it in self._unfinished.values():
            if self._rule.looks_at(len(it.samples_ms)) and not self._shares_later_rounds(it):
                samples = samples_of(it.samples_ms, self._rule)
                stop = self._rule.stop(samples.statistics, it.job.share)
                if stop is not None:
                    finished.append((it.job, replace(samples, stop=stop)))
        for job, _ in finished:
            self._finished[job.name] = self._unfinished.pop(job.name)
        return finished

    def restart(self, latest: int) -> list[Job]:
        """Let only this many of the latest rounds of the batch count; return the jobs that were finished in it."""
        del self._taken_ms[: max(0, len(self._taken_ms) - latest)]
        reopened = [it.job for it in self._finished.values()]
        self._unfinished |= self._finished
        self._finished = {}
        for name, it in self._unfinished.items():
            # The host has changed since the earlier run.
            del it.samples_ms[: len(it.earlier_ms)]
            it.before -= len(it.earlier_ms)
            it.earlier_ms = ()
            it.samples_ms[it.before :] = chain.from_iterable(taken.get(name, ()) for taken in self._taken_ms)
        return reopened

    def so_far(self) -> list[tuple[Job, Samples]]:
        """Return the unfinished jobs that have enough samples for an interval."""
        enough = [it for it in self._unfinished.values() if len(it.samples_ms) >= FEWEST_SAMPLES]
        return [(it.job, samples_of(it.samples_ms, self._rule)) for it in enough]

    def added_to(self) -> list[tuple[Job, Samples]]:
        """Return the unfinished jobs of `so_far` that have samples of this run."""
        more = {name for name, it in self._unfinished.items() if len(it.samples_ms) > len(it.earlier_ms)}
        return [(job, samples) for job, samples in self.so_far() if job.name in more]

    def _shares_later_rounds(self, it: JobSamples) -> bool:
        """True for a whole model that is to be timed in later rounds too, even if it has enough samples for now.

        In a single batch that holds for quick models: more of their samples cost next to nothing, and they are to see
        the same noise as their bricks.
        """
        if not it.job.whole or (self._batch.parts == 1 and not self._rule.is_quick(it.usual_ms)):
            return False
        bricks_go_on = any(not other.job.whole for other in self._unfinished.values())
        return not self._batch.last or (bricks_go_on and self._lacks_its_share(it))

    def _lacks_its_share(self, whole: JobSamples) -> bool:
        """True if a model has fewer samples than the batches so far are to give it."""
        most = self._rule.most_samples(whole.usual_ms)
        return len(whole.samples_ms) < most * self._batch.portion(whole.job).so_far


def in_turn(items: Sequence[T], lasting: Sequence[float], number: int) -> list[T]:
    """Rotate the items, which last so long each, for the round of that number.

    In the long run each of them is in the middle of the round on average.
    """
    middles = [end - last / 2 for last, end in zip(lasting, accumulate(lasting), strict=True)]
    first = bisect_right(middles, number * _GOLDEN_RATIO % 1 * sum(lasting))
    return [*items[first:], *items[:first]]
