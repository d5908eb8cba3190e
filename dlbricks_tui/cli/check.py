"""`dlbricks check`: measure models again, and say whether they are slower than a file says they were."""

from __future__ import annotations

import argparse
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from dlbricks_tui.answers.checks import MOST_PROCESSES
from dlbricks_tui.cli.options import add_models_argument, inputs_of
from dlbricks_tui.cli.output import narrate, narrate_once, write_json, write_lines
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
from dlbricks_tui.wording.answers import runtime_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlbricks_tui.answers.checks import CheckedModel, CheckPlan
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.runs.request import RunRequest
    from dlbricks_tui.runs.run import RunOutcome

EXPLAINED = """\
The exit status is 1 if any model is slower, or could not be measured; it is 0 if all are the same, faster, or too noisy
for a verdict.
"""


def register(parser: Parser) -> None:
    """Add the options of `check`."""
    parser.epilog = EXPLAINED
    add_models_argument(parser, many=True, needed=False)
    parser.add_argument(
        "--against",
        metavar="FILE",
        type=Path,
        required=True,
        help="an evaluation with results (.toml), or a file of `dlbricks results export` (.json, .json.gz)",
    )
    parser.add_argument(
        "--by",
        metavar="SHARE",
        type=Typed(share()),
        default=USUAL_SHARE,
        help=f"a smaller change counts as none (default: {USUAL_SHARE:.0%})".replace("%", "%%"),
    )
    parser.add_argument(
        "--processes",
        metavar="N",
        type=Typed(whole(1, MOST_PROCESSES)),
        help="measure each model in N processes, as their latencies differ (default: 3)",
    )
    parser.add_argument("--runtime", metavar="R", help="a runtime or framework (default: all of FILE)")
    parser.add_argument("--system", metavar="S", help="the system to compare with, if FILE has several")
    parser.add_argument(
        "--junit", metavar="FILE", type=Path, help="write the verdicts as JUnit XML too, for CI systems"
    )
    add_quiet_option(parser)
    add_json_option(parser)
    add_schema_option(parser, "CheckedModel", module="checks", many=True)
    parser.set_defaults(handler=check)


def check(args: argparse.Namespace) -> int:
    """Measure the models again, and print a verdict on each."""
    # Loaded here: `--help` and `--json-schema` need none of it.
    from dlbricks_tui.answers.checks import (
        USUAL_PROCESSES,
        CheckOptions,
        check_plan,
        checked,
        days_of,
        line_of,
        measure_again,
        other_system,
    )
    from dlbricks_tui.host.fingerprint import fingerprint
    from dlbricks_tui.wording.checks import check_heading, verdict_counts

    began = datetime.now(timezone.utc)
    if args.junit is not None:
        _refuse_unwritable(args.junit)
    options = CheckOptions(
        by=args.by,
        processes=USUAL_PROCESSES if args.processes is None else args.processes,
        system=args.system,
        runtime=args.runtime,
        **inputs_of(args),
    )
    plan = check_plan(args.models, args.against, options, args.data)
    if plan.baselines.refused:
        narrate(f"{len(plan.baselines.refused)} lines are left out, the first: {plan.baselines.refused[0]}")
    if remark := other_system(plan, fingerprint().id):
        narrate_once(remark)
    if not args.quiet:
        narrate(check_heading(args.against.name, days_of(plan), len(plan.items), options.processes, options.by))
    measured = measure_again(plan, args.data, _Runs(plan, args.data, quiet=args.quiet).execute)
    if measured.stopped:
        narrate("the check was stopped before its verdicts; what was measured is kept in the store")
        return Status.INTERRUPTED
    found = checked(plan, measured, args.data)
    if args.json:
        write_json(found)
    else:
        write_lines(map(line_of, found))
    if args.junit is not None:
        _write_junit(args.junit, found, plan, began)
    if not args.quiet:
        narrate(verdict_counts([one.verdict for one in found]))
    return status_of(found)


def status_of(found: Sequence[CheckedModel]) -> Status:
    """Return the exit status: that of failures if a model is slower or could not be compared."""
    failed = any(one.verdict is Verdict.SLOWER or not one.compared for one in found)
    return Status.DONE_WITH_FAILURES if failed else Status.DONE


class _Runs:
    """Carries the runs of a check out, one after another, and shows each."""

    def __init__(self, plan: CheckPlan, data: DataFolder, *, quiet: bool) -> None:
        self._of = plan.options.processes * len(plan.groups)
        self._data = data
        self._quiet = quiet
        self._number = 0

    def execute(self, request: RunRequest) -> RunOutcome:
        from dlbricks_tui.cli.run_progress import shown
        from dlbricks_tui.host.queue import host_queue
        from dlbricks_tui.runs.control import create_run
        from dlbricks_tui.runs.run import execute
        from dlbricks_tui.runs.work import Workplace
        from dlbricks_tui.wording.numbers import names_of

        self._number += 1
        if not self._quiet:
            by = runtime_words(request.runtime.identity)
            narrate(f"run {self._number} of {self._of}: {names_of(request.model_names)} by {by}")
        with shown(quiet=self._quiet) as progress:
            return execute(create_run(request, self._data), request, Workplace(self._data), host_queue(), progress.take)


def _refuse_unwritable(path: Path) -> None:
    """Raise UsageError before anything is measured if the file of the verdicts cannot be written."""
    if path.is_dir():
        raise UsageError(f"--junit {path}: that is a folder; name a file in it")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"--junit {path}: there is no folder {path.absolute().parent}")


def _write_junit(path: Path, found: Sequence[CheckedModel], plan: CheckPlan, began: datetime) -> None:
    from dlbricks_tui import __version__
    from dlbricks_tui.answers.checks import Occasion, junit_xml
    from dlbricks_tui.atomic_write import write_named
    from dlbricks_tui.host.fingerprint import fingerprint

    seconds = (datetime.now(timezone.utc) - began).total_seconds()
    stated = (("against", str(plan.file)), ("by", f"{plan.options.by:g}"), ("dlbricks", __version__))
    occasion = Occasion(began, seconds, fingerprint().id, stated)
    try:
        write_named(path, lambda file: file.write(junit_xml(found, occasion).encode()))
    except OSError as error:
        raise UsageError(f"--junit {path} cannot be written: {error.strerror}; name another file") from error
