"""`dlbricks estimate`: a model's latency composed of its bricks, and the agreement of estimates with measurements."""

import argparse
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, product
from typing import Any

from dlbricks_tui.answers.documents import document
from dlbricks_tui.answers.estimating import (
    EstimateOptions,
    Estimator,
    MeasurementScope,
    ModelWithEstimate,
    measured_models,
)
from dlbricks_tui.answers.opening import library
from dlbricks_tui.answers.results import ModelEstimate, model_estimate
from dlbricks_tui.cli.options import (
    add_composition_options,
    add_cutting_options,
    add_models_argument,
    add_variant_options,
    estimate_options_of,
    given_options,
    names,
    whole_numbers,
)
from dlbricks_tui.cli.output import data_console, narrate, show, worded, write_csv, write_json, write_lines
from dlbricks_tui.cli.parser import Parser, Status, UsageError, add_format_options, add_schema_option
from dlbricks_tui.cli.store import open_estimator
from dlbricks_tui.config.config import Config
from dlbricks_tui.errors import UserError
from dlbricks_tui.estimate.accuracy import Accuracy, SharedSettings
from dlbricks_tui.estimate.curve import Point
from dlbricks_tui.estimate.explanation import unpredicted_operators
from dlbricks_tui.estimate.prediction.score import Score
from dlbricks_tui.estimate.selection import what_is_there
from dlbricks_tui.estimate.system_estimate import Way
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.input_shapes import listed
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.models.loading import UNLOADABLE
from dlbricks_tui.runtime.errors import RegistryError
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.runtime.variant import Precision
from dlbricks_tui.store.selections import combinations
from dlbricks_tui.wording.curves import WIDEST_CURVE, curve_lines
from dlbricks_tui.wording.numbers import counted, duration, names_of
from dlbricks_tui.wording.scores import NOTHING_TO_SCORE, score_lines

# The gaps of more models share a line.
_MOST_TOLD = 5
_CSV_COLUMNS = (
    *("model", "system", "runtime", "level", "granularity", "cut", "sequential_ms", "low_ms", "high_ms"),
    *("parallel_ms", "workers", "workers_ms", "measured_layers", "missing_layers", "unmeasurable_layers"),
    *("bridged_layers", "complete", "partial", "unfused", "obstacle", "measured_ms", "error"),
    *("batch", "threads", "precision", "per_second", "predicted_layers", "predicted_share", "accuracy_unchecked"),
)


@dataclass(frozen=True, slots=True)
class _Cures:
    """Builds the `dlbricks run` commands that would complete estimates.

    They repeat the options of this command that decide about the bricks to measure.
    """

    config: Config
    models: Sequence[str]
    # The options for inputs as they were given.
    given: Sequence[str]
    options: EstimateOptions

    def of(self, scope: MeasurementScope, lacking: Sequence[ModelWithEstimate], *options: str) -> str:
        """Return the commands for these models, one for each format."""
        where = "" if scope.is_host else f" there, on {scope.system}"
        commands = [f"`{self.command(scope, held, *options)}`" for held in _by_format(lacking)]
        return f"run {' and '.join(commands)}{where}"

    def command(self, scope: MeasurementScope, lacking: Sequence[ModelWithEstimate], *options: str) -> str:
        """Return the command for models of one format."""
        models = [self._reference(it.source) for it in lacking[:_MOST_TOLD]]
        models += ["..."] * (len(lacking) > _MOST_TOLD)
        return shlex.join(["dlbricks", "run", *models, *self._measuring_alike(scope, lacking), *options])

    def _reference(self, source: ModelSource) -> str:
        if source.table1_id:
            return f"table1:{source.table1_id}"
        # A model that is not in the library was named by its path.
        return source.name if source.name in self.models else str(source.path)

    def _measuring_alike(self, scope: MeasurementScope, lacking: Sequence[ModelWithEstimate]) -> Iterator[str]:
        """Yield the options without which a run would measure other bricks, or by another runtime."""
        wanted, cutting = self.options, self.options.cutting
        taken = {scope.threads_taken(it.source, it.found.way.runtime) for it in lacking}
        threads = wanted.threads or (taken.pop() if len(taken) == 1 else None)
        chosen = {
            "--granularity": str(cutting.granularity),
            "--level": scope.level.value,
            "--cut": cutting.cut.value,
            "--order": cutting.order.value,
            "--runtime": wanted.runtime if scope.is_host else None,
            "--threads": None if threads is None else str(threads),
            "--batch": None if wanted.batch is None else str(wanted.batch),
            "--precision": None if wanted.precision is None else wanted.precision.value,
        }
        by_default = {
            "--granularity": str(self.config.granularity),
            "--level": "fused",
            "--cut": self.config.cut,
            "--order": self.config.order,
            "--precision": Precision.F32.value,
        }
        for option, value in chosen.items():
            if value not in (None, by_default.get(option)):
                yield from (option, value)
        yield from self.given


