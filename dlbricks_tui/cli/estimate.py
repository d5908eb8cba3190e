"""`dlbricks estimate`: a model's latency composed of its bricks, and the agreement of estimates with measurements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

from dlbricks_tui.cli.options import (
    add_cutting_options,
    add_measured_only_option,
    add_models_argument,
    estimate_options_of,
    given_options,
    values_of,
)
from dlbricks_tui.cli.output import narrate, show_parts, write_csv, write_json
from dlbricks_tui.cli.parser import Arguments, Parser, Status, Typed, UsageError
from dlbricks_tui.settings.cutting import CUTTING, LEVEL, WORKERS
from dlbricks_tui.settings.loads import BOUND
from dlbricks_tui.settings.variant import BATCH, EXECUTION, KERNELS, PRECISION, RUNTIME, SYSTEM, THREADS

if TYPE_CHECKING:
    from dlbricks_tui.api.estimates import Cures
    from dlbricks_tui.api.estimating import Answer, Estimator
    from dlbricks_tui.api.scope import EstimateOptions
    from dlbricks_tui.api.session import Session
    from dlbricks_tui.documents.parts import Part
    from dlbricks_tui.estimate.ranking import Point
    from dlbricks_tui.models.library import ModelSource

# Wider curves say no more; their lines without the legend.
_WIDEST_CURVE, _CURVE_LINES = 100, 10


def register(parser: Parser) -> None:
    """Add the options of `estimate`."""
    add_models_argument(parser, many=True, needed=False)
    add_cutting_options(parser)
    parser.add_setting(SYSTEM)
    parser.add_setting(RUNTIME, many=True, default=(), usual="the fastest one that was measured completely")
    parser.add_setting(THREADS, many=True, default=(), usual="any")
    parser.add_settings(*EXECUTION, many=True)
    about = "name the variant with the highest throughput among those that take at most so long"
    parser.add_argument("--bound-ms", metavar="MS", type=Typed(BOUND.kind), help=about)
    parser.add_setting(WORKERS)
    parser.add_file("--rules", about="a TOML file that says which layers may run in parallel")
    add_measured_only_option(parser)
    parser.add_count(
        "--slowest",
        "show the N slowest layers, with the share of each and of all slower ones (with --json: N of them, else 10)",
    )
    judging = parser.add_mutually_exclusive_group()
    about = "print how well estimates agree with end-to-end results, per system, runtime and level"
    parser.add_flag("--accuracy", about=about, to=judging)
    parser.add_flag(
        "--score",
        about="print how well models that were measured since would have been predicted, by the results of this "
        "system alone; without a MODEL, all of them",
        to=judging,
    )
    parser.add_formats()
    named = "names a variant below their table: leave --json and --csv out, which hold all latencies"
    parser.only("--bound-ms", where=lambda it: not (it.json or it.csv), why=named)
    judged = "is not for --accuracy and --score, which judge the sums of measured bricks: leave it out"
    composed = (WORKERS.option, "--rules")
    parser.only(*composed, "--measured-only", where=lambda it: not (it.accuracy or it.score), why=judged)
    shown = "composes what this view does not show: name one variant and no --slowest, or give --json"
    parser.only(*composed, where=lambda it: it.json or not (it.slowest or _is_of_variants(it)), why=shown)
    parser.add_schema("estimates.ModelEstimate", many=True)
    parser.set_defaults(handler=estimate_models)


def _is_of_variants(args: Arguments) -> bool:
    return args.bound_ms is not None or any(len(getattr(args, it.dest)) > 1 for it in (RUNTIME, THREADS, *EXECUTION))


def estimate_models(args: Arguments) -> int:
    """Estimate each model in each variant, or judge the estimates of all of them."""
    from dlbricks_tui.api.estimates import Cures
    from dlbricks_tui.api.estimating import measured_models

    if not args.models and not args.score:
        raise UsageError("name a MODEL that `dlbricks models` lists, a file, or table1:ID")
    sources = args.session.sources(args.models) if args.models else measured_models(args.session.data)
    output = "json" if args.json else "csv" if args.csv else "text"
    options = estimate_options_of(args, *CUTTING, LEVEL, SYSTEM, WORKERS, rules=args.rules)
    # Those that change the graph come first: models are read again for each of them.
    given = values_of(args, (RUNTIME, PRECISION, *KERNELS, THREADS, BATCH))
    variants = [
        replace(options, **dict(zip(given, values, strict=True)))
        for values in product(*(each or (None,) for each in given.values()))
    ]
    one_value = f"give one value each of --{', --'.join(given)}"
    if (len(variants) > 1 or args.bound_ms is not None) and (args.accuracy or args.score):
        judge = "--score" if args.score else "--accuracy"
        raise UsageError(f"{judge} judges one variant: {one_value}, and no --bound-ms")
    if args.slowest is not None and (len(variants) > 1 or args.accuracy or args.score or args.bound_ms is not None):
        raise UsageError(
            f"--slowest shows the layers of one variant: {one_value}, and no other view (--accuracy, --score, "
            "--bound-ms)"
        )
    cures = Cures(args.config, args.models, given_options(args), variants[0])
    if len(variants) > 1 or (args.bound_ms is not None and output == "text"):
        return _estimate_variants(args.session, variants, sources, output, cures, args.bound_ms)
    with args.session.open_estimator(variants[0]) as estimator:
        if args.score:
            return _score(estimator, sources, output)
        if args.accuracy:
            return _judge(estimator, sources, output)
        return _estimate(estimator, sources, output, cures, args.slowest)


def _estimate_variants(
    session: Session,
    variants: Sequence[EstimateOptions],
    sources: Sequence[ModelSource],
    output: str,
    cures: Cures,
    bound_ms: float | None,
) -> int:
    from dlbricks_tui.api.estimates import answers_of_variants
    from dlbricks_tui.documents.variants import best_line, curve_answer

    found = answers_of_variants(variants, sources, cures, session.open_estimator, narrate)
    if output == "text":
        for name, points in found.points.items():
            ways = dict.fromkeys((it.found.way.system, it.found.estimate.level.value) for it in points)
            best = curve_answer(points) if bound_ms is None else best_line(points, bound_ms)
            headings = [name, *(f"{system}, {level} layers" for system, level in ways)]
            show_variants(points, headings, best, bound_ms)
    else:
        _write_estimates(found.answers, output)
    every = [point for points in found.points.values() for point in points]
    complete = not found.refused and all(it.latency_ms is not None for it in every)
    return Status.of(not complete or len(every) != len(variants) * len(sources))


def show_variants(
    points: Sequence[Point], heading: Iterable[str], answer: str = "", bound_ms: float | None = None
) -> None:
    """Write the table of a model in several variants, their latency beside their throughput, and the answer."""
    # Loaded here: one variant has no curve.
    from dlbricks_tui.documents.parts import BLANK_LINE, Plots, Sentence
    from dlbricks_tui.documents.variants import curve_pictures, variants_parts

    show_parts([*map(Sentence, heading), BLANK_LINE, *variants_parts(points), BLANK_LINE])
    if plots := curve_pictures(points, bound_ms):
        show_parts([Plots(plots, _CURVE_LINES), BLANK_LINE], _WIDEST_CURVE)
    if answer:
        show_parts([Sentence(answer)])


def _estimate(
    estimator: Estimator, sources: Sequence[ModelSource], output: str, cures: Cures, most_slow: int | None
) -> int:
    from dlbricks_tui.api.estimates import level_remark, remarks_on_answers

    scope = estimator.scope_of(sources)
    if remark := level_remark(estimator, scope):
        narrate(remark)
    answers = estimator.answers(sources, scope)
    _write_estimates(answers, output, most_slow)
    narrate(*remarks_on_answers(estimator, cures, scope, answers))
    without = any(it.found.estimate.composed is None or it.found.estimate.obstacle for it in answers)
    return Status.of(without or len(answers) < len(sources))


def _write_estimates(answers: Sequence[Answer], output: str, most_slow: int | None = None) -> None:
    """Write estimates, or the slowest layers of each model: as `text`, `json` or `csv`."""
    if output != "text":
        from dlbricks_tui.api.estimates import MOST_SLOW, csv_row, model_estimate, slow_rows

        estimates = [model_estimate(it.decomposition, it.found, most_slow or MOST_SLOW) for it in answers]
        if output == "json":
            write_json(estimates)
        elif most_slow is None:
            _write_rows(list(map(csv_row, estimates)))
        else:
            _write_rows([row for one in estimates for row in slow_rows(one)])
        return
    # Loaded here: the other formats need no tables.
    from dlbricks_tui.documents.estimate import EstimateDocument
    from dlbricks_tui.documents.estimates import estimates_parts

    if most_slow is not None:
        for answer in answers:
            show_parts(EstimateDocument(answer.decomposition.graph, answer.found).slowest(most_slow))
    elif len(answers) > 1:
        show_parts(estimates_parts([it.found for it in answers]))
    else:
        (one,) = answers
        show_parts(EstimateDocument(one.decomposition.graph, one.found, one.is_chosen).whole())


def _write_rows(rows: Sequence[dict[str, Any]], output: str = "csv") -> None:
    """Write rows with equal keys: as `json` or `csv`."""
    if output == "json":
        write_json(rows)
    elif rows:
        write_csv([list(rows[0]), *(list(row.values()) for row in rows)])


def _judge(estimator: Estimator, sources: Sequence[ModelSource], output: str) -> int:
    from dlbricks_tui.api.estimates import accuracy_document
    from dlbricks_tui.documents.estimates import accuracy_parts, judged_by_way

    judged = sorted(judged_by_way(estimator.every_way(sources, estimator.scope_of(sources))), key=lambda it: it[0])
    none = (
        "no model was measured both end to end and in all of its bricks: `dlbricks run MODEL... --end-to-end` does both"
    )
    return _show_rows([accuracy_document(*it) for it in judged], lambda: accuracy_parts(judged), output, none)


def _score(estimator: Estimator, sources: Sequence[ModelSource], output: str) -> int:
    from dlbricks_tui.api.estimates import score_document
    from dlbricks_tui.documents.estimates import NOTHING_TO_SCORE, score_parts

    found = estimator.scores(sources, estimator.scope_of(sources)) if sources else []
    rows = [score_document(*it) for it in found]
    return _show_rows(rows, lambda: score_parts([score for _, score in found]), output, NOTHING_TO_SCORE)


def _show_rows(rows: Sequence[dict[str, Any]], parts: Callable[[], Iterable[Part]], output: str, none: str) -> int:
    """Write rows as JSON or CSV, or the parts that show them; without rows, `none` says how to get some."""
    if output != "text":
        _write_rows(rows, output)
    elif rows:
        show_parts(parts())
    if not rows:
        narrate(none)
    return Status.of(not rows)
