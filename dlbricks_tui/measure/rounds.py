"""Which programs take part in the next round, in which order, and which have been timed often enough."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain
from statistics import median
from typing import TypeVar

from dlbricks_tui.measure.batching import Batch
from dlbricks_tui.measure.jobs import Entry, Job
from dlbricks_tui.measure.stopping import FEWEST_SAMPLES, Series, StoppingRule, series_of

# In its first run a program converts weights and compiles kernels.
_FIRST_RUN_SLOWER = 4.0
# Its multiples, less what is whole of them, lie evenly between 0 and 1.
GOLDEN_RATIO = 0.618

T = TypeVar("T")


@dataclass(slots=True)
class Timed:
    """A program that is being measured."""

    entry: Entry
    first_run_ms: float
    # What an earlier run has taken.
    earlier_ms: tuple[float, ...] = ()
    samples_ms: list[float] = field(default_factory=list)
    # How many of them were taken in batches before the one at hand, or earlier.
    before: int = 0

    def __post_init__(self) -> None:
        self.samples_ms = [*self.earlier_ms, *self.samples_ms]
        self.before = len(self.samples_ms)

    def forget_earlier(self) -> None:
        """Drop the samples of an earlier run: the host has changed."""
        del self.samples_ms[: len(self.earlier_ms)]
        self.before -= len(self.earlier_ms)
        self.earlier_ms = ()

    @property
    def job(self) -> Job:
        """What is measured."""
        return self.entry.job

    @property
    def usual_ms(self) -> float:
        """About how long it takes."""
        return median(self.samples_ms) if self.samples_ms else self.first_run_ms / _FIRST_RUN_SLOWER

    @property
    def warm_runs(self) -> int:
        """How often it runs before it is timed."""
        return self.job.untimed_runs(self.usual_ms)

    def is_due(self, expected: float) -> bool:
        """Whether it has fewer samples of this batch than that; of many programs some are due a little earlier."""
        lag = self.entry.number * GOLDEN_RATIO % 1
        return len(self.samples_ms) - self.before + lag < expected


class Rounds:
    """Who is timed in turns, batch after batch; each program is known by its entry's name."""

    def __init__(self, rule: StoppingRule) -> None:
        self._rule = rule
        self._programs: dict[str, Timed] = {}
        # Those that were done in this batch.
        self._done: dict[str, Timed] = {}
        self._batch = Batch(())
        # What was taken in the rounds of the batch that count.
        self._taken_ms: list[Mapping[str, Sequence[float]]] = []

    @property
    def programs(self) -> Mapping[str, Timed]:
        """Those that are not done."""
        return self._programs

    def begin(self, batch: Batch) -> None:
        """The next rounds are of this batch; whoever is there already goes on in them."""
        self._batch, self._done, self._taken_ms = batch, {}, []
        for program in self._programs.values():
            program.before = len(program.samples_ms)

    def join(self, program: Timed) -> None:
        """Lets a program take part."""
        self._programs[program.entry.name] = program

    def leave(self, name: str) -> None:
        """Whoever is called so takes part no more."""
        self._programs.pop(name, None)
        self._done.pop(name, None)

    def due(self) -> list[str]:
        """Who takes part in the next round; nobody when the batch is done."""
        wholes = [it for it in self._programs.values() if it.job.whole]
        if len(wholes) == len(self._programs):
            # Until its last batch a whole model has a share of each; there it gets what it still lacks.
            return list(self._programs) if self._batch.last else []
        if not wholes:
            return list(self._programs)
        quotas = {
            name: self._rule.most_samples(it.usual_ms, it.job.share) * self._batch.portion(it.job).here
            for name, it in self._programs.items()
            if not it.job.whole or self._batch.parts == 1 or self._lacks_its_share(it)
        }
        passed = (len(self._taken_ms) + 1) / max(quotas.values())
        return [name for name, quota in quotas.items() if self._programs[name].is_due(quota * passed)]

    def count(self, taken_ms: Mapping[str, Sequence[float]]) -> None:
        """Takes the samples of one more round."""
        self._taken_ms.append(taken_ms)
        for name, samples_ms in taken_ms.items():
            self._programs[name].samples_ms += samples_ms

    def take_done(self) -> list[tuple[Entry, Series]]:
        """Those that are done, and what they took; they take part no more."""
        done: list[tuple[Entry, Series]] = []
        for program in self._programs.values():
            if self._rule.looks_at(len(program.samples_ms)) and not self._has_company(program):
                series = series_of(program.samples_ms, self._rule)
                stop = self._rule.stop(series.statistics, program.job.share)
                if stop is not None:
                    done.append((program.entry, replace(series, stop=stop)))
        for entry, _ in done:
            self._done[entry.name] = self._programs.pop(entry.name)
        return done

    def begin_anew(self, latest: int) -> list[Entry]:
        """Of the batch only so many of the latest rounds count; those that were done, and take part once more."""
        del self._taken_ms[: max(0, len(self._taken_ms) - latest)]
        once_more = [program.entry for program in self._done.values()]
        self._programs |= self._done
        self._done = {}
        for name, program in self._programs.items():
            program.forget_earlier()
            program.samples_ms[program.before :] = chain.from_iterable(it.get(name, ()) for it in self._taken_ms)
        return once_more

    def so_far(self) -> list[tuple[Entry, Series]]:
        """What is known of those that are not done, where they have samples enough to say anything."""
        said = [it for it in self._programs.values() if len(it.samples_ms) >= FEWEST_SAMPLES]
        return [(it.entry, series_of(it.samples_ms, self._rule)) for it in said]

    def added_to(self) -> list[tuple[Entry, Series]]:
        """Of those that are not done what is known of the ones with more samples than an earlier run has taken."""
        more = {name for name, it in self._programs.items() if len(it.samples_ms) > len(it.earlier_ms)}
        return [(entry, series) for entry, series in self.so_far() if entry.name in more]

    def _has_company(self, program: Timed) -> bool:
        """Whether it is a whole model with rounds before it that it is to share, whatever its samples say by now.

        In a batch of its own those are for quick ones: more of their samples cost next to nothing, and they are to have
        as many moods of the host as their bricks have.
        """
        if not program.job.whole or (self._batch.parts == 1 and not self._rule.is_quick(program.usual_ms)):
            return False
        bricks_go_on = any(not it.job.whole for it in self._programs.values())
        return not self._batch.last or (bricks_go_on and self._lacks_its_share(program))

    def _lacks_its_share(self, whole: Timed) -> bool:
        """Whether a model has fewer samples than the batches so far are to give it."""
        most = self._rule.most_samples(whole.usual_ms)
        return len(whole.samples_ms) < most * self._batch.portion(whole.job).so_far


def in_turn(items: Sequence[T], lasting: Sequence[float], number: int) -> list[T]:
    """Items that last so long, going round, as they are to follow one another in the round of that number.

    In the long run each of them is in the middle of the round on average.
    """
    middles = [end - last / 2 for last, end in zip(lasting, accumulate(lasting), strict=True)]
    first = bisect_right(middles, number * GOLDEN_RATIO % 1 * sum(lasting))
    return [*items[first:], *items[:first]]
