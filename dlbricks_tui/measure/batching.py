"""Batches: the jobs that are timed in the same rounds, and so see the same noise of the host."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import fsum
from operator import itemgetter
from typing import NamedTuple

from dlbricks_tui.measure.jobs import Job
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


def _batches_of(group: _SharedRounds, limits: BatchLimits) -> list[Batch]:
    filled = list(_filled(group.bricks, group.wholes, limits))
    if not filled:
        return [single(whole) for whole in group.wholes]
    portions = {whole: _portions(whole, filled) for whole in group.wholes}
    return [
        Batch(
            tuple(bricks),
            tuple(group.wholes),
            part,
            len(filled),
            {job: of_it[part - 1] for job, of_it in portions.items()},
        )
        for part, bricks in enumerate(filled, start=1)
    ]


def _portions(whole: Job, filled: Sequence[Sequence[Job]]) -> list[Portion]:
    """Return for each batch its bricks' expected share of the time of all batches."""
    lasting = [fsum(_expected_ms(whole, brick) for brick in bricks) for bricks in filled]
    if not any(lasting):
        lasting = [1.0] * len(filled)
    everything = fsum(lasting)
    return [Portion(here / everything, fsum(lasting[:part]) / everything) for part, here in enumerate(lasting, start=1)]


def _expected_ms(whole: Job, brick: Job) -> float:
    """Return the expected time of all occurrences of a brick in a model."""
    return brick.expected_ms * sum(use.times for use in brick.uses if use.model == whole.uses[0].model)


def _filled(bricks: Iterable[Job], wholes: Sequence[Job], limits: BatchLimits) -> Iterator[Sequence[Job]]:
    batch: list[Job] = []
    for brick in bricks:
        if batch and not _fits([*batch, brick], wholes, limits):
            yield batch
            batch = []
        batch.append(brick)
    if batch:
        yield batch


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
