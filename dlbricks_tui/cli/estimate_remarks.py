"""The remarks of `dlbricks estimate`, and the output of its figures."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dlbricks_tui.answers.documents import document
from dlbricks_tui.answers.estimates import ModelEstimate, SlowSequence, model_estimate
from dlbricks_tui.answers.estimating import Answer, Estimator
from dlbricks_tui.answers.opening import reference_to
from dlbricks_tui.answers.scope import EstimateOptions, MeasurementScope
from dlbricks_tui.cli.output import narrate, write_csv, write_json
from dlbricks_tui.config.config import Config
from dlbricks_tui.estimate.explanation import unpredicted_operators
from dlbricks_tui.estimate.system_estimate import what_is_there
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.input_shapes import listed
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.runtime.variant import Precision
from dlbricks_tui.settings.cutting import CUTTING, LEVEL
from dlbricks_tui.settings.setting import fields_of, options_in_words
from dlbricks_tui.settings.variant import PRECISION, VARIANT
from dlbricks_tui.store.selections import Way, combinations
from dlbricks_tui.wording.answers import faster_words
from dlbricks_tui.wording.numbers import counted, duration, names_of

if TYPE_CHECKING:
    from dlbricks_tui.estimate.comparison import Accuracy, SharedSettings
    from dlbricks_tui.estimate.prediction.score import Score
    from dlbricks_tui.estimate.ranking import Point

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


# Wider curves say no more; their lines without the legend.
_WIDEST_CURVE, _CURVE_LINES = 100, 10
_CSV_COLUMNS = (
    *("model", "system", "runtime", "level", "granularity", "cut", "sequential_ms", "low_ms", "high_ms"),
    *("parallel_ms", "workers", "workers_ms", "measured_layers", "missing_layers", "unmeasurable_layers"),
    *("bridged_layers", "complete", "partial", "unfused", "obstacle", "measured_ms", "error"),
    *("batch", "threads", "precision", "per_second", "predicted_layers", "predicted_share", "accuracy_unchecked"),
)


def write_variants(
    points: Sequence[Point], heading: Iterable[str], answer: str = "", bound_ms: float | None = None
) -> None:
    """Write the table of a model in several variants, their latency beside their throughput, and the answer."""
    # Loaded here: one variant has no curve.
    from dlbricks_tui.cli.rendering import show_parts
    from dlbricks_tui.documents.parts import BLANK_LINE, Plots, Sentence
    from dlbricks_tui.documents.variants import curve_pictures, variants_parts

    show_parts([*map(Sentence, heading), BLANK_LINE, *variants_parts(points), BLANK_LINE])
    if plots := curve_pictures(points, bound_ms):
        show_parts([Plots(plots, _CURVE_LINES), BLANK_LINE], _WIDEST_CURVE)
    if answer:
        show_parts([Sentence(answer)])


def score_document(way: Way, score: Score) -> dict[str, Any]:
    """Return a score, and the way of measuring that it judges, as a JSON document."""
    return {
        "system": way.system,
        "runtime": way.runtime,
        "level": way.level.value,
        "protocol": way.protocol,
        **document(score),
        "error": score.error,
        "holds": score.holds,
    }


def accuracy_document(group: SharedSettings, found: Accuracy) -> dict[str, Any]:
    """Return the agreement of estimates with measurements as a JSON document."""
    way = group.way
    return {
        "system": way.system,
        "runtime": way.runtime,
        "level": way.level.value,
        "protocol": way.protocol,
        "granularity": group.granularity,
        "cut": group.cut.value,
        **document(found),
    }


def write_estimates(answers: Sequence[Answer], output: str) -> None:
    """Write estimates to the output: as `text`, `json` or `csv`."""
    if output != "text":
        estimates = [model_estimate(it.decomposition, it.found) for it in answers]
        write_documents(estimates if output == "json" else [_csv_row(it) for it in estimates], output)
        return
    # Loaded here: the other formats need no tables.
    from dlbricks_tui.cli.rendering import show_parts
    from dlbricks_tui.documents.estimate import EstimateDocument
    from dlbricks_tui.documents.estimates import estimates_parts

    if len(answers) > 1:
        show_parts(estimates_parts([it.found for it in answers]))
    else:
        (one,) = answers
        show_parts(EstimateDocument(one.decomposition.graph, one.found, one.is_chosen).whole())


def write_slowest(answers: Sequence[Answer], output: str, most: int) -> None:
    """Write the slowest layers of each model to the output: as `text`, within the estimates as `json`, or as `csv`."""
    if output == "text":
        from dlbricks_tui.cli.rendering import show_parts
        from dlbricks_tui.documents.estimate import EstimateDocument

        for answer in answers:
            show_parts(EstimateDocument(answer.decomposition.graph, answer.found).slowest(most))
        return
    estimates = [model_estimate(it.decomposition, it.found, most) for it in answers]
    if output == "json":
        write_documents(estimates, output)
    else:
        write_documents([_slow_row(one, it) for one in estimates for it in one.slowest], output)


def _slow_row(one: ModelEstimate, it: SlowSequence) -> dict[str, Any]:
    found: dict[str, Any] = {"model": one.model, **document(it)}
    # A cell holds one value.
    return found | {name: " ".join(map(str, found[name])) for name in ("layers", "names", "ops")}


def _csv_row(one: ModelEstimate) -> dict[str, Any]:
    found: dict[str, Any] = document(one)
    low_ms, high_ms = one.interval_ms or (None, None)
    found |= {"low_ms": low_ms, "high_ms": high_ms, **{f"{name}_layers": n for name, n in found["coverage"].items()}}
    return {name: found[name] for name in _CSV_COLUMNS}


def write_documents(documents: Sequence[Any], output: str) -> None:
    """Write documents with equal keys to the output: as `json` or `csv`."""
    if output == "json":
        write_json(documents)
    elif documents:
        write_csv([list(documents[0]), *(list(row.values()) for row in documents)])
