"""The tasks of hosts: the bricks to measure next, the networks that hold them, and the run that measures them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from dlbricks_tui.estimate.prediction.choice import Limit
from dlbricks_tui.estimate.prediction.other_systems import OtherSystems
from dlbricks_tui.estimate.system_estimate import Way
from dlbricks_tui.fleet.driving.pools import BrickPool
from dlbricks_tui.fleet.messages import Parcel, Task
from dlbricks_tui.measure.jobs import Job
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.stopping import StoppingRule
from dlbricks_tui.measure.time_left import expected_seconds
from dlbricks_tui.runs.errors import RunError
from dlbricks_tui.runs.probing import PROBE_RULE, informative
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import new_uuid

# A host that goes away costs no more than its task, and each task has a worker to start.
TASK_SECONDS = 40.0


@dataclass(frozen=True)
class Chosen:
    """The bricks of a task, the parcels that hold them, and the seconds that they are expected to take."""

    jobs: tuple[Job, ...]
    parcels: tuple[Parcel, ...]
    seconds: float
    is_probe: bool = False


def next_bricks(
    pool: BrickPool,
    wanted: Iterable[Job],
    most_seconds: float = TASK_SECONDS,
    most_bricks: int | None = None,
    rule: StoppingRule | None = None,
) -> Chosen:
    """Return the first of the wanted bricks that a host can measure in so many seconds, at least one.

    Inside of networks a brick costs the time of its network, so the other bricks of that come along.
    """
    request = pool.part.request
    rule = rule or request.rule

    def seconds(jobs: Sequence[Job]) -> float:
        return expected_seconds(request.method, rule, jobs)

    found: list[Job] = []
    for group in _groups(pool, wanted):
        if seconds([*found, *group]) > most_seconds:
            # One network more than fits in the time would be too much; the first one is begun in any case.
            if request.method is Method.INSIDE:
                group = [] if found else group
            else:
                group = group[: max(_fitting(group, found, seconds, most_seconds), 0 if found else 1)]
            found += group
            break
        found += group
        if most_bricks is not None and len(found) >= most_bricks:
            break
    jobs = tuple(found[:most_bricks])
    return Chosen(jobs, holding(pool, jobs), seconds(jobs))


def probe_bricks(pool: BrickPool, store: ResultsDatabase, seconds: float, most_bricks: int | None = None) -> Chosen:
    """Return the bricks that tell most about a system in a few seconds.

    Where no other system has results of the bricks, these are the ones that are expected to take most of the time.
    """
    part, conditions = pool.part, pool.conditions
    levels = {model.decomposition.graph.level for model in part.models}
    level = levels.pop() if len(levels) == 1 else part.request.level
    others = OtherSystems(store, Way(conditions.system, conditions.runtime, level, conditions.protocol))
    free = tuple(pool.free.values())
    try:
        wanted = informative(free, part.models, others, part.request.method, Limit(len(free), seconds))
    except RunError:
        # No other system knows any of the bricks.
        wanted = []
    if not wanted:
        by_time = sorted(free, key=lambda job: -job.expected_ms * sum(use.times for use in job.uses))
        return replace(next_bricks(pool, by_time, seconds, most_bricks, PROBE_RULE), is_probe=True)
    jobs = tuple(wanted[:most_bricks])
    return Chosen(jobs, holding(pool, jobs), seconds, is_probe=True)


def holding(pool: BrickPool, jobs: Iterable[Job]) -> tuple[Parcel, ...]:
    """Return the parcels for some bricks, as few as a greedy choice finds."""
    found: dict[str, Parcel] = {}
    # Bricks of a single model leave no choice, so they come first.
    for job in sorted(jobs, key=lambda it: len(it.uses)):
        holders = pool.part.holders(job)
        if not any(parcel.sha256 in found for parcel in holders):
            found[holders[0].sha256] = holders[0]
    return tuple(found.values())


def task_of(pool: BrickPool, chosen: Chosen, seconds_left: float | None, probe_seconds: float) -> Task:
    """Return the task that measures some bricks; `seconds_left` are those of the time budget of the host."""
    request = pool.part.request
    budgets = [it for it in (seconds_left, probe_seconds if chosen.is_probe else None) if it is not None]
    keys = tuple(dict.fromkeys(job.key.brick for job in chosen.jobs))
    run = replace(
        request,
        # The host puts the files of the parcels in their place.
        models=(),
        # A parcel has its own batch size and shapes.
        inputs=(),
        values=(),
        batch_sizes=(),
        rule=PROBE_RULE if chosen.is_probe else request.rule,
        time_budget_seconds=min(budgets, default=None),
        only=keys,
    )
    return Task(id=new_uuid(), request=run, parcels=tuple(it.sha256 for it in chosen.parcels), bricks=keys)


def _groups(pool: BrickPool, wanted: Iterable[Job]) -> Iterator[list[Job]]:
    """Yield the free bricks among the wanted ones: all together, or with the others of their network."""
    free = pool.free
    if pool.part.request.method is not Method.INSIDE:
        yield [job for job in wanted if job.key in free]
        return
    seen: set[str] = set()
    for job in wanted:
        if job.key.brick in seen or job.key not in free:
            continue
        parcel = pool.part.holders(job)[0]
        group = [free[key] for key in pool.part.keys_in(parcel) if key in free and key.brick not in seen]
        seen.update(it.key.brick for it in group)
        yield group


def _fitting(
    group: Sequence[Job], found: Sequence[Job], seconds: Callable[[Sequence[Job]], float], most_seconds: float
) -> int:
    """Return how many jobs of a group fit in the time beside those that were found."""
    low, high = 0, len(group)
    while low < high:
        middle = (low + high + 1) // 2
        fits = seconds([*found, *group[:middle]]) <= most_seconds
        low, high = (middle, high) if fits else (low, middle - 1)
    return low
