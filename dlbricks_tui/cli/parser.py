"""The parts of every command: its parser, the options that many have, and its exit status."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from dlbricks_tui.cli.output import write, write_json
from dlbricks_tui.errors import UserError
from dlbricks_tui.settings.setting import ValueRefusedError, number, whole

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

    from dlbricks_tui.api.session import Session
    from dlbricks_tui.config.config import Config, Sources
    from dlbricks_tui.settings.setting import Setting, ValueKind

# The limits of options that several commands have.
_MOST_SHOWN, _MOST_SPEED = 1_000_000, 1e6
# Options whose values may begin with a hyphen.
_OF_ANY_WORD = ("--sort",)


class Arguments(argparse.Namespace):
    """The parsed arguments of a command: its options, and what `main` adds. Values of settings replace each FromConfig.

    If a command sets `reads_config` to False, it has no `config` and works with faulty settings.
    """

    # The data folder, and all questions about it.
    session: Session
    sources: Sources
    config: Config
    # The options that the command line leaves to the settings, each with the name of its setting.
    from_config: Mapping[str, str]
    # When the command began, by the monotonic clock.
    began: float


class Handler(Protocol):
    """A function that carries out a command and returns the exit status."""

    def __call__(self, args: Arguments, /) -> int: ...


class Status(IntEnum):
    """The exit status of a command."""

    DONE = 0
    DONE_WITH_FAILURES = 1
    BAD_INPUT = 2
    INTERRUPTED = 130

    @classmethod
    def of(cls, failures: object) -> Status:
        """Return the status of a command with or without failures."""
        return cls.DONE_WITH_FAILURES if failures else cls.DONE


@dataclass(frozen=True, slots=True)
class FromConfig:
    """The default of an option whose value comes from a setting."""

    setting: str


@dataclass(frozen=True, slots=True)
class DocumentKind:
    """The class of a command's JSON documents, by its module in `api`; `many`: it prints a list of them."""

    module: str
    name: str
    many: bool

    def loaded(self) -> Any:
        """Return the class, or the union of several."""
        return getattr(import_module(f"dlbricks_tui.api.{self.module}"), self.name)

    def schema(self) -> dict[str, Any]:
        """Return the schema of the documents."""
        # Loaded here: other calls of the command need no schema.
        from dlbricks_tui.api.documents import schema_of

        return schema_of(self.loaded(), many=self.many)


class UsageError(UserError):
    """A command line that dlbricks does not understand."""


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


def path_in(text: str) -> Path:
    """Return the path in a text."""
    if not text:
        # An unset variable of a script, which would name its working folder.
        raise argparse.ArgumentTypeError("the path is empty")
    return Path(text)


# The default of an option is that of its setting.
OWN: Any = object()


