"""The programs of the next round in their order, and the programs that have enough samples.

A model and its bricks are compared, so both are timed in the same minutes of a host whose speed changes: programs that
need fewer samples take them spread over all rounds.

A round counts if the host was quiet at both of its ends. So the order changes from round to round: a program that
always ran next to an end would be timed in quieter moments than the others.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, groupby
from operator import itemgetter
from statistics import median
from typing import NamedTuple, TypeVar

from dlbricks_tui.measure.jobs import Job
from dlbricks_tui.measure.stopping import FEWEST_SAMPLES, Samples, StoppingRule, samples_of
from dlbricks_tui.models.graph import Level

MEBIBYTE = 1 << 20
# Memory that the framework needs for a program besides its tensors.
_OVERHEAD_BYTES = 2 * MEBIBYTE
# Weights are held about twice: a brick's producer has its own, and a fused model keeps two layouts. VGG-16 takes 1.9
# times the memory of its tensors, at `written` 1.2 times.
_COPIES = 2
# A model belongs to a group of models if it shares this part of its bricks with them.
_BELONGING = 0.5


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Limits of one batch. A job that exceeds a limit by itself is the only job of its batch."""

    programs: int = 128
    # Batches with a model are larger: the model is compared with its bricks, so both must see the same noise.
    programs_beside_models: int = 512
    memory_bytes: int = 2048 * MEBIBYTE
    # The time for one run of each brick. A short round gives results even if the run is stopped early.
    round_ms: float = 4000.0


class _SharedRounds(NamedTuple):
    """Models that are timed in the same rounds, and the bricks that share these with them."""

    wholes: Sequence[Job]
    bricks: Sequence[Job]


class Batch(NamedTuple):
    """Bricks that are timed in the same rounds, and the whole models, if any, that are timed with them."""

    bricks: tuple[Job, ...]
    wholes: tuple[Job, ...] = ()

    @property
    def jobs(self) -> tuple[Job, ...]:
        return (*self.wholes, *self.bricks)


def single(job: Job) -> Batch:
    return Batch((), (job,)) if job.whole else Batch((job,))


def batches(jobs: Sequence[Job], limits: BatchLimits) -> tuple[Batch, ...]:
    """Cut the jobs into batches, in their order; a whole model shares the rounds of most of its bricks."""
    groups = _by_models(jobs) if any(job.whole for job in jobs) else [jobs]
    shared = [it for group in groups for it in _divided(group, limits)]
    return tuple(batch for it in shared for batch in _batches_of(it, limits))


def _by_models(jobs: Sequence[Job]) -> list[Sequence[Job]]:
    """Group whole models with their bricks, each brick with the first model that needs it; other bricks come last.

    A model that shares half of its bricks with a group joins it.
    """
    wholes = {job.uses[0].model for job in jobs if job.whole}
    # The model with the first brick in the plan comes first: its bricks remove most uncertainty.
    bricks: dict[str, list[Job]] = {}
    for job in jobs:
        for model in dict.fromkeys(use.model for use in job.uses if use.model in wholes):
            needed = bricks.setdefault(model, [])
            if not job.whole:
                needed.append(job)
    groups = 0
    group_of_model: dict[str, int] = {}
    group_of_brick: dict[Job, int] = {}
    for model, needed in bricks.items():
        shared = Counter(group_of_brick[brick] for brick in needed if brick in group_of_brick)
        group, count = max(shared.items(), key=itemgetter(1), default=(groups, 0))
        if not count or count < _BELONGING * len(needed):
            group, groups = groups, groups + 1
        group_of_model[model] = group
        for brick in needed:
            group_of_brick.setdefault(brick, group)

    def group_of(job: Job) -> int:
        if job.whole:
            return group_of_model[job.uses[0].model]
        return group_of_brick.get(job, groups)

    return [list(group) for _, group in groupby(sorted(jobs, key=group_of), key=group_of)]


def _divided(jobs: Sequence[Job], limits: BatchLimits) -> list[_SharedRounds]:
    """Divide a group so that its models leave room for bricks; a model that leaves none is timed without bricks."""
    bricks = [job for job in jobs if not job.whole]
    largest = max(map(_needed_bytes, bricks), default=0)
    shared: list[list[Job]] = []
    by_themselves: list[Job] = []
    for whole in (job for job in jobs if job.whole):
        room = (group for group in shared if _has_room(group, whole, largest, limits))
        if group := next(room, None):
            group.append(whole)
        elif bricks and _has_room((), whole, largest, limits):
            shared.append([whole])
        else:
            by_themselves.append(whole)
    dealt = _dealt(bricks, shared) if shared else [_SharedRounds((), bricks)]
    return [*dealt, *(_SharedRounds((whole,), ()) for whole in by_themselves)]


def _dealt(bricks: Sequence[Job], shared: Sequence[Sequence[Job]]) -> list[_SharedRounds]:
    """Assign each brick to the models that need it and have the least work so far."""
    names = [{whole.uses[0].model for whole in group} for group in shared]
    parts: list[list[Job]] = [[] for _ in shared]
    taken_ms = [0.0] * len(shared)
    for brick in bricks:
        needed_by = {use.model for use in brick.uses}
        wanting = [place for place, of_it in enumerate(names) if of_it & needed_by] or range(len(shared))
        place = min(wanting, key=taken_ms.__getitem__)
        parts[place].append(brick)
        taken_ms[place] += brick.expected_ms
    return [_SharedRounds(*it) for it in zip(shared, parts, strict=True)]


