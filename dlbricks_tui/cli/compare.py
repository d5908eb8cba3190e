"""`dlbricks compare`: one model in several runtimes and variants, or any two things of one kind."""

import argparse
from typing import Any

from dlbricks_tui.answers.combinations import CompareOptions, compare
from dlbricks_tui.answers.estimates import comparison
from dlbricks_tui.answers.opening import library
from dlbricks_tui.answers.scope import EstimateOptions
from dlbricks_tui.cli.options import (
    add_cutting_options,
    add_measured_only_option,
    add_models_argument,
    cutting_of,
    inputs_of,
    values_of,
)
from dlbricks_tui.cli.output import narrate, write_json
from dlbricks_tui.cli.parser import (
    MOST_SHOWN,
    Parser,
    Status,
    Typed,
    UsageError,
    add_json_option,
    add_schema_option,
    add_setting,
)
from dlbricks_tui.cli.store import narrated_remarks, open_store
from dlbricks_tui.documents.parts import BLANK_LINE, Heading, Sentence
from dlbricks_tui.documents.ranking import ranking_answer, ranking_heading, ranking_parts
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.library import ModelSource, looks_like_path
from dlbricks_tui.settings.cutting import CUTTING, LEVEL
from dlbricks_tui.settings.setting import whole
from dlbricks_tui.settings.variant import SYSTEM, VARIANT
from dlbricks_tui.wording.numbers import counted

EXPLAINED = """\
With one MODEL, all combinations of runtime and variant that were measured are compared. With OTHER, the two are
compared with each other: two models, two systems, runtimes, days (2026-11-26), runs (id or its beginning), or results
(id). Several words in one argument all have to hold: 'onnxruntime threads=1'. Nothing is measured.
"""
_PARTS = 10


def register(parser: Parser) -> None:
    """Add the options of `compare`."""
    parser.epilog = EXPLAINED
    add_models_argument(parser, many=False)
    parser.add_argument(
        "other",
        metavar="OTHER",
        nargs="?",
        help="what to compare the first with; then that may be a system, a runtime, a day, a run or a result, too",
    )
    parser.add_argument(
        "--limit",
        metavar="N",
        type=Typed(whole(0, MOST_SHOWN)),
        default=_PARTS,
        help=f"with OTHER: show the N largest differences between bricks or layers (default: {_PARTS})",
    )
    usual = "all that were measured"
    for setting in VARIANT:
        add_setting(parser, setting, many=True, default=(), usual=usual)
    add_setting(parser, SYSTEM)
    add_cutting_options(parser)
    add_measured_only_option(parser)
    add_json_option(parser)
    add_schema_option(parser, "CompareDocument", module="pairs")
    parser.set_defaults(handler=compare_combinations)


def compare_combinations(args: argparse.Namespace) -> int:
    """Print the combinations of one model, and the runs that measure what is missing; or compare two things."""
    if args.other is not None:
        return compare_two(args)
    found = library(args.data).find(args.model)
    if len(found) != 1:
        raise UsageError(f"{args.model} stands for {len(found)} models; name one, such as table1:14")
    (source,) = found
    options = CompareOptions(**_model_options(args), **values_of(args, VARIANT))
    with open_store(args.data) as store:
        ranking = compare(source, options, args.data, store, narrated_remarks(), named=args.model)
    if args.json:
        write_json(comparison(ranking))
    else:
        # Loaded here: the JSON document needs no consoles.
        from dlbricks_tui.cli.rendering import show_parts
        from dlbricks_tui.documents.ranking import matrix_parts

        heading = Heading(ranking.model), Sentence(ranking_heading(ranking)), BLANK_LINE
        matrix = [*parts, BLANK_LINE] if (parts := list(matrix_parts(ranking))) else []
        show_parts([*heading, *matrix, *ranking_parts(ranking)])
        narrate(ranking_answer(ranking))
    for refusal in ranking.refusals:
        narrate(f"left out: {refusal}")
    if not ranking.on_this_host and any(it.point.cure for it in ranking.combinations):
        narrate(f"run what is missing on {ranking.system}")
    if ranking.left_out:
        narrate(
            f"{counted(ranking.left_out, 'combination')} with results of only some of the model's layers left out: "
            "name the runtime, threads or batch size to see what measures the rest"
        )
    if ranking.on_this_host:
        for it in ranking.combinations:
            if it.comparable.is_predicted and it.point.cure:
                narrate(f"predicted: run `{it.point.cure}` to measure it")
    measured = all(it.ratio is not None and not it.comparable.is_predicted for it in ranking.combinations)
    complete = not ranking.refusals and measured
    return Status.DONE if complete else Status.DONE_WITH_FAILURES


def compare_two(args: argparse.Namespace) -> int:
    """Print two things of one kind side by side."""
    # Loaded here: a comparison of combinations needs none of it.
    from dlbricks_tui.answers.pairs import compare_models, compare_named, named_side
    from dlbricks_tui.answers.sides import NotComparableError
    from dlbricks_tui.cli.rendering import show_parts
    from dlbricks_tui.documents.comparison import comparison_parts

    names = args.model, args.other
    models = [_model_named(args, name) for name in names]
    if models[0] is not None and models[1] is not None:
        found = compare_models(models[0], models[1], _one_variant(args), args.data, narrated_remarks())
    elif models[0] is not None or models[1] is not None:
        model, other = names if models[0] is not None else names[::-1]
        raise NotComparableError(
            f"{model} is a model, and {other} is none: compare two of one kind; `dlbricks models` lists the models"
        )
    else:
        _refuse_variants(args)
        with open_store(args.data) as store:
            found = compare_named(store, *(named_side(store, name) for name in names))
    if args.json:
        write_json(found)
    else:
        show_parts(comparison_parts(found, args.limit))
        if (more := len(found.parts) - args.limit) > 0:
            narrate(f"{counted(more, 'smaller difference')}: --limit N shows N of them, --json all")
    return Status.DONE


def _model_named(args: argparse.Namespace, name: str) -> ModelSource | None:
    """Return the model of that name; None if it names something else."""
    try:
        found = library(args.data).find(name)
    except ModelError:
        if looks_like_path(name):
            raise
        return None
    if len(found) != 1:
        raise UsageError(f"{name} stands for {len(found)} models; name one, such as table1:14")
    return found[0]


def _one_variant(args: argparse.Namespace) -> EstimateOptions:
    """Return the options of an estimate with one value each."""
    given = values_of(args, VARIANT)
    for field, values in given.items():
        if len(values) > 1:
            raise UsageError(f"--{field}: two models are compared in one variant: give one value")
    one: dict[str, Any] = {field: next(iter(values), None) for field, values in given.items()}
    return EstimateOptions(**_model_options(args), **one)


def _model_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options of both comparisons that are not those of a variant."""
    config = args.config
    return {
        **values_of(args, (*CUTTING, LEVEL, SYSTEM)),
        **inputs_of(args),
        "measured_only": args.measured_only or not config.predicts,
        "usual_runtime": config.runtime,
        "usual_threads": config.threads,
        "usual_cutting": cutting_of(config),
    }


def _refuse_variants(args: argparse.Namespace) -> None:
    given = [field for field, value in values_of(args, (*VARIANT, SYSTEM)).items() if value]
    if given:
        raise UsageError(
            f"--{given[0]} is for models: write it into the words, such as '{args.model} threads=1' (filters are those "
            "of `dlbricks results list`)"
        )
