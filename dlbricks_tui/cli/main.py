"""The command line: finds the command and turns every failure into one line and an exit status."""

import argparse
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from dlbricks_tui import __version__
from dlbricks_tui.cli import corpus, doctor, estimate, models, results, run, runs, runtimes, systems, tree
from dlbricks_tui.cli.output import ReaderGoneError, narrate, write
from dlbricks_tui.cli.parser import Groups, Parser, UsageError, with_hyphens_joined
from dlbricks_tui.cli.status import Status
from dlbricks_tui.errors import UserError
from dlbricks_tui.settings import DATA_FOLDER_VARIABLE, DataFolder, NoHomeFolderError, data_folder


class CommandGroup(Protocol):
    """A module of commands; it imports the rooms it needs inside its handlers, so that `--help` stays quick.

    Each command sets `handler` to a function of the parsed arguments that returns the exit status; among the
    arguments it finds `data`, the user's DataFolder.
    """

    def register(self, groups: Groups) -> None:
        """Adds the commands of this group."""


# In the order in which `--help` lists them.
GROUPS: tuple[CommandGroup, ...] = (models, tree, corpus, run, runs, estimate, results, systems, runtimes, doctor)


def main(
    arguments: Sequence[str],
    groups: Sequence[CommandGroup] = GROUPS,
    without_command: Callable[[DataFolder], int] | None = None,
) -> int:
    """Runs one command and returns its exit status; who names none is shown the help, unless told otherwise."""
    try:
        parser = _parser(groups)
        if without_command is not None:
            parser.set_defaults(handler=lambda args: without_command(args.data))
        args = parser.parse_args(with_hyphens_joined(arguments))
        args.data = _data_folder(args.data_dir)
        return _run(args.handler, args)
    except ReaderGoneError:
        return Status.DONE
    except UserError as error:
        narrate(f"dlbricks: error: {error}")
        return Status.BAD_INPUT
    except KeyboardInterrupt:
        narrate("dlbricks: interrupted")
        return Status.INTERRUPTED


def _run(handler: Callable[[argparse.Namespace], int], args: argparse.Namespace) -> int:
    try:
        return handler(args)
    except (UserError, ReaderGoneError):
        raise
    except Exception as error:  # noqa: BLE001 - the last resort: a person gets a line, a bug report the traceback
        from dlbricks_tui.crash_log import keep_traceback

        file = keep_traceback(error, args.data.log)
        details = f"the details are in {file}" if file else "no file could be written with the details"
        narrate(f"dlbricks: error: unexpected {type(error).__name__}: {error}; this is a fault of dlbricks, {details}")
        return Status.DONE_WITH_FAILURES


def _data_folder(chosen: str | None) -> DataFolder:
    cure = f"name another with --data-dir or {DATA_FOLDER_VARIABLE}"
    try:
        folder = data_folder(chosen)
        standing = next(path for path in (folder.path, *folder.path.parents) if path.exists())
        if not standing.is_dir():
            raise UsageError(f"the data folder cannot be {folder.path}: {standing} is a file; {cure}")
    except NoHomeFolderError as error:
        raise UsageError(f"there is no home folder to make {error} a path, so nowhere to keep data; {cure}") from error
    except OSError as error:
        raise UsageError(f"the data folder cannot be reached: {error}; {cure}") from error
    return folder


def _parser(groups: Sequence[CommandGroup]) -> Parser:
    parser = Parser(
        prog="dlbricks",
        description="Benchmark deep-learning models by their unique layer sequences: "
        "run each brick once, compose every model's latency. Without a command, the workbench opens in the terminal.",
    )
    parser.add_argument("--version", action=_Version)
    parser.set_defaults(data_dir=None, handler=lambda _: _help(parser))
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for group in groups:
        group.register(commands)
    return parser


def _help(parser: Parser) -> int:
    parser.print_help()
    return Status.DONE


class _Version(argparse.Action):
    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, dest=argparse.SUPPRESS, nargs=0, help="print the version and exit")

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        write(f"dlbricks {__version__}\n")
        parser.exit()
