"""`dlbricks estimate`: a model's latency composed of its bricks, and the agreement of estimates with measurements."""

import argparse
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dlbricks_tui.answers.documents import document
from dlbricks_tui.answers.estimating import Estimator, MeasurementScope, ModelWithEstimate
from dlbricks_tui.answers.opening import library
from dlbricks_tui.answers.results import ModelEstimate, model_estimate
from dlbricks_tui.bricks.decomposition import Cutting
from dlbricks_tui.cli.options import (
    add_composition_options,
    add_cutting_options,
    add_models_argument,
    estimate_options_of,
    given_options,
)
from dlbricks_tui.cli.output import data_console, narrate, show, write_csv, write_json
from dlbricks_tui.cli.parser import Parser, Status, add_format_options, add_schema_option
from dlbricks_tui.cli.store import open_estimator
from dlbricks_tui.config.config import Config
from dlbricks_tui.estimate.accuracy import Accuracy, SharedSettings
from dlbricks_tui.estimate.selection import what_is_there
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.input_shapes import listed
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.store.selections import combinations
from dlbricks_tui.wording.numbers import counted, duration, names_of

# The gaps of more models share a line.
_MOST_TOLD = 5
_CSV_COLUMNS = (
    *("model", "system", "runtime", "level", "granularity", "cut", "sequential_ms", "low_ms", "high_ms"),
    *("parallel_ms", "workers", "workers_ms", "measured_layers", "missing_layers", "unmeasurable_layers"),
    *("bridged_layers", "complete", "partial", "unfused", "obstacle", "measured_ms", "error"),
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
    runtime: str | None
    cutting: Cutting

    def of(self, scope: MeasurementScope, lacking: Sequence[ModelWithEstimate], *options: str) -> str:
        """Return the commands for these models, one for each format."""
        where = "" if scope.is_host else f" there, on {scope.system}"
        commands = [f"`{self._command(scope, held, *options)}`" for held in _by_format(lacking)]
        return f"run {' and '.join(commands)}{where}"

    def _command(self, scope: MeasurementScope, lacking: Sequence[ModelWithEstimate], *options: str) -> str:
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
        threads = {scope.threads_taken(it.source, it.found.way.runtime) for it in lacking}
        chosen = {
            "--granularity": str(self.cutting.granularity),
            "--level": scope.level.value,
            "--cut": self.cutting.cut.value,
            "--order": self.cutting.order.value,
            "--runtime": self.runtime if scope.is_host else None,
            "--threads": threads.pop() if len(threads) == 1 else None,
        }
        by_default = {
            "--granularity": str(self.config.granularity),
            "--level": "fused",
            "--cut": self.config.cut,
            "--order": self.config.order,
        }
        for option, value in chosen.items():
            if value not in (None, by_default.get(option)):
                yield from (option, value)
        yield from self.given


def register(parser: Parser) -> None:
    """Add the options of `estimate`."""
    add_models_argument(parser, many=True)
    add_cutting_options(parser, level=Level.FUSED)
    # None leaves the level to the results of the system.
    parser.set_defaults(level=None)
    parser.add_argument(
        "--system", metavar="S", help="a system of the store by its id, name or instance type (default: this host)"
    )
    parser.add_argument(
        "--runtime",
        metavar="R",
        help="a registered runtime, or one of the store (default: ours; of another system the one that covers most)",
    )
    add_composition_options(parser)
    parser.add_argument(
        "--accuracy",
        action="store_true",
        help="print how well estimates agree with end-to-end results, per system, runtime and level",
    )
    add_format_options(parser)
    add_schema_option(parser, "ModelEstimate", many=True)
    parser.set_defaults(handler=estimate_models)


def estimate_models(args: argparse.Namespace) -> int:
    """Estimate each model, or judge the estimates of all of them."""
    sources = library(args.data).find_all(args.models)
    output = "json" if args.json else "csv" if args.csv else "text"
    options = estimate_options_of(args, args.system, args.runtime)
    cures = _Cures(args.config, args.models, given_options(args), args.runtime, options.cutting)
    with open_estimator(options, args.data) as estimator:
        return _judge(estimator, sources, output) if args.accuracy else _estimate(estimator, sources, output, cures)


def _estimate(estimator: Estimator, sources: Sequence[ModelSource], output: str, cures: _Cures) -> int:
    scope = estimator.scope_of(sources)
    _tell_level(estimator, scope)
    answers = estimator.estimates(sources, scope)
    _write_estimates(answers, output)
    _tell_others(answers)
    for answer in answers:
        _tell_unmeasurable(answer)
    impossible = [it for it in answers if it.found.estimate.obstacle]
    _tell_impossible(cures, scope, impossible)
    incomplete = [it for it in answers if it.found.estimate.composed and it.found.estimate.remaining.pairs]
    _tell_gaps(cures, scope, incomplete)
    without = [it for it in answers if it.found.estimate.composed is None and it not in impossible]
    if without:
        _tell_nothing_fits(estimator, cures, scope, without)
    return Status.DONE_WITH_FAILURES if without or impossible or len(answers) < len(sources) else Status.DONE


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
        narrate(
            f"{answer.source.name} is incomplete: {coverage.missing} of {coverage.layers} layers are missing "
            f"({counted(len(remaining.pairs), 'brick')} to run{takes}): {cures.of(scope, [answer])}"
        )


def _tell_nothing_fits(
    estimator: Estimator, cures: _Cures, scope: MeasurementScope, without: Sequence[ModelWithEstimate]
) -> None:
    system = f"this host, {scope.system}," if scope.is_host else scope.system
    for held in _by_format(without):
        wanted = scope.runtime_for(held[0].source)
        runtime = f" by {wanted}" if wanted else ""
        there = what_is_there(combinations(estimator.store.select(order=())), scope.system, wanted)
        narrate(
            f"nothing fits {_names(held)}: none of its bricks was measured at level {scope.level.value} on "
            f"{system}{runtime}; {there}; {cures.of(scope, held)}"
        )


def _by_format(answers: Sequence[ModelWithEstimate]) -> list[list[ModelWithEstimate]]:
    found: dict[Format, list[ModelWithEstimate]] = {}
    for answer in answers:
        found.setdefault(answer.source.format, []).append(answer)
    return list(found.values())


def _names(answers: Iterable[ModelWithEstimate]) -> str:
    return names_of([it.source.name for it in answers], _MOST_TOLD)
