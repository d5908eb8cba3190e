"""`dlbricks suite`: export the bricks of private models, measure them elsewhere, and import the results."""

from contextlib import closing

from dlbricks_tui.cli.jobs import detach
from dlbricks_tui.cli.options import add_models_argument, inputs_of, values_of
from dlbricks_tui.cli.output import narrate, narrate_some, write, write_json
from dlbricks_tui.cli.parser import Arguments, Parser, Status, path_in
from dlbricks_tui.cli.run import add_measuring_options, carry_out, measure_options_of
from dlbricks_tui.settings.cutting import LEVEL
from dlbricks_tui.settings.variant import BATCH, PRECISION, RUNTIME, USUAL_EXECUTION

_DECOYS, _MOST_DECOYS = 3, 10_000


def register(parser: Parser) -> None:
    """Add the actions of `suite`."""
    parser.add_actions()
    _add_export(parser)
    running = parser.add_action("run", "measure a suite on this host, which needs no models", run_suite, json=False)
    about = "the file or folder that `dlbricks suite export` has written"
    running.add_argument("suite", metavar="SUITE", type=path_in, help=about)
    running.add_file("-o", "--output", about="the file for the results", required=True)
    add_measuring_options(running)
    running.add_schema("measuring.RunResult")
    about = "import the results of a suite that was exported here"
    importing = parser.add_action("import", about, import_suite)
    importing.add_file("file", about="a file that `dlbricks suite run` has written")
    importing.add_file("--key", about="the key to the suite (default: the one that export kept)")


def _add_export(parser: Parser) -> None:
    about = "write the bricks of models into a file or folder that others may read"
    exporting = parser.add_action("export", about, export_suite, json=False)
    add_models_argument(exporting, many=True)
    about = "the suite: a new file such as suite.dlbricks (a zip), or a new folder"
    exporting.add_file("-o", "--output", metavar="SUITE", about=about, required=True)
    about = "a runtime that is to measure the suite"
    exporting.add_setting(RUNTIME, many=True, default=(), about=about, usual="all here that read the models")
    exporting.add_setting(BATCH, many=True)
    exporting.add_setting(PRECISION, default=USUAL_EXECUTION[PRECISION])
    about = f"number of models to hide yours among (default: {_DECOYS})"
    exporting.add_count("--decoys", about, 0, _MOST_DECOYS, default=_DECOYS)
    exporting.add_repeatable("--decoys-from", "MODEL", "a model that may be a decoy (default: the sample models)")
    about = "make the same suite again; the seed gives the decoys away (default: random)"
    exporting.add_argument("--seed", metavar="S", help=about)
    exporting.add_file("--key", about="the file for the key (default: in the data folder)")
    exporting.add_setting(LEVEL)
    none = "names decoys, and --decoys 0 takes none: leave one of them out"
    exporting.only("--decoys-from", where=lambda it: it.decoys, why=none)
    exporting.add_json()
    exporting.add_detach()


def export_suite(args: Arguments) -> int:
    """Write the bricks of models and of decoys for others, and the key to them where only the owner reads it."""
    # Loaded here, as below: the help needs none of it.
    from dlbricks_tui.api.jobs import words_of
    from dlbricks_tui.api.suites import SuiteOptions, export_here, export_order
    from dlbricks_tui.cli.progress import JobNarration, live_console
    from dlbricks_tui.wording.jobs import untravelled

    options = SuiteOptions(
        **values_of(args, (LEVEL, BATCH, PRECISION)),
        **inputs_of(args),
        runtimes=args.runtime,
        decoys=args.decoys,
        decoys_from=args.decoys_from or (),
    )
    order = export_order(args.models, options, args.output, args.session.data, seed=args.seed, key=args.key)
    if args.detach:
        return detach("suite export", order, [it.name for it in order.sources], args)
    with closing(JobNarration(words_of("suite export", order), live_console())) as narration:
        ended = export_here(order, args.session.data, narration.take)
    if ended.written is None:
        narrate(f"{ended.state.message}; nothing was written")
        return Status.INTERRUPTED
    narrate_some(untravelled(ended.written.untravelled), "that cannot travel")
    if not ended.written.decoys:
        narrate("without decoys, a reader of the suite knows that all of it is yours")
    if args.json:
        write_json(ended.document())
    else:
        write(f"{args.output}\n")
    return Status.of(ended.written.left_out)


def run_suite(args: Arguments) -> int:
    """Measure a suite like models, and write the results into a file."""
    from dlbricks_tui.api.suites import suite_run_at

    request, absent = suite_run_at(measure_options_of(args), args.suite, args.output, args.session.data)
    for title in absent:
        narrate(f"left out: bricks for {title}, which does not measure here")
    return carry_out(args.session.new_run(request), args)


def import_suite(args: Arguments) -> int:
    """Import the results of the private models' bricks."""
    from dlbricks_tui.api.suites import import_suite_results
    from dlbricks_tui.wording.jobs import import_outcome

    with args.session.open_store() as store:
        found = import_suite_results(store, args.file, args.session.data, args.key)
    if args.json:
        write_json(found)
    narrate(f"{found.system}: {import_outcome(found)}, {found.decoys} of decoys left out")
    narrate(f"estimate with `dlbricks estimate MODEL --system {found.system}`; models: {', '.join(found.models)}")
    return Status.of(found.failed or found.missing)
