"""Which jobs are measured together: what shares its rounds shares the moods of the machine."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from dlbricks_tui.bench.jobs import Job

MEBIBYTE = 1 << 20
# What the framework needs for a program besides its tensors.
_OVERHEAD_BYTES = 2 * MEBIBYTE
# What feeds a program has weights of its own, most often about as many.
_COPIES = 2


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """How much one batch may hold; a job that alone exceeds a limit is a batch of its own."""

    programs: int = 64
    memory_bytes: int = 2048 * MEBIBYTE
    # One pass over all bricks: a person who stops a run wants something to show for it.
    round_ms: float = 4000.0


def batches(jobs: Sequence[Job], limits: BatchLimits) -> tuple[tuple[Job, ...], ...]:
    """The jobs in their order, cut into batches; a whole model goes before the bricks that are its own."""
    groups = _by_model(jobs) if any(job.whole for job in jobs) else [jobs]
    return tuple(tuple(batch) for group in groups for batch in _filled(group, limits))


def _by_model(jobs: Sequence[Job]) -> list[Sequence[Job]]:
    """Each whole model with those of its bricks that no model before it needs, then what no whole model needs."""
    wholes = {job.uses[0].model: job for job in jobs if job.whole}
    # The model whose bricks take away most doubt comes first: its first brick stands first in the plan.
    order = dict.fromkeys(use.model for job in jobs for use in job.uses if use.model in wholes)
    place = {model: number for number, model in enumerate(order)}

    def group_of(job: Job) -> int:
        return min((place[use.model] for use in job.uses if use.model in place), default=len(place))

    ordered = sorted(jobs, key=lambda job: (group_of(job), not job.whole))
    return [list(group) for _, group in groupby(ordered, key=group_of)]


def _filled(jobs: Iterable[Job], limits: BatchLimits) -> Iterator[list[Job]]:
    batch: list[Job] = []
    for job in jobs:
        if batch and not _fits([*batch, job], limits):
            yield batch
            batch = []
        batch.append(job)
    if batch:
        yield batch


def _fits(batch: Sequence[Job], limits: BatchLimits) -> bool:
    return (
        len(batch) <= limits.programs
        and sum(_COPIES * job.memory_bytes + _OVERHEAD_BYTES for job in batch) <= limits.memory_bytes
        and sum(job.expected_ms for job in batch if not job.whole) <= limits.round_ms
    )
