"""Which jobs are measured together: what shares its rounds shares the moods of the machine."""

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
# What the framework needs for a program besides its tensors.
_OVERHEAD_BYTES = 2 * MEBIBYTE
# What feeds a brick has weights of its own, most often about as many. A fused model keeps its weights as they came and
# as the library wants them: VGG-16 takes 1.9 times what its tensors do, at `written` 1.2 times.
_COPIES = 2
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


class _Company(NamedTuple):
    """Models that are timed in the same rounds, and the bricks that share these with them."""

    wholes: Sequence[Job]
    bricks: Sequence[Job]


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
    companies = [company for group in groups for company in _companies(group, limits)]
    return tuple(batch for company in companies for batch in _of_company(company, limits))


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


def _companies(jobs: Sequence[Job], limits: BatchLimits) -> list[_Company]:
    """A group, cut so that its models leave room for bricks; a model that never does is timed without any."""
    bricks = [job for job in jobs if not job.whole]
    largest = max(map(_needed_bytes, bricks), default=0)
    shared: list[list[Job]] = []
    by_themselves: list[Job] = []
    for whole in (job for job in jobs if job.whole):
        room = (company for company in shared if _has_room(company, whole, largest, limits))
        if company := next(room, None):
            company.append(whole)
        elif bricks and _has_room((), whole, largest, limits):
            shared.append([whole])
        else:
            by_themselves.append(whole)
    dealt = _dealt(bricks, shared) if shared else [_Company((), bricks)]
    return [*dealt, *(_Company((whole,), ()) for whole in by_themselves)]


def _dealt(bricks: Sequence[Job], shared: Sequence[Sequence[Job]]) -> list[_Company]:
    """Each company of models with its part of the bricks: one goes where it is needed and least has gone so far."""
    names = [{whole.uses[0].model for whole in company} for company in shared]
    parts: list[list[Job]] = [[] for _ in shared]
    taken_ms = [0.0] * len(shared)
    for brick in bricks:
        needed_by = {use.model for use in brick.uses}
        wanting = [place for place, of_it in enumerate(names) if of_it & needed_by] or range(len(shared))
        place = min(wanting, key=taken_ms.__getitem__)
        parts[place].append(brick)
        taken_ms[place] += brick.expected_ms
    return [_Company(*it) for it in zip(shared, parts, strict=True)]


def _has_room(company: Sequence[Job], whole: Job, brick_bytes: int, limits: BatchLimits) -> bool:
    """Whether a model may join these, with room left for a brick of so many bytes."""
    wholes = [*company, whole]
    return (
        # Models of one name may differ: one of them is enough company for the bricks.
        all(whole.uses[0].model != other.uses[0].model for other in company)
        and len(wholes) < limits.programs_beside_models
        and sum(map(_needed_bytes, wholes)) + brick_bytes <= limits.memory_bytes
    )


def _of_company(company: _Company, limits: BatchLimits) -> list[Batch]:
    filled = list(_filled(company.bricks, company.wholes, limits))
    if not filled:
        return [alone(whole) for whole in company.wholes]
    portions = {whole: _portions(whole, filled) for whole in company.wholes}
    return [
        Batch(
            tuple(bricks),
            tuple(company.wholes),
            part,
            len(filled),
            {job: of_it[part - 1] for job, of_it in portions.items()},
        )
        for part, bricks in enumerate(filled, start=1)
    ]


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
