"""`dlbricks suite`: hand on the bricks of private models, have them measured elsewhere, and take up the results."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dlbricks_tui.cli.choices import add_cutting_options, add_models_argument, cutting, library, load_all
from dlbricks_tui.cli.output import Json, narrate, write, write_json
from dlbricks_tui.cli.parser import Groups, Parser, UsageError, add_json_option
from dlbricks_tui.cli.run import add_measuring_options, measuring
from dlbricks_tui.cli.status import Status
from dlbricks_tui.wording.numbers import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dlbricks_tui.bricks.decomposition import Decomposition
    from dlbricks_tui.models.graph import Level, Shape
    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.models.loading import Loader
    from dlbricks_tui.share.exporting import Assembled
    from dlbricks_tui.share.importing import SuiteImport
    from dlbricks_tui.share.seed import Seed

_DECOYS = 3
_MOST_NAMED = 20


def register(groups: Groups) -> None:
    """Adds `suite` with its actions."""
    parser = groups.add_parser("suite", help="have the bricks of private models measured where the models are not")
    parser.set_defaults(handler=lambda args: _help(parser))
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    _register_export(actions)
    running = actions.add_parser("run", help="measure a suite on this host, which needs no models")
    running.add_argument("suite", metavar="DIR", type=Path, help="a folder that `dlbricks suite export` has written")
    running.add_argument("-o", "--output", metavar="FILE", type=Path, required=True, help="where the results go")
    add_measuring_options(running)
    running.set_defaults(handler=run_suite)
    importing = actions.add_parser("import", help="take up the results of a suite that was exported here")
    importing.add_argument("file", metavar="FILE", type=Path, help="a file that `dlbricks suite run` has written")
    importing.add_argument(
        "--key", metavar="FILE", type=Path, help="the key to the suite (default: where export kept it)"
    )
    add_json_option(importing)
    importing.set_defaults(handler=import_suite)


def export_suite(args: argparse.Namespace) -> int:
    """Writes the bricks of models and of decoys into a folder, and the key to it where only the owner reads it."""
    from dlbricks_tui.bricks.decomposition import decompose
    from dlbricks_tui.models.framework import WorkerFramework
    from dlbricks_tui.models.graph import Level
    from dlbricks_tui.models.loading import Loader
    from dlbricks_tui.runtime.registry import Registry
    from dlbricks_tui.share.exporting import arriving, assemble, write_assembled
    from dlbricks_tui.share.formats import refuse_other_formats
    from dlbricks_tui.share.key_file import key_path
    from dlbricks_tui.share.seed import fresh_seed, seed_of
    from dlbricks_tui.share.unpacking import Unpacker

    if args.decoys < 0:
        raise UsageError(f"--decoys {args.decoys}: give a number of models, or 0 for none")
    level, seed = Level(args.level), fresh_seed() if args.seed is None else seed_of(args.seed)
    runtime = Registry(args.data.path).preferred()
    with WorkerFramework(runtime, args.data.log / "framework.log") as framework:
        loader = Loader(args.data.cache, framework)
        sources = library(args).find_all(args.models)
        refuse_other_formats(sources)
        models = [decompose(graph, cutting(args)) for _, graph in load_all(loader, sources, args)]
        decoys = _decoys(args, loader, level, seed, sources, models)
        sent = f"{counted(len(models), 'model')} and {counted(len(decoys), 'decoy')}"
        narrate(f"sending {sent} on their way, to see whether they arrive")
        check = arriving(Unpacker(framework, level, _memory_bytes()))
        assembled = assemble(models, decoys, seed, level, check)
    key_file = args.key or key_path(args.data, assembled.manifest.suite)
    write_assembled(assembled, args.output, key_file)
    _tell_export(args, assembled, len(decoys), key_file)
    return Status.DONE_WITH_FAILURES if len(models) < len(sources) else Status.DONE


def run_suite(args: argparse.Namespace) -> int:
    """Measures a suite like models, and writes the results into a file."""
    from dlbricks_tui.cli.carrying_out import carry_out
    from dlbricks_tui.runs.launch import create_run
    from dlbricks_tui.runs.request import SuiteChoice
    from dlbricks_tui.share.formats import CARRIED, refuse_other_runtimes
    from dlbricks_tui.share.suite_folder import SuiteFolder

    # What is no suite is refused before a run of it waits for its turn.
    manifest = SuiteFolder(args.suite).manifest
    if not args.output.absolute().parent.is_dir():
        raise UsageError(f"-o {args.output}: there is no folder {args.output.absolute().parent}")
    if args.output.is_dir():
        raise UsageError(f"-o {args.output}: that is a folder; name a file in it")
    choice = SuiteChoice(args.suite.absolute(), args.output.absolute())
    how = measuring(args, {CARRIED})
    refuse_other_runtimes(how.runtime)
    request = replace(how, suite=choice, level=manifest.level)
    return carry_out(args, create_run(request, args.data), request)


def import_suite(args: argparse.Namespace) -> int:
    """Takes up the results of the private models' bricks."""
    from dlbricks_tui.cli.results_store import open_store
    from dlbricks_tui.share.importing import import_results
    from dlbricks_tui.share.key_file import key_path, read_key
    from dlbricks_tui.share.results_file import read_results

    results = read_results(args.file)
    key = read_key(args.key or key_path(args.data, results.suite))
    with open_store(args) as store:
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
        help=f"how many models to hide yours among (default: {_DECOYS})",
    )
    parser.add_argument(
        "--decoys-from",
        metavar="MODEL",
        action="append",
        default=[],
        help="a model that may be a decoy (default: the sample models); repeatable",
    )
    parser.add_argument(
        "--seed", metavar="S", help="makes the same suite again; who guesses it knows the decoys (default: by chance)"
    )
    parser.add_argument("--key", metavar="FILE", type=Path, help="where the key goes (default: into the data folder)")
    add_cutting_options(parser, level="fused")
    add_json_option(parser)
    parser.set_defaults(handler=export_suite)