def register(parser: Parser) -> None:
    """Add the options of `estimate`."""
    add_models_argument(parser, many=True, needed=False)
    add_cutting_options(parser, level=Level.FUSED)
    # None leaves the level to the results of the system.
    parser.set_defaults(level=None)
    parser.add_argument(
        "--system", metavar="S", help="a system of the store by its id, name or instance type (default: this host)"
    )
    parser.add_argument(
        "--runtime",
        metavar="R",
        type=names,
        default=(),
        help="a registered runtime, or one of the store, or several with commas (default: ours; of another system the "
        "one that covers most)",
    )
    parser.add_argument(
        "--threads",
        metavar="T",
        type=whole_numbers,
        default=(),
        help="the number of threads of the runtime, or several: 1,2,4 (default: that of your settings)",
    )
    add_variant_options(parser)
    parser.add_argument(
        "--bound-ms",
        metavar="MS",
        type=float,
        help="name the variant with the highest throughput among those that take at most so long",
    )
    add_composition_options(parser)
    parser.add_argument(
        "--accuracy",
        action="store_true",
        help="print how well estimates agree with end-to-end results, per system, runtime and level",
    )
    parser.add_argument(
        "--score",
        action="store_true",
        help="print how well models that were measured since would have been predicted; without a MODEL, all of them",
    )
    add_format_options(parser)
    add_schema_option(parser, "ModelEstimate", many=True)
    parser.set_defaults(handler=estimate_models)


def estimate_models(args: argparse.Namespace) -> int:
    """Estimate each model in each variant, or judge the estimates of all of them."""
    if not args.models and not args.score:
        raise UsageError("name a MODEL that `dlbricks models` lists, a file, or table1:ID")
    sources = library(args.data).find_all(args.models) if args.models else measured_models(args.data)
    output = "json" if args.json else "csv" if args.csv else "text"
    if args.bound_ms is not None and not args.bound_ms > 0:
        raise UsageError("--bound-ms: give more than 0 milliseconds")
    options = estimate_options_of(args, args.system)
    variants = [
        replace(options, runtime=runtime, precision=precision, threads=threads, batch=batch)
        for runtime, precision, threads, batch in product(
            *(given or (None,) for given in (args.runtime, args.precision, args.threads, args.batch))
        )
    ]
    if len(variants) > 1 and (args.accuracy or args.score):
        option = "--score" if args.score else "--accuracy"
        raise UsageError(f"{option} judges one variant: give one --runtime, --precision, --threads and --batch")
    cures = _Cures(args.config, args.models, given_options(args), variants[0])
    if len(variants) > 1 or (args.bound_ms is not None and output == "text"):
        return _estimate_variants(args.data, variants, sources, output, cures, args.bound_ms)
    with open_estimator(variants[0], args.data) as estimator:
        if args.score:
            return _score(estimator, sources, output)
        return _judge(estimator, sources, output) if args.accuracy else _estimate(estimator, sources, output, cures)


