"""The bricks that a run still needs until the intervals of its estimates reach a target."""

import math
from collections.abc import Iterator, Sequence

from dlbricks_tui.estimate.inquiry import Inquiry
from dlbricks_tui.estimate.prediction.worth import needed_for
from dlbricks_tui.estimate.predictors import Predictors
from dlbricks_tui.measure.jobs import CutModel, Job
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import ANY_CONTEXT

# A step measures a part of the needed bricks. Then its results improve the predictions, and other bricks are needed.
_PART, _FEWEST = 1 / 3, 8


class TargetedJobs:
    """The jobs of a run in several steps, each with those that narrow the intervals most by the predictions then."""

    def __init__(
        self,
        models: Sequence[CutModel],
        jobs: Sequence[Job],
        store: ResultsDatabase,
        predictors: Predictors,
        target: float,
    ) -> None:
        self._models = models
        self._store = store
        self._predictors = predictors
        self._target = target
        # The bricks that were not needed so far.
        self.left = [job for job in jobs if not job.whole]
        self._wholes = [job for job in jobs if job.whole]

    def steps(self, system: str, runtime: str) -> Iterator[Sequence[Job]]:
        """Yield the jobs of each step, until none is needed; the first step has the whole models."""
        yield [*self._next(system, runtime), *self._wholes]
        while step := self._next(system, runtime):
            yield step

    def _next(self, system: str, runtime: str) -> Sequence[Job]:
        wanted = self._needed(system, runtime)
        step = wanted[: max(_FEWEST, math.ceil(len(wanted) * _PART))]
        taken = {job.key for job in step}
        self.left = [job for job in self.left if job.key not in taken]
        return step

    def _needed(self, system: str, runtime: str) -> list[Job]:
        by_brick: dict[str, list[Job]] = {}
        for job in self.left:
            by_brick.setdefault(job.key.brick, []).append(job)
        found: dict[Job, None] = {}
        for model in self._models:
            inquiry = Inquiry(self._store, model.decomposition, None, self._predictors)
            estimate = inquiry.on(system, runtime) or inquiry.empty(system, runtime)
            traits = model.decomposition.graph.traits
            shared = self._predictors.of(estimate.way, traits).shared
            for brick, context in needed_for(estimate.estimate, shared, self._target).pairs:
                jobs = by_brick.get(brick, ())
                # Inside of a network, a brick has no context of its own.
                found.update(dict.fromkeys(job for job in jobs if job.key.context in (ANY_CONTEXT, context)))
        return list(found)
