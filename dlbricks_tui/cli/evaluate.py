"""`dlbricks evaluate`: carry out an evaluation, compare it with earlier results, or write the one of a run."""

from __future__ import annotations

import argparse
import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from dlbricks_tui.answers.checks import MOST_PROCESSES
from dlbricks_tui.cli.output import (
    narrate,
    narrate_once,
    narrate_some,
    write,
    write_json,
)
from dlbricks_tui.cli.parser import (
    Parser,
    Status,
    Typed,
    UsageError,
    add_json_option,
    add_quiet_option,
    add_schema_option,
)
from dlbricks_tui.settings.setting import share, whole
from dlbricks_tui.store.change import USUAL_SHARE, Verdict
from dlbricks_tui.wording.numbers import counted, percent

if TYPE_CHECKING:
    from dlbricks_tui.answers.evaluating import EvaluationResult
    from dlbricks_tui.answers.preparing import CheckedEvaluation
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.runs.request import RunRequest
    from dlbricks_tui.scenarios.scenario import ScenarioOrder
    from dlbricks_tui.store.records import LoadTest


def register(parser: Parser) -> None:
    """Add the options of `evaluate`."""
    parser.description = (
        "Carry out an evaluation: check what of this host, its runtimes and models matches the file, run what the "
        "store lacks, and print the results. Exit status: 1 if something does not match and --anyway is not given, if "
        "a model could not be measured, or if --compare finds one slower; 0 otherwise."
    )
    parser.add_argument("file", metavar="FILE", type=Path, nargs="?", help="an evaluation, a TOML file")
    parser.add_argument(
        "--anyway", action="store_true", help="go on although something does not match, and mark the results"
    )
    parser.add_argument(
        "--compare",
        action="store_true",
        help="measure whole models again, and compare them with the results in the file, or else with the newest "
        "earlier ones of the store; name what differs, such as a version",
    )
    parser.add_argument(
        "--by",
        metavar="SHARE",
        type=Typed(share()),
        help=f"with --compare: a smaller change counts as none (default: {percent(USUAL_SHARE).replace('%', '%%')})",
    )
    parser.add_argument(
        "--processes",
        metavar="N",
        type=Typed(whole(1, MOST_PROCESSES)),
        help="with --compare: measure each whole model in N processes, which vary more than the samples of one "
        "(default: 3)",
    )
    parser.add_argument("--again", action="store_true", help="measure everything again, also what the store has")
    parser.add_argument(
        "--from",
        dest="run",
        metavar="RUN",
        help="write the evaluation of a finished run, with its results: its id, the beginning of it, or `last`",
    )
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="with --from: the file to write")
    parser.add_argument("--force", action="store_true", help="with --from: replace the file if it exists")
    parser.add_argument(
        "--schema", action="store_true", help="print the JSON schema of the file, for editors, and exit"
    )
    add_quiet_option(parser)
    add_json_option(parser)
    add_schema_option(parser, "EvaluationResult", module="evaluating")
    parser.set_defaults(handler=evaluate_file)


def evaluate_file(args: argparse.Namespace) -> int:
    """Carry out an evaluation, or write one, or print the schema of the file."""
    if args.schema:
        # Loaded here, as all that follows: an error in the options is quick.
        from dlbricks_tui.evaluations.schema import schema

        write(f"{json.dumps(schema(), indent=2)}\n")
        return Status.DONE
    if args.run is not None:
        return _write_evaluation(args)
    if args.file is None:
        raise UsageError(
            "name an evaluation to carry out, or --from RUN -o FILE to write one (see `dlbricks evaluate --help`)"
        )
    if args.output is not None or args.force:
        raise UsageError("-o and --force belong to --from RUN: name a run, or leave them out")
    if not args.compare and (args.by is not None or args.processes is not None):
        raise UsageError("--by and --processes belong to --compare: add it, or leave them out")
    return _carry_out(args)


def _write_evaluation(args: argparse.Namespace) -> int:
    from dlbricks_tui.answers.from_run import evaluation_of_run
    from dlbricks_tui.evaluations.file import write_evaluation

    measures = args.anyway or args.compare or args.again or args.by is not None or args.processes is not None
    if args.file is not None or args.output is None or measures:
        raise UsageError("--from RUN measures nothing: name only the file to write, with -o FILE")
    if args.output.exists() and not args.force:
        raise UsageError(f"{args.output} exists already: choose another file, or replace it with --force")
    evaluation = write_evaluation(evaluation_of_run(args.run, args.output, args.data), args.output)
    if args.json:
        write_json({"name": evaluation.name, "sha256": evaluation.sha256, "file": args.output})
    else:
        write(f"{args.output}\n")
    results = counted(len(evaluation.results), "result")
    narrate(f"{args.output}: {counted(len(evaluation.models), 'model')} with {results}, {evaluation.label}")
    if not evaluation.results:
        narrate("it records no results: the store has none of that run that this version can use; measure it again")
    return Status.DONE