def _estimate_variants(
    data: DataFolder,
    variants: Sequence[EstimateOptions],
    sources: Sequence[ModelSource],
    output: str,
    cures: _Cures,
    bound_ms: float | None,
) -> int:
    found: dict[str, list[Point]] = {}
    answers: list[ModelWithEstimate] = []
    refused: list[UserError] = []
    for _, group in groupby(variants, key=lambda it: (it.runtime, it.precision)):
        options = list(group)
        with open_estimator(options[0], data) as opened:
            for each in options:
                estimator = replace(opened, options=each)
                try:
                    scope = estimator.scope_of(sources)
                    held = estimator.estimates(sources, scope)
                except (*UNLOADABLE, RegistryError) as refusal:
                    refused.append(refusal)
                    narrate(f"left out: {worded(refusal)}")
                    continue
                answers += held
                its_cures = replace(cures, options=each)
                for answer in held:
                    incomplete = answer.found.estimate.remaining.pairs and not answer.found.estimate.obstacle
                    cure = its_cures.command(scope, [answer]) if incomplete else ""
                    point = Point(each.runtime or "", each.threads, answer.found, cure)
                    found.setdefault(answer.source.name, []).append(point)
                known = [it for it in held if it.found.estimate.composed]
                _tell_gaps(its_cures, scope, [it for it in known if it.found.estimate.remaining.pairs])
                _tell_impossible(its_cures, scope, [it for it in held if it.found.estimate.obstacle])
    if refused and not answers:
        raise refused[0]
    if output == "text":
        width = min(WIDEST_CURVE, data_console().width)
        for name, points in found.items():
            write_lines([*_headings(name, points), "", *curve_lines(points, width, bound_ms)])
    else:
        _write_estimates(answers, output)
    every = [point for points in found.values() for point in points]
    complete = not refused and all(it.latency_ms is not None for it in every)
    return Status.DONE if complete and len(every) == len(variants) * len(sources) else Status.DONE_WITH_FAILURES


def _headings(name: str, points: Sequence[Point]) -> list[str]:
    ways = dict.fromkeys((it.found.way.system, it.found.estimate.level.value) for it in points)
    return [name, *(f"{system}, {level} layers" for system, level in ways)]


def _estimate(estimator: Estimator, sources: Sequence[ModelSource], output: str, cures: _Cures) -> int:
    scope = estimator.scope_of(sources)
    _tell_level(estimator, scope)
    answers = estimator.estimates(sources, scope)
    _write_estimates(answers, output)
    _tell_others(answers)
    for answer in answers:
        _tell_unmeasurable(answer)
    _tell_unpredicted(answers)
    impossible = [it for it in answers if it.found.estimate.obstacle]
    _tell_impossible(cures, scope, impossible)
    incomplete = [it for it in answers if it.found.estimate.composed and it.found.estimate.remaining.pairs]
    _tell_gaps(cures, scope, [it for it in incomplete if _is_measured(it)])
    without = [it for it in answers if it.found.estimate.composed is None and it not in impossible]
    predicted = [it for it in incomplete if not _is_measured(it)]
    _tell_nothing_fits(estimator, cures, scope, predicted, "nothing measured fits")
    _tell_nothing_fits(estimator, cures, scope, without, "nothing fits")
    return Status.DONE_WITH_FAILURES if without or impossible or len(answers) < len(sources) else Status.DONE


def _is_measured(answer: ModelWithEstimate) -> bool:
    return any(part.measured is not None for part in answer.found.estimate.parts)


def _judge(estimator: Estimator, sources: Sequence[ModelSource], output: str) -> int:
    from dlbricks_tui.cli.estimate_view import accuracy_view, judged_by_way

    judged = sorted(judged_by_way(estimator.every_way(sources, estimator.scope_of(sources))), key=lambda it: it[0])
    if output != "text":
        _write_documents([_accuracy_document(group, found) for group, found in judged], output)
    elif judged:
        show(accuracy_view(judged))
    if judged:
        return Status.DONE
    narrate(
        "no model was measured both end to end and in all of its bricks: `dlbricks run MODEL... --end-to-end` does both"
    )
    return Status.DONE_WITH_FAILURES


def _score(estimator: Estimator, sources: Sequence[ModelSource], output: str) -> int:
    found = estimator.scores(sources, estimator.scope_of(sources)) if sources else []
    if output != "text":
        _write_documents([_score_document(way, score) for way, score in found], output)
    elif found:
        write_lines(score_lines([score for _, score in found], data_console().width))
    if found:
        return Status.DONE
    narrate(NOTHING_TO_SCORE)
    return Status.DONE_WITH_FAILURES


def _score_document(way: Way, score: Score) -> dict[str, Any]:
    return {
        "system": way.system,
        "runtime": way.runtime,
        "level": way.level.value,
        "protocol": way.protocol,
        **document(score),
        "error": score.error,
        "holds": score.holds,
    }


def _accuracy_document(group: SharedSettings, found: Accuracy) -> dict[str, Any]:
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


