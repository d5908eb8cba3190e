"""The parts of every command: its parser, the options that many have, and its exit status."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeAlias

from dlbricks_tui.cli.output import write, write_json
from dlbricks_tui.errors import UserError
from dlbricks_tui.settings.setting import ValueRefusedError, number

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

    from dlbricks_tui.settings.setting import Setting, ValueKind

# The actions of a command; a string, as argparse's class is generic for type checkers only.
Actions: TypeAlias = "argparse._SubParsersAction[Parser]"
# The limits of options that several commands have.
MOST_SHOWN, _MOST_SPEED = 1_000_000, 1e6
# Options whose values may begin with a hyphen.
_OF_ANY_WORD = ("--sort",)


class Handler(Protocol):
    """A function that carries out a command and returns the exit status.

    The parsed arguments include `data`, the user's DataFolder, and `config`, the settings. Values of settings replace
    each FromConfig. If a command sets `reads_config` to False, it has no `config` and works with faulty settings.
    """

    def __call__(self, args: argparse.Namespace, /) -> int: ...


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


@dataclass(frozen=True, slots=True)
class DocumentKind:
    """The class of a command's JSON documents, by its module in `answers`; `many`: it prints a list of them."""

    module: str
    name: str
    many: bool

    def loaded(self) -> Any:
        """Return the class, or the union of several."""
        return getattr(import_module(f"dlbricks_tui.answers.{self.module}"), self.name)


class UsageError(UserError):
    """A command line that dlbricks does not understand."""


class Parser(argparse.ArgumentParser):
    """A parser that raises UsageError, and takes `--data-dir` before and after the command.

    `register` adds the options of a command as soon as the command is given: a command that is not costs no time.
    """

    def __init__(self, register: Callable[[Parser], None] | None = None, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)
        # From Python 3.14 on, argparse colours its help with codes that `write` escapes.
        self.color = False
        self._register = register
        self.add_argument(
            "--data-dir",
            metavar="DIR",
            # An absent option after the command must not undo one before it.
            default=argparse.SUPPRESS,
            help="the folder of your results, caches, settings and logs "
            "(default: DLBRICKS_DATA_DIR, else the data folder of the platform)",
        )

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse the arguments; the parser of a command gets its options first."""
        self.complete()
        return super().parse_known_args(args, namespace)

    def complete(self) -> None:
        """Add the options of the command, unless it has them."""
        register, self._register = self._register, None
        if register is not None:
            register(self)

    def error(self, message: str) -> NoReturn:
        """Raise the complaint, with the command that explains the usage."""
        raise UsageError(f"{message} (see `{self.prog} --help`)")

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        """Write the help to standard output."""
        write(self.format_help())


def with_hyphens_joined(arguments: Sequence[str]) -> list[str]:
    """Return `--sort -when` as `--sort=-when`: argparse takes every word that begins with a hyphen for an option."""
    joined: list[str] = []
    for word in arguments:
        if joined and joined[-1] in _OF_ANY_WORD and word.startswith("-") and not word.startswith("--"):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def add_actions(parser: Parser, *, required: bool = False) -> Actions:
    """Let a command have actions."""
    return parser.add_subparsers(title="actions", metavar="ACTION", required=required)


def add_action(actions: Actions, name: str, about: str, handler: Handler, *, json: bool = True, **more: Any) -> Parser:
    """Add an action to a command; `more` is for argparse's parser."""
    parser = actions.add_parser(name, help=about, **more)
    parser.set_defaults(handler=handler)
    if json:
        add_json_option(parser)
    return parser


def add_listing(parser: Parser, about: str, handler: Handler) -> Actions:
    """Let a command have actions, of which `list` is what it does without one."""
    add_json_option(parser)
    parser.set_defaults(handler=handler)
    actions = add_actions(parser)
    add_action(actions, "list", f"{about} (as `{parser.prog.rpartition(' ')[2]}` does by itself)", handler)
    return actions


def add_json_option(parser: Parser) -> None:
    """Take `--json`."""
    parser.add_argument("--json", action="store_true", help="print one JSON document")


