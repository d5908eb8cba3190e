"""The commands as their parsers declare them: arguments, options and defaults."""

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass

from dlbricks_tui.cli.main import command_parser
from dlbricks_tui.cli.parser import DocumentKind, FromConfig, Parser

# Options of every command, which the page names once.
_OF_ALL = ("--help", "--data-dir")
_DEFAULT = re.compile(r" \(default: (.*)\)$", re.DOTALL)


@dataclass(frozen=True)
class Parameter:
    """An argument or option of a command."""

    written: str
    about: str
    default: str
    # The setting that gives the default, if one does.
    setting: str | None
    # The name that stands for it in sentences, such as `--batch`.
    name: str


@dataclass(frozen=True)
class CommandPage:
    """A command, or an action of one, without its actions."""

    name: str
    about: str
    notes: str
    parameters: tuple[Parameter, ...]
    has_json: bool
    # What `--json` prints, if it has a schema.
    document: DocumentKind | None


def commands() -> tuple[CommandPage, ...]:
    """Return all commands and their actions, in the order of the help."""
    return tuple(_below(command_parser()))


def general() -> tuple[Parameter, ...]:
    """Return the options before a command."""
    return tuple(_parameter(it) for it in _options(command_parser()))


def _below(parser: argparse.ArgumentParser) -> Iterator[CommandPage]:
    for actions in _actions_of(parser):
        # argparse keeps the line of the help beside the parser.
        about = {it.dest: it.help or "" for it in actions._choices_actions}
        for name, each in actions.choices.items():
            if isinstance(each, Parser):
                each.complete()
            yield page_of(each, about[name])
            yield from _below(each)


def page_of(parser: argparse.ArgumentParser, about: str) -> CommandPage:
    """Return a command as its page shows it."""
    options = _options(parser)
    return CommandPage(
        name=parser.prog,
        about=about,
        notes="\n\n".join(filter(None, (parser.description, parser.epilog))),
        parameters=tuple(_parameter(it) for it in options),
        has_json=any("--json" in it.option_strings for it in options),
        document=next((it.const for it in options if "--json-schema" in it.option_strings), None),
    )


def _actions_of(parser: argparse.ArgumentParser) -> "list[argparse._SubParsersAction[argparse.ArgumentParser]]":
    return [it for it in parser._actions if isinstance(it, argparse._SubParsersAction)]


def _options(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [
        it
        for it in parser._actions
        if it.help != argparse.SUPPRESS
        and not isinstance(it, argparse._SubParsersAction)
        and not set(_OF_ALL) & set(it.option_strings)
    ]


def _parameter(action: argparse.Action) -> Parameter:
    # As argparse prints it.
    help_text = (action.help or "").replace("%%", "%")
    about, told = _DEFAULT.sub("", help_text), _DEFAULT.search(help_text)
    setting = action.default.setting if isinstance(action.default, FromConfig) else None
    default = told[1] if told else ""
    is_told = isinstance(action.default, str | int | float) and not isinstance(action.default, bool)
    if not default and is_told and action.default != argparse.SUPPRESS:
        default = str(action.default)
    if action.required and action.option_strings:
        default = "required"
    written = ", ".join(action.option_strings) or _value(action)
    if action.option_strings and action.nargs != 0:
        written += f" {_value(action)}"
    return Parameter(written, about, default, setting, action.option_strings[-1] if action.option_strings else written)


def _value(action: argparse.Action) -> str:
    """Return what stands for the value, as argparse writes it."""
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if action.metavar is None and action.choices is not None:
        metavar = f"{{{','.join(map(str, action.choices))}}}"
    return {"?": f"[{metavar}]", "*": f"[{metavar} ...]", "+": f"{metavar} ..."}.get(str(action.nargs), metavar)