def _write_estimates(answers: Sequence[ModelWithEstimate], output: str) -> None:
    if output != "text":
        estimates = [model_estimate(it.decomposition, it.found) for it in answers]
        _write_documents(estimates if output == "json" else [_csv_row(it) for it in estimates], output)
        return
    # Loaded here: the other formats need no tables.
    from dlbricks_tui.cli.estimate_view import estimate_view, estimates_view

    if len(answers) > 1:
        show(*estimates_view([it.found for it in answers], data_console()))
    else:
        show(*estimate_view(answers[0].decomposition, answers[0].found, data_console()))


def _csv_row(one: ModelEstimate) -> dict[str, Any]:
    found: dict[str, Any] = document(one)
    low_ms, high_ms = one.interval_ms or (None, None)
    found |= {"low_ms": low_ms, "high_ms": high_ms, **{f"{name}_layers": n for name, n in found["coverage"].items()}}
    return {name: found[name] for name in _CSV_COLUMNS}


def _write_documents(documents: Sequence[Any], output: str) -> None:
    if output == "json":
        write_json(documents)
    elif documents:
        write_csv([list(documents[0]), *(list(row.values()) for row in documents)])


def _tell_level(estimator: Estimator, scope: MeasurementScope) -> None:
    if estimator.options.level is None and scope.level is Level.WRITTEN:
        narrate(f"{scope.system} has results at level written and none at fused: estimating at written")


def _tell_others(answers: Sequence[ModelWithEstimate]) -> None:
    """Narrate for which models another runtime takes the place of the usual one."""
    by_others: dict[tuple[str | None, str], list[ModelWithEstimate]] = {}
    for answer in answers:
        taken = answer.found.way.runtime
        if answer.wanted not in (None, taken):
            by_others.setdefault((answer.wanted, taken), []).append(answer)
    for (wanted, taken), held in by_others.items():
        narrate(f"nothing of {_names(held)} was measured here by {wanted}: estimating by {taken}")


def _tell_unmeasurable(answer: ModelWithEstimate) -> None:
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


def _tell_unpredicted(answers: Sequence[ModelWithEstimate]) -> None:
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


def _tell_impossible(cures: _Cures, scope: MeasurementScope, answers: Sequence[ModelWithEstimate]) -> None:
    for answer in answers:
        timed = answer.found.end_to_end is not None
        cure = "" if timed else f"; time the whole model: {cures.of(scope, [answer], '--end-to-end')}"
        narrate(f"no estimate of {answer.source.name} is possible: {answer.found.estimate.obstacle}{cure}")


def _tell_gaps(cures: _Cures, scope: MeasurementScope, incomplete: Sequence[ModelWithEstimate]) -> None:
    if len(incomplete) > _MOST_TOLD:
        bricks = len({pair for it in incomplete for pair in it.found.estimate.remaining.pairs})
        cure = cures.of(scope, incomplete)
        narrate(f"{len(incomplete)} models are incomplete ({counted(bricks, 'brick')} to run): {cure}")
        return
    for answer in incomplete:
        coverage, remaining = answer.found.estimate.coverage, answer.found.estimate.remaining
        takes = "" if remaining.seconds is None else f", about {duration(max(1.0, remaining.seconds))}"
        known = f", {coverage.predicted} of them predicted" if coverage.predicted else ""
        narrate(
            f"{answer.source.name} is incomplete: {coverage.missing} of {coverage.layers} layers are missing{known} "
            f"({counted(len(remaining.pairs), 'brick')} to run{takes}): {cures.of(scope, [answer])}"
        )


def _tell_nothing_fits(
    estimator: Estimator, cures: _Cures, scope: MeasurementScope, without: Sequence[ModelWithEstimate], what: str
) -> None:
    system = f"this host, {scope.system}," if scope.is_host else scope.system
    for held in _by_format(without):
        wanted = scope.runtime_for(held[0].source)
        runtime = f" by {wanted}" if wanted else ""
        there = what_is_there(combinations(estimator.store.select(order=())), scope.system, wanted)
        narrate(
            f"{what} {_names(held)}: none of its bricks was measured at level {scope.level.value} on "
            f"{system}{runtime}; {there}; {cures.of(scope, held)}"
        )


def _by_format(answers: Sequence[ModelWithEstimate]) -> list[list[ModelWithEstimate]]:
    found: dict[Format, list[ModelWithEstimate]] = {}
    for answer in answers:
        found.setdefault(answer.source.format, []).append(answer)
    return list(found.values())


def _names(answers: Iterable[ModelWithEstimate]) -> str:
    return names_of([it.source.name for it in answers], _MOST_TOLD)
