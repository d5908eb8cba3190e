"""Remarks on estimates: what they lack, for what reason, and the commands that measure it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING

from dlbricks_tui.api.estimating import Answer, Estimator
from dlbricks_tui.api.opening import reference_to
from dlbricks_tui.api.scope import EstimateOptions, MeasurementScope
from dlbricks_tui.errors import UserError
from dlbricks_tui.estimate.explanation import unpredicted_operators
from dlbricks_tui.estimate.ranking import Point
from dlbricks_tui.estimate.system_estimate import what_is_there
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.input_shapes import listed
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.models.loading import UNLOADABLE
from dlbricks_tui.runtime.errors import RegistryError
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.runtime.variant import Precision
from dlbricks_tui.settings.cutting import CUTTING, LEVEL
from dlbricks_tui.settings.setting import fields_of, options_in_words
from dlbricks_tui.settings.variant import PRECISION, VARIANT
from dlbricks_tui.store.selections import combinations
from dlbricks_tui.wording.answers import faster_words
from dlbricks_tui.wording.numbers import counted, duration, names_of

if TYPE_CHECKING:
    from dlbricks_tui.config.config import Config

# The gaps of more models share a line.
_MOST_TOLD = 5


@dataclass(frozen=True, slots=True)
class Cures:
    """Builds the `dlbricks run` commands that would complete estimates.

    They repeat the options of this command that decide about the bricks to measure.
    """

    config: Config
    models: Sequence[str]
    # The options for inputs as they were given.
    given: Sequence[str]
    options: EstimateOptions

    def of(self, scope: MeasurementScope, lacking: Sequence[Answer], *options: str) -> str:
        """Return the commands for these models, one for each format."""
        where = "" if scope.is_host else f" there, on {scope.system}"
        commands = [f"`{self.command(scope, held, *options)}`" for held in _by_format(lacking)]
        return f"run {' and '.join(commands)}{where}"

    def command(self, scope: MeasurementScope, lacking: Sequence[Answer], *options: str) -> str:
        """Return the command for models of one format."""
        # A model that is not in the library was named by its path.
        models = [reference_to(it.source, has_name=it.source.name in self.models) for it in lacking[:_MOST_TOLD]]
        models += ["..."] * (len(lacking) > _MOST_TOLD)
        return shlex.join(["dlbricks", "run", *models, *self._measuring_alike(scope, lacking), *options])

    def _measuring_alike(self, scope: MeasurementScope, lacking: Sequence[Answer]) -> Iterator[str]:
        """Yield the options without which a run would measure other bricks, or by another runtime."""
        wanted, cutting = self.options, self.options.cutting
        taken = {scope.threads_taken(it.source, it.found.way.runtime) for it in lacking}
        threads = wanted.threads or (taken.pop() if len(taken) == 1 else None)
        given = fields_of(wanted, VARIANT) | {"level": scope.level, "threads": threads}
        if not scope.is_host:
            given["runtime"] = None
        chosen = ((it, given.get(it.field, getattr(cutting, it.field, None))) for it in (*CUTTING, LEVEL, *VARIANT))
        usual = {it: getattr(self.config, it.field) for it in CUTTING}
        yield from options_in_words(chosen, {PRECISION: Precision.F32, **usual})
        yield from self.given


def remarks_on_answers(
    estimator: Estimator, cures: Cures, scope: MeasurementScope, answers: Sequence[Answer]
) -> Iterator[str]:
    """Yield what a person should know beside estimates: faster combinations, and what each lacks."""
    for answer in answers:
        # Where the options chose the combination of a model, the fastest one may be another.
        if words := faster_words(answer.found, answer.fastest):
            yield f"{answer.source.name}: {words}"
    for answer in answers:
        yield from _unmeasurable(answer)
    yield from _unpredicted(answers)
    possible = [it for it in answers if not it.found.estimate.obstacle]
    yield from _impossible(cures, scope, answers)
    incomplete = [it for it in possible if it.found.estimate.remaining.pairs]
    yield from _gaps(cures, scope, [it for it in incomplete if it.found.is_measured])
    unmeasured = [it for it in incomplete if not it.found.is_measured]
    predicted = [it for it in unmeasured if it.found.estimate.composed is not None]
    yield from _nothing_fits(estimator, cures, scope, predicted, "nothing measured fits")
    without = [it for it in unmeasured if it.found.estimate.composed is None]
    yield from _nothing_fits(estimator, cures, scope, without, "nothing fits")


def level_remark(estimator: Estimator, scope: MeasurementScope) -> str:
    """Return that the estimates are at level written, if the results decided so."""
    if estimator.options.level is None and scope.level is Level.WRITTEN:
        return f"{scope.system} has results at level written and none at fused: estimating at written"
    return ""


def _unmeasurable(answer: Answer) -> Iterator[str]:
    """Yield which layers of a model cannot be measured, and for what reason."""
    found, layers = answer.found.estimate, answer.decomposition.graph.layers
    unmeasurable: dict[str, list[str]] = {}
    for part in found.parts:
        if part.reason:
            named = [f"layer {index} {layers[index].name!r} ({layers[index].op})" for index in part.layers]
            unmeasurable.setdefault(part.reason, []).extend(named)
    for reason, named in unmeasurable.items():
        yield f"unmeasurable: {answer.source.name}: {listed(named)}: {reason}"
    if found.composed is not None and found.is_partial and not found.remaining.pairs:
        yield (
            f"{answer.source.name}: the sum leaves out layers that cannot be measured by themselves, so the model may "
            "take more or less; `dlbricks run` with --end-to-end times the whole model"
        )


def _unpredicted(answers: Sequence[Answer]) -> Iterator[str]:
    """Yield for which models some missing layers have no prediction, and the operators of these."""
    refused = [
        (answer, operators)
        for answer in answers
        if answer.found.estimate.coverage.predicted
        and (operators := unpredicted_operators(answer.decomposition.graph, answer.found.estimate))
    ]
    if refused:
        unknown = list(dict.fromkeys(each for _, found in refused for each in found))
        known = f"too little is known of {names_of(unknown, _MOST_TOLD)}"
        yield f"not all missing layers of {_names(answer for answer, _ in refused)} are predicted: {known}"


def _impossible(cures: Cures, scope: MeasurementScope, answers: Sequence[Answer]) -> Iterator[str]:
    """Yield for what reason models have no estimate, and the command that times them whole."""
    for answer in answers:
        if obstacle := answer.found.estimate.obstacle:
            timed = answer.found.end_to_end is not None
            cure = "" if timed else f"; time the whole model: {cures.of(scope, [answer], '--end-to-end')}"
            yield f"no estimate of {answer.source.name} is possible: {obstacle}{cure}"


def _gaps(cures: Cures, scope: MeasurementScope, incomplete: Sequence[Answer]) -> Iterator[str]:
    """Yield how many layers models lack, and the commands that measure them."""
    if len(incomplete) > _MOST_TOLD:
        bricks = len({pair for it in incomplete for pair in it.found.estimate.remaining.pairs})
        cure = cures.of(scope, incomplete)
        yield f"{len(incomplete)} models are incomplete ({counted(bricks, 'brick')} to run): {cure}"
        return
    for answer in incomplete:
        coverage, remaining = answer.found.estimate.coverage, answer.found.estimate.remaining
        takes = "" if remaining.seconds is None else f", about {duration(max(1.0, remaining.seconds))}"
        known = f", {coverage.predicted} of them predicted" if coverage.predicted else ""
        lacks = f"it lacks {coverage.missing} of {counted(coverage.layers, 'layer')}{known}"
        yield (
            f"{answer.source.name} is incomplete: {lacks} "
            f"({counted(len(remaining.pairs), 'brick')} to run{takes}): {cures.of(scope, [answer])}"
        )


def _nothing_fits(
    estimator: Estimator, cures: Cures, scope: MeasurementScope, without: Sequence[Answer], what: str
) -> Iterator[str]:
    """Yield that no brick of these models was measured in the wanted way, and which results there are."""
    system = f"this host, {scope.system}," if scope.is_host else scope.system
    for held in _by_format(without):
        wanted = scope.runtime_for(held[0].source)
        runtime = f" by {wanted}" if wanted else ""
        there = what_is_there(combinations(estimator.store.select(order=())), scope.system, wanted)
        yield (
            f"{what} {_names(held)}: none of its bricks was measured at level {scope.level.value} on "
            f"{system}{runtime}; {there}; {cures.of(scope, held)}"
        )


def _by_format(answers: Sequence[Answer]) -> list[list[Answer]]:
    found: dict[Format, list[Answer]] = {}
    for answer in answers:
        found.setdefault(answer.source.format, []).append(answer)
    return list(found.values())


def _names(answers: Iterable[Answer]) -> str:
    return names_of([it.source.name for it in answers], _MOST_TOLD)


@dataclass(slots=True)
class VariantAnswers:
    """The answers of models in several variants, and the refusals of variants that this host cannot answer."""

    answers: list[Answer] = field(default_factory=list)
    # By the names of the models.
    points: dict[str, list[Point]] = field(default_factory=dict)
    refused: list[UserError] = field(default_factory=list)


def answers_of_variants(
    variants: Sequence[EstimateOptions],
    sources: Sequence[ModelSource],
    cures: Cures,
    opened: Callable[[EstimateOptions], AbstractContextManager[Estimator]],
    tell: Callable[[str], None],
) -> VariantAnswers:
    """Return the answers of models in each variant, and tell what they lack; raise the refusal where none can be.

    Variants that differ in threads and batch sizes only stand together: models are read once for them.
    """
    found = VariantAnswers()
    for _, group in groupby(variants, key=lambda it: replace(it, threads=None, batch=None)):
        options = list(group)
        with opened(options[0]) as first:
            for each in options:
                estimator, its_cures = replace(first, options=each), replace(cures, options=each)
                try:
                    scope = estimator.scope_of(sources)
                    held = estimator.answers(sources, scope)
                except (*UNLOADABLE, RegistryError) as refusal:
                    found.refused.append(refusal)
                    tell(f"left out: {refusal.in_command}")
                    continue
                found.answers += held
                for answer in held:
                    estimate = answer.found.estimate
                    is_incomplete = estimate.remaining.pairs and not estimate.obstacle
                    cure = its_cures.command(scope, [answer]) if is_incomplete else ""
                    point = Point(each.runtime or "", each.threads, answer.found, cure)
                    found.points.setdefault(answer.source.name, []).append(point)
                composed = [it for it in held if it.found.estimate.composed and it.found.estimate.remaining.pairs]
                for line in (*_gaps(its_cures, scope, composed), *_impossible(its_cures, scope, held)):
                    tell(line)
    if found.refused and not found.answers:
        raise found.refused[0]
    return found
