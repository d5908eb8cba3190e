"""Remarks on estimates for the user: what they lack, and the commands that measure it."""

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dlbricks_tui.answers.answer import Answer
from dlbricks_tui.answers.estimating import Estimator
from dlbricks_tui.answers.run_command import reference_to
from dlbricks_tui.answers.scope import EstimateOptions, MeasurementScope
from dlbricks_tui.cli.output import narrate
from dlbricks_tui.config.config import Config
from dlbricks_tui.estimate.explanation import unpredicted_operators
from dlbricks_tui.estimate.selection import what_is_there
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.input_shapes import listed
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.runtime.variant import Precision
from dlbricks_tui.settings.cutting import CUTTING, LEVEL
from dlbricks_tui.settings.setting import fields_of, options_in_words
from dlbricks_tui.settings.variant import PRECISION, VARIANT
from dlbricks_tui.store.selections import combinations
from dlbricks_tui.wording.answers import faster_words
from dlbricks_tui.wording.numbers import counted, duration, names_of

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


def tell_level(estimator: Estimator, scope: MeasurementScope) -> None:
    """Narrate that the estimates are at level written, if the results decided so."""
    if estimator.options.level is None and scope.level is Level.WRITTEN:
        narrate(f"{scope.system} has results at level written and none at fused: estimating at written")


def tell_others(answers: Sequence[Answer]) -> None:
    """Narrate for each model whose combination the options chose the fastest one, if that is another."""
    for answer in answers:
        if words := faster_words(answer.found, answer.fastest):
            narrate(f"{answer.source.name}: {words}")


def tell_unmeasurable(answer: Answer) -> None:
    """Narrate which layers of a model cannot be measured, and for what reason."""
    found, layers = answer.found.estimate, answer.decomposition.graph.layers
    unmeasurable: dict[str, list[str]] = {}
    for part in found.parts:
        if part.reason:
            named = [f"layer {index} {layers[index].name!r} ({layers[index].op})" for index in part.layers]
            unmeasurable.setdefault(part.reason, []).extend(named)
    for reason, named in unmeasurable.items():
        narrate(f"unmeasurable: {answer.source.name}: {listed(named)}: {reason}")
    if found.composed is not None and found.is_partial and not found.remaining.pairs:
        narrate(
            f"{answer.source.name}: the sum leaves out layers that cannot be measured by themselves, so the model may "
            "take more or less; `dlbricks run` with --end-to-end times the whole model"
        )


def tell_unpredicted(answers: Sequence[Answer]) -> None:
    """Narrate for which models some missing layers have no prediction, and the operators of these."""
    refused = [
        (answer, unpredicted_operators(answer.decomposition.graph, answer.found.estimate))
        for answer in answers
        if answer.found.estimate.coverage.predicted
    ]
    without = [answer for answer, operators in refused if operators]
    if without:
        operators = dict.fromkeys(operator for _, found in refused for operator in found)
        known = f"too little is known of {names_of(list(operators), _MOST_TOLD)}"
        narrate(f"not all missing layers of {_names(without)} are predicted: {known}")


def tell_impossible(cures: Cures, scope: MeasurementScope, answers: Sequence[Answer]) -> None:
    """Narrate for what reason models have no estimate, and the command that times them whole."""
    for answer in answers:
        timed = answer.found.end_to_end is not None
        cure = "" if timed else f"; time the whole model: {cures.of(scope, [answer], '--end-to-end')}"
        narrate(f"no estimate of {answer.source.name} is possible: {answer.found.estimate.obstacle}{cure}")


def tell_gaps(cures: Cures, scope: MeasurementScope, incomplete: Sequence[Answer]) -> None:
    """Narrate how many layers models lack, and the commands that measure them."""
    if len(incomplete) > _MOST_TOLD:
        bricks = len({pair for it in incomplete for pair in it.found.estimate.remaining.pairs})
        cure = cures.of(scope, incomplete)
        narrate(f"{len(incomplete)} models are incomplete ({counted(bricks, 'brick')} to run): {cure}")
        return
    for answer in incomplete:
        coverage, remaining = answer.found.estimate.coverage, answer.found.estimate.remaining
        takes = "" if remaining.seconds is None else f", about {duration(max(1.0, remaining.seconds))}"
        known = f", {coverage.predicted} of them predicted" if coverage.predicted else ""
        lacks = f"it lacks {coverage.missing} of {counted(coverage.layers, 'layer')}{known}"
        narrate(
            f"{answer.source.name} is incomplete: {lacks} "
            f"({counted(len(remaining.pairs), 'brick')} to run{takes}): {cures.of(scope, [answer])}"
        )


def tell_nothing_fits(
    estimator: Estimator, cures: Cures, scope: MeasurementScope, without: Sequence[Answer], what: str
) -> None:
    """Narrate that no brick of these models was measured in the wanted way, and which results there are."""
    system = f"this host, {scope.system}," if scope.is_host else scope.system
    for held in _by_format(without):
        wanted = scope.runtime_for(held[0].source)
        runtime = f" by {wanted}" if wanted else ""
        there = what_is_there(combinations(estimator.store.select(order=())), scope.system, wanted)
        narrate(
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
