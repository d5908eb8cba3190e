"""How the command line is parsed, alike for every group of commands."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from dlbricks_tui.cli.output import write
from dlbricks_tui.errors import UserError

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

# What a group of commands registers itself with; a string, as argparse's class is generic for type checkers only.
Groups: TypeAlias = "argparse._SubParsersAction[Parser]"


# Options whose values may begin with a hyphen.
_OF_ANY_WORD = ("--sort",)


@dataclass(frozen=True, slots=True)
class FromConfig:
    """What an option stands at while nobody has said it: the value of that setting."""

    setting: str


class UsageError(UserError):
    """The command line is not one that dlbricks understands."""


class Parser(argparse.ArgumentParser):
    """A parser that raises what is wrong, and takes `--data-dir` before and after the command."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)
        self.add_argument(
            "--data-dir",
            metavar="DIR",
            # An absent option after the command must not undo one before it.
            default=argparse.SUPPRESS,
            help="the folder of your results, caches, settings and logs "
            "(default: DLBRICKS_DATA_DIR, else the platform's own place for data)",
        )

    def error(self, message: str) -> NoReturn:
        """Raises the complaint, with the command that explains the usage."""
        raise UsageError(f"{message} (see `{self.prog} --help`)")

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """Writes the help as the data that was asked for."""
        write(self.format_help())


def with_hyphens_joined(arguments: Sequence[str]) -> list[str]:
    """`--sort -when` as `--sort=-when`: argparse takes every word with a hyphen for an option of its own."""
    joined: list[str] = []
    for word in arguments:
        if joined and joined[-1] in _OF_ANY_WORD and word.startswith("-") and not word.startswith("--"):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def add_json_option(parser: Parser) -> None:
    """Lets a command print one JSON document instead of what a person reads."""
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def add_quiet_option(parser: Parser) -> None:
    """Lets a command keep its progress to itself."""
    parser.add_argument("-q", "--quiet", action="store_true", help="show no progress, only what failed")
