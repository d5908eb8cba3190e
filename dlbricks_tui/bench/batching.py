"""Which jobs are measured together: what shares its rounds shares the moods of the machine."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import fsum
from operator import itemgetter
from typing import NamedTuple

from dlbricks_tui.bench.jobs import Job

MEBIBYTE = 1 << 20
# What the framework needs for a program besides its tensors.
_OVERHEAD_BYTES = 2 * MEBIBYTE
# What feeds a brick has weights of its own, most often about as many.
_COPIES = 2
# The bricks that share its rounds need the rest.
_MOST_OF_MEMORY_FOR_MODELS = 0.5
# The share of its bricks that a model has in common with a group that it belongs to.
_BELONGING = 0.5


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """How much one batch may hold; a job that alone exceeds a limit is a batch of its own."""

    programs: int = 128
    # A model and its bricks are compared, and only in the same rounds does the machine have the same moods for both.
    programs_beside_models: int = 512
    memory_bytes: int = 2048 * MEBIBYTE
    # One pass over all bricks: a person who stops a run wants something to show for it.
    round_ms: float = 4000.0


class Portion(NamedTuple):
    """How much of a job is done in a batch, and in all up to it; 1 is all of it."""

    here: float
    so_far: float


@dataclass(frozen=True, slots=True)
class Batch:
    """Bricks that share their rounds, and the whole models, if any, that are timed in these rounds too.

    Where bricks of these models take several batches, the models are in each of them, and each is one job: it is timed
    as often in each as its bricks there are a part of all of them.
    """

    bricks: tuple[Job, ...]
    wholes: tuple[Job, ...] = ()
    # Which of so many batches of the whole models this is, counted from 1.
    part: int = 1
    parts: int = 1
    # How much of each whole model is timed in it, and in all up to it; without a word it is as much in each batch.
    portions: Mapping[Job, Portion] = field(default_factory=dict)

    @property
    def jobs(self) -> tuple[Job, ...]:
        """Everything that is measured in it."""
        return (*self.wholes, *self.bricks)

    @property
    def last(self) -> bool:
        """Whether its whole models are in no batch after it."""
        return self.part == self.parts

    def portion(self, job: Job) -> Portion:
        """How much of a job is done in it, and when it ends."""
        if not job.whole:
            return Portion(1.0, 1.0)
        return self.portions.get(job) or Portion(1 / self.parts, self.part / self.parts)


def alone(job: Job) -> Batch:
    """A job without any neighbours."""
    return Batch((), (job,)) if job.whole else Batch((job,))


def batches(jobs: Sequence[Job], limits: BatchLimits) -> tuple[Batch, ...]:
    """The jobs in their order, cut into batches; a whole model shares the rounds of most of its bricks."""
    groups = _by_models(jobs) if any(job.whole for job in jobs) else [jobs]
    return tuple(batch for group in groups for batch in _of_group(group, limits))


def _by_models(jobs: Sequence[Job]) -> list[Sequence[Job]]:
    """Whole models with their bricks, each brick with the first model that needs it, then what no whole model needs.

    A model that shares half of its bricks with those of a group belongs to it: it is timed when they are.
    """
    wholes = {job.uses[0].model for job in jobs if job.whole}
    # The model whose bricks take away most doubt comes first: its first brick stands first in the plan.
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


def _of_group(jobs: Sequence[Job], limits: BatchLimits) -> list[Batch]:
    company: list[Job] = []
    names = set[str]()
    for whole in (job for job in jobs if job.whole):
        # Models of one name may differ: one of them is enough company for the bricks.
        if whole.uses[0].model not in names and _leaves_room([*company, whole], limits):
            company.append(whole)
            names.add(whole.uses[0].model)
    filled = list(_filled([job for job in jobs if not job.whole], company, limits))
    if not filled:
        return [alone(job) for job in jobs]
    portions = {whole: _portions(whole, filled) for whole in company}
    shared = [
        Batch(
            tuple(bricks), tuple(company), part, len(filled), {job: of_it[part - 1] for job, of_it in portions.items()}
        )
        for part, bricks in enumerate(filled, start=1)
    ]
    return [*shared, *(alone(job) for job in jobs if job.whole and job not in company)]


def _portions(whole: Job, filled: Sequence[Sequence[Job]]) -> list[Portion]:
    """For each batch what its bricks there are expected to be of all that are timed in these."""
    lasting = [fsum(_expected_ms(whole, brick) for brick in bricks) for bricks in filled]
    if not any(lasting):
        lasting = [1.0] * len(filled)
    everything = fsum(lasting)
    return [Portion(here / everything, fsum(lasting[:part]) / everything) for part, here in enumerate(lasting, start=1)]


def _expected_ms(whole: Job, brick: Job) -> float:
    """What a model is expected to take for all occurrences of a brick."""
    return brick.expected_ms * sum(use.times for use in brick.uses if use.model == whole.uses[0].model)


def _leaves_room(wholes: Sequence[Job], limits: BatchLimits) -> bool:
    needed_bytes = sum(map(_needed_bytes, wholes))
    return (
        len(wholes) < limits.programs_beside_models and needed_bytes <= _MOST_OF_MEMORY_FOR_MODELS * limits.memory_bytes
    )


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
    return job.memory_bytes * (1 if job.whole else _COPIES) + _OVERHEAD_BYTES