def _decoys(
    args: argparse.Namespace,
    loader: Loader,
    level: Level,
    seed: Seed,
    private: Sequence[ModelSource],
    models: Sequence[Decomposition],
) -> tuple[Decomposition, ...]:
    from dlbricks_tui.bricks.decomposition import decompose
    from dlbricks_tui.share.decoys import chosen_decoys

    mine = {source.path for source in private}
    offered = library(args).find_all(args.decoys_from) if args.decoys_from else library(args).samples()
    pool = [source for source in offered if source.path not in mine]

    def take(source: ModelSource, shapes: Mapping[str, Shape]) -> Decomposition:
        return decompose(loader.load(source, level, shapes), cutting(args))

    return chosen_decoys(pool, args.decoys, seed, models, take)


def _memory_bytes() -> int:
    from dlbricks_tui.host.fingerprint import fingerprint

    return fingerprint().memory_bytes


def _tell_export(args: argparse.Namespace, assembled: Assembled, decoys: int, key_file: Path) -> None:
    mine, others = len(assembled.key.meanings), len(assembled.key.decoys)
    for left_out in assembled.left_out[:_MOST_NAMED]:
        narrate(f"cannot travel: {left_out.label}: it {left_out.reason}")
    if untold := assembled.left_out[_MOST_NAMED:]:
        narrate(f"and {len(untold)} more that cannot travel, which --json lists")
    if not decoys:
        narrate("without decoys, whoever reads the suite knows that all of it is yours")
    brought = f"{counted(mine, 'brick')} of yours among {others} of {counted(decoys, 'decoy')}"
    narrate(f"{brought}; the key is {key_file}: keep it to yourself")
    if args.json:
        write_json(
            {
                "suite": assembled.manifest.suite,
                "path": str(args.output.absolute()),
                "key": str(key_file.absolute()),
                "bricks": mine,
                "decoys": others,
                "left_out": [{"label": each.label, "reason": each.reason} for each in assembled.left_out],
            }
        )
    else:
        write(f"{args.output}\n")


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
