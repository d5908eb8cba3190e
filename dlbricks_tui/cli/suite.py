"""`dlbricks suite`: export the bricks of private models, measure them elsewhere, and import the results."""

import argparse
from contextlib import closing
from pathlib import Path
from typing import Any

from dlbricks_tui.answers.opening import library
from dlbricks_tui.answers.suites import EXPORT, ExportOrder, SuiteOptions, export, import_suite_results, suite_run
from dlbricks_tui.cli.job_progress import JobNarration, live_console
from dlbricks_tui.cli.options import (
    add_cutting_options,
    add_models_argument,
    inputs_of,
    values_of,
)
from dlbricks_tui.cli.output import narrate, narrate_some, write, write_json
from dlbricks_tui.cli.parser import (
    Actions,
    Parser,
    Status,
    Typed,
    UsageError,
    add_action,
    add_actions,
    add_json_option,
    add_repeatable,
    add_schema_option,
    add_setting,
)
from dlbricks_tui.cli.run import add_measuring_options, carry_out, measure_options_of, showing_of
from dlbricks_tui.cli.store import open_store
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.jobs.process import work_on
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runs.control import create_run
from dlbricks_tui.runs.request import SuiteChoice
from dlbricks_tui.runtime.variant import Precision
from dlbricks_tui.settings.cutting import CUTTING, LEVEL
from dlbricks_tui.settings.setting import whole
from dlbricks_tui.settings.variant import BATCH, PRECISION, RUNTIME
from dlbricks_tui.share.errors import ShareError
from dlbricks_tui.share.suites.exporting import BricksChecked, SuiteWritten
from dlbricks_tui.share.suites.key_file import fresh_seed, seed_of
from dlbricks_tui.share.suites.suite_files import open_suite, refuse_existing
from dlbricks_tui.wording.fleets import import_outcome, untravelled
from dlbricks_tui.wording.jobs import export_line

_DECOYS = 3


def register(parser: Parser) -> None:
    """Add the actions of `suite`."""
    parser.set_defaults(handler=lambda args: _help(parser))
    actions = add_actions(parser)
    _add_export(actions)
    running = add_action(actions, "run", "measure a suite on this host, which needs no models", run_suite, json=False)
    running.add_argument(
        "suite", metavar="SUITE", type=Path, help="the file or folder that `dlbricks suite export` has written"
    )
    running.add_argument("-o", "--output", metavar="FILE", type=Path, required=True, help="the file for the results")
    add_measuring_options(running)
    add_schema_option(running, "RunResult", module="measuring")
    about = "import the results of a suite that was exported here"
    importing = add_action(actions, "import", about, import_suite)
    importing.add_argument("file", metavar="FILE", type=Path, help="a file that `dlbricks suite run` has written")
    importing.add_argument(
        "--key", metavar="FILE", type=Path, help="the key to the suite (default: the one that export kept)"
    )


def export_suite(args: argparse.Namespace) -> int:
    """Write the bricks of models and of decoys for others, and the key to them where only the owner reads it."""
    options = SuiteOptions(
        **values_of(args, (*CUTTING, LEVEL, BATCH, PRECISION)),
        **inputs_of(args),
        runtimes=args.runtime,
        decoys=args.decoys,
        decoys_from=args.decoys_from or (),
    )
    # An order that cannot be carried out leaves no job.
    refuse_existing(args.output)
    seed = fresh_seed() if args.seed is None else seed_of(args.seed)
    sources = tuple(library(args.data).find_all(args.models))
    key = None if args.key is None else args.key.absolute()
    order = ExportOrder(sources, options, args.output.absolute(), seed.secret.hex(), key)
    job = EXPORT.create(args.data, tuple(it.name for it in sources), order)
    with closing(JobNarration(export_line, (BricksChecked,), live_console())) as narration:
        state = work_on(EXPORT, job, args.data, export, narration.take)
    found = [it for it in narration.taken if isinstance(it, SuiteWritten)]
    if state in (State.CANCELLED, State.INTERRUPTED):
        narrate(f"{job.state().message}; nothing was written")
        return Status.INTERRUPTED
    if not found:
        raise ShareError(job.state().message)
    (written,) = found
    narrate_some(untravelled(written.untravelled), "that cannot travel")
    if not written.decoys:
        narrate("without decoys, a reader of the suite knows that all of it is yours")
    if args.json:
        write_json(_export_document(written))
    else:
        write(f"{args.output}\n")
    return Status.DONE_WITH_FAILURES if written.left_out else Status.DONE


def run_suite(args: argparse.Namespace) -> int:
    """Measure a suite like models, and write the results into a file."""
    # A suite that cannot be read is refused before a run of it waits for its turn.
    with open_suite(args.suite) as suite:
        manifest = suite.manifest
    if not args.output.absolute().parent.is_dir():
        raise UsageError(f"-o {args.output}: there is no folder {args.output.absolute().parent}")
    if args.output.is_dir():
        raise UsageError(f"-o {args.output}: that is a folder; name a file in it")
    choice = SuiteChoice(args.suite.absolute(), args.output.absolute())
    request, absent = suite_run(measure_options_of(args), manifest, choice, args.data)
    for title in absent:
        narrate(f"left out: bricks for {title}, which does not measure here")
    return carry_out(create_run(request, args.data), request, args.data, showing_of(args))


def import_suite(args: argparse.Namespace) -> int:
    """Import the results of the private models' bricks."""
    with open_store(args.data) as store:
        found = import_suite_results(store, args.file, args.data, args.key)
    if args.json:
        write_json(found)
    narrate(f"{found.system}: {import_outcome(found)}, {found.decoys} of decoys left out")
    narrate(f"estimate with `dlbricks estimate MODEL --system {found.system}`; models: {', '.join(found.models)}")
    return Status.DONE_WITH_FAILURES if found.failed or found.missing else Status.DONE


def _add_export(actions: Actions) -> None:
    about = "write the bricks of models into a file or folder that others may read"
    parser = add_action(actions, "export", about, export_suite, json=False)
    add_models_argument(parser, many=True)
    parser.add_argument(
        "-o",
        "--output",
        metavar="SUITE",
        type=Path,
        required=True,
        help="the suite: a new file such as suite.dlbricks (a zip), or a new folder",
    )
    about = "a runtime that is to measure the suite"
    add_setting(parser, RUNTIME, many=True, default=(), about=about, usual="all here that read the models")
    add_setting(parser, BATCH, many=True)
    add_setting(parser, PRECISION, default=Precision.F32)
    parser.add_argument(
        "--decoys",
        metavar="N",
        type=Typed(whole(0, 10_000)),
        default=_DECOYS,
        help=f"number of models to hide yours among (default: {_DECOYS})",
    )
    about = "a model that may be a decoy (default: the sample models)"
    add_repeatable(parser, "--decoys-from", "MODEL", about)
    parser.add_argument(
        "--seed",
        metavar="S",
        help="make the same suite again; the seed gives the decoys away (default: random)",
    )
    parser.add_argument("--key", metavar="FILE", type=Path, help="the file for the key (default: in the data folder)")
    add_cutting_options(parser, level=Level.FUSED)
    add_json_option(parser)


def _export_document(written: SuiteWritten) -> dict[str, Any]:
    return {
        "suite": written.suite,
        "path": written.path,
        "key": written.key,
        "bricks": written.bricks,
        "decoys": written.decoy_bricks,
        "left_out": [it._asdict() for it in written.untravelled],
    }


def _help(parser: Parser) -> int:
    parser.print_help()
    return Status.DONE