class Parser(argparse.ArgumentParser):
    """A parser that raises UsageError, and takes `--data-dir` before and after the command.

    `register` adds the options of a command as soon as the command is given: a command that is not costs no time.

    Methods that add options take a group of argparse, such as options that exclude each other, as `to`.
    """

    def __init__(self, register: Callable[[Parser], None] | None = None, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)
        # From Python 3.14 on, argparse colours its help with codes that `write` escapes.
        self.color = False
        self._register = register
        self._commands: Any = None
        self._conditions: list[tuple[tuple[str, ...], Callable[[Any], object], str]] = []
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
        known, unknown = super().parse_known_args(args, namespace)
        if unknown:
            # argparse leaves it to the parser of the program, whose help has no options of commands.
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        for options, counts, why in self._conditions:
            for option in options if not counts(known) else ():
                action = self._option_string_actions[option]
                if getattr(known, action.dest, action.default) != action.default:
                    raise UsageError(f"{option} {why}")
        return known, unknown

    def only(self, *options: str, where: Callable[[Any], object], why: str) -> None:
        """Refuse options that have no effect unless the arguments are such; `why` says so and names the cure."""
        self._conditions.append((options, where, why))

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

    def add_actions(self) -> None:
        """Let a command have actions; without one it prints its help."""

        def show_help(_: Arguments) -> int:
            self.print_help()
            return Status.DONE

        self.set_defaults(handler=show_help)
        self._commands = self.add_subparsers(title="actions", metavar="ACTION")

    def add_action(self, name: str, about: str, handler: Handler, *, json: bool = True, **more: Any) -> Parser:
        """Add an action; `more` is for argparse's parser."""
        parser: Parser = self._commands.add_parser(name, help=about, **more)
        parser.set_defaults(handler=handler)
        if json:
            parser.add_json()
        return parser

    def add_listing(self, about: str, handler: Handler) -> None:
        """Let a command have actions, of which `list` is what it does without one."""
        self.add_json()
        self.add_actions()
        self.set_defaults(handler=handler)
        self.add_action("list", f"{about} (as `{self.prog.rpartition(' ')[2]}` does by itself)", handler)

    def end(self, handler: Handler, document: str = "", *, many: bool = False, quiet: bool = False) -> None:
        """Add the handler of a command, `--quiet`, and `--json` with the schema of its documents."""
        if quiet:
            self.add_quiet()
        self.add_json()
        if document:
            self.add_schema(document, many=many)
        self.set_defaults(handler=handler)

    def add_flag(self, *options: str, about: str, to: Any = None) -> None:
        """Take an option without a value."""
        (to or self).add_argument(*options, action="store_true", help=about)

    def add_file(self, *options: str, about: str, metavar: str = "FILE", to: Any = None, **more: Any) -> None:
        """Take the path of a file."""
        (to or self).add_argument(*options, metavar=metavar, type=path_in, help=about, **more)

    def add_count(self, option: str, about: str, least: int = 1, most: int = _MOST_SHOWN, **more: Any) -> None:
        """Take a whole number."""
        self.add_argument(option, metavar="N", type=Typed(whole(least, most)), help=about, **more)

    def add_repeatable(self, option: str, metavar: str, about: str, **more: Any) -> None:
        """Take an option that may be given several times."""
        self.add_argument(option, metavar=metavar, action="append", default=[], help=f"{about}; repeatable", **more)

    def add_json(self) -> None:
        """Take `--json`, before an action or behind it: an absent one there must not undo one here."""
        about = "print one JSON document"
        self.add_argument("--json", action="store_true", default=argparse.SUPPRESS, help=about)

    def add_schema(self, document: str, *, many: bool = False) -> None:
        """Take `--json-schema`, which prints the schema of a class in `api`, such as `jobs.JobSummary`."""
        parser, (module, _, name) = self, document.rpartition(".")

        class PrintSchema(argparse.Action):
            def __call__(self, *_: Any) -> None:
                write_json(self.const.schema())
                parser.exit()

        about = "print the JSON schema of what --json prints, and exit"
        self.add_argument(
            "--json-schema", action=PrintSchema, nargs=0, const=DocumentKind(module, name, many), help=about
        )

    def add_formats(self, *, lines: bool = False) -> None:
        """Take `--json` and `--csv`, and `--jsonl` where a command prints many documents."""
        formats = self.add_mutually_exclusive_group()
        self.add_flag("--json", about="print one JSON document", to=formats)
        if lines:
            self.add_flag("--jsonl", about="print a JSON document per result", to=formats)
        self.add_flag("--csv", about="print comma-separated values", to=formats)

    def add_quiet(self) -> None:
        """Take `--quiet`."""
        self.add_flag("-q", "--quiet", about="show no progress, only what failed")

    def add_detach(
        self,
        about: str = "work in a separate process; `dlbricks jobs watch` shows it",
        to: argparse._MutuallyExclusiveGroup | None = None,
    ) -> None:
        """Take `--detach`, in a group of options that exclude each other."""
        self.add_flag("--detach", about=about, to=to)

    def add_speed(self, *, default: float = 1.0) -> None:
        """Take `--speed`."""
        about = f"how many seconds of the run pass in one second, such as 10 or 0.5 (default: {default:g})"
        self.add_argument("--speed", metavar="N", type=Typed(number(_MOST_SPEED)), default=default, help=about)

    def add_setting(
        self,
        setting: Setting[Any],
        *,
        many: bool = False,
        default: Any = OWN,
        about: str = "",
        usual: str = "",
        to: Any = None,
    ) -> None:
        """Take a setting, or several of its values; `usual` says what counts without the option."""
        if default is OWN:
            default = FromConfig(setting.config) if setting.config else () if many else setting.default
        told = (about or setting.about).replace("%", "%%")
        counts = "that of your settings" if setting.config and setting.default is None else setting.usual
        usual = f" (default: {usual or counts})" if usual or counts else ""
        if setting.kind.is_flag:
            action = argparse.BooleanOptionalAction if default is None else "store_true"
            (to or self).add_argument(setting.option, action=action, default=default, help=told + usual)
            return
        (to or self).add_argument(
            *([f"-{setting.letter}"] if setting.letter else []),
            setting.option,
            metavar=setting.kind.sign,
            type=Typed(setting.many if many else setting.kind),
            default=default,
            help=f"{told}{', or several with commas' * many}{usual}",
        )

    def add_settings(self, *settings: Setting[Any], many: bool = False, to: Any = None) -> None:
        """Take settings with what they say of themselves."""
        for setting in settings:
            self.add_setting(setting, many=many, to=to)


def with_hyphens_joined(arguments: Sequence[str]) -> list[str]:
    """Return `--sort -when` as `--sort=-when`: argparse takes every word that begins with a hyphen for an option."""
    joined: list[str] = []
    for word in arguments:
        if joined and joined[-1] in _OF_ANY_WORD and word.startswith("-") and not word.startswith("--"):
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined
