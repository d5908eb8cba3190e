"""`dlbricks compare`: one model in several runtimes and variants, the best first."""

import argparse

from dlbricks_tui.answers.comparisons.combinations import CompareOptions, compare
from dlbricks_tui.answers.opening import library
from dlbricks_tui.answers.results import comparison
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
    whole_numbers,
)
from dlbricks_tui.cli.output import data_console, narrate, write_json, write_lines
from dlbricks_tui.cli.parser import Parser, Status, UsageError, add_json_option, add_schema_option
from dlbricks_tui.cli.store import narrated_remarks, open_store
from dlbricks_tui.models.graph import Level
from dlbricks_tui.wording.numbers import counted
from dlbricks_tui.wording.ranking import ranking_answer, ranking_heading, ranking_lines


def register(parser: Parser) -> None:
    """Add the options of `compare`."""
    add_models_argument(parser, many=False)
    parser.add_argument(
        "--runtime",
        metavar="R",
        type=names,
        default=(),
        help="a runtime, a framework, or several with commas (default: all with results of the model)",
    )
    for option, metavar, about in (
        ("--threads", "T", "a number of threads, or several: 1,2,4 (default: all that were measured)"),
        ("--batch", "N", "a batch size, or several: 1,2,4,8 (default: all that were measured)"),
    ):
        parser.add_argument(option, metavar=metavar, type=whole_numbers, default=(), help=about)
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
    add_schema_option(parser, "Comparison")
    parser.set_defaults(handler=compare_combinations)


def compare_combinations(args: argparse.Namespace) -> int:
    """Print the combinations of one model, and the runs that measure what is missing."""
    found = library(args.data).find(args.model)
    if len(found) != 1:
        raise UsageError(f"{args.model} stands for {len(found)} models; name one, such as table1:14")
    (source,) = found
    cutting, config = cutting_of(args), args.config
    options = CompareOptions(
        granularity=cutting.granularity,
        cut=cutting.cut,
        order=cutting.order,
        inputs=shapes_of(args),
        values=values_given(args),
        level=None if args.level is None else Level(args.level),
        system=args.system,
        runtime=args.runtime or None,
        threads=args.threads or None,
        batch=args.batch or None,
        precision=args.precision or None,
        instructions=args.instructions or None,
        optimisation=args.optimisation or None,
        measured_only=args.measured_only or not config.predicts,
        usual_runtime=config.runtime,
        usual_threads=config.threads,
        usual_cutting=usual_cutting_of(config),
    )
    with open_store(args.data) as store:
        ranking = compare(source, options, args.data, store, narrated_remarks(), named=args.model)
    if args.json:
        write_json(comparison(ranking))
    else:
        write_lines([ranking.model, ranking_heading(ranking), "", *ranking_lines(ranking, data_console().width)])
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
