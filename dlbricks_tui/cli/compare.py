"""`dlbricks compare`: one model in several runtimes and variants, or any two things of one kind."""

import argparse
from typing import Any

from dlbricks_tui.answers.comparisons.combinations import CompareOptions, compare
from dlbricks_tui.answers.opening import library
from dlbricks_tui.answers.results import comparison
from dlbricks_tui.answers.scope import EstimateOptions
from dlbricks_tui.cli.options import (
    add_cutting_options,
    add_kernel_options,
    add_measured_only_option,
    add_models_argument,
    cutting_of,
    names,
    precisions,
    shapes_of,
    usual_cutting_of,
    values_given,
)
from dlbricks_tui.cli.output import narrate, write_json
from dlbricks_tui.cli.parser import (
    MOST_SHOWN,
    Parser,
    Status,
    UsageError,
    Whole,
    WholeNumbers,
    add_json_option,
    add_schema_option,
)
from dlbricks_tui.cli.store import narrated_remarks, open_store
from dlbricks_tui.documents.parts import BLANK_LINE, Heading, Sentence
from dlbricks_tui.documents.ranking import ranking_answer, ranking_heading, ranking_parts
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import ModelSource, looks_like_path
from dlbricks_tui.runtime.runtime import MOST_THREADS
from dlbricks_tui.runtime.variant import MOST_IN_A_BATCH
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
        type=Whole(0, MOST_SHOWN),
        default=_PARTS,
        help=f"with OTHER: show the N largest differences between bricks or layers (default: {_PARTS})",
    )
    parser.add_argument(
        "--runtime",
        metavar="R",
        type=names,
        default=(),
        help="a runtime, a framework, or several with commas (default: all with results of the model)",
    )
    for option, metavar, most, about in (
        ("--threads", "T", MOST_THREADS, "a number of threads, or several: 1,2,4 (default: all that were measured)"),
        ("--batch", "N", MOST_IN_A_BATCH, "a batch size, or several: 1,2,4,8 (default: all that were measured)"),
    ):
        parser.add_argument(option, metavar=metavar, type=WholeNumbers(most), default=(), help=about)
    parser.add_argument(
        "--precision",
        metavar="P",
        type=precisions,
        default=(),
        help="f32, bf16 or int8, or several (default: all that were measured)",
    )
    add_kernel_options(parser, "all that were measured")
    parser.add_argument(
        "--system", metavar="S", help="a system of the store by its id, name or instance type (default: this host)"
    )
    add_cutting_options(parser, level=Level.FUSED)
    # None leaves the level to the results of each runtime.
    parser.set_defaults(level=None)
    add_measured_only_option(parser)
    add_json_option(parser)
    add_schema_option(parser, "CompareDocument", module="pairs.naming")
    parser.set_defaults(handler=compare_combinations)


def compare_combinations(args: argparse.Namespace) -> int:
    """Print the combinations of one model, and the runs that measure what is missing; or compare two things."""
    if args.other is not None:
        return compare_two(args)
    found = library(args.data).find(args.model)
    if len(found) != 1:
        raise UsageError(f"{args.model} stands for {len(found)} models; name one, such as table1:14")
    (source,) = found
    several: dict[str, Any] = {name: getattr(args, name) or None for name in _VARIANT}
    options = CompareOptions(**_model_options(args), **several)
    with open_store(args.data) as store:
        ranking = compare(source, options, args.data, store, narrated_remarks(), named=args.model)
    if args.json:
        write_json(comparison(ranking))
    else:
        # Loaded here: the JSON document needs no consoles.
        from dlbricks_tui.cli.rendering import show_parts

        heading = Heading(ranking.model), Sentence(ranking_heading(ranking)), BLANK_LINE
        show_parts([*heading, *ranking_parts(ranking)])
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
    from dlbricks_tui.answers.pairs.compared import NotComparableError
    from dlbricks_tui.answers.pairs.models import compare_models
    from dlbricks_tui.answers.pairs.naming import compare_named, named_side
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


_VARIANT = ("runtime", "threads", "batch", "precision", "instructions", "optimisation")


def _one_variant(args: argparse.Namespace) -> EstimateOptions:
    """Return the options of an estimate with one value each."""
    for name in _VARIANT:
        if len(getattr(args, name) or ()) > 1:
            raise UsageError(f"--{name}: two models are compared in one variant: give one value")
    one: dict[str, Any] = {name: (getattr(args, name) or (None,))[0] for name in _VARIANT}
    return EstimateOptions(**_model_options(args), **one)


def _model_options(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options of both comparisons that are not those of a variant."""
    cutting, config = cutting_of(args), args.config
    return {
        "granularity": cutting.granularity,
        "cut": cutting.cut,
        "order": cutting.order,
        "inputs": shapes_of(args),
        "values": values_given(args),
        "level": None if args.level is None else Level(args.level),
        "system": args.system,
        "measured_only": args.measured_only or not config.predicts,
        "usual_runtime": config.runtime,
        "usual_threads": config.threads,
        "usual_cutting": usual_cutting_of(config),
    }


def _refuse_variants(args: argparse.Namespace) -> None:
    given = [name for name in (*_VARIANT, "system") if getattr(args, name)]
    if given:
        raise UsageError(
            f"--{given[0]} is for models: write it into the words, such as '{args.model} threads=1' (filters are those "
            "of `dlbricks results list`)"
        )
