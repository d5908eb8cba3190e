"""`dlbricks estimate`: a model's latency composed of its bricks, and the agreement of estimates with measurements."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, product
from pathlib import Path
from typing import TYPE_CHECKING

from dlbricks_tui.answers.estimating import Answer, Estimator, measured_models
from dlbricks_tui.answers.opening import library
from dlbricks_tui.answers.scope import EstimateOptions
from dlbricks_tui.cli.estimate_remarks import (
    Cures,
    accuracy_document,
    score_document,
    tell_gaps,
    tell_impossible,
    tell_level,
    tell_nothing_fits,
    tell_others,
    tell_unmeasurable,
    tell_unpredicted,
    write_documents,
    write_estimates,
    write_slowest,
    write_variants,
)
from dlbricks_tui.cli.options import (
    add_cutting_options,
    add_measured_only_option,
    add_models_argument,
    add_variant_options,
    estimate_options_of,
    given_options,
    values_of,
)
from dlbricks_tui.cli.output import narrate, worded
from dlbricks_tui.cli.parser import (
    MOST_SHOWN,
    Parser,
    Status,
    Typed,
    UsageError,
    add_format_options,
    add_schema_option,
    add_setting,
)
from dlbricks_tui.cli.store import open_estimator
from dlbricks_tui.errors import UserError
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.models.loading import UNLOADABLE
from dlbricks_tui.runtime.errors import RegistryError
from dlbricks_tui.settings.cutting import CUTTING, LEVEL, WORKERS
from dlbricks_tui.settings.loads import BOUND
from dlbricks_tui.settings.setting import whole
from dlbricks_tui.settings.variant import BATCH, KERNELS, PRECISION, RUNTIME, SYSTEM, THREADS

if TYPE_CHECKING:
    from dlbricks_tui.estimate.ranking import Point


def register(parser: Parser) -> None:
    """Add the options of `estimate`."""
    add_models_argument(parser, many=True, needed=False)
    add_cutting_options(parser)
    add_setting(parser, SYSTEM)
    usual = "the fastest one that was measured completely"
    add_setting(parser, RUNTIME, many=True, default=(), usual=usual)
    add_setting(parser, THREADS, many=True, default=(), usual="any")
    add_variant_options(parser)
    parser.add_argument(
        "--bound-ms",
        metavar="MS",
        type=Typed(BOUND.kind),
        help="name the variant with the highest throughput among those that take at most so long",
    )
    add_setting(parser, WORKERS)
    parser.add_argument(
        "--rules", metavar="FILE", type=Path, help="a TOML file that says which layers may run in parallel"
    )
    add_measured_only_option(parser)
    parser.add_argument(
        "--slowest",
        metavar="N",
        type=Typed(whole(1, MOST_SHOWN)),
        help="show the N slowest layers, with the share of each and of all slower ones (with --json: N of them, else "
        "10)",
    )
    parser.add_argument(
        "--accuracy",
        action="store_true",
        help="print how well estimates agree with end-to-end results, per system, runtime and level",
    )
    parser.add_argument(
        "--score",
        action="store_true",
        help="print how well models that were measured since would have been predicted, by the results of this system "
        "alone; without a MODEL, all of them",
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
    options = estimate_options_of(args, *CUTTING, LEVEL, SYSTEM, WORKERS, rules=args.rules)
    # Those that change the graph come first: models are read again for each of them.
    given = values_of(args, (RUNTIME, PRECISION, *KERNELS, THREADS, BATCH))
    variants = [
        replace(options, **dict(zip(given, values, strict=True)))
        for values in product(*(each or (None,) for each in given.values()))
    ]
    if len(variants) > 1 and (args.accuracy or args.score):
        option = "--score" if args.score else "--accuracy"
        raise UsageError(f"{option} judges one variant: give one value each of --{', --'.join(given)}")
    if args.slowest is not None and (len(variants) > 1 or args.accuracy or args.score or args.bound_ms is not None):
        raise UsageError(
            f"--slowest shows the layers of one variant: give one value each of --{', --'.join(given)}, and no other "
            "view (--accuracy, --score, --bound-ms)"
        )
    cures = Cures(args.config, args.models, given_options(args), variants[0])
    if len(variants) > 1 or (args.bound_ms is not None and output == "text"):
        return _estimate_variants(args.data, variants, sources, output, cures, args.bound_ms)
    with open_estimator(variants[0], args.data) as estimator:
        if args.score:
            return _score(estimator, sources, output)
        if args.accuracy:
            return _judge(estimator, sources, output)
        return _estimate(estimator, sources, output, cures, args.slowest)


def _estimate_variants(
    data: DataFolder,
    variants: Sequence[EstimateOptions],
    sources: Sequence[ModelSource],
    output: str,
    cures: Cures,
    bound_ms: float | None,
) -> int:
    from dlbricks_tui.documents.variants import best_line, curve_answer
    from dlbricks_tui.estimate.ranking import Point

    found: dict[str, list[Point]] = {}
    answers: list[Answer] = []
    refused: list[UserError] = []
    for _, group in groupby(variants, key=lambda it: replace(it, threads=None, batch=None)):
        options = list(group)
        with open_estimator(options[0], data) as opened:
            for each in options:
                estimator = replace(opened, options=each)
                try:
                    scope = estimator.scope_of(sources)
                    held = estimator.answers(sources, scope)
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
                tell_gaps(its_cures, scope, [it for it in known if it.found.estimate.remaining.pairs])
                tell_impossible(its_cures, scope, [it for it in held if it.found.estimate.obstacle])
    if refused and not answers:
        raise refused[0]
    if output == "text":
        for name, points in found.items():
            best = curve_answer(points) if bound_ms is None else best_line(points, bound_ms)
            write_variants(points, _headings(name, points), best, bound_ms)
    else:
        write_estimates(answers, output)
    every = [point for points in found.values() for point in points]
    complete = not refused and all(it.latency_ms is not None for it in every)
    return Status.DONE if complete and len(every) == len(variants) * len(sources) else Status.DONE_WITH_FAILURES


def _headings(name: str, points: Sequence[Point]) -> list[str]:
    ways = dict.fromkeys((it.found.way.system, it.found.estimate.level.value) for it in points)
    return [name, *(f"{system}, {level} layers" for system, level in ways)]


def _estimate(
    estimator: Estimator, sources: Sequence[ModelSource], output: str, cures: Cures, most_slow: int | None
) -> int:
    scope = estimator.scope_of(sources)
    tell_level(estimator, scope)
    answers = estimator.answers(sources, scope)
    if most_slow is None:
        write_estimates(answers, output)
    else:
        write_slowest(answers, output, most_slow)
    tell_others(answers)
    for answer in answers:
        tell_unmeasurable(answer)
    tell_unpredicted(answers)
    impossible = [it for it in answers if it.found.estimate.obstacle]
    tell_impossible(cures, scope, impossible)
    without = [it for it in answers if it.found.estimate.composed is None and it not in impossible]
    incomplete = [it for it in answers if it.found.estimate.remaining.pairs and it not in impossible]
    tell_gaps(cures, scope, [it for it in incomplete if it.found.is_measured])
    unmeasured = [it for it in incomplete if not it.found.is_measured]
    predicted = [it for it in unmeasured if it not in without]
    tell_nothing_fits(estimator, cures, scope, predicted, "nothing measured fits")
    tell_nothing_fits(estimator, cures, scope, [it for it in unmeasured if it in without], "nothing fits")
    return Status.DONE_WITH_FAILURES if without or impossible or len(answers) < len(sources) else Status.DONE


def _judge(estimator: Estimator, sources: Sequence[ModelSource], output: str) -> int:
    from dlbricks_tui.cli.rendering import show_parts
    from dlbricks_tui.documents.estimates import accuracy_parts, judged_by_way

    judged = sorted(judged_by_way(estimator.every_way(sources, estimator.scope_of(sources))), key=lambda it: it[0])
    if output != "text":
        write_documents([accuracy_document(group, found) for group, found in judged], output)
    elif judged:
        show_parts(accuracy_parts(judged))
    if judged:
        return Status.DONE
    narrate(
        "no model was measured both end to end and in all of its bricks: `dlbricks run MODEL... --end-to-end` does both"
    )
    return Status.DONE_WITH_FAILURES


def _score(estimator: Estimator, sources: Sequence[ModelSource], output: str) -> int:
    from dlbricks_tui.cli.rendering import show_parts
    from dlbricks_tui.documents.estimates import NOTHING_TO_SCORE, score_parts

    found = estimator.scores(sources, estimator.scope_of(sources)) if sources else []
    if output != "text":
        write_documents([score_document(way, score) for way, score in found], output)
    elif found:
        show_parts(score_parts([score for _, score in found]))
    if found:
        return Status.DONE
    narrate(NOTHING_TO_SCORE)
    return Status.DONE_WITH_FAILURES
