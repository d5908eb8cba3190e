"""The programs of the next round in their order, and the programs that have enough samples.

A model and its bricks are compared, so both are timed in the same minutes of a host whose speed changes: programs that
need fewer samples take them spread over all rounds.

A round counts if the host was quiet at both of its ends. So the order changes from round to round: a program that
always ran next to an end would be timed in quieter moments than the others.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, groupby
from math import fsum
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


class Portion(NamedTuple):
    """The part of a job's samples that is taken in a batch, and in all batches up to it; 1 is all of them."""

    here: float
    so_far: float


@dataclass(frozen=True, slots=True)
class Batch:
    """Bricks that are timed in the same rounds, and the whole models, if any, that are timed with them.

    A model whose bricks take several batches is in each of them as one job. Its samples are divided among the batches
    in proportion to its bricks there.
    """

    bricks: tuple[Job, ...]
    wholes: tuple[Job, ...] = ()
    # The number of the batch among those with the same whole models, from 1, and the number of these.
    part: int = 1
    parts: int = 1
    # The portion of each whole model; the same in each batch if it is missing.
    portions: Mapping[Job, Portion] = field(default_factory=dict)

    @property
    def jobs(self) -> tuple[Job, ...]:
        return (*self.wholes, *self.bricks)

    @property
    def last(self) -> bool:
        """True for the last batch of its whole models."""
        return self.part == self.parts

    def portion(self, job: Job) -> Portion:
        """Return the portion of a job."""
        if not job.whole:
            return Portion(1.0, 1.0)
        return self.portions.get(job) or Portion(1 / self.parts, self.part / self.parts)


def single(job: Job) -> Batch:
    return Batch((), (job,)) if job.whole else Batch((job,))


def batches(jobs: Sequence[Job], limits: BatchLimits) -> tuple[Batch, ...]:
    """Cut the jobs into batches, in their order; a whole model shares the rounds of the first of its bricks."""
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


def _divided(jobs: Sequence[Job], limits: BatchLimits) -> list[Batch]:
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
    dealt = _dealt(bricks, shared) if shared else [Batch(tuple(bricks))]
    return [*dealt, *map(single, by_themselves)]


def _dealt(bricks: Sequence[Job], shared: Sequence[Sequence[Job]]) -> list[Batch]:
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
    return [Batch(tuple(part), tuple(wholes)) for wholes, part in zip(shared, parts, strict=True)]


def _has_room(group: Sequence[Job], whole: Job, brick_bytes: int, limits: BatchLimits) -> bool:
    """True if a model may join these, with room left for a brick of `brick_bytes`."""
    wholes = [*group, whole]
    return (
        # Different models may have one name; the bricks need only one of them.
        all(whole.uses[0].model != other.uses[0].model for other in group)
        and len(wholes) < limits.programs_beside_models
        and sum(map(_needed_bytes, wholes)) + brick_bytes <= limits.memory_bytes
    )


def _batches_of(group: Batch, limits: BatchLimits) -> list[Batch]:
    """Fill batches with bricks in their order; the models are in each of them."""
    filled: list[list[Job]] = []
    for brick in group.bricks:
        if not filled or not _fits([*filled[-1], brick], group.wholes, limits):
            filled.append([])
        filled[-1].append(brick)
    if not filled:
        return [single(whole) for whole in group.wholes]
    portions = {whole: _portions(whole, filled) for whole in group.wholes}
    return [
        Batch(tuple(bricks), group.wholes, part, len(filled), {job: of_it[part - 1] for job, of_it in portions.items()})
        for part, bricks in enumerate(filled, start=1)
    ]


