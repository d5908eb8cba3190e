"""What the models' estimates look like while their bricks are being measured."""

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from dlbricks_tui.estimate.estimate import Estimate, estimate
from dlbricks_tui.estimate.knowledge import Knowledge, Latency, Measured, Pair
from dlbricks_tui.estimate.lookup import BrickResults
from dlbricks_tui.estimate.system_estimate import Way
from dlbricks_tui.measure.jobs import Subject, Target
from dlbricks_tui.measure.known import Conditions
from dlbricks_tui.runs.events import EstimateChanged
from dlbricks_tui.store.generation import Generation
from dlbricks_tui.store.records import ANY_CONTEXT, Statistics

# Composing may take this share of the time that passes: what is computed here is not measured meanwhile.
_SHARE_OF_TIME = 0.02


class Outlook:
    """Follows what becomes known of bricks, whether for good or for now, and tells which estimates have changed."""

    def __init__(
        self,
        subjects: Sequence[Subject],
        generation: Generation,
        conditions: Conditions,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._subjects = {subject.name: subject for subject in subjects}
        self._knowledge: dict[str, Knowledge] = {}
        self._users: defaultdict[Target, list[str]] = defaultdict(list)
        # By model and brick; inside of a network a brick is timed for all of them at once.
        self._contexts: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for subject in subjects:
            decomposition = subject.decomposition
            way = Way(conditions.system, conditions.runtime, decomposition.graph.level, conditions.protocol)
            self._knowledge[subject.name] = BrickResults(generation, decomposition).knowledge(way)
            for brick in decomposition.bricks:
                self._users[Target(brick, ANY_CONTEXT)].append(subject.name)
            # A twin corrects what its brick takes, so it changes the estimate too.
            for brick, context in decomposition.suite | decomposition.twins:
                self._users[Target(brick, context)].append(subject.name)
                self._contexts[subject.name, brick].append(context)
        self._changed: dict[str, None] = dict.fromkeys(self._subjects)
        # The models that were last told of with what was only provisionally known.
        self._unsettled: tuple[str, ...] = ()
        self._not_before = 0.0

    def learn(self, found: Mapping[Target, Statistics]) -> None:
        """Takes up what is known of bricks for good."""
        for model, measured in self._by_model(found).items():
            known = self._knowledge[model]
            self._knowledge[model] = replace(known, measured={**known.measured, **measured})
            self._changed[model] = None

    def give_up(self, target: Target, reason: str) -> None:
        """Takes up that a brick cannot be measured."""
        for model in self._users.get(target, ()):
            known = self._knowledge[model]
            failed = {**known.failed, **{(target.brick, it): reason for it in self._contexts_of(model, target)}}
            self._knowledge[model] = replace(known, failed=failed)
            self._changed[model] = None

    def changes(
        self, provisional: Callable[[], Mapping[Target, Statistics]] | None = None
    ) -> tuple[EstimateChanged, ...]:
        """The estimates that have changed, with what is only provisionally known; none where it would be too soon.

        Without anything provisional it is the end, for which it is never too soon.
        """
        begin = self._clock()
        if provisional is not None and begin < self._not_before:
            return ()
        so_far = {} if provisional is None else self._by_model(provisional())
        changed = dict.fromkeys((*self._changed, *self._unsettled, *so_far))
        self._changed, self._unsettled = {}, tuple(so_far)
        found = tuple(self._told(model, so_far.get(model, {})) for model in changed)
        end = self._clock()
        self._not_before = end + (end - begin) / _SHARE_OF_TIME
        return found

    def _by_model(self, found: Mapping[Target, Statistics]) -> dict[str, dict[Pair, Measured]]:
        by_model: defaultdict[str, dict[Pair, Measured]] = defaultdict(dict)
        for target, statistics in found.items():
            pair = target.brick, target.context
            latency = Latency(statistics.trimmed_mean_ms, statistics.low_ms, statistics.high_ms)
            for model in self._users.get(target, ()):
                for context in self._contexts_of(model, target):
                    by_model[model][target.brick, context] = Measured(latency, pair, statistics.count)
        return by_model

    def _contexts_of(self, model: str, target: Target) -> Sequence[str]:
        """The contexts of a model that a result stands for."""
        return self._contexts[model, target.brick] if target.context == ANY_CONTEXT else (target.context,)

    def _told(self, model: str, so_far: Mapping[Pair, Measured]) -> EstimateChanged:
        known = self._knowledge[model]
        now = estimate(self._subjects[model].decomposition, replace(known, measured={**so_far, **known.measured}))
        settled = {layer for part in now.parts if part.pair in known.measured for layer in part.layers}
        sampled = {layer for part in now.parts if part.pair in so_far for layer in part.layers} - settled
        return _told(now, len(sampled))


def _told(now: Estimate, sampled_layers: int) -> EstimateChanged:
    composed, coverage = now.composed, now.coverage
    return EstimateChanged(
        model=now.model,
        sequential_ms=None if composed is None else composed.sequential_ms,
        parallel_ms=None if composed is None else composed.parallel_ms,
        low_ms=None if composed is None else composed.interval.low_ms,
        high_ms=None if composed is None else composed.interval.high_ms,
        measured_layers=coverage.measured - sampled_layers,
        sampled_layers=sampled_layers,
        missing_layers=coverage.missing,
        unmeasurable_layers=coverage.unmeasurable,
    )
