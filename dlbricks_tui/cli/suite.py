"""`dlbricks suite`: export the bricks of private models, measure them elsewhere, and import the results."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dlbricks_tui.cli.options import add_cutting_options, add_models_argument, cutting_of, shapes_of
from dlbricks_tui.cli.output import Json, narrate, write, write_json
from dlbricks_tui.cli.parser import Groups, Parser, Status, UsageError, add_json_option, add_schema_option
from dlbricks_tui.cli.run import add_measuring_options, carry_out, measure_options_of, showing_of
from dlbricks_tui.cli.store import load_all, open_store
from dlbricks_tui.wording.numbers import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dlbricks_tui.bricks.decomposition import Decomposition
    from dlbricks_tui.models.graph import Shape
    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.share.exporting import Assembled
    from dlbricks_tui.share.results_file import SuiteImport

_DECOYS = 3
_MOST_NAMED = 20


def register(groups: Groups) -> None:
    """Add `suite` with its actions."""
    parser = groups.add_parser("suite", help="have the bricks of private models measured where the models are not")
    parser.set_defaults(handler=lambda args: _help(parser))
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    _register_export(actions)
    running = actions.add_parser("run", help="measure a suite on this host, which needs no models")
    running.add_argument("suite", metavar="DIR", type=Path, help="a folder that `dlbricks suite export` has written")
    running.add_argument("-o", "--output", metavar="FILE", type=Path, required=True, help="the file for the results")
    add_measuring_options(running)
    add_schema_option(running, "RunResult")
    running.set_defaults(handler=run_suite)
    importing = actions.add_parser("import", help="import the results of a suite that was exported here")
    importing.add_argument("file", metavar="FILE", type=Path, help="a file that `dlbricks suite run` has written")
    importing.add_argument(
        "--key", metavar="FILE", type=Path, help="the key to the suite (default: the one that export kept)"
    )
    add_json_option(importing)
    importing.set_defaults(handler=import_suite)


def export_suite(args: argparse.Namespace) -> int:
    """Write the bricks of models and of decoys into a folder, and the key to them where only the owner reads it."""
    from dlbricks_tui.answers.opening import library
    from dlbricks_tui.bricks.decomposition import decompose
    from dlbricks_tui.models.frameworks import WorkerFramework
    from dlbricks_tui.models.graph import Level
    from dlbricks_tui.models.loading import Loader
    from dlbricks_tui.runtime.registry import Registry
    from dlbricks_tui.share.decoys import chosen_decoys
    from dlbricks_tui.share.exporting import assemble, round_trip, write_assembled
    from dlbricks_tui.share.key_file import key_path
    from dlbricks_tui.share.suite import fresh_seed, refuse_other_formats, seed_of
    from dlbricks_tui.share.unpacking import Unpacker

    if args.decoys < 0:
        raise UsageError(f"--decoys {args.decoys}: give a number of models, or 0 for none")
    level, seed = Level(args.level), fresh_seed() if args.seed is None else seed_of(args.seed)
    runtime = Registry(args.data.path).preferred()
    with WorkerFramework(runtime, args.data.log / "framework.log") as framework:
        loader = Loader(args.data.cache, framework)
        known, cutting = library(args.data), cutting_of(args)
        sources = known.find_all(args.models)
        refuse_other_formats(sources)
        models = [decompose(it.graph, cutting) for it in load_all(loader, sources, level, shapes_of(args))]
        mine = {source.path for source in sources}
        offered = known.find_all(args.decoys_from) if args.decoys_from else known.samples()

        def take(source: ModelSource, shapes: Mapping[str, Shape]) -> Decomposition:
            return decompose(loader.load(source, level, shapes), cutting)

        pool = [source for source in offered if source.path not in mine]
        decoys = chosen_decoys(pool, args.decoys, seed, models, take)
        sent = f"{counted(len(models), 'model')} and {counted(len(decoys), 'decoy')}"
        narrate(f"checking that the bricks of {sent} arrive unchanged")
        check = round_trip(Unpacker(framework, level, _memory_bytes()))
        assembled = assemble(models, decoys, seed, level, check)
    key_file = args.key or key_path(args.data, assembled.manifest.suite)
    write_assembled(assembled, args.output, key_file)
    _tell_export(assembled, len(decoys), key_file)
    if args.json:
        write_json(_export_document(assembled, args.output, key_file))
    else:
        write(f"{args.output}\n")
    return Status.DONE_WITH_FAILURES if len(models) < len(sources) else Status.DONE


def run_suite(args: argparse.Namespace) -> int:
    """Measure a suite like models, and write the results into a file."""
    from dlbricks_tui.answers.measuring import suite_request
    from dlbricks_tui.runs.launch import create_run
    from dlbricks_tui.runs.request import SuiteChoice
    from dlbricks_tui.share.suite import SUITE_FORMAT, SuiteFolder, refuse_other_runtimes

    # A folder that is no suite is refused before a run of it waits for its turn.
    manifest = SuiteFolder(args.suite).manifest
    if not args.output.absolute().parent.is_dir():
        raise UsageError(f"-o {args.output}: there is no folder {args.output.absolute().parent}")
    if args.output.is_dir():
        raise UsageError(f"-o {args.output}: that is a folder; name a file in it")
    choice = SuiteChoice(args.suite.absolute(), args.output.absolute())
    request = replace(
        suite_request(measure_options_of(args), SUITE_FORMAT, args.data), suite=choice, level=manifest.level
    )
    refuse_other_runtimes(request.runtime)
    return carry_out(create_run(request, args.data), request, args.data, showing_of(args))


def import_suite(args: argparse.Namespace) -> int:
    """Import the results of the private models' bricks."""
    from dlbricks_tui.share.key_file import key_path, read_key
    from dlbricks_tui.share.results_file import import_results, read_results

    results = read_results(args.file)
    key = read_key(args.key or key_path(args.data, results.suite))
    with open_store(args.data) as store:
        found = import_results(store, key, results, str(args.file))
    if args.json:
        write_json(_import_document(found))
    _tell_import(found)
    return Status.DONE_WITH_FAILURES if found.failed or found.missing else Status.DONE


