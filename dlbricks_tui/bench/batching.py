"""Which jobs are measured together: what shares its rounds shares the moods of the machine."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from dlbricks_tui.bench.jobs import Job

MEBIBYTE = 1 << 20
# What the framework needs for a program besides its tensors.
_OVERHEAD_BYTES = 2 * MEBIBYTE
# What feeds a brick has weights of its own, most often about as many.
_COPIES = 2
# The bricks that share its rounds need the rest.
_MOST_OF_MEMORY_FOR_A_MODEL = 0.5


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """How much one batch may hold; a job that alone exceeds a limit is a batch of its own."""

    programs: int = 128
    memory_bytes: int = 2048 * MEBIBYTE
    # One pass over all bricks: a person who stops a run wants something to show for it.
    round_ms: float = 4000.0


@dataclass(frozen=True, slots=True)
class Batch:
    """Bricks that share their rounds, and the whole model, if any, that is timed in these rounds too.

    Where the bricks that are a model's own take several batches, the model is in each of them, and is one job.
    """

    bricks: tuple[Job, ...]
    whole: Job | None = None
    # Which of so many batches of the whole model this is, counted from 1.
    part: int = 1
    parts: int = 1

    @property
    def jobs(self) -> tuple[Job, ...]:
        """Everything that is measured in it."""
        return self.bricks if self.whole is None else (self.whole, *self.bricks)

    @property
    def last(self) -> bool:
        """Whether its whole model is in no batch after it."""
        return self.part == self.parts

    @property
    def shares(self) -> Mapping[Job, float]:
        """How much of each job is done in it."""
        return {job: 1 / self.parts if job.whole else 1.0 for job in self.jobs}


def alone(job: Job) -> Batch:
    """A job without any neighbours."""
    return Batch((), job) if job.whole else Batch((job,))


def batches(jobs: Sequence[Job], limits: BatchLimits) -> tuple[Batch, ...]:
    """The jobs in their order, cut into batches; a whole model shares the rounds of all bricks that are its own."""
    groups = _by_model(jobs) if any(job.whole for job in jobs) else [jobs]
    return tuple(batch for group in groups for batch in _of_group(group, limits))


def _by_model(jobs: Sequence[Job]) -> list[Sequence[Job]]:
    """Each whole model with those of its bricks that no model before it needs, then what no whole model needs."""
    wholes = {job.uses[0].model: job for job in jobs if job.whole}
    # The model whose bricks take away most doubt comes first: its first brick stands first in the plan.
    order = dict.fromkeys(use.model for job in jobs for use in job.uses if use.model in wholes)
    place = {model: number for number, model in enumerate(order)}

    def group_of(job: Job) -> int:
        return min((place[use.model] for use in job.uses if use.model in place), default=len(place))

    return [list(group) for _, group in groupby(sorted(jobs, key=group_of), key=group_of)]


def _of_group(jobs: Sequence[Job], limits: BatchLimits) -> list[Batch]:
    # Models of one name may differ: one of them is enough company for the bricks.
    wholes = [job for job in jobs if job.whole]
    company = next((job for job in wholes if _leaves_room(job, limits)), None)
    filled = list(_filled([job for job in jobs if not job.whole], company, limits))
    if not filled:
        return [alone(whole) for whole in wholes]
    shared = [Batch(tuple(bricks), company, part, len(filled)) for part, bricks in enumerate(filled, start=1)]
    return [*shared, *(alone(whole) for whole in wholes if whole is not company)]


def _leaves_room(whole: Job, limits: BatchLimits) -> bool:
    return limits.programs > 1 and _needed_bytes(whole) <= _MOST_OF_MEMORY_FOR_A_MODEL * limits.memory_bytes


def _filled(bricks: Iterable[Job], whole: Job | None, limits: BatchLimits) -> Iterator[Sequence[Job]]:
    batch: list[Job] = []
    for brick in bricks:
        if batch and not _fits([*batch, brick], whole, limits):
            yield batch
            batch = []
        batch.append(brick)
    if batch:
        yield batch


def _fits(bricks: Sequence[Job], whole: Job | None, limits: BatchLimits) -> bool:
    jobs = bricks if whole is None else [whole, *bricks]
    return (
        len(jobs) <= limits.programs
        and sum(map(_needed_bytes, jobs)) <= limits.memory_bytes
        and sum(job.expected_ms for job in bricks) <= limits.round_ms
    )


def _needed_bytes(job: Job) -> int:
    return job.memory_bytes * (1 if job.whole else _COPIES) + _OVERHEAD_BYTES
