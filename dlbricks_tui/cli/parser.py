"""The parts of every command: its parser, the options that many have, and its exit status."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from dlbricks_tui.cli.output import write, write_json
from dlbricks_tui.errors import UserError

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

# The object that a group of commands registers with; a string, as argparse's class is generic for type checkers only.
Groups: TypeAlias = "argparse._SubParsersAction[Parser]"
# Options whose values may begin with a hyphen.
_OF_ANY_WORD = ("--sort",)


class Status(IntEnum):
    """The exit status of a command."""

    DONE = 0
    DONE_WITH_FAILURES = 1
    BAD_INPUT = 2
    INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class FromConfig:
    """The default of an option whose value comes from a setting."""

    setting: str


class UsageError(UserError):
    """A command line that dlbricks does not understand."""


class Parser(argparse.ArgumentParser):
    """A parser that raises UsageError, and takes `--data-dir` before and after the command."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)
        self.add_argument(
            "--data-dir",
            metavar="DIR",
            # An absent option after the command must not undo one before it.
            default=argparse.SUPPRESS,
            help="the folder of your results, caches, settings and logs "
            "(default: DLBRICKS_DATA_DIR, else the data folder of the platform)",
        )

    def error(self, message: str) -> NoReturn:
        """Raise the complaint, with the command that explains the usage."""
        raise UsageError(f"{message} (see `{self.prog} --help`)")

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """Write the help to standard output."""
        write(self.format_help())


def with_hyphens_joined(arguments: Sequence[str]) -> list[str]:
    """Return `--sort -when` as `--sort=-when`, as argparse takes every word with a hyphen for an option."""
    joined: list[str] = []
    for word in arguments:
        if joined and joined[-1] in _OF_ANY_WORD and word.startswith("-") and not word.startswith("--"):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def add_json_option(parser: Parser) -> None:
    """Take `--json`."""
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def add_quiet_option(parser: Parser) -> None:
    """Take `--quiet`."""
    parser.add_argument("-q", "--quiet", action="store_true", help="show no progress, only what failed")


def add_schema_option(parser: Parser, kind: str, *, many: bool = False) -> None:
    """Take `--json-schema`, which prints the schema of the command's JSON documents: a class of `answers.results`."""

    class PrintSchema(argparse.Action):
        def __call__(self, *_: Any) -> None:
            from dlbricks_tui.answers import results
            from dlbricks_tui.answers.documents import schema_of

            write_json(schema_of(getattr(results, kind), many=many))
            parser.exit()

    parser.add_argument(
        "--json-schema", action=PrintSchema, nargs=0, help="print the JSON schema of what --json prints, and exit"
    )