def _has_room(group: Sequence[Job], whole: Job, brick_bytes: int, limits: BatchLimits) -> bool:
    """True if a model may join these, with room left for a brick of `brick_bytes`."""
    wholes = [*group, whole]
    return (
        # Different models may have one name; the bricks need only one of them.
        all(whole.uses[0].model != other.uses[0].model for other in group)
        and len(wholes) < limits.programs_beside_models
        and sum(map(_needed_bytes, wholes)) + brick_bytes <= limits.memory_bytes
    )


def _batches_of(group: _SharedRounds, limits: BatchLimits) -> Iterator[Batch]:
    """Fill batches with bricks in their order; models are timed beside the first ones, which matter most to them."""
    wholes, bricks = tuple(group.wholes), list[Job]()
    for brick in group.bricks:
        if bricks and not _fits([*bricks, brick], wholes, limits):
            yield Batch(tuple(bricks), wholes)
            wholes, bricks = (), []
        bricks.append(brick)
    if bricks:
        yield Batch(tuple(bricks), wholes)
    else:
        yield from map(single, wholes)


def _fits(bricks: Sequence[Job], wholes: Sequence[Job], limits: BatchLimits) -> bool:
    jobs = [*wholes, *bricks]
    return (
        len(jobs) <= (limits.programs_beside_models if wholes else limits.programs)
        and sum(map(_needed_bytes, jobs)) <= limits.memory_bytes
        and sum(job.expected_ms for job in bricks) <= limits.round_ms
    )


def _needed_bytes(job: Job) -> int:
    once = job.whole and job.graph.level is Level.WRITTEN
    return job.memory_bytes * (1 if once else _COPIES) + _OVERHEAD_BYTES


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

    def __post_init__(self) -> None:
        self.samples_ms = [*self.earlier_ms, *self.samples_ms]

    @property
    def usual_ms(self) -> float:
        """The latency of the job, as far as it is known."""
        return median(self.samples_ms) if self.samples_ms else self.first_run_ms / _FIRST_RUN_SLOWER

    @property
    def untimed_runs(self) -> int:
        return self.job.untimed_runs(self.usual_ms)

    def is_due(self, expected: float) -> bool:
        """True if it has fewer samples of this run than `expected`; jobs are staggered, so that not all are due."""
        stagger = self.job.number * _GOLDEN_RATIO % 1
        return len(self.samples_ms) - len(self.earlier_ms) + stagger < expected


class Rounds:
    """The jobs of a batch, which are timed in turns, by their names in the worker."""

    def __init__(self, rule: StoppingRule) -> None:
        self._rule = rule
        self._unfinished: dict[str, JobSamples] = {}
        self._finished: dict[str, JobSamples] = {}
        # The samples of all rounds that count.
        self._taken_ms: list[Mapping[str, Sequence[float]]] = []

    @property
    def unfinished(self) -> Mapping[str, JobSamples]:
        return self._unfinished

    def add(self, samples: JobSamples) -> None:
        """Let a job take part."""
        self._unfinished[samples.job.name] = samples

    def remove(self, name: str) -> None:
        """Let a job take part no more, and drop its samples."""
        self._unfinished.pop(name, None)
        self._finished.pop(name, None)

    def due(self) -> list[str]:
        """Return the jobs of the next round; none when the batch is finished."""
        if len({it.job.whole for it in self._unfinished.values()}) < 2:
            return list(self._unfinished)
        quotas = {name: self._rule.most_samples(it.usual_ms, it.job.share) for name, it in self._unfinished.items()}
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
        """Let only this many of the latest rounds count; return the jobs that were finished."""
        del self._taken_ms[: max(0, len(self._taken_ms) - latest)]
        reopened = [it.job for it in self._finished.values()]
        self._unfinished |= self._finished
        self._finished = {}
        for name, it in self._unfinished.items():
            # The host has changed since the earlier run.
            it.earlier_ms = ()
            it.samples_ms = [ms for taken in self._taken_ms for ms in taken.get(name, ())]
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
        """True for a quick model beside unfinished bricks, even if it has enough samples for now.

        More of its samples cost next to nothing, and it is to see the same noise as its bricks.
        """
        return (
            it.job.whole
            and self._rule.is_quick(it.usual_ms)
            and any(not other.job.whole for other in self._unfinished.values())
            and len(it.samples_ms) < self._rule.most_samples(it.usual_ms)
        )


def in_turn(items: Sequence[T], lasting: Sequence[float], number: int) -> list[T]:
    """Rotate the items, which last so long each, for the round of that number.

    In the long run each of them is in the middle of the round on average.
    """
    middles = [end - last / 2 for last, end in zip(lasting, accumulate(lasting), strict=True)]
    first = bisect_right(middles, number * _GOLDEN_RATIO % 1 * sum(lasting))
    return [*items[first:], *items[:first]]