def _register_export(actions: Groups) -> None:
    parser = actions.add_parser("export", help="write the bricks of models into a folder that others may read")
    add_models_argument(parser, many=True)
    parser.add_argument("-o", "--output", metavar="DIR", type=Path, required=True, help="the folder, which is made")
    parser.add_argument(
        "--decoys",
        metavar="N",
        type=int,
        default=_DECOYS,
        help=f"number of models to hide yours among (default: {_DECOYS})",
    )
    parser.add_argument(
        "--decoys-from",
        metavar="MODEL",
        action="append",
        default=[],
        help="a model that may be a decoy (default: the sample models); repeatable",
    )
    parser.add_argument(
        "--seed",
        metavar="S",
        help="make the same suite again; the seed gives the decoys away (default: random)",
    )
    parser.add_argument("--key", metavar="FILE", type=Path, help="the file for the key (default: in the data folder)")
    add_cutting_options(parser, level="fused")
    add_json_option(parser)
    parser.set_defaults(handler=export_suite)


def _memory_bytes() -> int:
    from dlbricks_tui.host.fingerprint import fingerprint

    return fingerprint().memory_bytes


def _tell_export(assembled: Assembled, decoys: int, key_file: Path) -> None:
    mine, others = len(assembled.key.meanings), len(assembled.key.decoys)
    for left_out in assembled.left_out[:_MOST_NAMED]:
        narrate(f"cannot travel: {left_out.label}: it {left_out.reason}")
    if untold := assembled.left_out[_MOST_NAMED:]:
        narrate(f"and {len(untold)} more that cannot travel, which --json lists")
    if not decoys:
        narrate("without decoys, a reader of the suite knows that all of it is yours")
    brought = f"{counted(mine, 'brick')} of yours among {others} of {counted(decoys, 'decoy')}"
    narrate(f"{brought}; the key is {key_file}: keep it to yourself")


def _export_document(assembled: Assembled, folder: Path, key_file: Path) -> Json:
    return {
        "suite": assembled.manifest.suite,
        "path": str(folder.absolute()),
        "key": str(key_file.absolute()),
        "bricks": len(assembled.key.meanings),
        "decoys": len(assembled.key.decoys),
        "left_out": [{"label": each.label, "reason": each.reason} for each in assembled.left_out],
    }


def _import_document(found: SuiteImport) -> Json:
    return {
        "system": found.system,
        "runtime": found.runtime,
        "models": list(found.models),
        "new": found.new,
        "known": found.known,
        "decoys": found.decoys,
        "failed": found.failed,
        "missing": found.missing,
        "calibrations": found.calibrations,
    }


def _tell_import(found: SuiteImport) -> None:
    narrate(
        f"{found.system}: {found.new} bricks of yours are new, {found.known} were known; "
        f"{found.failed} failed there, {found.missing} were not measured, {found.decoys} of decoys are left out"
    )
    narrate(f"`dlbricks estimate MODEL --system {found.system}` composes from them: {', '.join(found.models)}")


def _help(parser: Parser) -> int:
    parser.print_help()
    return Status.DONE
