"""`dlbricks evaluate` and `dlbricks check`: measure again what files say, and compare with their results."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from itertools import count
from typing import TYPE_CHECKING, Any

from dlbricks_tui.cli.options import add_models_argument, inputs_of
from dlbricks_tui.cli.output import narrate, narrate_once, narrate_some, show_parts, write, write_json, write_lines
from dlbricks_tui.cli.parser import Arguments, Parser, Status, Typed, UsageError
from dlbricks_tui.settings.setting import share
from dlbricks_tui.wording.numbers import counted, names_of

if TYPE_CHECKING:
    from dlbricks_tui.api.evaluating import EvaluationResult
    from dlbricks_tui.api.preparing import CheckedEvaluation
    from dlbricks_tui.api.session import Session
    from dlbricks_tui.runs.request import RunRequest
    from dlbricks_tui.runs.run import RunOutcome


def register(parser: Parser) -> None:
    """Add the options of `evaluate`."""
    parser.description = (
        "Carry out an evaluation: check what of this host, its runtimes and models matches the file, run what the "
        "store lacks, and print the results. Exit status: 1 if something does not match and --anyway is not given, if "
        "a model could not be measured, or if --compare finds one slower; 0 otherwise."
    )
    parser.add_file("file", about="an evaluation, a TOML file", nargs="?")
    parser.add_flag("--anyway", about="go on although something does not match, and mark the results")
    parser.add_flag(
        "--compare",
        about="measure whole models again, and compare them with the results in the file, or else with the newest "
        "earlier ones of the store; name what differs, such as a version",
    )
    _add_comparing(
        parser,
        by="with --compare: a smaller change counts as none",
        processes="with --compare: measure each whole model in N processes, which vary more than the samples of one",
    )
    parser.add_flag("--again", about="measure everything again, also what the store has")
    about = "write the evaluation of a finished run, with its results: its id, the beginning of it, or `last`"
    parser.add_argument("--from", dest="run", metavar="RUN", help=about)
    parser.add_file("-o", "--output", about="with --from: the file to write")
    parser.add_flag("--force", about="with --from: replace the file if it exists")
    parser.add_flag("--schema", about="print the JSON schema of the file, for editors, and exit")
    parser.end(evaluate_file, "evaluating.EvaluationResult", quiet=True)


def register_check(parser: Parser) -> None:
    """Add the options of `check`."""
    parser.epilog = (
        "The exit status is 1 if any model is slower, or could not be measured; it is 0 if all are the same, faster, "
        "or too noisy\nfor a verdict.\n"
    )
    add_models_argument(parser, many=True, needed=False, more=" (default: all of the file)")
    about = "an evaluation with results (.toml), or a file of `dlbricks results export` (.json, .json.gz)"
    parser.add_file("--against", about=about, required=True)
    processes = "measure each model in N processes, as their latencies differ"
    _add_comparing(parser, by="a smaller change counts as none", processes=processes)
    parser.add_argument("--runtime", metavar="R", help="a runtime or framework (default: all of FILE)")
    parser.add_argument("--system", metavar="S", help="the system to compare with, if FILE has several")
    parser.add_file("--junit", about="write the verdicts as JUnit XML too, for CI systems")
    parser.end(check, "checks.CheckedModel", many=True, quiet=True)


def _add_comparing(parser: Parser, *, by: str, processes: str) -> None:
    from dlbricks_tui.api.checks import MOST_PROCESSES, CheckOptions

    usual = CheckOptions()
    by = f"{by} (default: {100 * usual.by:g} %%)"
    parser.add_argument("--by", metavar="SHARE", type=Typed(share()), help=by)
    parser.add_count("--processes", f"{processes} (default: {usual.processes})", most=MOST_PROCESSES)


def _comparing(args: Arguments) -> dict[str, Any]:
    """Return what the options say of comparisons, by the fields of options classes."""
    given = {"by": args.by, "processes": args.processes}
    return {name: value for name, value in given.items() if value is not None}


def evaluate_file(args: Arguments) -> int:
    """Carry out an evaluation, or write one, or print the schema of the file."""
    if args.schema:
        # Loaded here, as all that follows: an error in the options is quick.
        from dlbricks_tui.api.preparing import schema

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
    if not args.compare and _comparing(args):
        raise UsageError("--by and --processes belong to --compare: add it, or leave them out")
    return _carry_out(args)


def _write_evaluation(args: Arguments) -> int:
    if args.file is not None or args.output is None or args.anyway or args.compare or args.again or _comparing(args):
        raise UsageError("--from RUN measures nothing: name only the file to write, with -o FILE")
    if args.output.exists() and not args.force:
        raise UsageError(f"{args.output} exists already: choose another file, or replace it with --force")
    evaluation = args.session.evaluation_of(args.run, args.output)
    if args.json:
        write_json({"name": evaluation.name, "sha256": evaluation.sha256, "file": args.output})
    else:
        write(f"{args.output}\n")
    results = counted(len(evaluation.results), "result")
    narrate(f"{args.output}: {counted(len(evaluation.models), 'model')} with {results}, {evaluation.label}")
    if not evaluation.results:
        narrate("it records no results: the store has none of that run that this version can use; measure it again")
    return Status.DONE


def _carry_out(args: Arguments) -> int:
    from dlbricks_tui.api.evaluating import EvaluateOptions, EvaluationSteps, evaluate
    from dlbricks_tui.api.preparing import check_file
    from dlbricks_tui.cli.scenario import measure_shown

    options = EvaluateOptions(anyway=args.anyway, compare=args.compare, again=args.again, **_comparing(args))
    checked = check_file(args.file, args.session.data)
    for match in checked.mismatches:
        narrate(f"does not match: {match.line}")
    steps = EvaluationSteps(
        tell=narrate,
        run=lambda request: _run(request, args.session, quiet=args.quiet),
        measure_load=lambda order: measure_shown(order, args.session, quiet=args.quiet).test,
    )
    result = evaluate(checked, options, args.session.data, steps)
    if args.json:
        write_json(result)
    elif not result.refused:
        # Loaded here: the JSON document needs no tables.
        from dlbricks_tui.documents.comparison import compared_parts, results_parts
        from dlbricks_tui.documents.parts import BLANK_LINE

        show_parts(results_parts(result))
        if result.comparison is not None:
            show_parts([BLANK_LINE, *compared_parts(result, options.by)])
    return _conclude(result, checked)


def _run(request: RunRequest, session: Session, *, quiet: bool) -> RunOutcome:
    """Carry a run of an evaluation out, and narrate its progress."""
    from dlbricks_tui.cli.run import execute_shown, tell_end

    outcome, run = execute_shown(session.new_run(request), quiet=quiet)
    if tell_end(outcome, run) == Status.INTERRUPTED:
        raise KeyboardInterrupt
    return outcome


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
    slower = any(it.verdict.value == "slower" for it in result.comparison or ())
    return Status.of(result.failures or slower or any(it.needed for it in result.same))


def check(args: Arguments) -> int:
    """Measure the models again, and print a verdict on each."""
    # Loaded here: `--help` and `--json-schema` need none of it.
    from dlbricks_tui.api.checks import (
        CheckOptions,
        check_plan,
        checked,
        days_of,
        line_of,
        measured_by,
        other_system,
        refuse_unwritable,
        write_junit,
    )
    from dlbricks_tui.cli.run import execute_shown
    from dlbricks_tui.wording.answers import check_heading, runtime_words, verdict_counts

    began = datetime.now(timezone.utc)
    if args.junit is not None:
        refuse_unwritable(args.junit)
    options = CheckOptions(**_comparing(args), system=args.system, runtime=args.runtime, **inputs_of(args))
    plan = check_plan(args.models, args.against, options, args.session.data)
    if plan.baselines.refused:
        refused = plan.baselines.refused
        narrate(f"{counted(len(refused), 'line')} left out, the first: {refused[0]}")
    if remark := other_system(plan):
        narrate_once(remark)
    if not args.quiet:
        narrate(check_heading(args.against.name, days_of(plan), len(plan.items), options.processes, options.by))
    numbers = count(1)

    def execute(request: RunRequest) -> RunOutcome:
        number = f"{next(numbers)} of {options.processes * len(plan.groups)}"
        if not args.quiet:
            narrate(f"run {number}: {names_of(request.model_names)} by {runtime_words(request.runtime.identity)}")
        return execute_shown(args.session.new_run(request), quiet=args.quiet)[0]

    measured = measured_by(plan, args.session.data, execute)
    if measured.stopped:
        narrate("the check was stopped before its verdicts; what was measured is kept in the store")
        return Status.INTERRUPTED
    found = checked(plan, measured, args.session.data)
    if args.json:
        write_json(found)
    else:
        write_lines(map(line_of, found))
    if args.junit is not None:
        write_junit(args.junit, found, plan, began)
    if not args.quiet:
        narrate(verdict_counts([one.verdict for one in found]))
    return Status.of(any(one.is_failure for one in found))