def _carry_out(args: argparse.Namespace) -> int:
    from dlbricks_tui.answers.checks import USUAL_PROCESSES
    from dlbricks_tui.answers.evaluating import EvaluateOptions, EvaluationSteps, evaluate
    from dlbricks_tui.answers.preparing import check_evaluation
    from dlbricks_tui.evaluations.file import read_evaluation

    options = EvaluateOptions(
        anyway=args.anyway,
        compare=args.compare,
        by=USUAL_SHARE if args.by is None else args.by,
        processes=USUAL_PROCESSES if args.processes is None else args.processes,
        again=args.again,
    )
    checked = check_evaluation(read_evaluation(args.file), args.file, args.data)
    for match in checked.mismatches:
        narrate(f"does not match: {match.line}")
    steps = EvaluationSteps(
        tell=narrate,
        run=lambda request: _run(request, args.data, quiet=args.quiet),
        measure_load=lambda order: _measure_load(order, args.data, quiet=args.quiet),
    )
    result = evaluate(checked, options, args.data, steps)
    if args.json:
        write_json(result)
    elif not result.refused:
        # Loaded here: the JSON document needs no tables.
        from dlbricks_tui.cli.rendering import show_parts
        from dlbricks_tui.documents.comparison import compared_parts, results_parts
        from dlbricks_tui.documents.parts import BLANK_LINE

        show_parts(results_parts(result))
        if result.comparison is not None:
            show_parts([BLANK_LINE, *compared_parts(result, options.by)])
    return _conclude(result, checked)


def _run(request: RunRequest, data: DataFolder, *, quiet: bool) -> None:
    """Carry a run of an evaluation out, and narrate its progress."""
    from dlbricks_tui.cli.run import tell_end, tell_variants
    from dlbricks_tui.cli.run_progress import shown
    from dlbricks_tui.host.queue import host_queue
    from dlbricks_tui.runs.control import create_run
    from dlbricks_tui.runs.work import Workplace
    from dlbricks_tui.share.suites.running import execute_any

    folder = create_run(request, data)
    tell_variants(request)
    with shown(quiet=quiet) as progress:
        outcome = execute_any(folder, request, Workplace(data), host_queue(), progress.take)
    if tell_end(outcome, quiet=quiet) == Status.INTERRUPTED:
        raise KeyboardInterrupt


def _measure_load(order: ScenarioOrder, data: DataFolder, *, quiet: bool) -> LoadTest:
    """Measure a scenario of an evaluation, and narrate its progress."""
    from dlbricks_tui.answers.loads import measure
    from dlbricks_tui.cli.job_progress import narrated_load
    from dlbricks_tui.cli.signals import signals_interrupt

    with signals_interrupt(), closing(narrated_load(order.scenario, quiet=quiet)) as narration:
        measured = measure(order, data, narration.take)
    for warning in measured.warnings:
        narrate_once(warning)
    return measured.test


def _conclude(result: EvaluationResult, checked: CheckedEvaluation) -> int:
    """Narrate what went wrong, and return the exit status."""
    if result.refused:
        if checked.parts:
            narrate(
                f"nothing was measured: {counted(len(checked.mismatches), 'requirement')} of {checked.file} "
                f"{'is' if len(checked.mismatches) == 1 else 'are'} not met; --anyway measures and marks the results"
            )
        else:
            narrate(f"nothing was measured: no model of {checked.file} can be measured here")
        return Status.DONE_WITH_FAILURES
    narrate_some(result.failures, "failures")
    marked = len([it for it in result.results if it.unmet]) + len([it for it in result.scenarios if it.unmet])
    if marked:
        narrate(f"{counted(marked, 'result')} marked: requirements of the evaluation were not met")
    slower = any(it.verdict is Verdict.SLOWER for it in result.comparison or ())
    left_out = any(it.needed for it in result.same)
    return Status.DONE_WITH_FAILURES if result.failures or left_out or slower else Status.DONE