def add_format_options(parser: Parser, *, lines: bool = False) -> None:
    """Take `--json` and `--csv`, and `--jsonl` where a command prints many documents."""
    formats = parser.add_mutually_exclusive_group()
    formats.add_argument("--json", action="store_true", help="print one JSON document")
    if lines:
        formats.add_argument("--jsonl", action="store_true", help="print a JSON document per result")
    formats.add_argument("--csv", action="store_true", help="print comma-separated values")


def add_quiet_option(parser: Parser) -> None:
    """Take `--quiet`."""
    parser.add_argument("-q", "--quiet", action="store_true", help="show no progress, only what failed")


def add_job_options(watching: Parser, resuming: Parser, replaying: Parser | None = None) -> None:
    """Add the options of the actions that show a job, the same for all kinds."""
    add_quiet_option(watching)
    if replaying is not None:
        add_speed_option(replaying)
        add_quiet_option(replaying)
    resuming.add_argument("--detach", action="store_true", help="continue in a separate process")
    add_quiet_option(resuming)


def add_speed_option(parser: Parser, *, default: float = 1.0) -> None:
    """Take `--speed`."""
    parser.add_argument(
        "--speed",
        metavar="N",
        type=Typed(number(_MOST_SPEED)),
        default=default,
        help=f"how many seconds of the run pass in one second, such as 10 or 0.5 (default: {default:g})",
    )


@dataclass(frozen=True, slots=True)
class Typed:
    """The type of an option whose values are of a kind."""

    kind: ValueKind[Any]

    def __call__(self, text: str) -> Any:
        """Return the value in a text."""
        try:
            return self.kind.read(text)
        except ValueRefusedError as refusal:
            raise argparse.ArgumentTypeError(f"{text[:80]!r}: {refusal}") from None


# The default of an option is that of its setting.
OWN: Any = object()


def add_setting(
    parser: Any, setting: Setting[Any], *, many: bool = False, default: Any = OWN, about: str = "", usual: str = ""
) -> None:
    """Take a setting, or several of its values; `usual` says what counts without the option."""
    if default is OWN:
        default = FromConfig(setting.config) if setting.config else () if many else setting.default
    told = (about or setting.about).replace("%", "%%")
    counts = "that of your settings" if setting.config and setting.default is None else setting.usual
    usual = f" (default: {usual or counts})" if usual or counts else ""
    if setting.kind.is_flag:
        action = argparse.BooleanOptionalAction if default is None else "store_true"
        parser.add_argument(setting.option, action=action, default=default, help=told + usual)
        return
    letter = (f"-{setting.letter}",) if setting.letter else ()
    parser.add_argument(
        *letter,
        setting.option,
        metavar=setting.kind.sign,
        type=Typed(setting.many if many else setting.kind),
        default=default,
        help=f"{told}{', or several with commas' * many}{usual}",
    )


def add_settings(parser: Any, *settings: Setting[Any], many: bool = False) -> None:
    """Take settings with what they say of themselves."""
    for setting in settings:
        add_setting(parser, setting, many=many)


def add_repeatable(parser: Parser, option: str, metavar: str, about: str, **more: Any) -> None:
    """Take an option that may be given several times."""
    parser.add_argument(option, metavar=metavar, action="append", default=[], help=f"{about}; repeatable", **more)


def add_schema_option(parser: Parser, kind: str, *, module: str = "estimates", many: bool = False) -> None:
    """Take `--json-schema`, which prints the schema of the command's JSON documents: a class in `answers`."""

    class PrintSchema(argparse.Action):
        def __call__(self, *_: Any) -> None:
            write_json(schema_of_command(self.const))
            parser.exit()

    parser.add_argument(
        "--json-schema",
        action=PrintSchema,
        nargs=0,
        const=DocumentKind(module, kind, many),
        help="print the JSON schema of what --json prints, and exit",
    )


def schema_of_command(printed: DocumentKind) -> dict[str, Any]:
    """Return the schema of the documents that a command prints."""
    # Loaded here: other calls of the command need no schema.
    from dlbricks_tui.answers.documents import schema_of

    return schema_of(printed.loaded(), many=printed.many)