def _portions(whole: Job, filled: Sequence[Sequence[Job]]) -> list[Portion]:
    """Return for each batch the expected share of the model's brick time in it, and in all batches up to it."""

    def expected_ms(brick: Job) -> float:
        return brick.expected_ms * sum(use.times for use in brick.uses if use.model == whole.uses[0].model)

    lasting = [fsum(map(expected_ms, bricks)) for bricks in filled]
    if not any(lasting):
        lasting = [1.0] * len(filled)
    everything = fsum(lasting)
    return [Portion(here / everything, fsum(lasting[:part]) / everything) for part, here in enumerate(lasting, start=1)]


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
        self.unfinished: dict[str, JobSamples] = {}
        # The jobs that were finished in this batch.
        self._finished: dict[str, JobSamples] = {}
        self._batch = Batch(())
        # The samples of all rounds of the batch that count.
        self._taken_ms: list[Mapping[str, Sequence[float]]] = []

    def begin(self, batch: Batch) -> None:
        """Begin a batch; jobs that are not finished go on in it."""
        self._batch, self._finished, self._taken_ms = batch, {}, []
        for it in self.unfinished.values():
            it.before = len(it.samples_ms)

    def add(self, samples: JobSamples) -> None:
        """Let a job take part."""
        self.unfinished[samples.job.name] = samples

    def remove(self, name: str) -> None:
        """Let a job take part no more, and drop its samples."""
        self.unfinished.pop(name, None)
        self._finished.pop(name, None)

    def due(self) -> list[str]:
        """Return the jobs of the next round; none when the batch is finished."""
        wholes = [it for it in self.unfinished.values() if it.job.whole]
        if len(wholes) == len(self.unfinished):
            # Before its last batch a whole model takes only its share of the samples; in the last it takes all that are
            # missing.
            return list(self.unfinished) if self._batch.last else []
        if not wholes:
            return list(self.unfinished)
        quotas = {
            name: self._rule.most_samples(it.usual_ms, it.job.share) * self._batch.portion(it.job).here
            for name, it in self.unfinished.items()
            if not it.job.whole or self._batch.parts == 1 or self._lacks_its_share(it)
        }
        passed = (len(self._taken_ms) + 1) / max(quotas.values())
        return [name for name, quota in quotas.items() if self.unfinished[name].is_due(quota * passed)]

    def count(self, taken_ms: Mapping[str, Sequence[float]]) -> None:
        """Add the samples of a round that counts."""
        self._taken_ms.append(taken_ms)
        for name, samples_ms in taken_ms.items():
            self.unfinished[name].samples_ms += samples_ms

    def take_finished(self) -> list[tuple[Job, Samples]]:
        """Return the jobs that have just been timed often enough; they take part no more."""
        finished: list[tuple[Job, Samples]] = []
        for it in self.unfinished.values():
            if self._rule.looks_at(len(it.samples_ms)) and not self._shares_later_rounds(it):
                samples = samples_of(it.samples_ms, self._rule)
                stop = self._rule.stop(samples.statistics, it.job.share)
                if stop is not None:
                    finished.append((it.job, replace(samples, stop=stop)))
        for job, _ in finished:
            self._finished[job.name] = self.unfinished.pop(job.name)
        return finished

    def restart(self, latest: int) -> list[Job]:
        """Let only this many of the latest rounds of the batch count; return the jobs that were finished in it."""
        del self._taken_ms[: max(0, len(self._taken_ms) - latest)]
        reopened = [it.job for it in self._finished.values()]
        self.unfinished |= self._finished
        self._finished = {}
        for name, it in self.unfinished.items():
            # The host has changed since the earlier run.
            del it.samples_ms[: len(it.earlier_ms)]
            it.before -= len(it.earlier_ms)
            it.earlier_ms = ()
            it.samples_ms[it.before :] = chain.from_iterable(taken.get(name, ()) for taken in self._taken_ms)
        return reopened

    def so_far(self) -> list[tuple[Job, Samples]]:
        """Return the unfinished jobs that have enough samples for an interval."""
        enough = [it for it in self.unfinished.values() if len(it.samples_ms) >= FEWEST_SAMPLES]
        return [(it.job, samples_of(it.samples_ms, self._rule)) for it in enough]

    def added_to(self) -> list[tuple[Job, Samples]]:
        """Return the unfinished jobs of `so_far` that have samples of this run."""
        more = {name for name, it in self.unfinished.items() if len(it.samples_ms) > len(it.earlier_ms)}
        return [(job, samples) for job, samples in self.so_far() if job.name in more]

    def _shares_later_rounds(self, it: JobSamples) -> bool:
        """True for a whole model that is to be timed in later rounds too, even if it has enough samples for now.

        In a single batch that holds for quick models: more of their samples cost next to nothing, and they are to see
        the same noise as their bricks.
        """
        if not it.job.whole or (self._batch.parts == 1 and not self._rule.is_quick(it.usual_ms)):
            return False
        bricks_go_on = any(not other.job.whole for other in self.unfinished.values())
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
